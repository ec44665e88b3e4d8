package isolation

import (
	"fmt"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Stale checks within one transaction.
//
// SELECT stock; if stock >= 2, UPDATE ... SET stock = stock - 2. The server computes from the current row, so no update is lost, and what the SELECT read is
// superseded. But the transaction may have gone on because of what it had read, and no statement shows whether it did: a page that counts its views looks
// the same. So where the transaction read the column, another one changed it, and the WHERE checks neither the column nor another one that this one
// changed, the finding is only possible. Between requests it is the same, see request.go.

// staleCheck is a plain read of t, access number read, which its UPDATE, access number write, superseded.
type staleCheck struct{ read, write int }

// judgeChecks looks for stale checks of t.
func judgeChecks(c *Checker, t *txn, list []staleCheck) {
	for _, s := range list {
		r, w := &t.accesses[s.read], &t.accesses[s.write]
		if r.node == nil || w.node == nil || !w.node.installed() || w.node.writer != t {
			continue
		}
		columns, checked := compared(c, t, r, w)
		for n, i := r.node.nextInstalled(), 0; len(columns) > 0 && n != nil && n != w.node && n.precedes(w.node) && i < maxWalk; n, i = n.nextInstalled(), i+1 {
			his := usesBy(c, n)
			if his == nil || n.writer == t || !disjoint(checked, his.assigned) {
				break
			}
			if !disjoint(columns, his.assigned) {
				reportStale(c, t, r, w, n, columns)
				break
			}
		}
	}
}

// compared are the columns that the read gave and the UPDATE adds to or takes from, and those that it compares; none if it compares one of the former.
func compared(c *Checker, t *txn, r, w *access) (columns, checked []string) {
	s := &t.stmts[w.stmt]
	if s.verb != "update" || len(s.sql) >= maxText || !strings.ContainsAny(s.sql, "+-") {
		return nil, nil
	}
	d := lex.Of(t.product().Dialect)
	for _, name := range flow.Relative(s.sql, d) {
		if gave(c, t, r, []string{name}) {
			columns = append(columns, name)
		}
	}
	_, list := flow.Update(s.sql, d, nil)
	for _, o := range list {
		if !o.Role.Assigns() {
			checked = append(checked, o.Column)
		}
	}
	if (&uses{assigned: checked, named: columns}).sort(); !disjoint(columns, checked) {
		return nil, nil
	}
	return columns, checked
}

// reportStale reports that t may have checked, in r, what the version n changed before t wrote the row in w.
func reportStale(c *Checker, t *txn, r, w *access, n *version, columns []string) {
	key := setKey(anomaly.GSingle, []*txn{t, n.writer})
	if c.reported[key] || c.reported[key+"?"] {
		return
	}
	c.reported[key+"?"] = true
	t.sets = append(t.sets, key+"?")
	if !c.opts.Possible {
		c.coverage.Possible++
		return
	}
	f := draft(c, anomaly.GSingle, anomaly.NonRepeatableRead, []*txn{t, n.writer}, []edge{
		{kind: edgeRW, from: r.node, to: n, fromStmt: r.stmt, toStmt: n.wstmt}, {kind: edgeWR, from: n, to: n, fromStmt: n.wstmt, toStmt: w.stmt},
	}, []int{1, 0}, c.session)
	f.Kind = oracle.KindUnknown
	lost := *f
	lost.Name = anomaly.LostUpdate // against which the same helps
	f.Remedies = oracle.Remedies(t.product(), &lost)
	f.Edges[1].Text += fmt.Sprintf(". The server computed %s from it. Whether %s went on because of what it had read before is not known",
		strings.Join(columns, ", "), f.Transactions[0].Label)
	publish(c, f)
}

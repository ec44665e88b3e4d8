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

// Of several reads the last one counts that gave the column. An ORM may read the key alone before it writes.

// staleCheck is an UPDATE of t, access number write, which superseded plain reads of the row. The last one has a number that is one less than read.
type staleCheck struct {
	read  int32
	write int
}

// judgeChecks looks for stale checks of t.
func judgeChecks(c *Checker, t *txn, list []staleCheck) {
	for _, s := range list {
		w := &t.accesses[s.write]
		if w.node == nil || !w.node.installed() || w.node.writer != t {
			continue
		}
		columns, checked := compared(t, w)
		for read := s.read; read > 0 && len(columns) > 0; read = t.accesses[read-1].older {
			r := reader{t, read - 1}
			var given, left []string
			for _, name := range columns {
				if gave(c, t, r.access(), []string{name}) {
					given = append(given, name)
				} else if !concerned(c, r, &uses{assigned: []string{name}}) {
					left = append(left, name)
				}
			}
			if columns = left; len(given) > 0 && judgeCheck(c, r, w, given, checked) {
				break
			}
		}
	}
}

// judgeCheck looks for a change of one of the columns between a read that gave them and the UPDATE w, and reports whether it found one.
func judgeCheck(c *Checker, read reader, w *access, columns, checked []string) bool {
	r := read.access()
	if r.node == nil {
		return false
	}
	for n, i := r.node.nextInstalled(), 0; n != nil && n != w.node && n.precedes(w.node) && i < maxWalk; n, i = n.nextInstalled(), i+1 {
		his := usesBy(c, n)
		if his == nil || n.writer == read.t || !disjoint(checked, his.assigned) {
			return false
		}
		if !disjoint(columns, his.assigned) {
			reportStale(c, read.t, r, w, n, columns)
			return true
		}
	}
	return false
}

// compared are the columns that the UPDATE adds to or takes from, and those that it compares; none if it compares one of the former.
func compared(t *txn, w *access) (columns, checked []string) {
	s := &t.stmts[w.stmt]
	if s.verb != "update" || len(s.sql) >= maxText || !strings.ContainsAny(s.sql, "+-") {
		return nil, nil
	}
	d := lex.Of(t.product().Dialect)
	columns = flow.Relative(s.sql, d)
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
		c.coverage.maybe(anomaly.NonRepeatableRead, n.table)
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

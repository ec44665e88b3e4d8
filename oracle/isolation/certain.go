package isolation

import (
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/trace/lex"
)

// This file has what a history shows without a cycle, apart from reads of what was undone or replaced, and what contradicts itself in it.

// direct reports what one edge shows, from the first of the transactions to the last one.
func direct(c *Checker, class oracle.Class, ts []*txn, e edge) {
	a, _ := anomaly.Of(class, "")
	c.emit(class, a.Name, ts, []edge{e}, []int{len(ts) - 1}, c.hand.session.id)
}

// internal reports that access a of t read v although an earlier statement of t had written a later version of the row, last. Only a
// SELECT tells this: a cursor that was opened before the write rightly goes on with the older version.
func internal(c *Checker, t *txn, a *access, v, last *version) {
	if last == nil || last.wstmt >= a.stmt || v.writer == t && v.wstmt == last.wstmt || !v.precedes(last) {
		return
	}
	if st := &t.stmts[a.stmt]; st.failed || st.verb != "select" && st.verb != "" || !st.exact() {
		return
	}
	if passesMoved(t, v, last) {
		return
	}
	direct(c, anomaly.Internal, []*txn{t}, edge{kind: edgeRW, from: v, to: last, fromStmt: a.stmt, toStmt: last.wstmt})
}

// passesMoved reports whether t may see v beside its own write, last, since another transaction has meanwhile given the row another key: some products
// document that a snapshot then shows the row under the old key.
func passesMoved(t *txn, v, last *version) bool {
	if cause := t.product().Cause(product.MovedAway); cause == nil || cause.Confirmed {
		return false
	}
	p := last.prev
	for p != nil && p != v && p.writer == t {
		p = p.prev
	}
	return p != v
}

// futureRead reports that r was answered before the statement that wrote v was sent.
func futureRead(c *Checker, v *version, r reader) {
	if v.wstmt < 0 || r.access().op.writes() || r.access().op == opMatch {
		return
	}
	w, read := &v.writer.stmts[v.wstmt], &r.t.stmts[r.access().stmt]
	if w.from != 0 && read.to != 0 && read.to < w.from && sameClock(v.writer, r.t) {
		direct(c, anomaly.FutureRead, []*txn{v.writer, r.t}, edge{kind: edgeWR, from: v, to: v, fromStmt: v.wstmt, toStmt: r.access().stmt})
	}
}

// dirtyUpdate reports that v, of a committed transaction, replaced p, which was undone.
func dirtyUpdate(c *Checker, p, v *version) {
	if p.is != dead || v.is != live || p.writer == nil || v.writer == nil || p.writer == v.writer || v.writer.state != stateCommitted {
		return
	}
	if v.wstmt >= 0 && v.writer.stmts[v.wstmt].current {
		return // it read p as well: a G1a
	}
	direct(c, anomaly.DirtyUpdate, []*txn{p.writer, v.writer}, edge{kind: edgeWW, from: p, to: v, fromStmt: p.wstmt, toStmt: v.wstmt})
}

// garbage reports whether nobody wrote v, although it names w as its writer: w listed all that it wrote, versions of this row among it, and not v.
// Where w listed nothing of the row, something that wrote besides its statements is the better explanation, and v counts as w's.
func garbage(c *Checker, v *version, w *txn) bool {
	if v.row == nil || strings.HasPrefix(v.id, "(") || c.late[w.id] != nil || !w.listedAll() {
		return false // a place in a table of PostgreSQL's changes when the table is written anew
	}
	return slices.ContainsFunc(w.accesses, func(a access) bool { return a.op.writes() && a.node != nil && a.node.row == v.row })
}

// listedAll reports whether the statements of w certainly listed all that it wrote: all were seen exactly, and none calls anything that may write.
func (w *txn) listedAll() bool {
	return !w.partial && !w.undone && len(w.stmts) < maxSilent && !slices.ContainsFunc(w.stmts, func(s stmt) bool {
		switch s.verb {
		case "begin", "commit", "rollback", "savepoint", "release", "set":
			return false
		}
		return s.failed || s.coverage != history.CoverageExact || len(s.sql) >= maxText || calls(s.sql, lex.Of(w.product().Dialect))
	})
}

// harmless are words in front of a parenthesis that call nothing, or nothing that writes.
var harmless = strings.Fields(`values in and or not where on set select between exists any all as by from using key when then else
	count sum min max avg coalesce now abs lower upper length concat if ifnull nullif cast greatest least round mod`)

// calls reports whether a statement may call a function of the user.
func calls(sql string, d lex.Dialect) bool {
	last, into := lex.Token{}, false // into: last is the name of the table that an INSERT names
	for t := range lex.Tokens(sql, d) {
		switch {
		case t.Executed():
			return true
		case t.Kind == lex.Space, t.Kind == lex.Comment:
			continue
		case t.Text == "(" && !into && (last.Kind == lex.Word || last.Kind == lex.Name) && !slices.Contains(harmless, nameIn(last)):
			return true
		}
		into = t.Is("into") || into && (t.Kind == lex.Word || t.Kind == lex.Name || t.Text == ".")
		last = t
	}
	return false
}

// The kinds of contradictions (Coverage.Contradictions).
const (
	twoWriters = "two writers of one version"
	twoOrders  = "two orders of the same versions"
	twoPlaces  = "two places of one version"
	twoOwners  = "a token of two transactions"
	beganTwice = "a session or transaction that began twice"
	endUnbegun = "an end of a transaction that was not open"
	endBefore  = "an end of a transaction before its begin"
)

func (v *Coverage) contradiction(what string) {
	if v.Contradictions == nil {
		v.Contradictions = map[string]int{}
	}
	v.Contradictions[what]++
}

// putAt tells the place of v, or a bound of it. That a version whose writing is known counts as initial is no contradiction: a new judgement, or
// the end of a setup, makes all that was written before initial.
func putAt(c *Checker, v *version, order, asOf uint64) {
	if order > history.OrderInitial && v.order > history.OrderInitial && order != v.order || v.order > 0 && asOf > 0 && v.order >= asOf {
		c.coverage.contradiction(twoPlaces)
	}
	v.setPlace(order, asOf)
}

// undid reports that v, which w did not list, is certainly of a statement that w undid: all others tell what they wrote.
func (w *txn) undid() bool {
	if !w.undone || w.partial {
		return false
	}
	return !slices.ContainsFunc(w.stmts, func(st stmt) bool {
		return !st.failed && st.coverage != history.CoverageExact && st.coverage != history.CoverageNone
	})
}

// undo marks what a ROLLBACK TO SAVEPOINT undid.
func (t *txn) undo(from int) {
	t.undone = true
	for i := range t.stmts {
		if t.stmts[i].n >= from {
			t.stmts[i].failed = true
		}
	}
	// What the transaction read before, and the locks that it read with, are not held for it any more: its level promises nothing of that.
	if t.product().SavepointRestarts && t.part.RollbackTo(from) {
		if promised, _ := t.product().Promises(t.level, anomaly.PGSingle); promised {
			for i := range t.accesses {
				t.accesses[i].superseded = true // of a write this says nothing
			}
		}
	}
}

func (c *Checker) addTokens(t *txn, tokens []string) {
	if t.passed {
		return
	}
	for _, tok := range tokens {
		if owner := c.tokens[tok]; tok == "" || owner != nil {
			if owner != nil && owner != t {
				c.coverage.contradiction(twoOwners)
			}
			continue
		}
		c.tokens[tok] = t
		t.tokens = append(t.tokens, tok)
	}
}

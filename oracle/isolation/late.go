package isolation

import (
	"slices"
	"sort"

	"wirecheck/history"
)

// statementIndex finds the statement with number n; -1 if there was none yet.
func (t *txn) statementIndex(n int) int32 {
	for i := len(t.stmts) - 1; i >= 0 && n > 0 && t.stmts[i].n >= n; i-- {
		if t.stmts[i].n == n {
			return int32(i)
		}
	}
	return -1
}

// addLate adds what was told later of statement i of an open transaction.
func (c *Checker) addLate(t *txn, i int32, e *history.Event) {
	c.addTokens(t, e.Tokens)
	sees(c, t, &t.stmts[i], e)
	t.stmts[i].current = t.stmts[i].current || e.CurrentRead
	t.stmts[i].to = max(t.stmts[i].to, e.To) // some of its answers came later
	if was := t.stmts[i].coverage; was != e.Coverage {
		c.coverage.count(was, -1)
		counted(c, e)
		t.stmts[i].coverage = e.Coverage
	}
	if t.passed {
		passAccesses(c, t, e)
		return
	}
	ordered := int(i) == len(t.stmts)-1
	c.addAccesses(t, i, e)
	if !ordered {
		sort.Stable(byStatement{t})
	}
}

// byStatement sorts the accesses of an open transaction.
type byStatement struct{ t *txn }

func (b byStatement) Len() int           { return len(b.t.accesses) }
func (b byStatement) Less(i, k int) bool { return b.t.accesses[i].stmt < b.t.accesses[k].stmt }
func (b byStatement) Swap(i, k int) {
	b.t.accesses[i], b.t.accesses[k] = b.t.accesses[k], b.t.accesses[i]
	b.t.told[i], b.t.told[k] = b.t.told[k], b.t.told[i]
}

// finishLate adds the writes of an ended transaction that were still to be told. Its end did not wait for them: whoever
// met one of its versions meanwhile knows them by its token.
func (c *Checker) finishLate(t *txn, e *history.Event) {
	delete(c.late, t.id)
	defer c.requests.told(t)
	t.session.late = slices.DeleteFunc(t.session.late, func(o *txn) bool { return o == t })
	i := t.statementIndex(e.N)
	if i < 0 {
		return
	}
	sees(c, t, &t.stmts[i], e)
	toldGroups(c, t, i, e)
	c.addTokens(t, e.Tokens)
	if was := t.stmts[i].coverage; was != e.Coverage {
		c.coverage.count(was, -1)
		counted(c, e)
		t.stmts[i].coverage = e.Coverage
	}
	if t.passed {
		passAccesses(c, t, e)
		return
	}
	c.addAccesses(t, i, e)
	c.edges, c.hand = c.edges[:0], t
	switch t.state {
	case stateCommitted:
		c.install(t)
	case stateAborted:
		c.installAborted(t)
	}
	c.search(t.session.id)
}

package isolation

import (
	"wirecheck/history"
)

// Transactions that are only counted (Options.Only): another one has seen that they are part of nothing that is reported.

// Counts are counts for which all transactions have to be in the graph.
type Counts struct {
	UnknownWriters int // as in Coverage
	Unordered      int // writes whose place among the versions of the row is not told
	Far            int // as in Coverage, of searches that were made for the Checker
}

// Settle tells a Checker that judges some transactions only (Options.Only) what to count for all of them.
func Settle(c *Checker, n Counts) {
	c.counts = n
	if c.levels != nil {
		c.levels.Unordered = n.Unordered
	}
}

// pass counts a statement of t, and keeps what a later event of it needs.
func pass(c *Checker, t *txn, e *history.Event) {
	t.stmts = append(t.stmts, stmt{n: e.N, coverage: e.Coverage})
	t.addReads(c, int32(len(t.stmts)-1), e)
	passAccesses(c, t, e)
}

func passAccesses(c *Checker, t *txn, e *history.Event) {
	for i := range e.Accesses {
		if a := &e.Accesses[i]; !leftOut(c, a) {
			tb := c.tableOf(a.Row.Table)
			tb.seen++
			t.apart(&c.coverage, a, tb, e.CurrentRead)
		}
	}
}

// endPassed counts the end of t.
func endPassed(c *Checker, t *txn, out history.Outcome) {
	switch out {
	case history.OutcomeCommitted:
		c.coverage.Committed++
		if c.levels != nil {
			c.levels.Ran(own(t))
		}
	case history.OutcomeAborted:
		c.coverage.Aborted++
	default:
		c.coverage.Unknown++
	}
	c.openSize -= t.size
	if c.late[t.id] != t {
		c.spare.passed(t)
	}
}

// txn is room for a transaction.
func (s *spare) txn() *txn {
	if n := len(s.txns); n > 0 {
		t := s.txns[n-1]
		s.txns = s.txns[:n-1]
		return t
	}
	return &txn{}
}

// passed keeps the room of a transaction that was only counted.
func (s *spare) passed(t *txn) {
	if len(s.txns) < spareRooms && cap(t.stmts) <= spareLength {
		clear(t.stmts)
		t.stmts = t.stmts[:0]
		s.txns = append(s.txns, t)
	}
}

package isolation

import (
	"slices"

	"wirecheck/history"
	"wirecheck/oracle/level"
	"wirecheck/trace/lex"
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

// Join tells a Checker that was given the events of some transactions alone what another one counted of all events, and what a third one counted of the
// same ones: neither of the two judges any transaction.
func Join(c, all, same *Checker) {
	c.all, c.same = all, same
	if c.levels != nil {
		for _, o := range all.levels.Own() {
			c.levels.Ran(o)
		}
	}
}

// joined are the counts of all events.
func joined(c *Checker) Coverage {
	v := counts(c.all).Plus(c.coverage.plus(c.same.coverage, -1))
	v.Broken = c.coverage.Broken
	return v
}

// ran is what the levels have to know of a committed transaction that was only counted.
type ran struct {
	own   level.Own
	wrote bool
}

// pass counts a statement of t, and keeps what a later event of it needs.
func pass(c *Checker, t *txn, e *history.Event) {
	t.stmts = append(t.stmts, stmt{n: e.N, coverage: e.Coverage})
	sees(c, t, &t.stmts[len(t.stmts)-1], e)
	t.addReads(c, int32(len(t.stmts)-1), e)
	passAccesses(c, t, e)
}

func passAccesses(c *Checker, t *txn, e *history.Event) {
	for i := range e.Accesses {
		if a := &e.Accesses[i]; !leftOut(c, a) {
			tb := c.tableOf(a.Row.Table)
			tb.seen++
			if a.Op.Writes() {
				t.wrote = true
				assigns(c, tb, t, e)
				if !tb.assigned.commutes && a.Op == history.OpUpdate && a.Was != "" {
					said := c.texts.uses.of(e.SQL, lex.Of(t.product().Dialect), usesOf)
					tb.assigned.commutes = said.without(read(a.Was), read(a.Image)) != said
				}
			} else if e.Verb == "select" {
				selects(tb, t, e)
			}
			t.apart(&c.coverage, a, tb, e.CurrentRead, len(e.Accesses)-1-i)
		}
	}
}

// assigned is what statements assign and read in a table, as far as transactions that are only counted tell.
type assigned struct {
	texts    recentTexts
	uses     []*uses
	asked    recentTexts
	selects  []*selection // of a part of the columns
	commutes bool         // a statement has nothing to do with what another one assigned
}

// selects notes the columns that a SELECT reads of a table.
func selects(tb *table, t *txn, e *history.Event) {
	a := &tb.assigned
	if a.commutes || len(e.SQL) >= maxText || a.asked.find(e.SQL) >= 0 {
		return
	}
	a.asked.add(e.SQL)
	s := selectionOf(e.SQL, lex.Of(t.product().Dialect))
	if s == nil || s.named == nil || slices.ContainsFunc(a.selects, func(o *selection) bool { return slices.Equal(o.named, s.named) }) {
		return
	}
	a.selects = append(a.selects, s)
	a.commutes = len(a.selects) == maxTold || slices.ContainsFunc(a.uses, func(u *uses) bool { return !s.reads(u) })
}

const maxTold = 64 // uses

// assigns notes the columns that a statement assigns in a table.
func assigns(c *Checker, tb *table, t *txn, e *history.Event) {
	a := &tb.assigned
	if a.commutes = a.commutes || timed(e.Operands); a.commutes || e.Verb != "update" && e.Verb != "insert" || e.Error != nil || len(e.SQL) >= maxText {
		return
	}
	if a.texts.find(e.SQL) >= 0 {
		return
	}
	a.texts.add(e.SQL)
	u := usesOf(e.SQL, lex.Of(t.product().Dialect))
	if u == nil {
		return
	}
	a.commutes = u.commutes(u) || len(a.uses) == maxTold || slices.ContainsFunc(a.selects, func(s *selection) bool { return !s.reads(u) })
	for _, o := range a.uses {
		if slices.Equal(o.assigned, u.assigned) && slices.Equal(o.named, u.named) {
			return
		}
		a.commutes = a.commutes || u.commutes(o)
	}
	a.uses = append(a.uses, u)
}

// Commutes reports whether there may be two writes of one row that commute, or a read of other columns than a write assigns, by what the transactions told that are only counted.
func Commutes(c *Checker) bool {
	for _, tb := range c.tables {
		if tb.assigned.commutes {
			return true
		}
	}
	return false
}

// endPassed counts the end of t.
func endPassed(c *Checker, t *txn, out history.Outcome) {
	switch out {
	case history.OutcomeCommitted:
		c.coverage.Committed++
		if c.levels != nil {
			is := own(t)
			c.levels.Ran(is)
			c.ran = append(c.ran, ran{is, t.wrote})
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
		t.stmts = t.stmts[:0] // they hold no texts
		s.txns = append(s.txns, t)
	}
}

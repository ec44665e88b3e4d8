package isolation

import (
	"cmp"
	"maps"
	"slices"

	"wirecheck/history"
)

// Now is what a checker knows at a moment, for those who watch it.
type Now struct {
	Coverage Coverage // without UnknownWriters, which takes time to count
	Open     []Open   // transactions, the oldest first
	Tables   []TableSeen
	Kept     int // transactions in memory
}

// Look asks a checker for what it knows. It lists at most so many open transactions.
func Look(c *Checker, most int) Now {
	return Now{counts(c), open(c, most), tables(c), c.Kept()}
}

// Needed is the number of the first event that the checker still needs: by which one of the transactions began that it has not forgotten.
func Needed(c *Checker) uint64 {
	first := c.seq + 1
	if t := c.openFirst; t != nil {
		first = t.begin
	}
	for _, t := range c.ended {
		first = min(first, t.begin)
	}
	return first
}

// Open is a transaction that has not ended.
type Open struct {
	Txn        uint64
	Session    history.Event // by which its session began
	Level      string
	Statements int
	Since      int64  // wall clock of its first statement; 0: not known
	SQL        string // its last statement
}

func open(c *Checker, most int) (list []Open) {
	for t := c.openFirst; t != nil && len(list) < most; t = t.nextOpen {
		o := Open{Txn: t.id, Session: t.session.info, Level: t.level, Statements: len(t.stmts)}
		if n := len(t.stmts); n > 0 {
			o.Since, o.SQL = t.stmts[0].at, t.stmts[n-1].sql
		}
		list = append(list, o)
	}
	return list
}

// TableSeen says how many row versions of a table statements read and wrote, as far as wirecheck saw them.
type TableSeen struct {
	Table              string
	Exact, Approximate int
}

// tables lists the tables whose row versions were seen, by name.
func tables(c *Checker) (list []TableSeen) {
	if c.all != nil {
		return tables(c.all)
	}
	names := slices.Collect(maps.Keys(c.tables))
	for name := range c.approximate {
		if c.tables[name] == nil {
			names = append(names, name)
		}
	}
	for _, name := range names {
		s := TableSeen{Table: name, Approximate: c.approximate[name]}
		if tb := c.tables[name]; tb != nil {
			s.Exact = tb.seen
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b TableSeen) int { return cmp.Compare(a.Table, b.Table) })
	return list
}

func counts(c *Checker) Coverage {
	if c.all != nil {
		v := joined(c)
		v.Far = c.paths.Far + c.counts.Far
		return v
	}
	v := c.coverage
	v.Unread, v.Contradictions, v.Possibly = maps.Clone(v.Unread), maps.Clone(v.Contradictions), maps.Clone(v.Possibly)
	v.Unfinished, v.Awaited = len(c.open), len(c.late)
	if c.lost != nil {
		v.Lost, v.Conditions = c.lost.list(), c.conditions.list()
	}
	v.Open = len(c.sessions)
	v.Far = c.paths.Far + c.counts.Far
	return v
}

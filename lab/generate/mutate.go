package generate

import (
	"fmt"
	"slices"
)

// Mutate makes a case that is like one that was made before on the same database: its steps with one to four changes, each of which is another
// order, a statement more or less, another statement in the place of one, the same kind of statement with other values and conditions, COMMIT for
// ROLLBACK or the other way round. So what a case has reached is kept, mostly, and something is added.
func (g *Generator) Mutate(db *Database, steps []Step) *Case {
	return g.best(func() *Case { return g.mutant(db, steps) })
}

func (g *Generator) mutant(db *Database, steps []Step) *Case {
	const tries = 8
	defer func() { g.hot = nil }()
	for range tries {
		out := slices.Clone(steps)
		for range 1 + g.few(0, 3) {
			g.hot = nil
			if t := oneOf(g.intn, db.Tables); len(t.Rows) > 0 {
				g.hot = oneOf(g.intn, t.Rows)
			}
			out = g.mutate(db, out)
		}
		if k := caseOf(db, out); k != nil && !slices.EqualFunc(k.Order, steps, func(a, b Step) bool { return a.SQL == b.SQL && a.Session == b.Session }) {
			return k
		}
	}
	return g.assemble(db) // nothing came of it
}

// mutate makes one change.
func (g *Generator) mutate(db *Database, steps []Step) []Step {
	n := g.intn(len(steps))
	st := steps[n]
	data := st.Kind.Data()
	switch draw := g.intn(100); {
	case draw < 30:
		return g.move(steps, n)
	case draw < 50 && data: // the same kind, other values and conditions
		steps[n].Statement = g.likewise(db, st.Statement, mayWrite(steps, n))
	case draw < 65 && data:
		steps[n].Statement = g.data(db, g.tableOf(db, st.Statement), false, mayWrite(steps, n))
	case draw < 80 && data && size(steps, n) < g.limits.Statements:
		more := Step{Statement: g.data(db, g.tableOf(db, st.Statement), false, mayWrite(steps, n)), Session: st.Session}
		if explicit(steps, n) {
			return slices.Insert(steps, n+g.intn(2), more)
		}
	case draw < 90 && data:
		return slices.Delete(steps, n, n+1)
	case st.Kind == KindCommit && g.has("rollback"):
		steps[n].Statement = g.statement(KindRollback, nil, func() string { g.mark("rollback"); return "ROLLBACK" })
	case st.Kind == KindRollback && g.has("commit"):
		steps[n].Statement = g.statement(KindCommit, nil, func() string { g.mark("commit"); return "COMMIT" })
	}
	return steps
}

// move puts a step somewhere else between those before and behind it in its session.
func (g *Generator) move(steps []Step, n int) []Step {
	from, to := n, n
	for from > 0 && steps[from-1].Session != steps[n].Session {
		from--
	}
	for to+1 < len(steps) && steps[to+1].Session != steps[n].Session {
		to++
	}
	at := g.between(from, to)
	st := steps[n]
	return slices.Insert(slices.Delete(steps, n, n+1), at, st)
}

// likewise makes a statement of the same kind.
func (g *Generator) likewise(db *Database, st Statement, may bool) Statement {
	t := g.tableOf(db, st)
	switch {
	case st.Kind == KindSelect:
		return g.read(db, t)
	case !may:
		return st
	case st.Kind == KindLock:
		return g.lock(db, t)
	}
	return g.writeInto(db, t, st.Kind)
}

// tableOf is a table that the statement names, or any.
func (g *Generator) tableOf(db *Database, st Statement) *Table {
	for _, t := range db.Tables {
		if slices.Contains(st.Tables, t.Name) {
			return t
		}
	}
	return oneOf(g.intn, db.Tables)
}

// transactionAt gives the places of the explicit transaction that holds a step, its ends included; nothing if there is none.
func transactionAt(steps []Step, n int) (places []int) {
	open := false
	for i, st := range steps {
		if st.Session != steps[n].Session {
			continue
		}
		if st.Kind == KindBegin || st.SQL == autocommitOff {
			open, places = true, nil
		}
		if open {
			places = append(places, i)
		}
		if st.Kind == KindCommit || st.Kind == KindRollback {
			if slices.Contains(places, n) {
				return places
			}
			open, places = false, nil
		}
	}
	if slices.Contains(places, n) {
		return places
	}
	return nil
}

func explicit(steps []Step, n int) bool { return len(transactionAt(steps, n)) > 0 }

// size is how many statements of a step's transaction access data.
func size(steps []Step, n int) (count int) {
	for _, i := range transactionAt(steps, n) {
		if steps[i].Kind.Data() {
			count++
		}
	}
	return count
}

// mayWrite reports whether the transaction of a step is none that only reads.
func mayWrite(steps []Step, n int) bool {
	return !slices.ContainsFunc(transactionAt(steps, n), func(i int) bool {
		return slices.Contains(steps[i].Features, "begin-read-only") || slices.Contains(steps[i].Features, "begin-deferrable")
	})
}

// caseOf makes a case of steps in their order; nil if it is none that should be tested (WriteCheck, VLDB'25, 5.2): at least two
// sessions that access data, an explicit transaction and a write.
func caseOf(db *Database, steps []Step) *Case {
	k := &Case{Database: db}
	var sessions []int // numbers that steps have, in order
	begins, writes := false, false
	for n, st := range steps {
		if !st.Kind.Data() {
			continue
		}
		if !slices.Contains(sessions, st.Session) {
			sessions = append(sessions, st.Session)
		}
		begins, writes = begins || explicit(steps, n), writes || st.Kind.Writes()
	}
	slices.Sort(sessions)
	if len(sessions) < 2 || !begins || !writes {
		return nil
	}
	counts := make([]int, len(sessions))
	for i := range sessions {
		k.Sessions = append(k.Sessions, &Session{Name: fmt.Sprintf("s%d", i+1)})
	}
	for _, st := range steps {
		if st.Session = slices.Index(sessions, st.Session); st.Session < 0 {
			continue
		}
		counts[st.Session]++
		st.Name = fmt.Sprintf("s%d_%d", st.Session+1, counts[st.Session])
		k.Order = append(k.Order, st)
	}
	for i, s := range k.Sessions {
		s.Transactions = transactionsOf(k.Order, i)
	}
	return k.complete()
}

// transactionsOf are the transactions of a session.
func transactionsOf(order []Step, session int) (list []*Transaction) {
	var open *Transaction
	for n, st := range order {
		if st.Session != session {
			continue
		}
		if open == nil {
			open = &Transaction{}
			list = append(list, open)
		}
		open.Explicit = open.Explicit || explicit(order, n)
		open.Statements = append(open.Statements, st.Statement)
		if st.Kind == KindCommit || st.Kind == KindRollback || st.Kind.Data() && !explicit(order, n) {
			open = nil
		}
	}
	return list
}

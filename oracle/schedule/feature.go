package schedule

import (
	"maps"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/statement"
)

// Features lists what was special about an execution, for the choice of the next case: who waited for whom with which kinds of
// statements and how that ended, what was refused and why, and which dependencies there were between transactions, by kinds of statements.
// Each comes once, sorted, with the level of the schedule in front.
//
// Dependencies are those of tables, not of rows: a statement that changed rows of a table, or read it, and one of another transaction later. A
// rough measure is enough here, since it only says which cases are alike. Soundness does not rest on it.
func (s *Schedule) Features() []string {
	f := features{s: s, transactions: s.Transactions(), found: map[string]bool{}}
	f.of = make([]*Transaction, len(s.Steps))
	for i := range f.transactions {
		for _, n := range f.transactions[i].Steps {
			f.of[n] = &f.transactions[i]
		}
	}
	for i := range s.Steps {
		f.locks(i)
	}
	f.dependencies()
	return slices.Sorted(maps.Keys(f.found))
}

type features struct {
	s            *Schedule
	transactions []Transaction
	of           []*Transaction // by step; nil: none
	found        map[string]bool
}

func (f *features) add(words ...string) { f.found[f.s.Level+": "+strings.Join(words, " ")] = true }

// locks notes that a step waited or was refused.
func (f *features) locks(i int) {
	st := &f.s.Steps[i]
	end := "done"
	switch {
	case st.Reason != "":
		end = string(st.Reason)
	case st.Failed():
		end = "refused"
	case touched(st) == 0:
		end = "done, no rows"
	}
	if st.Waited && len(st.For) == 0 { // the server does not tell for whom
		f.add("wait:", kindOf(&st.Statement)+",", end)
	}
	for _, other := range st.For {
		holder := f.holder(i, other)
		if holder < 0 {
			continue
		}
		outcome := "-"
		if t := f.of[holder]; t != nil {
			outcome = outcomeWord(t.Outcome)
		}
		f.add("wait:", kindOf(&st.Statement), "for", kindOf(&f.s.Steps[holder].Statement), outcome+",", end)
	}
	if st.Failed() {
		code := string(st.Reason)
		if st.Answer.Err != nil {
			code += " " + st.Answer.Err.Code
		}
		f.add("refused:", kindOf(&st.Statement), code)
	}
}

// holder is the last step of a session before another step was let go whose table that one names; else its last one; -1 if there is none.
func (f *features) holder(i, session int) int {
	last := -1
	st := &f.s.Steps[i]
	for n := i - 1; n >= 0; n-- {
		other := &f.s.Steps[n]
		if other.Session != session || other.Done > st.Sent {
			continue
		}
		if last < 0 {
			last = n
		}
		if t := f.of[n]; t == nil || f.of[last] != t {
			break
		}
		if len(shared(&st.Statement, &other.Statement)) > 0 {
			return n
		}
	}
	return last
}

// edge is a dependency between statements of two transactions.
type edge struct{ kind, from, to string }

func (e edge) String() string { return e.kind + "(" + e.from + ">" + e.to + ")" }

// dependencies notes the dependencies of each two transactions that ran at the same time, and pairs of them that point both ways: the cycles of two
// (Adya, 1999, chapter 4).
func (f *features) dependencies() {
	for a := range f.transactions {
		for b := a + 1; b < len(f.transactions); b++ {
			t, u := &f.transactions[a], &f.transactions[b]
			if t.Session == u.Session || t.End < u.Begin || u.End < t.Begin {
				continue
			}
			there, back := f.edges(t, u), f.edges(u, t)
			outcomes := outcomeWord(t.Outcome) + "-" + outcomeWord(u.Outcome)
			for _, e := range there {
				f.add("edge:", e.String(), outcomes)
			}
			for _, e := range back {
				f.add("edge:", e.String(), outcomeWord(u.Outcome)+"-"+outcomeWord(t.Outcome))
			}
			for _, e := range there {
				for _, g := range back {
					pair := []string{e.String(), g.String()}
					slices.Sort(pair)
					f.add("cycle:", pair[0], pair[1])
				}
			}
		}
	}
}

func outcomeWord(o history.Outcome) string {
	if o == history.OutcomeCommitted {
		return "c"
	}
	return "a"
}

// edges are the dependencies of u's statements on t's: those on a common table of which one changed rows.
func (f *features) edges(t, u *Transaction) (list []edge) {
	for _, i := range t.Steps {
		for _, n := range u.Steps {
			a, b := &f.s.Steps[i], &f.s.Steps[n]
			if a.Done > b.Done || a.Failed() || b.Failed() {
				continue
			}
			for _, kind := range conflicts(a, b) {
				if e := (edge{kind, kindOf(&a.Statement), kindOf(&b.Statement)}); !slices.Contains(list, e) {
					list = append(list, e)
				}
			}
		}
	}
	return list
}

// conflicts are the kinds of dependencies of a later statement on an earlier one.
func conflicts(a, b *Step) (kinds []string) {
	add := func(is bool, kind string) {
		if is && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, name := range shared(&a.Statement, &b.Statement) {
		aw, ar := uses(a, name)
		bw, br := uses(b, name)
		add(aw && bw, "ww")
		add(aw && br && !bw, "wr")
		add(ar && !aw && bw, "rw")
	}
	return kinds
}

// uses reports whether a statement changed rows of a table, and whether it read it.
func uses(st *Step, name string) (writes, reads bool) {
	for _, t := range st.Statement.Tables {
		if t.Kind == statement.SourceTable && strings.EqualFold(t.Name, name) {
			writes = writes || t.Target && touched(st) > 0
			reads = reads || t.Read
		}
	}
	return writes, reads
}

// touched is how many rows a statement changed or gave.
func touched(st *Step) int64 { return max(st.Answer.Affected, int64(len(st.Answer.Rows))) }

// shared are the tables that both statements name.
func shared(a, b *statement.Statement) (names []string) {
	for _, t := range a.Tables {
		for _, u := range b.Tables {
			if t.Kind == statement.SourceTable && u.Kind == statement.SourceTable && strings.EqualFold(t.Name, u.Name) && !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// kindOf is what a statement does, in one or two words.
func kindOf(st *statement.Statement) string {
	switch {
	case st.Locking.Lock != statement.LockNone:
		return "lock-" + strings.ReplaceAll(string(st.Locking.Lock), " ", "-")
	case st.Insert != nil && (st.Insert.Conflict || st.Ignore):
		return "upsert"
	case st.Insert != nil && st.Insert.Select != "":
		return st.Verb + "-select"
	case st.DDL:
		return "ddl"
	case (st.Verb == "update" || st.Verb == "delete") && len(st.Targets()) > 1:
		return st.Verb + "-many"
	case (st.Verb == "update" || st.Verb == "delete") && st.HasSubquery:
		return st.Verb + "-query"
	}
	return st.Verb
}

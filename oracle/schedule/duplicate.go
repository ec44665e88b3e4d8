package schedule

import (
	"slices"

	"wirecheck/oracle"
	"wirecheck/statement"
)

// passesDuplicate reports whether an INSERT IGNORE or REPLACE of a pessimistic transaction did not wait for another session that writes its table, or gave another
// answer beside one, or whether a statement did not wait for such an INSERT IGNORE or REPLACE.
func passesDuplicate(s *Schedule, f *oracle.Finding, i int) bool {
	st := &s.Steps[i]
	if f.Name != oracle.NameBlocking && f.Name != oracle.NameResult || st.Answer.Err != nil || !slices.ContainsFunc(s.Steps, passes) {
		return false
	}
	quiet := s.quiet()
	for n := range s.Steps {
		o := &s.Steps[n]
		if writes(o, st) && o.Session != st.Session && o.Sent <= st.Done && (quiet[i] > 0 || f.Name == oracle.NameBlocking && quiet[n] > 0) {
			return true
		}
	}
	return false
}

// WroteUnlocked reports whether a session wrote a table, and did not wait, between an INSERT IGNORE or REPLACE of a pessimistic transaction of another session and the
// end of that transaction.
func (s *Schedule) WroteUnlocked() bool {
	for n, end := range s.quiet() {
		if slices.ContainsFunc(s.Steps, func(o Step) bool {
			return writes(&o, &s.Steps[n]) && o.Session != s.Steps[n].Session && o.Sent > s.Steps[n].Done && o.Done < end && o.Answer.Err == nil
		}) {
			return true
		}
	}
	return false
}

func passes(o Step) bool {
	return o.Statement.Verb == "insert" && o.Statement.Ignore || o.Statement.Verb == "replace"
}

// quiet are the steps of explicit, pessimistic transactions that are an INSERT IGNORE or REPLACE and were not refused, and the ends of their transactions.
func (s *Schedule) quiet() map[int]int {
	list := map[int]int{}
	for _, t := range s.Transactions() {
		for _, n := range t.Steps {
			if t.Explicit && !s.DBMS().Optimistic(t.Level, true) && passes(s.Steps[n]) && s.Steps[n].Answer.Err == nil {
				list[n] = t.End
			}
		}
	}
	return list
}

// writes reports whether a step writes a table of another one.
func writes(o, st *Step) bool {
	return slices.ContainsFunc(o.Statement.Targets(), func(u statement.TableUse) bool {
		return slices.ContainsFunc(st.Statement.Tables, func(r statement.TableUse) bool { return r.Name == u.Name })
	})
}

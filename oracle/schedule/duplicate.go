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
	passes := func(o Step) bool {
		return o.Statement.Verb == "insert" && o.Statement.Ignore || o.Statement.Verb == "replace"
	}
	if f.Name != oracle.NameBlocking && f.Name != oracle.NameResult || st.Answer.Err != nil || !slices.ContainsFunc(s.Steps, passes) {
		return false
	}
	quiet := map[int]bool{}
	for _, t := range s.Transactions() {
		for _, n := range t.Steps {
			quiet[n] = t.Explicit && !s.DBMS().Optimistic(t.Level, true) && passes(s.Steps[n])
		}
	}
	for n := range s.Steps {
		o := &s.Steps[n]
		writes := slices.ContainsFunc(o.Statement.Targets(), func(u statement.TableUse) bool {
			return slices.ContainsFunc(st.Statement.Tables, func(r statement.TableUse) bool { return r.Name == u.Name })
		})
		if writes && o.Session != st.Session && o.Sent <= st.Done && (quiet[i] || f.Name == oracle.NameBlocking && quiet[n]) {
			return true
		}
	}
	return false
}

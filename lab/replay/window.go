package replay

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Spec makes a scenario of a group: what it needs of the database as setup, a session for each unit. The order in which the steps ran in
// the replay is its first permutation.
func (g *Group) Spec(name string, lab engine.Lab, defs Definitions, tables []engine.Table, d lex.Dialect) (*scenario.Spec, *scenario.Permutation) {
	spec := &scenario.Spec{Name: name}
	block := func(sql string) {
		if sql = strings.TrimRight(strings.TrimSpace(sql), "; \n"); sql != "" {
			spec.Setup = append(spec.Setup, scenario.Block{SQL: sql})
		}
	}
	part, names := defs.Of(g.words())
	off, on := checksOff(d)
	tied := slices.ContainsFunc(part.Before, references.MatchString)
	if tied && d == lex.MySQL { // a table may refer to one that comes later
		block(off)
	}
	if d == lex.PostgreSQL && slices.ContainsFunc(part.Before, routine.MatchString) {
		block("SET check_function_bodies = off") // their tables come later, as in a dump
	}
	for _, sql := range part.Before {
		block(sql)
	}
	if tied && d == lex.PostgreSQL { // rows come in no order that foreign keys would like
		block(off)
	}
	for _, t := range tables {
		block(lab.InsertText(t))
	}
	if tied {
		block(on)
	}
	for _, sql := range g.State.Counters {
		if slices.ContainsFunc(slices.Collect(maps.Keys(words(sql))), func(w string) bool { return names[w] }) {
			block(sql)
		}
	}
	for _, sql := range slices.Concat(part.After, g.State.Besides) {
		block(sql)
	}
	type placed struct {
		n    int
		step *scenario.Step
	}
	var order []placed
	for i, u := range g.Units {
		s := &scenario.Session{Name: fmt.Sprintf("s%d", u.Session)}
		if slices.ContainsFunc(spec.Sessions, func(o *scenario.Session) bool { return o.Name == s.Name }) {
			s.Name += string(rune('a' + i))
		}
		if len(u.Setup) > 0 {
			s.Setup = &scenario.Block{SQL: strings.Join(u.Setup, "; ")}
		}
		for j, st := range u.Steps {
			step := &scenario.Step{Name: fmt.Sprintf("%c%d", 'a'+i%26, j+1), SQL: strings.TrimRight(strings.TrimSpace(st.SQL), "; \n"), Session: i, Index: j}
			s.Steps = append(s.Steps, step)
			order = append(order, placed{st.N, step})
		}
		spec.Sessions = append(spec.Sessions, s)
	}
	slices.SortStableFunc(order, func(a, b placed) int { return a.n - b.n })
	p := &scenario.Permutation{}
	for _, o := range order {
		p.Steps = append(p.Steps, scenario.PermutationStep{Step: o.step})
	}
	return spec, p
}

var (
	routine    = regexp.MustCompile(`(?is)^\s*create\b.{0,50}?\b(function|procedure)\b`)
	references = regexp.MustCompile(`(?i)\breferences\b`)
)

// checksOff gives the settings that stop foreign keys from being checked, and that let them be again.
func checksOff(d lex.Dialect) (off, on string) {
	if d == lex.MySQL {
		return "SET foreign_key_checks = 0", "SET foreign_key_checks = 1"
	}
	return "SET session_replication_role = replica", "SET session_replication_role = origin"
}

// Serial gives the orders in which the units run one after the other.
func Serial(spec *scenario.Spec) (all []*scenario.Permutation) {
	for sessions := range schedule.Permutations(spec.Sessions) {
		p := &scenario.Permutation{}
		for _, s := range sessions {
			for _, st := range s.Steps {
				p.Steps = append(p.Steps, scenario.PermutationStep{Step: st})
			}
		}
		all = append(all, p)
	}
	return all
}

// Keep thins out the rows of large tables: those that have none of the values that the group's statements speak of or read are left out. It
// reports whether it left out any; then the caller must see whether the group still does what it did.
func (g *Group) Keep(tables []engine.Table, most int, d lex.Dialect) (thin []engine.Table, thinned bool) {
	values := map[string]bool{}
	for _, u := range g.Units {
		for _, s := range u.Steps {
			for _, l := range flow.Literals(s.SQL, d) {
				values[l.Value] = true
			}
			for _, r := range s.Answer.Results {
				for i, row := range r.Rows {
					if i == 100 {
						break
					}
					for _, v := range row {
						values[string(v)] = true
					}
				}
			}
		}
	}
	thin = slices.Clone(tables)
	for i := range thin {
		t := &thin[i]
		if len(t.Rows) <= most {
			continue
		}
		var rows [][]answer.Value
		for _, row := range t.Rows {
			// The first column is most often the key; the others of a large table have the same few values again and again.
			if len(row) > 0 && values[string(row[0])] {
				rows = append(rows, row)
			}
		}
		t.Rows, thinned = rows, true
	}
	return thin, thinned
}

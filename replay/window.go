package replay

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/scenario"
	"wirecheck/trace"
)

// Definitions are the statements that make the tables without their rows: those in front of rows, and those behind them (indexes, foreign
// keys, triggers), as a dump has them.
type Definitions struct {
	Before, After []string
}

// needed are the tables, of those that are there, that the group's statements name, and those that their foreign keys refer to.
func (g *Group) needed(defs []string, all []string, d trace.Dialect) map[string]bool {
	need := map[string]bool{}
	for _, u := range g.Units {
		for name := range u.tables {
			need[name] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, sql := range defs {
			own, refers := mentions(sql, all, d)
			if !need[own] {
				continue
			}
			for _, name := range refers {
				grown = grown || !need[name]
				need[name] = true
			}
		}
	}
	return need
}

// mentions gives the first table that a definition names, which is the one that it is about, and those behind REFERENCES.
func mentions(sql string, all []string, d trace.Dialect) (own string, refers []string) {
	references := false
	for t := range trace.Tokens(sql, d) {
		if t.Kind != trace.TokenWord && t.Kind != trace.TokenName {
			continue
		}
		word := strings.ToLower(strings.Trim(t.Text, "\"`"))
		if t.Kind == trace.TokenWord && word == "references" {
			references = true
			continue
		}
		if !slices.Contains(all, word) {
			continue
		}
		if own == "" {
			own = word
		}
		if references {
			refers = append(refers, word)
			references = false
		}
	}
	return own, refers
}

// bare is a table's name without its schema, as statements' tables are compared.
func bare(name string) string {
	if _, after, ok := strings.Cut(name, "."); ok {
		name = after
	}
	return strings.ToLower(name)
}

// Needed gives those of the tables whose rows are the group's state.
func (g *Group) Needed(tables []engine.Table, defs Definitions, d trace.Dialect) (keep []engine.Table) {
	var all []string
	for _, t := range tables {
		all = append(all, bare(t.Name))
	}
	need := g.needed(slices.Concat(defs.Before, defs.After), all, d)
	for _, t := range tables {
		if need[bare(t.Name)] {
			keep = append(keep, t)
		}
	}
	return keep
}

// Spec makes a scenario of a group: its state as setup, a session for each unit. The order in which the steps ran in the replay is its
// first permutation. all are the names of all tables of the database; counters are statements that set sequences to where they were.
func (g *Group) Spec(name string, lab engine.Lab, defs Definitions, tables []engine.Table, all, counters []string, d trace.Dialect) (*scenario.Spec, *scenario.Permutation) {
	spec := &scenario.Spec{Name: name}
	block := func(sql string) {
		if sql = strings.TrimRight(strings.TrimSpace(sql), "; \n"); sql != "" {
			spec.Setup = append(spec.Setup, scenario.Block{SQL: sql})
		}
	}
	var names []string
	for _, t := range all {
		names = append(names, bare(t))
	}
	need := g.needed(slices.Concat(defs.Before, defs.After), names, d)
	for _, sql := range defs.Before {
		if wanted(sql, need, names, d) {
			block(sql)
		}
	}
	tied := slices.ContainsFunc(defs.Before, func(sql string) bool { _, refers := mentions(sql, names, d); return len(refers) > 0 })
	if off, on := checksOff(d); tied { // rows come in no order that foreign keys would like
		block(off)
		for _, t := range tables {
			block(lab.InsertText(t))
		}
		block(on)
	} else {
		for _, t := range tables {
			block(lab.InsertText(t))
		}
	}
	for _, sql := range counters {
		if wanted(sql, need, names, d) {
			block(sql)
		}
	}
	for _, sql := range defs.After {
		if wanted(sql, need, names, d) {
			block(sql)
		}
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
	slices.SortStableFunc(order, func(a, b placed) int { return compare(int64(a.n), int64(b.n)) })
	p := &scenario.Permutation{}
	for _, o := range order {
		p.Steps = append(p.Steps, scenario.PermutationStep{Step: o.step})
	}
	return spec, p
}

// checksOff gives the settings that stop foreign keys from being checked, and that let them be again.
func checksOff(d trace.Dialect) (off, on string) {
	if d == trace.MySQL {
		return "SET foreign_key_checks = 0", "SET foreign_key_checks = 1"
	}
	return "SET session_replication_role = replica", "SET session_replication_role = origin"
}

// wanted reports whether a definition is about tables that are needed. One that is about none (types, functions) is.
func wanted(sql string, need map[string]bool, all []string, d trace.Dialect) bool {
	own, refers := mentions(sql, all, d)
	if own != "" && !need[own] {
		return false
	}
	return !slices.ContainsFunc(refers, func(name string) bool { return !need[name] })
}

// Serial gives the orders in which the units run one after the other.
func Serial(spec *scenario.Spec) (all []*scenario.Permutation) {
	var walk func(done []int)
	walk = func(done []int) {
		if len(done) == len(spec.Sessions) {
			p := &scenario.Permutation{}
			for _, i := range done {
				for _, st := range spec.Sessions[i].Steps {
					p.Steps = append(p.Steps, scenario.PermutationStep{Step: st})
				}
			}
			all = append(all, p)
			return
		}
		for i := range spec.Sessions {
			if !slices.Contains(done, i) {
				walk(append(slices.Clone(done), i))
			}
		}
	}
	walk(nil)
	return all
}

// Keep thins out the rows of large tables: those that have none of the values that the group's statements speak of or read are left out. It
// reports whether it left out any; then the caller must see whether the group still does what it did.
func (g *Group) Keep(tables []engine.Table, most int, d trace.Dialect) (thin []engine.Table, thinned bool) {
	values := map[string]bool{}
	for _, u := range g.Units {
		for _, s := range u.Steps {
			for _, l := range literals(s.SQL, d) {
				values[l.value] = true
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
		var rows [][]engine.Value
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

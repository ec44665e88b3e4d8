package generate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/lab/scenario"
)

// Case is a database, transactions on it, and the order in which their statements are submitted.
type Case struct {
	Database *Database
	Sessions []*Session
	// Order is the submitted order of all statements.
	Order []Step
	// Features are those of all statements, sorted.
	Features []string
	// Spec is the same as a scenario with one permutation; its final queries read all tables.
	Spec *scenario.Spec
}

// Step is a statement at its place in the submitted order.
type Step struct {
	Statement
	Name    string // in the scenario
	Session int    // index in Case.Sessions
}

// Case makes a database, transactions and an order.
func (g *Generator) Case() *Case {
	return g.best(func() *Case { return g.assemble(g.Database()) })
}

// CaseOn makes transactions and an order on a database that is there.
func (g *Generator) CaseOn(db *Database) *Case {
	return g.best(func() *Case { return g.assemble(db) })
}

// best makes a case, with a coverage several of which the one is taken that promises the most.
func (g *Generator) best(make func() *Case) *Case {
	const candidates = 8
	best := make()
	if g.coverage == nil {
		return best
	}
	worth := g.coverage.worth(best)
	for range candidates - 1 {
		if other := make(); g.coverage.worth(other) > worth {
			best, worth = other, g.coverage.worth(other)
		}
	}
	return best
}

func (g *Generator) assemble(db *Database) *Case {
	made := g.group(db)
	c := &Case{Database: db, Sessions: made.sessions}
	c.Order = g.order(made)
	return c.complete()
}

// complete lists what the case's statements have, and writes its scenario.
func (c *Case) complete() *Case {
	features := map[string]bool{}
	statements := slices.Clone(c.Database.Setup)
	for _, st := range c.Order {
		statements = append(statements, st.Statement)
	}
	for _, st := range statements {
		for _, f := range st.Features {
			features[f] = true
		}
	}
	c.Features = slices.Sorted(maps.Keys(features))
	c.Spec = c.spec()
	return c
}

// Reorder gives the case another submitted order.
func (g *Generator) Reorder(c *Case) *Case {
	out := *c
	out.Order = g.order(group{sessions: c.Sessions})
	out.Spec = out.spec()
	return &out
}

// order makes a submitted order: again and again, a session is chosen and its next statement appended, until there is none left
// (WriteCheck 5.2). A template's own order is kept in half of the cases, with what else there is mixed in.
func (g *Generator) order(made group) []Step {
	steps := make([][]Step, len(made.sessions))
	left := 0
	for i, s := range made.sessions {
		for _, tx := range s.Transactions {
			for _, st := range tx.Statements {
				name := fmt.Sprintf("%s_%d", s.Name, len(steps[i])+1)
				steps[i] = append(steps[i], Step{Statement: st, Name: name, Session: i})
			}
		}
		left += len(steps[i])
	}
	fixed := made.order
	if len(fixed) > 0 && g.intn(2) == 0 {
		fixed = nil
	}
	ordered := map[int]bool{}
	for _, i := range fixed {
		ordered[i] = true
	}
	var out []Step
	for ; left > 0; left-- {
		var open []int
		for i := range steps {
			if len(steps[i]) > 0 && (!ordered[i] || len(fixed) > 0 && fixed[0] == i) {
				open = append(open, i)
			}
		}
		i := oneOf(g.intn, open)
		if ordered[i] {
			fixed = fixed[1:]
		}
		out = append(out, steps[i][0])
		steps[i] = steps[i][1:]
	}
	return out
}

// spec writes the case as a scenario.
func (c *Case) spec() *scenario.Spec {
	spec := &scenario.Spec{
		Name:   "generated.spec",
		Header: []string{"Made by wirecheck's generator in the dialect of " + string(c.Database.Dialect) + "."},
	}
	spec.Directives = append(spec.Directives, scenario.Directive{Key: "engine", Value: string(c.Database.Dialect)})
	for _, t := range c.Database.Tables {
		spec.Directives = append(spec.Directives, scenario.Directive{Key: "final", Value: "SELECT * FROM " + t.Name})
	}
	for _, st := range c.Database.Setup {
		spec.Setup = append(spec.Setup, scenario.Block{SQL: st.SQL})
	}
	spec.Teardown = &scenario.Block{SQL: strings.Join(c.Database.Drop(), "; ")}
	steps := map[string]*scenario.Step{}
	for i, s := range c.Sessions {
		session := &scenario.Session{Name: s.Name}
		for _, st := range c.Order {
			if st.Session == i {
				step := &scenario.Step{Name: st.Name, SQL: st.SQL, Session: i, Index: len(session.Steps)}
				session.Steps = append(session.Steps, step)
				steps[st.Name] = step
			}
		}
		spec.Sessions = append(spec.Sessions, session)
	}
	p := &scenario.Permutation{}
	for _, st := range c.Order {
		p.Steps = append(p.Steps, scenario.PermutationStep{Step: steps[st.Name]})
	}
	spec.Permutations = []*scenario.Permutation{p}
	return spec
}

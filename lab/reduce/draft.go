package reduce

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/lab/scenario"
)

// draft is a scenario in the form in which parts are easily taken away.
type draft struct {
	setup      []string
	sessions   []session
	steps      []step // in the order of the permutation
	directives []scenario.Directive
	teardown   *scenario.Block
	header     []string
	name       string
}

type session struct {
	name  string
	setup *scenario.Block
}

type step struct {
	session int
	name    string
	sql     string
}

func of(spec *scenario.Spec) draft {
	d := draft{name: spec.Name, header: spec.Header, directives: spec.Directives, teardown: spec.Teardown}
	for _, b := range spec.Setup {
		d.setup = append(d.setup, b.SQL)
	}
	for _, s := range spec.Sessions {
		d.sessions = append(d.sessions, session{s.Name, s.Setup})
	}
	for _, ps := range spec.Permutations[0].Steps {
		d.steps = append(d.steps, step{ps.Step.Session, ps.Step.Name, ps.Step.SQL})
	}
	return d
}

// clone copies what passes change.
func (d draft) clone() draft {
	d.setup, d.sessions, d.steps = slices.Clone(d.setup), slices.Clone(d.sessions), slices.Clone(d.steps)
	return d
}

// each changes all statements.
func (d *draft) each(change func(string) string) {
	for i := range d.setup {
		d.setup[i] = change(d.setup[i])
	}
	for i := range d.steps {
		d.steps[i].sql = change(d.steps[i].sql)
	}
}

// everywhere changes all SQL, also the sessions' settings, the final queries and the teardown.
func (d *draft) everywhere(change func(string) string) {
	d.each(change)
	for i, s := range d.sessions {
		if s.setup != nil {
			d.sessions[i].setup = &scenario.Block{SQL: change(s.setup.SQL)}
		}
	}
	d.directives = slices.Clone(d.directives)
	for i := range d.directives {
		if d.directives[i].Key == "final" {
			d.directives[i].Value = change(d.directives[i].Value)
		}
	}
	if d.teardown != nil {
		d.teardown = &scenario.Block{SQL: change(d.teardown.SQL)}
	}
}

// asking leaves out the final queries of tables that were there, and are no more.
func (d draft) asking(were []naming) draft {
	there := d.tableNames()
	d.directives = slices.DeleteFunc(slices.Clone(d.directives), func(x scenario.Directive) bool {
		return x.Key == "final" && slices.ContainsFunc(tokens(x.Value), func(t token) bool {
			is := func(n naming) bool { return n.old == name(x.Value[t.from:t.to]) }
			return slices.ContainsFunc(were, is) && !slices.ContainsFunc(there, is)
		})
	})
	return d
}

// weight is how much there is to read: see weight of a statement.
func (d *draft) weight() (sum int) {
	for _, sql := range d.setup {
		sum += weight(sql)
	}
	for _, st := range d.steps {
		sum += weight(st.sql)
	}
	return sum
}

func (d *draft) dropSession(i int) {
	d.sessions = slices.Delete(d.sessions, i, i+1)
	var kept []step
	for _, st := range d.steps {
		switch {
		case st.session > i:
			st.session--
			kept = append(kept, st)
		case st.session < i:
			kept = append(kept, st)
		}
	}
	d.steps = kept
}

// size counts sessions with steps, steps, and the bytes of all statements.
func (d *draft) size() (sessions, steps, bytes int) {
	seen := map[int]bool{}
	for _, st := range d.steps {
		seen[st.session] = true
		bytes += len(st.sql)
	}
	for _, sql := range d.setup {
		bytes += len(sql)
	}
	return len(seen), len(d.steps), bytes
}

func (d *draft) key() string {
	var b strings.Builder
	for _, sql := range d.setup {
		b.WriteString(sql + "\x00")
	}
	b.WriteString("\x01")
	for _, s := range d.sessions {
		b.WriteString(s.name + "\x00")
		if s.setup != nil {
			b.WriteString(s.setup.SQL + "\x00")
		}
	}
	for _, st := range d.steps {
		fmt.Fprintf(&b, "%d %s %s\x00", st.session, st.name, st.sql)
	}
	if d.teardown != nil {
		b.WriteString(d.teardown.SQL + "\x00")
	}
	for _, x := range d.directives {
		b.WriteString(x.Key + ": " + x.Value + "\x00")
	}
	return b.String()
}

// spec makes a scenario of the draft.
func (d draft) spec() *scenario.Spec {
	out := &scenario.Spec{Name: d.name, Header: d.header, Directives: d.directives, Teardown: d.teardown}
	for _, sql := range d.setup {
		out.Setup = append(out.Setup, scenario.Block{SQL: sql})
	}
	p := &scenario.Permutation{}
	for _, s := range d.sessions {
		out.Sessions = append(out.Sessions, &scenario.Session{Name: s.name, Setup: s.setup})
	}
	for _, st := range d.steps {
		s := out.Sessions[st.session]
		made := &scenario.Step{Name: st.name, SQL: st.sql, Session: st.session, Index: len(s.Steps)}
		s.Steps = append(s.Steps, made)
		p.Steps = append(p.Steps, scenario.PermutationStep{Step: made})
	}
	out.Permutations = []*scenario.Permutation{p}
	return out
}

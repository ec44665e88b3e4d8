package replay

import (
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// likePeer reports whether a unit that does the same got these answers up to a step, and went on: so would this one. What it was given may not decide
// otherwise, and what it read of the rows that it was given the names of may differ in these names.
func (l *Lane) likePeer(step int, answers []*answer.Answer, d lex.Dialect) bool {
	return l.made != nil && slices.ContainsFunc(l.made.alike, func(p *Lane) bool {
		if p == l || !p.goesOn(step) {
			return false
		}
		names, ok := l.given(p, d)
		for i := range step + 1 {
			theirs := &p.Unit.Steps[i].Answer
			ok = ok && answers[i] != nil && (answers[i].Err == nil) == (theirs.Err == nil) && p.unlike(i, theirs, renamed(l.Unit.Steps[i].SQL, answers[i], theirs, names), d) == ""
		}
		return ok
	})
}

// name is a value in a column that two units were given for the same thing: mine and theirs.
type name struct{ column, mine, theirs string }

// given gives the names in which the inputs of two units that do the same differ: what their conditions find rows by. ok: they differ in nothing else but the
// time of day and what they computed from what they read. What they write may be chosen by what they read (Monday, then Thursday), and a number may be compared with it.
func (l *Lane) given(p *Lane, d lex.Dialect) (names []name, ok bool) {
	for i, s := range l.Unit.Steps {
		mine, theirs := flow.Literals(s.SQL, d), flow.Literals(p.Unit.Steps[i].SQL, d)
		if len(mine) != len(theirs) {
			return nil, false
		}
		for n, a := range mine {
			b := theirs[n]
			flows := func(x *Lane) bool {
				return slices.ContainsFunc(x.Flows, func(f Flow) bool { return f.To == i && f.Literal == n })
			}
			if a.Value == b.Value || flows(l) && flows(p) || s.now(a.Value) && p.Unit.Steps[i].now(b.Value) {
				continue
			}
			if a.Clause != "where" || a.Column == "" {
				return nil, false
			}
			names = append(names, name{a.Column, a.Value, b.Value})
		}
	}
	return names, true
}

// now reports whether a value may be what the application's clock showed when it sent the statement: updated_at.
func (s *Step) now(value string) bool {
	at := time.Unix(0, s.start)
	return s.start != 0 && len(value) > len("2006-01-02 15:04") && readBetween(value, at.Add(-clockTolerance), at.Add(clockTolerance))
}

// renamed gives an answer with a peer's names in the place of the unit's own.
func renamed(sql string, is, theirs *answer.Answer, names []name) *answer.Answer {
	out := *is
	out.Results = slices.Clone(is.Results)
	for i := range out.Results {
		r := &out.Results[i]
		if i >= len(theirs.Results) || len(theirs.Results[i].Rows) != len(r.Rows) {
			continue
		}
		r.Rows = slices.Clone(r.Rows)
		for j, row := range r.Rows {
			r.Rows[j] = slices.Clone(row)
			for k, v := range row {
				other := theirs.Results[i].Rows[j]
				if v == nil || k >= len(other) || k >= len(r.Columns) {
					continue
				}
				if slices.Contains(names, name{aliased(sql, strings.ToLower(r.Columns[k].Name)), string(v), string(other[k])}) {
					r.Rows[j][k] = other[k]
				}
			}
		}
	}
	return &out
}

package schedule

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/product"
	"wirecheck/statement"
)

// temporary finds definitions of temporary tables.
var temporary = regexp.MustCompile(`(?i)^create\s+(or\s+replace\s+)?((global|local)\s+)?temp(orary)?\s|^(create|select)\b.*\binto\s+temp`)

// Temporary reports whether a statement makes a table that its session alone sees.
func Temporary(st *statement.Statement) bool {
	return strings.Contains(strings.ToLower(st.Text), "temp") && temporary.MatchString(st.Text) // to look for a word takes a tenth of the time
}

// Begun gives the schedule in which the definitions that took effect before everything else are part of the setup, and those that were refused are left
// out: nothing else can tell that they were steps. The setup's connection is another one than the sessions', so that temporary tables stay steps.
func (s *Schedule) Begun() *Schedule {
	out := *s
	out.Steps = slices.Clone(s.Steps)
	for i := 0; i < len(out.Steps); {
		st := &out.Steps[i]
		switch {
		case !st.Statement.DDL || st.Before.InTransaction() || st.After.InTransaction() || Upkeep(s.Setup, &st.Statement) || Temporary(&st.Statement):
			i++
			continue
		case st.Failed():
		case slices.ContainsFunc(slices.Concat(out.Steps[:i], out.Steps[i+1:]), func(o Step) bool { return o.Sent < st.Done && !s.idle(&o) }):
			i++
			continue
		default:
			out.Setup = append(slices.Clip(out.Setup), st.Statement.Text)
		}
		out.Steps = slices.Delete(out.Steps, i, i+1)
	}
	return &out
}

// idle reports whether a step takes no snapshot, and neither reads nor writes a table.
func (s *Schedule) idle(st *Step) bool {
	switch st.Statement.Control.Verb {
	case statement.ControlBegin:
		return s.DBMS().SnapshotAt != product.AtBegin && !st.Statement.Begin.Snapshot
	case statement.ControlLevel, statement.ControlAutocommit:
		return true
	}
	return st.Statement.Verb == "set"
}

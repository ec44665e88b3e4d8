package statement_test

import (
	"fmt"
	"strings"

	"wirecheck/statement"
)

// printed describes a statement for people, one line for each part that it has.
func printed(s *statement.Statement) string {
	var b strings.Builder
	line := func(name string, text any) {
		if t := fmt.Sprint(text); t != "" && t != "[]" {
			fmt.Fprintf(&b, "%s: %s\n", name, t)
		}
	}
	line("verb", s.Verb)
	line("unparsed", s.Why)
	if s.Control != (statement.Control{}) {
		line("control", strings.TrimSpace(fmt.Sprintf("%s %s %s %s", s.Control.Verb, s.Control.Name, s.Control.Level, s.Control.Scope)))
	}
	line("flags", strings.Join(flags(s), ", "))
	if l := s.Locking; l.Lock != statement.LockNone {
		line("locking", strings.Join(append([]string{string(l.Lock)}, l.Of...), " "))
	}
	for _, t := range s.Tables {
		line("mention", mentioned(t))
	}
	c := s.Clauses
	for _, part := range [][2]string{{"with", c.With}, {"from", c.From}, {"where", c.Where}, {"group by", c.GroupBy}, {"having", c.Having}, {"window", c.Window},
		{"order by", c.OrderBy}, {"limit", c.Limit}} {
		line(part[0], part[1])
	}
	line("set", assigned(s.Assignments))
	if in := s.Insert; in != nil {
		line("columns", strings.Join(in.Columns, ", "))
		for _, r := range in.Rows {
			line("row", strings.Join(r, " | "))
		}
		line("query", in.Select)
		line("on conflict", assigned(in.Updates))
	}
	line("volatile", s.Volatile)
	return b.String()
}

func assigned(list []statement.Assignment) string {
	var parts []string
	for _, a := range list {
		column := a.Column
		if a.Table != "" {
			column = a.Table + "." + column
		}
		parts = append(parts, column+"="+a.Expr)
	}
	return strings.Join(parts, " | ")
}

// mentioned describes the mention of a table.
func mentioned(u statement.TableUse) string {
	words := []string{string(u.Kind)}
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	add(u.SQL != "", u.SQL)
	add(u.SQL == "" && u.Name != "", u.Name)
	add(u.Alias != "", "as "+u.Alias)
	add(u.Target, "written")
	add(u.Read, "read")
	add(u.Lock != statement.LockNone, "locked for "+string(u.Lock))
	add(u.Place != statement.PlaceMain, fmt.Sprintf("in %s", u.Place))
	add(u.Depth > 0, fmt.Sprintf("depth %d", u.Depth))
	return strings.Join(words, " ")
}

func flags(s *statement.Statement) (list []string) {
	in := s.Insert
	if in == nil {
		in = &statement.Insert{}
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{s.Begin.ReadOnly, "read only"}, {s.Begin.ReadWrite, "read write"}, {s.Begin.Deferrable, "deferrable"}, {s.Begin.Snapshot, "snapshot"},
		{s.Begin.Optimistic, "optimistic"}, {s.Begin.Pessimistic, "pessimistic"}, {s.Control.Chain, "chain"}, {s.DDL, "ddl"}, {s.Ends, "ends"},
		{s.Locking.NoWait, "nowait"}, {s.Locking.SkipLocked, "skip locked"}, {s.Locking.Wait, "wait"}, {s.Returning, "returning"}, {s.Ignore, "ignore"},
		{in.Defaults, "defaults"}, {in.Set, "insert set"}, {in.Conflict, "conflict"}, {in.Nothing, "nothing"},
		{s.Predicate, "predicate"}, {s.Aggregate, "aggregate"}, {s.Distinct, "distinct"}, {s.Window, "window"}, {s.SetOperation, "set operation"},
		{s.Limit, "limit"}, {s.HasSubquery, "subquery"}, {s.Parameters > 0, fmt.Sprint(s.Parameters, " parameters")}, {s.Variables, "variables"},
	} {
		if f.on {
			list = append(list, f.name)
		}
	}
	return list
}

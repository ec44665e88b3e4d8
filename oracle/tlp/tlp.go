// Package tlp is the oracle of Rigger and Su, "Finding Bugs in Database Systems via Query Partitioning" (OOPSLA 2020): ternary logic
// partitioning. A condition p is true, false or NULL for each row (section 3.1). So the rows of a query without its condition are those of
// the three queries with the conditions p, NOT p and p IS NULL, as multisets, or as sets under DISTINCT (section 3.2, table 3).
package tlp

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// Descriptor describes the oracle.
var Descriptor = oracle.Oracle{
	Name: "tlp",
	Doc: "a query's rows are not those of its three parts, where its condition is true, false and NULL\n\n" +
		"Ternary logic partitioning (OOPSLA 2020) of each SELECT with WHERE, executed alone, in the state that the transactions before it and its own left.",
}

// Check partitions the queries of a schedule. It executes the schedule's transactions one after the other on the stage.
func Check(ctx context.Context, s *schedule.Schedule, stage schedule.Stage) (schedule.Verdict, error) {
	c := &checker{s: s, stage: stage, fails: s.DBMS().ErrorFails}
	if s.Trouble != "" || s.Crashed {
		c.v.Unknown = cmp.Or(s.Trouble, "the server ended")
		return c.v, nil
	}
	err := s.Queries(ctx, stage, &c.v, schedule.Queries{LeftOut: "not partitioned", Reason: reason, Each: c.partition})
	return c.v, err
}

type checker struct {
	s     *schedule.Schedule
	stage schedule.Stage
	fails bool
	v     schedule.Verdict
}

var distinctOn = regexp.MustCompile(`(?i)\bdistinct\s+on\b`)

// reason says why a query is not partitioned; empty: it is.
func reason(st *statement.Statement) string {
	if why := schedule.Steady(st); why != "" {
		return why
	}
	switch {
	case st.Aggregate, st.Clauses.GroupBy != "", st.Clauses.Having != "":
		return "it groups"
	case st.Window:
		return "its window functions see the rows that the condition leaves"
	case st.SetOperation:
		return "it is a set operation"
	case st.Limit:
		return "LIMIT"
	case distinctOn.MatchString(st.Text):
		return "DISTINCT ON keeps other rows of other parts"
	case st.Clauses.Where == "":
		return "it has no condition"
	}
	if _, _, ok := schedule.Where(st); !ok {
		return "its condition was not found in the text"
	}
	return ""
}

// Partition gives the query without its condition, and its three parts.
func Partition(st *statement.Statement) (whole string, parts [3]string) {
	from, to, _ := schedule.Where(st)
	p := st.Clauses.Where
	for i, condition := range [3]string{p, "NOT (" + p + ")", "(" + p + ") IS NULL"} {
		parts[i] = st.Text[:from] + "WHERE " + condition + st.Text[to:]
	}
	return st.Text[:from] + st.Text[to:], parts
}

func (c *checker) partition(ctx context.Context, st *schedule.Step, now answer.State) error {
	whole, parts := Partition(&st.Statement)
	all, err := schedule.Ask(ctx, c.stage, st.Session, whole, now, c.fails)
	if err != nil {
		return err
	}
	var union [][]answer.Value
	for _, sql := range append([]string{whole}, parts[:]...) {
		got := all
		if sql != whole {
			if got, err = schedule.Ask(ctx, c.stage, st.Session, sql, now, c.fails); err != nil {
				return err
			}
			union = append(union, got.Answer.Rows...)
		}
		if e := got.Answer.Err; e != nil {
			c.v.Note("%s: not compared: %s", sql, e.Text())
			return nil
		}
	}
	c.v.Compared++
	want := all.Answer.Rows
	if st.Statement.Distinct { // which of several equal values stands for them is not defined
		want, union = distinct(want), distinct(union)
	}
	d := answer.DiffRows(want, union)
	if d.Equal() {
		return nil
	}
	if st.Statement.Distinct && len(want) > 0 {
		if schedule.Alike(d) || schedule.Alike(answer.DiffRows(representatives(want), representatives(union))) {
			c.v.Note("%s: parts differ: which of several equal values stands for them is not defined", st.Statement.Text)
			return nil
		}
	}
	expected, observed := schedule.Sides(all.Answer.Columns, want, union, d)
	f := oracle.Finding{
		Oracle: Descriptor.Name, Kind: oracle.KindViolation, Class: oracle.TLP, Name: oracle.NameResult, Level: c.s.Level, Promised: true, Seen: 1,
		Difference: &oracle.Difference{
			Rule: "TLP, section 3: a query without its condition p gives the rows of the three queries with p, NOT p and p IS NULL",
			Step: st.Name, Session: c.s.Sessions[st.Session].Name, SQL: st.Statement.Text,
			Expected: expected, Observed: observed,
		},
	}
	for _, sql := range append([]string{whole}, parts[:]...) {
		f.Difference.Reference = append(f.Difference.Reference, c.s.Sessions[st.Session].Name+": "+sql)
	}
	for _, u := range st.Statement.Reads() {
		if !slices.Contains(f.Tables, u.Name) {
			f.Tables = append(f.Tables, u.Name)
		}
	}
	slices.Sort(f.Tables)
	f.ID = f.Fingerprint()
	if !slices.ContainsFunc(c.v.Findings, func(o oracle.Finding) bool { return o.ID == f.ID }) {
		c.v.Findings = append(c.v.Findings, f)
	}
	return nil
}

func distinct(rows [][]answer.Value) [][]answer.Value {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, answer.CompareRows)
	return slices.CompactFunc(rows, func(a, b []answer.Value) bool { return answer.CompareRows(a, b) == 0 })
}

// representatives leaves one of the rows that some collation may take for equal.
func representatives(rows [][]answer.Value) (out [][]answer.Value) {
	for _, row := range rows {
		if !slices.ContainsFunc(out, func(o []answer.Value) bool {
			return schedule.Alike(answer.DiffRows([][]answer.Value{o}, [][]answer.Value{row}))
		}) {
			out = append(out, row)
		}
	}
	return out
}

// Package norec is the oracle of Rigger and Su, "Detecting Optimization Bugs in Database Engines via Non-Optimizing Reference Engine
// Construction" (ESEC/FSE 2020). A condition in WHERE can be optimized, for instance by an index; the same condition in the select
// list is evaluated for every row (section 3). So as many rows must meet the one as the other is true for.
package norec

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// Descriptor describes the oracle.
var Descriptor = oracle.Oracle{
	Name: "norec",
	Doc: "a condition leaves other than as many rows as it is true for\n\n" +
		"NoREC (ESEC/FSE 2020) for each SELECT with WHERE, executed alone, in the state that the transactions before it and its own left.",
}

// Check compares the conditions of a schedule's queries. It executes the schedule's transactions one after the other on the stage.
func Check(ctx context.Context, s *schedule.Schedule, stage schedule.Stage) (schedule.Verdict, error) {
	c := &checker{s: s, stage: stage, fails: s.DBMS().ErrorFails}
	if s.Trouble != "" || s.Crashed {
		c.v.Unknown = cmp.Or(s.Trouble, "the server ended")
		return c.v, nil
	}
	err := s.Queries(ctx, stage, &c.v, schedule.Queries{LeftOut: "not compared", Reason: reason, Each: c.compare})
	return c.v, err
}

type checker struct {
	s     *schedule.Schedule
	stage schedule.Stage
	fails bool
	v     schedule.Verdict
}

// reason says why a query is not compared; empty: it is.
func reason(st *statement.Statement) string {
	if why := schedule.Steady(st); why != "" {
		return why
	}
	switch {
	case st.SetOperation:
		return "it is a set operation"
	case st.Clauses.From == "" || st.Clauses.Where == "":
		return "it has no condition"
	}
	return ""
}

// Translate gives the two queries: rows that meet the condition are counted, and the condition is in the select list.
func Translate(st *statement.Statement) (optimized, reference string) {
	with := st.Clauses.With
	if with != "" {
		with += " "
	}
	p := st.Clauses.Where
	return with + "SELECT COUNT(*) FROM " + st.Clauses.From + " WHERE " + p, with + "SELECT (" + p + ") IS TRUE FROM " + st.Clauses.From
}

func (c *checker) compare(ctx context.Context, st *schedule.Step, now answer.State) error {
	optimized, reference := Translate(&st.Statement)
	sql := st.Statement.Text
	plain := !st.Statement.Aggregate && !st.Statement.Distinct && !st.Statement.Limit && st.Statement.Clauses.GroupBy == "" && st.Statement.Clauses.Having == ""
	if plain { // the query itself: its select list decides which indexes can be used
		optimized = sql
	}
	got, err := schedule.Ask(ctx, c.stage, st.Session, optimized, now, c.fails)
	if err != nil {
		return err
	}
	want, err := schedule.Ask(ctx, c.stage, st.Session, reference, now, c.fails)
	if err != nil {
		return err
	}
	for _, side := range []schedule.Step{got, want} {
		if e := side.Answer.Err; e != nil {
			c.v.Note("%s: not compared: %s", sql, e.Text())
			return nil
		}
	}
	c.v.Compared++
	met := fmt.Sprint(len(got.Answer.Rows))
	if !plain {
		if len(got.Answer.Rows) != 1 {
			return fmt.Errorf("%s: %d rows", optimized, len(got.Answer.Rows))
		}
		met = string(got.Answer.Rows[0][0])
	}
	n := 0
	for _, row := range want.Answer.Rows {
		if v := strings.ToLower(string(row[0])); v == "t" || v == "true" || v == "1" {
			n++
		}
	}
	if met == fmt.Sprint(n) {
		return nil
	}
	name := c.s.Sessions[st.Session].Name
	f := oracle.Finding{
		Oracle: Descriptor.Name, Kind: oracle.KindViolation, Class: oracle.NoREC, Name: oracle.NameResult, Level: c.s.Level, Promised: true, Seen: 1,
		Difference: &oracle.Difference{
			Rule: "NoREC, section 3: as many rows meet a condition in WHERE as it is true for in the select list",
			Step: st.Name, Session: name, SQL: sql,
			Expected:  oracle.Side{Text: fmt.Sprintf("the condition is true for %d of %d rows", n, len(want.Answer.Rows))},
			Observed:  oracle.Side{Text: met + " rows meet it"},
			Reference: []string{name + ": " + optimized, name + ": " + reference},
		},
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

// Package norec is the oracle of Rigger and Su, "Detecting Optimization Bugs in Database Engines via Non-Optimizing Reference Engine
// Construction" (ESEC/FSE 2020). A condition in WHERE can be optimized, for instance by an index; the same condition in the select
// list is evaluated for every row (section 3). So as many rows must meet the one as the other is true for.
package norec

import (
	"context"
	"fmt"
	"strings"

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
	return s.Queries(ctx, stage, schedule.Queries{LeftOut: "not compared", Reason: reason, Each: compare})
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

func compare(ctx context.Context, q *schedule.Query) error {
	st := &q.Statement
	optimized, reference := Translate(st)
	plain := !st.Aggregate && !st.Distinct && !st.Limit && st.Clauses.GroupBy == "" && st.Clauses.Having == ""
	if plain { // the query itself: its select list decides which indexes can be used
		optimized = st.Text
	}
	answers, refused, err := q.Ask(ctx, optimized, reference)
	if err != nil {
		return err
	}
	if refused >= 0 {
		q.Verdict.Note("%s: not compared: %s", st.Text, answers[refused].Err.Text())
		return nil
	}
	q.Verdict.Compared++
	got, want := answers[0].Rows, answers[1].Rows
	met := fmt.Sprint(len(got))
	if !plain {
		if len(got) != 1 {
			return fmt.Errorf("%s: %d rows", optimized, len(got))
		}
		met = string(got[0][0])
	}
	n := 0
	for _, row := range want {
		if v := strings.ToLower(string(row[0])); v == "t" || v == "true" || v == "1" {
			n++
		}
	}
	if met == fmt.Sprint(n) {
		return nil
	}
	truth, err := q.Truth(ctx)
	if err != nil {
		return err
	}
	expected, observed := oracle.Side{Text: fmt.Sprintf("the condition is true for %d of %d rows", n, len(want))}, oracle.Side{Text: met + " rows meet it"}
	parts, opinion := []oracle.Part{schedule.PartOf(optimized, "", answers[0]), schedule.PartOf(reference, "", answers[1])}, ""
	switch {
	case truth == nil || !truth.Keyed && truth.Rows() != len(want):
	case truth.Keyed: // each part is judged for itself
		parts[0].Wrong, parts[1].Wrong = met != fmt.Sprint(truth.True), n != truth.True || len(want) != truth.Rows()
		if opinion = truth.Opinion(); !parts[0].Wrong {
			expected, observed = oracle.Side{Text: fmt.Sprintf("the condition is true for %d of %d rows", truth.True, truth.Rows())}, oracle.Side{Text: expected.Text}
		} else {
			expected = oracle.Side{Text: fmt.Sprintf("the condition is true for %d of %d rows", truth.True, truth.Rows())}
		}
	case truth.True == n:
		parts[0].Wrong, opinion = true, truth.Opinion()
	case fmt.Sprint(truth.True) == met:
		parts[1].Wrong, opinion = true, truth.Opinion()
		expected, observed = oracle.Side{Text: fmt.Sprintf("the condition is true for %s of %d rows", met, truth.Rows())}, oracle.Side{Text: expected.Text}
	}
	return q.Found(ctx, Descriptor.Name, oracle.NoREC, "NoREC, section 3: as many rows meet a condition in WHERE as it is true for in the select list", expected, observed, opinion, parts...)
}

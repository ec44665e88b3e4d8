// Package tlp is the oracle of Rigger and Su, "Finding Bugs in Database Systems via Query Partitioning" (OOPSLA 2020): ternary logic
// partitioning. A condition p is true, false or NULL for each row (section 3.1). So the rows of a query without its condition are those of
// the three queries with the conditions p, NOT p and p IS NULL, as multisets, or as sets under DISTINCT (section 3.2, table 3).
package tlp

import (
	"context"
	"regexp"
	"slices"

	"wirecheck/answer"
	"wirecheck/history/prose"
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
	return s.Queries(ctx, stage, schedule.Queries{LeftOut: "not partitioned", Reason: reason, Each: partition})
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

// Partition gives the query without its condition, and behind it its three parts.
func Partition(st *statement.Statement) (queries [4]string) {
	from, to, _ := schedule.Where(st)
	p := st.Clauses.Where
	for i, where := range [4]string{"", "WHERE " + p, "WHERE NOT (" + p + ")", "WHERE (" + p + ") IS NULL"} {
		queries[i] = st.Text[:from] + where + st.Text[to:]
	}
	return queries
}

func partition(ctx context.Context, q *schedule.Query) error {
	queries := Partition(&q.Statement)
	answers, refused, err := q.Ask(ctx, queries[:]...)
	if err != nil {
		return err
	}
	if refused >= 0 {
		q.Verdict.Note("%s: not compared: %s", queries[refused], answers[refused].Err.Text())
		return nil
	}
	q.Verdict.Compared++
	want, union := answers[0].Rows, slices.Concat(answers[1].Rows, answers[2].Rows, answers[3].Rows)
	if q.Statement.Distinct { // which of several equal values stands for them is not defined
		want, union = answer.DistinctRows(want), answer.DistinctRows(union)
	}
	d := answer.DiffRows(want, union)
	if d.Equal() {
		return nil
	}
	if q.Statement.Distinct && len(want) > 0 {
		if schedule.Alike(d) || schedule.Alike(answer.DiffRows(representatives(want), representatives(union))) {
			q.Verdict.Note("%s: parts differ: which of several equal values stands for them is not defined", q.Statement.Text)
			return nil
		}
	}
	expected, observed := schedule.Sides(answers[0].Columns, want, union, d)
	var parts []oracle.Part
	for i, sql := range queries {
		parts = append(parts, schedule.PartOf(sql, "", answers[i]))
	}
	opinion := ""
	if !q.Statement.Distinct {
		truth, err := q.Truth(ctx)
		if err != nil {
			return err
		}
		if wrong := blame(truth, answers); len(wrong) > 0 {
			for _, i := range wrong {
				parts[i].Wrong = true
			}
			opinion = truth.Opinion()
			expected, observed = sides(truth, answers, wrong)
		}
	}
	return q.Found(ctx, Descriptor.Name, oracle.TLP, "TLP, section 3: a query without its condition p gives the rows of the three queries with p, NOT p and p IS NULL",
		expected, observed, opinion, parts...)
}

// counts are how many rows the queries of Partition give by a third opinion.
func counts(t *schedule.Truth) [4]int { return [4]int{t.Rows(), t.True, t.False, t.Null} }

// blame finds the queries whose answers have not as many rows as the third opinion says. An opinion that contradicts the query without its
// condition and a part, too, says nothing, unless it counts keys.
func blame(t *schedule.Truth, answers []answer.Result) (wrong []int) {
	if t == nil {
		return nil
	}
	for i, n := range counts(t) {
		if len(answers[i].Rows) != n {
			wrong = append(wrong, i)
		}
	}
	if len(wrong) > 1 && wrong[0] == 0 && !t.Keyed {
		return nil
	}
	return wrong
}

// sides shows what the first wrong query should have given. If it is the only one, the others tell its rows.
func sides(t *schedule.Truth, answers []answer.Result, wrong []int) (expected, observed oracle.Side) {
	i := wrong[0]
	got := answers[i].Rows
	if len(wrong) == 1 {
		var others [][]answer.Value
		for n := 1; n < len(answers); n++ {
			if n != i {
				others = append(others, answers[n].Rows...)
			}
		}
		want := others
		if i > 0 {
			want = answer.DiffRows(answers[0].Rows, others).Missing
		}
		if len(want) == counts(t)[i] {
			return schedule.SideOf(answers[i].Columns, want, 0), schedule.SideOf(answers[i].Columns, got, 0)
		}
	}
	return oracle.Side{Text: prose.Count(counts(t)[i], "row")}, oracle.Side{Text: prose.Count(len(got), "row")}
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

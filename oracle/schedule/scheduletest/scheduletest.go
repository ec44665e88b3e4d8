// Package scheduletest helps to test oracles that judge single queries.
package scheduletest

import (
	"context"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// Scripted is a stage whose server answers what a test says.
type Scripted struct {
	schedule.Stage
	Answers map[string]string          // by statement: values of rows with one column, separated by blanks; "error CODE"
	Columns map[string][]answer.Column // by statement; else one, "a"
	Asked   []string
}

// Prepare does nothing.
func (s *Scripted) Prepare(context.Context, []string, int) error { return nil }

// Execute answers as the script says.
func (s *Scripted) Execute(_ context.Context, _ int, sql string) (schedule.Step, error) {
	s.Asked = append(s.Asked, sql)
	var st schedule.Step
	if code, ok := strings.CutPrefix(s.Answers[sql], "error "); ok {
		st.Answer.Err = &answer.Error{Code: code}
		return st, nil
	}
	if st.Answer.Columns = s.Columns[sql]; st.Answer.Columns == nil {
		st.Answer.Columns = []answer.Column{{Name: "a"}}
	}
	for _, v := range strings.Fields(s.Answers[sql]) {
		var row []answer.Value
		for _, part := range strings.Split(v, ",") {
			if part == "NULL" {
				row = append(row, nil)
			} else {
				row = append(row, answer.Value(part))
			}
		}
		st.Answer.Rows = append(st.Answer.Rows, row)
	}
	return st, nil
}

// One describes a statement in the dialect of a product.
func One(t *testing.T, product, sql string) statement.Statement {
	t.Helper()
	describe := postgres.Describe
	if product != "postgres" {
		describe = mysql.New(mysql.MariaDB).Describe
	}
	list, err := describe(sql)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v, %d statements", sql, err, len(list))
	}
	return list[0]
}

// Single is a schedule of one query.
func Single(t *testing.T, product, sql string) *schedule.Schedule {
	t.Helper()
	return &schedule.Schedule{
		Product: product, Sessions: []schedule.Session{{Name: "s1"}}, Setup: []string{"CREATE TABLE t (a INT, b INT)"},
		Steps: []schedule.Step{{Name: "q", Statement: One(t, product, sql), Sent: 1, Done: 2}},
	}
}

// Outcome is what a verdict says in a few words.
func Outcome(t *testing.T, v schedule.Verdict) string {
	t.Helper()
	var parts []string
	for _, f := range v.Findings {
		if f.ID == "" || f.Kind != oracle.KindViolation || f.Difference == nil || len(f.Difference.Reference) == 0 || len(f.Tables) == 0 {
			t.Errorf("not complete: %+v", f)
		}
		parts = append(parts, "found "+f.Difference.SQL)
	}
	for _, n := range v.Notes {
		parts = append(parts, "note "+n)
	}
	if v.Unknown != "" {
		parts = append(parts, "unknown "+v.Unknown)
	}
	return strings.Join(parts, "; ")
}

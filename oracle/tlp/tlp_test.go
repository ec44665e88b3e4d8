package tlp

import (
	"context"
	"strings"
	"testing"

	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/rewrite"
	"wirecheck/rewrite/mysql"
	"wirecheck/rewrite/postgres"
)

// scripted is a stage whose server answers what a test says.
type scripted struct {
	schedule.Stage
	answers map[string]string // by statement: values of rows with one column, separated by blanks; "error CODE"
	asked   []string
}

func (s *scripted) Prepare(context.Context, []string, int) error { return nil }

func (s *scripted) Execute(_ context.Context, _ int, sql string) (schedule.Step, error) {
	s.asked = append(s.asked, sql)
	var st schedule.Step
	if code, ok := strings.CutPrefix(s.answers[sql], "error "); ok {
		st.Answer.Err = &schedule.Error{Code: code}
		return st, nil
	}
	st.Answer.Columns = []schedule.Column{{Name: "a"}}
	for _, v := range strings.Fields(s.answers[sql]) {
		row := []schedule.Value{schedule.Value(v)}
		if v == "NULL" {
			row[0] = nil
		}
		st.Answer.Rows = append(st.Answer.Rows, row)
	}
	return st, nil
}

func one(t *testing.T, product, sql string) rewrite.Statement {
	t.Helper()
	describe := postgres.Describe
	if product != "postgres" {
		describe = mysql.New(mysql.MariaDB, "").Describe
	}
	list, err := describe(sql)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v, %d statements", sql, err, len(list))
	}
	return list[0]
}

func single(t *testing.T, product, sql string) *schedule.Schedule {
	t.Helper()
	return &schedule.Schedule{
		Product: product, Sessions: []schedule.Session{{Name: "s1"}}, Setup: []string{"CREATE TABLE t (a INT, b INT)"},
		Steps: []schedule.Step{{Name: "q", Statement: one(t, product, sql), Sent: 1, Done: 2}},
	}
}

// outcome is what a verdict says in a few words.
func outcome(t *testing.T, v schedule.Verdict) string {
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

const (
	query = "SELECT a FROM t WHERE b > 1"
	whole = "SELECT a FROM t "
	not   = "SELECT a FROM t WHERE NOT (b > 1)"
	null  = "SELECT a FROM t WHERE (b > 1) IS NULL"
)

func TestCheck(t *testing.T) {
	d := func(s string) string { return strings.Replace(s, "SELECT", "SELECT DISTINCT", 1) }
	for _, test := range []struct {
		name, sql string
		answers   map[string]string
		want      string // the outcome begins so
	}{
		{"three parts", query, map[string]string{whole: "1 2 2 NULL", query: "2", not: "NULL 2", null: "1"}, ""},
		{"a row is in no part", query, map[string]string{whole: "1 2 2", query: "2", not: "2"}, "found " + query},
		{"a row is in two parts", query, map[string]string{whole: "1 2", query: "1 2", not: "2"}, "found " + query},
		{"the number of equal rows counts", query, map[string]string{whole: "2 2", query: "2"}, "found " + query},
		{"but not under DISTINCT", d(query), map[string]string{d(whole): "2 1", d(query): "2", d(not): "2 1"}, ""},
		{"a value is missing under DISTINCT", d(query), map[string]string{d(whole): "2 1", d(query): "2", d(not): "2"}, "found " + d(query)},
		{"either of two equal values under DISTINCT", d(query), map[string]string{d(whole): "x", d(query): "X"}, "note " + d(query) + ": parts differ"},
		{"an error", query, map[string]string{whole: "1", query: "1", not: "error 22012"}, "note " + not + ": not compared: error 22012"},
		{"groups", "SELECT count(*) FROM t WHERE b > 1", nil, "note "},
		{"LIMIT", "SELECT a FROM t WHERE b > 1 ORDER BY a LIMIT 1", nil, "note "},
		{"random values", "SELECT random() FROM t WHERE b > 1", nil, "note "},
		{"no condition", "SELECT a FROM t", nil, "note "},
	} {
		stage := &scripted{answers: test.answers}
		v, err := Check(t.Context(), single(t, "postgres", test.sql), stage)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(t, v); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if test.answers == nil && len(stage.asked) > 0 {
			t.Errorf("%s: executed %q", test.name, stage.asked)
		}
	}
}

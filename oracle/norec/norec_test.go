package norec

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

func TestCheck(t *testing.T) {
	const (
		query = "SELECT a FROM t WHERE b > 1"
		list  = "SELECT (b > 1) IS TRUE FROM t"
		group = "SELECT a, count(*) FROM t WHERE b > 1 GROUP BY a"
		count = "SELECT COUNT(*) FROM t WHERE b > 1"
	)
	for _, test := range []struct {
		name, product, sql string
		answers            map[string]string
		want               string // the outcome begins so
	}{
		{"as many", "postgres", query, map[string]string{query: "7 8", list: "t f t"}, ""},
		{"as many (MariaDB)", "mariadb", query, map[string]string{query: "7 8", list: "1 0 1"}, ""},
		{"one less", "postgres", query, map[string]string{query: "7", list: "t f t"}, "found " + query},
		{"one more", "mariadb", query, map[string]string{query: "7 8 9", list: "1 0 1"}, "found " + query},
		{"groups are counted before", "postgres", group, map[string]string{count: "2", list: "t t"}, ""},
		{"a lost row of a group", "postgres", group, map[string]string{count: "1", list: "t t"}, "found " + group},
		{"an error", "postgres", query, map[string]string{query: "7", list: "error 22012"}, "note " + query + ": not compared"},
		{"random values", "postgres", "SELECT a FROM t WHERE random() > 0.5", nil, "note "},
		{"no condition", "postgres", "SELECT a FROM t", nil, "note "},
	} {
		stage := &scripted{answers: test.answers}
		v, err := Check(t.Context(), single(t, test.product, test.sql), stage)
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

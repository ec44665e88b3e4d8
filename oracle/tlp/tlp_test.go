package tlp

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/oracle/schedule/scheduletest"
)

const (
	query  = "SELECT a FROM t WHERE b > 1"
	whole  = "SELECT a FROM t "
	not    = "SELECT a FROM t WHERE NOT (b > 1)"
	values = "SELECT (b > 1) FROM t"
	null   = "SELECT a FROM t WHERE (b > 1) IS NULL"
)

func TestCheck(t *testing.T) {
	const any, in = "SELECT a FROM t WHERE b > ANY (SELECT 1)", "SELECT a FROM t WHERE b IN (SELECT c FROM u)"
	where := func(sql, form string) string {
		q, p, _ := strings.Cut(sql, " WHERE ")
		return fmt.Sprintf(form, q, p)
	}
	notAny, anyValues := where(any, "%s WHERE NOT (%s)"), "SELECT (b > ANY (SELECT 1)) FROM t"
	notIn, inValues := where(in, "%s WHERE NOT (%s)"), "SELECT (b IN (SELECT c FROM u)) FROM t"
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
		{"the part with NOT is wrong", query, map[string]string{whole: "1 2 3", query: "2", not: "1 2 3", values: "f t f"}, "found " + not},
		{"the part with NULL is wrong", query, map[string]string{whole: "1 2", query: "2", values: "NULL t"}, "found " + null},
		{"the query without its condition is wrong", query, map[string]string{whole: "1", query: "2", not: "1", values: "f t"}, "found " + whole},
		{"an opinion that contradicts everybody", query, map[string]string{whole: "1", query: "2", not: "1", values: "f f f f"}, "found " + query},
		{"a subquery without tables", any, map[string]string{whole: "1 2 3", any: "2", notAny: "1 2 3", anyValues: "f t f"}, "found " + notAny},
		{"no opinion that an index may give", in, map[string]string{whole: "1 2 3", in: "2", notIn: "1 2 3", inValues: "f t f"}, "found " + in},
		{"but not under DISTINCT", d(query), map[string]string{d(whole): "2 1", d(query): "2", d(not): "2 1"}, ""},
		{"a value is missing under DISTINCT", d(query), map[string]string{d(whole): "2 1", d(query): "2", d(not): "2"}, "found " + d(query)},
		{"either of two equal values under DISTINCT", d(query), map[string]string{d(whole): "x", d(query): "X"}, "note " + d(query) + ": parts differ"},
		{"an error", query, map[string]string{whole: "1", query: "1", not: "error 22012"}, "note " + not + ": not compared: error 22012"},
		{"groups", "SELECT count(*) FROM t WHERE b > 1", nil, "note "},
		{"LIMIT", "SELECT a FROM t WHERE b > 1 ORDER BY a LIMIT 1", nil, "note "},
		{"random values", "SELECT random() FROM t WHERE b > 1", nil, "note "},
		{"no condition", "SELECT a FROM t", nil, "note "},
	} {
		stage := &scheduletest.Scripted{Answers: test.answers}
		v, err := Check(t.Context(), scheduletest.Single(t, "postgres", test.sql), stage)
		if err != nil {
			t.Fatal(err)
		}
		if got := scheduletest.Outcome(t, v); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if test.answers == nil && len(stage.Asked) > 0 {
			t.Errorf("%s: executed %q", test.name, stage.Asked)
		}
	}
}

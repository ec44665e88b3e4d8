package norec

import (
	"strings"
	"testing"

	"wirecheck/oracle/schedule/scheduletest"
)

func TestCheck(t *testing.T) {
	const (
		query  = "SELECT a FROM t WHERE b > 1"
		list   = "SELECT (b > 1) IS TRUE FROM t"
		group  = "SELECT a, count(*) FROM t WHERE b > 1 GROUP BY a"
		values = "SELECT (b > 1) FROM t"
		keys   = "SELECT c.COLUMN_NAME, c.DATA_TYPE FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME AND c.COLUMN_NAME = k.COLUMN_NAME WHERE k.CONSTRAINT_NAME = 'PRIMARY' AND k.TABLE_SCHEMA = DATABASE() AND k.TABLE_NAME = 't'"
		keyed  = "SELECT `t`.`a`, (b > 1) FROM t"
		count  = "SELECT COUNT(*) FROM t WHERE b > 1"
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
		{"the select list is wrong", "mariadb", query, map[string]string{query: "7", list: "1 0 1", values: "1 0 NULL"}, "found " + list},
		{"the query is wrong", "mariadb", query, map[string]string{query: "7", list: "1 0 1", values: "1 0 -2e0"}, "found " + query},
		{"a value that does not tell", "mariadb", query, map[string]string{query: "7", list: "1 0 1", values: "1 0 x"}, "found " + query},
		{"a row is there twice for the list, and by its key once", "mariadb", query, map[string]string{query: "7", list: "1 1 0", keys: "a,int", keyed: "7,1 7,1 8,0"}, "found " + list},
		{"a row is there twice for the query, and for the third opinion", "mariadb", query, map[string]string{query: "7 7", list: "1 0", keys: "a,int", keyed: "7,1 7,1 8,0"}, "found " + query},
		{"near miss: other rows of a key that is not exact", "mariadb", query, map[string]string{query: "7", list: "1 1 0", keys: "a,float", values: "1 1 0"}, "found " + query},
		{"near miss: one row has two values", "mariadb", query, map[string]string{query: "7", list: "1 1 0", keys: "a,int", keyed: "7,1 7,0 8,0"}, "found " + query},
		{"groups are counted before", "postgres", group, map[string]string{count: "2", list: "t t"}, ""},
		{"a lost row of a group", "postgres", group, map[string]string{count: "1", list: "t t"}, "found " + group},
		{"an error", "postgres", query, map[string]string{query: "7", list: "error 22012"}, "note " + query + ": not compared"},
		{"random values", "postgres", "SELECT a FROM t WHERE random() > 0.5", nil, "note "},
		{"no condition", "postgres", "SELECT a FROM t", nil, "note "},
	} {
		stage := &scheduletest.Scripted{Answers: test.answers}
		v, err := Check(t.Context(), scheduletest.Single(t, test.product, test.sql), stage)
		if err != nil {
			t.Fatal(err)
		}
		if got := scheduletest.Outcome(t, v); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q, want %q; asked %q", test.name, got, test.want, stage.Asked)
		}
		if test.answers == nil && len(stage.Asked) > 0 {
			t.Errorf("%s: executed %q", test.name, stage.Asked)
		}
	}
}

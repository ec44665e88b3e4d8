package troc_test

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// TestImpossibleRows: an answer that is compared with nothing (SKIP LOCKED) is judged by itself: a row that breaks its table's definitions was in no state.
// Beside each such answer stands its near miss, a row that was not there either and could have been.
func TestImpossibleRows(t *testing.T) {
	const defined = "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL, c INT GENERATED ALWAYS AS (b + 1) STORED, d VARCHAR(3), CHECK (b < 50))"
	tests := []struct {
		name, setup, query string
		row                string // that the answer has in place of its first one
		want               string // part of the rule; empty: nothing is found
	}{
		{"NOT NULL", defined, "SELECT * FROM t FOR UPDATE SKIP LOCKED", "1|NULL|1|x", "refuses it"},
		{"CHECK", defined, "SELECT * FROM t FOR UPDATE SKIP LOCKED", "1|70|71|x", "refuses it"},
		{"too long", defined, "SELECT * FROM t FOR UPDATE SKIP LOCKED", "1|10|11|abcd", "put into the table again"},
		{"a generated column", defined, "SELECT * FROM t FOR UPDATE SKIP LOCKED", "1|10|12|x", "column c is 11"},
		{"near miss: a row that there could have been", defined, "SELECT * FROM t FOR UPDATE SKIP LOCKED", "1|49|50|NULL", ""},
		{"NOT NULL of a column alone", defined, "SELECT c, b FROM t FOR UPDATE SKIP LOCKED", "7|NULL", "refuses it"},
		{"near miss: another column alone may be NULL", defined, "SELECT t.d FROM t FOR UPDATE SKIP LOCKED", "NULL", ""},
		{"a column by its quoted name", defined, "SELECT /* all, of t */ t.c, QUOTEDb AS x FROM t FOR UPDATE SKIP LOCKED", "7|NULL", "refuses it"},
		{"near miss: a column under another one's name", defined, "SELECT d AS b FROM t FOR UPDATE SKIP LOCKED", "NULL", ""},
		{"near miss: an expression with a column's name", defined, "SELECT NULLIF(b, b) AS b FROM t FOR UPDATE SKIP LOCKED", "NULL", ""},
		{"near miss: a CHECK over several columns", "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL, c INT GENERATED ALWAYS AS (b + 1) STORED, d VARCHAR(3), CHECK (b < a))",
			"SELECT d FROM t FOR UPDATE SKIP LOCKED", "y", ""},
	}
	eachEngine(t, func(t *testing.T, p *place) {
		if strings.HasPrefix(p.name, "tidb") {
			return // it has no SKIP LOCKED
		}
		pair := p.at(t, p.d.Levels[slices.IndexFunc(p.d.Levels, func(l product.Level) bool { return l.History == product.ReadCommitted })])
		for _, test := range tests {
			spec, err := scenario.Parse(test.name, []byte("setup { "+test.setup+" }\nsetup { INSERT INTO t (a, b, d) VALUES (100, 10, 'x'), (200, 20, 'y') }\n"+
				"session s\nstep q { "+strings.Replace(test.query, "QUOTEDb", map[bool]string{true: `"b"`, false: "`b`"}[p.name == "postgres"], 1)+" }\npermutation q"))
			if err != nil {
				t.Fatal(err)
			}
			s := pair.execute(t, spec)
			if v := pair.check(t, s); len(v.Findings) > 0 || len(v.Notes) == 0 {
				t.Errorf("%s: a true answer\n%s", test.name, account(spec, s, v))
			}
			var row []answer.Value
			for _, v := range strings.Split(test.row, "|") {
				if v == "NULL" {
					row = append(row, nil)
				} else {
					row = append(row, answer.Value(v))
				}
			}
			s.Steps[slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Name == "q" })].Answer.Rows[0] = row
			v := pair.check(t, s)
			if test.want == "" && len(v.Findings) > 0 || test.want != "" && (len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Difference.Rule, test.want)) {
				t.Errorf("%s: want %q\n%s", test.name, test.want, account(spec, s, v))
			}
		}
	})
}

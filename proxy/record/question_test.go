package record

import (
	"strings"
	"testing"
)

// TestAskedOf: what is a question for wirecheck, and what is not.
func TestAskedOf(t *testing.T) {
	for _, tt := range []struct {
		sql string
		q   Question
		ok  bool
	}{
		{"SHOW WIRECHECK", Question{}, true},
		{" show\nwirecheck like 'lost%' ; ", Question{Like: "lost%"}, true},
		{`SHOW WIRECHECK LIKE "x"`, Question{Like: "x"}, true},
		{"SELECT wirecheck.explain('WC-a75b12')", Question{Explain: true, ID: "WC-a75b12"}, true},
		{"call WireCheck . Explain ( \"WC-a75b12\" );", Question{Explain: true, ID: "WC-a75b12"}, true},
		{"SELECT wirecheck.explain('')", Question{Explain: true}, true},
		{"SHOW WIRECHECKS", Question{}, false},
		{"SHOW WIRECHECK; DROP TABLE t", Question{}, false},
		{"SELECT wirecheck.explain($1)", Question{Explain: true, Param: true}, true},
		{"select * from wirecheck.explain( $1::text ) as result", Question{Explain: true, Param: true}, true},
		{"CALL wirecheck.explain(?)", Question{Explain: true, Param: true}, true},
		{"SELECT wirecheck.explain($2)", Question{}, false},
		{"SELECT wirecheck.explain(? )", Question{Explain: true, Param: true}, true},
		{"SELECT wirecheck.explain(?, ?)", Question{}, false},
		{"SELECT wirecheck.explain('a'), 1", Question{}, false},
		{"SELECT 'SHOW WIRECHECK'", Question{}, false},
		{"SELECT explain('WC-a75b12')", Question{}, false},
		{"SELECT my_wirecheck.explain('x')", Question{}, false},
		{`SHOW WIRECHECK LIKE 'a\'`, Question{}, false},
		{"SHOW WIRECHECK" + strings.Repeat(" ", 1000), Question{}, false},
	} {
		if q, ok := AskedOf(tt.sql); q != tt.q || ok != tt.ok {
			t.Errorf("%q: %+v, %v", tt.sql, q, ok)
		}
	}
}

// TestTable: the statements say the same whatever the texts are.
func TestTable(t *testing.T) {
	x := Table{Columns: []string{"a", "b"}, Rows: [][]string{{"it's", `\`}, {"é", ""}}}
	const h = "pg_catalog.convert_from(pg_catalog.decode('"
	if got, want := x.PostgreSQL(true, false), "SELECT pg_catalog.unnest(ARRAY["+h+"69742773', 'hex'), 'UTF8'), "+h+"3f', 'hex'), 'UTF8')]::pg_catalog.text[]) AS \"a\", "+
		"pg_catalog.unnest(ARRAY["+h+"5c', 'hex'), 'UTF8'), "+h+"', 'hex'), 'UTF8')]::pg_catalog.text[]) AS \"b\""; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := x.PostgreSQL(false, false); !strings.Contains(got, "'c3a9'") {
		t.Error(got)
	}
	if got, want := x.MySQL(true, false), "SELECT CONVERT(X'69742773' USING utf8mb4) AS `a`, CONVERT(X'5c' USING utf8mb4) AS `b` UNION ALL "+
		"SELECT CONVERT(X'c3a9' USING utf8mb4) AS `a`, CONVERT(X'' USING utf8mb4) AS `b`"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	lines := Table{Columns: []string{"a"}, Rows: [][]string{{"1"}, {"2"}}}
	if got := lines.MySQL(false, false); got != "SELECT CONVERT(X'310a32' USING utf8mb4) AS `a`" {
		t.Error(got)
	}
	if got := (&Table{Columns: []string{"a"}}).MySQL(true, false); got != "SELECT CONVERT(X'' USING utf8mb4) AS `a` LIMIT 0" {
		t.Error(got)
	}
}

package statement

import (
	"strings"
	"testing"

	"wirecheck/trace/lex"
)

func TestShape(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"SELECT n FROM stock WHERE id = 1", "select n from stock where id=?"},
		{"select  n\n\tfrom Stock where ID=$1;", "select n from stock where id=?"},
		{"SELECT n FROM stock WHERE id = 'it''s' -- why", "select n from stock where id=?"},
		{"SELECT /* app:shop */ n FROM stock WHERE id = ?", "select n from stock where id=?"},
		{"SELECT n FROM stock WHERE id IN (1, 2, 3)", "select n from stock where id in (?)"},
		{"SELECT n FROM stock WHERE id IN (?)", "select n from stock where id in (?)"},
		{"INSERT INTO t (a,b) VALUES (1,'x'),(2,'y'),(3,'z')", "insert into t (a,b) values (?)"},
		{"INSERT INTO t (a, b) VALUES ($1, $2)", "insert into t (a,b) values (?)"},
		{"SELECT -1, 1.5e-3, .5, 0xff, X'ab', E'\\'', $tag$ ' $tag$", "select-?"},
		{"UPDATE t SET v = -1 WHERE k <= -2", "update t set v=? where k<=?"},
		{`SELECT "Name" FROM "T"`, `select "Name" from "T"`},
		{"SELECT a1 FROM t2", "select a1 from t2"},
		{"SELECT count(*) FROM t WHERE a->>'k' = 'v'", "select count(*) from t where a->>?=?"},
		{"SELECT 'open", "select ?"},
		{"SELECT 1 /* open", "select ?"},
		{"", ""},
	} {
		if got := Shape(tt.sql, lex.PostgreSQL); got != tt.want {
			t.Errorf("Shape(%q) = %q, want %q", tt.sql, got, tt.want)
		}
	}
}

func FuzzShape(f *testing.F) {
	f.Add("SELECT $tag$ 'a' $tag$ IN (1, -2.5e+3) -- x")
	f.Fuzz(func(t *testing.T, sql string) {
		Shape(sql, lex.MySQL) // must not panic
	})
}

// TestShapeLiterals: statements that differ in literals only have one shape, and others have not.
func TestShapeLiterals(t *testing.T) {
	for _, tt := range []struct {
		dialect lex.Dialect
		same    []string
		other   string
	}{
		{lex.PostgreSQL, []string{"SELECT * FROM t WHERE a IN (1)", "SELECT * FROM t WHERE a IN (1, -2, NULL)", "select * from t where a in ($1, $2)"}, "SELECT * FROM t WHERE a NOT IN (1)"},
		{lex.PostgreSQL, []string{"INSERT INTO t VALUES (1, DEFAULT)", "INSERT INTO t VALUES (1, DEFAULT), (-2, DEFAULT)"}, "INSERT INTO t VALUES (DEFAULT, DEFAULT)"},
		{lex.PostgreSQL, []string{"INSERT INTO t VALUES (now(), 1), (DEFAULT, 2)", "INSERT INTO t VALUES (DEFAULT, 2), (now(), 1), (now(), 3)"}, "INSERT INTO t VALUES (now(), 1)"},
		{lex.PostgreSQL, []string{"UPDATE t SET a = NULL, b = true", "UPDATE t SET a = 5, b = false"}, "UPDATE t SET a = c, b = true"},
		{lex.PostgreSQL, []string{"SELECT a FROM t WHERE b IS NULL", "SELECT a FROM t WHERE b is null -- x"}, "SELECT a FROM t WHERE b IS NOT NULL"},
		{lex.PostgreSQL, []string{`SELECT a FROM t WHERE b = 'C:\' AND c = 'x'`, "SELECT a FROM t WHERE b = 'y' AND c = 'it''s'"}, `SELECT a FROM t WHERE b = "y" AND c = 'x'`},
		{lex.PostgreSQL, []string{"UPDATE t SET a = a - -1", "UPDATE t SET a = a - 7"}, "UPDATE t SET a = a * 7"},
		{lex.MySQL, []string{`SELECT a FROM t WHERE b = "it's"`, `SELECT a FROM t WHERE b = 'it\'s' # why`}, "SELECT a FROM t WHERE b = `its`"},
		{lex.MySQL, []string{"INSERT INTO t VALUES ROW(1, 2), ROW(3, 4)", "INSERT INTO t VALUES ROW(9, 9)"}, "INSERT INTO t VALUES (9, 9)"},
		{lex.MySQL, []string{"INSERT INTO t(a) VALUES(0x1F),(2.5e3)", "INSERT INTO t(a) VALUES(x'00')"}, "INSERT INTO t(b) VALUES(1)"},
	} {
		want := Shape(tt.same[0], tt.dialect)
		for _, sql := range tt.same[1:] {
			if got := Shape(sql, tt.dialect); got != want {
				t.Errorf("%s\n got %q\nwant %q", sql, got, want)
			}
		}
		if Shape(tt.other, tt.dialect) == want {
			t.Errorf("%s has the same shape: %q", tt.other, want)
		}
	}
	for _, hostile := range []string{strings.Repeat("(", 1<<17) + ",(),(", strings.Repeat("(1),", 1<<16) + "(1)", strings.Repeat("(f(1),", 1<<15)} {
		Shape("SELECT (1),(2) "+hostile, lex.PostgreSQL) // must not take long
	}
}

func TestMasked(t *testing.T) {
	for _, tt := range []struct {
		d         lex.Dialect
		sql, want string
		ok        bool
	}{
		{lex.PostgreSQL, `UPDATE "T" SET a = 'x', b = $1 /* user='7' */ WHERE c = -5 -- 6`, `UPDATE "T" SET a = ?, b = $1   WHERE c = -?  `, true},
		{lex.MySQL, `UPDATE t SET a = "x", b = ? WHERE c IN (1, 2)`, `UPDATE t SET a = ?, b = ? WHERE c IN (?, ?)`, true},
		{lex.MySQL, `SELECT 'a\'`, `SELECT ?`, false},
	} {
		if got, ok := Masked(tt.sql, tt.d); got != tt.want || ok != tt.ok {
			t.Errorf("%s\n got %q, %v\nwant %q, %v", tt.sql, got, ok, tt.want, tt.ok)
		}
	}
}

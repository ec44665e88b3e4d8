package statement

import "testing"

func TestShape(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{"SELECT n FROM stock WHERE id = 1", "select n from stock where id=?"},
		{"select  n\n\tfrom Stock where ID=$1;", "select n from stock where id=?"},
		{"SELECT n FROM stock WHERE id = 'it''s' -- why", "select n from stock where id=?"},
		{"SELECT /* app:shop */ n FROM stock WHERE id = ? # why", "select n from stock where id=?"},
		{"SELECT n FROM stock WHERE id IN (1, 2, 3)", "select n from stock where id in (?)"},
		{"SELECT n FROM stock WHERE id IN (?)", "select n from stock where id in (?)"},
		{"INSERT INTO t (a,b) VALUES (1,'x'),(2,'y'),(3,'z')", "insert into t (a,b) values (?)"},
		{"INSERT INTO t (a, b) VALUES ($1, $2)", "insert into t (a,b) values (?)"},
		{"SELECT -1, 1.5e-3, .5, 0xff, X'ab', E'\\'', $tag$ ' $tag$", "select-?"},
		{"UPDATE t SET v = -1 WHERE k <= -2", "update t set v=? where k<=?"},
		{`SELECT "Name", ` + "`Id`" + ` FROM "T"`, "select \"Name\",`Id` from \"T\""},
		{"SELECT a1 FROM t2", "select a1 from t2"},
		{"SELECT count(*) FROM t WHERE a->>'k' = 'v'", "select count(*) from t where a->>?=?"},
		{"SELECT 'open", "select ?"},
		{"SELECT 1 /* open", "select ?"},
		{"", ""},
	} {
		if got := Shape(tt.sql); got != tt.want {
			t.Errorf("Shape(%q) = %q, want %q", tt.sql, got, tt.want)
		}
	}
}

func FuzzShape(f *testing.F) {
	f.Add("SELECT $tag$ 'a' $tag$ IN (1, -2.5e+3) -- x")
	f.Fuzz(func(t *testing.T, sql string) {
		Shape(sql) // must not panic
	})
}

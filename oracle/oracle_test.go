package oracle

import (
	"testing"
	"wirecheck/anomaly"
)

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

func TestFingerprint(t *testing.T) {
	make := func(sql string, from int) *Finding {
		f := &Finding{Class: anomaly.GSingle, Name: anomaly.LostUpdate, Transactions: []Transaction{
			{Statements: []Statement{{N: 1, SQL: "SELECT n FROM t WHERE id=1"}, {N: 2, SQL: sql}}},
			{Statements: []Statement{{N: 1, SQL: sql}}},
		}}
		f.Edges = []Edge{{From: 0, To: 1, Kind: EdgeRW, FromStatement: 1, ToStatement: 1}, {From: 1, To: 0, Kind: EdgeWW, FromStatement: 1, ToStatement: 2}}
		for i := range f.Edges {
			f.Edges[i].Row.Table = "t"
		}
		f.Edges = append(f.Edges[from:], f.Edges[:from]...)
		return f
	}
	base := make("UPDATE t SET n=8 WHERE id=1", 0).Fingerprint()
	if got := make("update t set n = 9 where id = 77", 1).Fingerprint(); got != base {
		t.Errorf("other values and another first edge: %s, want %s", got, base)
	}
	if got := make("UPDATE t SET m=8 WHERE id=1", 0).Fingerprint(); got == base {
		t.Error("another column has the same fingerprint")
	}
	other := make("UPDATE t SET n=8 WHERE id=1", 0)
	other.Name = anomaly.ReadSkew
	if other.Fingerprint() == base {
		t.Error("another name has the same fingerprint")
	}
	if len(base) != len("WC-2f81c0") {
		t.Errorf("fingerprint %q", base)
	}
}

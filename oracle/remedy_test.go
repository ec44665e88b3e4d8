package oracle

import (
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/product"
)

// lost is a lost update of the column n, which was read and then set; empty: the values are not known.
func lost(was, now string) *Finding {
	return &Finding{Edges: []Edge{{Kind: EdgeRW, FromValues: []Value{{"n", was}}}, {Kind: EdgeWW, To: 0, From: 1, ToValues: []Value{{"n", now}}}}}
}

// found is a lost update whose second statement found the value there already (MySQL family), or only read it.
func found(verb string) *Finding {
	return &Finding{
		Transactions: []Transaction{{}, {Statements: []Statement{{N: 2, Verb: verb}}}},
		Edges:        []Edge{{Kind: EdgeRW, From: 1, FromValues: []Value{{"n", "5"}}}, {Kind: EdgeWR, To: 1, ToStatement: 2, ToValues: []Value{{"n", "4"}}}},
	}
}

// TestRemedySQL: statements as the remedies write them, and near misses that tokens alone cannot rewrite.
func TestRemedySQL(t *testing.T) {
	computes, checks, locks := lost("", "").computing, checking, locking
	for _, tt := range []struct {
		how    func(string, *product.Product) string
		engine string
		sql    string
		want   string
	}{
		{computes, "postgres", "UPDATE stock SET n = 8 WHERE id = 1", "UPDATE stock SET n = n + ? WHERE id = 1"},
		{computes, "postgres", `update public."Stock" as s set "n"=$1 where id=$2 /* route='/buy' */;`, `update public."Stock" as s set "n"="n" + ? where id=$2 /* route='/buy' */;`},
		{computes, "mariadb", "UPDATE `shop`.stock SET stock.n = -8", "UPDATE `shop`.stock SET stock.n = stock.n + ?"},
		{lost("5", "4").computing, "postgres", `UPDATE stock SET "N"=$1 WHERE id = 1`, `UPDATE stock SET "N"="N" - 1 WHERE id = 1`},
		{lost("5", "25").computing, "mariadb", "UPDATE stock s SET s.`n` = 25", "UPDATE stock s SET s.`n` = s.`n` + 20"},
		{lost("5", "5").computing, "postgres", "UPDATE stock SET n = 5", "UPDATE stock SET n = n + ?"},
		{lost("5", "4.5").computing, "postgres", "UPDATE stock SET n = 4.5", "UPDATE stock SET n = n + ?"},
		{lost("5", "4").computing, "postgres", "UPDATE stock SET m = 4", "UPDATE stock SET m = m + ?"},
		{found("update").computing, "mysql", "UPDATE stock SET n = 4", "UPDATE stock SET n = n - 1"},
		{found("select").computing, "mysql", "UPDATE stock SET n = 4", "UPDATE stock SET n = n + ?"},
		{computes, "mariadb", "UPDATE stock SET name = 'x' WHERE id = 1", ""},
		{computes, "postgres", "UPDATE stock SET n = 8, m = 3 WHERE id = 1", ""},
		{computes, "postgres", "UPDATE stock SET n = n - 1 WHERE id = 1", ""},
		{computes, "postgres", "UPDATE stock SET n = 8 FROM other WHERE id = 1", ""},
		{computes, "mariadb", "UPDATE stock, other SET n = 8 WHERE id = 1", ""},
		{computes, "postgres", "DELETE FROM stock", ""},
		{computes, "postgres", "UPDATE stock SET n = 8; UPDATE stock SET n = 9", ""},
		{computes, "postgres", "UPDATE", ""},
		{computes, "postgres", "UPDATE stock SET n =", ""},
		{computes, "postgres", "", ""},

		{checks, "mariadb", "UPDATE stock SET name = 'x' WHERE id = 1", "UPDATE stock SET name = 'x' WHERE id = 1 AND name = ?"},
		{checks, "postgres", "UPDATE stock SET n = 8", ""},
		{checks, "postgres", "UPDATE stock SET n = 8 WHERE id = 1 OR id = 2", ""},
		{checks, "mariadb", "UPDATE stock SET n = 8 WHERE id = 1 || id = 2", ""},
		{checks, "mariadb", "UPDATE stock SET n = 8 WHERE id = 1 LIMIT 1", ""},
		{checks, "postgres", "UPDATE stock SET n = 8 WHERE id = 1 RETURNING n", ""},
		{checks, "postgres", "UPDATE stock SET n = 8 WHERE CURRENT OF c", ""},

		{locks, "postgres", "SELECT n FROM stock WHERE id = 1", "SELECT n FROM stock WHERE id = 1 FOR UPDATE"},
		{locks, "postgres", "SELECT count(*) FROM duty WHERE on_call", "SELECT count(*) FROM (SELECT * FROM duty WHERE on_call FOR UPDATE) AS locked"},
		{locks, "postgres", "SELECT d.name, count(*) FROM duty d", ""},
		{locks, "mariadb", "SELECT count(*) FROM duty WHERE on_call", "SELECT count(*) FROM duty WHERE on_call FOR UPDATE"},
		{locks, "postgres", "SELECT DISTINCT n FROM stock", ""},
		{locks, "postgres", "SELECT n FROM stock GROUP BY n", ""},
		{locks, "postgres", "SELECT a.n FROM a LEFT JOIN b USING (id)", ""},
		{locks, "postgres", "SELECT n FROM stock FOR UPDATE", ""},
		{locks, "mariadb", "SELECT n FROM stock LOCK IN SHARE MODE", ""},
		{locks, "mariadb", "SELECT n FROM stock UNION SELECT 1", ""},
		{locks, "postgres", "WITH x AS (SELECT 1) SELECT * FROM x", ""},
		{locks, "postgres", "SELECT 1", ""},
		{locks, "sqlite", "SELECT n FROM stock", ""},
		{locks, "postgres", "UPDATE stock SET n = 1", ""},
	} {
		if got := tt.how(tt.sql, product.Of(tt.engine)); got != tt.want {
			t.Errorf("%s: %q\n got %q\nwant %q", tt.engine, tt.sql, got, tt.want)
		}
	}
}

// TestRemedyAtomic: an UPDATE computes numbers. It does not compute that a row is gone, nor a text.
func TestRemedyAtomic(t *testing.T) {
	for sql, want := range map[string]bool{
		"UPDATE stock SET n = 8 WHERE id = 1":                 true,
		"UPDATE stock SET price = '8.50' WHERE id = 1":        true,
		"UPDATE stock SET n = 8, state = 'sold' WHERE id=1":   true,
		"UPDATE stock SET state = 'sold' WHERE id = 1":        false,
		"DELETE FROM stock WHERE id = 1 /* UPDATE n = 1 */":   false,
		"/* gone */ DELETE FROM stock WHERE n = 8 AND id = 1": false,
		"UPDATE seat SET taken = true WHERE id = 1":           false,
		"UPDATE seat SET holder = NULL WHERE id = 1":          false,
		"": true,
	} {
		f := found("update")
		f.Transactions[1].Statements[0].SQL = sql
		if got := holds(anomaly.RemedyAtomic, product.Of("postgres"), f); got != want {
			t.Errorf("%q: %v, want %v", sql, got, want)
		}
	}
}

// TestRemedyOfChecks: where only a check may be stale, the server computes already. The near miss is a lost update of another column.
func TestRemedyOfChecks(t *testing.T) {
	for _, tt := range []struct {
		kind   Kind
		atomic bool
		check  string
	}{
		{KindUnknown, false, "check in the WHERE what you had checked before (AND n >= ?)"},
		{KindAnomaly, true, "check the old value, or a version column, in the WHERE (AND n = ?)"},
	} {
		f := found("update")
		f.Kind, f.Transactions[1].Statements[0].SQL = tt.kind, "UPDATE stock SET n = n - 2, m = 7 WHERE id = 1"
		p := product.Of("postgres")
		if atomic, check := holds(anomaly.RemedyAtomic, p, f), remedy(anomaly.RemedyCheck, p, f).Text; atomic != tt.atomic || check != tt.check {
			t.Errorf("%s: %v, %q", tt.kind, atomic, check)
		}
	}
}

// TestRemedyOverCase: UNIQUE refuses no text that differs in case alone, where case counts. An index over the text alone refuses more than a condition that
// names other columns, too.
func TestRemedyOverCase(t *testing.T) {
	for _, c := range []struct{ product, condition, want string }{
		{"postgres", "lower(email) = lower('Ann')", "(a UNIQUE index over lower(email), EXCLUDE)"},
		{"postgres", "shop = 3 and lower(email) = lower('ann')", "(UNIQUE, over lower(email) in place of email, EXCLUDE)"}, // not in two shops
		{"postgres", "lower(email) = lower('ann') and shop = 3", "(UNIQUE, over lower(email) in place of email, EXCLUDE)"},
		{"postgres", "lower(email) = lower('ann') and name = lower('x')", "(UNIQUE, over lower(email) in place of email, EXCLUDE)"},
		{"postgres", "email = 'ann'", "(UNIQUE, EXCLUDE)"},
		{"postgres", "note = 'lower(email) = '", "(UNIQUE, EXCLUDE)"},
		{"mariadb", "lower(email) = lower('Ann')", "(UNIQUE)"}, // its collations take them for equal
	} {
		f := Finding{Class: anomaly.G2, Name: anomaly.WriteSkew, Transactions: make([]Transaction, 2), Edges: []Edge{{Kind: EdgeRW, Condition: c.condition}}}
		got := remedy(anomaly.RemedyConstraint, product.Of(c.product), &f).Text
		if !strings.HasSuffix(got, " "+c.want) {
			t.Errorf("%s, %s: %q, want %q", c.product, c.condition, got, c.want)
		}
	}
}

// TestWritten: remedies are written without the comments around a statement; hints and texts stay.
func TestWritten(t *testing.T) {
	for sql, want := range map[string]string{
		"/* a */ SELECT n FROM stock LIMIT 1; -- x":                                     "SELECT n FROM stock LIMIT 1",
		"UPDATE stock SET n = 8 WHERE id = 1 /*route='/buy',request_id='r1'*/":          "UPDATE stock SET n = 8 WHERE id = 1",
		"SELECT /*+ index(stock) */ n FROM stock -- ; end":                              "SELECT /*+ index(stock) */ n FROM stock",
		"UPDATE stock SET note = '/* kept */' WHERE id = 1; UPDATE stock SET n = 8; --": "",
		"/* nothing */": "",
	} {
		f := Finding{Transactions: []Transaction{{Engine: "postgres", Statements: []Statement{{N: 2, SQL: sql}}}}}
		if got := f.written(0, 2); got != want {
			t.Errorf("%q: got %q, want %q", sql, got, want)
		}
	}
}

// TestOnlyReads: one snapshot prevents what a transaction saw that only read; not what it locked or wrote.
func TestOnlyReads(t *testing.T) {
	for _, tt := range []struct {
		first, second string
		back          EdgeKind
		want          bool
	}{
		{"SELECT 1 FROM a", "select 2 FROM b", EdgeWR, true},
		{"SELECT 1 FROM a", "SELECT 2 FROM b FOR UPDATE", EdgeWR, false},
		{"SELECT 1 FROM a LOCK IN SHARE MODE", "SELECT 2 FROM b", EdgeWR, false},
		{"UPDATE a SET n = 1", "SELECT 2 FROM b", EdgeWR, false},
		{"SELECT 1 FROM a", "UPDATE b SET n = 1", EdgeWW, false},
		{"SELECT 1 FROM a", "", EdgeWR, false},
		{"SELECT 1 FROM a", "SELECT 2 FROM b", EdgeRW, false},
		{`SELECT '\'' FROM a FOR UPDATE -- '`, "SELECT 2 FROM b", EdgeWR, false}, // MariaDB's string is one quote; PostgreSQL's would go on to the end
		{`SELECT '\'' FROM a -- ' FOR UPDATE`, "SELECT 2 FROM b", EdgeWR, true},
	} {
		f := Finding{
			Transactions: []Transaction{{Engine: "mariadb", Statements: []Statement{{N: 1, SQL: tt.first}, {N: 2, SQL: tt.second}}}, {}},
			Edges:        []Edge{{From: 0, To: 1, Kind: EdgeRW, FromStatement: 1}, {From: 1, To: 0, Kind: tt.back, ToStatement: 2}},
		}
		if got := f.OnlyReads(); got != tt.want {
			t.Errorf("%q, %q by %s: got %v", tt.first, tt.second, tt.back, got)
		}
	}
}

package txcheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

func describe(t testing.TB, product, sql string) statement.Statement {
	t.Helper()
	f := postgres.Describe
	switch product {
	case "mariadb":
		f = mysql.New(mysql.MariaDB).Describe
	case "mysql":
		f = mysql.New(mysql.MySQL).Describe
	case "tidb":
		f = mysql.New(mysql.TiDB).Describe
	}
	list, err := f(sql)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v, %d statements", sql, err, len(list))
	}
	return list[0]
}

func TestInstrument(t *testing.T) {
	tab := &table{name: "t", sql: "t", columns: []string{"a", "b"}}
	tests := []struct{ product, sql, want, why string }{
		{"postgres", "UPDATE t AS x SET a = 1 WHERE b = 2", "UPDATE t AS x SET a = 1, wc_previous = x.wc_version, wc_version = 7 WHERE b = 2 RETURNING x.wc_row_id, x.wc_previous, x.wc_version", ""},
		{"postgres", "DELETE FROM t RETURNING a", "DELETE FROM t RETURNING a, t.wc_row_id, t.wc_previous, t.wc_version", ""},
		{"postgres", "INSERT INTO t (b) VALUES (1), (2)", "INSERT INTO t (b, wc_row_id) VALUES (1, 'n7.0'), (2, 'n7.1') RETURNING t.wc_row_id, t.wc_previous, t.wc_version", ""},
		{"postgres", "INSERT INTO t VALUES (1)", `INSERT INTO t ("a", wc_row_id) VALUES (1, 'n7.0') RETURNING t.wc_row_id, t.wc_previous, t.wc_version`, ""},
		{"postgres", "INSERT INTO t SELECT a, b FROM t", "INSERT INTO t SELECT a, b FROM t RETURNING t.wc_row_id, t.wc_previous, t.wc_version", ""},
		{"postgres", "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 2", "INSERT INTO t (a, wc_row_id) VALUES (1, 'n7.0') ON CONFLICT (a) DO UPDATE SET b = 2, wc_previous = t.wc_version, wc_version = 7 RETURNING t.wc_row_id, t.wc_previous, t.wc_version", ""},
		{"postgres", "INSERT INTO t SELECT * FROM t", "", "it would show the added columns to itself"},
		{"postgres", "UPDATE t SET a = 1 WHERE (a, b) IN (SELECT * FROM t)", "", "it would show the added columns to itself"},
		{"postgres", "UPDATE t SET b = (SELECT count(*) FROM t)", "UPDATE t SET b = (SELECT count(*) FROM t), wc_previous = t.wc_version, wc_version = 7 RETURNING t.wc_row_id, t.wc_previous, t.wc_version", ""},
		{"mariadb", "UPDATE t SET a = 1 WHERE (a, b) IN (SELECT * FROM t)", "UPDATE t SET a = 1, wc_previous = wc_version, wc_version = 7 WHERE (a, b) IN (SELECT * FROM t)", ""},
		{"mariadb", "INSERT INTO t VALUES (1, 2)", "INSERT INTO t (`a`, `b`, wc_row_id) VALUES (1, 2, 'n7.0')", ""},
		{"mariadb", "INSERT INTO t SET a = 1", "INSERT INTO t SET a = 1, wc_row_id = 'n7.0'", ""},
		{"mysql", "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 2", "INSERT INTO t (a, wc_row_id) VALUES (1, 'n7.0') ON DUPLICATE KEY UPDATE b = 2, wc_previous = wc_version, wc_version = 7", ""},
		{"mysql", "DELETE FROM t WHERE a = 1", "DELETE FROM t WHERE a = 1", ""},
		{"mysql", "UPDATE t, t AS u SET t.a = 1 WHERE t.a = u.b", "", "a row may be joined with several others, of which one gives the value"},
		{"tidb", "INSERT INTO t SELECT a, b FROM t", "", "TiDB has no default that could name the rows of INSERT ... SELECT"},
		{"tidb", "INSERT INTO t VALUES (1, 2)", "INSERT INTO t (`a`, `b`, wc_row_id) VALUES (1, 2, 'n7.0')", ""},
	}
	for _, test := range tests {
		p, _ := dbmsOf(product.Of(test.product))
		st := describe(t, test.product, test.sql)
		got := instrument(&p, &st, tab, 7)
		plain := func(s string) string { return strings.ReplaceAll(s, `"`, "") }
		if plain(got.text) != plain(test.want) || got.why != test.why {
			t.Errorf("%s: %s\n got %q, %q\nwant %q, %q", test.product, test.sql, got.text, got.why, test.want, test.why)
		}
	}
}

func TestKeyColumn(t *testing.T) {
	setup := "CREATE TABLE t (a INT PRIMARY KEY, b DECIMAL(5, 2) NOT NULL UNIQUE, c VARCHAR(5), d INT, e INT, f INT, UNIQUE KEY k (c(3), d));\nCREATE UNIQUE INDEX i ON t (e)"
	for column, want := range map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true, "f": false, "INT": false} {
		if got := schedule.KeyColumn(setup, column); got != want && column != "INT" {
			t.Errorf("%s: %v", column, got)
		}
	}
	for _, test := range []struct {
		setup string
		want  bool
	}{
		{"CREATE TABLE t (a INT, c TEXT); CREATE UNIQUE INDEX i ON t ((LOWER(c)))", true},
		{"CREATE TABLE t (a INT, c TEXT); CREATE UNIQUE INDEX i ON t (lower(c))", true},
		{"CREATE TABLE t (a INT, c TEXT); CREATE INDEX i ON t (lower(c))", false},
		{"CREATE TABLE t (c INT, g INT GENERATED ALWAYS AS ((c + 1) * 2) VIRTUAL, UNIQUE (g))", true},
		{"CREATE TABLE t (c INT, g INT AS (c * 2) UNIQUE)", true},
		{"CREATE TABLE t (c INT, g INT GENERATED ALWAYS AS (c * 2) VIRTUAL, UNIQUE (a))", false},
		{"CREATE TABLE t (a INT PRIMARY KEY, c INT); INSERT INTO t (a, c) VALUES (1, 2)", false},
	} {
		if got := schedule.KeyColumn(test.setup, "c"); got != test.want {
			t.Errorf("%s: %v, want %v", test.setup, got, test.want)
		}
	}
}

func TestStrip(t *testing.T) {
	v := func(list ...string) (row []answer.Value) {
		for _, s := range list {
			row = append(row, answer.Value(s))
		}
		return row
	}
	c := func(list ...string) (columns []answer.Column) {
		for _, s := range list {
			columns = append(columns, answer.Column{Name: s})
		}
		return columns
	}
	own, added := strip(answer.Result{Columns: c("a", ColumnRow, ColumnVersion, "b", ColumnRow), Rows: [][]answer.Value{v("1", "r", "0", "2", "r")}}, 1)
	if diff := cmp.Diff(answer.Result{Columns: c("a", "b"), Rows: [][]answer.Value{v("1", "2")}}, own); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]answer.Value{v("r")}, added); diff != "" {
		t.Error(diff)
	}
	// A write that returns nothing by itself returns nothing.
	own, added = strip(answer.Result{Columns: c(ColumnRow), Rows: [][]answer.Value{v("r")}, Affected: 1}, 1)
	if own.Columns != nil || own.Rows != nil || own.Affected != 1 || len(added) != 1 {
		t.Errorf("%+v, %v", own, added)
	}
}

package schedule_test

import (
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/schedule/scheduletest"
	"wirecheck/product"
)

// TestTwice: within a transaction of TiDB, a table that gives a row twice by its primary key has a known cause. Each near miss lacks one of its signs.
func TestTwice(t *testing.T) {
	const (
		question = "SELECT c.COLUMN_NAME, c.DATA_TYPE FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = k.TABLE_SCHEMA AND c.TABLE_NAME = k.TABLE_NAME AND c.COLUMN_NAME = k.COLUMN_NAME WHERE k.CONSTRAINT_NAME = 'PRIMARY' AND k.TABLE_SCHEMA = DATABASE() AND k.TABLE_NAME = 't'"
		keys     = "SELECT `a` FROM `t`"
	)
	for _, test := range []struct {
		name, product string
		now           answer.State
		key, rows     string
		byKey         string
		want          product.CauseID
	}{
		{"twice", "tidb", answer.Open, "a,int", "1 2 1", "1 2 1", product.LockedKey},
		{"twice by the key alone", "tidb", answer.Open, "a,int", "1 2", "1 2 1", product.LockedKey},
		{"twice by a double", "tidb", answer.Open, "a,double", "1.5 2 1.5", "1.5 2", product.LockedKey},
		{"once each", "tidb", answer.Open, "a,int", "1 2 3", "1 2 3", ""},
		{"no key", "tidb", answer.Open, "", "1 2 1", "1 2 1", ""},
		{"a key that is not exact", "tidb", answer.Open, "a,float", "1 2 1", "1 2 1", ""},
		{"no transaction is open", "tidb", answer.Idle, "a,int", "1 2 1", "1 2 1", ""},
		{"another product", "mariadb", answer.Open, "a,int", "1 2 1", "1 2 1", ""},
		{"a refusal", "tidb", answer.Open, "a,int", "error 1105", "error 1176", ""},
	} {
		for _, query := range []string{"SELECT 1 FROM t WHERE b > 1", "SELECT 1 FROM (SELECT a FROM t WHERE a > 0) AS x"} {
			s := scheduletest.Single(t, test.product, query)
			f := oracle.Finding{Difference: &oracle.Difference{}}
			stage := &scheduletest.Scripted{Answers: map[string]string{question: test.key, keys: test.rows, keys + " FORCE INDEX (PRIMARY)": test.byKey}}
			if err := s.Recognise(t.Context(), stage, 0, &s.Steps[0].Statement, test.now, &f); err != nil {
				t.Fatal(err)
			}
			if f.Difference.Cause != string(test.want) || (f.Source != "") != (test.want != "") {
				t.Errorf("%s, %s: got %q (%s), want %q", test.name, query, f.Difference.Cause, f.Source, test.want)
			}
		}
	}
}

// TestJSONTruth: a JSON column whose values are neither, or both, of true and false has a known cause on TiDB. Each near miss lacks one of its signs.
func TestJSONTruth(t *testing.T) {
	const (
		question = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 't' AND DATA_TYPE = 'json'"
		counts   = "SELECT (SELECT COUNT(*) FROM `t` WHERE `j`) + (SELECT COUNT(*) FROM `t` WHERE NOT `j`) + (SELECT COUNT(*) FROM `t` WHERE `j` IS NULL) = (SELECT COUNT(*) FROM `t`)"
	)
	for _, test := range []struct {
		name, product, query, columns, same string
		want                                product.CauseID
	}{
		{"contradicted", "tidb", "SELECT 1 FROM t WHERE NOT j", "j", "0", product.JSONTruth},
		{"in a subquery", "tidb", "SELECT 1 FROM u WHERE a > (SELECT 0 FROM t WHERE j)", "j", "0", product.JSONTruth},
		{"not contradicted", "tidb", "SELECT 1 FROM t WHERE NOT j", "j", "1", ""},
		{"a column that the query does not name", "tidb", "SELECT 1 FROM t WHERE NOT a", "j", "0", ""},
		{"a column that is compared", "tidb", "SELECT 1 FROM t WHERE NOT j = 1 OR j > 2", "j", "0", ""},
		{"a column that a function is given", "tidb", "SELECT 1 FROM t WHERE JSON_LENGTH(j)", "j", "0", ""},
		{"in parentheses", "tidb", "SELECT 1 FROM t WHERE a = 1 OR (t.j) IS NULL", "j", "0", product.JSONTruth},
		{"no JSON column", "tidb", "SELECT 1 FROM t WHERE NOT j", "", "0", ""},
		{"a refusal", "tidb", "SELECT 1 FROM t WHERE NOT j", "j", "error 3141", ""},
		{"another product", "mysql", "SELECT 1 FROM t WHERE NOT j", "j", "0", ""},
	} {
		s := scheduletest.Single(t, test.product, test.query)
		f := oracle.Finding{Difference: &oracle.Difference{}}
		stage := &scheduletest.Scripted{Answers: map[string]string{question: test.columns, counts: test.same}}
		if err := s.Recognise(t.Context(), stage, 0, &s.Steps[0].Statement, answer.Idle, &f); err != nil {
			t.Fatal(err)
		}
		if f.Difference.Cause != string(test.want) {
			t.Errorf("%s: got %q, want %q", test.name, f.Difference.Cause, test.want)
		}
	}
}

// TestContradicted: a condition that is true of other numbers than those of the table has no third opinion. Each near miss lacks one of its signs.
func TestContradicted(t *testing.T) {
	const table, query = "SELECT * FROM `t`", "SELECT 1 FROM t WHERE a < -5"
	columns := []answer.Column{{Name: "a", Type: "MEDIUMINT UNSIGNED"}, {Name: "b", Type: "varchar(10)"}, {Name: "c", Type: "decimal(10,2)"}}
	for _, test := range []struct {
		name, query, rows, asked, values string
		want                             bool
	}{
		{"contradicted", query, "0,x,NULL 3,y,1", "SELECT (a < -5) FROM (SELECT 0 AS `a` UNION ALL SELECT 3 AS `a`) AS `t`", "0 0", true},
		{"of several columns", "SELECT 1 FROM t AS x WHERE x.a < c", "0,x,NULL 3,y,1.50", "SELECT (x.a < c) FROM (SELECT 0 AS `a`, NULL AS `c` UNION ALL SELECT 3 AS `a`, 1.50 AS `c`) AS `x`", "NULL 0", true},
		{"as on the table", query, "0,x,NULL 3,y,1", "SELECT (a < -5) FROM (SELECT 0 AS `a` UNION ALL SELECT 3 AS `a`) AS `t`", "1 0", false},
		{"a text", "SELECT 1 FROM t WHERE a < -5 AND b = 'x'", "0,x,NULL", "", "", false},
		{"no column", "SELECT 1 FROM t WHERE 1 < -5", "0,x,NULL", "", "", false},
		{"two tables", "SELECT 1 FROM t, u WHERE t.a < -5", "0,x,NULL", "", "", false},
		{"refused", query, "0,x,NULL", "SELECT (a < -5) FROM (SELECT 0 AS `a`) AS `t`", "error 1690", false},
		{"no rows", query, "", "", "", false},
	} {
		s := scheduletest.Single(t, "tidb", test.query)
		stage := &scheduletest.Scripted{Answers: map[string]string{table: test.rows, test.asked: test.values}, Columns: map[string][]answer.Column{table: columns}}
		got, err := s.Contradicted(t.Context(), stage, 0, &s.Steps[0].Statement, answer.Idle, 1)
		if err != nil || got != test.want {
			t.Errorf("%s: got %t, %v", test.name, got, err)
		}
		if n := len(stage.Asked); test.asked != "" && (n == 0 || stage.Asked[n-1] != test.asked) {
			t.Errorf("%s: asked %q, want %q", test.name, stage.Asked, test.asked)
		}
	}
}

// TestSetsRetry: what sets TiDB's automatic retries alone is told from other settings, and from the same on other products.
func TestSetsRetry(t *testing.T) {
	for _, test := range []struct {
		product, sql string
		want         bool
	}{
		{"tidb", "SET tidb_disable_txn_auto_retry = 0", true},
		{"tidb", "SET SESSION tidb_disable_txn_auto_retry := 'off'", true},
		{"tidb", "SET tidb_disable_txn_auto_retry = 0, autocommit = 0", false},
		{"tidb", "SET tidb_txn_mode = 'optimistic'", false},
		{"tidb", "SELECT @@tidb_disable_txn_auto_retry = 0", false},
		{"mysql", "SET tidb_disable_txn_auto_retry = 0", false},
	} {
		st := scheduletest.One(t, test.product, test.sql)
		if got := schedule.SetsRetry(product.Of(test.product), &st); got != test.want {
			t.Errorf("%s, %s: %t", test.product, test.sql, got)
		}
	}
}

package schedule_test

import (
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
)

func TestByIndex(t *testing.T) {
	for _, test := range []struct {
		setup, sql string
		want       bool
	}{
		{"CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT)", "UPDATE t SET c = 1 WHERE b = 2", false},
		{"CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b))", "UPDATE t SET c = 1 WHERE b = 2", false},
		{"CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY k (b))", "UPDATE t SET c = 1 WHERE b = 2", true},
		{"CREATE TABLE t (a INT PRIMARY KEY, b INT, INDEX (b))", "UPDATE t SET c = 1 WHERE `B` = 2", true},
		{"CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, INDEX (c))", "UPDATE t SET a = 1 WHERE b = 2", false},
		{"CREATE TABLE t (a INT, b INT UNIQUE)", "DELETE FROM t WHERE b = 2", true},
		{"CREATE TABLE t (a INT, b INT NOT NULL, UNIQUE u (b))", "DELETE FROM t WHERE b = 2", true},
		{"CREATE UNIQUE INDEX i ON t (b)", "DELETE FROM t WHERE b = 2", true},
		{"CREATE INDEX i ON t USING btree (b DESC)", "DELETE FROM t WHERE b = 2", true},
		{"ALTER TABLE t ADD PRIMARY KEY (b)", "DELETE FROM t WHERE b = 2", false},
		{"ALTER TABLE t ADD KEY (b)", "DELETE FROM t WHERE b = 2", true},
	} {
		if got := schedule.ByIndex([]string{test.setup}, &statement.Statement{Text: test.sql}); got != test.want {
			t.Errorf("%s; %s: got %v, want %v", test.setup, test.sql, got, test.want)
		}
	}
}

// TestHiddenKey: TiDB does not refuse an UPDATE to a key that is there, if a foreign key acts on updates. Each near miss lacks one of its signs.
func TestHiddenKey(t *testing.T) {
	const setup = "CREATE TABLE u (a INT, FOREIGN KEY (a) REFERENCES t (a) ON UPDATE CASCADE)"
	const duplicate = "error 1062: Duplicate entry '0' for key 't.PRIMARY'"
	for _, test := range []struct {
		name, product, setup, query, expected, difference string
		want                                              product.CauseID
	}{
		{"all signs", "tidb", setup, "UPDATE t SET a = 0", duplicate, oracle.NameError, product.KeyUnseen},
		{"another product", "mysql", setup, "UPDATE t SET a = 0", duplicate, oracle.NameError, ""},
		{"a key that acts on deletions", "tidb", strings.Replace(setup, "UPDATE", "DELETE", 1), "UPDATE t SET a = 0", duplicate, oracle.NameError, ""},
		{"an INSERT", "tidb", setup, "INSERT INTO t VALUES (0)", duplicate, oracle.NameError, ""},
		{"another error", "tidb", setup, "UPDATE t SET a = 0", "error 1451: a foreign key", oracle.NameError, ""},
		{"a result", "tidb", setup, "UPDATE t SET a = 0", duplicate, oracle.NameResult, ""},
	} {
		list, err := mysql.New(mysql.TiDB).Describe(test.query)
		if err != nil {
			t.Fatal(err)
		}
		s := &schedule.Schedule{Product: test.product, Setup: []string{test.setup}, Steps: []schedule.Step{{Statement: list[0]}}}
		f := oracle.Finding{Name: test.difference, Difference: &oracle.Difference{Expected: oracle.Side{Text: test.expected}, Observed: oracle.Side{Text: "1 row affected"}}}
		if s.Attribute(&f, 0); f.Difference.Cause != string(test.want) {
			t.Errorf("%s: got %q, want %q", test.name, f.Difference.Cause, test.want)
		}
	}
}

// TestUnlockedDuplicate: an INSERT IGNORE or REPLACE of TiDB that did not wait, or that nobody waited for, has a known cause. Each near miss lacks one of its signs.
func TestUnlockedDuplicate(t *testing.T) {
	const ignore = "INSERT IGNORE INTO t VALUES (0)"
	for _, test := range []struct {
		name, product, begin, other, sql, difference string
		want                                         product.CauseID
	}{
		{"it did not wait", "tidb", "BEGIN", "DELETE FROM t", ignore, oracle.NameBlocking, product.UnlockedDuplicate},
		{"it saw a deleted row", "tidb", "BEGIN", "DELETE FROM t", ignore, oracle.NameResult, product.UnlockedDuplicate},
		{"a REPLACE", "tidb", "BEGIN PESSIMISTIC", "DELETE FROM t", "REPLACE INTO t VALUES (0)", oracle.NameResult, product.UnlockedDuplicate},
		{"another product", "mysql", "BEGIN", "DELETE FROM t", ignore, oracle.NameResult, ""},
		{"an optimistic transaction", "tidb", "BEGIN OPTIMISTIC", "DELETE FROM t", ignore, oracle.NameResult, ""},
		{"an INSERT", "tidb", "BEGIN", "DELETE FROM t", "INSERT INTO t VALUES (0)", oracle.NameResult, ""},
		{"another table", "tidb", "BEGIN", "DELETE FROM u", ignore, oracle.NameResult, ""},
		{"an error", "tidb", "BEGIN", "DELETE FROM t", ignore, oracle.NameError, ""},
		{"nobody waited for it", "tidb", "BEGIN", ignore, "DELETE FROM t", oracle.NameBlocking, ""},
	} {
		s := &schedule.Schedule{Product: test.product, Level: product.RepeatableRead, Sessions: []schedule.Session{{Name: "s1"}, {Name: "s2"}}}
		for i, sql := range []string{test.begin, test.other, test.sql} {
			list, err := mysql.New(mysql.TiDB).Describe(sql)
			if err != nil {
				t.Fatal(err)
			}
			st := schedule.Step{Session: i % 2, Statement: list[0], Sent: 10*i + 1, Done: 10*i + 5}
			if i == 0 {
				st.Effect = answer.EffectNone
			}
			st.Before, st.After = answer.Idle, answer.Idle
			if i != 1 {
				st.After = answer.Open
			}
			if i == 2 {
				st.Before = answer.Open
			}
			s.Steps = append(s.Steps, st)
		}
		f := oracle.Finding{Name: test.difference, Difference: &oracle.Difference{}}
		if s.Attribute(&f, 2); f.Difference.Cause != string(test.want) {
			t.Errorf("%s: got %q, want %q", test.name, f.Difference.Cause, test.want)
		}
		if test.difference == oracle.NameBlocking && test.want != "" { // the other way round: it holds the row, and nobody waits
			f = oracle.Finding{Name: test.difference, Difference: &oracle.Difference{}}
			s.Steps[1].Sent, s.Steps[1].Done = 31, 35
			if s.Attribute(&f, 1); f.Difference.Cause != string(test.want) {
				t.Errorf("%s, and nobody waits for it: got %q", test.name, f.Difference.Cause)
			}
		}
	}
}

// TestAttribute: rows that a sorted read by an index of a virtual column lacks have a known cause on MariaDB. Each near miss lacks one of its signs.
func TestAttribute(t *testing.T) {
	const setup = "CREATE TABLE t (a INT, b BIGINT GENERATED ALWAYS AS (c * 2) VIRTUAL, c INT, KEY (b))"
	const query = "SELECT c FROM t WHERE b >= 1 ORDER BY a"
	one := func(v string) [][]*string { return [][]*string{{&v}} }
	for _, test := range []struct {
		name, product, setup, query, write string
		extra                              [][]*string
		want                               product.CauseID
	}{
		{"all signs", "mariadb", setup, query, "UPDATE t SET a = 0", nil, product.VirtualIndex},
		{"an index of its own", "mariadb", strings.Replace(setup, ", KEY (b)", "", 1) + ";CREATE INDEX i ON t (a, b)", query, "UPDATE t SET a = 0", nil, product.VirtualIndex},
		{"another row in the place of one", "mariadb", setup, query + " LIMIT 1", "UPDATE t SET a = 0", one("7"), product.VirtualIndex},
		{"another row, no limit", "mariadb", setup, query, "UPDATE t SET a = 0", one("7"), ""},
		{"another product", "mysql", setup, query, "UPDATE t SET a = 0", nil, ""},
		{"a stored column", "mariadb", strings.Replace(setup, "VIRTUAL", "STORED", 1), query, "UPDATE t SET a = 0", nil, ""},
		{"no index of it", "mariadb", strings.Replace(setup, "KEY (b)", "KEY (a)", 1), query, "UPDATE t SET a = 0", nil, ""},
		{"no order", "mariadb", setup, "SELECT c FROM t WHERE b >= 1", "UPDATE t SET a = 0", nil, ""},
		{"a locking read", "mariadb", setup, query + " FOR UPDATE", "UPDATE t SET a = 0", nil, ""},
		{"a sum", "mariadb", setup, "SELECT SUM(c) FROM t WHERE b >= 1 ORDER BY a", "UPDATE t SET a = 0", nil, ""},
		{"nobody has written the table", "mariadb", setup, query, "UPDATE u SET a = 0", nil, ""},
	} {
		describe := mysql.New(mysql.MariaDB).Describe
		steps := make([]schedule.Step, 2)
		for i, sql := range []string{test.write, test.query} {
			list, err := describe(sql)
			if err != nil {
				t.Fatal(err)
			}
			steps[i] = schedule.Step{Session: i, Statement: list[0], Sent: 10*i + 1, Done: 10*i + 5}
		}
		s := &schedule.Schedule{Product: test.product, Setup: strings.Split(test.setup, ";"), Steps: steps}
		f := oracle.Finding{Name: oracle.NameResult, Difference: &oracle.Difference{Expected: oracle.Side{Rows: one("30")}, Observed: oracle.Side{Rows: test.extra}}}
		if s.Attribute(&f, 1); f.Difference.Cause != string(test.want) {
			t.Errorf("%s: got %q, want %q", test.name, f.Difference.Cause, test.want)
		}
	}
}

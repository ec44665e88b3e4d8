package schedule_test

import (
	"testing"

	"wirecheck/oracle/schedule"
	"wirecheck/statement"
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

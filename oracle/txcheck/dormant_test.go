package txcheck

import (
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
)

// TestDormant: an action of a foreign key does nothing where no statement can set it off; each case has a near miss.
func TestDormant(t *testing.T) {
	const child = "CREATE TABLE u (x INT, FOREIGN KEY (x) REFERENCES t (a) "
	tests := []struct {
		name, product, setup, sql string
		sleeps                    bool
	}{
		{"nothing is deleted there", "mariadb", child + "ON DELETE CASCADE)", "DELETE FROM u", true},
		{"something is", "mariadb", child + "ON DELETE CASCADE)", "DELETE FROM t WHERE a = 1", false},
		{"in another letter case", "mariadb", child + "on delete cascade)", "delete from T where a = 1", false},
		{"of two tables", "mariadb", child + "ON DELETE CASCADE)", "DELETE u, t FROM u JOIN t ON u.x = t.a", false},
		{"it is only joined", "mariadb", child + "ON DELETE CASCADE)", "DELETE u FROM u JOIN t ON u.x = t.a", true},
		{"REPLACE deletes", "mariadb", child + "ON DELETE SET NULL)", "REPLACE INTO t VALUES (1)", false},
		{"INSERT does not", "mariadb", child + "ON DELETE SET NULL)", "INSERT INTO t VALUES (1)", true},
		{"an upsert updates", "mariadb", child + "ON UPDATE CASCADE)", "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", false},
		{"another column", "mariadb", child + "ON UPDATE CASCADE)", "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 2", true},
		{"an update does not delete", "postgres", child + "ON DELETE CASCADE)", "UPDATE t SET a = 2", true},
		{"an update of the key", "postgres", child + "ON DELETE CASCADE ON UPDATE SET NULL)", "UPDATE t SET a = 2", false},
		{"of another column", "postgres", child + "ON DELETE CASCADE ON UPDATE SET NULL)", "UPDATE t SET b = 2", true},
		{"from which the key may be computed", "postgres", "CREATE TABLE t (b INT, a INT GENERATED ALWAYS AS (b) STORED UNIQUE);\n" + child + "ON UPDATE SET NULL)", "UPDATE t SET b = 2", false},
		{"the key is not named", "postgres", "CREATE TABLE u (x INT REFERENCES t ON UPDATE CASCADE)", "UPDATE t SET b = 2", false},
		{"within a common table expression", "postgres", child + "ON DELETE CASCADE)", "WITH w AS (DELETE FROM t RETURNING *) SELECT * FROM w", false},
		{"MERGE", "postgres", child + "ON DELETE CASCADE)", "MERGE INTO t USING u ON t.a = u.x WHEN MATCHED THEN DELETE", false},
		{"through a view", "postgres", child + "ON DELETE CASCADE);\nCREATE VIEW v AS SELECT * FROM t", "DELETE FROM v", false},
		{"TRUNCATE", "postgres", child + "ON DELETE CASCADE)", "TRUNCATE t", false},
		{"a key to a third table", "postgres", child + "ON DELETE CASCADE, y INT REFERENCES s (k) ON DELETE CASCADE)", "DELETE FROM s", false},
		{"RESTRICT is no action", "postgres", child + "ON DELETE RESTRICT ON UPDATE NO ACTION)", "DELETE FROM t", true},
	}
	tables := []table{{name: "t"}, {name: "u"}, {name: "s"}}
	for _, test := range tests {
		steps := []schedule.Step{{Statement: describe(t, test.product, "SELECT 1")}, {Statement: describe(t, test.product, test.sql), Answer: answer.Result{Affected: 1}}}
		if found := acting.FindString(dormant(test.setup, tables, steps)); (found == "") != test.sleeps {
			t.Errorf("%s: %s; %s: found %q, want that it sleeps: %v", test.name, test.setup, test.sql, found, test.sleeps)
		}
	}
	const setup, through = child + "ON DELETE CASCADE)", "WITH w AS (DELETE FROM t RETURNING *) SELECT * FROM w"
	for _, test := range []struct {
		name, sql string
		answer    answer.Result
		sleeps    bool
	}{
		{"it met no row", "DELETE FROM t WHERE a = 1", answer.Result{}, true},
		{"it was refused", "DELETE FROM t", answer.Result{Err: &answer.Error{Code: "23503"}}, true},
		{"near miss: it met one", "DELETE FROM t WHERE a = 1", answer.Result{Affected: 1}, false},
		{"near miss: how many rows it met is not what is counted", through, answer.Result{}, false},
		{"near miss: REPLACE", "REPLACE INTO t VALUES (1)", answer.Result{}, false},
	} {
		product := "postgres"
		if strings.HasPrefix(test.sql, "REPLACE") {
			product = "mariadb"
		}
		steps := []schedule.Step{{Statement: describe(t, product, test.sql), Answer: test.answer}}
		if found := acting.FindString(dormant(setup, tables, steps)); (found == "") != test.sleeps {
			t.Errorf("%s: found %q", test.name, found)
		}
	}
}

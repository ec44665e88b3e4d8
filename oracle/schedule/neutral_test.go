package schedule_test

import (
	"testing"

	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// TestUpkeep: what changes neither rows nor columns nor constraints, and near misses.
func TestUpkeep(t *testing.T) {
	setup := []string{"CREATE TABLE t (a INT, b INT, c INT DEFAULT 3, d INT NOT NULL, UNIQUE u (b))", "CREATE INDEX i ON t (a)", "CREATE UNIQUE INDEX j ON t (a)"}
	for sql, want := range map[string]bool{
		"CREATE INDEX k ON t (a)": true, "CREATE UNIQUE INDEX k ON t (a)": false,
		"DROP INDEX i": true, "DROP INDEX i ON t": true, "DROP INDEX j": false, "DROP INDEX u ON t": false, "DROP INDEX x": false,
		"ALTER TABLE t RENAME INDEX i TO i_r": true, "ALTER INDEX i RENAME TO i_r": true, "ALTER TABLE t RENAME TO x": false,
		"RENAME TABLE t TO t_x, t_x TO t": true, "RENAME TABLE t TO t_x, u TO t": false, "RENAME TABLE t TO x": false,
		"ALTER TABLE t FORCE": true, "ALTER TABLE t FORCE, DROP COLUMN b": false, "ALTER TABLE t REBUILD PARTITION ALL": true, "ALTER TABLE t DROP PARTITION p": false,
		"ALTER TABLE t ADD PARTITION PARTITIONS 1": true, "ALTER TABLE t COALESCE PARTITION 1": true, "ALTER TABLE t REMOVE PARTITIONING": true, "ALTER TABLE t TRUNCATE PARTITION p": false,
		"OPTIMIZE TABLE t": true, "REINDEX TABLE t": true, "VACUUM FULL t": true, "ANALYZE TABLE t": true, "ANALYZE t": true,
		"ALTER TABLE t ALTER COLUMN b SET DEFAULT NULL": true, "ALTER TABLE t ALTER COLUMN c SET DEFAULT NULL": false, "ALTER TABLE t ALTER COLUMN b SET DEFAULT 2": false,
		"ALTER TABLE t ALTER COLUMN d SET DEFAULT NULL": false,
		"FLUSH TABLES t": true, "FLUSH TABLES t WITH READ LOCK": false, "FLUSH TABLES": false,
		"ALTER TABLE t ADD COLUMN c INT": false, "ALTER TABLE t MODIFY COLUMN a BIGINT": false, "TRUNCATE TABLE t": false, "UPDATE t SET a = 1": false,
	} {
		if got := schedule.Upkeep(setup, &statement.Statement{Text: sql}); got != want {
			t.Errorf("%s: got %v, want %v", sql, got, want)
		}
	}
	listed := append(setup, "CREATE TABLE u (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1))")
	if schedule.Upkeep(listed, &statement.Statement{Text: "ALTER TABLE u REMOVE PARTITIONING"}) {
		t.Error("a table that takes more values without its partitions is another one")
	}
}

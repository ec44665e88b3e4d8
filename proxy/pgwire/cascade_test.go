package pgwire_test

import "testing"

// TestCascades deletes rows to which foreign keys refer: what these delete is seen if nothing else was committed meanwhile.
func TestCascades(t *testing.T) {
	// Another transaction changes a row after the statement's snapshot, and before the foreign key looks for rows.
	waits := func(change, sql string) []string {
		return []string{"2Q SELECT pg_advisory_lock(7)", "q " + sql + " AND pg_advisory_xact_lock(7)::text = ''",
			"2Q DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted) LOOP PERFORM pg_sleep(0.001); END LOOP; END $$",
			"2Q " + change, "2Q SELECT pg_advisory_unlock(7)", "W Z 1"}
	}
	playBeside(t, []string{
		"CREATE TABLE shop (k int PRIMARY KEY, name text UNIQUE)",
		"CREATE TABLE sale (k int PRIMARY KEY, shop int REFERENCES shop ON DELETE CASCADE, v int)", "CREATE INDEX ON sale (shop)",
		"CREATE TABLE line (k int PRIMARY KEY, sale int REFERENCES sale ON DELETE CASCADE)",
		"CREATE TABLE visit (k int PRIMARY KEY, shop int REFERENCES shop ON DELETE SET NULL)",
		"CREATE TABLE tag (k int PRIMARY KEY, name text)", "CREATE TABLE tagged (k int PRIMARY KEY, tag int REFERENCES tag ON DELETE CASCADE, also int REFERENCES tag ON DELETE CASCADE)",
		"CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
	}, "TRUNCATE shop CASCADE; TRUNCATE tag CASCADE; INSERT INTO shop VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'); INSERT INTO sale VALUES (10, 1, 0), (11, 1, 0), (20, 2, 0); "+
		"INSERT INTO line VALUES (100, 10), (101, 11), (102, 11), (200, 20); INSERT INTO visit VALUES (30, 3); INSERT INTO tag VALUES (1, 'x')", []fetched{
		{"rows", []string{"Q DELETE FROM shop WHERE k = 1"}, "1 exact 1; 1 exact 10 11 100 101 102"},
		{"several", []string{"Q DELETE FROM shop WHERE k < 3 RETURNING name"}, "1 exact 1 2; 1 exact 10 11 100 101 102 20 200"},
		{"none", []string{"Q DELETE FROM shop WHERE k = 4", "Q DELETE FROM shop WHERE k = 9"}, "1 exact 4; 1 exact; 1 exact"},
		{"by the protocol", []string{"P |DELETE FROM shop WHERE k = $1", "D S", "B  ||2", "E  0", "S", "Q SELECT 1"}, "1 exact 2; 1 exact 20 200"},
		{"rows that are changed", []string{"Q DELETE FROM shop WHERE k = 3"}, "1 approximate 3"},
		{"a table that refers twice", []string{"Q DELETE FROM tag WHERE k = 1"}, "1 approximate 1"},
		{"another level", []string{"Q SET default_transaction_isolation = 'repeatable read'", "Q DELETE FROM shop WHERE k = 1"}, "1 approximate 1"},
		{"refused", []string{"Q DELETE FROM shop WHERE k = 1 AND 1 / (k - 1) = 1", "Q DELETE FROM shop WHERE k = 2"}, "2 error; 1 exact 2; 1 exact 20 200"},
		{"in a transaction", []string{"Q BEGIN", "Q DELETE FROM shop WHERE k = 1", "Q SELECT k FROM sale", "Q COMMIT"}, "1 exact 1; 1 exact 10 11 100 101 102; 2 exact 20"},
		{"in a transaction, by the protocol", []string{"Q BEGIN", "P |DELETE FROM shop WHERE k = $1 RETURNING *", "D S", "B  ||1", "E  0", "S", "Q COMMIT"}, "1 exact 1; 1 exact 10 11 100 101 102"},
		{"in a transaction, by a name", []string{"Q BEGIN", "P a|DELETE FROM shop WHERE k = $1", "B  a||1", "E  0", "B  a||9", "E  0", "S", "Q COMMIT"}, "1 approximate 1; 2 exact"},
		{"in a transaction, at once", []string{"q BEGIN", "q DELETE FROM shop WHERE k = 1", "q COMMIT", "W Z 3"}, "1 approximate 1"},
		{"in a transaction of another level", []string{"Q BEGIN ISOLATION LEVEL SERIALIZABLE", "Q DELETE FROM shop WHERE k = 1", "Q COMMIT"}, "1 approximate 1"},
		{"in a transaction, changed meanwhile", []string{"Q BEGIN", "Q DELETE FROM shop WHERE k = 1", "2Q UPDATE sale SET v = v + 1 WHERE k = 20", "Q COMMIT"}, "1 exact 1; 1 exact 20; 1 approximate"},
		{"undone", []string{"Q BEGIN", "Q SAVEPOINT a", "Q DELETE FROM shop WHERE k = 1", "Q ROLLBACK TO a", "Q SELECT k FROM sale ORDER BY k", "Q COMMIT"}, "2 exact 1; 2 exact 10 11 100 101 102; 4 exact 10 11 20"},
		{"failed behind it", []string{"Q BEGIN", "Q DELETE FROM shop WHERE k = 1", "Q SELECT 1 / 0", "Q ROLLBACK"}, "1 exact 1; 1 exact 10 11 100 101 102; 2 error"},
		{"a row changed meanwhile", waits("UPDATE sale SET v = v + 1 WHERE k = 20", "DELETE FROM shop WHERE k = 2"), "1 opaque; 1 exact 20; 1 exact 2; 1 approximate"},
		{"a row deleted meanwhile", waits("DELETE FROM sale WHERE k = 20", "DELETE FROM shop WHERE k = 2"), "1 opaque; 1 exact 20; 1 exact 200; 1 exact 2; 1 approximate"},
		{"a row of another shop meanwhile", waits("INSERT INTO line VALUES (300, 20)", "DELETE FROM shop WHERE k = 2"), "1 opaque; 1 exact 300; 1 exact 2; 1 approximate"},
		{"only read meanwhile", waits("SELECT * FROM sale", "DELETE FROM shop WHERE k = 2"), "1 opaque; 1 exact 10 11 20; 1 exact 2; 1 exact 20 200"},
		// Another client changes what foreign keys do.
		{"a trigger past the proxy", []string{"Q DELETE FROM shop WHERE k = 1", "Q SELECT 1", "0Q CREATE TRIGGER keep BEFORE DELETE ON sale FOR EACH ROW EXECUTE FUNCTION nothing()", "Q DELETE FROM shop WHERE k = 2", "0Q DROP TRIGGER keep ON sale"},
			"1 exact 1; 1 exact 10 11 100 101 102; 1 approximate 2"},
		{"dropped past the proxy", []string{"0Q ALTER TABLE sale DROP CONSTRAINT sale_shop_fkey", "Q BEGIN", "Q DELETE FROM shop WHERE k = 2", "Q COMMIT", "Q DELETE FROM shop WHERE k = 1",
			"0Q TRUNCATE sale CASCADE; ALTER TABLE sale ADD FOREIGN KEY (shop) REFERENCES shop ON DELETE CASCADE"},
			"1 approximate 2; 1 approximate 1 or 1 approximate 2; 1 exact 1; 1 exact"}, // whether the catalog was read again by then
	})
}

package wss_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/wss"
	"wirecheck/product"
)

const (
	ru  = product.ReadUncommitted
	rc  = product.ReadCommitted
	rr  = product.RepeatableRead
	ser = product.Serializable
	si  = product.Snapshot
)

const (
	twoRows = "CREATE TABLE t (a INT, b INT)\nINSERT INTO t VALUES (1, 0), (5, 0)"
	keyed   = "CREATE TABLE t (k INT PRIMARY KEY, a INT)\nINSERT INTO t VALUES (1, 1), (2, 2)"
)

// listing5 is WriteCheck's listing 5: T2 decides on a row that T1 has changed.
const listing5 = `
T1: BEGIN
T1: UPDATE t SET a = 5, b = 1 WHERE a = 1
T2: BEGIN
T2: UPDATE t SET a = 1, b = 2 WHERE a = 5
T1: COMMIT
T2: COMMIT`

// listing6 is WriteCheck's listing 6: T2 inserts into the range of T1's DELETE.
const listing6 = `
T1: BEGIN
T1: DELETE FROM t WHERE a < 10
T2: BEGIN
T2: INSERT INTO t VALUES (5, 7)
T2: COMMIT
T1: UPDATE t SET a = a + 1
T1: COMMIT`

// torn is MySQL#104833: T2 passes T1's first row by, waits for the second, and decides by what T1 left.
const torn = `
T1: BEGIN
T1: UPDATE t SET a = 10
T2: BEGIN
T2> UPDATE t SET b = 20 WHERE a
T1: COMMIT
T2<
T2: COMMIT`

const tornRows = "CREATE TABLE t (a INT, b INT)\nINSERT INTO t VALUES (NULL, 1), (2, 2), (NULL, 3)"

// moved is MDEV-27992: a row's key is changed behind a DELETE that waits for it.
const moved = `
T1: BEGIN
T2: BEGIN
T1: UPDATE t SET k = 5
T2> DELETE FROM t
T1: UPDATE t SET k = 3
T1: COMMIT
T2<
T2: COMMIT`

// older is a write of a snapshot's transaction that commits after the one it does not see.
const older = `
T1: BEGIN
T1: SELECT * FROM t
T2: BEGIN
T2: INSERT INTO t VALUES (7, 7)
T2: COMMIT
T1: UPDATE t SET b = 9
T1: COMMIT`

// TestRules has each rule, and near misses: what differs from what the rule gives, the rule at a level or product that does not have
// it.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		name, product, level, setup, script, final, want string
	}{
		{"equal", "postgres", rc, twoRows, "T1: BEGIN\nT2: BEGIN\nT1: UPDATE t SET b = 1 WHERE a = 1\nT2: UPDATE t SET b = 2 WHERE a = 5\nT2: COMMIT\nT1: COMMIT", "1|1, 5|2", ""},
		{"rolled back", "mariadb", rc, twoRows, "T1: BEGIN\nT1: UPDATE t SET b = 1\nT1: ROLLBACK", "1|0, 5|0", ""},
		{"rolled back and applied", "mariadb", rc, twoRows, "T1: BEGIN\nT1: UPDATE t SET b = 1\nT1: ROLLBACK", "1|1, 5|1", "violation"},
		{"a failed COMMIT is an abort", "postgres", ser, twoRows, "T1: BEGIN\nT1: UPDATE t SET b = 1\nT1: COMMIT !40001 serialization failure, rolled back", "1|0, 5|0", ""},
		{"open at the end is an abort", "postgres", rc, twoRows, "T1: BEGIN\nT1: UPDATE t SET b = 1", "1|0, 5|0", ""},
		{"autocommit between explicit ones", "mariadb", rr, twoRows, "T1: BEGIN\nT2: BEGIN\nT1: UPDATE t SET b = 1 WHERE a = 1\nT3: UPDATE t SET b = 3 WHERE a = 5\nT1: COMMIT\nT2: UPDATE t SET b = b + 1 WHERE a = 5\nT2: COMMIT", "1|1, 5|4", ""},

		{"semi-consistent", "mysql", rc, twoRows, listing5, "5|1, 1|2", "permitted semi-consistent read"},
		{"semi-consistent, MariaDB", "mariadb", ru, twoRows, listing5, "5|1, 1|2", "permitted semi-consistent read"},
		{"semi-consistent, TiDB", "tidb", rr, twoRows, listing5, "5|1, 1|2", "permitted semi-consistent read"},
		{"semi-consistent at REPEATABLE READ", "mysql", rr, twoRows, listing5, "5|1, 1|2", "violation"},
		{"semi-consistent, and a lost write", "mysql", rc, twoRows, listing5, "1|0, 1|2", "violation"},
		{"semi-consistent, but a DELETE", "mysql", rc, twoRows, strings.ReplaceAll(listing5, "UPDATE t SET a = 1, b = 2", "DELETE FROM t"), "5|1", "violation"},
		{"semi-consistent, but it matches", "mysql", rc, twoRows, strings.ReplaceAll(listing5, "WHERE a = 5", "WHERE a = 1"), "1|2, 5|0", "violation"},
		{"running insert", "mysql", rc, twoRows, "T1: BEGIN\nT1: INSERT INTO t VALUES (7, 7)\nT2: BEGIN\nT2: UPDATE t SET b = 3 WHERE a > 5\nT1: COMMIT\nT2: COMMIT", "1|0, 5|0, 7|7", "permitted " + string(product.PassedInsert)},
		{"running insert, MariaDB", "mariadb", rc, twoRows, "T1: BEGIN\nT1: INSERT INTO t VALUES (7, 7)\nT2: BEGIN\nT2: UPDATE t SET b = 3 WHERE a > 5\nT1: COMMIT\nT2: COMMIT", "1|0, 5|0, 7|7", "violation " + string(product.PassedInsert)},
		{"running insert, PostgreSQL", "postgres", rc, twoRows, "T1: BEGIN\nT1: INSERT INTO t VALUES (7, 7)\nT2: BEGIN\nT2: UPDATE t SET b = 3 WHERE a > 5\nT1: COMMIT\nT2: COMMIT", "1|0, 5|0, 7|7", "permitted statement snapshot"},
		{"committed insert", "postgres", rc, twoRows, "T1: BEGIN\nT1: INSERT INTO t VALUES (7, 7)\nT1: COMMIT\nT2: BEGIN\nT2: UPDATE t SET b = 3 WHERE a > 5\nT2: COMMIT", "1|0, 5|0, 7|7", "violation"},

		{"torn", "mysql", rc, tornRows, torn, "10|1, 10|20, 10|20", "violation " + string(product.TornUpdate)},
		{"torn, MariaDB", "mariadb", ru, tornRows, torn, "10|1, 10|20, 10|20", "violation " + string(product.TornUpdate)},
		{"not torn", "mysql", rc, tornRows, torn, "10|20, 10|20, 10|20", ""},
		{"PostgreSQL looks at its snapshot's rows", "postgres", rc, tornRows, torn, "10|1, 10|20, 10|3", "permitted EvalPlanQual"},
		{"PostgreSQL torn", "postgres", rc, tornRows, torn, "10|1, 10|20, 10|20", "violation"},
		{"PostgreSQL looks again", "postgres", rc, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 9 WHERE k = 1\nT2: BEGIN\nT2> DELETE FROM t WHERE a = 1\nT1: COMMIT\nT2<\nT2: COMMIT", "1|9, 2|2", ""},
		{"PostgreSQL did not look again", "postgres", rc, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 9 WHERE k = 1\nT2: BEGIN\nT2> DELETE FROM t WHERE a = 1\nT1: COMMIT\nT2<\nT2: COMMIT", "2|2", "violation"},

		{"no gap locks", "mysql", rc, twoRows, listing6, "6|7", "permitted missing gap locks"},
		{"an optimistic transaction's lock is none", "tidb", rc, "CREATE TABLE t (a INT)\nINSERT INTO t VALUES (0)",
			"T3: BEGIN OPTIMISTIC\nT3: UPDATE t SET a = 5\nT2: BEGIN\nT2: INSERT INTO t VALUES (7)\nT1: BEGIN\nT1: UPDATE t SET a = 1\nT2: COMMIT\nT1: COMMIT\nT3: ROLLBACK", "1, 7", "permitted semi-consistent read"},
		{"a pessimistic transaction's lock is one", "tidb", rc, "CREATE TABLE t (a INT)\nINSERT INTO t VALUES (0)",
			"T3: BEGIN\nT3: UPDATE t SET a = 5\nT2: BEGIN\nT2: INSERT INTO t VALUES (7)\nT1: BEGIN\nT1: UPDATE t SET a = 1\nT2: COMMIT\nT1: COMMIT\nT3: ROLLBACK", "1, 7", "violation"},
		{"a lock on a row that is not changed, TiDB", "tidb", rr, twoRows, "T2: BEGIN\nT2: INSERT INTO t VALUES (16, 0)\nT2: UPDATE t SET b = 0 WHERE a = 1\nT1> DELETE FROM t\nT2: COMMIT\nT1<", "16|0", "permitted semi-consistent read"},
		{"a lock on a row that is changed, TiDB", "tidb", rr, twoRows, "T2: BEGIN\nT2: INSERT INTO t VALUES (16, 0)\nT2: UPDATE t SET b = 3 WHERE a = 1\nT1> DELETE FROM t\nT2: COMMIT\nT1<", "16|0", "violation"},
		{"no gap locks, TiDB", "tidb", rr, twoRows, listing6, "6|7", "permitted missing gap locks"},
		{"no gap locks, PostgreSQL", "postgres", rc, twoRows, listing6, "6|7", "permitted missing gap locks"},
		{"no gap locks at REPEATABLE READ", "mysql", rr, twoRows, listing6, "6|7", "violation"},
		{"no gap locks, and the update is lost", "mysql", rc, twoRows, listing6, "5|7", "violation"},
		{"not locked by a running writer", "postgres", rc, twoRows, "T1: BEGIN\nT1: UPDATE t SET b = 1\nT2: BEGIN\nT2: UPDATE t SET b = 2\nT1: COMMIT\nT2: COMMIT", "1|1, 5|1", "violation"},

		{"one of two inserted rows", "mysql", rc, keyed, "T1: BEGIN\nT1: INSERT INTO t VALUES (3, 0)\nT2> DELETE FROM t\nT1: INSERT INTO t VALUES (0, 0)\nT1: COMMIT\nT2<", "0|0", "violation " + string(product.TornInsert)},
		{"one of two inserted rows at REPEATABLE READ", "mysql", rr, keyed, "T1: BEGIN\nT1: INSERT INTO t VALUES (3, 0)\nT2> DELETE FROM t\nT1: INSERT INTO t VALUES (0, 0)\nT1: COMMIT\nT2<", "0|0", "violation"},
		{"an inserted row behind a changed one", "mysql", rc, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 7 WHERE k = 2\nT2> DELETE FROM t\nT1: INSERT INTO t VALUES (0, 0)\nT1: COMMIT\nT2<", "0|0", "permitted missing gap locks"},
		{"one of two inserted rows, and its key had been there", "mariadb", rc, keyed, "T3: DELETE FROM t WHERE k = 1\nT1: BEGIN\nT1: INSERT INTO t VALUES (3, 0)\nT2> DELETE FROM t\nT1: INSERT INTO t VALUES (1, 0)\nT1: COMMIT\nT2<", "1|0", "permitted missing gap locks"},
		{"neither version of a held row matches", "mysql", rc, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 8\nT2> UPDATE t SET a = 9 WHERE k = 2 OR a = 5\nT1: UPDATE t SET a = 5 WHERE k = 1\nT1: COMMIT\nT2<", "1|5, 2|9", "violation " + string(product.TornUpdate)},
		{"neither version of a held row matches, by an index", "mysql", rc, keyed + "\nCREATE INDEX i ON t (a)", "T1: BEGIN\nT1: UPDATE t SET a = 8\nT2> UPDATE t SET a = 9 WHERE k = 2 OR a = 5\nT1: UPDATE t SET a = 5 WHERE k = 1\nT1: COMMIT\nT2<", "1|5, 2|9", "permitted missing gap locks"},
		{"a released row that nobody holds", "mysql", rc, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 8 WHERE k = 2\nT2> UPDATE t SET a = 9 WHERE k = 2 OR a = 5\nT1: UPDATE t SET a = 5 WHERE k = 1\nT1: COMMIT\nT2<", "1|5, 2|9", "permitted missing gap locks"},

		{"moved, MySQL", "mysql", rc, "CREATE TABLE t (k INT PRIMARY KEY)\nINSERT INTO t VALUES (8)", moved, "3", "permitted " + string(product.MovedRow)},
		{"moved, MariaDB", "mariadb", rc, "CREATE TABLE t (k INT PRIMARY KEY)\nINSERT INTO t VALUES (8)", moved, "3", "violation " + string(product.MovedRow)},
		{"moved at REPEATABLE READ", "mysql", rr, "CREATE TABLE t (k INT PRIMARY KEY)\nINSERT INTO t VALUES (8)", moved, "3", "violation"},
		{"not moved", "mysql", rc, keyed, "T1: BEGIN\nT2: BEGIN\nT1: UPDATE t SET a = 5\nT2> DELETE FROM t\nT1: UPDATE t SET a = 3\nT1: COMMIT\nT2<\nT2: COMMIT", "1|3, 2|3", "violation"},

		{"a routine", "mysql", rc, twoRows, "T1: BEGIN\nT1: CALL p()\nT1: COMMIT", "1|9, 5|9", "unknown"},
		{"an anonymous block", "postgres", rc, twoRows, "T1: DO $$BEGIN PERFORM 1; END$$", "1|9, 5|9", "unknown"},
		{"a default that is another one each time", "postgres", rc, "CREATE TABLE t (a INT, b TIMESTAMP DEFAULT now())", "T1: INSERT INTO t (a) VALUES (1)", "1|9", "unknown"},

		{"older snapshot", "postgres", rr, twoRows, older, "1|9, 5|9, 7|7", "permitted older snapshot commits last"},
		{"older snapshot, SERIALIZABLE", "postgres", ser, twoRows, older, "1|9, 5|9, 7|7", "permitted older snapshot commits last"},
		{"the same at READ COMMITTED", "postgres", rc, twoRows, older, "1|9, 5|9, 7|7", "violation"},
		{"older snapshot overwrites", "postgres", rr, keyed, "T1: BEGIN\nT1: SELECT * FROM t\nT2: BEGIN\nT2: UPDATE t SET a = 5 WHERE k = 1\nT2: COMMIT\nT1: UPDATE t SET a = a + 1\nT1: COMMIT", "1|2, 2|3", "violation"},
		{"snapshot at BEGIN", "tidb", si, twoRows, "T1: BEGIN\nT2: BEGIN\nT1: INSERT INTO t VALUES (7, 7)\nT1: COMMIT\nT2: DELETE FROM t\nT2: COMMIT", "7|7", "violation " + string(product.EarlySnapshot)},
		{"optimistic, committed later", "tidb", si, twoRows, "T1: BEGIN\nT2: BEGIN\nT1: INSERT INTO t VALUES (7, 7)\nT2: DELETE FROM t\nT1: COMMIT\nT2: COMMIT", "7|7", "permitted older snapshot commits last"},
		{"optimistic, and nothing written after a refused key", "tidb", si, "CREATE TABLE t (a INT PRIMARY KEY, b INT)\nINSERT INTO t VALUES (1, 2), (0, 2)",
			"T2: BEGIN\nT2: INSERT INTO t VALUES (1, 9) !1062 error\nT1: DELETE FROM t\nT2: UPDATE t SET b = 2\nT2: COMMIT", "", "permitted older snapshot commits last"},
		{"optimistic, and rows written that another transaction has deleted", "tidb", si, "CREATE TABLE t (a INT PRIMARY KEY, b INT)\nINSERT INTO t VALUES (1, 2), (0, 2)",
			"T2: BEGIN\nT2: UPDATE t SET b = 2\nT1: DELETE FROM t\nT2: UPDATE t SET b = 3\nT2: COMMIT", "0|3, 1|3", "violation"},
		{"optimistic, a write conflict", "tidb", si, twoRows, "T1: BEGIN\nT2: BEGIN\nT1: UPDATE t SET b = 3\nT2: DELETE FROM t WHERE a = 1\nT1: COMMIT\nT2: COMMIT", "1|3, 5|3", "violation"},
		{"a no-op REPLACE locks", "tidb", rr, "CREATE TABLE t (k INT PRIMARY KEY)\nINSERT INTO t VALUES (1)",
			"T1: BEGIN\nT2: BEGIN\nT2: INSERT INTO t VALUES (2)\nT2: REPLACE INTO t VALUES (1)\nT1: DELETE FROM t WHERE k < 5\nT2: COMMIT\nT1: COMMIT", "2", "violation INSERT IGNORE and REPLACE do not lock what they leave as it is"},
		{"a no-op REPLACE in another table", "tidb", rr, "CREATE TABLE t (k INT PRIMARY KEY)\nINSERT INTO t VALUES (1)\nCREATE TABLE u (k INT PRIMARY KEY)\nINSERT INTO u VALUES (1)",
			"T1: BEGIN\nT2: BEGIN\nT2: REPLACE INTO u VALUES (1)\nT1: DELETE FROM t WHERE k < 5\nT2: COMMIT\nT1: COMMIT", "1; 1", "violation"},

		{"nonlocking read", "mysql", rc, twoRows + "\nCREATE TABLE u (x INT, y INT)", "T1: BEGIN\nT1: UPDATE t SET b = 3\nT2: BEGIN\nT2: INSERT INTO u SELECT a, b FROM t\nT1: COMMIT\nT2: COMMIT", "1|3, 5|3; 1|0, 5|0", "permitted nonlocking read in a write"},
		{"nonlocking read at REPEATABLE READ", "mysql", rr, twoRows + "\nCREATE TABLE u (x INT, y INT)", "T1: BEGIN\nT1: UPDATE t SET b = 3\nT2: BEGIN\nT2: INSERT INTO u SELECT a, b FROM t\nT1: COMMIT\nT2: COMMIT", "1|3, 5|3; 1|0, 5|0", "violation"},
		{"dirty read in a write", "mysql", ru, twoRows + "\nCREATE TABLE u (x INT, y INT)", "T1: BEGIN\nT1: UPDATE t SET b = 3\nT2: BEGIN\nT2: INSERT INTO u SELECT a, b FROM t\nT2: COMMIT\nT1: UPDATE t SET b = 4\nT1: COMMIT", "1|4, 5|4; 1|3, 5|3", "permitted nonlocking read in a write"},
		{"dirty read in a write at READ COMMITTED", "mysql", rc, twoRows + "\nCREATE TABLE u (x INT, y INT)", "T1: BEGIN\nT1: UPDATE t SET b = 3\nT2: BEGIN\nT2: INSERT INTO u SELECT a, b FROM t\nT2: COMMIT\nT1: UPDATE t SET b = 4\nT1: COMMIT", "1|4, 5|4; 1|3, 5|3", "violation"},
		{"a write that waits is seen half done", "mariadb", ru, twoRows, "T2: BEGIN\nT2: INSERT INTO t VALUES (16, 0)\nT1> DELETE FROM t WHERE a = 1\nT2: INSERT INTO t SELECT a + 10, b FROM t\nT2: COMMIT\nT1<", "5|0, 16|0, 15|0, 26|0", "unknown"},
		{"no write is seen half done at READ COMMITTED", "mariadb", rc, twoRows, "T2: BEGIN\nT2: INSERT INTO t VALUES (16, 0)\nT1> DELETE FROM t WHERE a = 1\nT2: INSERT INTO t SELECT a + 10, b FROM t\nT2: COMMIT\nT1<", "5|0, 16|0, 15|0, 26|0", "violation"},
		{"a write that was over before", "mariadb", ru, twoRows, "T1: DELETE FROM t WHERE a = 1\nT2: INSERT INTO t SELECT a + 10, b FROM t", "5|0, 15|0, 11|0", "violation"},
		{"embedded SELECT from the snapshot", "tidb", rr, keyed + "\nCREATE TABLE u (x INT)\nINSERT INTO u VALUES (2)", "T1: BEGIN\nT2: BEGIN\nT1: UPDATE u SET x = 9\nT1: COMMIT\nT2: UPDATE t SET a = 7 WHERE k < (SELECT MAX(x) FROM u)\nT2: COMMIT", "1|7, 2|2; 9", "permitted nonlocking read in a write"},
		{"embedded SELECT at READ COMMITTED", "tidb", rc, keyed + "\nCREATE TABLE u (x INT)\nINSERT INTO u VALUES (2)", "T1: BEGIN\nT2: BEGIN\nT1: UPDATE u SET x = 9\nT1: COMMIT\nT2: UPDATE t SET a = 7 WHERE k < (SELECT MAX(x) FROM u)\nT2: COMMIT", "1|7, 2|2; 9", "violation"},
		{"the target's rows are the latest", "tidb", rr, keyed, "T1: BEGIN\nT2: BEGIN\nT1: INSERT INTO t VALUES (3, 3)\nT1: COMMIT\nT2: UPDATE t SET a = 7\nT2: COMMIT", "1|7, 2|7, 3|3", "violation"},

		{"two waiters", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2> UPDATE t SET a = 6 WHERE k = 1\nT3> UPDATE t SET a = 7 WHERE k = 1\nT1: COMMIT\nT2<\nT3<", "1|6, 2|2", "permitted two waiters resumed at once"},
		{"two waiters, one by one", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2> UPDATE t SET a = 6 WHERE k = 1\nT3> UPDATE t SET a = 7 WHERE k = 1\nT1: COMMIT\nT2<\nT1: SELECT * FROM t\nT3<", "1|6, 2|2", "violation"},
		{"two waiters, neither is last", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2> UPDATE t SET a = 6 WHERE k = 1\nT3> UPDATE t SET a = 7 WHERE k = 1\nT1: COMMIT\nT2<\nT3<", "1|5, 2|2", "violation"},

		{"a waiter that was let go before, and answered later", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2> UPDATE t SET a = 6 WHERE k = 1\nT1: COMMIT\nT3: UPDATE t SET a = 7 WHERE k = 1\nT2<", "1|7, 2|2", "permitted two waiters resumed at once"},
		{"a waiter that was not let go", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2> UPDATE t SET a = 6 WHERE k = 1\nT3: UPDATE t SET a = 7 WHERE k = 2\nT1: COMMIT\nT2<", "1|5, 2|7", "violation"},
		{"a waiter that was let go, and neither is last", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2> UPDATE t SET a = 6 WHERE k = 1\nT1: COMMIT\nT3: UPDATE t SET a = 7 WHERE k = 1\nT2<", "1|5, 2|2", "violation"},

		{"counter", "mysql", ser, "CREATE TABLE t (id INT AUTO_INCREMENT, a INT)", "T1: BEGIN\nT2: BEGIN\nT2: INSERT INTO t VALUES (NULL, 1)\nT1: INSERT INTO t VALUES (NULL, 2)\nT1: COMMIT\nT2: COMMIT", "1|1, 2|2", "permitted AUTO_INCREMENT"},
		{"counter after a rollback", "mysql", ser, "CREATE TABLE t (id INT AUTO_INCREMENT, a INT)", "T1: BEGIN\nT1: INSERT INTO t VALUES (NULL, 1)\nT1: ROLLBACK\nT1: INSERT INTO t VALUES (NULL, 2)", "2|2", "permitted AUTO_INCREMENT"},
		{"counter, and a wrong value", "mysql", ser, "CREATE TABLE t (id INT AUTO_INCREMENT, a INT)", "T1: BEGIN\nT2: BEGIN\nT2: INSERT INTO t VALUES (NULL, 1)\nT1: INSERT INTO t VALUES (NULL, 2)\nT1: COMMIT\nT2: COMMIT", "1|1, 2|1", "violation"},

		{"deadlock victim", "mysql", rr, keyed, "T1: BEGIN\nT2: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2: UPDATE t SET a = 6 WHERE k = 2\nT1> UPDATE t SET a = 7 WHERE k = 2\nT2: UPDATE t SET a = 8 WHERE k = 1 !1213 deadlock, rolled back\nT1<\nT1: COMMIT", "1|5, 2|7", ""},
		{"a statement's lock time-out", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET a = 5 WHERE k = 1\nT2: BEGIN\nT2: UPDATE t SET a = 9 WHERE k = 2\nT2: UPDATE t SET a = 8 WHERE k = 1 !1205 lock wait time-out\nT1: COMMIT\nT2: COMMIT", "1|5, 2|9", ""},
		{"unique violation that the other explains", "mysql", rr, keyed, "T1: BEGIN\nT2: BEGIN\nT1: INSERT INTO t VALUES (3, 3)\nT2> INSERT INTO t VALUES (3, 4)\nT1: COMMIT\nT2< !1062 error\nT2: COMMIT", "1|1, 2|2, 3|3", ""},
		{"unique violation that nothing explains", "mysql", rr, keyed, "T1: BEGIN\nT1: INSERT INTO t VALUES (3, 3) !1062 error\nT1: COMMIT", "1|1, 2|2", "violation"},
		{"refused on a row that may come first or not", "mysql", rr, keyed, "T1: BEGIN\nT1: UPDATE t SET k = k + 1 !1062 error\nT1: COMMIT", "1|1, 2|2", "unknown"},
		{"application dataflow", "mysql", rc, twoRows, "T1: BEGIN\nT1: UPDATE t SET b = @x\nT1: COMMIT", "1|1, 5|1", "unknown"},
		{"volatile", "mysql", rc, twoRows, "T1: BEGIN\nT1: UPDATE t SET b = RAND()\nT1: COMMIT", "1|1, 5|1", "unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := play(test.product, test.level, test.setup, test.script, test.final)
			v, err := wss.Check(t.Context(), s, &fake{}, wss.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := brief(v); got != test.want {
				t.Errorf("got %q, want %q\n%s", got, test.want, story(s, v))
			}
			for _, f := range v.Findings {
				if f.Kind == oracle.KindPermitted && (f.Source == "" || f.Difference.Reason == "") || f.ID == "" || f.Oracle != wss.Name {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// brief is the kind and cause of all findings, which are one in these tests.
func brief(v schedule.Verdict) string {
	if v.Unknown != "" {
		return "unknown"
	}
	var words []string
	for _, f := range v.Findings {
		text := strings.TrimSpace(string(f.Kind) + " " + f.Difference.Cause)
		if !slices.Contains(words, text) {
			words = append(words, text)
		}
	}
	return strings.Join(words, "; ")
}

// TestSerialSchedules shows what is executed, in which session and order: definitions 1 and 2.
func TestSerialSchedules(t *testing.T) {
	for _, test := range []struct {
		name, script string
		want, notes  []string
	}{
		{"first commit first scheduled", `
T1: BEGIN
T2: BEGIN
T1: UPDATE t SET b = 1 WHERE a = 1
T2: UPDATE t SET b = 2 WHERE a = 5
T2: COMMIT
T1: COMMIT`,
			[]string{
				"2: BEGIN", "2: UPDATE t SET b = 2 WHERE a = 5", "2: COMMIT", "1: BEGIN", "1: UPDATE t SET b = 1 WHERE a = 1", "1: COMMIT",
				"2: UPDATE t SET b = 2 WHERE a = 5", "1: UPDATE t SET b = 1 WHERE a = 1",
			}, nil},
		{"aborted transactions, settings and refused statements", `
T1: SET sql_mode = 7
T1: BEGIN
T1: UPDATE t SET b = 1 WHERE a = 1
T1: ROLLBACK
T1: SET sql_mode = 8
T1: BEGIN
T1: UPDATE t SET b = 3 WHERE a = 1 !1205 lock wait time-out
T1: UPDATE t SET b = 4 WHERE a = 1
T1: COMMIT
T2: UPDATE t SET b = 5 WHERE a = 5`,
			[]string{
				"1: SET sql_mode = 7", "1: SET sql_mode = 8", "1: BEGIN", "1: UPDATE t SET b = 4 WHERE a = 1", "1: COMMIT", "2: UPDATE t SET b = 5 WHERE a = 5",
				"1: SET sql_mode = 7", "1: SET sql_mode = 8", "1: UPDATE t SET b = 4 WHERE a = 1", "2: UPDATE t SET b = 5 WHERE a = 5",
			}, nil},
		{"autocommit only", "T1: UPDATE t SET b = 4 WHERE a = 1", []string{"1: UPDATE t SET b = 4 WHERE a = 1"}, nil},
		{"savepoints", "T1: BEGIN\nT1: SAVEPOINT s\nT1: ROLLBACK TO s\nT1: UPDATE t SET b = 4 WHERE a = 1\nT1: COMMIT",
			[]string{"1: BEGIN", "1: SAVEPOINT s", "1: ROLLBACK TO s", "1: UPDATE t SET b = 4 WHERE a = 1", "1: COMMIT"},
			[]string{"stmt-WSS was not checked: s3 (SAVEPOINT s) needs a transaction"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{}
			serial := &fake{}
			s := play("mysql", rc, twoRows, test.script, "1|0, 5|0")
			// The final state is that of the serial schedule: nothing need be judged.
			if err := serial.Prepare(t.Context(), s.Setup, 1); err != nil {
				t.Fatal(err)
			}
			for _, line := range test.want {
				if _, sql, _ := strings.Cut(line, ": "); !strings.HasPrefix(sql, "SET") {
					serial.do(sql)
				}
			}
			s.Final, _ = serial.Tables(t.Context())
			v, err := wss.Check(t.Context(), s, f, wss.Options{})
			if err != nil || len(v.Findings) > 0 || v.Unknown != "" {
				t.Fatalf("%v, %+v", err, v)
			}
			if d := cmp.Diff(test.want, f.executed); d != "" {
				t.Error("executed (-want +got):\n" + d)
			}
			if d := cmp.Diff(test.notes, v.Notes); d != "" {
				t.Error("notes (-want +got):\n" + d)
			}
		})
	}
}

// TestErrorOnOneSide is TiDB#39976: a DELETE that fails inside a transaction only.
func TestErrorOnOneSide(t *testing.T) {
	s := play("tidb", rr, twoRows, "T1: BEGIN\nT1: DELETE FROM t WHERE b = 0 !1292 error\nT1: COMMIT", "1|0, 5|0")
	f := &fake{override: func(_ *fake, sql string, inside bool) (schedule.Step, bool) {
		return refused("1292"), inside && strings.HasPrefix(sql, "DELETE")
	}}
	v, err := wss.Check(t.Context(), s, f, wss.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "violation wss-stmt: error on one side only; violation wss-stmt: different final state"
	if got := said(v); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if d := v.Findings[0].Difference; d.Expected.Text != "done" || d.Observed.Text != "error 1292: 1292" || d.Step != "s3" {
		t.Errorf("%+v", d)
	}
	// Near miss: it fails on both sides.
	f.override = func(_ *fake, sql string, _ bool) (schedule.Step, bool) {
		return refused("1292"), strings.HasPrefix(sql, "DELETE")
	}
	if v, err = wss.Check(t.Context(), s, f, wss.Options{}); err != nil || said(v) != "" {
		t.Errorf("%v, %s", err, said(v))
	}
}

// TestSeveralBroken: which of several broken constraints a server names is not defined. Near miss: one of the errors is none of a constraint.
func TestSeveralBroken(t *testing.T) {
	s := play("tidb", rr, twoRows, "T1: BEGIN\nT1: UPDATE t SET a = 1 !1451 error\nT1: COMMIT", "1|0, 5|0")
	for code, want := range map[string]string{"1062": "", "1292": "violation wss-tx: error on one side only; violation wss-stmt: error on one side only"} {
		f := &fake{override: func(_ *fake, sql string, _ bool) (schedule.Step, bool) {
			return refused(code), strings.HasPrefix(sql, "UPDATE")
		}}
		v, err := wss.Check(t.Context(), s, f, wss.Options{})
		if err != nil || said(v) != want {
			t.Errorf("%s: %v, got %q, want %q", code, err, said(v), want)
		}
	}
}

// TestByRows: which rows a DELETE finds may depend on the order in which it comes to them, where a foreign key that acts leads back to its table. Near misses: no such
// key, and one that leads elsewhere.
func TestByRows(t *testing.T) {
	const refers = "CREATE TABLE t (a INT, b INT REFERENCES t (a))\nINSERT INTO t VALUES (1, 0), (5, 0)"
	for _, test := range []struct{ setup, child, parent, want string }{
		{refers, "t", "t", "unknown"},
		{refers, "u", "t", "violation"},
		{twoRows, "", "", "violation"},
	} {
		s := play("mariadb", ser, test.setup, "T1: BEGIN\nT1: DELETE FROM t WHERE b = 0\nT1: COMMIT", "5|0")
		f := &fake{override: func(_ *fake, sql string, _ bool) (schedule.Step, bool) {
			st := schedule.Step{}
			if test.child != "" {
				row := []answer.Value{}
				for _, v := range []string{test.child, test.parent, "1", "0", "k", "a", "b"} {
					row = append(row, answer.Value(v))
				}
				st.Answer.Rows = [][]answer.Value{row}
			}
			return st, strings.Contains(sql, "KEY_COLUMN_USAGE")
		}}
		v, err := wss.Check(t.Context(), s, f, wss.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := brief(v)
		if v.Unknown != "" {
			got = "unknown"
		}
		if got != test.want {
			t.Errorf("a key from %q to %q: got %q, want %q: %s %s", test.child, test.parent, got, test.want, said(v), v.Unknown)
		}
	}
}

// TestReadOnly is the statement-level variant of a READ ONLY transaction.
func TestReadOnly(t *testing.T) {
	s := play("mysql", rr, twoRows, "T1: START TRANSACTION READ ONLY\nT1: DELETE FROM t WHERE b = 0 !1792 error\nT1: COMMIT", "1|0, 5|0")
	f := &fake{override: func(_ *fake, sql string, inside bool) (schedule.Step, bool) {
		return refused("1792"), inside && strings.HasPrefix(sql, "DELETE")
	}}
	v, err := wss.Check(t.Context(), s, f, wss.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := brief(v); got != "permitted READ ONLY" {
		t.Errorf("got %q: %s", got, said(v))
	}
	// Near miss: the same error in a transaction that may write.
	s = play("mysql", rr, twoRows, "T1: BEGIN\nT1: DELETE FROM t WHERE b = 0 !1792 error\nT1: COMMIT", "1|0, 5|0")
	if v, err = wss.Check(t.Context(), s, f, wss.Options{}); err != nil || brief(v) != "violation" {
		t.Errorf("%v, %s", err, said(v))
	}
}

// TestReads: what was read is compared at SERIALIZABLE where reads are locked.
func TestReads(t *testing.T) {
	for _, test := range []struct{ product, level, want string }{
		{"mysql", ser, "violation wss-tx: different result"}, {"mariadb", ser, "violation wss-tx: different result"},
		{"mysql", rr, ""}, {"postgres", ser, ""},
	} {
		s := play(test.product, test.level, twoRows, "T1: BEGIN\nT1: SELECT * FROM t\nT1: COMMIT", "1|0, 5|0")
		s.Steps[1].Answer.Rows = [][]answer.Value{{[]byte("1"), []byte("0")}}
		v, err := wss.Check(context.Background(), s, &fake{}, wss.Options{})
		if err != nil || said(v) != test.want {
			t.Errorf("%s at %s: %v, got %q, want %q", test.product, test.level, err, said(v), test.want)
		}
	}
}

// TestReadsTakenBack: a read need not be what it is in the serial schedule if its transaction went back to a savepoint from before it.
func TestReadsTakenBack(t *testing.T) {
	const differs = "violation wss-tx: different result"
	for _, test := range []struct{ script, want string }{
		{"T1: BEGIN\nT1: SAVEPOINT p\nT1: SELECT * FROM t\nT1: ROLLBACK TO p\nT1: COMMIT", ""},
		{"T1: BEGIN\nT1: SAVEPOINT p\nT1: SELECT * FROM t\nT1: COMMIT", differs},
		{"T1: BEGIN\nT1: SAVEPOINT q\nT1: SELECT * FROM t\nT1: SAVEPOINT q\nT1: ROLLBACK TO q\nT1: COMMIT", differs},
	} {
		s := play("mariadb", ser, twoRows, test.script, "1|0, 5|0")
		s.Steps[2].Answer.Rows = [][]answer.Value{{[]byte("1"), []byte("0")}}
		v, err := wss.Check(context.Background(), s, &fake{}, wss.Options{})
		if err != nil || said(v) != test.want {
			t.Errorf("%s: %v, got %q, want %q", test.script, err, said(v), test.want)
		}
	}
}

// TestWritesTakenBack: the same holds of a write's success.
func TestWritesTakenBack(t *testing.T) {
	const differs = "violation wss-tx: different success of a write"
	for _, test := range []struct{ script, want string }{
		{"T1: BEGIN\nT1: SAVEPOINT p\nT1: INSERT INTO t VALUES (1, 1) !1062 error\nT1: ROLLBACK TO p\nT2: DELETE FROM t\nT1: COMMIT", ""},
		{"T1: BEGIN\nT1: SAVEPOINT p\nT1: INSERT INTO t VALUES (1, 1) !1062 error\nT2: DELETE FROM t\nT1: COMMIT", differs},
	} {
		s := play("mariadb", ser, keyed, test.script, "1|1") // the fake does not go back
		v, err := wss.Check(t.Context(), s, &fake{}, wss.Options{})
		if got := said(v); err != nil || !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %v, got %q, want %q", test.script, err, got, test.want)
		}
	}
}

// TestNothingToConclude: executions that did not come to their end.
func TestNothingToConclude(t *testing.T) {
	s := play("mysql", rr, twoRows, "T1: DELETE FROM t", "")
	s.Trouble = "it stood still"
	if v, err := wss.Check(t.Context(), s, nil, wss.Options{}); err != nil || !strings.Contains(v.Unknown, "it stood still") {
		t.Errorf("%v, %+v", err, v)
	}
}

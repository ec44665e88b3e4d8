package mysql

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/generate"
)

// TestSimpler: what is written is among the simpler forms of a statement, in the dialect's own words.
func TestSimpler(t *testing.T) {
	simpler := New()
	for _, test := range []struct{ sql, want string }{
		{"SELECT a, b FROM t WHERE a = 1 AND (b = 2 OR c IN (SELECT 3))", "SELECT a, b FROM t WHERE a = 1"},
		{"SELECT a FROM t WHERE a = 1 AND (b = 2 OR c IN (SELECT 3))", "SELECT a FROM t WHERE a = 1 AND (b = 2)"},
		{"SELECT a FROM t WHERE c IN (SELECT d FROM u)", "SELECT a FROM t"},
		{"SELECT a FROM t WHERE c > (SELECT d FROM u)", "SELECT a FROM t WHERE c > 1"},
		{"SELECT DISTINCT coalesce(a, b + 1) FROM t GROUP BY a, b HAVING a > 1 ORDER BY a LIMIT 2", "SELECT DISTINCT a FROM t GROUP BY a, b HAVING a > 1 ORDER BY a LIMIT 2"},
		{"SELECT DISTINCT a FROM t", "SELECT a FROM t"},
		{"SELECT a FROM t GROUP BY a, b", "SELECT a FROM t GROUP BY b"},
		{"SELECT a FROM t GROUP BY a HAVING a > 1", "SELECT a FROM t GROUP BY a"},
		{"SELECT a FROM t ORDER BY a LIMIT 1", "SELECT a FROM t ORDER BY a"},
		{"SELECT a FROM t FOR UPDATE", "SELECT a FROM t"},
		{"SELECT x.a FROM t AS x LEFT JOIN s AS y ON x.a = y.a", "SELECT x.a FROM t AS x"},
		{"SELECT y.a FROM t AS x LEFT JOIN s AS y ON x.a = y.a", "SELECT y.a FROM s AS y"},
		{"SELECT x.a FROM t AS x LEFT JOIN s AS y ON x.a = y.a", "SELECT x.a FROM t AS x JOIN s AS y ON x.a = y.a"},
		{"SELECT 1 FROM (SELECT a FROM t) AS x", "SELECT 1 FROM t AS x"},
		{"WITH x AS (SELECT a FROM t WHERE a > 1) SELECT x.a FROM x WHERE a IN (SELECT a FROM x AS y)", "SELECT x.a FROM t AS x WHERE a IN (SELECT a FROM t AS y)"},
		{"SELECT a FROM t UNION ALL SELECT b FROM s", "SELECT a FROM t"},
		{"SELECT CASE WHEN a THEN b WHEN c THEN d ELSE e END FROM t", "SELECT e FROM t"},
		{"SELECT CASE WHEN a THEN b WHEN c THEN d ELSE e END FROM t", "SELECT CASE WHEN c THEN d ELSE e END FROM t"},
		{"SELECT a, _latin1'x' FROM t", "SELECT _latin1 'x' FROM t"},
		{"SELECT /*+ MAX_EXECUTION_TIME(1000) */ a, 0x4D, 1.50, b'01' FROM t", "SELECT /*+ MAX_EXECUTION_TIME(1000)*/ 0x4D,1.50,b'01' FROM t"},
		{"SELECT a FROM t FORCE INDEX (i) WHERE b", "SELECT a FROM t WHERE b"},
		{"SELECT a, 'it''s \\\\ \\n' FROM t", "SELECT 'it''s \\\\ \n' FROM t"},
		{"SELECT `select`, a FROM t", "SELECT `select` FROM `t`"},
		{"SELECT a FROM t WHERE ROW(a, 1) IN (ROW(1, 1))", "SELECT a FROM t WHERE ROW(a,1) = ROW(1,1)"},
		{"SELECT a FROM t WHERE a NOT IN (b)", "SELECT a FROM t WHERE a != b"},
		{"SELECT a FROM t WHERE a = SOME (SELECT b FROM s)", "SELECT a FROM t WHERE a IN (SELECT b FROM s)"},
		{"SELECT a FROM t WHERE a <> ALL (SELECT b FROM s)", "SELECT a FROM t WHERE a NOT IN (SELECT b FROM s)"},
		{"SELECT a FROM t WHERE a = b IS FALSE", "SELECT a FROM t WHERE NOT a = b"},
		{"UPDATE t SET a = 1, b = 2", "UPDATE t SET a=1"},
		{"UPDATE IGNORE t SET a = 1 WHERE b ORDER BY c LIMIT 1", "UPDATE t SET a=1 WHERE b ORDER BY c LIMIT 1"},
		{"DELETE x FROM t AS x JOIN s ON x.a = s.a", "DELETE x FROM t AS x"},
		{"INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)", "INSERT INTO t (b) VALUES ('x'),(NULL)"},
		{"INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)", "INSERT INTO t (a,b) VALUES (2,NULL)"},
		{"REPLACE INTO t VALUES (1)", "INSERT INTO t VALUES (1)"},
		{"INSERT IGNORE INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2", "INSERT INTO t VALUES (1)"},
		{"CREATE TABLE t (a VARCHAR(20) COLLATE utf8mb4_bin NOT NULL DEFAULT 'x', CHECK (a > 'b'))", "CREATE TABLE t (a VARCHAR(20) NOT NULL DEFAULT 'x',CHECK(a > 'b'))"},
		{"CREATE TABLE t (a VARCHAR(20), CHECK (a > 'b'))", "CREATE TABLE t (a INT,CHECK(a > 'b'))"},
		{"CREATE TABLE t (a INT, PRIMARY KEY (a)) PARTITION BY HASH (a) PARTITIONS 2", "CREATE TABLE t (a INT,PRIMARY KEY(a))"},
		{"CREATE UNIQUE INDEX i ON t (a(3), b DESC)", "CREATE INDEX i ON t (a(3), b DESC)"},
		{"CREATE UNIQUE INDEX i ON t (a(3), b DESC)", "CREATE UNIQUE INDEX i ON t (a(3), b)"},
		{"BEGIN OPTIMISTIC", "BEGIN"},
		{"START TRANSACTION", "BEGIN"},
	} {
		_, list, known := simpler(test.sql)
		if !known {
			t.Errorf("%s: not known", test.sql)
		}
		if !slices.ContainsFunc(list, func(s string) bool { return squeeze(s) == squeeze(test.want) }) {
			t.Errorf("%s: no %q among\n%s", test.sql, test.want, strings.Join(list, "\n"))
		}
	}
}

// squeeze leaves out blanks, which the printer sets in its own way.
func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// TestSimplerUnknown: what TiDB's parser does not have is left to those who read tokens.
func TestSimplerUnknown(t *testing.T) {
	simpler := New()
	for _, sql := range []string{"DELETE FROM t RETURNING a", "SELECT 1; SELECT 2", "no statement", ""} {
		if _, list, known := simpler(sql); known {
			t.Errorf("%s: known: %q", sql, list)
		}
	}
}

// TestSimplerWhole: what has no parts worth mentioning stays as it is written.
func TestSimplerWhole(t *testing.T) {
	simpler := New()
	for _, sql := range []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "COMMIT", "SAVEPOINT a"} {
		if self, list, known := simpler(sql); self != sql || list != nil || !known {
			t.Errorf("%s: %s, %q, %v", sql, self, list, known)
		}
	}
}

// TestSimplerGenerated takes generated statements apart: nearly all are known, and what is made of them can be read again.
func TestSimplerGenerated(t *testing.T) {
	for dialect, most := range map[generate.Dialect]int{generate.MariaDB: 10, generate.MySQL: 5, generate.TiDB: 5} {
		simpler := New()
		source := rand.New(rand.NewPCG(1, 2))
		g, err := generate.New(dialect, generate.Limits{}, source.IntN)
		if err != nil {
			t.Fatal(err)
		}
		all, unknown, made := 0, 0, 0
		for range 15 {
			for _, sql := range statements(g.Case()) {
				all++
				self, list, known := simpler(sql)
				if !known {
					unknown++
					continue
				}
				made += len(list)
				if again, _, _ := simpler(self); again != self {
					t.Errorf("%s\nis printed as %s\nand that as %s", sql, self, again)
				}
			}
		}
		t.Logf("%s: %d statements, %d unknown, %d simpler forms", dialect, all, unknown, made)
		if 100*unknown > most*all || made < 10*all {
			t.Errorf("%s: %d of %d statements are unknown, %d simpler forms", dialect, unknown, all, made)
		}
	}
}

func statements(k *generate.Case) (list []string) {
	for _, b := range k.Spec.Setup {
		list = append(list, b.SQL)
	}
	for _, st := range k.Order {
		list = append(list, st.SQL)
	}
	return list
}

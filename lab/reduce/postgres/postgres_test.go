package postgres

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/generate"
)

// TestSimpler: what is written is among the simpler forms of a statement.
func TestSimpler(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"SELECT a, b FROM t WHERE a = 1 AND (b = 2 OR c IN (SELECT 3))", "SELECT a, b FROM t WHERE a = 1"},
		{"SELECT a FROM t WHERE a = 1 AND (b = 2 OR c IN (SELECT 3))", "SELECT a FROM t WHERE a = 1 AND b = 2"},
		{"SELECT a FROM t WHERE c > (SELECT d FROM u)", "SELECT a FROM t WHERE c > 1"},
		{"SELECT DISTINCT coalesce(a, b + 1) FROM t", "SELECT DISTINCT a FROM t"},
		{"SELECT DISTINCT a FROM t", "SELECT a FROM t"},
		{"SELECT DISTINCT ON (a) a FROM t", "SELECT a FROM t"},
		{"SELECT a FROM t GROUP BY a, b HAVING a > 1", "SELECT a FROM t GROUP BY b HAVING a > 1"},
		{"SELECT a FROM t ORDER BY a LIMIT 1 OFFSET 2", "SELECT a FROM t ORDER BY a"},
		{"SELECT a FROM t FOR UPDATE OF t NOWAIT", "SELECT a FROM t"},
		{"SELECT x.a FROM t AS x LEFT JOIN s AS y ON x.a = y.a", "SELECT x.a FROM t x"},
		{"SELECT y.a FROM t AS x LEFT JOIN s AS y ON x.a = y.a", "SELECT y.a FROM s y"},
		{"SELECT x.a FROM t AS x LEFT JOIN s AS y ON x.a = y.a", "SELECT x.a FROM t x JOIN s y ON x.a = y.a"},
		{"SELECT 1 FROM (SELECT a FROM t) AS x", "SELECT 1 FROM t"},
		{"SELECT a FROM t UNION ALL SELECT b FROM s UNION SELECT c FROM u", "SELECT a FROM t UNION ALL SELECT b FROM s"},
		{"SELECT a FROM t UNION ALL SELECT b FROM s UNION SELECT c FROM u", "SELECT b FROM s UNION SELECT c FROM u"},
		{"SELECT CASE WHEN a THEN b WHEN c THEN d ELSE e END FROM t", "SELECT e FROM t"},
		{"SELECT CASE WHEN a THEN b WHEN c THEN d ELSE e END FROM t", "SELECT CASE WHEN c THEN d ELSE e END FROM t"},
		{"SELECT a::text COLLATE \"C\" FROM t", "SELECT a::text FROM t"},
		{"SELECT count(DISTINCT a) FILTER (WHERE b) FROM t", "SELECT count(DISTINCT a) FROM t"},
		{"SELECT sum(a) OVER (PARTITION BY b ORDER BY c) FROM t", "SELECT sum(a) OVER (PARTITION BY b) FROM t"},
		{"SELECT a FROM t WHERE a NOT IN (b)", "SELECT a FROM t WHERE a <> b"},
		{"SELECT a FROM t WHERE (a = b) IS NOT TRUE", "SELECT a FROM t WHERE NOT a = b"},
		{"UPDATE t SET a = 1, b = 2 FROM s WHERE c RETURNING a", "UPDATE t SET a = 1, b = 2 FROM s WHERE c"},
		{"UPDATE t SET a = 1, b = 2", "UPDATE t SET b = 2"},
		{"DELETE FROM t USING s WHERE t.a = s.a", "DELETE FROM t WHERE t.a = s.a"},
		{"INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)", "INSERT INTO t (b) VALUES ('x'), (NULL)"},
		{"INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL) ON CONFLICT (a) DO UPDATE SET b = 'y' WHERE t.a > 1", "INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)"},
		{"CREATE TABLE t (a VARCHAR(20) COLLATE \"C\" NOT NULL DEFAULT 'x', CHECK (a > 'b'))", "CREATE TABLE t (a varchar(20) DEFAULT 'x' COLLATE \"C\", CHECK (a > 'b'))"},
		{"CREATE TABLE t (a VARCHAR(20) COLLATE \"C\")", "CREATE TABLE t (a int)"},
		{"CREATE TABLE t (a int) PARTITION BY HASH (a)", "CREATE TABLE t (a int)"},
		{"CREATE UNIQUE INDEX i ON t (a, b DESC) WHERE a > 1", "CREATE INDEX i ON t USING btree (a, b DESC) WHERE a > 1"},
		{"CREATE UNIQUE INDEX i ON t (a, b DESC) WHERE a > 1", "CREATE UNIQUE INDEX i ON t USING btree (a, b DESC)"},
		{"START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY", "BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY"},
		{"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.b THEN DELETE WHEN NOT MATCHED THEN DO NOTHING", "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND s.b THEN DELETE"},
		{"WITH x AS (SELECT 1) SELECT a FROM t", "SELECT a FROM t"},
	} {
		_, list, known := Simpler(test.sql)
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

func TestSimplerUnknown(t *testing.T) {
	for _, sql := range []string{"SELECT 1; SELECT 2", "no statement", "", "SELECT '\x00'"} {
		if _, list, known := Simpler(sql); known {
			t.Errorf("%s: known: %q", sql, list)
		}
	}
}

// TestSimplerGenerated takes generated statements apart. The printer is C code that ends the process where a part is missing that
// it takes for granted.
func TestSimplerGenerated(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	g, err := generate.New(generate.Postgres, generate.Limits{}, source.IntN)
	if err != nil {
		t.Fatal(err)
	}
	all, made := 0, 0
	for range 15 {
		k := g.Case()
		var list []string
		for _, b := range k.Spec.Setup {
			list = append(list, b.SQL)
		}
		for _, st := range k.Order {
			list = append(list, st.SQL)
		}
		for _, sql := range list {
			self, simpler, known := Simpler(sql)
			if !known {
				t.Errorf("not known: %s", sql)
			}
			if again, _, _ := Simpler(self); again != self {
				t.Errorf("%s\nis printed as %s\nand that as %s", sql, self, again)
			}
			all, made = all+1, made+len(simpler)
		}
	}
	t.Logf("%d statements, %d simpler forms", all, made)
	if made < 10*all {
		t.Errorf("%d simpler forms of %d statements", made, all)
	}
}

package mysqlwire_test

import (
	"slices"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
)

// played makes a session of the tables of random sessions. A text behind "P " is prepared, and each list behind it is one of parameters with which it is executed.
func played(list ...any) (acts []act) {
	for _, sql := range fuzzSetup() {
		acts = append(acts, act{cmd: mysql.COM_QUERY, text: sql})
	}
	for _, one := range list {
		switch one := one.(type) {
		case string:
			a := act{cmd: mysql.COM_QUERY, text: one}
			if len(one) > 2 && one[:2] == "P " {
				a.cmd, a.text = mysql.COM_STMT_PREPARE, one[2:]
			}
			acts = append(acts, a)
		case []any:
			acts = append(acts, act{cmd: mysql.COM_STMT_EXECUTE, params: one})
		}
	}
	return acts
}

// TestPlansStay plays sessions whose answers tell the server's plan: by the status flags, by how often it warns, and by the descriptions of columns. Each has a
// near miss behind it.
func TestPlansStay(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("the plans are MariaDB's and MySQL's")
	}
	none := []any{}
	ways, at := allWays(t)
	for name, acts := range map[string][]act{
		"a view beside aggregates whose condition is never true": played("P SELECT AVG(p.z), SUM(p.x) FROM t3 p JOIN v0 q ON p.x = q.b WHERE q.b<>@u ORDER BY 1", none, "P SELECT AVG(p.z), SUM(p.x) FROM t3 p WHERE p.x<>@u ORDER BY 1", none),
		"a view in a subquery beside aggregates":                 played("P SELECT MAX(q.id), AVG(q.c) FROM t0 AS q WHERE NOT EXISTS (SELECT MAX(id) FROM v0 WHERE (a>b'1'))", none, "P SELECT MAX(q.id), AVG(q.c) FROM t0 AS q WHERE NOT EXISTS (SELECT MAX(id) FROM t0 WHERE (a>b'1'))", none),
		"a derived table in a subquery beside aggregates":        played("P SELECT COUNT(*), SUM(id) FROM t0 WHERE id=2 AND EXISTS (SELECT * FROM (SELECT * FROM t0) d WHERE id = 1)", none, none, "P SELECT COUNT(*), SUM(id) FROM t0 WHERE id=2 AND EXISTS (SELECT * FROM t0 d WHERE id = 1)", none, none),
		"the description of a view's column":                     played("P SELECT p.id, AVG(q.id) FROM v0 p JOIN t0 q ON p.id = q.b WHERE q.c BETWEEN ? AND ? GROUP BY 1", []any{nil, -1}, "P SELECT p.id, AVG(q.id) FROM t0 p JOIN t0 q ON p.id = q.b WHERE q.c BETWEEN ? AND ? GROUP BY 1", []any{nil, -1}),
		"warnings of a join beside a view": played("P SELECT p.c, MAX(q.z), BIT_OR(p.b) FROM t0 p JOIN t3 q ON p.b = q.x WHERE NOT EXISTS (SELECT q.z FROM v0 WHERE q.y=?) OR 0 GROUP BY 1", "ALTER TABLE t0 ADD INDEX i0 (c)", []any{nil},
			"P SELECT p.c, MAX(q.z), BIT_OR(p.b) FROM t0 p JOIN t3 q ON p.b = q.x GROUP BY 1", none),
		"a DELETE by a parameter that is no number":    played("SET sql_mode=''", "P DELETE FROM t3 WHERE x=?", []any{"2020-01-01"}, "SHOW WARNINGS", "P DELETE FROM t3 WHERE x='2'", none, "SHOW WARNINGS", "SET sql_mode=DEFAULT", "P DELETE FROM t3 WHERE x=?", []any{"1x"}, "SHOW WARNINGS", []any{"1"}),
		"questions that max_join_size refuses":         played("SET max_join_size=1", "CREATE TABLE n6 (a INT)", "SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "SELECT * FROM n6", "SHOW WARNINGS", "SELECT a FROM t0 LOCK IN SHARE MODE", "SHOW WARNINGS", "SET max_join_size=DEFAULT", "CREATE TABLE n7 (a INT)", "SHOW WARNINGS"),
		"an empty table of which MIN or MAX are asked": played("TRUNCATE TABLE t1", "SELECT * FROM (SELECT MAX(u), BIT_OR(e) FROM t1) d", "SELECT * FROM (SELECT MIN(r), COUNT(*) FROM t1) d", "SELECT * FROM (SELECT MAX(e), COUNT(*) FROM t1) d"),
		"groups of an index of which a column has no value": played("SELECT p.n, MIN(q.r), SUM(p.n) FROM t2 p LEFT JOIN t1 q ON p.w = q.d WHERE p.n BETWEEN 1.5 AND 1 GROUP BY 1 WITH ROLLUP", "SELECT DISTINCT p.n, q.r FROM t2 p LEFT JOIN t1 q ON p.w = q.d WHERE p.n BETWEEN 2 AND 1",
			"SELECT p.f, MIN(q.r), SUM(p.n) FROM t2 p LEFT JOIN t1 q ON p.w = q.d WHERE p.n BETWEEN 1.5 AND 1 GROUP BY 1 WITH ROLLUP", "SELECT p.n, MIN(q.r), SUM(p.n) FROM t2 p LEFT JOIN t1 q ON p.w = q.d WHERE p.n BETWEEN 1 AND 2 GROUP BY 1 WITH ROLLUP"),
	} {
		const caps = 0x10fa28d
		want := at(0, caps, acts)
		for way := 1; way < len(ways); way++ {
			if got := at(way, caps, acts); !slices.Equal(want, got) {
				t.Errorf("%s, %s:\n%s", name, ways[way].name, story(acts, want, got, true))
			}
		}
	}
}

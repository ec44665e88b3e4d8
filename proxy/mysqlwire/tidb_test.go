package mysqlwire_test

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// The columns are ordinary ones on TiDB, and nothing of them is seen through the proxy.
func TestDifferentialOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	d := testserver.TiDB(t).Database(t)
	var steps []step
	for _, sql := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(20))", "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')", "SELECT * FROM t ORDER BY id",
		"SELECT t.*, 1 FROM t WHERE id > 1", "TABLE t ORDER BY id", "SHOW COLUMNS FROM t", "DESC t", "SHOW CREATE TABLE t",
		"SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY 1",
		"CREATE VIEW every AS SELECT * FROM t", "SELECT * FROM every ORDER BY id", "CREATE TABLE u LIKE t", "INSERT INTO u SELECT * FROM t", "SELECT * FROM t NATURAL JOIN u ORDER BY id",
		"PREPARE p FROM 'SELECT * FROM t WHERE id = 1'", "EXECUTE p", "UPDATE t SET v = 10 WHERE id = 1", "UPDATE t SET v = v + 1", "SHOW WARNINGS",
		"DELETE FROM t WHERE v > 20", "REPLACE INTO t VALUES (1, 5, 'c')", "INSERT INTO t VALUES (1, 2, 'x') ON DUPLICATE KEY UPDATE v = 7",
		"INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1, 2, 'x', 'y', 'z')", "SELECT nosuch FROM t", "SELECT * FROM t WHERE id = 1; SELEC 1", "SELECT * FROM t ORDER BY 4", "SELECT * FROM u UNION ALL SELECT * FROM u ORDER BY id",
		"BEGIN", "SELECT * FROM t WHERE id = 1 FOR UPDATE", "COMMIT", "TRUNCATE TABLE t", "DROP VIEW every", "DROP TABLE t, u",
	} {
		steps = append(steps, step{cmd: mysql.COM_QUERY, sql: sql})
	}
	steps = append(steps, step{cmd: mysql.COM_QUERY, sql: "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(20))"})
	for _, sql := range []string{
		"INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')", "SELECT * FROM t WHERE id > 0 ORDER BY id", "SELECT DISTINCT * FROM t WHERE id = 1", "TABLE t ORDER BY id",
		"UPDATE t SET v = 11 WHERE id = 1", "DELETE FROM t WHERE id = 2", "SELECT * FROM t ORDER BY id",
	} {
		steps = append(steps, step{sql: sql, params: []any{}})
	}
	steps = append(steps, step{cmd: mysql.COM_QUERY, sql: "DROP TABLE t"})
	want := runSteps(t, d, baseCaps|uint64(mysql.CLIENT_DEPRECATE_EOF), steps)
	got := runSteps(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{})), baseCaps|uint64(mysql.CLIENT_DEPRECATE_EOF), steps)
	for i := range want {
		if diff := cmp.Diff(withoutDefinitions(want[i]), withoutDefinitions(got[i])); diff != "" {
			t.Errorf("direct (-), through the proxy (+):\n%s", diff)
		}
	}
}

// withoutDefinitions leaves away the definitions of columns, whose lengths tell of the longest value in SHOW, and whose original names
// TiDB leaves empty if it finds a row without a plan. TestFormsOnTiDB compares them.
func withoutDefinitions(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, `\x03def`) {
			b.WriteString(line)
		}
	}
	return b.String()
}

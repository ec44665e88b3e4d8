package mysqlwire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// deprecated are statements of whose own text MySQL warns where it parses it, with questions for these warnings.
var deprecated = []string{
	"CREATE TABLE dep (id INT PRIMARY KEY, v INT, s VARCHAR(3))", "INSERT INTO dep VALUES (1,1,'a'),(2,2,'b')",
	"INSERT INTO dep (id,v) VALUES (1,5) ON DUPLICATE KEY UPDATE v = VALUES(v)", "SHOW WARNINGS", "SHOW WARNINGS LIMIT 1", "SHOW WARNINGS LIMIT 1, 5",
	"SHOW COUNT(*) WARNINGS", "SELECT @@warning_count", "SHOW ERRORS", "SELECT 1", "SHOW WARNINGS",
	"UPDATE dep SET v = '7x', s = 'long text' WHERE id = 1 && v > 0", "SHOW WARNINGS", "SHOW WARNINGS LIMIT 2 OFFSET 1", "SHOW WARNINGS LIMIT 0", "SHOW WARNINGS LIMIT 9, 9",
	"UPDATE dep SET v = @n := 3 WHERE id = 2 && 1", "SHOW WARNINGS", "SHOW COUNT(*) WARNINGS",
	"UPDATE dep SET id = 1 WHERE id = 2 && 1", "SHOW WARNINGS", "SHOW WARNINGS LIMIT 1,1", "SHOW ERRORS", "SELECT @@warning_count", "SELECT @@error_count",
	"UPDATE dep SET nosuch = 1 WHERE id = 2 && 1", "SHOW WARNINGS", "UPDATE dep SET v = 1 WHERE id = 2 && (SELECT", "SHOW WARNINGS",
	"UPDATE dep SET v = '8x' WHERE id = 1", "GET DIAGNOSTICS @d = NUMBER, @r = ROW_COUNT", "GET DIAGNOSTICS CONDITION 1 @e = MYSQL_ERRNO", "SELECT @d, @r, @e", "SHOW WARNINGS",
	"UPDATE dep SET v = 8 WHERE id = 1", "GET DIAGNOSTICS @d = NUMBER, @r = ROW_COUNT", "SELECT @d, @r", "SELECT FOUND_ROWS()", "SHOW WARNINGS",
	"DELETE FROM dep WHERE id = 2 && 1", "SHOW WARNINGS", "SELECT ROW_COUNT()", "INSERT INTO dep VALUES (2,2,'b')",
	"SET max_error_count=2", "UPDATE dep SET v = '9x', s = 'long text' WHERE id && 1", "SHOW WARNINGS", "SELECT @@warning_count", "SHOW WARNINGS LIMIT 1, 1",
	"SET max_error_count=1", "UPDATE dep SET v = '3x', s = 'long text' WHERE id && 1", "SHOW WARNINGS", "SELECT @@warning_count", "UPDATE dep SET v = '4x'", "SHOW WARNINGS",
	"SET max_error_count=0", "UPDATE dep SET v = '5x', s = 'long text' WHERE id && 1", "SHOW WARNINGS", "SELECT @@warning_count", "UPDATE dep SET v = '6x'", "SHOW WARNINGS",
	"SET max_error_count=DEFAULT", "SELECT * FROM dep", "DROP TABLE dep",
}

// What is parsed apart is captured all the same, also where the server warns of the client's own text, and after the
// server had to parse it once more because others changed the table.
func TestParsedApart(t *testing.T) {
	if !testserver.IsMySQL() {
		t.Skip("make test-engines runs this")
	}
	d := testserver.MySQL(t).Database(t)
	k := &sink{}
	c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
	c.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	c.query("INSERT INTO t VALUES (1,1),(2,2),(3,3)")
	c.query("INSERT INTO t (id,v) VALUES (1,5) ON DUPLICATE KEY UPDATE v = VALUES(v)")
	c.query("UPDATE t SET v = 6 WHERE id = 1 && 1")
	r := c.do(mysql.COM_STMT_PREPARE, []byte("UPDATE t SET v = v + 1 WHERE id = 2"))
	id := r.packets[0][1:5]
	execute := append(append([]byte{}, id...), 0, 1, 0, 0, 0)
	for range 2 {
		if n := c.okWarnings(c.do(mysql.COM_STMT_EXECUTE, execute).last()); n != 0 {
			t.Errorf("execute: %d warnings, want 0", n)
		}
		expectRows(t, c, "SHOW WARNINGS")
		d.Exec(t, "CREATE INDEX behind ON t (v)", "DROP INDEX behind ON t")
	}
	r = c.do(mysql.COM_STMT_PREPARE, []byte("SELECT COUNT(*),SUM(v) FROM t WHERE id < ?"))
	count := append(append([]byte{}, r.packets[0][1:5]...), 0, 1, 0, 0, 0, 0, 1, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0)
	for range 2 {
		if r := c.do(mysql.COM_STMT_EXECUTE, count); len(r.packets) < 3 || r.packets[0][0] != 2 {
			t.Errorf("execute: %q, want two columns", r.packets)
		}
		expectRows(t, c, "SHOW WARNINGS")
	}
	c.query("DELETE FROM t WHERE id > 2")
	c.query("SELECT * FROM t WHERE id < 3 ORDER BY id")
	c.query("SELECT 1")
	want := map[string]history.Op{"INSERT INTO t (id": history.OpUpdate, "UPDATE t SET v = 6": history.OpUpdate, "UPDATE t SET v = v": history.OpUpdate, "DELETE": history.OpDelete,
		"SELECT COUNT(*)": history.OpRead}
	got := make(map[string][]history.Access)
	for _, ev := range k.all() {
		for head := range want {
			if strings.HasPrefix(ev.SQL, head) {
				got[head] = append(got[head], ev.Accesses...)
				if ev.Coverage != history.CoverageExact {
					t.Errorf("%s: coverage %s (%s)", ev.SQL, ev.Coverage, ev.Why)
				}
			}
		}
	}
	for head, op := range want {
		n := 1
		if strings.HasPrefix(head, "UPDATE t SET v = v") {
			n = 2
		}
		if strings.HasPrefix(head, "SELECT") {
			n = 4
		}
		if len(got[head]) != n || got[head][0].Op != op {
			t.Errorf("%s: got %+v, want %d of %s", head, got[head], n, op)
		}
	}
}

// TestLongDataWarnings sends long data for a statement whose other form is prepared for that: it has no answer, and the warnings stay those of the statement before.
func TestLongDataWarnings(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("TiDB's answer to COM_PING counts no warnings")
	}
	q := func(sql string) act { return act{cmd: mysql.COM_QUERY, text: sql} }
	long, remove := act{cmd: mysql.COM_STMT_SEND_LONG_DATA, text: "2"}, act{cmd: mysql.COM_STMT_PREPARE, text: "DELETE FROM t WHERE x <> ?"}
	read, execute := act{cmd: mysql.COM_STMT_PREPARE, text: "SELECT x FROM t WHERE id <> ?"}, act{cmd: mysql.COM_STMT_EXECUTE, params: []any{"2"}}
	ways, at := allWays(t)
	for name, acts := range map[string][]act{
		"none":                 {remove, long, q("SHOW WARNINGS"), q("SELECT FOUND_ROWS(), ROW_COUNT()")},
		"of a query before":    {remove, q("SELECT CAST('x' AS SIGNED), id FROM t"), long, q("SHOW WARNINGS"), q("SELECT @@warning_count"), q("SELECT x FROM t"), q("SHOW WARNINGS")},
		"the counts of one":    {remove, q("SELECT id FROM t"), long, q("SELECT FOUND_ROWS(), ROW_COUNT()")},
		"of a lost table":      {read, q("DROP TABLE t"), q("CREATE TABLE t (id INT)"), q("SELECT id FROM t"), long, q("SHOW WARNINGS"), q("SELECT FOUND_ROWS(), ROW_COUNT()"), execute, q("SHOW WARNINGS")},
		"counts at a loss":     {read, q("DROP TABLE t"), q("CREATE TABLE t (id INT)"), q("SELECT id FROM t"), long, q("SELECT FOUND_ROWS(), ROW_COUNT()")},
		"of a lost column":     {read, q("ALTER TABLE t DROP COLUMN x"), q("SELECT id FROM t"), long, q("SHOW WARNINGS"), q("SELECT @@error_count"), q("SELECT FOUND_ROWS(), ROW_COUNT()")},
		"what follows a loss":  {read, q("ALTER TABLE t DROP COLUMN x"), q("SELECT id FROM t"), long, execute, q("SHOW WARNINGS")},
		"of another column":    {read, q("ALTER TABLE t ADD y INT DEFAULT 5"), q("SELECT id FROM t"), long, q("SHOW WARNINGS"), execute},
		"without a form again": {remove, long, execute, q("SELECT CAST('x' AS SIGNED), id FROM t"), long, q("SHOW WARNINGS"), q("SELECT FOUND_ROWS()")},
	} {
		acts = append([]act{q("CREATE TABLE t (id INT PRIMARY KEY, x INT)"), q("INSERT INTO t VALUES (1, 1), (2, 2)")}, acts...)
		want := at(0, baseCaps, acts)
		for way := 1; way < len(ways); way++ {
			if got := at(way, baseCaps, acts); !slices.Equal(want, got) {
				t.Errorf("%s, %s:\n%s", name, ways[way].name, story(acts, want, got, true))
			}
		}
	}
}

// TestPingCountsWarnings sends commands whose answer counts the warnings of the statement before, on MySQL also those that are found when it is parsed.
func TestPingCountsWarnings(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("TiDB's answer to COM_PING counts no warnings")
	}
	q := func(sql string) act { return act{cmd: mysql.COM_QUERY, text: sql} }
	ping, option, use := act{cmd: mysql.COM_PING}, act{cmd: mysql.COM_SET_OPTION, text: "\x00\x00"}, act{cmd: mysql.COM_INIT_DB, text: "DBNAME"}
	statistics := act{cmd: mysql.COM_STATISTICS} // a text, which counts none
	update := q("UPDATE t SET x = @u := (x) WHERE id < 0")
	ways, at := allWays(t)
	for name, acts := range map[string][]act{
		"of an assignment":             {update, ping, option, statistics, use, {cmd: mysql.COM_STMT_CLOSE}, q("SHOW WARNINGS"), ping},
		"of one that failed":           {q("UPDATE t SET x = @u := 'x' WHERE id = 1"), ping},
		"counted":                      {update, q("SELECT @@warning_count"), ping},
		"of another statement":         {update, q("SELECT x FROM t"), ping},
		"of the next session":          {update, {cmd: 0x1f}, ping},
		"of a statement that prepares": {update, {cmd: mysql.COM_STMT_PREPARE, text: "SELECT x FROM t"}, ping},
		"none behind a reset":          {{cmd: mysql.COM_STMT_PREPARE, text: "SELECT x FROM t"}, update, {cmd: mysql.COM_STMT_RESET}, ping, update, ping, {cmd: mysql.COM_STMT_RESET}, q("SHOW WARNINGS")},
		"of a reset that cannot":       {update, {cmd: mysql.COM_STMT_RESET, slot: slots}, ping},
		"of a table that is there":     {q("CREATE TABLE IF NOT EXISTS n (x INT)"), q("CREATE TABLE IF NOT EXISTS n (x INT)"), ping, q("SHOW WARNINGS"), ping, q("DROP TABLE IF EXISTS o"), ping, q("SELECT x FROM t"), ping},
		"of one that cannot":           {update, {cmd: mysql.COM_STMT_PREPARE, text: "SELEC x FROM t"}, ping},
	} {
		acts = append([]act{q("CREATE TABLE t (id INT PRIMARY KEY, x INT)"), q("INSERT INTO t VALUES (1, 1), (2, 2)")}, acts...)
		for _, caps := range []uint64{baseCaps, baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF)} {
			want := at(0, caps, acts)
			for way := 1; way < len(ways); way++ {
				if got := at(way, caps, acts); !slices.Equal(want, got) {
					t.Errorf("%s, capabilities %#x, %s:\n%s", name, caps, ways[way].name, story(acts, want, got, true))
				}
			}
		}
	}
}

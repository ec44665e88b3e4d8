package mysqlwire_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// A read that an index covers names its table twice. Where the server refuses that, or where the two might not see the same, it is sent as it is.
func TestCoveredReadsUnderTableLocks(t *testing.T) {
	if testserver.IsMySQL() || testserver.IsTiDB() {
		t.Skip("the server is MariaDB")
	}
	d := testserver.MariaDB(t).Database(t)
	k := &sink{}
	c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
	run := func(sql string) {
		t.Helper()
		if p := c.query(sql).last(); p[0] == 0xff {
			t.Fatalf("%s: %q", sql, p)
		}
	}
	for _, sql := range []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v))", "INSERT INTO t VALUES (1, 10), (2, 10), (3, 30)"} {
		run(sql)
	}
	id := binary.LittleEndian.Uint32(c.do(mysql.COM_STMT_PREPARE, []byte("SELECT id FROM t WHERE v = 10")).packets[0][1:])
	read := func(want history.Coverage) {
		t.Helper()
		run("SELECT COUNT(*) FROM t WHERE v = 10")
		if p := c.do(mysql.COM_STMT_EXECUTE, executeArg(id, 0, nil)).last(); p[0] == 0xff {
			t.Fatalf("EXECUTE: %q", p)
		}
		events := k.all()
		n := 0
		for i := len(events) - 1; i >= 0 && n < 2; i-- {
			if ev := events[i]; ev.Kind == history.EventStmt && ev.Verb == "select" {
				n++
				if ev.Coverage != want || (want == history.CoverageExact) != (len(ev.Accesses) == 2) {
					t.Errorf("%s: coverage %q (%s), %d accesses; want %q", ev.SQL, ev.Coverage, ev.Why, len(ev.Accesses), want)
				}
			}
		}
	}
	read(history.CoverageExact)
	run("LOCK TABLES t READ")
	read(history.CoverageOpaque)
	run("UNLOCK TABLES")
	read(history.CoverageExact)
	run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	read(history.CoverageOpaque)
}

// TestPreparedFormsCached: at SERIALIZABLE another text stands for a prepared statement, with other columns. A server that does not repeat what
// it has said of columns when it prepared a text (MARIADB_CLIENT_CACHE_METADATA, as libmariadb asks for) is understood all the same.
func TestPreparedFormsCached(t *testing.T) {
	if testserver.IsMySQL() || testserver.IsTiDB() {
		t.Skip("the server is MariaDB")
	}
	d := testserver.MariaDB(t).Database(t)
	const cached = baseCaps&^uint64(mysql.CLIENT_LONG_PASSWORD) | 1<<36
	for name, caps := range map[string]uint64{"plain": cached, "deprecate EOF": cached | uint64(mysql.CLIENT_DEPRECATE_EOF)} {
		t.Run(name, func(t *testing.T) {
			k := &sink{}
			c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), caps)
			run := func(sql string) {
				t.Helper()
				if p := c.query(sql).last(); p[0] == 0xff {
					t.Fatalf("%s: %q", sql, p)
				}
			}
			run("CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, v INT, w INT, KEY (v))")
			run("INSERT INTO t VALUES (1, 10, 7), (2, 10, 8), (3, 30, 9)")
			var ids []uint32
			for _, sql := range []string{"SELECT SUM(v) FROM t WHERE id BETWEEN ? AND 3", "SELECT v FROM t WHERE v > ?", "SELECT id, w FROM t WHERE id = ?"} {
				ids = append(ids, binary.LittleEndian.Uint32(c.do(mysql.COM_STMT_PREPARE, []byte(sql)).packets[0][1:]))
			}
			direct := dialRaw(t, d, caps)
			for _, sql := range []string{"SELECT 1", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN", "COMMIT", "BEGIN", "COMMIT", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"} {
				run(sql)
				for i, sql := range []string{"SELECT SUM(v) FROM t WHERE id BETWEEN 1 AND 3", "SELECT v FROM t WHERE v > 1", "SELECT id, w FROM t WHERE id = 1"} {
					r := c.do(mysql.COM_STMT_EXECUTE, executeArg(ids[i], 0, []any{1}))
					if p := r.last(); p[0] == 0xff {
						t.Fatalf("%s: %q", sql, p)
					}
					id := binary.LittleEndian.Uint32(direct.do(mysql.COM_STMT_PREPARE, []byte(sql)).packets[0][1:])
					want := direct.do(mysql.COM_STMT_EXECUTE, executeArg(id, 0, nil))
					if got, want := r.packets[r.rows[0][0]:r.rows[0][1]], want.packets[want.rows[0][0]:want.rows[0][1]]; len(want) == 0 || !slices.EqualFunc(got, want, bytes.Equal) {
						t.Errorf("%s: got %q, want %q", sql, got, want)
					}
				}
			}
		})
	}
}

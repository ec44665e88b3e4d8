package mysqlwire_test

import (
	"encoding/binary"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// A read that an index covers names its table twice. Where the server refuses that, or where the two might not see the same, it is sent as it is.
func TestCoveredReadsUnderTableLocks(t *testing.T) {
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

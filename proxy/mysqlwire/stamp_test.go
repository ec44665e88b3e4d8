package mysqlwire_test

import (
	"bytes"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// spoiled stands between the proxy and the server and spoils statements that set a stamp, as KILL QUERY would: each
// time the count is above zero.
func spoiled(t *testing.T, d testserver.Database, count *atomic.Int64) testserver.Database {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", d.Address())
			if err != nil {
				from.Close()
				return
			}
			go func() {
				buf := make([]byte, 1<<16)
				for {
					n, err := to.Read(buf)
					if err != nil {
						from.Close()
						return
					}
					if _, err := from.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
			go func() {
				defer to.Close()
				buf := make([]byte, 1<<16)
				for {
					n, err := from.Read(buf)
					if err != nil {
						return
					}
					b := buf[:n]
					for _, w := range []string{"SET @wc_t=", "@wc_t:='"} {
						if i := bytes.Index(b, []byte(w)); i >= 0 && count.Load() > 0 {
							count.Add(-1)
							copy(b[i:], "!!")
						}
					}
					if _, err := to.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	addr := l.Addr().(*net.TCPAddr)
	return d.At(addr.IP.String(), addr.Port)
}

// TestRefusedStamp has the server refuse statements that set a stamp. No row may then carry the name of another
// transaction, nor of a statement that is undone apart from its writer.
func TestRefusedStamp(t *testing.T) {
	for _, test := range []struct {
		name    string
		before  []string
		refused int64 // statements of ours that the server refuses from here on
		sql     string
		want    string // wc_writers of row 1, if all statements are prepared
		exact   bool
		text    string // the same if all are texts, which hold their stamps themselves: there is nothing to refuse
	}{
		{"insert, once", []string{"INSERT INTO t VALUES (9,9)"}, 1, "INSERT INTO t VALUES (1,1)", "1:T2.1.test", true, "1:T2.1.test"},
		{"insert", []string{"INSERT INTO t VALUES (9,9)"}, 3, "INSERT INTO t VALUES (1,1)", "0:", false, "1:T2.1.test"},
		{"first of all", nil, 3, "INSERT INTO t VALUES (1,1)", "0:", false, "1:T1.1.test"},
		{"update behind an update", []string{"INSERT INTO t VALUES (1,1)", "UPDATE t SET v = 2 WHERE id = 1"}, 3, "UPDATE t SET v = 3 WHERE id = 1", "2:T1.1.test,T2.1.test", false, "3:T1.1.test,T2.1.test,T3.1.test"},
		{"update behind an update, once", []string{"INSERT INTO t VALUES (1,1)", "UPDATE t SET v = 2 WHERE id = 1"}, 1, "UPDATE t SET v = 3 WHERE id = 1", "3:T1.1.test,T2.1.test,T3.1.test", true, "3:T1.1.test,T2.1.test,T3.1.test"},
		{"in a transaction", []string{"INSERT INTO t VALUES (1,1)", "BEGIN", "UPDATE t SET v = 2 WHERE id = 1"}, 3, "UPDATE t SET v = 3 WHERE id = 1", "3:T1.1.test,T2.1.test,T2.1.test", false, "3:T1.1.test,T2.1.test,T2.2.test"},
		{"behind a savepoint", []string{"INSERT INTO t VALUES (1,1)", "BEGIN", "UPDATE t SET v = 2 WHERE id = 1", "SAVEPOINT s"}, 3, "UPDATE t SET v = 3 WHERE id = 1", "2:T1.1.test,T2.1.test", false, "3:T1.1.test,T2.1.test,T2.3.test"},
		{"behind an undone statement", []string{"INSERT INTO t VALUES (1,1)", "BEGIN", "SAVEPOINT s", "UPDATE t SET v = 2 WHERE id = 1", "ROLLBACK TO s"}, 3, "UPDATE t SET v = 3 WHERE id = 1", "1:T1.1.test", false, "2:T1.1.test,T2.4.test"},
	} {
		for _, prepared := range []bool{false, true} {
			name := test.name
			if prepared {
				name += ", prepared"
			}
			t.Run(name, func(t *testing.T) {
				d := testserver.Family(t).Database(t)
				var count atomic.Int64
				k := &sink{}
				c := dialRaw(t, startProxy(t, spoiled(t, d, &count), proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
				ok := func(sql string) {
					t.Helper()
					if p := c.query(sql).last(); p[0] == 0xff {
						t.Fatalf("%s: %q", sql, p)
					}
				}
				run := func(sql string, refused int64) {
					t.Helper()
					if control := !strings.Contains(sql, " t "); !prepared || control { // MySQL does not prepare BEGIN
						count.Store(refused)
						ok(sql)
						return
					}
					r := c.do(mysql.COM_STMT_PREPARE, []byte(sql))
					count.Store(refused)
					if p := c.do(mysql.COM_STMT_EXECUTE, append(bytes.Clone(r.packets[0][1:5]), 0, 1, 0, 0, 0)).last(); p[0] == 0xff {
						t.Fatalf("execute: %q", p)
					}
				}
				ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
				for _, sql := range test.before {
					run(sql, 0)
				}
				run(test.sql, test.refused)
				want, exact := test.want, test.exact
				if !prepared && !testserver.IsMySQL() { // there the stamp is a variable for texts, too
					want, exact = test.text, true
				}
				count.Store(0)
				ok("COMMIT")
				var got string
				if err := d.MariaDB(t).QueryRow("SELECT wc_writers FROM t WHERE id = 1").Scan(&got); err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("the row carries %q, want %q", got, want)
				}
				var coverage history.Coverage
				for _, ev := range k.all() {
					if ev.SQL == test.sql && ev.Kind == history.EventStmt {
						coverage = ev.Coverage
					}
				}
				if (coverage == history.CoverageExact) != exact {
					t.Errorf("coverage is %s", coverage)
				}
			})
		}
	}
}

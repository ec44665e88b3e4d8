package mysqlwire_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/oracle/isolation"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
)

// sampled opens sessions through a proxy that observes those that want marks with o.
func sampled(t *testing.T, d testserver.Database, k *sink, want string) []*sql.Conn {
	t.Helper()
	c := proxy.Config{Mode: proxy.Observe, Sample: 0.5}
	for ; ; c.Seed++ {
		got := ""
		for i := range want {
			got += map[bool]string{true: "o", false: "x"}[(&proxy.Session{ID: uint64(i + 1), Config: &c}).Observed()]
		}
		if got == want {
			break
		}
	}
	pool := startProxy(t, d, c, observer(k)).MariaDB(t)
	var all []*sql.Conn
	for range want {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		all = append(all, conn)
	}
	return all
}

func run(t *testing.T, c *sql.Conn, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.ExecContext(context.Background(), s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestSampleSchema lets a session that is not observed reorder the columns: an INSERT of an observed session without a list
// puts its values where the server would.
func TestSampleSchema(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{}
	on := sampled(t, d, k, "ox")
	run(t, on[0], "CREATE TABLE t (id int PRIMARY KEY, a int, b int)", "INSERT INTO t VALUES (1, 1, 2)")
	run(t, on[1], "/* a tag */ ALTER TABLE t MODIFY b int AFTER id")
	run(t, on[0], "INSERT INTO t VALUES (2, 2, 1)")
	stmt, err := on[1].PrepareContext(t.Context(), "ALTER TABLE t MODIFY a int AFTER id")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	run(t, on[0], "INSERT INTO t VALUES (3, 2, 1)")
	if _, err := stmt.Exec(); err != nil {
		t.Fatal(err)
	}
	run(t, on[0], "INSERT INTO t VALUES (4, 1, 2)")
	var n int
	if err := on[0].QueryRowContext(t.Context(), "SELECT count(*) FROM t WHERE a = 1 AND b = 2").Scan(&n); err != nil || n != 4 {
		t.Errorf("%d rows of 4 are right, %v", n, err)
	}
	inserts := 0
	for _, e := range k.all() {
		if e.Kind == history.EventStmt && e.Verb == "insert" {
			inserts++
		}
	}
	if inserts != 4 {
		t.Errorf("%d statements of the observed session are in the history, want 4", inserts)
	}
}

// TestSampleIsSound lets sessions, of which half are observed, write the same rows in transactions that lock first: no
// interleaving of them is an anomaly, whatever the others wrote in between.
func TestSampleIsSound(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{}
	on := sampled(t, d, k, "oxox")
	run(t, on[0], "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
	var all sync.WaitGroup
	for i, c := range on {
		all.Go(func() {
			for n := range 40 {
				run(t, c, "BEGIN", "SELECT v FROM t WHERE id = 1 FOR UPDATE", fmt.Sprintf("UPDATE t SET v = v + 1 WHERE id = %d", 1+(n+i)%3),
					fmt.Sprintf("DELETE FROM t WHERE id = %d", 2+n%2), "SELECT id, v FROM t WHERE id > 0",
					fmt.Sprintf("INSERT INTO t (id, v) VALUES (%d, %d) ON DUPLICATE KEY UPDATE v = v + 1", 2+(n+i)%2, n), []string{"COMMIT", "ROLLBACK"}[(n+i/2)%2])
			}
		})
	}
	all.Wait()
	c := isolation.New(isolation.Options{})
	for _, e := range k.all() {
		c.Add(e)
	}
	for _, f := range c.Summary() {
		t.Errorf("found %s", f.Title())
	}
	if seen := c.Coverage(); seen.Exact < 200 {
		t.Errorf("%s", seen)
	}
}

// TestSchemaWatch gives a session's commands in pieces of one byte and whole: what may change the schema is seen at once, and again
// with each piece of its answer.
func TestSchemaWatch(t *testing.T) {
	for _, c := range []struct {
		commands []string
		want     int // changes: one with the command and one with the answer
	}{
		{[]string{"\x03SELECT 'ALTER TABLE t'", "\x03 /* a; b */ update t set v = ';'", "\x03\x00\x01INSERT INTO t VALUES (1)", "\x0e", "\x17\x01\x00\x00\x00"}, 0},
		{[]string{"\x03ALTER TABLE t ADD x int"}, 2},
		{[]string{"\x03-- a\n(drop table t)"}, 2},
		{[]string{"\x03SELECT 1; ALTER TABLE t ADD x int", "\x03SELECT 1"}, 2},
		{[]string{"\x03\x00\x01CALL p()", "\x03EXECUTE s"}, 4},
		{[]string{"\x03/*!50000 CREATE TABLE x (a int) */"}, 2},
		{[]string{"\x16INSERT INTO t VALUES (?)", "\x17\x01\x00\x00\x00"}, 0},
		{[]string{"\x16ALTER TABLE t ADD x int", "\x17\x01\x00\x00\x00", "\x03SELECT 1", "\x17\x01\x00\x00\x00"}, 4},
		{[]string{"\x05shop"}, 2},
		{[]string{"\x03"}, 2},
		{[]string{""}, 0},
	} {
		for _, whole := range []bool{true, false} {
			n := 0
			request, answer := mysqlwire.WatchSchema(func() { n++ })
			for _, command := range c.commands {
				b := append([]byte{byte(len(command)), 0, 0, 0}, command...)
				b = append(b, 3, 0, 0, 1, 3, 'x', 'y') // what goes on with a command is none
				for whole && len(b) > 0 {
					request(b)
					b = nil
				}
				for i := range b {
					request(b[i : i+1])
				}
				answer()
			}
			if whole && n != c.want || n < c.want {
				t.Errorf("%q, whole %v: %d changes, want %d", c.commands, whole, n, c.want)
			}
		}
	}
}

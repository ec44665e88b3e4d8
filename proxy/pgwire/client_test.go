package pgwire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestClient uses what pgx offers: all its ways to execute, COPY, batches, notifications, large objects.
func TestClient(t *testing.T) {
	srv := testserver.Postgres(t)
	for _, mode := range modes {
		db := srv.Database(t)
		db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 100) i")
		ev := &events{}
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(ev))
		for _, how := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
			t.Run(fmt.Sprintf("%s/%s", mode, how), func(t *testing.T) {
				cfg, err := pgx.ParseConfig(r.through(db).URL())
				if err != nil {
					t.Fatal(err)
				}
				cfg.DefaultQueryExecMode = how
				conn, err := pgx.ConnectConfig(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				exercise(t, conn)
				if err := conn.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		r.stop()
		if mode == proxy.Observe {
			exact := 0
			for _, e := range ev.all() {
				if e.Coverage == history.CoverageExact {
					exact++
				}
			}
			if exact < 300 {
				t.Errorf("%d exact statements, want 300", exact)
			}
		}
	}
}

func exercise(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= 20; i++ {
		var v string
		must(conn.QueryRow(ctx, "SELECT v FROM t WHERE k = $1", i).Scan(&v))
		if v != fmt.Sprintf("v%d", i) {
			t.Fatalf("row %d: %q", i, v)
		}
		tag, err := conn.Exec(ctx, "UPDATE t SET v = v WHERE k = $1", i)
		if must(err); tag.String() != "UPDATE 1" {
			t.Fatalf("tag %q", tag)
		}
	}
	b := &pgx.Batch{}
	for i := 1; i <= 20; i++ {
		b.Queue("SELECT v FROM t WHERE k = $1", i)
		b.Queue("UPDATE t SET v = v WHERE k = $1", i)
	}
	res := conn.SendBatch(ctx, b)
	for i := 1; i <= 20; i++ {
		var v string
		must(res.QueryRow().Scan(&v))
		_, err := res.Exec()
		must(err)
	}
	must(res.Close())
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"k", "v"}, pgx.CopyFromSlice(50, func(i int) ([]any, error) {
		return []any{int32(1000 + i), "copied"}, nil
	}))
	if must(err); n != 50 {
		t.Fatalf("copied %d", n)
	}
	var out bytes.Buffer
	_, err = conn.PgConn().CopyTo(ctx, &out, "COPY (SELECT v FROM t WHERE k >= 1000) TO STDOUT")
	if must(err); strings.Count(out.String(), "copied") != 50 {
		t.Fatalf("copied out %q", out.String())
	}
	_, err = conn.Exec(ctx, "DELETE FROM t WHERE k >= 1000")
	must(err)
	tx, err := conn.Begin(ctx)
	must(err)
	los := tx.LargeObjects()
	oid, err := los.Create(ctx, 0)
	must(err)
	lo, err := los.Open(ctx, oid, pgx.LargeObjectModeRead|pgx.LargeObjectModeWrite)
	must(err)
	_, err = lo.Write(bytes.Repeat([]byte("z"), 100_000))
	must(err)
	_, err = lo.Seek(0, io.SeekStart)
	must(err)
	all, err := io.ReadAll(lo)
	if must(err); len(all) != 100_000 {
		t.Fatalf("large object of %d bytes", len(all))
	}
	must(tx.Rollback(ctx))
	_, err = conn.Exec(ctx, "LISTEN ch")
	must(err)
	_, err = conn.Exec(ctx, "NOTIFY ch, 'hi'")
	must(err)
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	note, err := conn.WaitForNotification(wait)
	if must(err); note.Payload != "hi" {
		t.Fatalf("notification %q", note.Payload)
	}
	_, err = conn.Exec(ctx, "UNLISTEN ch")
	must(err)
}

// TestUnixSocket reaches the server through its socket and listens on one.
func TestUnixSocket(t *testing.T) {
	srv := testserver.Postgres(t)
	dir := t.TempDir()
	for _, mode := range modes {
		r := start(t, proxy.Config{
			Listen:   proxy.Address{Network: "unix", Addr: fmt.Sprintf("%s/.s.PGSQL.%d", dir, 5555)},
			Upstream: proxy.Address{Network: "unix", Addr: fmt.Sprintf("%s/.s.PGSQL.%d", srv.Socket, srv.Port)}, Mode: mode,
		}, observer(&events{}))
		out, err := libpq(t, fmt.Sprintf("host=%s port=5555 user=%s dbname=postgres", dir, srv.User), "SELECT 1")
		if err != nil || out != "1" {
			t.Errorf("%s: %q, %v", mode, out, err)
		}
		r.stop()
	}
}

// TestReplication passes a replication session on as bytes.
func TestReplication(t *testing.T) {
	srv := testserver.Postgres(t)
	for _, mode := range modes {
		ev := &events{}
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(ev))
		out, err := libpq(t, fmt.Sprintf("host=127.0.0.1 port=%d user=%s password='%s' dbname=postgres replication=database", r.addr.Port, srv.User, srv.Password), "IDENTIFY_SYSTEM")
		if err != nil || !strings.Contains(out, "postgres") {
			t.Errorf("%s: %q, %v", mode, out, err)
		}
		r.stop()
		if n := len(ev.all()); n != 0 {
			t.Errorf("%s: %d events, want none", mode, n)
		}
	}
}

// TestSchemaChangedElsewhere changes the schema behind the proxy's back. The first statement that no longer fits is
// sent again as the client wrote it; then the catalog is read again.
func TestSchemaChangedElsewhere(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')")
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{}))
	w := dialWire(t, r.addr.String(), db.User, db.Name)
	w.step("Q SELECT v FROM t WHERE v = 'a'")
	db.Exec(t, "ALTER TABLE t DROP COLUMN k")
	w.step("Q SELECT v FROM t WHERE v = 'a'")
	for _, sql := range []string{"SELECT v FROM t WHERE v = 'a'", "UPDATE t SET v = 'b'"} {
		if got := strings.Join(w.step("Q "+sql), "\n"); strings.Contains(got, "ERROR") {
			t.Errorf("%s: %s", sql, got)
		}
	}
	// A column that the client itself got wrong does not make the catalog be read again.
	if got := strings.Join(w.step("Q SELECT nothere FROM t"), "\n"); !strings.Contains(got, "42703") {
		t.Errorf("got %s, want 42703", got)
	}
}

// TestChangedBehindBlock changes tables behind the proxy's back under an open transaction block: it goes on as it does directly, whatever the next
// statement is, simple, prepared before or prepared then. What was not changed is seen as before.
func TestChangedBehindBlock(t *testing.T) {
	srv := testserver.Postgres(t)
	const schema = "CREATE TABLE t (k int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b'); CREATE TABLE p (k text, b date, v int, PRIMARY KEY (k, b));" +
		"INSERT INTO p VALUES ('x', '2026-01-02', 3); CREATE TABLE old (LIKE t)"
	// s and u are prepared before; the image of v is wanted.
	before := []string{"P s |SELECT v FROM t WHERE v = 'a'", "P u |UPDATE t SET v = v WHERE v = 'b'", "S", "B  s|||", "E  0", "S", "B  u|||", "E  0", "S",
		"Q SELECT count(*) FROM t WHERE v = 'a'", "Q SELECT count(*) FROM p WHERE v = 3", "Q BEGIN", "Q SELECT 1"}
	changes := []string{"ALTER TABLE t ADD z int DEFAULT 7", "ALTER TABLE t RENAME k TO kk", "ALTER TABLE t DROP k", "ALTER TABLE t RENAME v TO w", "ALTER TABLE t DROP COLUMN v",
		"ALTER TABLE t DROP CONSTRAINT t_pkey", "ALTER TABLE p DROP v", "ALTER TABLE p RENAME b TO bb", "ALTER TABLE p DROP k"}
	texts := []string{"SELECT * FROM t", "UPDATE t SET v = 'c' WHERE v = 'b'", "DELETE FROM t RETURNING *", "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
		"WITH d AS (DELETE FROM t RETURNING *) INSERT INTO old SELECT * FROM d",
		"WITH d(x) AS (DELETE FROM t RETURNING t.*) INSERT INTO old (k) SELECT x::int FROM d RETURNING *", "SELECT DISTINCT v FROM t", "INSERT INTO t DEFAULT VALUES", "SELECT 1 FROM p FOR UPDATE",
		"UPDATE p SET k = k", "DELETE FROM p", "SELECT count(*) FROM p a, p b", "INSERT INTO p VALUES ('y', '2026-01-03')", "WITH p AS (UPDATE p SET v = 1 RETURNING *) TABLE p",
		// columns of the key that the client's text names itself, before or behind what is added
		"UPDATE t SET v = 'c' WHERE v = 'b' AND k = 2", "UPDATE t SET v = k WHERE v = 'b'", "DELETE FROM t a WHERE a.k = 1 RETURNING *", "SELECT k, v FROM t", "SELECT v FROM t WHERE k = 1 AND v = 'a'", "SELECT v FROM t a WHERE v = 'a' ORDER BY k",
		"SELECT b, p.k FROM p WHERE v = 3", "SELECT k FROM p", "SELECT 1 FROM t AS k WHERE k IS NOT NULL", "SELECT k FROM t AS k", "SELECT a.v FROM t a JOIN p ON a.k = p.v AND p.k = a.v", "UPDATE t SET v = b.k FROM p b WHERE t.k = b.v", "SELECT (SELECT k FROM t LIMIT 1) FROM p",
		"SELECT t.v FROM t, LATERAL (SELECT t.k) l", "DELETE FROM p WHERE k = 'x' AND p.b > '2026-01-01' AND v = 3"}
	play := func(addr string, db testserver.Database, change string, steps ...string) []string {
		db.Exec(t, "DROP TABLE IF EXISTS t, p, old; "+schema)
		w := dialWire(t, addr, db.User, db.Name)
		defer func() { _ = w.conn.Close() }()
		w.step("Q DISCARD ALL")
		var got []string
		for i, s := range append(before, steps...) {
			if i == len(before) {
				db.Exec(t, change)
			}
			got = append(append(got, "> "+s), w.step(s)...)
		}
		for i := range got {
			got[i] = number.ReplaceAllString(got[i], "N")
		}
		return got
	}
	direct, through := srv.Database(t).As(testserver.AppTrust), srv.Database(t).As(testserver.AppTrust)
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
	compare := func(change string, steps ...string) {
		t.Helper()
		want, got := play(srv.Address(), direct, change, steps...), play(r.addr.String(), through, change, steps...)
		if at := differ(want, got); at >= 0 {
			t.Errorf("%s\n%s", change, divergence(want, got, at))
		}
	}
	for i, change := range changes {
		compare(change, "B  s|||", "E  0", "S", "Q SELECT 1", "Q ROLLBACK")
		compare(change, "B  u|||", "E  0", "S", "Q SELECT 1", "Q ROLLBACK")
		for j, text := range texts {
			if table := strings.Fields(change)[2]; !strings.Contains(text, " "+table) || (i+j)%3 != 2 && *alikeFor == 0 {
				continue // make soak compares all
			}
			ways := [][]string{{"Q " + text, "Q COMMIT"}, {"P n |" + text, "S", "B  n|||", "D P", "E  0", "S", "Q COMMIT"},
				{"Q COMMIT", "Q SELECT 2; " + text, "Q " + text}, {"P |" + text, "D S", "B  |||", "E  0", "S", "Q COMMIT"}}
			compare(change, ways[(i+j)%4]...)
			if *alikeFor > 0 {
				compare(change, ways[(i+j+1)%4]...)
			}
		}
	}
	changed, seen := 0, 0
	for _, e := range ev.all() {
		if e.SQL == "UPDATE p SET k = k" && e.Coverage == history.CoverageExact {
			seen++
		}
		if strings.Contains(e.Why, "another one than when") {
			changed++
		}
	}
	if changed == 0 || seen == 0 {
		t.Errorf("%d statements met a change, %d were seen although another table was changed", changed, seen)
	}
}

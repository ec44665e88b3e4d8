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
// refused, which nothing can prevent; then the catalog is read again.
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

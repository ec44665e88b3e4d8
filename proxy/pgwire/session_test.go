package pgwire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/record"
)

var modes = []proxy.Mode{proxy.Pass, proxy.Observe}

// conninfo gives a connection string of libpq's.
func conninfo(d testserver.Database, more string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s password='%s' dbname=%s %s", d.Port, d.User, d.Password, d.Name, more)
}

func libpq(t *testing.T, info, sql string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-d", info, "-c", sql).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestTLS(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	dir := filepath.Dir(srv.CAFile)
	own := proxy.ClientTLS{Cert: filepath.Join(dir, "server.pem"), Key: filepath.Join(dir, "server.key")}
	ssl := "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
	for _, c := range []struct {
		name   string
		config proxy.Config
		info   string
		want   string // of ssl, or part of the error
	}{
		{"pass end to end", proxy.Config{Mode: proxy.Pass}, "sslmode=require channel_binding=require", "t"},
		{"pass end to end, plain", proxy.Config{Mode: proxy.Pass}, "sslmode=disable", "f"},
		{"pass with the server's certificate", proxy.Config{Mode: proxy.Pass, ClientTLS: own}, "sslmode=require channel_binding=require", "t"},
		{"observe, generated, no binding", proxy.Config{Mode: proxy.Observe}, "sslmode=require channel_binding=disable", "t"},
		// libpq says that it could bind: the upstream leg, which is local, goes without TLS then.
		{"observe, generated", proxy.Config{Mode: proxy.Observe}, "sslmode=require", "f"},
		{"observe, generated, binding required", proxy.Config{Mode: proxy.Observe}, "sslmode=require channel_binding=require", "channel binding is required"},
		{"observe with the server's certificate", proxy.Config{Mode: proxy.Observe, ClientTLS: own}, "sslmode=require channel_binding=require", "t"},
		{"observe, verified upstream", proxy.Config{Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Verify: proxy.VerifyFull, RootCA: srv.CAFile, ServerName: "localhost"}},
			"sslmode=require channel_binding=disable", "t"},
		{"observe, verified upstream, binding missed", proxy.Config{Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Verify: proxy.VerifyFull, RootCA: srv.CAFile, ServerName: "localhost"}},
			"sslmode=require", "channel_binding=disable"},
		{"observe, chain only", proxy.Config{Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Verify: proxy.VerifyCA, RootCA: srv.CAFile, ServerName: "elsewhere"}},
			"sslmode=require channel_binding=disable", "t"},
		{"observe, wrong name", proxy.Config{Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Verify: proxy.VerifyFull, RootCA: srv.CAFile, ServerName: "elsewhere"}},
			"sslmode=require", "certificate is valid for"},
		{"upstream always", proxy.Config{Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require}}, "sslmode=disable", "t"},
		{"upstream never", proxy.Config{Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Plain}}, "sslmode=require", "f"},
		{"pass, upstream never", proxy.Config{Mode: proxy.Pass, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Plain}}, "sslmode=require", "f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Upstream = upstream(srv)
			r := start(t, c.config, observer(&events{}))
			out, err := libpq(t, conninfo(r.through(db), c.info), ssl)
			if !strings.Contains(out, c.want) || (err == nil) != (len(c.want) == 1) {
				t.Fatalf("psql: %q, %v; want %q", out, err, c.want)
			}
			if len(c.want) > 1 {
				return
			}
			cfg, err := pgx.ParseConfig(conninfo(r.through(db), strings.Replace(c.info, "channel_binding=require", "", 1)))
			if err != nil {
				t.Fatal(err)
			}
			conn, err := pgx.ConnectConfig(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM generate_series(1, $1::int)", 1000).Scan(&n); err != nil || n != 1000 {
				t.Fatalf("pgx: %d, %v", n, err)
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	const nobody = "127.0.0.1:1"
	for _, mode := range modes {
		r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: nobody}, Mode: mode}, observer(&events{}))
		for _, info := range []string{"sslmode=disable", "sslmode=prefer", "sslmode=require"} {
			out, err := libpq(t, fmt.Sprintf("host=127.0.0.1 port=%d user=x dbname=x %s", r.addr.Port, info), "SELECT 1")
			if err == nil || !strings.Contains(out, "08001") && !strings.Contains(out, "could not reach the server") ||
				!strings.Contains(out, nobody) || !strings.Contains(out, "connection refused") || !strings.Contains(out, "HINT") {
				t.Errorf("%s, %s: %q, %v; want the address, the reason and a hint", mode, info, out, err)
			}
		}
	}
}

func TestWrongPassword(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	db.Password = "wrong"
	for _, mode := range modes {
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(&events{}))
		_, err := pgx.Connect(t.Context(), r.through(db).URL())
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "28P01" {
			t.Errorf("%s: %v; want SQLSTATE 28P01", mode, err)
		}
	}
}

func TestCancel(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	for _, mode := range modes {
		for _, ssl := range []string{"disable", "require"} {
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(&events{}))
			conn, err := pgx.Connect(t.Context(), conninfo(r.through(db), "sslmode="+ssl))
			if err != nil {
				t.Fatal(err)
			}
			pid := conn.PgConn().PID()
			watch := db.Postgres(t)
			done := make(chan error, 1)
			go func() {
				_, err := conn.Exec(context.Background(), "SELECT pg_sleep(60)")
				done <- err
			}()
			for active := false; !active; { // the server says when it is there
				if err := watch.QueryRow(t.Context(), "SELECT count(*) > 0 FROM pg_stat_activity WHERE pid = $1 AND query ~ 'pg_sleep' AND state = 'active'", pid).Scan(&active); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
				t.Errorf("%s/%s: cancel: %v", mode, ssl, err)
			}
			var e *pgconn.PgError
			if err := <-done; !errors.As(err, &e) || e.Code != "57014" {
				t.Errorf("%s/%s: %v; want SQLSTATE 57014", mode, ssl, err)
			}
			var one int
			if err := conn.QueryRow(t.Context(), "SELECT 1").Scan(&one); err != nil {
				t.Errorf("%s/%s: after cancel: %v", mode, ssl, err)
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
			r.stop()
		}
	}
}

func TestBadLength(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	for _, c := range []struct {
		name string
		send []byte
	}{
		{"2 GiB", []byte{'Q', 0x80, 0, 0, 0}},
		{"4 GiB", []byte{'Q', 0xff, 0xff, 0xff, 0xff}},
		{"too short", []byte{'Q', 0, 0, 0, 3}},
		{"zero", []byte{'P', 0, 0, 0, 0}},
		{"longer than the server takes of its kind", append([]byte{'D', 0, 0, 0x75, 0x30}, bytes.Repeat([]byte{'S'}, 29996)...)},
		{"no kind of message", []byte{'z', 0, 0, 0, 4}}, // the near miss: the server says why
	} {
		at := func(addr string) string {
			w := dialWire(t, addr, testserver.AppTrust, db.Name)
			w.raw(c.send)
			var got []string
			for {
				kind, body, err := w.tryRead()
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("%s at %s: %v", c.name, addr, err)
				}
				if err != nil { // the end, or a reset where what was sent has not been read
					return strings.Join(got, "\n")
				}
				got = append(got, w.show(kind, body))
			}
		}
		want := at(srv.Address())
		for _, mode := range modes {
			t.Run(c.name+"/"+string(mode), func(t *testing.T) {
				r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(&events{}))
				if got := at(r.addr.String()); got != want {
					t.Errorf("got %s; want %s", got, want)
				}
			})
		}
	}
}

func TestPasswordLength(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Pass}, nil)
	conn, err := net.Dial("tcp", r.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	body := append([]byte{0, 3, 0, 0}, "user\x00"+testserver.AppClear+"\x00database\x00"+db.Name+"\x00\x00"...)
	hello := append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
	if _, err := conn.Write(append(hello, 'p', 0x3f, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || bytes.Contains(got, []byte("FATAL")) {
		t.Errorf("%q, %v; want the end alone, as from the server", got, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestServerDies kills the server while it sends a result.
func TestServerDies(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			srv, err := postgres.Start(t.Context(), engine.Options{Users: []engine.User{{Name: "u", Method: "trust", Password: "x"}}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := srv.Close(); err != nil {
					t.Log(err)
				}
			})
			ev := &events{}
			r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: srv.Address()}, Mode: mode}, observer(ev))
			w := dialWire(t, r.addr.String(), "u", "postgres")
			idle := dialWire(t, r.addr.String(), "u", "postgres")
			w.send('Q', "BEGIN\x00")
			w.until('Z', 1)
			w.send('Q', "SELECT i, repeat('x', 1000) FROM generate_series(1, 10000000) i\x00")
			w.until('D', 3)
			if err := srv.Kill(); err != nil {
				t.Fatal(err)
			}
			// The rest is as much as was under way, then what the server still said, then the end.
			var last []byte
			for {
				kind, body, err := w.tryRead()
				if err != nil || kind == 0 {
					break
				}
				last = append([]byte{kind}, body...)
			}
			if last[0] == 'E' && !bytes.Contains(last, []byte("57P0")) {
				t.Errorf("last message %q; want no error but the server's own", last)
			}
			var said []string
			for {
				kind, body, err := idle.tryRead()
				if err != nil || kind == 0 {
					break
				}
				said = append(said, fmt.Sprintf("%c %q", kind, body))
			}
			if got := strings.Join(said, "\n"); got != "" && !strings.Contains(got, "57P0") {
				t.Errorf("idle session: %s; want nothing but the server's own", got)
			}
			r.stop()
			if mode == proxy.Observe {
				closed := 0
				for _, e := range ev.all() {
					if e.Kind == history.EventClose {
						closed++
					}
				}
				if closed != 2 {
					t.Errorf("%d sessions closed in the history, want 2", closed)
				}
			}
		})
	}
}

// tryRead is read for connections that may break.
func (w *wire) tryRead() (kind byte, body []byte, err error) {
	if err := w.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, nil, err
	}
	var h [5]byte
	if _, err := io.ReadFull(w.in, h[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(h[1:])-4)
	_, err = io.ReadFull(w.in, body)
	return h[0], body, err
}

// TestClientVanishes lets a client go away in a transaction: its locks are free at once.
func TestClientVanishes(t *testing.T) {
	srv := testserver.Postgres(t)
	for _, mode := range modes {
		for _, how := range []string{"closed", "reset"} {
			t.Run(string(mode)+"/"+how, func(t *testing.T) {
				db := srv.Database(t).As(testserver.AppTrust)
				db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
				ev := &events{}
				r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(ev))
				w := dialWire(t, r.addr.String(), db.User, db.Name)
				w.send('Q', "BEGIN\x00")
				w.until('Z', 1)
				w.send('Q', "UPDATE t SET v = 2 WHERE k = 1\x00")
				w.until('Z', 1)
				if how == "reset" {
					if err := w.conn.(*net.TCPConn).SetLinger(0); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.conn.Close(); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				other := db.Postgres(t)
				if _, err := other.Exec(ctx, "UPDATE t SET v = 3 WHERE k = 1 AND v = 1"); err != nil {
					t.Fatalf("the lock is still held: %v", err)
				}
				r.stop()
				if mode == proxy.Pass {
					return
				}
				for _, e := range ev.all() {
					if e.Kind == history.EventEnd && e.Outcome != history.OutcomeAborted {
						t.Errorf("outcome %q, want aborted", e.Outcome)
					}
				}
			})
		}
	}
}

func TestShutdown(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode, Timeouts: proxy.Timeouts{Grace: 20 * time.Second}}, observer(&events{}))
			idle := dialWire(t, r.addr.String(), testserver.AppTrust, db.Name)
			busy := dialWire(t, r.addr.String(), testserver.AppTrust, db.Name)
			busy.send('Q', "BEGIN\x00")
			busy.until('Z', 1)
			stopped := make(chan struct{})
			go func() {
				r.stop()
				close(stopped)
			}()
			if got := strings.Join(idle.until('Z', 1), "\n"); !strings.Contains(got, "57P01") || !strings.HasSuffix(got, "EOF") {
				t.Errorf("idle: %s; want 57P01 and the end", got)
			}
			busy.send('Q', "SELECT 1\x00")
			busy.until('Z', 1)
			busy.send('Q', "COMMIT\x00")
			if got := strings.Join(busy.until('X', 1), "\n"); !strings.Contains(got, "COMMIT") || !strings.Contains(got, "57P01") {
				t.Errorf("busy: %s; want the answer to COMMIT, then 57P01", got)
			}
			<-stopped
		})
		for _, grace := range []time.Duration{time.Nanosecond, 20 * time.Millisecond} { // before and after Draining is noticed
			t.Run(fmt.Sprintf("%s/grace over/%v", mode, grace), func(t *testing.T) {
				r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode, Timeouts: proxy.Timeouts{Grace: grace}}, observer(&events{}))
				busy := dialWire(t, r.addr.String(), testserver.AppTrust, db.Name)
				busy.send('Q', "BEGIN\x00")
				busy.until('Z', 1)
				running := dialWire(t, r.addr.String(), testserver.AppTrust, db.Name)
				running.send('Q', "DO $$BEGIN RAISE NOTICE 'begun'; PERFORM pg_sleep(30); END$$\x00")
				running.until('N', 1)
				r.stop()
				if got := strings.Join(busy.until('Z', 1), "\n"); !strings.Contains(got, "57P01") {
					t.Errorf("busy: %s; want 57P01", got)
				}
				if got := strings.Join(running.until('Z', 1), "\n"); !strings.Contains(got, "57P01") {
					t.Errorf("running: %s; want 57P01", got)
				}
			})
		}
	}
}

func TestTooMany(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Pass, Limits: proxy.Limits{Sessions: 1}}, nil)
	dialWire(t, r.addr.String(), testserver.AppTrust, db.Name)
	for _, info := range []string{"sslmode=disable", "sslmode=require"} {
		out, err := libpq(t, conninfo(r.through(db), info), "SELECT 1")
		if err == nil || !strings.Contains(out, "too many clients") {
			t.Errorf("%s: %q, %v; want too many clients", info, out, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
	for _, c := range []struct {
		name  string
		steps []string
		want  string // kinds of the messages of the last step
	}{
		{"implicit", []string{"Q UPDATE t SET v = 2 WHERE k = 1"}, "NCZ"},
		{"commit", []string{"Q BEGIN", "Q UPDATE t SET v = 2 WHERE k = 1", "Q COMMIT"}, "NCZ"},
		{"extended", []string{"P |UPDATE t SET v = 2 WHERE k = 1", "B  ||", "E  0", "S"}, "12NCZ"},
		{"flush", []string{"P |UPDATE t SET v = 2 WHERE k = 1", "B  ||", "E  0", "H", "W C 1", "S"}, "NZ"},
		{"several", []string{"Q SELECT 1; UPDATE t SET v = 2 WHERE k = 1; SELECT 2"}, "TDCCTDNCZ"},
		{"muted", []string{"Q SET client_min_messages = error", "Q UPDATE t SET v = 2 WHERE k = 1"}, "CZ"},
		{"muted and not", []string{"Q SET client_min_messages = error", "Q RESET client_min_messages", "Q UPDATE t SET v = 2 WHERE k = 1"}, "NCZ"},
		{"nothing", []string{"Q BEGIN", "Q UPDATE t SET v = 2 WHERE k = 1", "Q SELECT 1"}, "TDCZ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ev := &events{warn: func(e *history.Event) []record.Warning {
				if e.Kind != history.EventEnd || e.Outcome != history.OutcomeCommitted {
					return nil
				}
				return []record.Warning{{SQLState: "01WC2", Message: "lost update", Detail: "ä detail", Hint: "do", Schema: "public", Table: "t", Finding: "WC-123456"}}
			}}
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
			w := dialWire(t, r.addr.String(), db.User, db.Name)
			var got []string
			for _, s := range c.steps {
				got = w.step(s)
			}
			kinds := ""
			for _, m := range got {
				kinds += m[:1]
				if m[0] == 'N' && !strings.Contains(m, "VWARNING\\x00C01WC2\\x00Mlost update\\x00Dä detail\\x00Hdo\\x00") {
					t.Errorf("notice %s", m)
				}
			}
			if kinds != c.want {
				t.Errorf("messages %s, want %s:\n%s", kinds, c.want, strings.Join(got, "\n"))
			}
		})
	}
}

// TestStartupTimeout ends clients that do not come to the point, and no others.
func TestStartupTimeout(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	for _, mode := range modes {
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode, Timeouts: proxy.Timeouts{Startup: time.Second}}, observer(&events{}))
		var conns []*pgx.Conn
		for _, ssl := range []string{"disable", "require"} {
			conn, err := pgx.Connect(t.Context(), conninfo(r.through(db), "sslmode="+ssl))
			for tries := 1; err != nil && tries < 50; tries++ { // on a busy machine the time of the startup may not suffice
				conn, err = pgx.Connect(t.Context(), conninfo(r.through(db), "sslmode="+ssl))
			}
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		// When the mute client is ended, the time of the others' startup is over as well.
		mute, err := net.Dial("tcp", r.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = mute.Close() })
		if err := mute.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, mute); err != nil {
			t.Errorf("%s: mute client: %v; want the end", mode, err)
		}
		for _, conn := range conns {
			if _, err := conn.Exec(t.Context(), "SELECT pg_sleep(0.5)"); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
			if err := conn.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		r.stop()
	}
}

// TestPreparedAfterDDL changes tables under prepared statements. The client must be told what a server tells it: in a
// binary format other types would be misread.
func TestPreparedAfterDDL(t *testing.T) {
	srv := testserver.Postgres(t)
	play := func(addr, elsewhere string, db testserver.Database) (out []string) {
		one := dialWire(t, addr, db.User, db.Name)
		two := dialWire(t, elsewhere, db.User, db.Name)
		two.step("Q CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)")
		one.step("P all|SELECT * FROM t")
		one.step("P some|SELECT v FROM t WHERE id = 1")
		one.step("P put|UPDATE t SET v = v + 1 WHERE id = 1")
		one.step("P back|UPDATE t SET v = v + 1 RETURNING *")
		one.step("S")
		for _, ddl := range []string{"SELECT 1", "ALTER TABLE t ADD COLUMN w int DEFAULT 7", "ALTER TABLE t ALTER v TYPE bigint", "ALTER TABLE t DROP COLUMN w",
			"DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 5)"} {
			two.step("Q " + ddl)
			for _, name := range []string{"all", "some", "put", "back"} {
				for range 2 {
					for _, step := range []string{"B  " + name + "|||1", "E ", "S"} {
						for _, line := range one.step(step) {
							out = append(out, ddl+", "+name+": "+line)
						}
					}
				}
			}
		}
		return out
	}
	direct := play(srv.Address(), srv.Address(), srv.Database(t).As(testserver.AppTrust))
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{}))
	for _, elsewhere := range []string{r.addr.String(), srv.Address()} {
		got := play(r.addr.String(), elsewhere, srv.Database(t).As(testserver.AppTrust))
		if diff := cmp.Diff(direct, got); diff != "" {
			t.Errorf("changed through %s (-direct +proxy):\n%s", elsewhere, diff)
		}
	}
}

package pgwire_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestOwnQuestions asks the proxy's questions, after DDL of another session, where they could disturb something.
func TestOwnQuestions(t *testing.T) {
	srv := testserver.Postgres(t)
	play := func(addr, database string) []string {
		w := dialWire(t, addr, testserver.AppTrust, database)
		other := dialWire(t, addr, testserver.AppTrust, database)
		var out []string
		for _, step := range []string{
			// A client that is idle and has asked for nothing yet.
			"2 Q SELECT query, state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
			"1 P |SELECT v FROM t WHERE k = $1", "1 D S", "1 S", "2 Q CREATE TABLE x (a int)", "1 B |||", "1 E", "1 S", "1 B ||1", "1 E", "1 S",
			"1 P named|SELECT v FROM t WHERE k = $1", "1 S", "2 Q DROP TABLE x", "1 B  named||1", "1 E", "1 S",
			"1 Q SELECT name, statement FROM pg_prepared_statements WHERE name <> 'named'",
			// current_schema() makes the schema for temporary tables, so that the transaction cannot be prepared.
			"1 Q SET search_path = 'pg_temp'", "1 Q BEGIN", "1 Q SELECT current_schema() ~ 'pg_temp'", "1 Q PREPARE TRANSACTION 'a'",
			"1 Q SET search_path = 'public'", "1 Q BEGIN", "1 Q SELECT current_schema()", "1 Q ROLLBACK",
		} {
			out = append(out, step)
			who, step, _ := strings.Cut(step, " ")
			out = append(out, map[string]*wire{"1": w, "2": other}[who].step(step)...)
		}
		return out
	}
	setup := []string{"CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')"}
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(srv.Address(), direct.Name)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, setup...)
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{}))
	if d := cmp.Diff(want, play(r.addr.String(), db.Name)); d != "" {
		t.Errorf("-direct +observe:\n%s", d)
	}
}

// TestSocketMode lets all users connect, as the server's own socket does.
func TestSocketMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".s.PGSQL.5555")
	start(t, proxy.Config{Listen: proxy.Address{Network: "unix", Addr: path}, Upstream: proxy.Address{Network: "tcp", Addr: "127.0.0.1:1"}}, nil)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o777 {
		t.Errorf("mode %o, want 777", got)
	}
}

// TestCloseNotify ends sessions within TLS: the end is said, so that it cannot be mistaken for a cut.
func TestCloseNotify(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	r := map[string]string{"direct": srv.Address()}
	for _, mode := range modes {
		r[string(mode)] = start(t, proxy.Config{Upstream: upstream(srv), Mode: mode, ClientTLS: proxy.ClientTLS{
			Cert: filepath.Join(filepath.Dir(srv.CAFile), "server.pem"), Key: filepath.Join(filepath.Dir(srv.CAFile), "server.key"),
		}}, observer(&events{})).addr.String()
	}
	for name, addr := range r {
		for _, last := range []string{"X", "Q SELECT pg_terminate_backend(pg_backend_pid())"} {
			raw, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := raw.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
				t.Fatal(err)
			}
			if n, err := raw.Read(make([]byte, 1)); n != 1 {
				t.Fatal(err)
			}
			conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
			params := fmt.Sprintf("\x00\x03\x00\x00user\x00%s\x00database\x00%s\x00\x00", testserver.AppTrust, db.Name)
			if _, err := conn.Write(append([]byte{0, 0, 0, byte(len(params) + 4)}, params...)); err != nil {
				t.Fatal(err)
			}
			kind, sql, _ := strings.Cut(last, " ")
			body := []byte(sql)
			if sql != "" {
				body = append(body, 0)
			}
			if _, err := conn.Write(message(kind[0], body)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("%s, %s: %v; want EOF behind close_notify", name, last, err)
			}
			_ = conn.Close() // the other side is gone
		}
	}
}

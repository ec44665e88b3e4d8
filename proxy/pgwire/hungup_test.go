package pgwire_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestClientHangsUp lets a client hang up while the server executes a statement. A server that watches its connections meanwhile
// (client_connection_check_interval) must notice it and release the locks. One that does not executes what the client has sent behind it. The
// answers to a client that stays are the same whether the server watches or not.
func TestClientHangsUp(t *testing.T) {
	srv := testserver.Postgres(t)
	pipelines := map[string]func(w *wire, slow string){
		"a query": func(w *wire, slow string) { w.send('Q', slow+"; UPDATE t SET v = v + 1\x00") },
		// Which statement the name means depends on the answer to the last Parse, which is behind the statement.
		"a Bind behind": func(w *wire, slow string) {
			w.send('P', "w\x00UPDATE t SET v = v + 1 RETURNING v\x00\x00\x00")
			w.send('S', "")
			w.send('Q', slow+"\x00")
			w.send('C', "Sw\x00")
			w.send('P', "w\x00UPDATE t SET v = v + 1\x00\x00\x00")
			w.send('S', "")
			w.send('B', "\x00w\x00\x00\x00\x00\x00\x00\x00")
			w.send('E', "\x00\x00\x00\x00\x00")
			w.send('S', "")
		},
	}
	server := proxy.UpstreamTLS{Mode: proxy.Require}
	client := proxy.ClientTLS{Cert: filepath.Join(filepath.Dir(srv.CAFile), "server.pem"), Key: filepath.Join(filepath.Dir(srv.CAFile), "server.key")}
	for name, config := range map[string]*proxy.Config{
		"directly": nil, "pass": {Mode: proxy.Pass}, "observe": {Mode: proxy.Observe},
		"pass, TLS": {Mode: proxy.Pass, UpstreamTLS: server, ClientTLS: client}, "observe, TLS": {Mode: proxy.Observe, UpstreamTLS: server, ClientTLS: client},
	} {
		for what, send := range pipelines {
			for _, ends := range []string{"watched", "not watched", "stays"} {
				t.Run(name+", "+what+", "+ends, func(t *testing.T) {
					db := srv.Database(t).As(testserver.AppTrust)
					db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
					addr := srv.Address()
					if config != nil {
						c := *config
						c.Upstream = upstream(srv)
						addr = start(t, c, observer(&events{})).addr.String()
					}
					w, other := dialWire(t, addr, db.User, db.Name), db.Postgres(t)
					if ends != "not watched" {
						w.step("Q SET client_connection_check_interval = '50ms'")
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					exec := func(sql string) {
						t.Helper()
						if _, err := other.Exec(ctx, sql); err != nil {
							t.Fatalf("%s: %v", sql, err)
						}
					}
					if ends == "watched" {
						w.step("Q BEGIN")
						w.step("Q UPDATE t SET v = 10")
						send(w, "SELECT pg_sleep(3600)")
						w.conn.Close()
						exec("UPDATE t SET v = v + 1") // waits for the lock
					} else {
						exec("SELECT pg_advisory_lock(1)")
						send(w, "SELECT pg_advisory_lock(1)")
						for waits := false; !waits; {
							if err := other.QueryRow(ctx, "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'").Scan(&waits); err != nil {
								t.Fatal(err)
							}
						}
						if ends == "stays" {
							exec("SELECT pg_sleep(0.2)")
							exec("SELECT pg_advisory_unlock(1)")
							w.until('C', 2)
						} else {
							if err := w.conn.(*net.TCPConn).CloseWrite(); err != nil {
								t.Fatal(err)
							}
							exec("SELECT pg_advisory_unlock(1)")
							w.until(0, 1)
						}
					}
					for v := 0; v != 2 && ctx.Err() == nil; { // the update of a client that does not wait
						if err := other.QueryRow(ctx, "SELECT v FROM t").Scan(&v); err != nil {
							t.Fatalf("v is not 2: %v", err)
						}
					}
				})
			}
		}
	}
}

package pgwire_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// pipeline sends messages without reading the answers until no more fit into the connections.
func (w *wire) pipeline(messages []byte) {
	w.t.Helper()
	if err := w.conn.(*net.TCPConn).SetReadBuffer(1 << 16); err != nil {
		w.t.Fatal(err)
	}
	for sent := 0; sent < 200<<20; {
		if err := w.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			w.t.Fatal(err)
		}
		n, err := w.conn.Write(messages)
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			w.t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	w.t.Fatal("the connections take 200 MB of requests without a reader for the answers")
}

// TestClientDiesWhilePipelining lets a client go away that holds a lock and has sent so many requests without reading the answers that every
// connection is full. Its session must end all the same, at the server too.
func TestClientDiesWhilePipelining(t *testing.T) {
	srv := testserver.Postgres(t)
	query := message('P', []byte("\x00SELECT repeat('x', 2000)\x00\x00\x00"))
	query = append(query, message('B', []byte("\x00\x00\x00\x00\x00\x00\x00\x00"))...)
	query = append(query, message('E', []byte("\x00\x00\x00\x00\x00"))...)
	query = append(query, message('S', nil)...)
	many := []byte(strings.Repeat(string(query), 500))
	for _, c := range []struct {
		name   string
		config proxy.Config
	}{
		{"pass", proxy.Config{Mode: proxy.Pass}},
		{"observe", proxy.Config{Mode: proxy.Observe}},
		{"pass, TLS to the server", proxy.Config{Mode: proxy.Pass, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require}}},
		{"observe, TLS to the server", proxy.Config{Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := srv.Database(t).As(testserver.AppTrust)
			db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
			other := db.Postgres(t)
			ev := &events{}
			c.config.Upstream = upstream(srv)
			r := start(t, c.config, observer(ev))
			w := dialWire(t, r.addr.String(), db.User, db.Name)
			w.step("Q BEGIN")
			w.step("Q UPDATE t SET v = 2 WHERE k = 1")
			w.pipeline(many)
			if err := w.conn.Close(); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := other.Exec(ctx, "UPDATE t SET v = 3 WHERE k = 1 AND v = 1"); err != nil {
				t.Fatalf("the lock is still held: %v", err)
			}
			r.stop()
			for _, e := range ev.all() {
				if e.Kind == history.EventEnd && e.Outcome != history.OutcomeAborted {
					t.Errorf("outcome %q, want aborted", e.Outcome)
				}
			}
		})
	}
}

// TestBadLengthWhileNotReading lets a client that does not read its answers send a message of an impossible length: its session ends.
func TestBadLengthWhileNotReading(t *testing.T) {
	srv := testserver.Postgres(t)
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			db := srv.Database(t).As(testserver.AppTrust)
			db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(&events{}))
			w := dialWire(t, r.addr.String(), db.User, db.Name, "application_name", "full")
			w.step("Q BEGIN")
			w.step("Q UPDATE t SET v = 2 WHERE k = 1")
			w.send('Q', "SELECT repeat('x', 2000) FROM generate_series(1, 1000000)\x00")
			other := db.Postgres(t)
			for full := 0; full < 20; full++ { // looks in a row that find the server waiting: then no connection takes more
				var waits bool
				if err := other.QueryRow(t.Context(), "SELECT wait_event = 'ClientWrite' FROM pg_stat_activity WHERE application_name = 'full' AND wait_event IS NOT NULL UNION ALL SELECT false LIMIT 1").Scan(&waits); err != nil {
					t.Fatal(err)
				}
				if !waits {
					full = 0
				}
			}
			w.raw([]byte{'Q', 0, 0, 0, 3})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := other.Exec(ctx, "UPDATE t SET v = 3 WHERE k = 1 AND v = 1"); err != nil {
				t.Fatalf("the lock is still held: %v", err)
			}
		})
	}
}

// closedGate lets nothing pass. It says when a session waits, and when its wait ended.
type closedGate struct{ waits, ended chan struct{} }

func (g closedGate) Enter(ctx context.Context, _ *proxy.Session, _ string) error {
	g.waits <- struct{}{}
	<-ctx.Done()
	g.ended <- struct{}{}
	return ctx.Err()
}

func (closedGate) Done(*proxy.Session, bool) {}
func (closedGate) Left(*proxy.Session)       {}

// TestServerEndsBeforeTurn lets the server end a session that waits for its turn: the wait ends, and the client learns why.
func TestServerEndsBeforeTurn(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	gate := closedGate{make(chan struct{}, 1), make(chan struct{}, 1)}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Control, Gate: gate}, observer(&events{}))
	w := dialWire(t, r.addr.String(), db.User, db.Name, "application_name", "waiting")
	w.send('Q', "SELECT 1\x00")
	<-gate.waits
	db.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'waiting'")
	select {
	case <-gate.ended:
	case <-time.After(patience):
		t.Fatal("the wait for the session's turn goes on after the server has ended the session")
	}
	if got := strings.Join(w.until('Z', 1), "\n"); !strings.Contains(got, "57P01") || !strings.HasSuffix(got, "EOF") {
		t.Errorf("got %s; want 57P01 and the end", got)
	}
}

// ticketGate lets the first statements pass, and holds back what comes behind them.
type ticketGate struct {
	closedGate
	tickets *atomic.Int64
}

func (g ticketGate) Enter(ctx context.Context, s *proxy.Session, text string) error {
	if g.tickets.Add(-1) >= 0 {
		return nil
	}
	return g.closedGate.Enter(ctx, s, text)
}

// TestClientEndsBeforeTurn lets a client hang up while its transaction waits for its turn: the wait ends, and the server releases the locks. A client that
// stays waits on, whatever it has sent meanwhile.
func TestClientEndsBeforeTurn(t *testing.T) {
	srv := testserver.Postgres(t)
	for name, config := range map[string]proxy.Config{"plain": {}, "TLS to the server": {UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require}}} {
		t.Run(name, func(t *testing.T) {
			db := srv.Database(t).As(testserver.AppTrust)
			db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
			gate := ticketGate{closedGate{make(chan struct{}, 2), make(chan struct{}, 2)}, new(atomic.Int64)}
			gate.tickets.Store(2)
			config.Upstream, config.Mode, config.Gate = upstream(srv), proxy.Control, gate
			addr := start(t, config, observer(&events{})).addr.String()
			stays := dialWire(t, addr, db.User, db.Name)
			stays.send('Q', "SELECT 1\x00")
			stays.until('Z', 1)
			leaves := dialWire(t, addr, db.User, db.Name)
			leaves.send('Q', "BEGIN; UPDATE t SET v = 2\x00")
			leaves.until('Z', 1)
			stays.send('Q', "UPDATE t SET v = v + 10\x00")
			stays.send('Q', "SELECT 2\x00")
			leaves.send('Q', "COMMIT\x00")
			<-gate.waits
			<-gate.waits
			leaves.conn.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := db.Postgres(t).Exec(ctx, "UPDATE t SET v = v + 100"); err != nil {
				t.Fatalf("the lock is still held: %v", err)
			}
			<-gate.ended
			if len(gate.ended) > 0 {
				t.Error("the wait of the client that stays has ended")
			}
		})
	}
}

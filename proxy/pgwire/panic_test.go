package pgwire_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/pgwire"
	"wirecheck/proxy/record"
	"wirecheck/rewrite/postgres"
)

// abandoned counts the sessions that the history says went on unobserved.
func (ev *events) abandoned() (n int) {
	for _, e := range ev.all() {
		if e.Kind == history.EventClose && e.Why != "" {
			n++
		}
	}
	return n
}

// TestPanicOfRecorder lets what gets the events panic, in each session at another event. The sessions go on, each message is the same as directly, and what was
// sent with hidden columns still shows none.
func TestPanicOfRecorder(t *testing.T) {
	srv := testserver.Postgres(t)
	setup, all := sessions(t, "testdata/sessions.txt")
	texts := len(all)
	all = append(all, prepared(all)...)
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(t, srv.Address(), direct.Name, all)
	for _, kind := range []history.EventKind{history.EventSession, history.EventStmt, history.EventEnd, history.EventClose} {
		t.Run(string(kind), func(t *testing.T) {
			db := srv.Database(t).As(testserver.AppTrust)
			db.Exec(t, setup...)
			seen := map[uint64]int{} // events of this kind by session
			ev := &events{warn: func(e *history.Event) []record.Warning {
				if e.Kind == kind && e.Why == "" {
					if seen[e.Session]++; seen[e.Session] > int(e.Session)%4 {
						panic("no more")
					}
				}
				return nil
			}}
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
			some := all
			if kind == history.EventSession || kind == history.EventClose { // come once in a session, whatever its statements
				some = all[:texts]
			}
			compare(t, some, want, play(t, r.addr.String(), db.Name, some))
			r.stop()
			if n := ev.abandoned(); n < 10 && kind != history.EventSession && kind != history.EventClose {
				t.Errorf("the history says of %d sessions that they went on unobserved", n)
			}
		})
	}
}

// TestPanicOfRewriter lets the rewriter panic: the sessions go on, and each message is the same as directly.
func TestPanicOfRewriter(t *testing.T) {
	srv := testserver.Postgres(t)
	setup, all := sessions(t, "testdata/sessions.txt")
	all = append(all, prepared(all)...)
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(t, srv.Address(), direct.Name, all)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, setup...)
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, pgwire.NewObserver(pgwire.ObserverConfig{
		Rewriter: &postgres.Rewriter{}, // it has no cache, and panics
		Recorder: record.NewRecorder("test", ev.sink),
	}))
	compare(t, all, want, play(t, r.addr.String(), db.Name, all))
	r.stop()
	if n := ev.abandoned(); n < len(all)*9/10 {
		t.Errorf("the history says of %d sessions of %d that they went on unobserved", n, len(all))
	}
}

// brokenGate panics.
type brokenGate struct{}

func (brokenGate) Enter(context.Context, *proxy.Session, string) error { panic("no gate") }
func (brokenGate) Done(*proxy.Session, bool)                           {}
func (brokenGate) Left(*proxy.Session)                                 { panic("no gate") }

// TestPanicOfGate ends the session, which nothing holds back any more, and no other.
func TestPanicOfGate(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Control, Gate: brokenGate{}}, observer(&events{}))
	for range 2 {
		w := dialWire(t, r.addr.String(), db.User, db.Name)
		w.send('Q', "SELECT 1\x00")
		if got := strings.Join(w.until('Z', 1), "\n"); !strings.Contains(got, "FATAL") || !strings.Contains(got, "XX000") || !strings.HasSuffix(got, "EOF") {
			t.Errorf("got %s; want FATAL XX000 and the end", got)
		}
	}
}

// brokenTap panics at its nth call.
type brokenTap struct {
	calls, at atomic.Int64
}

func (b *brokenTap) call() {
	if b.calls.Add(1) == b.at.Load() {
		panic(fmt.Sprintf("call %d", b.at.Load()))
	}
}
func (b *brokenTap) FromClient([]byte, time.Time) { b.call() }
func (b *brokenTap) FromServer(time.Time)         { b.call() }
func (b *brokenTap) ToClient([]byte, time.Time)   { b.call() }
func (b *brokenTap) Encrypted()                   { b.call() }
func (b *brokenTap) Closed(time.Time)             { b.call() }

// TestPanicOfTap lets the recorder of the traffic panic: the session goes on, and nothing is handed to the recorder any more.
func TestPanicOfTap(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	for _, mode := range modes {
		for at := int64(1); at < 12; at++ {
			tap := &brokenTap{}
			tap.at.Store(at)
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode, Tap: func(*proxy.Session) proxy.Tap { return tap }}, observer(&events{}))
			w := dialWire(t, r.addr.String(), db.User, db.Name)
			for range 3 {
				if got := strings.Join(w.step("Q SELECT 1"), "\n"); !strings.Contains(got, "SELECT 1") {
					t.Fatalf("%s, call %d: %s", mode, at, got)
				}
			}
			r.stop()
			if n := tap.calls.Load(); n != at {
				t.Errorf("%s: the tap was called %d times, want %d", mode, n, at)
			}
		}
	}
}

package pgwire_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// flood sends up to n bytes of messages over and over without reading, and stops if nobody takes them any more.
func (w *wire) flood(messages string, n int) {
	w.t.Helper()
	b := []byte(strings.Repeat(messages, 1+(1<<16)/len(messages)))
	for ; n > 0; n -= len(b) {
		if err := w.conn.SetWriteDeadline(time.Now().Add(700 * time.Millisecond)); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.conn.Write(b); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		} else if err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestUnansweredIsBounded sends millions of messages that have no answer, or whose answers the client does not read: what the proxy keeps of them is bounded.
func TestUnansweredIsBounded(t *testing.T) {
	const few = 16 << 20
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE sink (v text)")
	parse := func(name, sql string) string {
		return string(message('P', []byte(name+"\x00"+sql+"\x00\x00\x00")))
	}
	sync := string(message('S', nil))
	copyDone := string(message('c', nil))
	for _, c := range []struct {
		name     string
		before   string // a step
		messages string
	}{
		{"CopyDone", "", copyDone},
		{"CopyFail", "", string(message('f', []byte{0}))},
		{"CopyDone in a pipeline", "P |SELECT pg_sleep(100)", string(message('B', make([]byte, 8))) + string(message('E', make([]byte, 5))) + strings.Repeat(copyDone, 10_000)},
		{"Parse", "", parse("", "SELECT 1")},
		{"Parse with Sync", "", parse("", "SELECT 1") + sync},
		{"Parse with Flush", "", parse("", "SELECT 1") + string(message('H', nil))},
		{"Parse of long texts", "", parse("", "SELECT '"+strings.Repeat("x", 1<<19)+"'")},
		{"Parse of an error", "", parse("", "SELEC 1")},
		{"Describe", "P s|SELECT 1", string(message('D', []byte("Ss\x00")))},
		{"Sync", "", sync},
		{"Query", "", string(message('Q', []byte("SELECT 1\x00")))},
		{"Sync in a COPY", "q COPY sink FROM STDIN", sync},
		{"Sync and Flush in a COPY", "q COPY sink FROM STDIN", sync + string(message('H', nil))},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{}))
			p := leastPeak(few, func() {
				w := dialWire(t, r.addr.String(), db.User, db.Name)
				if c.before != "" {
					w.step(c.before)
				}
				w.flood(c.messages, 6<<20)
			})
			if p > few {
				t.Errorf("live heap grew by %d bytes, want at most %d", p, few)
			}
		})
	}
}

// TestPreparedTextsAreBounded prepares statements of 64 MiB in all: what the proxy remembers of them is bounded, and they work.
func TestPreparedTextsAreBounded(t *testing.T) {
	const few = 40 << 20 // the texts that are remembered, and those of the plans that all sessions share
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{}))
	w := dialWire(t, r.addr.String(), db.User, db.Name)
	p := kept(func() {
		for i := range 64 {
			w.step(fmt.Sprintf("P s%d|SELECT k, %d FROM t WHERE k = 1 OR '%s' = 'x'", i, i, strings.Repeat("x", 1000_000)))
			w.step("S")
		}
	})
	if p > few {
		t.Errorf("live heap grew by %d bytes, want at most %d", p, few)
	}
	for i := range 64 {
		w.step(fmt.Sprintf("B  s%d||", i))
		w.step("D P")
		w.step("E ")
		got := strings.Join(w.step("S"), " ")
		if !strings.Contains(got, fmt.Sprintf("\\x00\\x02\\x00\\x00\\x00\\x011\\x00\\x00\\x00%s%d\"", map[bool]string{true: "\\x01", false: "\\x02"}[i < 10], i)) {
			t.Fatalf("statement %d: %s", i, got)
		}
	}
}

// TestPortalsAreBounded binds more portals in a transaction than are remembered: they all work, and the history says that it does not know the rest.
func TestPortalsAreBounded(t *testing.T) {
	srv := testserver.Postgres(t)
	s := session{name: "portals", steps: []string{"Q CREATE TABLE t (k int); INSERT INTO t VALUES (1)", "Q BEGIN", "P s|SELECT k FROM t"}}
	for i := range 12_000 {
		s.steps = append(s.steps, fmt.Sprintf("B p%d s||", i))
	}
	s.steps = append(s.steps, "S", "D Pp0", "D Pp11999", "E p0", "E p11999", "E p9999", "D Ss", "B  s||", "E ", "S", "Q FETCH ALL p1", "Q EXECUTE s", "Q COMMIT", "Q SELECT k FROM t")
	want := play(t, srv.Address(), srv.Database(t).As(testserver.AppTrust).Name, []session{s})
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
	compare(t, []session{s}, want, play(t, r.addr.String(), srv.Database(t).As(testserver.AppTrust).Name, []session{s}))
	r.stop()
	if ev.abandoned() != 1 {
		t.Errorf("the history does not say that the session went on unobserved")
	}
}

// TestLongPipelines sends pipelines of any length before it reads the first answer. Their answers fit into the connections, so no one may wait for the other;
// and they are the same as without the proxy.
func TestLongPipelines(t *testing.T) {
	const n = 3_000
	srv := testserver.Postgres(t)
	repeat := func(steps ...string) []string {
		var all []string
		for range n / len(steps) {
			all = append(all, steps...)
		}
		return all
	}
	all := []session{
		{name: "Parse without Sync", steps: join(repeat("P |SELECT 1"), "S")},
		{name: "Parse without Sync, then an error", steps: join(repeat("P |SELECT 1"), "P |SELEC 1", repeat("P |SELECT 1", "B  ||", "E "), "S")},
		{name: "whole statements", steps: join(repeat("P |INSERT INTO t VALUES (1)", "B  ||", "E ", "s"), "s", fmt.Sprintf("W Z %d", n/4+1))},
		{name: "simple queries", steps: join(repeat("q UPDATE t SET k = 1 WHERE false"), fmt.Sprintf("W Z %d", n))},
		{name: "only Sync", steps: join(repeat("s"), fmt.Sprintf("W Z %d", n))},
		{name: "CopyDone between statements", steps: join(repeat("P |SELECT 1", "c", "c"), "S")},
		{name: "COPY behind statements", steps: join(repeat("P |SELECT 1"), "P |COPY t FROM STDIN", "B  ||", "E ", repeat("s"), repeat("d 1"), "c", "S")},
		{name: "COPY in a simple query", steps: join("q COPY t FROM STDIN", repeat("s", "H"), repeat("d 1"), "c", "W Z 1")},
		{name: "two COPYs in a simple query", steps: join("q COPY t FROM STDIN; COPY t FROM STDIN", repeat("d 1", "s"), "c", repeat("d 2", "s"), "c", "s", "W Z 2")},
		{name: "failing COPY behind statements", steps: join(repeat("P |SELECT 1"), "P |COPY t FROM STDIN", "B  ||", "E ", "H", "W G 1", "d x", repeat("d 1"), "c", "S")},
	}
	for i := range all {
		all[i].steps = append(all[i].steps, "Q SELECT count(*) FROM t")
	}
	const setup = "CREATE TABLE t (k int)"
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup)
	want := play(t, srv.Address(), direct.Name, all)
	for _, mode := range modes {
		db := srv.Database(t).As(testserver.AppTrust)
		db.Exec(t, setup)
		ev := &events{}
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(ev))
		got := play(t, r.addr.String(), db.Name, all)
		for _, s := range all {
			if d := cmp.Diff(want[s.name], got[s.name]); d != "" {
				t.Errorf("%s: %s (-direct +proxy):\n%.2000s", mode, s.name, d)
			}
		}
		r.stop()
		seen := 0
		for _, e := range ev.all() {
			if e.SQL == "SELECT count(*) FROM t" {
				seen++
			}
		}
		if mode == proxy.Observe && seen != len(all) {
			t.Errorf("%d sessions were observed to their ends, want %d", seen, len(all))
		}
	}
}

// join makes one list of steps and lists of steps.
func join(parts ...any) (all []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			all = append(all, p)
		case []string:
			all = append(all, p...)
		}
	}
	return all
}

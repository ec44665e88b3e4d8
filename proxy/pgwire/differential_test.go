package pgwire_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/pgwire"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// events collects what is recorded.
type events struct {
	mu   sync.Mutex
	list []history.Event
	drop bool // keep none
	// warn gives the warnings that an event makes due.
	warn func(*history.Event) []record.Warning
}

func (ev *events) sink(e *history.Event) []record.Warning {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	if !ev.drop {
		kept := *e
		kept.Accesses = slices.Clone(e.Accesses) // the tracker uses their room again
		ev.list = append(ev.list, kept)
	}
	if ev.warn != nil {
		return ev.warn(e)
	}
	return nil
}

func (ev *events) all() []history.Event {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	return append([]history.Event{}, ev.list...)
}

func observer(ev *events) *pgwire.Observer {
	return pgwire.NewObserver(pgwire.ObserverConfig{
		Rewriter: postgres.New(rewrite.CaptureAuto),
		Recorder: record.NewRecorder("test", ev.sink),
	})
}

// session is one connection's script.
type session struct {
	name    string
	options []string
	steps   []string
}

// sessions reads the scripts: a line "# name" begins a session, "! k v" gives it a startup parameter.
func sessions(t testing.TB, file string) (setup []string, out []session) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "--"):
		case strings.HasPrefix(line, "# "):
			out = append(out, session{name: line[2:]})
		case strings.HasPrefix(line, "! "):
			k, v, _ := strings.Cut(line[2:], " ")
			s := &out[len(out)-1]
			s.options = append(s.options, k, v)
		case len(out) == 0:
			setup = append(setup, line)
		default:
			out[len(out)-1].steps = append(out[len(out)-1].steps, line)
		}
	}
	return setup, out
}

// prepared gives the sessions of simple queries once more, each statement in the extended protocol: described as a
// statement and as a portal, with results in binary.
func prepared(all []session) []session {
	var out []session
	for _, s := range all {
		p := session{name: s.name + ", prepared", options: s.options}
		for _, step := range s.steps {
			sql, ok := strings.CutPrefix(step, "Q ")
			if !ok || strings.Contains(sql, ";") {
				p.steps = nil
				break
			}
			p.steps = append(p.steps, "P |"+sql, "D S", "B  |||1", "D P", "E  3", "E  0", "S")
		}
		if len(p.steps) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// deep is a session of texts that the parser's stack would not hold.
func deep() session {
	s := session{name: "deep texts"}
	for _, f := range [][3]string{{"", "1", "+1"}, {"", "'a'", "||'b'"}, {"", "1", "::int"}, {"", "1", " IS NULL"}, {"NOT ", "true", ""}, {"(", "1", ")"}, {"abs(", "1", ")"}, {"(SELECT ", "1", ")"}} {
		s.steps = append(s.steps, "Q SELECT "+strings.Repeat(f[0], 24_000)+f[1]+strings.Repeat(f[2], 24_000))
	}
	return s
}

// play runs all sessions one after the other at an address.
func play(t testing.TB, addr, database string, all []session) map[string][]string {
	t.Helper()
	got := map[string][]string{}
	for _, s := range all {
		w := dialWire(t, addr, testserver.AppTrust, database, s.options...)
		var lines []string
		for _, step := range s.steps {
			lines = append(lines, "> "+step)
			lines = append(lines, w.step(step)...)
		}
		w.send('X', "")
		if k, body := w.read(); k != 0 {
			t.Fatalf("%s: after Terminate: %s", s.name, w.show(k, body))
		}
		if err := w.conn.Close(); err != nil {
			t.Fatal(err)
		}
		got[s.name] = lines
	}
	return got
}

// TestDifferential plays sessions directly and through the proxy: each message must be the same.
func TestDifferential(t *testing.T) {
	srv := testserver.Postgres(t)
	setup, all := sessions(t, "testdata/sessions.txt")
	all = append(append(all, prepared(all)...), deep())
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(t, srv.Address(), direct.Name, all)

	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		t.Run(string(mode), func(t *testing.T) {
			db := srv.Database(t).As(testserver.AppTrust)
			db.Exec(t, setup...)
			ev := &events{}
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(ev))
			got := play(t, r.addr.String(), db.Name, all)
			compare(t, all, want, got)
			if mode == proxy.Observe {
				r.stop()
				coverage(t, ev.all())
			}
		})
	}
}

// TestDifferentialSplit plays the sessions with both connections cut into small pieces: messages do not depend on the
// boundaries of packets.
func TestDifferentialSplit(t *testing.T) {
	srv := testserver.Postgres(t)
	setup, all := sessions(t, "testdata/sessions.txt")
	all = slices.DeleteFunc(all, func(s session) bool { return s.name == "big values" })
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(t, srv.Address(), direct.Name, all)

	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, setup...)
	back := splitter(t, srv.Address(), 7)
	r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: back}, Mode: proxy.Observe}, observer(&events{}))
	front := splitter(t, r.addr.String(), 3)
	compare(t, all, want, play(t, front, db.Name, all))
}

// splitter forwards connections to an address in pieces of 1 to most bytes.
func splitter(t *testing.T, to string, most int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		running.Wait()
	})
	pump := func(dst, src net.Conn, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		buf := make([]byte, 4096)
		for {
			n, err := src.Read(buf)
			for b := buf[:n]; len(b) > 0; {
				k := min(len(b), 1+rnd.IntN(most))
				if _, err := dst.Write(b[:k]); err != nil {
					break
				}
				b = b[k:]
			}
			if err != nil {
				_ = dst.Close() // both pumps close both
				_ = src.Close()
				return
			}
		}
	}
	running.Go(func() {
		for seed := uint64(1); ; seed++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			running.Go(func() { pump(s, c, seed) })
			running.Go(func() { pump(c, s, seed+1000) })
		}
	})
	return l.Addr().String()
}

func compare(t *testing.T, all []session, want, got map[string][]string) {
	t.Helper()
	for _, s := range all {
		if d := cmp.Diff(want[s.name], got[s.name]); d != "" {
			t.Errorf("%s (-direct +proxy):\n%s", s.name, d)
		}
	}
}

// coverage fails if nothing was rewritten: then the comparison proves nothing.
func coverage(t *testing.T, list []history.Event) {
	t.Helper()
	n := map[history.Coverage]int{}
	facts := 0
	for _, e := range list {
		if e.Kind == history.EventStmt {
			n[e.Coverage]++
			facts += len(e.Accesses)
		}
	}
	t.Log(fmt.Sprintf("statements by coverage: %v, facts: %d", n, facts))
	if n[history.CoverageExact] < 50 || facts < 50 {
		t.Errorf("statements by coverage: %v, facts %d; want 50 exact ones and 50 facts", n, facts)
	}
}

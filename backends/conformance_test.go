// The conformance suite: what a backend must do so that schedules can be executed on its servers. It provokes everything
// on a real server.

package backends_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
)

const (
	startLimit = 5 * time.Minute // for a server on a busy machine
	limit      = 2 * time.Minute // for anything that should happen at once
)

// enginesVariable names further engines to run the conformance suite on: "mysql tidb:2025-11". Each must be on the machine.
const enginesVariable = "WIRECHECK_TEST_ENGINES"

func TestConformance(t *testing.T) {
	for _, name := range append([]string{"postgres", "mariadb", "sqlite", "sqlite:wal"}, strings.Fields(os.Getenv(enginesVariable))...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := backends.ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			conform(t, d)
		})
	}
}

// conform tests a backend on a private server that it starts, and ends it.
func conform(t *testing.T, d engine.Descriptor) {
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	s, err := d.Start(ctx, engine.Options{Settings: d.LabSettings})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if err := s.Close(); err != nil && !closed {
			t.Error(err)
		}
	}()
	t.Logf("%s %s", d.Title, s.Version)
	labs, err := engine.OpenLabs(ctx, d, s.Target())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{engine: d, server: s, labs: labs}
	network, waits := !d.Embedded, !d.NeverWaits
	for _, part := range []struct {
		name  string
		needs bool // the product has what the part is about
		test  func(*testing.T, *world)
	}{
		{"Loopback", network, testLoopback},
		{"Answers", true, testAnswers},
		{"Ahead", network, testAhead},
		{"Local", network, testLocal},
		{"Network", network, testNetwork},
		{"Levels", true, testLevels},
		{"Waits", waits, testWaits},
		{"SeenLate", waits, testSeenLate},
		{"Refused", !waits, testRefused},
		{"NotBlocked", true, testNotBlocked},
		{"ThreeSessions", waits, testThreeSessions},
		{"Deadlock", waits, testDeadlock},
		{"HiddenCircle", waits, testHiddenCircle},
		{"LongStatus", waits, testLongStatus},
		{"Outcomes", true, testOutcomes},
		{"Killed", true, testKilled},
		{"Labs", true, testLabs},
		{"Reset", true, testReset},
		{"Abandoned", true, testAbandoned},
	} {
		t.Run(part.name, func(t *testing.T) {
			if !part.needs {
				t.Skipf("%s: embedded %v, never waits %v", d.Title, d.Embedded, d.NeverWaits)
			}
			part.test(t, w)
		})
	}
	if err := labs.Close(t.Context()); err != nil {
		t.Error(err)
	}
	t.Run("ServerDies", func(t *testing.T) { testServerDies(t, w) })
	closed = true
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Folder()); !os.IsNotExist(err) {
		t.Errorf("the server's folder is still there: %v", err)
	}
}

// world is what the parts of the suite share.
type world struct {
	engine engine.Descriptor
	server *engine.Server
	labs   *engine.Labs
}

// is reports whether the product is one of those.
func (w *world) is(names ...string) bool {
	for _, name := range names {
		if w.engine.Name == name {
			return true
		}
	}
	return false
}

// busy is a query that takes until somebody ends it.
func (w *world) busy() string {
	if w.engine.Embedded {
		return "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
	}
	return choose(w, "SELECT pg_sleep(1000)", "SELECT SLEEP(1000)")
}

func (w *world) postgres() bool { return w.engine.Protocol == engine.ProtocolPostgres }

// room is one lab with a watcher.
type room struct {
	*world
	t       *testing.T
	target  engine.Target
	watcher engine.Watcher
}

// room makes a lab with table t: (1, 10, 1), (2, 20, 2), (5, 50, 5).
func (w *world) room(t *testing.T) *room {
	t.Helper()
	target, err := w.labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.labs.Drop(context.Background(), target); err != nil {
			t.Error(err)
		}
	})
	watcher, err := w.engine.Watch(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := watcher.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &room{world: w, t: t, target: target, watcher: watcher}
	r.session().do("CREATE TABLE t (id int PRIMARY KEY, v int, k int); CREATE INDEX tk ON t (k)")
	r.session().do("INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (5, 50, 5)")
	return r
}

// session is one connection to the lab. Its methods fail the test.
type session struct {
	*room
	conn engine.Conn
}

func (r *room) session() *session {
	r.t.Helper()
	c, err := r.engine.Connect(r.t.Context(), r.target)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() }) // it may be gone
	return &session{room: r, conn: c}
}

// do executes a step that must succeed.
func (s *session) do(sql string) answer.Answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	a, err := s.conn.Do(ctx, sql)
	if err != nil || a.Err != nil {
		s.t.Fatalf("%s: %v, %v", sql, a.Err, err)
	}
	return a
}

// rows executes a step and prints the rows of its last result: "1|10 2|20".
func (s *session) rows(sql string) string {
	s.t.Helper()
	a := s.do(sql)
	return printRows(a.Results[len(a.Results)-1].Rows)
}

func printRows(rows [][]answer.Value) string {
	var lines []string
	for _, row := range rows {
		var fields []string
		for _, v := range row {
			if v == nil {
				fields = append(fields, "NULL")
			} else {
				fields = append(fields, string(v))
			}
		}
		lines = append(lines, strings.Join(fields, "|"))
	}
	return strings.Join(lines, " ")
}

// try executes a step that may fail, and gives what it did to the transaction.
func (s *session) try(sql string) (answer.Answer, answer.Outcome) {
	s.t.Helper()
	return s.start(sql).wait()
}

// pending is a step whose answer has not been looked at.
type pending struct {
	*session
	sql  string
	done chan struct{}
	a    answer.Answer // these two are valid once done is closed
	err  error
}

// start submits a step.
func (s *session) start(sql string) *pending {
	p := &pending{session: s, sql: sql, done: make(chan struct{})}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		p.a, p.err = s.conn.Do(ctx, sql)
		close(p.done)
	}()
	return p
}

func (p *pending) wait() (answer.Answer, answer.Outcome) {
	<-p.done // Do ends within its limit
	return p.a, p.engine.Outcome(p.a, p.err)
}

// succeed waits for an answer without error.
func (p *pending) succeed() {
	p.t.Helper()
	if a, o := p.wait(); o.Effect != answer.EffectNone {
		p.t.Fatalf("%s: %+v, %v, %v", p.sql, o, a.Err, p.err)
	}
}

func (p *pending) answered() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// look asks the watcher.
func (r *room) look(sessions ...*session) []engine.Wait {
	r.t.Helper()
	ids := make([]uint64, len(sessions))
	for i, s := range sessions {
		ids[i] = s.conn.ID()
	}
	waits, err := r.watcher.Look(r.t.Context(), ids)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(waits) != len(ids) {
		r.t.Fatalf("%d waits for %d sessions", len(waits), len(ids))
	}
	return waits
}

// blocked looks until the step of the first session is blocked for good. The others are also looked at.
func (p *pending) blocked(others ...*session) engine.Wait {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < limit; {
		if w := p.look(append([]*session{p.session}, others...)...)[0]; w.Blocked && !w.Cycle {
			if p.answered() {
				p.t.Fatalf("%s: it was said to be blocked, but its answer was on its way", p.sql)
			}
			return w
		}
		if p.answered() {
			p.t.Fatalf("%s: answered (%v, %v) instead of blocked", p.sql, p.a.Err, p.err)
		}
	}
	p.t.Fatalf("%s: never seen to be blocked", p.sql)
	return engine.Wait{}
}

// never looks until the answer is there; the step must not be said to be blocked.
func (p *pending) never() {
	p.t.Helper()
	looks := 0
	for !p.answered() {
		if w := p.look(p.session)[0]; w.Blocked {
			p.t.Errorf("%s: said to be blocked: %+v", p.sql, w)
			break
		}
		looks++
	}
	if looks == 0 {
		p.t.Logf("%s: answered before the first look", p.sql)
	}
	p.succeed()
}

// choose picks by protocol. A product that has none takes the first that is given besides, or what MySQL does.
func choose(w *world, postgres, mysql string, embedded ...string) string {
	if w.engine.Embedded && len(embedded) > 0 {
		return embedded[0]
	}
	if w.postgres() {
		return postgres
	}
	return mysql
}

// word is for messages.
func word(o answer.Outcome) string {
	return fmt.Sprintf("%s (%s, retry %v)", o.Effect, o.Reason, o.Retry)
}

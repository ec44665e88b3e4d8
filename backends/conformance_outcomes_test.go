package backends_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// outcomeCase provokes one error.
type outcomeCase struct {
	name  string
	on    []string
	other string // what another session does first, and leaves open
	level string // SetLevel, before setup
	setup string // what the session does first
	// meanwhile is what the other session does between setup and step, so that the step has something to lose against.
	meanwhile string
	step      string
	want      answer.Outcome
	after     answer.State // zero: Idle
	journal   string       // the journal mode that it is about (SQLite); empty: any
	committed string       // what a third session then sees of SELECT v FROM t WHERE id = 1 after the session's ROLLBACK
}

func outcome(e answer.Effect, r answer.Reason, retry bool) answer.Outcome {
	return answer.Outcome{Effect: e, Reason: r, Retry: retry}
}

var outcomeCases = []outcomeCase{
	{name: "done", on: all, setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "COMMIT", want: outcome(answer.EffectNone, "", false), committed: "1"},
	{name: "constraint, autocommit", on: all, step: "INSERT INTO t VALUES (1, 1, 1)", want: outcome(answer.EffectStatement, answer.ReasonOther, false), committed: "10"},
	{name: "constraint", on: pg, setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "INSERT INTO t VALUES (1, 1, 1)",
		want: outcome(answer.EffectFailed, answer.ReasonOther, false), after: answer.Failed, committed: "10"},
	{name: "constraint", on: append(embedded, family...), setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "INSERT INTO t VALUES (1, 1, 1)",
		want: outcome(answer.EffectStatement, answer.ReasonOther, false), after: answer.Open, committed: "10"},
	{name: "serialization, update", on: pg, level: "REPEATABLE READ", setup: "BEGIN; SELECT * FROM t", meanwhile: "UPDATE t SET v = 2 WHERE id = 1",
		step: "UPDATE t SET v = 1 WHERE id = 1", want: outcome(answer.EffectFailed, answer.ReasonSerialization, true), after: answer.Failed, committed: "2"},
	{name: "serialization, commit", on: pg, level: "SERIALIZABLE", setup: "BEGIN; SELECT sum(v) FROM t; UPDATE t SET v = 1 WHERE id = 1",
		meanwhile: "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(v) FROM t; UPDATE t SET v = 2 WHERE id = 2; COMMIT",
		step:      "COMMIT", want: outcome(answer.EffectRolledBack, answer.ReasonSerialization, true), committed: "10"},
	{name: "behind the snapshot", on: []string{"mariadb"}, level: "SNAPSHOT", setup: "BEGIN; SELECT * FROM t", meanwhile: "UPDATE t SET v = 2 WHERE id = 1",
		step: "UPDATE t SET v = 1 WHERE id = 1", want: outcome(answer.EffectRolledBack, answer.ReasonSerialization, true), committed: "2"},
	{name: "optimistic conflict", on: []string{"tidb"}, level: "SNAPSHOT", setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", meanwhile: "UPDATE t SET v = 2 WHERE id = 1",
		step: "COMMIT", want: outcome(answer.EffectRolledBack, answer.ReasonSerialization, true), committed: "2"},
	{name: "optimistic constraint", on: []string{"tidb"}, level: "SNAPSHOT", setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1; INSERT INTO t VALUES (9, 9, 9)",
		meanwhile: "INSERT INTO t VALUES (9, 1, 1)", step: "COMMIT", want: outcome(answer.EffectRolledBack, answer.ReasonSerialization, true), committed: "10"},
	{name: "lock wait time-out", on: pg, other: "BEGIN; UPDATE t SET v = 2 WHERE id = 1", setup: "SET lock_timeout = '20ms'; BEGIN",
		step: "UPDATE t SET v = 1 WHERE id = 1", want: outcome(answer.EffectFailed, answer.ReasonNoWait, true), after: answer.Failed, committed: "10"},
	{name: "lock wait time-out", on: family, other: "BEGIN; UPDATE t SET v = 2 WHERE id = 2", setup: "SET innodb_lock_wait_timeout = 1; BEGIN; UPDATE t SET v = 1 WHERE id = 1",
		step: "UPDATE t SET v = 1 WHERE id = 2", want: outcome(answer.EffectStatement, answer.ReasonLockTimeout, true), after: answer.Open, committed: "10"},
	{name: "lock wait time-out after an implicit commit", on: innodb, other: "BEGIN; SELECT * FROM t", setup: "SET lock_wait_timeout = 1; BEGIN; UPDATE t SET v = 1 WHERE id = 1",
		step: "ALTER TABLE t ADD x int", want: outcome(answer.EffectCommitted, answer.ReasonLockTimeout, true), committed: "1"},
	{name: "NOWAIT", on: pg, other: "BEGIN; UPDATE t SET v = 2 WHERE id = 1", setup: "BEGIN", step: "SELECT * FROM t FOR UPDATE NOWAIT",
		want: outcome(answer.EffectFailed, answer.ReasonNoWait, true), after: answer.Failed, committed: "10"},
	{name: "NOWAIT", on: []string{"mysql", "tidb"}, other: "BEGIN; UPDATE t SET v = 2 WHERE id = 1", setup: "BEGIN; UPDATE t SET v = 3 WHERE id = 2",
		step: "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT", want: outcome(answer.EffectStatement, answer.ReasonNoWait, true), after: answer.Open, committed: "10"},
	{name: "NOWAIT", on: []string{"mariadb"}, other: "BEGIN; UPDATE t SET v = 2 WHERE id = 1", setup: "BEGIN; UPDATE t SET v = 3 WHERE id = 2",
		step: "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT", want: outcome(answer.EffectStatement, answer.ReasonLockTimeout, true), after: answer.Open, committed: "10"},
	{name: "implicit commit", on: family, setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "CREATE TABLE t (a int)",
		want: outcome(answer.EffectCommitted, answer.ReasonOther, false), committed: "1"},
	{name: "statement time-out", on: pg, setup: "SET statement_timeout = '20ms'; BEGIN", step: "SELECT pg_sleep(5)",
		want: outcome(answer.EffectFailed, answer.ReasonCancelled, false), after: answer.Failed, committed: "10"},
	{name: "statement time-out", on: []string{"mariadb"}, setup: "SET max_statement_time = 0.02; BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "SELECT SLEEP(5)",
		want: outcome(answer.EffectStatement, answer.ReasonCancelled, false), after: answer.Open, committed: "10"},
	{name: "deferred constraint", on: pg, setup: "CREATE TABLE d (a int UNIQUE DEFERRABLE INITIALLY DEFERRED); BEGIN; UPDATE t SET v = 1 WHERE id = 1; INSERT INTO d VALUES (1), (1)",
		step: "COMMIT", want: outcome(answer.EffectRolledBack, answer.ReasonOther, false), committed: "10"},
	{name: "internal", on: pg, setup: "BEGIN", step: "DO $$BEGIN RAISE 'x' USING ERRCODE = 'XX000'; END$$",
		want: outcome(answer.EffectFailed, answer.ReasonInternal, false), after: answer.Failed, committed: "10"},
	{name: "a row of the catalog that another has changed", on: pg, setup: "BEGIN", step: "DO $$BEGIN RAISE 'tuple concurrently updated' USING ERRCODE = 'XX000'; END$$",
		want: outcome(answer.EffectFailed, answer.ReasonSerialization, true), after: answer.Failed, committed: "10"},
	{name: "locked", on: embedded, other: "BEGIN IMMEDIATE; UPDATE t SET v = 2 WHERE id = 2", setup: "BEGIN; SELECT * FROM t", step: "UPDATE t SET v = 1 WHERE id = 1",
		want: outcome(answer.EffectStatement, answer.ReasonNoWait, true), after: answer.Open, committed: "10"},
	{name: "COMMIT while somebody reads", on: embedded, journal: "delete", other: "BEGIN; SELECT * FROM t", setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "COMMIT",
		want: outcome(answer.EffectStatement, answer.ReasonNoWait, true), after: answer.Open, committed: "10"},
	{name: "behind the snapshot", on: embedded, journal: "wal", setup: "BEGIN; SELECT * FROM t", meanwhile: "UPDATE t SET v = 2 WHERE id = 1",
		step: "UPDATE t SET v = 1 WHERE id = 1", want: outcome(answer.EffectStatement, answer.ReasonSerialization, true), after: answer.Open, committed: "2"},
	{name: "ON CONFLICT ROLLBACK", on: embedded, setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "INSERT OR ROLLBACK INTO t VALUES (1, 1, 1)",
		want: outcome(answer.EffectRolledBack, answer.ReasonOther, false), committed: "10"},
	{name: "an error behind COMMIT", on: embedded, setup: "BEGIN; UPDATE t SET v = 1 WHERE id = 1", step: "COMMIT; SELECT * FROM nowhere",
		want: outcome(answer.EffectCommitted, answer.ReasonOther, false), committed: "1"},
}

func testOutcomes(t *testing.T, w *world) {
	for _, c := range outcomeCases {
		if !w.is(c.on...) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r := w.room(t)
			other, s := r.session(), r.session()
			if c.journal != "" && s.rows("PRAGMA journal_mode") != c.journal {
				t.Skip("it is about journal mode " + c.journal)
			}
			if c.other != "" {
				other.do(c.other)
			}
			if c.level != "" {
				s.do(w.engine.SetLevel(c.level))
			}
			if c.setup != "" {
				s.do(c.setup)
			}
			if c.meanwhile != "" {
				other.do(c.meanwhile)
			}
			a, got := s.try(c.step)
			if after := cmp.Or(c.after, answer.Idle); got != c.want || a.After != after {
				t.Errorf("%s: got %s, transaction %s (%v); want %s, transaction %s", c.step, word(got), a.After, a.Err, word(c.want), after)
			}
			if c.want.Effect == answer.EffectRolledBack && !w.is(embedded...) && w.engine.Error(a.Err.Code, a.Err.Message).Aborts == w.engine.ErrorFails && c.level != "SNAPSHOT" {
				t.Errorf("error %s aborts: %v", a.Err.Code, w.engine.ErrorFails)
			}
			if a.Err != nil && w.engine.Error(a.Err.Code, a.Err.Message).Retry != c.want.Retry {
				t.Errorf("error %s can be retried: %v", a.Err.Code, !c.want.Retry)
			}
			if c.after == answer.Failed {
				w.failed(t, s)
			}
			s.try("ROLLBACK") // some products refuse it where nothing is open
			other.try("ROLLBACK")
			if got := r.session().rows("SELECT v FROM t WHERE id = 1"); got != c.committed {
				t.Errorf("afterwards v is %s, want %s", got, c.committed)
			}
		})
	}
}

// failed: in a failed transaction everything is refused, and COMMIT is a rollback.
func (w *world) failed(t *testing.T, s *session) {
	t.Helper()
	if _, got := s.try("SELECT 1"); got != outcome(answer.EffectFailed, answer.ReasonFailed, false) {
		t.Errorf("in the failed transaction: %s", word(got))
	}
	a, got := s.try("COMMIT")
	if got.Effect != answer.EffectRolledBack || got.Reason != "" || a.After.InTransaction() || a.Results[0].Tag != "ROLLBACK" {
		t.Errorf("COMMIT of the failed transaction: %s, %+v", word(got), a)
	}
}

// testKilled: a session that is ended from outside, idle, in a transaction, or waiting; and a statement that is cancelled.
func testKilled(t *testing.T, w *world) {
	r := w.room(t)
	holder := r.session()
	idle := r.session()
	if !w.engine.NeverWaits { // there, one writer keeps others out
		holder.do("BEGIN; UPDATE t SET v = 0 WHERE id = 1")
	}
	idle.do("BEGIN; UPDATE t SET v = 0 WHERE id = 2")
	r.kill(idle)
	if _, got := idle.try("COMMIT"); got.Effect != answer.EffectGone || got.Reason != answer.ReasonKilled && got.Reason != answer.ReasonServer {
		t.Errorf("killed while idle: %s", word(got))
	}
	if got := r.session().rows("SELECT v FROM t WHERE id = 2"); got != "20" {
		t.Errorf("its transaction left %s, want 20", got)
	}
	if w.engine.NeverWaits {
		busy := r.session()
		p := busy.start(w.busy())
		r.kill(busy)
		if _, got := p.wait(); got.Effect != answer.EffectGone {
			t.Errorf("killed while busy: %s, %v", word(got), p.err)
		}
		r.kill(busy) // gone already
		return
	}
	waiting := r.session()
	p := waiting.start("BEGIN; UPDATE t SET v = 1 WHERE id = 1")
	p.blocked(holder)
	r.kill(waiting)
	if _, got := p.wait(); got.Effect != answer.EffectGone {
		t.Errorf("killed while waiting: %s, %v", word(got), p.err)
	}
	r.kill(waiting) // gone already
	cancelled := r.session()
	cancelled.do("BEGIN")
	p = cancelled.start("UPDATE t SET v = 1 WHERE id = 1")
	p.blocked(holder)
	verb := "KILL QUERY"
	if w.is("tidb") {
		verb = "KILL TIDB QUERY"
	}
	holder.do(choose(w, fmt.Sprintf("SELECT pg_cancel_backend(%d)", cancelled.conn.ID()), fmt.Sprintf("%s %d", verb, cancelled.conn.ID())))
	want := outcome(answer.EffectStatement, answer.ReasonCancelled, false)
	if w.postgres() {
		want.Effect = answer.EffectFailed
	}
	if _, got := p.wait(); got != want {
		t.Errorf("cancelled: %s, %v, want %s", word(got), p.a.Err, word(want))
	}
}

func (r *room) kill(s *session) {
	r.t.Helper()
	if err := r.watcher.Kill(r.t.Context(), s.conn.ID()); err != nil {
		r.t.Fatal(err)
	}
}

// testServerDies: the server ends while one session is idle and another one waits.
func testServerDies(t *testing.T, w *world) {
	target := w.server.Target()
	target.Database = w.engine.Lab.Maintenance
	connect := func() engine.Conn {
		c, err := w.engine.Connect(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	idle, busy := connect(), connect()
	watcher, err := w.engine.Watch(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = watcher.Close() })
	done := make(chan answer.Outcome)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		a, err := busy.Do(ctx, w.busy())
		done <- w.engine.Outcome(a, err)
	}()
	if _, err := watcher.Look(t.Context(), []uint64{busy.ID()}); err != nil {
		t.Error(err)
	}
	if err := w.server.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.Effect != answer.EffectGone {
		t.Errorf("busy: %s", word(got))
	}
	// A process of the server's that serves a session may outlive the first one by a moment.
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	a, err := idle.Do(ctx, "SELECT 1")
	for err == nil && ctx.Err() == nil {
		a, err = idle.Do(ctx, "SELECT 1")
	}
	if got := w.engine.Outcome(a, err); got.Effect != answer.EffectGone || err == nil || ctx.Err() != nil {
		t.Errorf("idle: %s, %v", word(got), err)
	}
	for err = nil; err == nil && ctx.Err() == nil; {
		_, err = watcher.Look(ctx, []uint64{busy.ID()})
	}
	if ctx.Err() != nil {
		t.Errorf("the watcher has not noticed: %v", err)
	}
}

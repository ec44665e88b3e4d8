package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/internal/shop"
)

// stage plays a scripted interleaving on real connections. A step that the server makes wait is left waiting, which the
// server's own lock views tell, and the script goes on with the other sessions.
type stage struct {
	t       *testing.T
	target  shop.Target    // where the actors connect: the proxy
	spread  []shop.Target  // where actor 1, 2, ... connects, if there are several
	watcher engine.Watcher // looks at the locks
	level   string
	actors  map[string]*actor
	told    []string // what happened, for the failure message
}

type actor struct {
	name    string
	client  shop.Client
	pid     string
	answer  chan reply
	waiting string   // the step that has no answer yet
	queue   []string // steps that came while it waited
	failed  bool
	heard   []string
}

type reply struct {
	rows string
	err  error
}

func newStage(t *testing.T, ctx context.Context, direct, through shop.Target, level string) *stage {
	t.Helper()
	d, err := backends.ByName(direct.Engine)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := d.Watch(ctx, engine.Target{
		Engine: direct.Engine, Host: direct.Host, Port: direct.Port, User: direct.User, Password: direct.Password, Database: direct.Database,
	})
	if err != nil {
		t.Fatalf("side connection: %v", err)
	}
	s := &stage{t: t, target: through, watcher: watcher, level: level, actors: map[string]*actor{}}
	t.Cleanup(s.close)
	return s
}

func (s *stage) close() {
	for _, a := range s.actors {
		if a.waiting == "" {
			a.client.Close()
		}
	}
	s.watcher.Close()
}

func (s *stage) actor(ctx context.Context, name string) *actor {
	s.t.Helper()
	if a := s.actors[name]; a != nil {
		return a
	}
	target := s.target
	if n, err := strconv.Atoi(name); err == nil && s.spread != nil {
		target = s.spread[n%len(s.spread)]
	}
	c, err := target.Connect(ctx, shop.Driver)
	if err != nil {
		s.t.Fatalf("connect session %s: %v", name, err)
	}
	a := &actor{name: name, client: c, answer: make(chan reply, 1)}
	s.actors[name] = a
	query := "SELECT pg_backend_pid()"
	set := "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "
	if s.target.Engine != "postgres" {
		query, set = "SELECT CONNECTION_ID()", "SET SESSION TRANSACTION ISOLATION LEVEL "
	}
	if a.pid, err = c.Do(ctx, query); err != nil {
		s.t.Fatalf("session %s: %v", name, err)
	}
	set += s.level
	if s.level == tidbOptimistic {
		set = "SET SESSION tidb_txn_mode = 'optimistic'"
	}
	if _, err := c.Do(ctx, set); err != nil {
		s.t.Fatalf("session %s: set the level: %v", name, err)
	}
	return a
}

// play runs steps such as "1 begin", "2 update ...". After an error a session skips its steps up to its commit or
// rollback, which becomes a rollback, as an application would do it.
func (s *stage) play(ctx context.Context, steps []string) {
	s.t.Helper()
	for _, step := range steps {
		who, sql, ok := strings.Cut(step, " ")
		if !ok {
			s.t.Fatalf("step %q: no statement", step)
		}
		a := s.actor(ctx, who)
		a.queue = append(a.queue, sql)
		s.proceed(ctx)
	}
	for _, a := range s.actors {
		for a.waiting != "" {
			s.await(ctx, a)
			s.proceed(ctx)
		}
	}
}

// proceed sends the queued steps of all sessions that are free, until each is done or waits.
func (s *stage) proceed(ctx context.Context) {
	s.t.Helper()
	for moved := true; moved; {
		moved = false
		for _, name := range slices.Sorted(maps.Keys(s.actors)) {
			if a := s.actors[name]; a.waiting == "" && len(a.queue) > 0 {
				s.send(ctx, a)
				moved = true
			}
		}
	}
}

func (s *stage) send(ctx context.Context, a *actor) {
	s.t.Helper()
	sql := a.queue[0]
	a.queue = a.queue[1:]
	if a.failed {
		if sql != "commit" && sql != "rollback" {
			return
		}
		sql, a.failed = "rollback", false
	}
	a.waiting = sql
	go func() {
		rows, err := a.client.Do(ctx, sql)
		a.answer <- reply{rows, err}
	}()
	s.settle(ctx)
}

// settle waits until each session has its answer or waits for a lock.
func (s *stage) settle(ctx context.Context) {
	s.t.Helper()
	for _, a := range s.actors {
		for pause := 2 * time.Millisecond; a.waiting != ""; pause = min(2*pause, 20*time.Millisecond) {
			select {
			case ans := <-a.answer:
				s.answered(ctx, a, ans)
				continue
			case <-time.After(pause): // between two looks: the lock views send no event
			}
			if s.blocked(ctx, a) {
				break
			}
		}
	}
}

func (s *stage) await(ctx context.Context, a *actor) {
	s.t.Helper()
	select {
	case ans := <-a.answer:
		s.answered(ctx, a, ans)
	case <-ctx.Done():
		s.t.Fatalf("session %s still waits for %q\n%s", a.name, a.waiting, strings.Join(s.told, "\n"))
	}
}

func (s *stage) answered(ctx context.Context, a *actor, ans reply) {
	s.t.Helper()
	line := fmt.Sprintf("%s  %s", a.name, a.waiting)
	if ans.rows != "" {
		line += "  -> " + ans.rows
	}
	if ans.err != nil {
		line += "  ERROR " + ans.err.Error()
		a.failed = true
	}
	a.waiting = ""
	s.told = append(s.told, line)
	if ans.err != nil {
		return
	}
	heard, err := a.client.Heard(ctx)
	if err != nil {
		s.t.Fatalf("session %s: %v", a.name, err)
	}
	for _, h := range heard {
		s.told = append(s.told, "     "+strings.ReplaceAll(h, "\n", "\n     "))
	}
	for _, h := range heard {
		if strings.Contains(h, "WC-") || strings.Contains(h, "01WC") {
			a.heard = append(a.heard, h)
		}
	}
}

func (s *stage) blocked(ctx context.Context, a *actor) bool {
	s.t.Helper()
	names := slices.Sorted(maps.Keys(s.actors))
	ids := make([]uint64, len(names))
	for i, name := range names {
		id, err := strconv.ParseUint(s.actors[name].pid, 10, 64)
		if err != nil {
			s.t.Fatalf("session %s: %v", name, err)
		}
		ids[i] = id
	}
	waits, err := s.watcher.Look(ctx, ids)
	if err != nil {
		s.t.Fatalf("ask for lock waits: %v", err)
	}
	w := waits[slices.Index(names, a.name)]
	return w.Blocked && !w.Cycle
}

// tidbOptimistic stands for optimistic transactions as a level.
const tidbOptimistic = "SNAPSHOT"

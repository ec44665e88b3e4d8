package shell

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"wirecheck/scheduler"
	"wirecheck/scheduler/toy"
)

// server lets goroutines use a toy server. pause is what a small step and a message take.
type server struct {
	pause func()

	mu      sync.Mutex // guards what follows
	toy     *toy.Server
	answers []chan bool // what each session's step gave: whether it was the victim
	victims int
}

func newServer(sessions int, policy toy.Policy, pause func()) *server {
	sv := &server{pause: pause, toy: toy.NewServer(sessions, policy)}
	for range sessions {
		sv.answers = append(sv.answers, make(chan bool, 1))
	}
	return sv
}

// do carries out a step and waits for its answer.
func (sv *server) do(ctx context.Context, s scheduler.Session, st toy.Step) (victim bool, err error) {
	sv.pause()
	sv.pump(func() { sv.toy.Submit(int(s), st) })
	select {
	case victim = <-sv.answers[s]:
		sv.pause()
		return victim, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (sv *server) disconnect(s scheduler.Session) {
	sv.pause()
	sv.pump(func() { sv.toy.Disconnect(int(s)) })
	sv.pause()
}

// pump begins with first and takes small steps for as long as there are any.
func (sv *server) pump(first func()) {
	sv.locked(first)
	for moved := true; moved; {
		sv.pause()
		sv.locked(func() { moved = sv.toy.Tick() })
	}
}

func (sv *server) locked(do func()) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	do()
	for s, c := range sv.answers {
		if victim, ok := sv.toy.Answer(s); ok {
			if victim {
				sv.victims++
			}
			c <- victim
		}
	}
}

// look is a Look.
func (sv *server) look(ctx context.Context, sessions []scheduler.Session) ([]Wait, error) {
	sv.pause()
	waits := sv.waits(sessions)
	sv.pause()
	return waits, ctx.Err()
}

func (sv *server) waits(sessions []scheduler.Session) []Wait {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	waits := make([]Wait, len(sessions))
	for i, s := range sessions {
		whom := sv.toy.WaitsFor(int(s))
		waits[i] = Wait{Blocked: len(whom) > 0, Cycle: sv.toy.InCircle(int(s))}
		for _, other := range whom {
			waits[i].For = append(waits[i].For, scheduler.Session(other))
		}
	}
	return waits
}

// client runs steps until they are through or may not go on, and leaves.
func (sv *server) client(ctx context.Context, sh *Shell, s scheduler.Session, steps []toy.Step) error {
	defer sh.Leave(s)
	defer sv.disconnect(s)
	for _, st := range steps {
		sv.pause()
		if _, err := sh.Enter(ctx, s, ""); err != nil {
			return err
		}
		victim, err := sv.do(ctx, s, st)
		if err != nil {
			return err
		}
		sh.Finish(s, victim)
	}
	return nil
}

// play runs all sessions to their end.
func (sv *server) play(ctx context.Context, sh *Shell, sessions [][]toy.Step) error {
	var group errgroup.Group
	for range sessions {
		sh.Join()
	}
	for s, steps := range sessions {
		group.Go(func() error { return sv.client(ctx, sh, scheduler.Session(s), steps) })
	}
	return errors.Join(sh.Run(ctx, true), group.Wait())
}

func parseSessions(t testing.TB, texts ...string) [][]toy.Step {
	t.Helper()
	var sessions [][]toy.Step
	for _, text := range texts {
		steps, err := toy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, steps)
	}
	return sessions
}

func seeded(seed int) func(n int) int { return rand.New(rand.NewPCG(uint64(seed), 0)).IntN }

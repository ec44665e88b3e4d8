package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/backends"
	"wirecheck/backends/engine"
)

const (
	waitCases  = 300                    // blocked statements, for the latency
	statements = 10_000                 // of which none is blocked
	sleepers   = 100                    // one statement in so many sleeps
	waitGrace  = 250 * time.Microsecond // between submitting and the first look
	waitLimit  = 30 * time.Second
)

// benchWaits measures how soon a blocked statement is known to be blocked, and counts statements that are said to be and
// are not. It takes every product whose server is on the machine.
func benchWaits(ctx context.Context, _ options) (failed error) {
	fmt.Printf("blocked statements: %d each, looks back to back after %s; then %d statements, 1%% asleep for 2 to 20 ms, looks without pause\n",
		waitCases, waitGrace, statements)
	for _, d := range backends.All() {
		found := d.Find()
		if len(found) == 0 {
			fmt.Printf("  %-10s not on this machine\n", d.Title)
		}
		for _, f := range found {
			if err := benchWaitsOf(ctx, d, f); err != nil { // the others are still worth measuring
				failed = errors.Join(failed, fmt.Errorf("%s %s: %w", d.Name, f.Name, err))
			}
		}
	}
	return failed
}

func benchWaitsOf(ctx context.Context, d engine.Descriptor, f engine.Found) (err error) {
	s, err := d.Start(ctx, engine.Options{Bin: f.Bin, Settings: d.LabSettings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w, err := openWaits(ctx, d, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	latencies, err := w.latency(ctx)
	if err != nil {
		return err
	}
	slices.Sort(latencies)
	wrong, looks, err := w.falseAlarms(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("  %-10s %-28s known after: median %s, p99 %s; falsely blocked: %d in %d looks\n", d.Title, s.Version,
		latencies[len(latencies)/2].Round(10*time.Microsecond), latencies[len(latencies)*99/100].Round(10*time.Microsecond), wrong, looks)
	return nil
}

// waits is a lab with two sessions and a watcher.
type waits struct {
	engine         engine.Descriptor
	labs           *engine.Labs
	holder, waiter engine.Conn
	watcher        engine.Watcher
}

func openWaits(ctx context.Context, d engine.Descriptor, s *engine.Server) (_ *waits, err error) {
	w := &waits{engine: d}
	if w.labs, err = engine.OpenLabs(ctx, d, s.Target()); err != nil {
		return nil, err
	}
	t, err := w.labs.Create(ctx)
	if err != nil {
		return nil, err
	}
	if w.holder, err = d.Connect(ctx, t); err != nil {
		return nil, err
	}
	if w.waiter, err = d.Connect(ctx, t); err != nil {
		return nil, err
	}
	if w.watcher, err = d.Watch(ctx, t); err != nil {
		return nil, err
	}
	if err := engine.Exec(ctx, w.holder, "CREATE TABLE t (id int PRIMARY KEY, v int)"); err != nil {
		return nil, err
	}
	return w, engine.Exec(ctx, w.holder, "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)")
}

func (w *waits) close(ctx context.Context) error {
	return errors.Join(w.holder.Close(), w.waiter.Close(), w.watcher.Close(), w.labs.Close(ctx))
}

// latency gives the time from submitting a statement that has to wait until that is known.
func (w *waits) latency(ctx context.Context) ([]time.Duration, error) {
	var all []time.Duration
	ids := []uint64{w.holder.ID(), w.waiter.ID()}
	for range waitCases {
		if err := engine.Exec(ctx, w.holder, "BEGIN; UPDATE t SET v = v + 1 WHERE id = 1"); err != nil {
			return nil, err
		}
		if err := engine.Exec(ctx, w.waiter, "BEGIN"); err != nil {
			return nil, err
		}
		var g errgroup.Group
		began := time.Now()
		g.Go(func() error { return engine.Exec(ctx, w.waiter, "UPDATE t SET v = v + 1 WHERE id = 1") })
		pause(waitGrace)
		for {
			looks, err := w.watcher.Look(ctx, ids)
			if err != nil {
				return nil, err
			}
			if looks[1].Blocked && !looks[1].Cycle {
				break
			}
			if time.Since(began) > waitLimit {
				return nil, errors.New("a statement that waits was never seen to")
			}
		}
		all = append(all, time.Since(began))
		if err := engine.Exec(ctx, w.holder, "ROLLBACK"); err != nil {
			return nil, err
		}
		if err := errors.Join(g.Wait(), engine.Exec(ctx, w.waiter, "ROLLBACK")); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// falseAlarms runs statements that wait for nobody, beside a session that writes other rows, and counts looks that say otherwise.
func (w *waits) falseAlarms(ctx context.Context) (wrong, looks int, err error) {
	random := rand.New(rand.NewPCG(1, 1))
	function := "SLEEP"
	if w.engine.Protocol == engine.ProtocolPostgres {
		function = "pg_sleep"
	}
	busy, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error {
		for i := 0; busy.Err() == nil; i++ {
			if err := engine.Exec(ctx, w.holder, fmt.Sprintf("UPDATE t SET v = v + 1 WHERE id = %d", 4+i%2)); err != nil {
				return err
			}
		}
		return nil
	})
	ids := []uint64{w.waiter.ID()}
	for i := range statements {
		sql := []string{"SELECT * FROM t WHERE id = 2", "BEGIN; UPDATE t SET v = v + 1 WHERE id = 2", "UPDATE t SET v = v + 1 WHERE id = 3", "COMMIT"}[i%4]
		if random.IntN(sleepers) == 0 {
			sql = fmt.Sprintf("SELECT %s(%.3f)", function, 0.002+0.018*random.Float64())
		}
		done := make(chan error, 1)
		go func() { done <- engine.Exec(ctx, w.waiter, sql) }()
		for answered := false; !answered; {
			select {
			case err := <-done:
				if err != nil {
					return wrong, looks, err
				}
				answered = true
			default:
				got, err := w.watcher.Look(ctx, ids)
				if err != nil {
					return wrong, looks, errors.Join(err, <-done)
				}
				looks++
				if got[0].Blocked {
					wrong++
				}
			}
		}
	}
	stop()
	return wrong, looks, g.Wait()
}

// pause sleeps for less than the millisecond that Go's timers take at least when a process is idle.
func pause(d time.Duration) {
	ts := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&ts, nil) // interrupted: then it is shorter
}

package shell

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"wirecheck/scheduler"
)

// world is a shell under test: its server is what the test says that is seen of it. All tests run on synctest's clock; that
// no goroutine is left is what synctest.Test sees to.
type world struct {
	t      *testing.T
	sh     *Shell
	cancel context.CancelCauseFunc
	ended  chan error // what Run gave

	mu    sync.Mutex // guards what follows
	waits map[scheduler.Session]Wait
	looks int
	fails error
	short bool          // a look gives one answer too few
	slow  time.Duration // how long a look takes after it has seen
}

// start makes a shell with that many sessions. Its Run goes until ctx ends.
func start(t *testing.T, sessions int, limits Limits, blind, untilQuiet bool) *world {
	w := &world{t: t, ended: make(chan error, 1), waits: map[scheduler.Session]Wait{}, slow: 10 * time.Microsecond}
	look := w.look
	if blind {
		look = nil
	}
	w.sh = New(scheduler.Listed(nil), look, limits)
	for range sessions {
		w.sh.Join()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	w.cancel = cancel
	go func() { w.ended <- w.sh.Run(ctx, untilQuiet) }()
	return w
}

func (w *world) look(ctx context.Context, sessions []scheduler.Session) ([]Wait, error) {
	w.mu.Lock()
	w.looks++
	fails, slow := w.fails, w.slow
	var waits []Wait
	for _, s := range sessions {
		waits = append(waits, w.waits[s])
	}
	if w.short {
		waits = waits[1:]
	}
	w.mu.Unlock()
	time.Sleep(slow)
	return waits, fails
}

// show sets what looks see of a session from now on.
func (w *world) show(s scheduler.Session, wait Wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits[s] = wait
}

// enter offers a step. The channel gets what Enter says.
func (w *world) enter(ctx context.Context, s scheduler.Session) chan error {
	c := make(chan error, 1)
	go func() {
		_, err := w.sh.Enter(ctx, s, "")
		c <- err
	}()
	return c
}

// held reports that nothing comes for that long.
func (w *world) held(c chan error, howLong time.Duration) {
	w.t.Helper()
	select {
	case err := <-c:
		w.t.Fatalf("something came before %v were over: %v", howLong, err)
	case <-time.After(howLong):
	}
}

// goes awaits a step's turn, and gives the time that it took.
func (w *world) goes(c chan error) time.Duration {
	w.t.Helper()
	begin := time.Now()
	if err := <-c; err != nil {
		w.t.Fatalf("Enter gave %v", err)
	}
	return time.Since(begin)
}

// end cancels the run and awaits its end.
func (w *world) end() {
	w.t.Helper()
	w.cancel(nil)
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		w.t.Errorf("Run gave %v, want %v", err, context.Canceled)
	}
}

func (w *world) schedule(want ...string) {
	w.t.Helper()
	got := strings.Split(strings.TrimSpace(scheduleText(w.sh.Schedule())), "\n")
	if !slices.Equal(got, want) {
		w.t.Errorf("schedule:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (w *world) marks(want ...string) {
	w.t.Helper()
	got := w.sh.Marks()
	if !slices.Equal(got, want) {
		w.t.Errorf("marks %q, want %q", got, want)
	}
}

const ms = time.Millisecond

func TestThinkLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, Limits{Think: 100 * ms}, false, false)
		one := w.enter(t.Context(), 0)
		w.held(one, 99*ms)
		w.goes(one)
		w.marks("session 2 had no statement for 100ms, and the others went on without it")
		w.sh.Finish(0, false)
		// An idle session is as good as any when it comes back.
		two := w.enter(t.Context(), 1)
		w.held(two, 99*ms)
		w.goes(two)
		w.end()
	})
}

func TestNoThinkLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, Limits{}, false, false)
		one := w.enter(t.Context(), 0)
		w.held(one, time.Minute)
		two := w.enter(t.Context(), 1)
		w.goes(one)
		w.held(two, time.Minute)
		w.marks()
		w.sh.Leave(0)
		w.goes(two)
		w.end()
	})
}

// TestSeenWaiting: a wait that a look shows is believed within a few milliseconds.
func TestSeenWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, Limits{}, false, true)
		one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
		w.goes(one)
		w.show(0, Wait{Blocked: true, For: []scheduler.Session{1}})
		if took := w.goes(two); took > ms {
			t.Errorf("the wait was believed after %v", took)
		}
		w.sh.Finish(1, false)
		w.sh.Leave(1)
		w.show(0, Wait{})
		w.sh.Finish(0, false)
		w.sh.Leave(0)
		if err := <-w.ended; err != nil {
			t.Errorf("Run gave %v", err)
		}
		w.schedule("wait 0 1.1 for [1]", "run 1 2.1 for []", "leave 1  for []", "resume 0 1.1 for []", "leave 0  for []")
		w.marks()
		if _, err := w.sh.Enter(t.Context(), 0, ""); err == nil {
			t.Error("a step may go after the end of Run")
		}
	})
}

// TestScheduleIsWhole: what sessions have done before the end of ctx is in the schedule, also if it ends in the middle of a look. A step that is
// with the server then has not happened yet.
func TestScheduleIsWhole(t *testing.T) {
	for _, more := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, 2, Limits{}, false, false)
			one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
			w.goes(one)
			w.sh.Finish(0, false)
			w.sh.Leave(0)
			w.goes(two)
			w.mu.Lock()
			w.slow, w.fails = time.Second, context.Canceled
			w.mu.Unlock()
			time.Sleep(10 * ms) // now it looks who waits
			want := []string{"run 0 1.1 for []", "leave 0  for []"}
			if !more {
				w.sh.Finish(1, false)
				w.sh.Leave(1)
				want = append(want, "run 1 2.1 for []", "leave 1  for []")
			}
			w.end()
			w.schedule(want...)
		})
	}
}

// TestNotBelieved: a step that is slow, that waits for somebody else, or that is in a circle, holds the others back.
func TestNotBelieved(t *testing.T) {
	for _, c := range []struct {
		name string
		wait Wait
	}{
		{"slow", Wait{}},
		{"foreign", Wait{Blocked: true, Foreign: true}},
		{"circle", Wait{Blocked: true, For: []scheduler.Session{1}, Cycle: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, 2, Limits{}, false, false)
				one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
				w.goes(one)
				w.show(0, c.wait)
				w.held(two, 10*time.Second)
				w.sh.Finish(0, false)
				three := w.enter(t.Context(), 0)
				w.held(two, 10*time.Second) // Listed without names: the lowest goes first
				w.goes(three)
				w.marks()
				w.end()
			})
		})
	}
}

// TestOneWaitIsNotEnough: session 0 waits for 1, which is still at work and may let go without finishing.
func TestOneWaitIsNotEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 3, Limits{}, false, false)
		one, two, three := w.enter(t.Context(), 0), w.enter(t.Context(), 1), w.enter(t.Context(), 2)
		w.goes(one)
		w.show(0, Wait{Blocked: true, For: []scheduler.Session{1}})
		w.goes(two)
		w.held(three, time.Second)
		w.show(0, Wait{}) // session 1 has let go of something,
		w.show(1, Wait{Blocked: true, For: []scheduler.Session{2}})
		w.held(three, time.Second)
		w.sh.Finish(0, false)
		w.sh.Leave(0)
		w.goes(three)
		w.end()
	})
}

func TestSlowLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		blind  bool
		slow   time.Duration
	}{
		{"with a look", Limits{Slow: 300 * ms}, false, 300 * ms},
		{"without a look", Limits{Slow: 300 * ms}, true, 300 * ms},
		{"without a look, by default", Limits{}, true, DefaultSlow},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, 3, c.limits, c.blind, false)
				one, two, three := w.enter(t.Context(), 0), w.enter(t.Context(), 1), w.enter(t.Context(), 2)
				w.goes(one)
				if took := w.goes(two); took < c.slow || took > c.slow+2*pauseLimit {
					t.Errorf("the step was taken as waiting after %v", took)
				}
				w.sh.Finish(1, false)
				w.sh.Leave(1)
				if took := w.goes(three); took < c.slow || took > c.slow+2*pauseLimit {
					t.Errorf("after a finish, the step was taken as waiting after %v", took)
				}
				w.marks("session 1: a statement took more than " + c.slow.String() + " and was taken as waiting; the server does not show it")
				w.end()
			})
		})
	}
}

// TestPatience: a step of which the server shows nothing is taken as waiting after its own limit. Near miss: where looks take long, as on a busy machine, the step
// may be just as slow, and has the time of as many looks.
func TestPatience(t *testing.T) {
	for look, want := range map[time.Duration]time.Duration{10 * time.Microsecond: 100 * ms, 20 * ms: patientLooks * 20 * ms} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, 2, Limits{}, false, false)
			w.slow = look
			w.show(0, Wait{Patience: 100 * ms})
			one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
			w.goes(one)
			if took := w.goes(two); took < want || took > want+want/2 {
				t.Errorf("looks of %v: the step was taken as waiting after %v, want %v", look, took, want)
			}
			w.marks("session 1: a statement took more than 100ms and was taken as waiting; the server does not show it")
			w.end()
		})
	}
}

// TestBlindFinish: without a look, a step that finishes lets the next one go at once.
func TestBlindFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, Limits{}, true, false)
		one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
		w.goes(one)
		w.held(two, DefaultSlow/2)
		w.sh.Finish(0, false)
		w.sh.Leave(0)
		if took := w.goes(two); took > 0 {
			t.Errorf("it took %v", took)
		}
		w.marks()
		w.end()
	})
}

func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, Limits{Stuck: time.Second}, false, false)
		one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
		w.goes(one)
		w.show(0, Wait{Blocked: true})
		w.goes(two)
		w.show(1, Wait{Blocked: true})
		w.held(w.ended, time.Second-ms)
		if err := <-w.ended; !errors.Is(err, ErrStuck) {
			t.Errorf("Run gave %v, want %v", err, ErrStuck)
		}
		w.sh.Finish(0, false) // too late, and harmless
		if err := <-w.enter(t.Context(), 0); !errors.Is(err, ErrStuck) {
			t.Errorf("Enter gave %v, want %v", err, ErrStuck)
		}
		w.schedule("wait 0 1.1 for []", "wait 1 2.1 for []")
	})
}

// TestNotStuck: the server ends one wait in time, or an idle session may yet do so.
func TestNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, Limits{Stuck: time.Second, Think: 100 * ms}, false, false)
		one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
		w.goes(one)
		w.show(0, Wait{Blocked: true})
		w.goes(two)
		w.show(1, Wait{Blocked: true})
		w.held(w.ended, time.Second-ms)
		w.show(0, Wait{})
		w.sh.Finish(0, false)
		w.held(w.ended, time.Minute)
		one = w.enter(t.Context(), 0)
		w.goes(one)
		w.end()
	})
}

// TestCancelFreesEverybody: one at the gate, one with a step at the server, one thinking.
func TestCancelFreesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 3, Limits{}, false, false)
		why := errors.New("enough")
		one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
		w.held(two, ms)
		w.cancel(why)
		for _, c := range []chan error{w.ended, one, two, w.enter(t.Context(), 2)} {
			if err := <-c; !errors.Is(err, why) {
				t.Errorf("got %v, want %v", err, why)
			}
		}
		w.sh.Leave(0)
		w.sh.Leave(1)
	})
}

func TestLookFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, short := range []bool{false, true} {
			w := start(t, 2, Limits{}, false, false)
			broken := errors.New("no such view")
			if w.short = short; !short {
				w.fails = broken
			}
			one, two := w.enter(t.Context(), 0), w.enter(t.Context(), 1)
			w.goes(one)
			err := <-w.ended
			if err == nil || !short && !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "ask who waits for whom: ") {
				t.Errorf("Run gave %v", err)
			}
			if got := <-two; !errors.Is(got, err) {
				t.Errorf("Enter gave %v, want %v", got, err)
			}
		}
	})
}

// TestLeaveAtTheGate: somebody else says that the session is gone while it waits for its turn.
func TestLeaveAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 2, Limits{}, false, true)
		two := w.enter(t.Context(), 1)
		w.held(two, ms)
		w.sh.Leave(1)
		w.sh.Leave(1) // twice is harmless
		if err := <-two; !errors.Is(err, errGone) {
			t.Errorf("Enter gave %v, want %v", err, errGone)
		}
		if _, err := w.sh.Enter(t.Context(), 1, ""); !errors.Is(err, errGone) {
			t.Errorf("Enter gave %v, want %v", err, errGone)
		}
		w.goes(w.enter(t.Context(), 0))
		w.sh.Leave(0)
		w.sh.Finish(0, false) // its answer comes too late
		if err := <-w.ended; err != nil {
			t.Errorf("Run gave %v", err)
		}
		w.schedule("leave 1  for []", "leave 0 1.1 for []")
	})
}

// TestEnterIsCancelled: the session is awaited until it has left, for its locks are still there.
func TestEnterIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 3, Limits{}, false, true)
		one := w.enter(t.Context(), 0)
		ctx, cancel := context.WithCancel(t.Context())
		two := w.enter(ctx, 1)
		w.held(two, ms)
		cancel()
		if err := <-two; !errors.Is(err, context.Canceled) {
			t.Errorf("Enter gave %v, want %v", err, context.Canceled)
		}
		w.sh.Leave(2)
		w.held(one, time.Second)
		two = w.enter(t.Context(), 1) // it may also come back
		w.goes(one)
		w.sh.Leave(0)
		w.goes(two)
		w.sh.Finish(1, false)
		w.sh.Leave(1)
		if err := <-w.ended; err != nil {
			t.Errorf("Run gave %v", err)
		}
		w.schedule("leave 2  for []", "leave 0 1.1 for []", "run 1 2.1 for []", "leave 1  for []")
	})
}

// TestLateLookIsDiscarded: what was seen before a step finished is no news any more.
func TestLateLookIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 3, Limits{Grace: ms}, false, false)
		one, two, three := w.enter(t.Context(), 0), w.enter(t.Context(), 1), w.enter(t.Context(), 2)
		w.goes(one)
		w.show(0, Wait{Blocked: true})
		w.goes(two)
		w.mu.Lock()
		w.slow = 100 * ms
		w.mu.Unlock()
		w.show(1, Wait{Blocked: true})
		w.held(three, 50*ms) // a look is under way, and has seen both waiting
		w.show(0, Wait{})
		w.show(1, Wait{})
		w.sh.Finish(1, false)
		w.sh.Leave(1)
		w.held(three, time.Second) // session 0 is at work: if the look were believed, 2 would go
		w.sh.Finish(0, false)
		w.sh.Leave(0)
		w.goes(three)
		w.end()
	})
}

// TestCircle: who waits in a circle is about to be ended by the server, or to go on, so a third session is held back. If the
// server does nothing, the circle is believed in the end.
func TestCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, 3, Limits{Stuck: 5 * time.Second}, false, false)
		one, two, three := w.enter(t.Context(), 0), w.enter(t.Context(), 1), w.enter(t.Context(), 2)
		w.goes(one)
		w.show(0, Wait{Blocked: true, For: []scheduler.Session{1}})
		w.goes(two)
		w.show(1, Wait{Blocked: true, For: []scheduler.Session{2, 0}})
		w.held(three, 5*time.Second-ms)
		w.goes(three)
		w.marks()
		w.end()
	})
}

func TestFindCircles(t *testing.T) {
	blocked := func(whom ...scheduler.Session) Wait { return Wait{Blocked: true, For: whom} }
	for _, c := range []struct {
		name  string
		waits []Wait // of the sessions 1, 2, 3...
		want  []bool
	}{
		{"none waits", []Wait{{}, {}}, []bool{false, false}},
		{"a chain", []Wait{blocked(2), blocked(3), {}}, []bool{false, false, false}},
		{"two", []Wait{blocked(2), blocked(1)}, []bool{true, true}},
		{"three, and one that waits for them", []Wait{blocked(2), blocked(0, 3), blocked(1), blocked(1)}, []bool{true, true, true, false}},
		{"one that runs", []Wait{blocked(2), {For: []scheduler.Session{1}}}, []bool{false, false}},
		{"somebody unknown", []Wait{blocked(0), blocked(7)}, []bool{false, false}},
		{"said by the server", []Wait{{Blocked: true, Cycle: true}}, []bool{true}},
	} {
		sessions := []scheduler.Session{1, 2, 3, 4}[:len(c.waits)]
		findCircles(sessions, c.waits)
		var got []bool
		for _, w := range c.waits {
			got = append(got, w.Cycle)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

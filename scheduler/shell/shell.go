// Package shell is the part of the scheduler that lives in the world: it holds the callers back, asks the server's lock views
// who waits for whom, and looks at the clock. What is decided is decided by scheduler.Core.
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"wirecheck/scheduler"
)

// ErrStuck says that every session that is left waits, and that the server did not end it in time.
var ErrStuck = errors.New("all sessions wait for one another or for somebody else, and the server does not end it")

// What Enter says of a session that left, and after the end of Run.
var (
	errGone = errors.New("the session has left")
	errOver = errors.New("the scheduler has ended")
)

// Wait is what the server's lock views say of one session's step.
type Wait struct {
	Blocked bool
	For     []scheduler.Session // whom it waits for, as far as it is told
	// Foreign says that it waits for none of the sessions but for somebody else, who will go on by themselves.
	Foreign bool
	// Cycle says that the wait is part of a circle, which the server is about to break. Shell finds those by itself that
	// For shows.
	Cycle bool
	// Patience says that the server shows nothing of it if this step waits: when it has taken that long it is taken as
	// waiting, and the run is marked, if it has been looked at often enough meanwhile: on a busy machine looks take longer,
	// as the step then does. 0: the server shows it.
	Patience time.Duration
}

// Look asks the server which of the sessions wait for a lock, and answers in their order. The answer must be of one moment:
// a list that is put together while the sessions move may show all of them waiting when at no time all were. The shell may
// change the slice.
type Look func(ctx context.Context, sessions []scheduler.Session) ([]Wait, error)

// Limits are the shell's. The zero value of a field means what stands there.
type Limits struct {
	// Grace is how long a step may take before the lock views are asked for the first time. Most steps are done by then.
	Grace time.Duration // 250 us
	// Think is how long a session may think, after its last step, before the others go on without it. 0: for ever.
	Think time.Duration
	// Still reports whether nobody outside can do anything before a step ends: no session that thinks will offer a step, and none
	// is about to join. Shell asks it before each decision, and drops the answer if something happened meanwhile. nil: nobody can
	// tell, and Think decides.
	Still func(ctx context.Context) bool
	// Slow is how long a step may take that neither finishes nor is seen waiting, before it is taken as waiting all the
	// same. It counts anew when another step finishes. 0: for ever, unless there is no Look, where it is DefaultSlow.
	Slow time.Duration
	// Stuck is how long to wait for the server where every session waits and none is idle, and where it has a circle of
	// waits to break. 0: DefaultStuck.
	Stuck time.Duration
}

// The defaults of Limits.
const (
	DefaultGrace = 250 * time.Microsecond
	DefaultSlow  = 2 * time.Second // WriteCheck 5.3.1, maxWait
	DefaultStuck = 60 * time.Second
)

// The pause between two looks grows with the time that a step has taken already.
const (
	pauseShare = 3
	pauseLimit = 5 * time.Millisecond
)

// The pause between two questions whether all is still grows, too: an answer may cost a millisecond of processor time, which those who are awaited need.
const (
	stillPause = time.Millisecond
	stillLimit = 20 * time.Millisecond
)

// Shell holds sessions back until scheduler.Core picks them. All methods may be called by several goroutines. Those about one
// session must come one after another, except for Leave.
type Shell struct {
	look   Look
	limits Limits

	mu      sync.Mutex // guards what follows
	core    *scheduler.Core
	gates   []gate
	changes int      // counts steps that finished and sessions that left
	heard   int      // counts all that core was told
	marks   []string // why the run may not be repeatable
	failed  error    // set when Run has ended: nobody is let go any more
	over    bool

	event chan struct{} // has room for one: something was told to core
}

// gate is where one session waits.
type gate struct {
	open    chan error // gets nil when the step may go
	waiting bool
	since   time.Time // when the session began to think, or its step was let go
	doubted time.Time // when its step was let go, or another one finished since
	looks   int       // since then
	guessed bool      // the step was taken as waiting without being seen so
}

// New makes a shell around a fresh core. look is nil where the server cannot tell who waits: then limits.Slow decides.
func New(strategy scheduler.Strategy, look Look, limits Limits) *Shell {
	if limits.Grace <= 0 {
		limits.Grace = DefaultGrace
	}
	if limits.Slow <= 0 && look == nil {
		limits.Slow = DefaultSlow
	}
	if limits.Stuck <= 0 {
		limits.Stuck = DefaultStuck
	}
	return &Shell{look: look, limits: limits, core: scheduler.NewCore(strategy), event: make(chan struct{}, 1)}
}

// Join adds a session, which is expected to Enter with a step or to Leave.
func (sh *Shell) Join() scheduler.Session {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.core.Join()
	sh.gates = append(sh.gates, gate{open: make(chan error, 1), since: time.Now()})
	sh.tell()
	return s
}

// Enter offers a step and returns when it may go. An error says that it must not. If ctx ends first, the session is
// awaited until it enters again or, as is due when a client is lost, leaves: only then it is known that the server has let
// go of its locks.
func (sh *Shell) Enter(ctx context.Context, s scheduler.Session, name string) (scheduler.Step, error) {
	sh.mu.Lock()
	if err := sh.closed(s); err != nil {
		defer sh.mu.Unlock()
		return scheduler.Step{}, err
	}
	step := sh.core.Offer(s, name)
	g := &sh.gates[s]
	g.waiting = true
	open := g.open
	sh.tell()
	sh.mu.Unlock()
	select {
	case err := <-open:
		return step, err
	case <-ctx.Done():
		return step, sh.turnBack(s, context.Cause(ctx))
	}
}

// closed says why the session cannot enter, if so.
func (sh *Shell) closed(s scheduler.Session) error {
	switch {
	case sh.over:
		return cmp.Or(sh.failed, errOver)
	case sh.core.Gone(s):
		return errGone
	}
	return nil
}

// turnBack takes the session away from its gate, unless that was opened just now.
func (sh *Shell) turnBack(s scheduler.Session, why error) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	g := &sh.gates[s]
	if !g.waiting {
		return <-g.open
	}
	sh.core.Withdraw(s)
	g.waiting, g.since = false, time.Now()
	sh.tell()
	return why
}

// Finish says that the session's step has its whole answer; victim as in Core.Finish.
func (sh *Shell) Finish(s scheduler.Session, victim bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.over || sh.core.Gone(s) {
		return
	}
	sh.core.Finish(s, victim)
	sh.moved(s)
}

// Leave says that the session is gone, and that the server has let go of its locks.
func (sh *Shell) Leave(s scheduler.Session) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.over || sh.core.Gone(s) {
		return
	}
	sh.core.Leave(s)
	if g := &sh.gates[s]; g.waiting {
		g.waiting = false
		g.open <- errGone
	}
	sh.moved(s)
}

func (sh *Shell) moved(s scheduler.Session) {
	now := time.Now()
	sh.changes++
	sh.gates[s].since = now
	for i := range sh.gates {
		sh.gates[i].doubted, sh.gates[i].looks = now, 0
	}
	sh.tell()
}

// tell wakes Run. mu is held.
func (sh *Shell) tell() {
	sh.heard++
	select {
	case sh.event <- struct{}{}:
	default:
	}
}

// Busy reports whether a step is with the server of which it is not known that it waits.
func (sh *Shell) Busy() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.core.Busy()
}

// Offers reports whether the session has a step, offered or with the server.
func (sh *Shell) Offers(s scheduler.Session) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.core.Offers(s)
}

// Schedule gives the schedule so far.
func (sh *Shell) Schedule() []scheduler.Event {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return slices.Clone(sh.core.Schedule())
}

// Marks says why the run may go differently the next time: sessions that thought for too long, steps that were taken as
// waiting without being seen so. It is empty if the run is repeatable.
func (sh *Shell) Marks() []string {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return slices.Clone(sh.marks)
}

// Run lets steps go until ctx ends or, if untilQuiet is true, until all sessions that have joined are gone or idle. The
// error is ErrStuck, that of a look, or that of ctx. All who still wait at a gate get it. Run is called once.
func (sh *Shell) Run(ctx context.Context, untilQuiet bool) error {
	err := sh.run(ctx, untilQuiet)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.over, sh.failed = true, err
	sh.core.End()
	for i := range sh.gates {
		if g := &sh.gates[i]; g.waiting {
			g.waiting = false
			g.open <- cmp.Or(err, errOver)
		}
	}
	return err
}

func (sh *Shell) run(ctx context.Context, untilQuiet bool) error {
	for {
		heard, err := sh.awaitStill(ctx)
		if err != nil {
			return err
		}
		d, changes := sh.decide(heard)
		switch d.Verdict {
		case scheduler.Go:
		case scheduler.Unsettled:
			err = sh.settle(ctx, d, changes)
		case scheduler.Stuck:
			limit := sh.limits.Stuck
			if len(d.Idle) > 0 {
				limit = 0 // one of them may yet let go of what the others wait for
			}
			err = sh.await(ctx, limit, ErrStuck)
		case scheduler.Quiet:
			if untilQuiet {
				return nil
			}
			err = sh.await(ctx, 0, nil)
		}
		if err != nil {
			return err
		}
	}
}

// awaitStill waits until nobody outside can do anything, if a decision is due. heard is what core had been told by then.
func (sh *Shell) awaitStill(ctx context.Context) (heard int, err error) {
	for began := time.Now(); sh.limits.Still != nil; {
		sh.mu.Lock()
		heard := sh.heard
		due := sh.core.Due()
		sh.mu.Unlock()
		if !due {
			break
		}
		if sh.limits.Still(ctx) {
			return heard, nil
		}
		if err := sh.await(ctx, min(max(time.Since(began)/pauseShare, stillPause), stillLimit), nil); err != nil {
			return 0, err
		}
	}
	return -1, nil
}

// decide asks core, and lets the step go if it says so. heard is what core had been told when all was still.
func (sh *Shell) decide(heard int) (scheduler.Decision, int) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.limits.Still != nil && sh.core.Due() {
		if heard != sh.heard {
			return scheduler.Decision{Verdict: scheduler.Unsettled}, sh.changes // what was told waits as an event
		}
		sh.core.IdleAll()
	}
	d := sh.core.Next()
	if d.Verdict == scheduler.Go {
		g := &sh.gates[d.Step.Session]
		g.waiting, g.guessed, g.since = false, false, time.Now()
		g.doubted, g.looks = g.since, 0
		g.open <- nil
	}
	return d, sh.changes
}

// await waits for an event; after limit, unless that is 0, it gives expired.
func (sh *Shell) await(ctx context.Context, limit time.Duration, expired error) error {
	var over <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-sh.event:
		return nil
	case <-over:
		return expired
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settle does one thing that may bring the sessions closer to being settled: it waits for an event, or looks who waits,
// or gives up on those that take too long.
func (sh *Shell) settle(ctx context.Context, d scheduler.Decision, changes int) error {
	now := time.Now()
	_, think := sh.ages(d.Think, now, since)
	youngest, _ := sh.ages(d.Ask, now, since)
	switch {
	case sh.limits.Think > 0 && think >= sh.limits.Think:
		sh.giveUpThinking(d.Think, now)
		return nil
	case len(d.Ask) == 0:
		return sh.await(ctx, remaining(sh.limits.Think, think), nil)
	case youngest < sh.limits.Grace:
		return sh.await(ctx, sh.limits.Grace-youngest, nil)
	case sh.look == nil:
		if sh.believe(d.Ask, make([]Wait, len(d.Ask)), changes) {
			return nil
		}
		patience, _ := sh.ages(d.Ask, now, doubted)
		return sh.await(ctx, sooner(remaining(sh.limits.Slow, patience), remaining(sh.limits.Think, think)), nil)
	default:
		return sh.ask(ctx, d.Ask, changes, min(youngest/pauseShare, pauseLimit))
	}
}

// ask looks who waits. Unless that settles everything, it ends with a pause.
func (sh *Shell) ask(ctx context.Context, sessions []scheduler.Session, changes int, pause time.Duration) error {
	waits, err := sh.look(ctx, sessions)
	if err != nil {
		return fmt.Errorf("ask who waits for whom: %w", err)
	}
	if len(waits) != len(sessions) {
		return fmt.Errorf("ask who waits for whom: %d answers for %d sessions", len(waits), len(sessions))
	}
	findCircles(sessions, waits)
	if sh.believe(sessions, waits, changes) {
		return nil
	}
	return sh.await(ctx, pause, nil)
}

// remaining is what is left of a limit; 0 for no limit.
func remaining(limit, spent time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return max(limit-spent, time.Nanosecond)
}

// sooner is the smaller of two limits of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// believe tells core that all the steps that are with the server wait, if all of them were seen waiting or have taken too
// long. If something has happened since changes was read, what was seen is not true any more, perhaps. It reports whether
// there is something to decide.
func (sh *Shell) believe(asked []scheduler.Session, waits []Wait, changes int) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if changes != sh.changes {
		return true
	}
	now := time.Now()
	for _, s := range asked {
		sh.gates[s].looks++
	}
	whom := make(map[scheduler.Session][]scheduler.Session, len(asked))
	for i, s := range asked {
		if !sh.lasting(waits[i], s, now) && !sh.slow(s, waits[i].Patience, now) {
			return false
		}
		whom[s] = waits[i].For
	}
	for i, s := range asked {
		if !sh.lasting(waits[i], s, now) {
			sh.guess(s, sooner(waits[i].Patience, sh.limits.Slow))
		}
	}
	sh.core.Wait(whom)
	return true
}

// lasting reports whether the session waits until another one moves. A circle does if the server has not broken it in time:
// some never do.
func (sh *Shell) lasting(w Wait, s scheduler.Session, now time.Time) bool {
	return w.Blocked && !w.Foreign && (!w.Cycle || now.Sub(sh.gates[s].doubted) >= sh.limits.Stuck)
}

// patientLooks is in how many looks a step must have been there for its own limit to count.
const patientLooks = 20

// slow reports whether the session's step has taken too long, counted from when another step finished last. patience is
// its own limit, or 0.
func (sh *Shell) slow(s scheduler.Session, patience time.Duration, now time.Time) bool {
	g := &sh.gates[s]
	spent := now.Sub(g.doubted)
	return patience > 0 && spent >= patience && g.looks >= patientLooks || sh.limits.Slow > 0 && spent >= sh.limits.Slow
}

// guess notes that a step was taken as waiting.
func (sh *Shell) guess(s scheduler.Session, limit time.Duration) {
	if g := &sh.gates[s]; !g.guessed {
		g.guessed = true
		sh.marks = append(sh.marks, fmt.Sprintf("session %d: a statement took more than %v and was taken as waiting; the server does not show it", s+1, limit))
	}
}

func (sh *Shell) giveUpThinking(sessions []scheduler.Session, now time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range sessions {
		if now.Sub(sh.gates[s].since) >= sh.limits.Think && sh.core.Thinking(s) {
			sh.core.Idle(s)
			sh.marks = append(sh.marks, fmt.Sprintf("session %d had no statement for %v, and the others went on without it", s+1, sh.limits.Think))
		}
	}
}

// ages gives the least and the greatest time since what of tells of the sessions; 0 if there are none.
func (sh *Shell) ages(sessions []scheduler.Session, now time.Time, of func(*gate) time.Time) (least, greatest time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i, s := range sessions {
		age := now.Sub(of(&sh.gates[s]))
		greatest = max(greatest, age)
		if i == 0 || age < least {
			least = age
		}
	}
	return least, greatest
}

func since(g *gate) time.Time   { return g.since }
func doubted(g *gate) time.Time { return g.doubted }

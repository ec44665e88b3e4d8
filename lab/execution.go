package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/scheduler"
	"wirecheck/scheduler/shell"
)

// execution is one permutation under way.
type execution struct {
	lab   *Lab
	spec  *scenario.Spec
	perm  *scenario.Permutation
	shell *shell.Shell
	plans [][]int // by session: places in the permutation

	watching sync.Mutex // who asks the lab's watcher

	mu        sync.Mutex        // guards what follows
	done      []Event           // by place; Kind is empty for steps that were not submitted
	submitted [][]int           // by session: the places of the steps that were offered, in order
	inside    []bool            // by session: a transaction was open when the last of them was
	waits     []engine.WaitKind // by place: what the step waits for, see waitFor
	with      []bool            // by session: its step is with the server ...
	sent      []time.Time       // ... since then
	seen      []engine.Wait     // by session: what the last look showed
	waitSeen  []time.Time       // by place: when a wait was first seen of which it is not known that it has looked for a deadlock
	begun     []bool            // by place: the step was submitted or is left out
	launched  int               // counts the steps that were submitted
	limited   []bool            // by session: see session.limits
	ended     []bool            // by session: it was killed while its statement waited
	waitsFor  map[int][]int     // by place: whom a step waited for that the server was left to end, see endsByItself
	over      []chan struct{}   // by place: closed when the step has finished
	heard     []Heard
}

// aloneGrace is how long a step may take before the locks are looked at if nobody of the scenario is there to wait for.
const aloneGrace = 20 * time.Millisecond

// execute runs the steps.
func (l *Lab) execute(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, r *Result) {
	order := make([]string, len(p.Steps))
	x := &execution{
		lab: l, spec: spec, perm: p, plans: make([][]int, len(spec.Sessions)), done: make([]Event, len(p.Steps)),
		submitted: make([][]int, len(spec.Sessions)), inside: make([]bool, len(spec.Sessions)), waits: make([]engine.WaitKind, len(p.Steps)),
		begun: make([]bool, len(p.Steps)), waitsFor: map[int][]int{}, waitSeen: make([]time.Time, len(p.Steps)),
		seen: make([]engine.Wait, len(spec.Sessions)), with: make([]bool, len(spec.Sessions)), sent: make([]time.Time, len(spec.Sessions)),
		ended: make([]bool, len(spec.Sessions)),
	}
	for i, ps := range p.Steps {
		order[i] = strconv.Itoa(i)
		x.plans[ps.Step.Session] = append(x.plans[ps.Step.Session], i)
		x.done[i] = Event{Place: i, Step: ps.Step}
		x.over = append(x.over, make(chan struct{}))
	}
	limits := l.config.Limits
	if len(spec.Sessions) == 1 {
		limits.Grace = max(limits.Grace, aloneGrace)
	}
	x.shell = shell.New(scheduler.Listed(order), x.look, limits)
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var g errgroup.Group
	for i := range spec.Sessions {
		x.limited = append(x.limited, l.members[i].limits)
	}
	for i := range spec.Sessions {
		s := x.shell.Join()
		g.Go(func() error { return x.session(ctx, s, x.plans[i]) })
	}
	err := x.shell.Run(ctx, true)
	if err == nil && outer.Err() != nil {
		err = context.Cause(outer) // sessions have left for this reason
	}
	still, silent := "", (*scenario.Step)(nil)
	if err != nil {
		still, silent = x.underWay()
		cancel(err)
		l.killAll()
	}
	lost := g.Wait()
	if err != nil { // killAll has closed the connections
		for _, m := range l.members {
			if m != nil {
				m.dirty, m.lost = true, true
			}
		}
	}
	r.Marks = x.shell.Marks()
	r.Events, r.Heard = x.events(), x.heard
	switch {
	case lost != nil && err == nil:
		r.stop(lost)
	case err != nil && silent != nil && errors.Is(err, ErrCaseLimit):
		r.Silent = silent
		r.stop(fmt.Errorf("%w: %s: %w", err, still, ErrSilent))
	case err != nil && still != "":
		r.stop(fmt.Errorf("%w: %s", err, still))
	case err != nil:
		r.stop(err)
	}
}

// underWay says which steps are with the server, and what they wait for. One is silent if it has been there for long and was not seen to wait.
func (x *execution) underWay() (text string, silent *scenario.Step) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []string
	for s, places := range x.submitted {
		if !x.with[s] {
			continue
		}
		step := x.done[last(places)].Step
		text := fmt.Sprintf("%s is still in %s", x.spec.Sessions[s].Name, step.Name)
		long := time.Since(x.sent[s]) > x.lab.config.Case/2 // else it may be the case that is slow, or the machine
		if silent == nil && long && !x.seen[s].Blocked && !x.seen[s].Foreign {
			silent = step
		}
		switch w := x.seen[s]; {
		case w.Foreign && len(w.For) == 0:
			text += fmt.Sprintf(", which waits (%s) for a session that is not part of the scenario", w.Kind)
		case w.Blocked:
			text += fmt.Sprintf(", which waits (%s)", w.Kind)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; "), silent
}

// session executes one session's steps, in their turn.
func (x *execution) session(ctx context.Context, s scheduler.Session, places []int) error {
	defer x.shell.Leave(s)
	m := x.lab.members[s]
	skip := ""
	for _, place := range places {
		st := x.perm.Steps[place].Step
		if skip != "" && !begins(st.SQL) && !ends(st.SQL) {
			if err := m.expect(ctx, nil); err != nil {
				return fmt.Errorf("session %s, step %s: %w", x.spec.Sessions[s].Name, st.Name, err)
			}
			x.note(func() { x.done[place].Kind, x.done[place].Why, x.begun[place] = Skipped, skip, true })
			continue
		}
		skip = ""
		x.awaitMarked(ctx, places, place)
		// Before it is let go: from then on the locks may be looked at.
		x.note(func() {
			x.submitted[s] = append(x.submitted[s], place)
			x.inside[s] = m.inside
		})
		if _, err := x.shell.Enter(ctx, s, strconv.Itoa(place)); err != nil {
			return nil // the shell says why
		}
		x.note(func() {
			x.launched++
			x.begun[place] = true
			x.limited[s] = x.limited[s] || setsLimit(st.SQL)
			x.with[s], x.sent[s] = true, time.Now()
		})
		err := x.expect(ctx, m, places, place)
		var a answer.Answer
		if err == nil {
			a, err = x.do(ctx, int(s), m, st.SQL)
		}
		if err != nil && ctx.Err() != nil {
			return nil // the case is given up: see underWay
		}
		o := x.lab.config.Backend.Outcome(a, err)
		if err == nil && InDoubt(st.SQL) {
			o = answer.Outcome{Effect: answer.EffectGone}
		}
		ended := err != nil && a.Err != nil && o.Reason == answer.ReasonKilled && ctx.Err() == nil
		inWait := false
		if x.note(func() { inWait = x.ended[s] }); inWait {
			ended = true
			a, o, err = victim(m, a, err)
		}
		x.note(func() {
			ev := &x.done[place]
			x.with[s], ev.Kind, ev.Answer, ev.Outcome, ev.Lost = false, Ran, a, o, ended
		})
		close(x.over[place])
		x.shell.Finish(s, o.Reason == answer.ReasonDeadlock)
		switch {
		case err == nil && m.lost, ended && o.Reason == answer.ReasonKilled:
			x.skipRest(places, place)
			return nil
		case err != nil:
			return fmt.Errorf("session %s, step %s: %w", x.spec.Sessions[s].Name, st.Name, err)
		case o.Reason != "" && o.Effect == answer.EffectRolledBack && a.Before.InTransaction():
			skip = "the server had rolled back its transaction"
		}
	}
	return nil
}

// expect tells the connection of a session that is alone which queries come next, if the step at a place is the first of several. Nobody watches how they
// interleave with others then.
func (x *execution) expect(ctx context.Context, m *session, places []int, place int) error {
	query := func(place int) bool {
		ps := x.perm.Steps[place]
		return scenario.FirstWord(ps.Step.SQL) == "SELECT" && fault(ps.Step.SQL) == "" && len(ps.Markers) == 0
	}
	if len(x.spec.Sessions) > 1 || !query(place) || place > 0 && query(place-1) {
		return nil
	}
	var list []string
	for ; place < len(places) && query(place); place++ { // places are those of the permutation
		list = append(list, x.perm.Steps[place].Step.SQL)
	}
	return m.expect(ctx, list)
}

// markedLimit bounds the wait for a step that a marker names. It only passes where the markers are wrong.
const markedLimit = 10 * time.Second

// awaitMarked waits for the steps that the markers of the session's last step name, if it is the session's turn: by them
// that step is not done before those are, although the server says so (the answer to pg_cancel_backend comes before the end
// of what it cancels). Nobody else is let go meanwhile.
func (x *execution) awaitMarked(ctx context.Context, places []int, place int) {
	at := slices.Index(places, place)
	if at == 0 || x.launches() < place {
		return
	}
	limit := time.NewTimer(markedLimit)
	defer limit.Stop()
	for _, marker := range x.perm.Steps[places[at-1]].Markers {
		if marker.Kind != scenario.MarkStep {
			continue
		}
		for other := range place {
			if x.perm.Steps[other].Step != marker.Step {
				continue
			}
			select {
			case <-x.over[other]:
			case <-limit.C:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// launches counts the steps that were submitted.
func (x *execution) launches() (n int) {
	x.note(func() { n = x.launched })
	return n
}

// skipRest notes that the session's steps after a place are left out.
func (x *execution) skipRest(places []int, place int) {
	x.note(func() {
		for _, p := range places[slices.Index(places, place)+1:] {
			x.done[p].Kind, x.done[p].Why, x.begun[p] = Skipped, "its connection had been ended", true
		}
	})
}

// do executes a step's SQL and keeps its notices: as they arrive or, where the connection does not tell, with the answer.
func (x *execution) do(ctx context.Context, n int, m *session, sql string) (answer.Answer, error) {
	if how := fault(sql); how != "" && how != inWait {
		return x.end(ctx, m, how)
	}
	heard := 0
	hear := func(notice answer.Notice) {
		heard++
		x.note(func() { x.heard = append(x.heard, Heard{Session: n, Launched: x.launched, Notice: notice}) })
	}
	m.heard = hear
	a, err := m.do(ctx, sql)
	m.heard = nil
	if heard == 0 {
		for _, notice := range a.Notices {
			if notice.Channel == "" {
				hear(notice)
			}
		}
	}
	return a, err
}

// note changes what is shared under the lock.
func (x *execution) note(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

// look translates between the scheduler's numbers and the server's.
func (x *execution) look(ctx context.Context, sessions []scheduler.Session) ([]shell.Wait, error) {
	ids := make([]uint64, 0, len(x.plans))
	who := make(map[uint64]scheduler.Session, len(x.plans))
	// What is seen is of these steps, even if one of them ends meanwhile and its session submits the next one.
	places := make([]int, len(sessions))
	x.note(func() {
		for i, s := range sessions {
			places[i] = last(x.submitted[s])
		}
	})
	for _, s := range sessions {
		ids = append(ids, x.lab.members[s].conn.ID())
	}
	for i := range x.plans { // those who are not asked about are interesting all the same: they may be waited for
		id := x.lab.members[i].conn.ID()
		who[id] = scheduler.Session(i)
		if len(ids) < len(x.plans) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	// A case that is given up in the middle of a look must not cost the connection.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
	defer cancel()
	began := time.Now()
	x.watching.Lock()
	waits, err := x.lab.watcher.Look(ctx, ids)
	x.watching.Unlock()
	if err != nil {
		return nil, x.lab.blame(ctx, err, began, killLimit) // the lock views wait for nobody
	}
	out, kinds := make([]shell.Wait, len(sessions)), make([]engine.WaitKind, len(sessions))
	for i, s := range sessions {
		x.note(func() { x.seen[s] = waits[i] })
		w := x.lasting(s, places[i], waits[i])
		out[i] = ShellWait(w, who)
		if silent := x.lab.config.Backend.Silent; silent != nil {
			x.note(func() {
				out[i].Patience = silent(x.done[places[i]].Step.SQL, x.inside[s])
				if out[i].Patience == 0 && waits[i].Unseen {
					out[i].Patience = x.lab.config.Backend.Patience
				}
			})
		}
		kinds[i] = w.Kind
		if w.Blocked && !w.Cycle && !out[i].Foreign {
			out[i].Foreign = x.toEnd(ctx, s, places[i], out[i].For)
		}
	}
	if !slices.ContainsFunc(out, func(w shell.Wait) bool { return !w.Blocked || w.Cycle }) {
		x.note(func() { x.waitFor(places, kinds) })
		err = x.endWaiting(ctx, sessions, places, out)
	}
	return out, err
}

// ShellWait is a wait in the scheduler's words: who gives the sessions behind the server's numbers.
func ShellWait(w engine.Wait, who map[uint64]scheduler.Session) shell.Wait {
	out := shell.Wait{Blocked: w.Blocked, Foreign: w.Foreign && len(w.For) == 0, Cycle: w.Cycle}
	for _, id := range w.For {
		if other, ok := who[id]; ok {
			out.For = append(out.For, other)
		}
	}
	return out
}

// toEnd reports whether a session's step at a place, which waits, ends by itself, and notes whom it waits for then.
func (x *execution) toEnd(ctx context.Context, s scheduler.Session, place int, whom []scheduler.Session) (ends bool) {
	if c, ok := x.lab.members[s].conn.(engine.Settler); ok {
		c.Settle(ctx)
	}
	if ends = x.endsByItself(s); ends {
		x.note(func() {
			if _, told := x.waitsFor[place]; !told {
				x.waitsFor[place] = numbers(whom)
			}
		})
	}
	return ends
}

// waitFor remembers what steps wait for that are told to wait: when all do, for the first time. What a look shows in between
// depends on when it came. x.mu is held.
func (x *execution) waitFor(places []int, kinds []engine.WaitKind) {
	for i, place := range places {
		if kind := &x.waits[place]; *kind == "" {
			*kind = kinds[i]
		}
	}
}

// checkLimit is how long to wait for the server's word that a waiter has looked for a deadlock. A session that changed what it
// is told (client_min_messages) never hears it.
const checkLimit = 2 * time.Second

// lasting is the wait of a session's step at a place if it has looked for a deadlock, where the server does that by the clock and says so; until then,
// none. A step that is let go earlier could close a circle before, and timers would choose the victim.
func (x *execution) lasting(s scheduler.Session, place int, w engine.Wait) engine.Wait {
	x.mu.Lock()
	defer x.mu.Unlock()
	m, seen := x.lab.members[s], &x.waitSeen[place]
	switch {
	case !w.Blocked:
		*seen = time.Time{}
		return w
	case !m.tells || w.Kind == engine.WaitSnapshot || m.conn.(engine.Checker).Checked():
		return w
	case seen.IsZero():
		*seen = time.Now()
	case time.Since(*seen) > checkLimit:
		return w
	}
	return engine.Wait{}
}

func numbers(sessions []scheduler.Session) []int {
	out := make([]int, len(sessions))
	for i, s := range sessions {
		out[i] = int(s)
	}
	slices.Sort(out)
	return out
}

// endsByItself reports whether the others are to stay where they are until the session's step ends: by the order it is the
// session's turn, and the server is going to end the step, since the scenario has set how long it may wait. isolationtester
// waits in any case; where only others can end the step, which would be for ever, they go first here (scheduler.Listed).
func (x *execution) endsByItself(s scheduler.Session) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	next := slices.Index(x.begun, false)
	return next >= 0 && x.perm.Steps[next].Step.Session == int(s) && x.limited[s]
}

func last(list []int) int { return list[len(list)-1] }

// killAll ends the sessions on the server, so that those that wait there come back.
func (l *Lab) killAll() {
	ctx, cancel := context.WithTimeout(context.Background(), killLimit)
	defer cancel()
	for _, m := range l.members {
		if m != nil {
			_ = l.watcher.Kill(ctx, m.conn.ID()) // if the server is gone, so is what waits in it
			_ = m.conn.Close()
		}
	}
}

// events puts what the steps brought back into the order of the schedule.
func (x *execution) events() []Event {
	var out []Event
	for _, t := range x.shell.Schedule() {
		if t.Kind == scheduler.EventLeave {
			continue
		}
		s := t.Step.Session
		ev := x.done[x.submitted[s][t.Step.N]]
		switch t.Kind {
		case scheduler.EventWait:
			ev = Event{Kind: Waits, Place: ev.Place, Step: ev.Step, Wait: x.waits[ev.Place], For: numbers(t.For)}
		case scheduler.EventResume:
			ev.Kind = Resumed
		case scheduler.EventRun:
			if whom, waited := x.waitsFor[ev.Place]; waited {
				out = append(out, Event{Kind: Waits, Place: ev.Place, Step: ev.Step, Wait: x.waits[ev.Place], For: whom})
				ev.Kind = Resumed
			}
		}
		out = append(out, ev)
		if t.Kind != scheduler.EventWait {
			out = append(out, x.skippedAfter(s, ev.Place)...)
		}
	}
	return out
}

// skippedAfter are the steps of the session that were left out right behind a place.
func (x *execution) skippedAfter(s scheduler.Session, place int) (out []Event) {
	for _, p := range x.plans[s][slices.Index(x.plans[s], place)+1:] {
		if x.done[p].Kind != Skipped {
			break
		}
		out = append(out, x.done[p])
	}
	return out
}

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

	"wirecheck/backends/engine"
	"wirecheck/scenario"
	"wirecheck/scheduler"
	"wirecheck/scheduler/shell"
)

// Run executes one permutation of a scenario: setup, steps, final queries, teardown. An error means that the case is wrong
// or could not be begun (its setup was refused); what happens later is in the Result. prepared is called when the setup is
// done, before the first step.
func (l *Lab) Run(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, prepared func()) (*Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.config.Case, fmt.Errorf("the case took more than %v", l.config.Case))
	defer cancel()
	if err := l.ready(ctx, spec); err != nil {
		return nil, err
	}
	if err := l.begin(ctx, spec); err != nil {
		return nil, err
	}
	r := &Result{Permutation: p}
	for i := range spec.Sessions {
		r.Backends = append(r.Backends, l.members[i].conn.ID())
	}
	if err := l.setUp(ctx, spec, r); err != nil {
		return nil, err
	}
	if pin := l.config.Backend.Lab.Pin; pin != "" {
		if err := engine.Exec(ctx, l.side, pin); err != nil {
			return nil, err
		}
	}
	prepared()
	l.execute(ctx, spec, p, r)
	l.altered = l.altered || slices.ContainsFunc(spec.Sessions, alters)
	if r.Trouble == nil {
		r.Trouble = l.tearDown(ctx, spec, r)
	}
	if r.Trouble != nil {
		l.current, l.contents = nil, nil
		if !r.Crashed {
			return r, l.unpin(context.WithoutCancel(ctx))
		}
	}
	return r, nil
}

// unpin lets the server clear away what it likes again.
func (l *Lab) unpin(ctx context.Context) error {
	if l.config.Backend.Lab.Pin == "" {
		return nil
	}
	return engine.Exec(ctx, l.side, "COMMIT")
}

// begin makes the database ready for setUp: as it was when the setup had been done, or empty.
func (l *Lab) begin(ctx context.Context, spec *scenario.Spec) error {
	b := l.config.Backend.Lab
	if l.current == spec && l.contents != nil && l.contents.Resettable {
		changed, err := l.changed(ctx)
		if err != nil {
			return err
		}
		if !changed {
			return l.contents.Reset(ctx, l.side, l.config.Reset == Thorough)
		}
	}
	l.current, l.contents = nil, nil
	now, err := b.Fingerprint(ctx, l.side)
	if err != nil {
		return fmt.Errorf("look for what is left in the database: %w", err)
	}
	if now != l.empty {
		if err := engine.Exec(ctx, l.side, b.Clear(l.config.Side.Database)); err != nil {
			return fmt.Errorf("clear the database: %w", err)
		}
	}
	return nil
}

// changed reports whether definitions are not as they were when contents were remembered. The server is only asked if
// something was executed that can have changed them: its catalogs are slow to read.
func (l *Lab) changed(ctx context.Context) (bool, error) {
	if !l.altered {
		return false, nil
	}
	changed, err := l.contents.Changed(ctx, l.side)
	l.altered = changed || err != nil
	return changed, err
}

// alters reports whether something in a session may change definitions. It errs on the side of yes.
func alters(s *scenario.Session) bool {
	for _, b := range []*scenario.Block{s.Setup, s.Teardown} {
		if b != nil && !plain(b.SQL) {
			return true
		}
	}
	return slices.ContainsFunc(s.Steps, func(st *scenario.Step) bool { return !plain(st.SQL) })
}

// setUp executes the setup blocks, unless begin has brought back what they did.
func (l *Lab) setUp(ctx context.Context, spec *scenario.Spec, r *Result) error {
	if l.current != spec {
		for i := range spec.Setup {
			b := &spec.Setup[i]
			if err := l.block(ctx, l.control, -1, b, &r.Setup); err != nil {
				return fmt.Errorf("%s:%d: setup: %w", spec.Name, b.Pos.Line, err)
			}
		}
		l.outputs = r.Setup
	}
	r.Setup = slices.Clone(l.outputs)
	if l.config.Reset != Setup && l.current != spec {
		var err error
		if l.contents, err = l.config.Backend.Lab.Remember(ctx, l.side); err != nil {
			return err
		}
		l.current, l.altered = spec, false
	}
	for i, s := range spec.Sessions {
		if s.Setup == nil {
			continue
		}
		if err := l.block(ctx, l.members[i], i, s.Setup, &r.Setup); err != nil {
			return fmt.Errorf("%s:%d: setup of session %s: %w", spec.Name, s.Setup.Pos.Line, s.Name, err)
		}
	}
	return nil
}

// block executes one setup or teardown.
func (l *Lab) block(ctx context.Context, s *session, n int, b *scenario.Block, out *[]Output) error {
	a, err := s.do(ctx, b.SQL)
	*out = append(*out, Output{Session: n, SQL: b.SQL, Answer: a})
	if err != nil {
		return err
	}
	if a.Err != nil {
		return a.Err
	}
	return nil
}

// tearDown executes final queries and teardowns. Refused teardowns are only reported in the answers.
func (l *Lab) tearDown(ctx context.Context, spec *scenario.Spec, r *Result) error {
	for i, s := range spec.Sessions {
		m := l.members[i]
		if s.Teardown != nil && m != nil {
			var refused *engine.ServerError
			if err := l.block(ctx, m, i, s.Teardown, &r.Teardown); err != nil && !errors.As(err, &refused) {
				r.Crashed = true
				return fmt.Errorf("teardown of session %s: %w", s.Name, err)
			}
		}
	}
	if err := l.quiesce(ctx); err != nil {
		r.Crashed = true
		return fmt.Errorf("end the sessions' transactions: %w", err)
	}
	if err := l.unpin(ctx); err != nil {
		r.Crashed = true
		return err
	}
	for _, sql := range spec.Finals() {
		a, err := l.control.conn.Do(ctx, sql)
		if err != nil {
			r.Crashed = true
			return fmt.Errorf("final query: %w", err)
		}
		r.Finals = append(r.Finals, a)
	}
	var err error
	if r.Tables, err = l.tables(ctx); err != nil {
		r.Crashed = true
		return err
	}
	if spec.Teardown != nil && l.config.Reset == Setup {
		var refused *engine.ServerError
		if err := l.block(ctx, l.control, -1, spec.Teardown, &r.Teardown); err != nil && !errors.As(err, &refused) {
			r.Crashed = true
			return fmt.Errorf("teardown: %w", err)
		}
	}
	return nil
}

// tables reads all tables, without columns that are not the scenario's.
func (l *Lab) tables(ctx context.Context) ([]engine.Table, error) {
	b := l.config.Backend.Lab
	if l.contents != nil {
		if changed, err := l.changed(ctx); err == nil && !changed {
			tables := slices.Clone(l.contents.Tables)
			return tables, b.ReadRows(ctx, l.side, tables)
		}
	}
	tables, err := b.ReadTables(ctx, l.side)
	if err != nil || l.config.Hidden == nil {
		return tables, err
	}
	for i := range tables {
		tables[i].Hide(l.config.Hidden)
	}
	return tables, nil
}

// quiesce ends what sessions left open, so that nobody waits for them: transactions, and locks that outlive them.
func (l *Lab) quiesce(ctx context.Context) error {
	for i, m := range l.members {
		if m != nil && !m.lost && l.config.After != "" {
			if _, err := m.do(ctx, l.config.After); err != nil {
				return err
			}
		}
		if m != nil && m.dirty {
			if err := l.renew(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// execution is one permutation under way.
type execution struct {
	lab   *Lab
	spec  *scenario.Spec
	perm  *scenario.Permutation
	shell *shell.Shell
	plans [][]int // by session: places in the permutation

	mu        sync.Mutex        // guards what follows
	done      []Event           // by place; Kind is empty for steps that were not submitted
	submitted [][]int           // by session: the places of the steps that were submitted, in order
	waits     []engine.WaitKind // by place: what the step waits for, see waitFor
	with      []bool            // by session: its step is with the server
	seen      []engine.Wait     // by session: what the last look showed
	waitSeen  []time.Time       // by place: when a wait was first seen of which it is not known that it has looked for a deadlock
}

// execute runs the steps.
func (l *Lab) execute(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, r *Result) {
	order := make([]string, len(p.Steps))
	x := &execution{
		lab: l, spec: spec, perm: p, plans: make([][]int, len(spec.Sessions)), done: make([]Event, len(p.Steps)),
		submitted: make([][]int, len(spec.Sessions)), waitSeen: make([]time.Time, len(p.Steps)), seen: make([]engine.Wait, len(spec.Sessions)), with: make([]bool, len(spec.Sessions)), waits: make([]engine.WaitKind, len(p.Steps)),
	}
	for i, ps := range p.Steps {
		order[i] = strconv.Itoa(i)
		x.plans[ps.Step.Session] = append(x.plans[ps.Step.Session], i)
		x.done[i] = Event{Place: i, Step: ps.Step}
	}
	x.shell = shell.New(scheduler.Listed(order), x.look, l.config.Limits)
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var g errgroup.Group
	for i := range spec.Sessions {
		s := x.shell.Join()
		g.Go(func() error { return x.session(ctx, s, x.plans[i]) })
	}
	err := x.shell.Run(ctx, true)
	if err == nil && outer.Err() != nil {
		err = context.Cause(outer) // sessions have left for this reason
	}
	still := ""
	if err != nil {
		still = x.underWay()
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
	r.Events = x.events()
	switch {
	case lost != nil && err == nil:
		r.Trouble, r.Crashed = lost, true
	case err != nil:
		r.Trouble = err
		r.Crashed = outer.Err() == nil && !errors.Is(err, shell.ErrStuck) // the lock views could not be asked
		if still != "" {
			r.Trouble = fmt.Errorf("%w: %s", err, still)
		}
	}
}

// underWay says which steps are with the server, and what they wait for.
func (x *execution) underWay() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var list []string
	for s, places := range x.submitted {
		if !x.with[s] {
			continue
		}
		text := fmt.Sprintf("%s is still in %s", x.spec.Sessions[s].Name, x.done[last(places)].Step.Name)
		switch w := x.seen[s]; {
		case w.Foreign && len(w.For) == 0:
			text += fmt.Sprintf(", which waits (%s) for a session that is not part of the scenario", w.Kind)
		case w.Blocked:
			text += fmt.Sprintf(", which waits (%s)", w.Kind)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// session executes one session's steps, in their turn.
func (x *execution) session(ctx context.Context, s scheduler.Session, places []int) error {
	defer x.shell.Leave(s)
	m := x.lab.members[s]
	skip := ""
	for _, place := range places {
		st := x.perm.Steps[place].Step
		if skip != "" && !begins(st.SQL) && !ends(st.SQL) {
			x.note(func() { x.done[place].Kind, x.done[place].Why = Skipped, skip })
			continue
		}
		skip = ""
		x.note(func() { x.submitted[s] = append(x.submitted[s], place) }) // before it is let go: then look may ask for it
		if _, err := x.shell.Enter(ctx, s, strconv.Itoa(place)); err != nil {
			return nil // the shell says why
		}
		x.note(func() { x.with[s] = true })
		a, err := m.do(ctx, st.SQL)
		if err != nil && ctx.Err() != nil {
			return nil // the case is given up: see underWay
		}
		x.note(func() { x.with[s] = false })
		o := x.lab.config.Backend.Outcome(a, err)
		x.note(func() { ev := &x.done[place]; ev.Kind, ev.Answer, ev.Outcome = Ran, a, o })
		x.shell.Finish(s, o.Reason == engine.ReasonDeadlock)
		switch {
		case err != nil:
			return fmt.Errorf("session %s, step %s: %w", x.spec.Sessions[s].Name, st.Name, err)
		case o.Reason != "" && o.Effect == engine.EffectRolledBack && a.Before != engine.Idle:
			skip = "the server had rolled back its transaction"
		}
	}
	return nil
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
	waits, err := x.lab.watcher.Look(ctx, ids)
	if err != nil {
		return nil, err
	}
	out, kinds := make([]shell.Wait, len(sessions)), make([]engine.WaitKind, len(sessions))
	for i, s := range sessions {
		w := x.lasting(s, waits[i])
		x.note(func() { x.seen[s] = waits[i] })
		out[i] = shell.Wait{Blocked: w.Blocked, Foreign: w.Foreign && len(w.For) == 0, Cycle: w.Cycle}
		if silent := x.lab.config.Backend.Silent; silent != nil {
			x.note(func() {
				if silent(x.done[last(x.submitted[s])].Step.SQL, x.lab.members[s].inside) {
					out[i].Patience = x.lab.config.Backend.Patience
				}
			})
		}
		for _, id := range w.For {
			if other, ok := who[id]; ok {
				out[i].For = append(out[i].For, other)
			}
		}
		kinds[i] = w.Kind
	}
	if !slices.ContainsFunc(out, func(w shell.Wait) bool { return !w.Blocked || w.Cycle }) {
		x.note(func() { x.waitFor(sessions, kinds) })
	}
	return out, nil
}

// waitFor remembers what steps wait for that are told to wait: when all do, for the first time. What a look shows in between
// depends on when it came. x.mu is held.
func (x *execution) waitFor(sessions []scheduler.Session, kinds []engine.WaitKind) {
	for i, s := range sessions {
		if kind := &x.waits[last(x.submitted[s])]; *kind == "" {
			*kind = kinds[i]
		}
	}
}

// checkLimit is how long to wait for the server's word that a waiter has looked for a deadlock. A session that changed what it
// is told (client_min_messages) never hears it.
const checkLimit = 200 * time.Millisecond

// lasting is a session's wait if it has looked for a deadlock, where the server does that by the clock and says so; until then,
// none. A step that is let go earlier could close a circle before, and timers would choose the victim.
func (x *execution) lasting(s scheduler.Session, w engine.Wait) engine.Wait {
	x.mu.Lock()
	defer x.mu.Unlock()
	m, seen := x.lab.members[s], &x.waitSeen[last(x.submitted[s])]
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
	for _, t := range x.shell.Trace() {
		if t.Kind == scheduler.EventLeave {
			continue
		}
		s := t.Step.Session
		ev := x.done[x.submitted[s][t.Step.N]]
		switch t.Kind {
		case scheduler.EventWait:
			ev = Event{Kind: Waits, Place: ev.Place, Step: ev.Step, Wait: x.waits[ev.Place]}
			for _, other := range t.For {
				ev.For = append(ev.For, int(other))
			}
		case scheduler.EventResume:
			ev.Kind = Resumed
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

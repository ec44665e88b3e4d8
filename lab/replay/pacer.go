package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/lab/scenario"
	"wirecheck/trace/lex"
)

// pacer holds statements back until it is their turn. It is one goroutine; each session is another one, which executes what it is
// given. So everything here belongs to the pacer alone.
type pacer struct {
	config   Config
	ahead    chan ready // steps that are read ahead
	dialect  lex.Dialect
	watcher  engine.Watcher
	result   *Result
	compare  *comparer
	latency  latencies
	sessions map[uint64]*session
	pending  []*Step // in order, not sent
	eof      bool
	flight   []*session // with a step at the server
	done     chan outcome
	group    errgroup.Group

	first    int64     // the clock of the first step
	began    time.Time // when it was sent
	quiet    time.Time // since when nothing has moved
	looked   time.Time
	asking   int  // steps of pending that are to be sent again
	versions bool // all tables know transactions
	finished int
	ended    int // ends of transactions that are done
}

// Run replays a trace. An error means that it could not do its work; what the server refused is in the Result.
func Run(ctx context.Context, c Config, open Open, v *Survey) (_ *Result, err error) {
	c.Limits.fill()
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	watcher, err := c.Backend.Watch(ctx, c.Side)
	if err != nil {
		return nil, fmt.Errorf("open the connection that looks at the locks: %w", err)
	}
	defer func() { err = errors.Join(err, watcher.Close()) }()
	versions, err := knowsVersions(ctx, &c)
	if err != nil {
		return nil, fmt.Errorf("look for tables without transactions: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	if c.Generated == nil {
		c.Generated = NewGenerated(dialectOf(&c))
	}
	source, prep := newSequence(in, v, c.Limits.Window, c.Keep, c.Until), newPreparer(&c)
	source.ready = func(s *Step) {
		prep.prepare(s)
		s.asks = s.early && c.asks(s)
	}
	k := &pacer{
		config: c, ahead: make(chan ready, aheadRoom), dialect: prep.dialect, watcher: watcher,
		result:   &Result{Order: c.Order, Skipped: map[string]int{}, Backends: map[uint64]uint64{}, Deadlocks: []Deadlock{}, Deviations: []Deviation{}, Divergence: newDivergence()},
		sessions: map[uint64]*session{}, done: make(chan outcome), latency: latencies{}, versions: versions,
	}
	k.compare = &comparer{result: &k.result.Divergence, errors: v.Errors, dialect: k.dialect, made: c.Generated}
	start := time.Now()
	var reading sync.WaitGroup
	reading.Go(func() { readAhead(ctx, source, k.ahead) })
	err = k.run(ctx)
	err = errors.Join(err, k.leave(ctx, cancel, err))
	k.result.Elapsed = time.Since(start)
	reading.Wait() // leave has cancelled the context
	k.result.Late, k.result.Latencies = source.late, k.latency.list(maxShown)
	return k.result, err
}

// leave ends all sessions.
func (k *pacer) leave(ctx context.Context, cancel context.CancelFunc, failed error) error {
	defer cancel()
	if failed != nil {
		// Statements may be waiting at the server: their connections are ended there, and locally by the context.
		kill, stop := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
		defer stop()
		for _, s := range k.flight {
			_ = k.watcher.Kill(kill, s.conn.ID()) // the first error is what counts
		}
		cancel()
	}
	for _, s := range k.sessions {
		if s.open && !s.gone && failed == nil {
			k.result.Left++
		}
		close(s.orders)
	}
	go func() { // what they still tell, nobody wants to know
		for range k.done {
		}
	}()
	err := k.group.Wait()
	close(k.done)
	if failed != nil {
		return nil
	}
	return err
}

func (k *pacer) run(ctx context.Context) error {
	k.quiet = time.Now()
	for {
		if err := k.fill(ctx); err != nil {
			return err
		}
		if len(k.pending) == 0 && len(k.flight) == 0 && k.eof {
			return nil
		}
		due, sent, err := k.send(ctx)
		if err != nil {
			return err
		}
		if sent {
			continue
		}
		if err := k.wait(ctx, due); err != nil {
			return err
		}
	}
}

// ready is a step that is ready to be sent, or why there are no more.
type ready struct {
	step *Step
	err  error
}

// aheadRoom is how many steps are made ready while the pacer does other things.
const aheadRoom = 256

// readAhead reads steps and makes them ready, in a goroutine of its own: to parse a text takes as long as to execute it.
func readAhead(ctx context.Context, from *sequence, to chan<- ready) {
	for {
		s, err := from.next()
		select {
		case to <- ready{s, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// fill takes what was read ahead.
func (k *pacer) fill(ctx context.Context) error {
	for !k.eof && len(k.pending) < k.config.Limits.Ahead {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r := <-k.ahead:
			if errors.Is(r.err, io.EOF) {
				k.eof = true
				return nil
			} else if r.err != nil {
				return r.err
			}
			if k.first == 0 {
				k.first = r.step.start
			}
			k.pending = append(k.pending, r.step)
		}
	}
	return nil
}

// send sends the next step whose turn it is. due is when the clock lets the next one go, if it is that what is waited for.
func (k *pacer) send(ctx context.Context) (due time.Time, sent bool, err error) {
	held := map[uint64]bool{} // sessions of which an earlier step could not be sent
	var before []*Step        // the steps that could not be sent
	for i, s := range k.pending {
		if s.asked > k.ended { // it waits for another commit
			if !k.overlaps(s) {
				return due, k.settle(func(x *Step) bool { return x == s }), nil
			}
			held[s.Session] = true
			continue
		}
		m := k.sessions[s.Session]
		ready := !held[s.Session] && (m == nil || m.step == nil)
		if ready {
			ready = k.inOrder(s, before)
		}
		if ready {
			at := k.due(s, m)
			if wait := time.Until(at); wait > 0 {
				ready = false
				if due.IsZero() || at.Before(due) {
					due = at
				}
			}
		}
		if ready {
			k.pending = slices.Delete(k.pending, i, i+1)
			if s.asked > 0 {
				k.asking--
			}
			k.settle(func(x *Step) bool { return x.hi < s.lo })
			k.passed(s, before)
			return due, true, k.submit(ctx, s)
		}
		if !k.goesOn(s, m, held[s.Session]) {
			return due, false, nil
		}
		held[s.Session] = true
		before = append(before, s)
	}
	// Two may each have been under way when the other one's transaction ended.
	return due, len(k.flight) == 0 && due.IsZero() && k.settle(func(*Step) bool { return true }), nil
}

// goesOn reports whether a later step may be sent before s, which cannot be sent now.
func (k *pacer) goesOn(s *Step, m *session, held bool) bool {
	switch k.config.Order {
	case OrderCommit:
		// Its session waits for a lock: nobody else is to wait for it too.
		return held || m != nil && m.step != nil && m.blocked && !m.wait.Cycle
	}
	return true
}

// inOrder reports whether what the order asks for is settled.
func (k *pacer) inOrder(s *Step, before []*Step) bool {
	switch k.config.Order {
	case OrderSession, OrderOff:
		return true
	}
	for _, m := range k.flight {
		if k.matters(m.step, s) && !(k.config.Order == OrderCommit && k.commute(m.step, s)) && !k.settled(m, s) {
			return false
		}
	}
	if k.config.Order == OrderCommit {
		return true // send has seen to it that those before wait for locks
	}
	for _, b := range before {
		m := k.sessions[b.Session]
		if k.matters(b, s) && !(m != nil && m.step != nil && m.blocked && !m.wait.Cycle) {
			return false
		}
	}
	return true
}

// settled reports whether nobody waits any more for what m executes before s is sent.
func (k *pacer) settled(m *session, s *Step) bool {
	if m.blocked && !m.wait.Cycle {
		return true
	}
	// In the trace it had not ended either when s began: it is given as long as it had there.
	if m.step.hi <= s.lo || k.config.Order != OrderCommit {
		return false
	}
	limit := overlapGrace
	if m.step.start != 0 && s.start > m.step.start {
		limit = max(limit, 2*time.Duration(s.start-m.step.start))
	}
	if m.step.asks {
		limit = max(limit, readGrace)
	}
	return time.Since(m.step.sent) > limit && m.step.looks >= enoughLooks // it may not have begun where the machine is busy
}

// matters reports whether the order of two steps, a first, is to be kept.
func (k *pacer) matters(a, b *Step) bool {
	if k.config.Order != OrderObject || a.Statement == nil || b.Statement == nil {
		return true
	}
	if len(a.tables) == 0 || len(b.tables) == 0 {
		// The end of a transaction, or what is not understood.
		return !begins(a) && !begins(b)
	}
	return meet(a, b, func(x, y use) bool { return x.write || y.write })
}

func begins(s *Step) bool {
	return slices.Contains([]string{"BEGIN", "START", "SET", "SHOW"}, scenario.FirstWord(s.SQL))
}

// due is when a step may be sent by the clock; zero: at any time.
func (k *pacer) due(s *Step, m *session) time.Time {
	if k.config.Speed <= 0 || s.start == 0 || k.began.IsZero() {
		return time.Time{}
	}
	scaled := func(ns int64) time.Duration { return time.Duration(float64(ns) / k.config.Speed) }
	if k.config.Order == OrderSession && m != nil && m.last != nil {
		if think := s.start - m.last.start - int64(m.last.took); think > 0 {
			return m.lastDone.Add(scaled(think))
		}
		return time.Time{}
	}
	return k.began.Add(scaled(s.start - k.first))
}

// passed notes that a step is sent although others stood before it.
func (k *pacer) passed(s *Step, before []*Step) {
	if k.config.Order != OrderCommit && k.config.Order != OrderObject {
		return
	}
	for _, b := range before {
		m := k.sessions[b.Session]
		if m == nil || m.step == nil || m.step.passed || b.Session == s.Session || b.hi >= s.lo || !k.matters(b, s) {
			continue
		}
		m.step.passed = true // what else goes before it is the same thing
		k.deviate(s, fmt.Sprintf("sent before %q of session %d, which came first in the trace: that session waits for a lock in %q%s",
			prose.Line(b.SQL, prose.Width), b.Session, prose.Line(m.step.SQL, prose.Width), k.holders(m)))
		return
	}
}

// holders says for whom a session waits.
func (k *pacer) holders(m *session) string {
	var list []string
	for _, id := range m.wait.For {
		for _, other := range k.sessions {
			if other.conn != nil && other.conn.ID() == id {
				list = append(list, fmt.Sprint(other.id))
			}
		}
	}
	if len(list) == 0 {
		return ""
	}
	return ", held by session " + strings.Join(list, ", ")
}

func (k *pacer) deviate(s *Step, text string) {
	k.result.Deviated++
	if len(k.result.Deviations) < maxShown {
		k.result.Deviations = append(k.result.Deviations, Deviation{Step: s.N, Session: s.Session, SQL: prose.Line(s.SQL, prose.Width), Text: text})
	}
}

// wait waits until something happens, and looks at the locks meanwhile.
func (k *pacer) wait(ctx context.Context, due time.Time) error {
	if len(k.flight) == 0 {
		if due.IsZero() {
			return errors.New("the replay stands still: this should not happen") // nothing is under way and nothing may be sent
		}
		return k.sleep(ctx, due)
	}
	pause := grace
	if !k.looked.IsZero() && time.Since(k.looked) < pollEvery {
		pause = pollEvery
	}
	if k.allBlocked() && time.Since(k.quiet) > 50*time.Millisecond {
		pause = 10 * pollEvery
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case o := <-k.done:
		k.took(o)
		return nil
	case <-timer.C:
	}
	if err := k.look(ctx); err != nil {
		return err
	}
	return k.unstick(ctx)
}

func (k *pacer) sleep(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (k *pacer) allBlocked() bool {
	return !slices.ContainsFunc(k.flight, func(m *session) bool { return !m.blocked })
}

// took takes what a session has finished. A wait is believed until something finishes.
func (k *pacer) took(o outcome) {
	m := o.s
	k.flight = slices.DeleteFunc(k.flight, func(x *session) bool { return x == m })
	m.step, m.last, m.lastDone = nil, o.step, time.Now()
	m.blocked = false
	if o.step.Statement != nil {
		m.open = o.step.Answer.After.InTransaction()
		m.gone = o.step.Lost != nil
		begins, ends := o.step.boundary()
		m.cut = m.cut || o.step.Answer.Err != nil && o.step.Outcome.Effect == answer.EffectRolledBack && o.step.Answer.Before.InTransaction() &&
			o.step.Statement.Error == nil && !begins && !ends
	} else {
		m.gone, m.open = true, false
		close(m.orders)
		delete(k.sessions, m.id)
	}
	for _, other := range k.flight {
		other.blocked = false
	}
	k.quiet, k.looked = time.Now(), time.Time{}
	if o.step.ends && o.step.Statement != nil {
		k.ended++
		for _, other := range k.flight {
			other.step.missed = other.step.missed || other.step.asks && o.step.shows(other.step)
		}
	}
	if !k.again(o.step) {
		k.finish(o.step)
	}
}

// look asks the server who waits.
func (k *pacer) look(ctx context.Context) error {
	var ids []uint64
	var members []*session
	for _, m := range k.flight {
		if m.step.Statement != nil {
			ids, members = append(ids, m.conn.ID()), append(members, m)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	// All sessions are named: who waits for one that is idle in its transaction waits for one of ours.
	for _, m := range k.sessions {
		if m.conn != nil && m.step == nil && !m.gone {
			ids = append(ids, m.conn.ID())
		}
	}
	waits, err := k.watcher.Look(ctx, ids)
	if err != nil {
		return fmt.Errorf("look who waits for locks: %w", err)
	}
	k.looked = time.Now()
	for i, m := range members {
		m.wait, m.blocked = waits[i], waits[i].Blocked
		m.step.looks++
		if !m.blocked && k.config.Backend.Silent != nil && time.Since(m.step.sent) > k.config.Backend.Patience && (m.wait.Unseen || k.config.Backend.Silent(m.step.SQL, m.open) > 0) {
			m.blocked = true // the engine shows nothing of its waits: the time limit is the only sign
		}
		m.step.Waited = m.step.Waited || m.blocked
	}
	return nil
}

// idle are the sessions in a transaction that have nothing more to do.
func (k *pacer) idle() (list []*session) {
	for _, m := range k.sessions {
		if m.step == nil && m.open && !m.gone && !slices.ContainsFunc(k.pending, func(s *Step) bool { return s.Session == m.id }) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return list
}

func (k *pacer) kill(ctx context.Context, m *session) error {
	limit, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	if err := k.watcher.Kill(limit, m.conn.ID()); err != nil {
		return fmt.Errorf("end session %d by force: %w", m.id, err)
	}
	k.quiet = time.Now()
	m.step.sent = time.Now() // it is given the time to end
	return nil
}

// finish counts a step, and compares it with the trace.
func (k *pacer) finish(s *Step) {
	if s.Statement == nil {
		return
	}
	if s.Skip != "" {
		k.result.Skipped[s.Skip]++
	} else if s.standIn != "" {
		k.result.Skipped[s.standIn]++
		k.deadlock(s)
	} else {
		k.result.Statements++
		if s.Waited {
			k.result.Waited++
		}
		if s.failed() {
			k.result.Errors++
		}
		k.deadlock(s)
		k.compare.step(s)
		k.latency.add(s)
	}
	if k.config.Done != nil {
		k.config.Done(s)
	}
	k.finished++
	if k.config.Progress != nil && k.finished%100 == 0 {
		k.config.Progress(k.finished)
	}
}

package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/lab/scenario"
)

// keeper holds statements back until it is their turn. It is one goroutine; each session is another one, which executes what it is
// given. So everything here belongs to the keeper alone.
type keeper struct {
	config   Config
	source   *sequence
	prep     *preparer
	watcher  engine.Watcher
	result   *Result
	compare  *comparer
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
	finished int
}

// session is one connection.
type session struct {
	id       uint64
	orders   chan *Step
	conn     engine.Conn
	step     *Step // with the server
	blocked  bool  // it was seen waiting, and nothing has finished since
	wait     engine.Wait
	open     bool // a transaction is open
	last     *Step
	lastDone time.Time
	gone     bool // its connection is
}

// outcome is what a session tells when a step is done.
type outcome struct {
	s    *session
	step *Step
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
	ctx, cancel := context.WithCancel(ctx)
	k := &keeper{
		config: c, source: newSequence(in, v, c.Limits.Window, c.Keep, c.Until), prep: newPreparer(&c), watcher: watcher,
		result:   &Result{Order: c.Order, Skipped: map[string]int{}, Backends: map[uint64]uint64{}, Deadlocks: []Deadlock{}, Deviations: []Deviation{}, Divergence: newDivergence()},
		sessions: map[uint64]*session{}, done: make(chan outcome),
	}
	k.compare = &comparer{result: &k.result.Divergence, errors: v.Errors, dialect: k.prep.dialect}
	start := time.Now()
	err = k.run(ctx)
	err = errors.Join(err, k.leave(ctx, cancel, err))
	k.result.Elapsed = time.Since(start)
	k.result.Late = k.source.late
	return k.result, err
}

// leave ends all sessions.
func (k *keeper) leave(ctx context.Context, cancel context.CancelFunc, failed error) error {
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

func (k *keeper) run(ctx context.Context) error {
	k.quiet = time.Now()
	for {
		if err := k.fill(); err != nil {
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

// fill reads ahead.
func (k *keeper) fill() error {
	for !k.eof && len(k.pending) < k.config.Limits.Ahead {
		s, err := k.source.next()
		if errors.Is(err, io.EOF) {
			k.eof = true
			return nil
		} else if err != nil {
			return err
		}
		k.prep.prepare(s)
		if k.first == 0 {
			k.first = s.start
		}
		k.pending = append(k.pending, s)
	}
	return nil
}

// send sends the next step whose turn it is. due is when the clock lets the next one go, if it is that what is waited for.
func (k *keeper) send(ctx context.Context) (due time.Time, sent bool, err error) {
	held := map[uint64]bool{} // sessions of which an earlier step could not be sent
	var before []*Step        // the steps that could not be sent
	for i, s := range k.pending {
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
			k.passed(s, before)
			return due, true, k.submit(ctx, s)
		}
		if !k.goesOn(s, m, held[s.Session]) {
			return due, false, nil
		}
		held[s.Session] = true
		before = append(before, s)
	}
	return due, false, nil
}

// goesOn reports whether a later step may be sent before s, which cannot be sent now.
func (k *keeper) goesOn(s *Step, m *session, held bool) bool {
	switch k.config.Order {
	case OrderCommit:
		// Its session waits for a lock: nobody else is to wait for it too.
		return held || m != nil && m.step != nil && m.blocked && !m.wait.Cycle
	}
	return true
}

// inOrder reports whether what the order asks for is settled.
func (k *keeper) inOrder(s *Step, before []*Step) bool {
	switch k.config.Order {
	case OrderSession, OrderOff:
		return true
	}
	for _, m := range k.flight {
		if k.matters(m.step, s) && !k.settled(m, s) {
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
func (k *keeper) settled(m *session, s *Step) bool {
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
	return time.Since(m.step.sent) > limit
}

// matters reports whether the order of two steps, a first, is to be kept.
func (k *keeper) matters(a, b *Step) bool {
	if k.config.Order != OrderObject || a.Statement == nil || b.Statement == nil {
		return true
	}
	if len(a.tables) == 0 || len(b.tables) == 0 {
		// The end of a transaction, or what is not understood.
		return !begins(a) && !begins(b)
	}
	for _, x := range a.tables {
		for _, y := range b.tables {
			if x.name == y.name && (x.write || y.write) {
				return true
			}
		}
	}
	return false
}

func begins(s *Step) bool {
	switch strings.ToLower(scenario.FirstWord(s.SQL)) {
	case "begin", "start", "set", "show":
		return true
	}
	return false
}

// due is when a step may be sent by the clock; zero: at any time.
func (k *keeper) due(s *Step, m *session) time.Time {
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
func (k *keeper) passed(s *Step, before []*Step) {
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
func (k *keeper) holders(m *session) string {
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

func (k *keeper) deviate(s *Step, text string) {
	k.result.Deviated++
	if len(k.result.Deviations) < maxShown {
		k.result.Deviations = append(k.result.Deviations, Deviation{Step: s.N, Session: s.Session, SQL: prose.Line(s.SQL, prose.Width), Text: text})
	}
}

// submit gives a step to its session.
func (k *keeper) submit(ctx context.Context, s *Step) error {
	k.quiet = time.Now()
	if k.began.IsZero() {
		k.began = k.quiet
	}
	m := k.sessions[s.Session]
	if s.Skip != "" || m != nil && m.gone || m == nil && s.Statement == nil {
		if s.Skip == "" && s.Statement != nil {
			s.Skip = "its session's connection is gone"
		}
		k.finish(s)
		return nil
	}
	if m == nil {
		m = &session{id: s.Session, orders: make(chan *Step, 1)}
		k.sessions[s.Session] = m
		k.result.Sessions++
		s.begun = s.Statement.Before == answer.Open
		if s.begun {
			k.result.Begun++
		}
		if err := k.connect(ctx, m, s); err != nil {
			return err
		}
		k.group.Go(func() error { return k.serve(ctx, m) })
	}
	if k.config.Before != nil {
		if err := k.config.Before(ctx, s); err != nil {
			return err
		}
	}
	s.sent = time.Now()
	m.step, m.blocked = s, false
	k.flight = append(k.flight, m)
	m.orders <- s
	return nil
}

// connect opens a session's connection.
func (k *keeper) connect(ctx context.Context, m *session, s *Step) error {
	target := k.config.Target
	if s.info != nil {
		target.Application = s.info.Application
	}
	conn, err := k.config.Backend.Connect(ctx, target)
	if err != nil {
		return fmt.Errorf("open session %d: %w", m.id, err)
	}
	m.conn = conn
	k.result.Backends[conn.ID()] = m.id
	var setup []string
	if s.info != nil && s.info.Level != "" {
		if sql, ok := levelOf(k.config.Backend, s.info.Level); ok {
			setup = append(setup, sql)
		}
	}
	if k.config.Setup != nil && s.info != nil {
		setup = append(setup, k.config.Setup(s.info)...)
	}
	if s.begun {
		setup = append(setup, "BEGIN")
	}
	for _, sql := range setup {
		if err := engine.Exec(ctx, conn, sql); err != nil {
			return errors.Join(fmt.Errorf("open session %d: %w", m.id, err), conn.Close())
		}
	}
	return nil
}

func levelOf(d engine.Descriptor, name string) (string, bool) {
	for _, l := range d.Levels {
		if l.History == name {
			return d.SetLevel(l.SQL), true
		}
	}
	return "", false
}

// serve is a session's goroutine.
func (k *keeper) serve(ctx context.Context, m *session) error {
	open, lost, failed := false, false, false
	var end *Step
	for s := range m.orders {
		if s.Statement == nil {
			end = s
			break
		}
		if failed && s.Statement.Before == answer.Idle {
			// The trace has not how the failed transaction ended: pgaudit, for one, does not log that.
			_, s.Lost = m.conn.Do(ctx, "ROLLBACK")
			lost = s.Lost != nil
		}
		if before := k.beforehand(s, open); before != "" && !lost {
			_, s.Lost = m.conn.Do(ctx, before)
			lost = s.Lost != nil
		}
		if !lost {
			s.Answer, s.Lost = m.conn.Do(ctx, s.SQL)
			open, lost, failed = s.Answer.After.InTransaction(), s.Lost != nil, s.Answer.After == answer.Failed
		}
		s.Outcome = k.config.Backend.Outcome(s.Answer, s.Lost)
		k.done <- outcome{s: m, step: s}
		if lost {
			break
		}
	}
	// A server may send its last byte before it has let go of the locks; the answer to ROLLBACK comes after that.
	if open && !lost && ctx.Err() == nil {
		_, err := m.conn.Do(ctx, "ROLLBACK")
		lost = err != nil
	}
	err := m.conn.Close()
	if lost || ctx.Err() != nil {
		err = nil // it is gone already
	}
	if end != nil {
		k.done <- outcome{s: m, step: end}
	}
	if err != nil {
		return fmt.Errorf("close session %d: %w", m.id, err)
	}
	return nil
}

// beforehand makes PostgreSQL choose the victim that the trace has: the waiter whose deadlock_timeout runs out first finds the circle
// (manual, 20.12). Other sessions have a longer one.
func (k *keeper) beforehand(s *Step, open bool) string {
	if !k.config.Victims || s.Statement.Error == nil || !isDeadlock(k.config.Backend, s.Statement.Error) || !open {
		return ""
	}
	return "SET LOCAL deadlock_timeout = '250ms'"
}

// wait waits until something happens, and looks at the locks meanwhile.
func (k *keeper) wait(ctx context.Context, due time.Time) error {
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

func (k *keeper) sleep(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func (k *keeper) allBlocked() bool {
	for _, m := range k.flight {
		if !m.blocked {
			return false
		}
	}
	return true
}

// took takes what a session has finished. A wait is believed until something finishes.
func (k *keeper) took(o outcome) {
	m := o.s
	k.flight = slices.DeleteFunc(k.flight, func(x *session) bool { return x == m })
	m.step, m.last, m.lastDone = nil, o.step, time.Now()
	m.blocked = false
	if o.step.Statement != nil {
		m.open = o.step.Answer.After.InTransaction()
		m.gone = o.step.Lost != nil
	} else {
		m.gone, m.open = true, false
		close(m.orders)
		delete(k.sessions, m.id)
	}
	for _, other := range k.flight {
		other.blocked = false
	}
	k.quiet, k.looked = time.Now(), time.Time{}
	k.finish(o.step)
}

// look asks the server who waits.
func (k *keeper) look(ctx context.Context) error {
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
		if !m.blocked && k.config.Backend.Silent != nil && time.Since(m.step.sent) > k.config.Backend.Patience && (m.wait.Unseen || k.config.Backend.Silent(m.step.SQL, m.open)) {
			m.blocked = true // the engine shows nothing of its waits: the time limit is the only sign
		}
		m.step.Waited = m.step.Waited || m.blocked
	}
	return nil
}

// unstick ends a state that nothing else ends.
func (k *keeper) unstick(ctx context.Context) error {
	for _, m := range k.flight {
		limit := max(k.config.Limits.Statement, 10*m.step.took)
		if !m.blocked && time.Since(m.step.sent) > limit {
			k.deviate(m.step, fmt.Sprintf("ended by force: it had not come back after %v", limit))
			return k.kill(ctx, m)
		}
	}
	if !k.allBlocked() || time.Since(k.quiet) < k.config.Limits.Stuck {
		return nil
	}
	// Nothing can be sent, or it would have been: everyone whose turn it is waits for a lock.
	idle := k.idle()
	if len(idle) > 0 && k.eof {
		// Nothing more comes of the sessions that hold the locks.
		for _, m := range idle {
			k.deviate(m.last, "its transaction was open when the trace ended, and others wait for its locks: it is rolled back")
			k.result.Left++
			m.open = false
			end := &Step{Session: m.id}
			m.step = end
			k.flight = append(k.flight, m)
			m.orders <- end
		}
		k.quiet = time.Now()
		return nil
	}
	if !k.eof && k.config.Limits.Ahead < 1<<20 {
		k.config.Limits.Ahead *= 4 // what lets go may come later
		return nil
	}
	m := k.flight[0]
	for _, x := range k.flight {
		if x.wait.Foreign {
			m = x
		}
	}
	k.deviate(m.step, fmt.Sprintf("ended by force: every session waits for a lock (this one for a lock of kind %q%s), and the server did not end that within %v", m.wait.Kind, k.holders(m), k.config.Limits.Stuck))
	return k.kill(ctx, m)
}

// idle are the sessions in a transaction that have nothing more to do.
func (k *keeper) idle() (list []*session) {
	for _, m := range k.sessions {
		if m.step == nil && m.open && !m.gone && !slices.ContainsFunc(k.pending, func(s *Step) bool { return s.Session == m.id }) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b *session) int { return compare(int64(a.id), int64(b.id)) })
	return list
}

func (k *keeper) kill(ctx context.Context, m *session) error {
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
func (k *keeper) finish(s *Step) {
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
	}
	if k.config.Done != nil {
		k.config.Done(s)
	}
	k.finished++
	if k.config.Progress != nil && k.finished%100 == 0 {
		k.config.Progress(k.finished)
	}
}

// deadlock notes the victim of one, here or in the trace, with who else was waiting.
func (k *keeper) deadlock(s *Step) {
	d := Deadlock{Session: s.Session, Step: s.N, SQL: s.SQL, Tags: s.Tags(), Replayed: s.Outcome.Reason == answer.ReasonDeadlock}
	if s.standIn != "" {
		d.SQL = WithoutTags(s.Statement.SQL, k.prep.dialect)
	}
	if e := s.Statement.Error; e != nil {
		d.Captured = isDeadlock(k.config.Backend, e)
	}
	if !d.Captured && !d.Replayed {
		return
	}
	for _, m := range k.flight {
		if m.step != s && m.step.Waited {
			d.Others = append(d.Others, Party{Session: m.id, SQL: m.step.SQL, Tags: m.step.Tags()})
		}
	}
	if len(d.Others) == 0 { // the others may be done already: they were let go by this one's end
		for _, m := range k.sessions {
			if m.id != s.Session && m.last != nil && m.last.Waited && time.Since(m.lastDone) < time.Second {
				d.Others = append(d.Others, Party{Session: m.id, SQL: m.last.SQL, Tags: m.last.Tags()})
			}
		}
	}
	slices.SortFunc(d.Others, func(a, b Party) int { return compare(int64(a.Session), int64(b.Session)) })
	if k.otherVictim(&d) {
		return
	}
	k.result.Deadlocks = append(k.result.Deadlocks, d)
}

// otherVictim reports whether a deadlock is one that is known already: the trace's and the replay's, of which the server chose another victim.
func (k *keeper) otherVictim(d *Deadlock) bool {
	if len(k.result.Deadlocks) == 0 {
		return false
	}
	old := &k.result.Deadlocks[len(k.result.Deadlocks)-1]
	if old.Captured == d.Captured || old.Replayed == d.Replayed || max(old.Step-d.Step, d.Step-old.Step) > 2*len(k.sessions) {
		return false
	}
	party := func(a, b *Deadlock) bool {
		return slices.ContainsFunc(a.Others, func(p Party) bool { return p.Session == b.Session && p.SQL == b.SQL })
	}
	if !party(old, d) && !party(d, old) {
		return false
	}
	old.Captured, old.Replayed, old.OtherVictim = true, true, true
	return true
}

// isDeadlock reports whether a trace's error is that of a deadlock's victim. Logs without codes have the message.
func isDeadlock(d engine.Descriptor, e *answer.Error) bool {
	if e.Code == "" {
		return strings.Contains(strings.ToLower(e.Message), "deadlock")
	}
	return d.Outcome(answer.Answer{Err: e}, nil).Reason == answer.ReasonDeadlock
}

// Package lab executes schedules of several sessions on a real server, one case after the other, and tells what really
// happened: who waited for whom, who was resumed, who was aborted and why, what each step returned.
//
// A Lab keeps its connections from case to case. Who goes next is decided by scheduler.Core, who waits by the server's lock
// views, what an error means for the rest of a session's steps by the backend's table.
package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/product"
	"wirecheck/scheduler/shell"
)

// Config says where and how a Lab executes.
type Config struct {
	Backend engine.Descriptor
	// Target is the server and the database, which is the lab's own: cases create and drop in it what they like. Its Dial may
	// lead through a proxy that watches.
	Target engine.Target
	// Side is the same server for the connection that looks at the locks and kills; it never leads through a proxy.
	Side  engine.Target
	Level product.Level // of every session
	// Application is what the sessions call themselves on the server, followed by a slash and the session's name.
	Application string
	// Keep lets sessions go on from case to case with what they have set, but for open transactions, as isolationtester does
	// with the permutations of a file. Otherwise each case has sessions as new.
	Keep bool
	// After is executed in each session when its steps are done; empty: nothing. A proxy that learns what a statement did
	// only with the next one needs it.
	After string
	// Ended, if set, is called when all steps are done and all transactions have ended, before the final queries.
	Ended func()
	// Invariants are looked at before the first step, and when all transactions have ended (Result.Invariants).
	Invariants []Invariant
	// Hidden tells the names of columns that are not the scenario's, and not shown.
	Hidden func(column string) bool
	// Aside executes setups past Target's proxy: what it watches begins with the sessions. It must know rows that it has not seen
	// written for older than all that it sees.
	Aside bool
	// Reset says how the database gets back to where setup left it, in front of each permutation.
	Reset Reset
	// Limits are the scheduler's. Case bounds one case, from its setup to its teardown; default one minute.
	Limits shell.Limits
	Case   time.Duration
}

// Reset is a way to begin anew.
type Reset int

// The ways to begin anew.
const (
	// Setup executes the scenario's setup before each permutation and its teardown after it, as isolationtester does. What
	// the teardown leaves is removed, so that no permutation sees another one's traces.
	Setup Reset = iota
	// Thorough executes setup once, and then puts rows and counters back, where the definitions stay as they were; nothing is
	// left of earlier rows.
	Thorough
	// Quick does the same by DELETE and INSERT: the fastest, but on InnoDB deleted rows may linger for a while and change
	// which gaps a statement locks.
	Quick
)

// Lab executes cases in one database. It belongs to one goroutine at a time.
type Lab struct {
	config   Config
	watcher  engine.Watcher
	side     engine.Conn      // clears, resets and reads tables; it never leads through a proxy
	empty    string           // the fingerprint of the database without anything in it
	control  *session         // executes setup, teardown and final queries
	members  []*session       // by their place in the scenario
	current  *scenario.Spec   // whose setup the database is in, unless Reset is Setup
	contents *engine.Contents // what that setup left
	outputs  []Output         // what that setup brought back
	altered  bool             // something was executed since that may have changed definitions
	pristine bool             // nothing was executed at all since it was reset or set up
}

// session is one connection of the lab.
type session struct {
	conn   engine.Conn
	wire   *wire // below conn; nil: the product is embedded
	name   string
	heard  func(answer.Notice) // while a permutation is executed
	inside bool                // a transaction is open
	used   bool                // something was executed since it was new: functions such as LAST_INSERT_ID() can tell
	dirty  bool                // something that was executed may have left traces: settings, locks, temporary tables
	lost   bool                // the connection cannot be used any more
	limits bool                // something that was executed may have set how long the session's statements wait
	tells  bool                // conn is an engine.Checker whose server tells
	direct bool                // no proxy watches it
}

// Thorough makes resets thorough until it is called with false: what was found is confirmed from a database in which nothing is
// left of earlier rows. A lab that sets up anew each time does not change.
func (l *Lab) Thorough(on bool) {
	if l.config.Reset == Setup {
		return
	}
	if l.config.Reset, l.pristine = Quick, false; on {
		l.config.Reset = Thorough
	}
}

// Forget has the next case set up afresh, even if the database is in the state that its setup leaves.
func (l *Lab) Forget() { l.current, l.contents = nil, nil }

// StuckAfter says how long the server may take to end a state in which all sessions wait (shell.Limits.Stuck).
func (l *Lab) StuckAfter(limit time.Duration) { l.config.Limits.Stuck = limit }

// do executes one step.
// between ends a statement, and a comment in which it may end.
const between = "\n;\n"

func (s *session) do(ctx context.Context, parts ...string) (answer.Answer, error) {
	a, err := s.conn.Do(ctx, strings.Join(parts, between))
	s.inside, s.lost = a.After.InTransaction(), err != nil
	s.used, s.dirty = true, s.dirty || s.lost
	for _, sql := range parts {
		s.dirty = s.dirty || !plain(sql)
		s.limits = s.limits || setsLimit(sql)
	}
	return a, err
}

// expect tells the connection which queries come next, where it can be told and leads to the server itself.
func (s *session) expect(ctx context.Context, queries []string) error {
	if c, ok := s.conn.(engine.Expecter); ok && s.direct && !s.lost {
		return c.Expect(ctx, queries)
	}
	return nil
}

// settle waits until no query is under way any more that a session was expected to be given: it may keep others from tables. A session whose
// connection fails at that is lost.
func (l *Lab) settle(ctx context.Context) {
	for _, s := range l.members {
		if s != nil && s.expect(ctx, nil) != nil {
			s.lost, s.dirty = true, true
		}
	}
}

// CaseLimit is the default of Config.Case.
const CaseLimit = time.Minute

// killLimit is for ending what a case that was given up left running.
const killLimit = 10 * time.Second

// Open connects to the server.
func Open(ctx context.Context, c Config) (*Lab, error) {
	if c.Case <= 0 {
		c.Case = CaseLimit
	}
	l := &Lab{config: c}
	var err error
	if l.watcher, err = c.Backend.Watch(ctx, c.Side); err != nil {
		return nil, fmt.Errorf("open the connection that looks at the locks: %w", err)
	}
	err = l.open(ctx)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) open(ctx context.Context) (err error) {
	if l.side, err = l.config.Backend.Connect(ctx, l.config.Side); err != nil {
		return fmt.Errorf("open the connection that reads tables: %w", err)
	}
	if err = l.config.Backend.Lab.PrepareConn(ctx, l.side); err != nil {
		return err
	}
	if l.empty, err = l.config.Backend.Lab.Fingerprint(ctx, l.side); err != nil {
		return fmt.Errorf("read the empty database: %w", err)
	}
	watched := l.config.Target
	if l.config.Aside {
		l.config.Target = l.config.Side
	}
	l.control, err = l.connect(ctx, "control connection")
	l.config.Target = watched
	return err
}

// Close ends the lab's connections. What cases left in the database is the caller's affair.
func (l *Lab) Close() error {
	var errs []error
	for _, s := range append(l.members, l.control) {
		if s != nil && s.lost {
			_ = s.conn.Close() // it is closed already, or the server has
		} else if s != nil {
			errs = append(errs, s.conn.Close())
		}
	}
	if l.side != nil {
		errs = append(errs, l.side.Close())
	}
	if l.watcher != nil {
		errs = append(errs, l.watcher.Close())
	}
	l.members, l.control, l.side, l.watcher = nil, nil, nil, nil
	return errors.Join(errs...)
}

// connect opens a session at the lab's level.
func (l *Lab) connect(ctx context.Context, name string) (*session, error) {
	s, target := &session{name: name}, l.config.Target
	_, address := target.Address()
	_, aside := l.config.Side.Address()
	s.direct = address == aside
	if l.config.Application != "" {
		target.Application = l.config.Application + "/" + name
	}
	target.Heard = func(n answer.Notice) {
		if s.heard != nil {
			s.heard(n)
		}
	}
	target.Dial = s.remembering(target.Dial)
	conn, err := l.config.Backend.Connect(ctx, target)
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	s.conn = conn
	if err := l.setLevel(ctx, s); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

func (l *Lab) setLevel(ctx context.Context, s *session) error {
	if err := engine.Exec(ctx, s.conn, l.config.Backend.SetLevel(l.config.Level.SQL)); err != nil {
		return fmt.Errorf("set the isolation level: %w", err)
	}
	if c, ok := s.conn.(engine.Checker); ok {
		var err error
		if s.tells, err = c.Tell(ctx); err != nil {
			return fmt.Errorf("ask whether the server tells of its looks for deadlocks: %w", err)
		}
	}
	return nil
}

// ready sees to it that the scenario's sessions are there and as new. plain says that nothing in them can tell a session that has
// executed plain statements from a new one: then such a one will do.
func (l *Lab) ready(ctx context.Context, spec *scenario.Spec, plain bool) error {
	for len(l.members) < len(spec.Sessions) {
		l.members = append(l.members, nil)
	}
	l.settle(ctx)
	var stale []int
	for i, s := range l.members {
		if i >= len(spec.Sessions) {
			if s != nil && (s.dirty || s.inside) {
				if err := l.discard(ctx, i); err != nil {
					return err
				}
			}
			continue
		}
		name := spec.Sessions[i].Name
		// What it is called on the server was said when it connected.
		renamed := s != nil && l.config.Application != "" && s.name != name
		if s != nil && !s.dirty && !s.inside && !renamed && (plain || !s.used) {
			continue
		}
		if renamed {
			if err := l.discard(ctx, i); err != nil {
				return err
			}
		}
		stale = append(stale, i)
	}
	return l.renew(ctx, stale, func(i int) string { return spec.Sessions[i].Name })
}

// renew makes sessions as new: by the server's own means where it has some, all at once, or by new connections, one after the other, so that
// they always have their numbers in the same order.
func (l *Lab) renew(ctx context.Context, stale []int, name func(i int) string) error {
	renewed := make([]bool, len(l.members))
	var g errgroup.Group
	for _, i := range stale {
		g.Go(func() (err error) {
			s := l.members[i]
			if s == nil || s.lost {
				return nil
			}
			if renewed[i], err = l.reset(ctx, s); err != nil {
				return fmt.Errorf("reset session %d: %w", s.conn.ID(), err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, i := range stale {
		if renewed[i] {
			continue
		}
		as := name(i)
		if err := l.discard(ctx, i); err != nil {
			return err
		}
		var err error
		if l.members[i], err = l.connect(ctx, as); err != nil {
			return err
		}
	}
	return nil
}

// reset makes a session as new by the server's own means; done is false if there are none.
func (l *Lab) reset(ctx context.Context, s *session) (done bool, err error) {
	if done, err = l.wipe(ctx, s); !done || err != nil {
		return false, err
	}
	s.inside, s.dirty, s.used = false, false, false
	if l.config.Keep {
		return true, nil
	}
	s.limits = false
	return true, l.setLevel(ctx, s)
}

// wipe is reset without what the lab itself sets in a session.
func (l *Lab) wipe(ctx context.Context, s *session) (done bool, err error) {
	if r, ok := s.conn.(engine.Resetter); ok && !l.config.Keep {
		return true, r.Reset(ctx)
	}
	if l.config.Backend.Discard == "" && !l.config.Keep {
		return false, nil
	}
	if s.inside {
		if err := engine.Exec(ctx, s.conn, "ROLLBACK"); err != nil {
			return false, err
		}
	}
	if l.config.Keep {
		return true, nil
	}
	return true, engine.Exec(ctx, s.conn, l.config.Backend.Discard)
}

// discard ends a session and waits until the server has let go of everything that it held.
func (l *Lab) discard(ctx context.Context, i int) error {
	s := l.members[i]
	if s == nil {
		return nil
	}
	l.members[i] = nil
	if s.inside && !s.lost {
		// A server may send its last byte before it has rolled back; the answer to ROLLBACK comes after that.
		if err := engine.Exec(ctx, s.conn, "ROLLBACK"); err != nil {
			return errors.Join(err, s.conn.Close())
		}
	}
	if err := s.conn.Close(); err != nil && !s.lost {
		return err
	}
	return nil
}

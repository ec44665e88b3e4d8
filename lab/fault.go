package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"syscall"

	"wirecheck/answer"
	"wirecheck/scheduler"
	"wirecheck/scheduler/shell"
)

// faults find steps in whose place the session's connection ends. A ROLLBACK that is killed or cut must do what any other one does: the server undoes the
// transaction and lets go of its locks, so that each oracle judges the step as the ROLLBACK that it is for everybody else. Of a COMMIT that is cut nobody
// hears whether it was done.
var (
	faults = regexp.MustCompile(`(?i)^\s*ROLLBACK\s*/\* wirecheck: (killed|cut) \*/\s*;?\s*$`)
	doubts = regexp.MustCompile(`(?i)^\s*COMMIT\s*/\* wirecheck: cut \*/\s*;?\s*$`)
	// waits find statements whose session is killed as soon as they wait. If they never do, they are statements like all others.
	waiters = regexp.MustCompile(`(?i)/\* wirecheck: killed in a wait \*/\s*;?\s*$`)
)

// The ways in which a step ends its session's connection.
const (
	killed = "killed" // the server is asked to end it
	cut    = "cut"    // the network ends it
	doubt  = "doubt"  // the network ends it behind a COMMIT
	inWait = "wait"   // the server is asked to end it when its statement waits
)

// fault is how a step ends its session's connection; empty: it does not.
func fault(sql string) string {
	switch {
	case InDoubt(sql):
		return doubt
	case waiters.MatchString(sql):
		return inWait
	}
	if m := faults.FindStringSubmatch(sql); m != nil {
		return m[1]
	}
	return ""
}

// InDoubt reports whether a step is a COMMIT of which nobody hears whether it was done.
func InDoubt(sql string) bool { return doubts.MatchString(sql) }

// Ending says how a person ends the connection as a step does; empty: the step does not.
func Ending(sql string) string {
	return map[string]string{
		killed: "in place of this, end the terminal's connection from another one (KILL, pg_terminate_backend)",
		cut:    "in place of this, kill the terminal's client (kill -9)",
		doubt:  "kill the terminal's client (kill -9) before it has the answer",
		inWait: "as soon as it waits, end the terminal's connection from another one (KILL, pg_terminate_backend)",
	}[fault(sql)]
}

// wire is a session's network connection.
type wire struct {
	net.Conn
	last bool // the next message is the last one that gets through
}

// Write implements net.Conn.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	if w.last {
		_ = w.Close() // what was sent arrives all the same
	}
	return n, err
}

// SyscallConn implements syscall.Conn: engine.Settler looks by it whether all that the server has sent was read.
func (w *wire) SyscallConn() (syscall.RawConn, error) {
	if c, ok := w.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// remembering keeps the session's network connection.
func (s *session) remembering(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s.wire = &wire{Conn: conn}
		return s.wire, nil
	}
}

// end ends a session's connection, and comes back when the server has let go of what the session held: its list of sessions does not have it any more.
func (x *execution) end(ctx context.Context, m *session, how string) (answer.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	a := answer.Answer{Before: answer.Idle, After: answer.Idle, Results: []answer.Result{{}}}
	if m.inside {
		a.Before = answer.Open
	}
	id := m.conn.ID()
	m.inside, m.lost, m.dirty = false, true, true
	switch {
	case m.wire == nil:
		return a, fmt.Errorf("session %d has no connection that could end", id)
	case how == cut:
		_ = m.wire.Close() // whatever it says, nothing goes through it any more
	case how == doubt:
		m.wire.last = true
		_, _ = m.conn.Do(ctx, "COMMIT")
	}
	return a, x.gone(ctx, id, how == killed)
}

// gone waits until the server's list of sessions has one no more, which it is asked to end if kill is set.
func (x *execution) gone(ctx context.Context, id uint64, kill bool) error {
	x.watching.Lock()
	defer x.watching.Unlock()
	if kill {
		if err := x.lab.watcher.Kill(ctx, id); err != nil {
			return err
		}
	}
	for {
		if there, err := x.lab.watcher.Alive(ctx, id); err != nil {
			return fmt.Errorf("wait for the end of session %d: %w", id, err)
		} else if !there {
			return nil
		}
	}
}

// endWaiting ends a session whose statement is to be killed in a wait. All steps that are with the server wait, as out says, so that nobody but the
// scenario's next step could end the wait; one session's end may, so that the others are looked at again. Whom the statement waited for is noted.
func (x *execution) endWaiting(ctx context.Context, sessions []scheduler.Session, places []int, out []shell.Wait) error {
	for i, s := range sessions {
		if out[i].Foreign || fault(x.perm.Steps[places[i]].Step.SQL) != inWait {
			continue
		}
		x.note(func() { x.ended[s], x.waitsFor[places[i]] = true, numbers(out[i].For) })
		out[i] = shell.Wait{}
		return x.gone(ctx, x.lab.members[s].conn.ID(), true)
	}
	return nil
}

// victim is what a statement that was killed in a wait gave, whatever the server's last word was: its transaction is undone, as that of a deadlock's
// victim is, and its session is no more.
func victim(m *session, a answer.Answer, err error) (answer.Answer, answer.Outcome, error) {
	if err == nil && a.Err == nil {
		return a, answer.Outcome{}, errors.New("it has an answer although its session was killed while it waited")
	}
	m.inside, m.lost, m.dirty = false, true, true
	a = answer.Answer{Before: a.Before, After: answer.Idle, Err: &answer.Error{Message: "the connection was killed in a wait"}}
	return a, answer.Outcome{Effect: answer.EffectRolledBack, Reason: answer.ReasonKilled}, nil
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"syscall"

	"wirecheck/answer"
)

// faults find steps in whose place the session's connection ends. A ROLLBACK that is killed or cut must do what any other one does: the server undoes the
// transaction and lets go of its locks, so that each oracle judges the step as the ROLLBACK that it is for everybody else. Of a COMMIT that is cut nobody
// hears whether it was done.
var (
	faults = regexp.MustCompile(`(?i)^\s*ROLLBACK\s*/\* wirecheck: (killed|cut) \*/\s*;?\s*$`)
	doubts = regexp.MustCompile(`(?i)^\s*COMMIT\s*/\* wirecheck: cut \*/\s*;?\s*$`)
)

// The ways in which a step ends its session's connection.
const (
	killed = "killed" // the server is asked to end it
	cut    = "cut"    // the network ends it
	doubt  = "doubt"  // the network ends it behind a COMMIT
)

// fault is how a step ends its session's connection; empty: it does not.
func fault(sql string) string {
	if InDoubt(sql) {
		return doubt
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
	x.watching.Lock()
	defer x.watching.Unlock()
	if how == killed {
		if err := x.lab.watcher.Kill(ctx, id); err != nil {
			return a, err
		}
	}
	for {
		there, err := x.lab.watcher.Alive(ctx, id)
		if err != nil {
			return a, fmt.Errorf("wait for the end of session %d: %w", id, err)
		}
		if !there {
			return a, nil
		}
	}
}

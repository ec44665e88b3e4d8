package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/statement"
	"wirecheck/trace/lex"
)

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
	odd      bool // see follows
	cut      bool // the server has ended its transaction, and had not in the trace
}

// EndedBefore is why the rest of a transaction is not sent: without it, its statements would be transactions of their own, which no application sends.
const EndedBefore = "the server had refused its transaction, which it had not in the trace"

// boundary reports whether a statement begins a transaction, or does what ends one by itself, and whether it ends one.
func (s *Step) boundary() (begins, ends bool) {
	for _, v := range s.form {
		switch v.Control.Verb {
		case statement.ControlBegin:
			begins = true
		case statement.ControlCommit, statement.ControlRollback:
			ends = true
		default:
			begins = begins || v.Ends
		}
	}
	return begins, ends
}

// outcome is what a session tells when a step is done.
type outcome struct {
	s    *session
	step *Step
}

// submit gives a step to its session.
func (k *pacer) submit(ctx context.Context, s *Step) error {
	k.quiet = time.Now()
	if k.began.IsZero() {
		k.began = k.quiet
		k.compare.made.first, k.compare.made.began = s.start, k.began
	}
	m := k.sessions[s.Session]
	if s.Skip != "" || m != nil && m.gone || m == nil && s.Statement == nil {
		if s.Skip == "" && s.Statement != nil {
			s.Skip = "its session's connection is gone"
		}
		k.finish(s)
		return nil
	}
	if m != nil && m.cut && s.Statement != nil {
		begins, ends := s.boundary()
		if m.cut = !begins && !ends; m.cut {
			s.Skip = EndedBefore
			k.finish(s)
			return nil
		}
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
	if k.config.Before != nil && s.asked == 0 {
		if err := k.config.Before(ctx, s); err != nil {
			return err
		}
	}
	if s.standIn == "" && s.asked == 0 {
		s.SQL = k.compare.made.mapped(s)
	}
	m.follows(s)
	k.versions = k.versions && !(k.dialect == lex.MySQL && otherEngine.MatchString(s.SQL))
	s.sent = time.Now()
	m.step, m.blocked = s, false
	k.flight = append(k.flight, m)
	m.orders <- s
	return nil
}

// connect opens a session's connection.
func (k *pacer) connect(ctx context.Context, m *session, s *Step) error {
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
	level := k.config.Level
	if level == "" && s.info != nil {
		level = s.info.Level
	}
	if sql, ok := levelOf(k.config.Backend, level); ok {
		setup = append(setup, sql)
	}
	if k.config.Setup != nil && s.info != nil {
		setup = append(setup, k.config.Setup(s.info)...)
	}
	if s.begun {
		setup = append(setup, "BEGIN")
	}
	for _, sql := range setup {
		m.odd = m.odd || otherLevel.MatchString(sql)
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
func (k *pacer) serve(ctx context.Context, m *session) error {
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
			began := time.Now()
			s.Answer, s.Lost = m.conn.Do(ctx, s.SQL)
			s.lasted = time.Since(began)
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
func (k *pacer) beforehand(s *Step, open bool) string {
	if !k.config.Victims || s.Statement.Error == nil || !isDeadlock(k.config.Backend, s.Statement.Error) || !open {
		return ""
	}
	return "SET LOCAL deadlock_timeout = '250ms'"
}

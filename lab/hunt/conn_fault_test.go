package hunt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// conn is a connection that may have a fault.
type conn struct {
	engine.Conn
	in      *Injector
	target  engine.Target
	session string // of the scenario; empty: it never has a fault

	mu    sync.Mutex   // held while the server executes something
	state answer.State // guarded by mu

	next  int      // the first step of the plan that may come next; guarded by in.mu
	wrote []string // the tables that the open transaction has written; guarded by in.mu
}

// connect opens a connection through the injector.
func (in *Injector) connect(ctx context.Context, t engine.Target) (engine.Conn, error) {
	real, err := in.engine.Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: real, in: in, target: t, state: answer.Idle}
	if i := strings.LastIndexByte(t.Application, '/'); i >= 0 {
		c.session = t.Application[i+1:]
		in.mu.Lock()
		in.conns = append(in.conns, c)
		in.mu.Unlock()
	}
	return c.complete(), nil
}

// complete gives a connection the optional methods that the real one has, and no others.
func (c *conn) complete() engine.Conn {
	_, resets := c.Conn.(engine.Resetter)
	checker, checks := c.Conn.(engine.Checker)
	settler, settles := c.Conn.(engine.Settler)
	reset, check := resetting{c}, checking(checker)
	switch {
	case resets && checks && settles:
		return struct {
			*conn
			resetting
			checking
			engine.Settler
		}{c, reset, check, settler}
	case resets && checks:
		return struct {
			*conn
			resetting
			checking
		}{c, reset, check}
	case resets && settles:
		return struct {
			*conn
			resetting
			engine.Settler
		}{c, reset, settler}
	case checks && settles:
		return struct {
			*conn
			checking
			engine.Settler
		}{c, check, settler}
	case resets:
		return struct {
			*conn
			resetting
		}{c, reset}
	case checks:
		return struct {
			*conn
			checking
		}{c, check}
	case settles:
		return struct {
			*conn
			engine.Settler
		}{c, settler}
	}
	return c
}

// checking is what engine.Checker adds to a connection.
type checking interface {
	Tell(ctx context.Context) (bool, error)
	Checked() bool
}

// resetting makes a connection as new.
type resetting struct{ of *conn }

func (r resetting) Reset(ctx context.Context) error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.state = answer.Idle
	return r.of.Conn.(engine.Resetter).Reset(ctx)
}

// Close implements engine.Conn.
func (c *conn) Close() error {
	c.in.mu.Lock()
	c.in.conns = slices.DeleteFunc(c.in.conns, func(other *conn) bool { return other == c })
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// Do implements engine.Conn.
func (c *conn) Do(ctx context.Context, sql string) (answer.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, p := c.in.enter(ctx, c, sql)
	if p == nil {
		return c.do(ctx, sql)
	}
	before := c.state
	a, err := f.execute(ctx, c, p)
	a.Before, a.After = before, c.state
	c.in.left(c, p, a)
	return a, err
}

// do executes something on the real connection. mu is held.
func (c *conn) do(ctx context.Context, sql string) (answer.Answer, error) {
	a, err := c.Conn.Do(ctx, sql)
	c.state = a.After
	return a, err
}

// inside executes work in a transaction: the open one or, for a step that is a transaction by itself, one around it, so that what
// a fault needs besides is done at the same moment for all others.
func (c *conn) inside(ctx context.Context, work func() (answer.Answer, error)) (answer.Answer, error) {
	if c.state.InTransaction() {
		return work()
	}
	if a, err := c.do(ctx, "BEGIN"); err != nil || a.Err != nil {
		return a, err
	}
	a, err := work()
	if err != nil || !c.state.InTransaction() { // the server has rolled it back
		return a, err
	}
	end := "COMMIT"
	if a.Err != nil {
		end = "ROLLBACK"
	}
	e, err := c.do(ctx, end)
	if err != nil || e.Err != nil {
		return e, err
	}
	return a, nil
}

// savepoint is the name of ours.
const savepoint = "wirecheck_fault"

// attempt executes work in the open transaction so that it is as if nothing had been executed if work is not ok. gone says
// that the server has ended the transaction.
func (c *conn) attempt(ctx context.Context, work func() (ok bool, err error)) (ok, gone bool, err error) {
	if err := c.must(ctx, "SAVEPOINT "+savepoint); err != nil {
		return false, false, err
	}
	ok, err = work()
	switch {
	case err != nil:
		return false, false, err
	case !c.state.InTransaction():
		return false, true, nil
	case !ok:
		if err := c.must(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
			return false, false, err
		}
	}
	return ok, false, c.must(ctx, "RELEASE SAVEPOINT "+savepoint)
}

// must executes a statement that no server refuses here.
func (c *conn) must(ctx context.Context, sql string) error {
	a, err := c.do(ctx, sql)
	if err == nil && a.Err != nil {
		err = a.Err
	}
	if err != nil {
		return fmt.Errorf("fault: execute %s: %w", sql, err)
	}
	return nil
}

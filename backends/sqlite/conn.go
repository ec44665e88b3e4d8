package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"wirecheck/answer"
)

var (
	errKilled = errors.New("the connection was ended")
	errClosed = errors.New("the connection is closed")
)

// conn is a connection to a database.
type conn struct {
	id   uint64
	of   *folder
	path string

	state  sync.Mutex // guards lost and h's being open; never held while a statement is under way
	lost   error      // why it cannot be used any more
	closed bool       // h is closed

	use sync.Mutex // held while h is used, taken before state
	h   *handle
}

// What each connection begins with. Foreign keys are off unless asked for (sqlite.org/foreignkeys.html, section 2), which would make
// comments of them. What is lost with the machine's power need not be written: this setting reads the database, which somebody may have
// locked; then it is set before the next statement, or the one after.
const (
	foreignKeys = "PRAGMA foreign_keys = ON"
	unsafeSync  = "PRAGMA synchronous = OFF"
)

// ID implements engine.Conn: numbers are given by this process.
func (c *conn) ID() uint64 { return c.id }

// Do implements engine.Conn. The library's calls are made on the caller's goroutine.
func (c *conn) Do(ctx context.Context, sql string) (a answer.Answer, err error) {
	c.use.Lock()
	defer c.use.Unlock()
	if err := c.usable(); err != nil {
		c.shut() // ctx may have ended just behind the last statement
		return a, err
	}
	done := make(chan struct{})
	defer close(done)
	release := context.AfterFunc(ctx, func() { c.end(context.Cause(ctx), done) })
	defer release()
	defer func() {
		if p := recover(); p != nil { // the library's memory is not to be trusted any more; nothing of it is freed
			err = fmt.Errorf("the SQLite library crashed: %v", p)
			c.state.Lock()
			c.lost, c.closed = err, true
			c.state.Unlock()
			c.of.leave(c.id)
		}
	}()
	c.h.refresh()
	a.Before = c.h.transaction()
	a.Results, a.Err = c.h.execute(sql)
	a.After = c.h.transaction()
	c.state.Lock()
	lost := c.lost
	c.state.Unlock()
	if lost != nil { // whatever was under way is rolled back
		c.shut()
		a.Err = nil
		return a, lost
	}
	return a, nil
}

func (c *conn) usable() error {
	c.state.Lock()
	defer c.state.Unlock()
	if c.lost == nil && c.closed {
		return errClosed
	}
	return c.lost
}

// interruptEvery is how often a statement is interrupted until it ends: an interruption that comes just before a statement's first step
// is forgotten (sqlite.org/c3ref/interrupt.html).
const interruptEvery = time.Millisecond

// end makes the connection of no more use and interrupts what is under way until done is closed.
func (c *conn) end(why error, done <-chan struct{}) {
	tick := time.NewTicker(interruptEvery)
	defer tick.Stop()
	for c.interrupt(why); ; c.interrupt(why) {
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

func (c *conn) interrupt(why error) {
	c.state.Lock()
	defer c.state.Unlock()
	if c.lost == nil {
		c.lost = why
	}
	if !c.closed {
		c.h.interrupt()
	}
}

// stop ends the connection and waits until the library has let go of its locks.
func (c *conn) stop(why error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.use.Lock()
		defer c.use.Unlock()
		c.shut()
	}()
	c.end(why, ended)
}

func (c *conn) kill() { c.stop(errKilled) }

// shut closes the database, which rolls back. use is held.
func (c *conn) shut() {
	c.state.Lock()
	defer c.state.Unlock()
	if !c.closed {
		c.closed = true
		c.h.close()
		c.of.leave(c.id)
	}
}

// Close implements engine.Conn.
func (c *conn) Close() error {
	c.stop(errClosed)
	return nil
}

// Reset implements engine.Resetter: it opens the database anew.
func (c *conn) Reset(context.Context) error {
	c.use.Lock()
	defer c.use.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	h, err := openSet(c.path)
	if err != nil {
		return err
	}
	c.state.Lock()
	defer c.state.Unlock()
	c.h.close()
	c.h = h
	return nil
}

// openSet opens a database with the settings.
func openSet(path string) (*handle, error) {
	h, err := open(path)
	if err != nil {
		return nil, err
	}
	if _, refused := h.execute(foreignKeys); refused != nil {
		h.close()
		return nil, fmt.Errorf("open %s: %w", path, refused)
	}
	h.refresh()
	return h, nil
}

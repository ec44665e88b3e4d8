package mysqlwire

import (
	"errors"
	"io"
	"time"

	"wirecheck/proxy/relay"
)

// idleWait is how long a session waits for one side alone before it watches the other side too. A command that comes or
// is answered sooner costs no second goroutine.
const idleWait = 20 * time.Millisecond

// await waits until c has input. If that takes long, a second goroutine watches other meanwhile: an error there ends the wait with *otherError. Input there stays in its buffer, and ends the wait with errAlert if alert is set.
func (c *conn) await(other *conn, alert bool) error {
	if c.buffered() > 0 {
		return nil
	}
	if c.flush != nil {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.room(1)
	if alert && other.buffered() > 0 {
		return errAlert
	}
	if err := c.until(time.Now().Add(idleWait)); err != nil {
		return err
	}
	if err := c.read(); !isTimeout(err) {
		return err
	}
	if c.interrupted.Load() {
		return errInterrupted
	}
	c.rests()
	other.rests()
	return c.awaitBoth(other, alert)
}

// until sets the deadline of the next read; the zero time is none. It does not overlook an interrupt that came before:
// interrupt sets the flag before the deadline, and until looks at the flag after it has set the deadline.
func (c *conn) until(deadline time.Time) error {
	if err := c.raw.SetReadDeadline(deadline); err != nil {
		return err
	}
	if c.interrupted.Load() {
		return errInterrupted
	}
	return nil
}

var errAlert = errors.New("unexpected input from the other side")

// otherError is the error of the connection that a wait only watched.
type otherError struct{ err error }

func (e *otherError) Error() string { return e.err.Error() }
func (e *otherError) Unwrap() error { return e.err }

// awaitBoth is await after the first moment. The wait that ends first ends the other one by a deadline in the past.
func (c *conn) awaitBoth(other *conn, alert bool) error {
	if err := c.until(time.Time{}); err != nil {
		return err
	}
	if other.interrupted.Load() || other.until(time.Time{}) != nil { // it is on its way out
		return c.fill()
	}
	var watched error
	done := make(chan struct{})
	go func() {
		defer close(done)
		watched = other.watch(alert)
		if alert || watched != nil && !isTimeout(watched) {
			c.wake()
		}
	}()
	err := c.read()
	other.wake()
	<-done
	switch {
	case err == nil || !isTimeout(err):
		return err
	case watched != nil && !isTimeout(watched):
		return &otherError{watched}
	case c.interrupted.Load():
		return errInterrupted
	case alert && watched == nil:
		return errAlert
	}
	return c.fill()
}

// watch waits until the connection is broken. If alert is set, it waits also until the peer ends its side, or sends something, which stays in the buffer. A client
// that ends its side still gets the answers to what it has sent, as it does of the server.
func (c *conn) watch(alert bool) error {
	if !alert {
		if err := awaitHangUp(relay.RawOf(c.raw), relay.Broken); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if c.buffered() > 0 && c.buffered() == len(c.in) { // it sent more than we hold
		return nil
	}
	c.room(c.buffered() + 1)
	if err := c.read(); alert || err != io.EOF {
		return err
	}
	return nil
}

// wake ends a running read, or the next one. A connection on which this fails is closed and needs no waking.
func (c *conn) wake() {
	if err := c.raw.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return
	}
}

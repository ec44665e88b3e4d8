package mysqlwire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// frameMax is the longest payload of one frame; a frame of exactly this length is continued in the next one
	// (MariaDB Knowledge Base, "0-packet").
	frameMax   = 1<<24 - 1
	headerSize = 4
	// bufferSize is what a connection's buffers have in an ordinary session.
	bufferSize = 16 << 10
	// packetMax bounds what is held in memory of one packet that must be understood; longer ones are streamed.
	packetMax = 1 << 20
)

var (
	errTooLong = errors.New("packet is too long to be understood")
	errPoked   = errors.New("interrupted")
)

// errSequence is a frame whose sequence number is not the next one.
type errSequence struct{ got, want byte }

func (e errSequence) Error() string {
	return fmt.Sprintf("packet out of order: sequence %d, want %d", e.got, e.want)
}

// conn is one leg of a session: a connection with its buffers. It belongs to the session's goroutine, except that
// during a wait its reading side may be lent to a watcher, and that poke may be called by anybody.
type conn struct {
	raw   net.Conn // the socket: deadlines are set on it, also by others than the owner
	nc    net.Conn // raw, or TLS on it
	in    []byte   // in[r:w] was read and is not yet used
	r, w  int
	out   []byte       // to be written
	flush func() error // called before a read that may block
	poked atomic.Bool
	timed bool // a deadline that passes is an error, as during the login
}

func newConn(nc net.Conn) *conn {
	return &conn{raw: nc, nc: nc, in: make([]byte, bufferSize), out: make([]byte, 0, bufferSize)}
}

// poke ends a wait for input, now or the next one, with errPoked.
func (c *conn) poke() error {
	c.poked.Store(true)
	return c.raw.SetReadDeadline(time.Unix(1, 0))
}

// buffered is the number of bytes that can be read without waiting.
func (c *conn) buffered() int { return c.w - c.r }

// need waits until n bytes are buffered and returns them without using them up. They are valid until the next call of a
// reading method.
func (c *conn) need(n int) ([]byte, error) {
	if c.w-c.r >= n {
		return c.in[c.r : c.r+n], nil
	}
	if c.flush != nil {
		if err := c.flush(); err != nil {
			return nil, err
		}
	}
	c.room(n)
	for c.w-c.r < n {
		if err := c.fill(); err != nil {
			if err == io.EOF && c.w > c.r {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return c.in[c.r : c.r+n], nil
}

// room makes the buffer hold n bytes from r on, and lets a large buffer go once it is empty.
func (c *conn) room(n int) {
	switch {
	case c.r == c.w && n <= bufferSize && len(c.in) > bufferSize:
		c.in, c.r, c.w = make([]byte, bufferSize), 0, 0
	case c.r == c.w:
		c.r, c.w = 0, 0
	}
	if len(c.in)-c.r >= n {
		return
	}
	to := c.in
	if n > len(to) {
		to = make([]byte, n)
	}
	c.w = copy(to, c.in[c.r:c.w])
	c.in, c.r = to, 0
}

// fill reads once. There must be room. A deadline that a wait or a poke left behind is ridden through; await finds the
// poke later.
func (c *conn) fill() error {
	err := c.read()
	if isTimeout(err) && !c.timed {
		if err := c.raw.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		err = c.read()
	}
	return err
}

func (c *conn) read() error {
	n, err := c.nc.Read(c.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// frame is the header of a frame and its first byte.
type frame struct {
	n     int
	seq   byte
	first byte // 0 if n is 0
}

// peek waits for the next frame's header, and its first byte if it has one, and uses nothing up.
func (c *conn) peek() (frame, error) {
	b, err := c.need(headerSize)
	if err != nil {
		return frame{}, err
	}
	f := frame{n: int(b[0]) | int(b[1])<<8 | int(b[2])<<16, seq: b[3]}
	if f.n > 0 {
		if b, err = c.need(headerSize + 1); err != nil {
			return frame{}, unexpected(err)
		}
		f.first = b[headerSize]
	}
	return f, nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// prefix waits for the first n bytes of the payload of the frame f that was peeked, or all of it, and uses nothing up.
func (c *conn) prefix(f frame, n int) ([]byte, error) {
	b, err := c.need(headerSize + min(n, f.n))
	if err != nil {
		return nil, unexpected(err)
	}
	return b[headerSize:], nil
}

// packet waits for the whole packet f, uses it up and returns its payload, which is valid until the next reading call.
// It must not be longer than packetMax.
func (c *conn) packet(f frame) ([]byte, error) {
	if f.n > packetMax {
		return nil, errTooLong
	}
	b, err := c.need(headerSize + f.n)
	if err != nil {
		return nil, unexpected(err)
	}
	c.r += headerSize + f.n
	return b[headerSize:], nil
}

// put writes one packet of at most packetMax bytes.
func (c *conn) put(seq byte, payload ...[]byte) error {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	if n >= frameMax {
		return errTooLong
	}
	if err := c.header(n, seq); err != nil {
		return err
	}
	for _, p := range payload {
		if err := c.write(p); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) header(n int, seq byte) error {
	if len(c.out)+headerSize > cap(c.out) {
		if err := c.send(); err != nil {
			return err
		}
	}
	c.out = append(c.out, byte(n), byte(n>>8), byte(n>>16), seq)
	return nil
}

// write appends to the output buffer and writes it out where it is full.
func (c *conn) write(p []byte) error {
	if len(c.out)+len(p) > cap(c.out) && len(c.out) > 0 {
		if err := c.send(); err != nil {
			return err
		}
	}
	if len(p) >= cap(c.out) {
		_, err := c.nc.Write(p)
		return err
	}
	c.out = append(c.out, p...)
	return nil
}

// send writes the output buffer out.
func (c *conn) send() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.nc.Write(c.out)
	c.out = c.out[:0]
	return err
}

// relay moves one packet, all its frames, from c to dst, the sequence numbers moved on by delta. Not more than a
// buffer's worth is held. It returns the last sequence number written.
func (c *conn) relay(dst *conn, delta byte) (byte, error) {
	for {
		f, err := c.peek()
		if err != nil {
			return 0, err
		}
		if err := c.relayFrame(f, dst, f.seq+delta); err != nil {
			return f.seq + delta, err
		}
		if f.n < frameMax {
			return f.seq + delta, nil
		}
	}
}

// relayFrame moves the frame f, which was peeked.
func (c *conn) relayFrame(f frame, dst *conn, seq byte) error {
	if err := dst.header(f.n, seq); err != nil {
		return err
	}
	c.r += headerSize
	return c.move(f.n, dst)
}

// move moves n bytes from c to dst.
func (c *conn) move(n int, dst *conn) error {
	for n > 0 {
		if c.buffered() == 0 {
			if _, err := c.need(1); err != nil {
				return unexpected(err)
			}
		}
		k := min(n, c.buffered())
		if err := dst.write(c.in[c.r : c.r+k]); err != nil {
			return err
		}
		c.r += k
		n -= k
	}
	return nil
}

// idleWait is how long a session waits for one side alone before the other side is watched too. A command that comes or
// is answered sooner costs no second goroutine.
const idleWait = 20 * time.Millisecond

// await waits until c has input. If that takes long, other is watched meanwhile: an error there (it was closed) ends
// the wait with *otherError; input there stays in its buffer, and if alert is set ends the wait with errAlert.
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
	if c.poked.Load() {
		return errPoked
	}
	return c.awaitBoth(other, alert)
}

// until sets the deadline of the next read; the zero time is none. A poke that came before is not overlooked: poke sets
// the flag before the deadline, and here the flag is looked at after the deadline.
func (c *conn) until(deadline time.Time) error {
	if err := c.raw.SetReadDeadline(deadline); err != nil {
		return err
	}
	if c.poked.Load() {
		return errPoked
	}
	return nil
}

var errAlert = errors.New("unexpected input from the other side")

// otherError says that the connection that was only watched failed.
type otherError struct{ err error }

func (e *otherError) Error() string { return e.err.Error() }
func (e *otherError) Unwrap() error { return e.err }

// awaitBoth is await after the first moment. Whichever read ends first ends the other one by a deadline in the past.
func (c *conn) awaitBoth(other *conn, alert bool) error {
	if err := c.until(time.Time{}); err != nil {
		return err
	}
	if other.buffered() == len(other.in) || other.poked.Load() { // it said more than we hold, or is on its way out
		return c.fill()
	}
	other.room(other.buffered() + 1)
	if err := other.until(time.Time{}); err != nil {
		return c.fill()
	}
	var watched error
	done := make(chan struct{})
	go func() {
		defer close(done)
		watched = other.read()
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
	case c.poked.Load():
		return errPoked
	case alert && watched == nil:
		return errAlert
	}
	return c.fill()
}

// wake ends a running read, or the next one. A connection on which this fails is closed and needs no waking.
func (c *conn) wake() {
	if err := c.raw.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return err != nil && errors.As(err, &ne) && ne.Timeout()
}

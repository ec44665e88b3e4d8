package mysqlwire

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"wirecheck/proxy/relay"
)

// bufferSize is the size of a connection's buffers in an ordinary session.
const bufferSize = 16 << 10

// errInterrupted ends a wait that interrupt was called for.
var errInterrupted = errors.New("interrupted")

// conn is one of a session's two connections, with its buffers. It belongs to the session's goroutine. There are two
// exceptions: during a wait a second goroutine may read from it, and every goroutine may call interrupt.
type conn struct {
	raw         net.Conn // the socket; other goroutines set deadlines on it too
	nc          net.Conn // raw, read and written past the scheduler, or TLS on it
	in          []byte   // in[r:w] was read and is not yet used; nil: nothing is there, and nothing was expected soon
	r, w        int
	out         []byte       // to be written
	lent        [2]*[]byte   // in and out, if they are of buffers
	flush       func() error // called before a read that may block
	guard       *stallGuard  // of writes; nil: none
	interrupted atomic.Bool
	timed       bool // a deadline that passes is an error, as during the login
	reset       bool // the peer has ended the connection by a reset
}

func newConn(nc net.Conn) *conn {
	return &conn{raw: nc, nc: relay.Socket(nc)}
}

// buffers are those of all connections.
var buffers = relay.NewBuffers(bufferSize)

// rests gives up the buffers that hold nothing: what comes next may come late.
func (c *conn) rests() {
	if c.buffered() == 0 {
		c.giveBack(0)
		c.in, c.r, c.w = nil, 0, 0
	}
	if len(c.out) == 0 {
		c.giveBack(1)
		c.out = nil
	}
}

func (c *conn) giveBack(i int) {
	if c.lent[i] != nil {
		buffers.Put(c.lent[i])
		c.lent[i] = nil
	}
}

// interrupt ends the present or the next wait for input with errInterrupted.
func (c *conn) interrupt() error {
	c.interrupted.Store(true)
	return c.raw.SetReadDeadline(time.Unix(1, 0))
}

// buffered is the number of bytes that can be read without waiting.
func (c *conn) buffered() int { return c.w - c.r }

// rest gives what is buffered, and the buffers up: most sessions whose bytes are copied are idle.
func (c *conn) rest() []byte {
	b := append([]byte(nil), c.in[c.r:c.w]...)
	c.in, c.out, c.r, c.w = nil, nil, 0, 0
	return b
}

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

// room makes the buffer hold n bytes from r on, and lets a large buffer go once it is empty. If it is empty and n are few, read gets the buffer.
func (c *conn) room(n int) {
	if c.r == c.w {
		c.r, c.w = 0, 0
		if n <= bufferSize && len(c.in) > bufferSize {
			c.in = nil
		}
		if n <= bufferSize && c.in == nil {
			return
		}
	}
	if len(c.in)-c.r >= n {
		return
	}
	to, from := c.in, c.in[c.r:c.w]
	if n > len(to) {
		to = make([]byte, n)
	}
	c.w = copy(to, from)
	if c.r = 0; n > len(c.in) {
		c.giveBack(0)
	}
	c.in = to
}

// fill reads once. There must be room. It reads again after a deadline that a wait or an interrupt left behind; await
// notices the interrupt later.
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
	var n int
	var err error
	if c.in == nil {
		if c.lent[0], n, err = buffers.Read(c.nc); n > 0 {
			c.in = *c.lent[0]
		}
	} else {
		n, err = c.nc.Read(c.in[c.w:])
	}
	c.w += n
	if n > 0 {
		return nil
	}
	if err == nil {
		return io.ErrNoProgress
	}
	c.reset = c.reset || errors.Is(err, syscall.ECONNRESET)
	return err
}

// write appends to the output buffer and writes it out where it is full.
func (c *conn) write(p []byte) error {
	if len(c.out)+len(p) > bufferSize && len(c.out) > 0 {
		if err := c.send(); err != nil {
			return err
		}
	}
	if len(p) >= bufferSize {
		return c.writeOut(p)
	}
	c.outRoom()
	c.out = append(c.out, p...)
	return nil
}

// outRoom sees to it that there is an output buffer.
func (c *conn) outRoom() {
	if c.out == nil {
		c.lent[1] = buffers.Get()
		c.out = (*c.lent[1])[:0]
	}
}

// send writes the output buffer out.
func (c *conn) send() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.writeOut(c.out)
	c.out = c.out[:0]
	return err
}

func (c *conn) writeOut(b []byte) error {
	if c.guard != nil {
		return c.guard.write(c.nc, b)
	}
	_, err := c.nc.Write(b)
	return err
}

func isTimeout(err error) bool {
	var ne net.Error
	return err != nil && errors.As(err, &ne) && ne.Timeout()
}

package pgwire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"wirecheck/proxy/relay"
)

const (
	headerLen = 5       // type byte and length (manual, 55.2)
	bufferLen = 1 << 15 // of each reader and writer
	// maxMessage is the longest message a client may send, without its type: PQ_LARGE_MESSAGE_LIMIT, src/include/libpq/libpq.h.
	maxMessage = 0x3fffffff
	// maxAuth is the longest one before it is authenticated: PG_MAX_AUTH_TOKEN_LENGTH, src/include/libpq/auth.h, and
	// MAX_STARTUP_PACKET_LENGTH, src/include/libpq/pqcomm.h.
	maxAuth    = 65535
	maxStartup = 10000 + 4 // the length does not count itself there
)

// errLength is a length that the protocol does not allow. Where the next message begins is not known then.
var errLength = errors.New("invalid message length")

// frame is the header of a message.
type frame struct {
	kind byte
	size int // of the body, without the length's own four bytes
}

// reader reads messages through a buffer. After header, exactly the frame's body must be consumed, by body, skip or
// copyTo in any order, before the next header.
type reader struct {
	conn net.Conn
	side side
	buf  []byte  // nil while there is nothing unread and the connection is waited for
	lent *[]byte // buf, if it is of buffers
	r, w int     // unread part of buf
	// before is called before the connection is asked, which may block: here the other side's writer is flushed.
	before func() error
}

func newReader(c net.Conn, s side) *reader {
	return &reader{conn: relay.Socket(c), side: s}
}

// buffers are those of all readers and writers.
var buffers = relay.NewBuffers(bufferLen)

// side is who is at the other end of a connection.
type side string

const (
	client side = "client"
	server side = "server"
)

// sideError is an error of one of the two connections.
type sideError struct {
	side side
	op   string
	err  error
}

func (e *sideError) Error() string { return e.op + " " + string(e.side) + ": " + e.err.Error() }
func (e *sideError) Unwrap() error { return e.err }

// buffered is how much can be read without asking the connection.
func (r *reader) buffered() int { return r.w - r.r }

// rest gives a copy of what is buffered.
func (r *reader) rest() []byte { return append([]byte(nil), r.buf[r.r:r.w]...) }

// fill reads until n bytes, at most the buffer's length, are buffered.
func (r *reader) fill(n int) error {
	if r.buffered() >= n {
		return nil
	}
	if r.r > 0 && r.r+n > len(r.buf) {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	for r.buffered() < n {
		if r.before != nil {
			if err := r.before(); err != nil {
				return err
			}
		}
		if err := r.read(); err != nil && r.buffered() < n {
			return r.failed(err, r.buffered() > 0)
		}
	}
	return nil
}

// read reads once what is there, at least a byte unless there is an error.
func (r *reader) read() (err error) {
	k := 0
	if r.buffered() > 0 {
		k, err = r.conn.Read(r.buf[r.w:])
		r.w += k
		return err
	}
	if r.lent != nil {
		buffers.Put(r.lent)
	}
	r.buf, r.r, r.w = nil, 0, 0
	if r.lent, k, err = buffers.Read(r.conn); r.lent != nil {
		r.buf, r.w = *r.lent, k
	}
	return err
}

// failed wraps an error of the connection; its end inside a message is an error of its own.
func (r *reader) failed(err error, inside bool) error {
	if inside && err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &sideError{r.side, "read from", err}
}

// header reads the header of the next message, whose body may be at most limit bytes long.
func (r *reader) header(limit int) (frame, error) {
	if err := r.fill(headerLen); err != nil {
		return frame{}, err
	}
	f := frame{kind: r.buf[r.r]}
	size := int64(binary.BigEndian.Uint32(r.buf[r.r+1:])) - 4
	if size < 0 || size > int64(limit) {
		return f, errLength
	}
	f.size = int(size)
	r.r += headerLen
	return f, nil
}

// body reads n bytes. They are valid until the next call of the reader. The caller bounds n.
func (r *reader) body(n int) ([]byte, error) {
	if n > bufferLen {
		return r.long(n)
	}
	if err := r.fill(n); err != nil {
		return nil, inside(err)
	}
	b := r.buf[r.r : r.r+n : r.r+n]
	r.r += n
	return b, nil
}

// long reads a piece that is longer than the buffer.
func (r *reader) long(n int) ([]byte, error) {
	b := make([]byte, n)
	k := copy(b, r.buf[r.r:r.w])
	r.r += k
	if r.before != nil {
		if err := r.before(); err != nil {
			return nil, err
		}
	}
	if _, err := io.ReadFull(r.conn, b[k:]); err != nil {
		return nil, r.failed(err, true)
	}
	return b, nil
}

// copyTo forwards n bytes to w, in pieces.
func (r *reader) copyTo(w io.Writer, n int) error {
	for n > 0 {
		if r.buffered() == 0 {
			if err := r.fill(1); err != nil {
				return inside(err)
			}
		}
		k := min(n, r.buffered())
		if _, err := w.Write(r.buf[r.r : r.r+k]); err != nil {
			return err
		}
		r.r += k
		n -= k
	}
	return nil
}

// skip drops n bytes.
func (r *reader) skip(n int) error { return r.copyTo(io.Discard, n) }

// inside makes the end of the connection an unexpected one.
func inside(err error) error {
	var e *sideError
	if errors.As(err, &e) && e.err == io.EOF {
		return &sideError{e.side, e.op, io.ErrUnexpectedEOF}
	}
	return err
}

// writer collects messages and writes them together: one system call for each message is what makes proxies slow.
// Once a write failed, all fail.
type writer struct {
	conn net.Conn
	side side
	buf  []byte
	lent *[]byte // buf, while there is something in it
	err  error
}

func newWriter(c net.Conn, s side) *writer {
	return &writer{conn: relay.Socket(c), side: s}
}

// room sees to it that there is a buffer.
func (w *writer) room() {
	if w.lent == nil {
		w.lent = buffers.Get()
		w.buf = (*w.lent)[:0]
	}
}

// Write implements io.Writer. A piece that does not fit is written without being copied.
func (w *writer) Write(p []byte) (int, error) {
	if len(p) > bufferLen-len(w.buf) {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) >= bufferLen/2 && len(w.buf) == 0 {
		w.send(p)
	} else {
		w.room()
		w.buf = append(w.buf, p...)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// header begins a message with a body of the given size.
func (w *writer) header(kind byte, size int) error {
	if bufferLen-len(w.buf) < headerLen {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.room()
	w.buf = binary.BigEndian.AppendUint32(append(w.buf, kind), uint32(size+4))
	return w.err
}

// message writes a whole message.
func (w *writer) message(kind byte, body []byte) error {
	if err := w.header(kind, len(body)); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// flush writes what was collected.
func (w *writer) flush() error {
	if len(w.buf) > 0 && w.err == nil {
		w.send(w.buf)
		buffers.Put(w.lent)
		w.buf, w.lent = nil, nil
	}
	return w.err
}

func (w *writer) send(p []byte) {
	if w.err != nil {
		return
	}
	if _, err := w.conn.Write(p); err != nil {
		w.err = &sideError{w.side, "write to", err}
	}
}

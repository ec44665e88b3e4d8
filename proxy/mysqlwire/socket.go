package mysqlwire

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"wirecheck/proxy/relay"
)

// awaitHangUp waits until the connection has ended, as ended tells (relay.Ended or relay.Broken), and returns io.EOF. It reads nothing. A read deadline
// ends the wait.
func awaitHangUp(socket syscall.RawConn, ended func(fd uintptr) bool) error {
	if socket == nil {
		return errors.ErrUnsupported
	}
	if err := socket.Read(ended); err != nil {
		return err
	}
	return io.EOF
}

// copyBuffers are the buffers of sessions that copy bytes.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// byteReader reads a connection. While it waits for bytes from a socket it holds no buffer: most sessions are idle.
type byteReader struct {
	src    net.Conn
	socket syscall.RawConn    // nil: TLS, or a tap
	read   func(uintptr) bool // tryRead
	buf    *[32 << 10]byte
	n      int
	err    error
}

func newByteReader(src net.Conn) *byteReader {
	r := &byteReader{src: src}
	if _, ok := src.(syscall.Conn); ok {
		r.socket, r.read = relay.RawOf(src), r.tryRead
	}
	return r
}

// next waits for bytes. They are valid until the next call of next or release.
func (r *byteReader) next() ([]byte, error) {
	r.release()
	if r.socket == nil {
		r.buf = copyBuffers.Get().(*[32 << 10]byte)
		n, err := r.src.Read(r.buf[:])
		return r.buf[:n], err
	}
	err := r.socket.Read(r.read)
	switch {
	case err != nil:
		return nil, err
	case r.err != nil:
		return nil, &net.OpError{Op: "read", Net: r.src.RemoteAddr().Network(), Addr: r.src.RemoteAddr(), Err: r.err}
	case r.n == 0:
		return nil, io.EOF
	}
	return r.buf[:r.n], nil
}

// release gives the buffer back.
func (r *byteReader) release() {
	if r.buf != nil {
		copyBuffers.Put(r.buf)
		r.buf = nil
	}
}

// tryRead reads from the socket if that is possible without waiting.
func (r *byteReader) tryRead(fd uintptr) (done bool) {
	r.buf = copyBuffers.Get().(*[32 << 10]byte)
	for {
		switch r.n, r.err = syscall.Read(int(fd), r.buf[:]); r.err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			r.release()
			return false
		default:
			return true
		}
	}
}

package relay

import (
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// socket is a plain socket that is read and written without a word to the scheduler: the call does not wait, and the
// scheduler would take the processor away from a goroutine whose call takes more than some 20 us, as the delivery of what was
// written may. Waiting and deadlines are those of the connection.
type socket struct {
	net.Conn
	raw syscall.RawConn
	in  attempt // of the goroutine that reads
	out attempt // of the goroutine that writes

	buffers *Buffers // readLent reads into one of these,
	lent    *[]byte  // this one
	tryLent func(fd uintptr) bool
}

// attempt is a call that is tried until it needs not wait.
type attempt struct {
	b     []byte
	n     int
	errno unix.Errno
	try   func(fd uintptr) bool // made once: a closure for each call would cost an allocation
}

// Socket gives a connection that does what c does, and cheaper if c is a plain socket. One goroutine at a time may read it, and one write.
func Socket(c net.Conn) net.Conn {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return c
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return c
	}
	s := &socket{Conn: c, raw: raw}
	s.in.try = func(fd uintptr) bool { return s.in.call(unix.SYS_RECVFROM, fd, 0) }
	s.tryLent = func(fd uintptr) bool {
		s.lent = s.buffers.Get()
		s.in.b = *s.lent
		if s.in.call(unix.SYS_RECVFROM, fd, 0) {
			return true
		}
		s.buffers.Put(s.lent)
		s.lent = nil
		return false
	}
	s.out.try = func(fd uintptr) bool { return s.out.call(unix.SYS_SENDTO, fd, unix.MSG_NOSIGNAL) }
	return s
}

func (a *attempt) call(number, fd, flags uintptr) (done bool) {
	for {
		switch a.n, a.errno = call(number, int(fd), a.b, flags); a.errno {
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			return true
		}
	}
}

// Read implements net.Conn.
func (s *socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	s.in.b = b
	return s.received(s.raw.Read(s.in.try))
}

// readLent reads into a buffer that it lends when there is something to read.
func (s *socket) readLent(b *Buffers) (*[]byte, int, error) {
	s.buffers, s.lent = b, nil
	n, err := s.received(s.raw.Read(s.tryLent))
	return s.lent, n, err
}

// received is the result of a read of which err is the end.
func (s *socket) received(err error) (int, error) {
	s.in.b = nil
	switch {
	case err != nil:
		return 0, err
	case s.in.errno != 0:
		return 0, s.failed("read", s.in.errno)
	case s.in.n == 0:
		return 0, io.EOF
	}
	return s.in.n, nil
}

// Write implements net.Conn.
func (s *socket) Write(b []byte) (written int, err error) {
	for written < len(b) {
		s.out.b = b[written:]
		err := s.raw.Write(s.out.try)
		s.out.b = nil
		switch {
		case err != nil:
			return written, err
		case s.out.errno != 0:
			return written, s.failed("write", s.out.errno)
		}
		written += s.out.n
	}
	return written, nil
}

func (s *socket) failed(op string, errno unix.Errno) error {
	return &net.OpError{Op: op, Net: s.LocalAddr().Network(), Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: os.NewSyscallError(op, errno)}
}

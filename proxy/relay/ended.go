package relay

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// pollRDHUP is POLLRDHUP of Linux: the peer has ended, also if bytes of it are still to be read. Other systems say POLLHUP.
const pollRDHUP = 0x2000

// Ended asks the system whether the peer of the socket fd has ended its side of the connection, whatever of it is still to
// be read.
func Ended(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: pollRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// Broken asks the system whether the connection of the socket fd has ended in both directions. One whose peer has ended its own only still takes answers.
func Broken(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}} // errors and the end of both are told without asking
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

// HungUp is Ended of the socket below a connection. A connection that has none has not ended.
func HungUp(c net.Conn) (yes bool) {
	raw := RawOf(c)
	return raw != nil && raw.Control(func(fd uintptr) { yes = Ended(fd) }) == nil && yes
}

// RawOf gives the socket below a connection, below TLS for one. It is nil for a connection that has none.
func RawOf(c net.Conn) syscall.RawConn {
	s, ok := Below(c).(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// Below is the connection below c's TLS and taps.
func Below(c net.Conn) net.Conn {
	for {
		t, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = t.NetConn()
	}
}

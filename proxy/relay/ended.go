package relay

import "golang.org/x/sys/unix"

// pollRDHUP is POLLRDHUP of Linux: the peer has ended, also if bytes of it are still to be read. Other systems say POLLHUP.
const pollRDHUP = 0x2000

// Ended asks the system whether the peer of the socket fd has ended its side of the connection, whatever of it is still to
// be read.
func Ended(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: pollRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

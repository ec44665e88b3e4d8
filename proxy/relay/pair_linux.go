package relay

import (
	"net"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirecheck/proxy"
)

// pair is a Pair in a loop. From add on it belongs to the loop's goroutine, until done is closed.
type pair struct {
	Pair
	client, server     end
	toServer, toClient direction
	draining           bool
	over               bool
	ending             End
	done               chan struct{}
}

// end is one of the two sockets.
type end struct {
	fd       int
	pair     *pair
	in, out  *direction // what comes from it, what goes to it
	ended    bool       // nothing is to be read any more
	interest uint32     // what epoll looks for
}

// direction is one way through a pair.
type direction struct {
	from, to *end
	buf      *[chunk]byte  // nil if nothing is unsent
	unsent   []byte        // of buf: what to has not taken yet; from is not read meanwhile
	patience time.Duration // see Pair.ToServer
	waited   time.Duration // since from has ended
}

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// take makes a pair of two plain sockets, with descriptors of its own.
func take(p *Pair) (*pair, bool) {
	client, err := duplicate(p.Client)
	if err != nil {
		return nil, false
	}
	server, err := duplicate(p.Server)
	if err != nil {
		_ = unix.Close(client)
		return nil, false
	}
	one := &pair{Pair: *p, done: make(chan struct{})}
	one.client = end{fd: client, pair: one, in: &one.toServer, out: &one.toClient}
	one.server = end{fd: server, pair: one, in: &one.toClient, out: &one.toServer}
	one.toServer = direction{from: &one.client, to: &one.server, patience: p.ToServer}
	one.toClient = direction{from: &one.server, to: &one.client, patience: p.ToClient}
	return one, true
}

// duplicate gives a descriptor of our own for a socket.
func duplicate(c net.Conn) (fd int, err error) {
	var raw syscall.RawConn
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default:
		err = unix.ENOTSOCK
	}
	if err != nil {
		return -1, err
	}
	if e := raw.Control(func(s uintptr) { fd, err = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) }); e != nil {
		return -1, e
	}
	return fd, err
}

// drop gives the descriptors back of a pair that no loop has.
func (p *pair) drop() {
	_ = unix.Close(p.client.fd)
	_ = unix.Close(p.server.fd)
}

// end gives back what is left of a pair that is done.
func (p *pair) end() End {
	_ = unix.Close(p.server.fd)
	e := p.ending
	e.Unsent = p.toClient.unsent
	f := os.NewFile(uintptr(p.client.fd), "client")
	if c, err := net.FileConn(f); err == nil { // else there are no descriptors
		e.Client = c
	}
	_ = f.Close()
	return e
}

// add begins to serve a pair.
func (l *loop) add(p *pair) {
	for _, e := range []*end{&p.client, &p.server} {
		for len(l.ends) <= e.fd {
			l.ends = append(l.ends, make([]*end, max(64, len(l.ends)))...)
		}
		l.ends[e.fd] = e
	}
	defer l.contain(p)
	if len(p.FromClient) > 0 {
		l.got(&p.toServer, p.FromClient)
	}
	if len(p.FromServer) > 0 && !p.over {
		l.got(&p.toClient, p.FromServer)
	}
	p.FromClient, p.FromServer = nil, nil
	l.look(p)
}

func (l *loop) drain(p *pair) {
	defer l.contain(p)
	p.draining = true
	if !p.over && len(p.toClient.unsent) == 0 {
		l.askLeave(p)
	}
}

func (l *loop) stop(p *pair) { l.finish(p, End{Cause: Stopped}) }

// contain makes a panic in a pair the end of this pair.
func (l *loop) contain(p *pair) {
	if v := recover(); v != nil {
		l.finish(p, End{Cause: Broke, Err: &proxy.PanicError{Value: v, Stack: debug.Stack()}})
	}
}

// serve does what a socket is ready for.
func (l *loop) serve(e *end, ready uint32) {
	p := e.pair
	defer l.contain(p)
	const bad = unix.EPOLLERR | unix.EPOLLHUP // the call that is wanted of the socket says what it is
	if ready&(unix.EPOLLOUT|bad) != 0 && len(e.out.unsent) > 0 {
		l.flush(e.out)
	}
	if ready&(unix.EPOLLIN|bad) != 0 && !p.over && !e.ended && len(e.in.unsent) == 0 {
		l.read(e.in)
	}
	l.look(p)
}

// read reads once, which need not be all that there is: the other pairs are next.
func (l *loop) read(d *direction) {
	switch n, errno := call(unix.SYS_RECVFROM, d.from.fd, l.buf, 0); {
	case n > 0:
		l.got(d, l.buf[:n])
	case errno == unix.EAGAIN || errno == unix.EINTR:
	case d.from == &d.from.pair.server:
		l.finish(d.from.pair, End{Cause: ServerEnded, Err: failed("read", errno)})
	case errno != 0:
		l.finish(d.from.pair, End{Cause: ClientBroke, Err: failed("read", errno)})
	default:
		d.from.ended = true
		_ = unix.Shutdown(d.to.fd, unix.SHUT_WR) // an error shows when the server is read
	}
}

// got passes on what was read.
func (l *loop) got(d *direction, b []byte) {
	p := d.from.pair
	if d == &p.toClient {
		p.Watcher.Answer(b)
	} else if err := p.Watcher.Request(b); err != nil {
		l.finish(p, End{Cause: Refused, Err: err})
		return
	}
	n, ok := l.write(d, b)
	if !ok {
		return
	}
	if b = b[n:]; len(b) > 0 {
		d.buf = buffers.Get().(*[chunk]byte)
		d.unsent = append(d.buf[:0], b...)
		d.waited = 0
		if len(l.stalled) == 0 {
			l.next = time.Now().Add(tick)
		}
		l.stalled[p] = struct{}{}
	} else if d == &p.toClient {
		l.askLeave(p)
	}
}

// flush writes what is unsent.
func (l *loop) flush(d *direction) {
	n, ok := l.write(d, d.unsent)
	if !ok {
		return
	}
	if d.unsent = d.unsent[n:]; len(d.unsent) > 0 {
		return
	}
	l.release(d)
	if d.to == &d.to.pair.client {
		l.askLeave(d.to.pair)
	}
}

// release forgets what is unsent.
func (l *loop) release(d *direction) {
	if d.buf != nil {
		buffers.Put(d.buf)
		d.buf = nil
	}
	d.unsent = nil
	if p := d.from.pair; p.toServer.buf == nil && p.toClient.buf == nil {
		delete(l.stalled, p)
	}
}

// write writes what the socket takes. ok is false if that is not the way on.
func (l *loop) write(d *direction, b []byte) (n int, ok bool) {
	for {
		n, errno := call(unix.SYS_SENDTO, d.to.fd, b, unix.MSG_NOSIGNAL)
		switch {
		case errno == 0:
			return n, true
		case errno == unix.EAGAIN:
			return 0, true
		case errno == unix.EINTR:
		case d.to == &d.to.pair.client:
			l.finish(d.to.pair, End{Cause: ClientBroke, Err: failed("write", errno), Writing: true})
			return 0, false
		default: // the server's end is read behind what it may have said
			d.from.ended = true
			l.release(d)
			return 0, false
		}
	}
}

func (l *loop) askLeave(p *pair) {
	if p.draining && p.Watcher.Leave() {
		l.finish(p, End{Cause: Left})
	}
}

// look has epoll look for what the pair waits for, and for nothing else: a socket that is broken would call us again and again.
func (l *loop) look(p *pair) {
	if p.over {
		return
	}
	for _, e := range [...]*end{&p.client, &p.server} {
		want := uint32(0)
		if !e.ended && len(e.in.unsent) == 0 {
			want |= unix.EPOLLIN
		}
		if len(e.out.unsent) > 0 {
			want |= unix.EPOLLOUT
		}
		if want == e.interest {
			continue
		}
		op := unix.EPOLL_CTL_MOD
		switch {
		case want == 0:
			op = unix.EPOLL_CTL_DEL
		case e.interest == 0:
			op = unix.EPOLL_CTL_ADD
		}
		if err := unix.EpollCtl(l.epoll, op, e.fd, &unix.EpollEvent{Events: want, Fd: int32(e.fd)}); err != nil {
			l.finish(p, End{Cause: Broke, Err: os.NewSyscallError("epoll_ctl", err)})
			return
		}
		e.interest = want
	}
}

// check looks whether a side has ended whose bytes wait to be written.
func (l *loop) check(p *pair) {
	for _, d := range [...]*direction{&p.toServer, &p.toClient} {
		if d.buf == nil || d.patience < 0 || !Ended(uintptr(d.from.fd)) {
			continue
		}
		if d.waited += tick; d.waited >= d.patience {
			l.finish(p, End{Cause: Stalled})
			return
		}
	}
}

// finish ends a pair.
func (l *loop) finish(p *pair, why End) {
	if p.over {
		return
	}
	p.over, p.ending = true, why
	for _, e := range [...]*end{&p.client, &p.server} {
		if e.interest != 0 {
			_ = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, e.fd, nil)
		}
		l.ends[e.fd] = nil
	}
	unsent := append([]byte(nil), p.toClient.unsent...)
	l.release(&p.toServer)
	l.release(&p.toClient)
	p.toClient.unsent = unsent
	close(p.done)
}

// call sends or receives on a non-blocking socket. It enters neither the scheduler nor the network poller of the runtime.
func call(number uintptr, fd int, b []byte, flags uintptr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), 0
}

// failed makes an error of an errno; none is the end of the stream.
func failed(op string, errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return os.NewSyscallError(op, errno)
}

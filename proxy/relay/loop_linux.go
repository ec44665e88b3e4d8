package relay

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// chunk is how much is read at a time. So much of each direction is held at most.
	chunk = 1 << 16
	// batch is how many descriptors one look gives.
	batch = 128
	// tick is how often pairs are looked at whose writes wait.
	tick = time.Second
)

// loop serves pairs. Its goroutine owns all but what a mutex guards.
type loop struct {
	epoll, alarm int // descriptors; alarm is an eventfd(2) that says that the inbox holds something
	ends         []*end
	stalled      map[*pair]struct{} // pairs with unsent bytes
	next         time.Time          // when to look at them
	buf          []byte
	over         bool

	pairs int // guarded by Relay.mu
	ended chan struct{}

	mu    sync.Mutex // guards what follows
	inbox []task
}

// task is something that the loop's goroutine shall do.
type task struct {
	pair *pair
	do   func(*loop, *pair)
}

func startLoop() (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	alarm, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, alarm, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(alarm)})
		if err != nil {
			_ = unix.Close(alarm)
		}
	}
	if err != nil {
		_ = unix.Close(epoll)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l := &loop{epoll: epoll, alarm: alarm, stalled: map[*pair]struct{}{}, buf: make([]byte, chunk), ended: make(chan struct{})}
	go l.run()
	return l, nil
}

// post has the loop's goroutine do something.
func (l *loop) post(p *pair, do func(*loop, *pair)) {
	l.mu.Lock()
	l.inbox = append(l.inbox, task{p, do})
	first := len(l.inbox) == 1
	l.mu.Unlock()
	if first {
		_, _ = unix.Write(l.alarm, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // it cannot fail: the counter is far from its end
	}
}

func (l *loop) quit(*pair) { l.over = true }

func (l *loop) run() {
	defer close(l.ended)
	events := make([]unix.EpollEvent, batch)
	for !l.over {
		n, err := unix.EpollWait(l.epoll, events, l.patience())
		if err != nil && err != unix.EINTR {
			panic(fmt.Sprintf("epoll_wait: %v", err)) // there is no other error of ours (epoll_wait(2))
		}
		called := false
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == l.alarm {
				called = true
			} else if end := l.ends[e.Fd]; end != nil { // an earlier event may have ended its pair
				l.serve(end, e.Events)
			}
		}
		if called {
			l.receive()
		}
		if len(l.stalled) > 0 && !time.Now().Before(l.next) {
			l.next = time.Now().Add(tick)
			for p := range l.stalled {
				l.check(p)
			}
		}
	}
	_ = unix.Close(l.alarm)
	_ = unix.Close(l.epoll)
}

// patience is how long the loop may wait, in milliseconds.
func (l *loop) patience() int {
	if len(l.stalled) == 0 {
		return -1
	}
	return int(math.Ceil(float64(max(0, time.Until(l.next))) / float64(time.Millisecond)))
}

// receive does what others want done.
func (l *loop) receive() {
	var count [8]byte
	_, _ = unix.Read(l.alarm, count[:]) // it resets the alarm
	l.mu.Lock()
	tasks := l.inbox
	l.inbox = nil
	l.mu.Unlock()
	for _, t := range tasks {
		t.do(l, t.pair)
	}
}

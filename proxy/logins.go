package proxy

import (
	"slices"
	"sync"
	"time"
)

// logins bounds how many clients of a listener log in at a time, since each of them may hold a connection to the server.
//
// A client that finds no place waits. The last one that came and the one that has waited longest get the next places by turns: so a flood buries
// nobody for good, and one that comes now need not wait for its end. If there is no place, a client loses its
// place that lets us wait for its answer, or has tried to log in for long. So a flood of silent clients is cleared at its own
// cost, and clients that answer get in. As long as there are places, slow clients have all the time that the server gives
// them.
//
// A waiting client is a connection and nothing more: it gets a goroutine with its place. One that has gone holds a descriptor, so we look for such
// clients as others come.
type logins struct {
	most     int
	patience time.Duration // how long a client may let us wait while others wait for its place
	limit    time.Duration // how long a client may wait for a place

	mu      sync.Mutex // guards what follows, and the logins' own fields
	places  []*login   // those that log in
	waiting []*login   // those without a place, in the order in which they came
	came    int        // clients since we last looked who of those that wait is gone
	oldest  bool       // the next place is for the one that has waited longest
	closed  bool       // nobody gets a place any more
	timer   *time.Timer
}

// login is a client from its connection to the end of its authentication. Its functions must not wait: they are called while others come.
type login struct {
	begin func()          // starts its session: it has a place
	drop  func(left bool) // closes its connection before it got a place: it has left, or has to go
	end   func()          // ends its session
	left  func() bool     // asks whether it has ended its connection without a word
	came  time.Time
	began time.Time // when it got its place
	owes  time.Time // since when we wait for the client; zero: we do not
	spoke bool      // it has answered once: it is at work on a proof of who it is, which takes a busy machine a while
	gone  bool      // it lost its place
}

const (
	loginPatience = 2 * time.Second
	// waitingFactor bounds, by the places, the clients that wait for one. Of more, the first one has to go.
	waitingFactor = 64
	// slowFactor bounds, by the patience, the time of a client that answers but does not come to an end.
	slowFactor = 5
	// spokeFactor bounds, by the patience, how long a client may let us wait that has answered before.
	spokeFactor = 3
)

// enter has a client wait for a place, or gives it one.
func (l *logins) enter(one *login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		one.drop(false)
		return
	}
	one.came = time.Now()
	l.waiting = append(l.waiting, one)
	if l.came++; l.came >= max(l.most, len(l.waiting)/2) { // so that each client costs three looks at most
		l.sweep()
	}
	if len(l.waiting) > l.most*waitingFactor {
		l.refuse(0, false)
	}
	l.serve()
}

// close has all go that wait.
func (l *logins) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, one := range l.waiting {
		one.drop(false)
	}
	l.waiting = nil
	if l.timer != nil {
		l.timer.Stop()
	}
}

// leave frees the place of a client that has logged in, or is gone. It reports whether the client had to go.
func (l *logins) leave(one *login) (gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.places, one); i >= 0 {
		l.places = slices.Delete(l.places, i, i+1)
		l.serve()
	}
	return one.gone
}

// awaits says whether we wait for the client.
func (l *logins) awaits(one *login, client bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !client:
		one.owes, one.spoke = time.Time{}, true
	case one.owes.IsZero():
		one.owes = time.Now()
		if len(l.waiting) > 0 {
			l.serve()
		}
	}
}

// refuse ends the waiting of a client that has left or has to go. l.mu is held.
func (l *logins) refuse(i int, left bool) {
	one := l.waiting[i]
	l.waiting = slices.Delete(l.waiting, i, i+1)
	one.drop(left)
}

// sweep ends the waiting of those that are gone. l.mu is held.
func (l *logins) sweep() {
	l.came = 0
	l.waiting = slices.DeleteFunc(l.waiting, func(one *login) bool {
		gone := one.left()
		if gone {
			one.drop(true)
		}
		return gone
	})
}

// next finds who gets the next place: by turns the one that came last, who is there most likely, and the one that has waited longest. It passes over those
// that are gone: a place, and a connection to the server, would be lost on them. It returns -1 if nobody waits. l.mu is held.
func (l *logins) next() int {
	for len(l.waiting) > 0 {
		i := 0
		if !l.oldest {
			i = len(l.waiting) - 1
		}
		if !l.waiting[i].left() {
			return i
		}
		l.refuse(i, true)
	}
	return -1
}

// serve gives places to those who wait, and has those go that waited for too long. If it has to wait itself, it sees to it that it is called again.
// l.mu is held.
func (l *logins) serve() {
	now := time.Now()
	for len(l.waiting) > 0 && now.Sub(l.waiting[0].came) >= l.limit {
		l.refuse(0, false)
	}
	for i := l.next(); i >= 0; i = l.next() {
		if len(l.places) >= l.most {
			if wait := l.evict(now); wait > 0 {
				l.again(min(wait, l.limit-now.Sub(l.waiting[0].came)))
				return
			}
		}
		one := l.waiting[i]
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.oldest = !l.oldest
		one.began = now
		l.places = append(l.places, one)
		one.begin()
	}
}

// again has serve called when a time has passed. l.mu is held.
func (l *logins) again(wait time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.serve()
	})
}

// evict ends the login that has been due to go for longest. If none is, it says how long it takes until one is. l.mu is held.
func (l *logins) evict(now time.Time) (wait time.Duration) {
	first, left := -1, time.Duration(0)
	for i, one := range l.places {
		due := one.began.Add(slowFactor * l.patience)
		if !one.owes.IsZero() {
			patience := l.patience
			if one.spoke {
				patience *= spokeFactor
			}
			if end := one.owes.Add(patience); end.Before(due) {
				due = end
			}
		}
		if d := due.Sub(now); first < 0 || d < left {
			first, left = i, d
		}
	}
	if left > 0 {
		return left
	}
	one := l.places[first]
	l.places = slices.Delete(l.places, first, first+1)
	one.gone = true
	go one.end() // it may wait for locks
	return 0
}

// AwaitsClient says whether the login goes on only when the client sends something. A client that lets others wait may lose
// its connection.
func (s *Session) AwaitsClient(yes bool) {
	if s.login != nil {
		s.logins.awaits(s.login, yes)
	}
}

// LeavesPlace says that the client does not log in: its place is for another one.
func (s *Session) LeavesPlace() {
	if s.login != nil {
		s.logins.leave(s.login)
	}
}

// LoggedIn says that the client is authenticated, or that the session's login is not ours to see.
func (s *Session) LoggedIn() {
	s.LeavesPlace()
	if s.leftOut != nil {
		s.leftOut.Add(1)
		s.leftOut = nil
	}
}

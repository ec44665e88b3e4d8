// Package relay copies the bytes of sessions whose bytes need no thought: pairs of plain sockets, one to the client and one
// to the server.
//
// What such a session costs is not the copying but the waking of a goroutine for each piece of each direction. So on Linux
// one goroutine serves many pairs with epoll(7) and non-blocking descriptors, past the network poller of the runtime.
// Elsewhere, and for what is not a plain socket, Run refuses, and the caller copies with goroutines of its own.
package relay

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"
)

// Watcher sees the bytes of a pair. Its methods are called by a goroutine that serves other pairs too: they must not
// wait. A panic in one ends the pair.
type Watcher interface {
	// Request sees what the client sent, before the server gets it. An error ends the pair, and the server gets nothing of b.
	Request(b []byte) error
	// Answer sees what the server sent, before the client gets it.
	Answer(b []byte)
	// Leave says whether the pair ends here. It is asked when draining begins, and from then on whenever the client has all
	// that Answer saw.
	Leave() bool
}

// Pair is the two connections of a session.
type Pair struct {
	Client, Server         net.Conn
	FromClient, FromServer []byte // what was read of them already
	Watcher                Watcher
	Draining               <-chan struct{} // closed when draining begins
	// ToServer and ToClient limit how long a write in this direction may wait after the side it comes from has ended.
	// Negative: it may wait for ever.
	ToServer, ToClient time.Duration
}

// Cause is why a pair ended.
type Cause int

// The causes.
const (
	ServerEnded Cause = iota // reading the server: its end, or Err
	ClientBroke              // Err of reading the client or writing to it
	Refused                  // Err of Watcher.Request
	Left                     // Watcher.Leave
	Stopped                  // the context ended
	Stalled                  // a write waited too long
	Broke                    // Err of relaying
)

// End says how a pair ended.
type End struct {
	Cause Cause
	Err   error
	// Writing says that Err is an error of writing.
	Writing bool
	// Client is the client's connection, for last words. The caller closes it. It is nil if there is none any more.
	Client net.Conn
	// Unsent is what the server has sent and the client has not taken.
	Unsent []byte
}

// Relay runs pairs.
type Relay struct {
	mu    sync.Mutex // guards what follows
	loops []*loop    // that run
}

// most is how many loops there may be: half of the processors, since the clients and the server want some too.
func most() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// Run copies both ways until the pair ends: with the end of the server's connection, of the client's connection if it is
// broken, or as the Watcher or ctx say. A client that ends its sending half still gets its answers.
//
// ok is false if this pair cannot be run; then nothing has happened. Otherwise both connections are closed, and only
// End.Client is left.
func (r *Relay) Run(ctx context.Context, p Pair) (end End, ok bool) {
	one, ok := take(&p)
	if !ok {
		return End{}, false
	}
	l, err := r.enter()
	if err != nil {
		one.drop()
		return End{}, false
	}
	defer r.leave(l)
	_ = p.Client.Close() // the pair has descriptors of its own; this takes these off the runtime's poller
	_ = p.Server.Close()
	l.post(one, (*loop).add)
	draining, stop := p.Draining, ctx.Done()
	for {
		select {
		case <-one.done:
			return one.end(), true
		case <-draining:
			draining = nil
			l.post(one, (*loop).drain)
		case <-stop:
			stop = nil
			l.post(one, (*loop).stop)
		}
	}
}

// enter gives the loop with the fewest pairs, or a new one.
func (r *Relay) enter() (*loop, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *loop
	for _, l := range r.loops {
		if best == nil || l.pairs < best.pairs {
			best = l
		}
	}
	if len(r.loops) < most() {
		l, err := startLoop()
		switch {
		case err == nil:
			best = l
			r.loops = append(r.loops, l)
		case best == nil:
			return nil, err
		}
	}
	best.pairs++
	return best, nil
}

// leave ends a loop that has no pair any more.
func (r *Relay) leave(l *loop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.pairs--; l.pairs > 0 {
		return
	}
	for i := range r.loops {
		if r.loops[i] == l {
			r.loops = append(r.loops[:i], r.loops[i+1:]...)
			break
		}
	}
	l.post(nil, (*loop).quit)
	<-l.ended
}

package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
)

// cancels are the requests to cancel a statement. Each takes a connection to the server, and anybody may send them without a login, so they have no
// part in the places to log in.
//
// A request for a session of this proxy is sent at once, but one at a time for each session: those that come while one waits to be sent share its
// connection, and few stay to hear of it. One for another session may have lost its way to the proxy of that session, or be made up: it takes one of a few turns.
type cancels struct {
	mu       sync.Mutex
	sessions map[uint32]*target  // by the server's numbers of the sessions of this proxy
	room     *semaphore.Weighted // for requests for other sessions
	turns    *semaphore.Weighted // of those
	together singleflight.Group
}

// target is a session of this proxy.
type target struct {
	sending sync.Mutex
	asked   atomic.Int32 // requests for it that are here
}

const (
	togetherMost     = 8 // requests for one session
	strangersAtOnce  = 8
	strangersWaiting = 100
	cancelSize       = 16 // of a CancelRequest (manual, 55.7)
)

var errStrangers = errors.New("too many cancel requests for sessions that this proxy does not know")

func newCancels() *cancels {
	return &cancels{sessions: make(map[uint32]*target), room: semaphore.NewWeighted(strangersAtOnce + strangersWaiting), turns: semaphore.NewWeighted(strangersAtOnce)}
}

// began says that the server has given a session of this proxy its number. The caller calls ended when the session has ended.
func (c *cancels) began(number uint32) (ended func()) {
	one := new(target)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[number] = one
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.sessions[number] == one { // the server may have given the number away already
			delete(c.sessions, number)
		}
	}
}

// send has a request sent when it is its turn.
func (c *cancels) send(ctx context.Context, raw []byte, forward func() error) error {
	if len(raw) != cancelSize {
		return c.stranger(ctx, forward)
	}
	c.mu.Lock()
	one := c.sessions[binary.BigEndian.Uint32(raw[8:])]
	c.mu.Unlock()
	if one == nil {
		return c.stranger(ctx, forward)
	}
	defer one.asked.Add(-1)
	if one.asked.Add(1) > togetherMost { // one that waits will do for this one, too
		return nil
	}
	key := string(raw)
	_, err, _ := c.together.Do(key, func() (any, error) {
		one.sending.Lock()
		defer one.sending.Unlock()
		c.together.Forget(key) // what comes from here on may be meant for a later statement
		return nil, forward()
	})
	return err
}

// stranger has a request for a session that is not known sent when it is its turn.
func (c *cancels) stranger(ctx context.Context, forward func() error) error {
	if !c.room.TryAcquire(1) {
		return errStrangers
	}
	defer c.room.Release(1)
	if err := c.turns.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.turns.Release(1)
	return forward()
}

// cancel forwards a CancelRequest. The server answers by closing the connection when it has done what it could
// (manual, 55.2.8); then so do we.
func (s *session) cancel(raw []byte) error {
	s.LeavesPlace()
	ctx, stop := context.WithTimeout(s.ctx, s.Config.Timeouts.Startup)
	defer stop()
	err := s.cancels.send(ctx, raw, func() error {
		if err := s.dial(); err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { _ = s.server.SetDeadline(past) })()
		if err := s.requireTLS(); err != nil {
			return err
		}
		if _, err := s.server.Write(raw); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, s.server)
		return quiet(err)
	})
	if err != nil {
		return fmt.Errorf("forward cancel request: %w", err)
	}
	return nil
}

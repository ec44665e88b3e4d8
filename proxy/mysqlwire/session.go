package mysqlwire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"wirecheck/history"
	"wirecheck/proxy"
)

// session is one client connection with the server connection that belongs to it.
type session struct {
	link
	ps       *proxy.Session
	observer *Observer                                                                                              // nil: pass mode
	join     func(ctx context.Context, ps *proxy.Session, client, up net.Conn, fromClient, fromServer []byte) error // Handler.join

	greeting                *greeting
	user, database, program string

	drainStop  func()
	compresses bool // the client compresses what comes behind its login
	explained  bool // the client has been sent why the session ends
}

func newSession(ps *proxy.Session, o *Observer, server net.Conn) *session {
	s := &session{ps: ps, observer: o, link: link{client: newConn(ps.Client), server: newConn(server)}}
	s.client.flush, s.server.flush = s.flush, s.flush
	s.client.guard = newStallGuard(ps.Client, server, ps.Config.Timeouts.Grace)
	s.server.guard = newStallGuard(server, ps.Client, 0)
	return s
}

func (s *session) serve(ctx context.Context) error {
	s.drainStop = s.drainer()
	defer func() {
		s.drainStop()
		if s.server.reset {
			resetAtClose(s.client.raw)
		}
	}()
	if err := s.loginDeadline(time.Now().Add(s.ps.Config.Timeouts.Startup)); err != nil {
		return unlessClosed(err)
	}
	ok, seq, err := (&handshake{session: s}).relay(ctx)
	switch {
	case errors.Is(err, errBytes):
		return s.asBytes(ctx)
	case errors.Is(err, errRefused):
		return unlessClosed(s.flush())
	case err != nil && s.client.interrupted.Load():
		return unlessClosed(s.fail(1, errorShutdown(), nil))
	case err != nil:
		return unlessClosed(err)
	}
	s.ps.LoggedIn()
	if err := s.loginDeadline(time.Time{}); err != nil {
		return unlessClosed(err)
	}
	if s.observer == nil || !s.ps.Observed() {
		if err := s.client.put(seq, ok); err != nil {
			return unlessClosed(err)
		}
		return s.asBytes(ctx)
	}
	return observe(ctx, s, seq, ok)
}

// compress begins, behind the OK to the login, what the client asked for. Behind another user's login it goes on.
func (s *session) compress() error {
	if _, on := s.client.nc.(*compressed); on || !s.compresses {
		return nil
	}
	if err := s.client.send(); err != nil {
		return err
	}
	s.client.nc = newCompressed(s.client.handOver())
	return nil
}

// loginDeadline bounds the login; the zero time removes the bound.
func (s *session) loginDeadline(t time.Time) error {
	s.client.timed, s.server.timed = !t.IsZero(), !t.IsZero()
	return errors.Join(s.client.raw.SetDeadline(t), s.server.raw.SetDeadline(t))
}

// errBytes says that the rest of the session is not understood and passes as bytes.
var errBytes = errors.New("pass as bytes")

// asBytes stops decoding: what was read goes on, and from here on both directions are copied.
func (s *session) asBytes(ctx context.Context) error {
	s.ps.LoggedIn()
	s.drainStop() // a session that is not understood has no quiet point: it may use the whole grace time
	if err := s.loginDeadline(time.Time{}); err != nil {
		return unlessClosed(err)
	}
	if err := s.flush(); err != nil {
		return unlessClosed(err)
	}
	fromClient, fromServer := s.client.rest(), s.server.rest()
	return s.join(ctx, s.ps, s.client.nc, s.server.nc, fromClient, fromServer)
}

// drainer starts the goroutine that ends the session's wait for the client's next command when the process wants to end.
func (s *session) drainer() (stop func()) {
	if s.ps.Draining == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.ps.Draining:
			if err := s.client.interrupt(); err != nil {
				return // closed already
			}
		case <-done:
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}

// fail sends the client an error of ours and returns err. It makes no difference whether the client receives it.
func (s *session) fail(seq byte, e *history.ServerError, err error) error {
	if s.explained {
		return err
	}
	s.explained = true
	if perr := s.client.put(seq, encodeERR(e, s.greeting != nil)); perr == nil {
		_ = s.client.send()
	}
	return err
}

// badClient ends a session whose client breaks the protocol, and sends the client what the server would, with the number that was wanted. It sends nothing to a client
// that merely left.
func (s *session) badClient(err error, reading string) error {
	var order errSequence
	switch {
	case errors.As(err, &order):
		return s.fail(order.want, errorOrder(), fmt.Errorf("read the client's %s: %w", reading, err))
	case errors.Is(err, errTooLong), errors.Is(err, errMalformed):
		return s.fail(1, errorOrder(), fmt.Errorf("read the client's %s: %w", reading, err))
	}
	return err
}

func utoa(v uint64) string { return strconv.FormatUint(v, 10) }

package mysqlwire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"wirecheck/proxy"
)

// session is one client connection with the server connection that belongs to it.
type session struct {
	ps             *proxy.Session
	observer       *Observer // nil: pass mode
	client, server *conn

	greeting                *greeting
	offered                 uint64 // the capabilities in the greeting that the client saw
	caps                    uint64 // what client and server agreed upon
	user, database, program string
	// shift is what the server's sequence numbers are ahead of the client's by, during the login: one side may count an
	// SSLRequest that the other one has not seen.
	shift byte

	drainStop func()
	draining  bool
	told      bool // the client knows that and why the session ends

	// Observe mode.
	watching
}

func newSession(ps *proxy.Session, o *Observer, server net.Conn) *session {
	s := &session{ps: ps, observer: o, client: newConn(ps.Client), server: newConn(server)}
	s.client.flush, s.server.flush = s.flushBoth, s.flushBoth
	return s
}

// flushBoth writes out what waits in either direction. It runs before every read that may block: nothing is held back
// while somebody waits for it, and what belongs together leaves in one write.
func (s *session) flushBoth() error {
	if err := s.server.send(); err != nil {
		return fmt.Errorf("send to the server: %w", err)
	}
	if err := s.client.send(); err != nil {
		return fmt.Errorf("send to the client: %w", err)
	}
	return nil
}

func (s *session) serve(ctx context.Context) error {
	s.drainStop = s.drainer()
	defer func() { s.drainStop() }()
	if err := s.loginDeadline(time.Now().Add(s.ps.Config.Timeouts.Startup)); err != nil {
		return gone(err)
	}
	ok, seq, err := s.handshake(ctx)
	switch {
	case errors.Is(err, errBytes):
		return s.asBytes()
	case errors.Is(err, errRefused):
		return gone(s.flushBoth())
	case err != nil && s.client.poked.Load():
		return gone(s.fail(1, errorShutdown(), nil))
	case err != nil:
		return gone(err)
	}
	if err := s.loginDeadline(time.Time{}); err != nil {
		return gone(err)
	}
	if s.observer == nil {
		if err := s.client.put(seq, ok); err != nil {
			return gone(err)
		}
		return s.asBytes()
	}
	return s.observe(ctx, seq, ok)
}

// asBytes gives up understanding: what was read goes on, and from here on both directions are copied.
func (s *session) asBytes() error {
	s.drainStop() // it must not cut the copying short; whoever cannot be understood has the whole grace time
	if err := s.loginDeadline(time.Time{}); err != nil {
		return gone(err)
	}
	if err := s.flushBoth(); err != nil {
		return gone(err)
	}
	return join(s.client.nc, s.server.nc, s.client.in[s.client.r:s.client.w], s.server.in[s.server.r:s.server.w])
}

// fail tells the client an error of ours and returns err. That the client does not hear it changes nothing.
func (s *session) fail(seq byte, e errPacket, err error) error {
	if s.told {
		return err
	}
	s.told = true
	if perr := s.client.put(seq, e.encode(s.greeting != nil)); perr == nil {
		_ = s.client.send()
	}
	return err
}

// badClient ends a session whose client does not keep to the protocol: it is told so. If it merely left, there is
// nobody to tell.
func (s *session) badClient(err error, reading string) error {
	var order errSequence
	switch {
	case errors.As(err, &order):
		return s.fail(order.got+1, errorOrder(err.Error()), fmt.Errorf("read the client's %s: %w", reading, err))
	case errors.Is(err, errTooLong), errors.Is(err, errMalformed):
		return s.fail(1, errorOrder(err.Error()), fmt.Errorf("read the client's %s: %w", reading, err))
	}
	return err
}

func utoa(v uint64) string { return strconv.FormatUint(v, 10) }

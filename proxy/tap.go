package proxy

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Tap gets a copy of the bytes between a session and its client, in clear where the client's TLS ends at the proxy. It must not keep the slices.
// FromClient may be called at the same time as the others, which come one after the other.
type Tap interface {
	// FromClient gets what the client has sent, before the session passes any of it on.
	FromClient(b []byte, at time.Time)
	// FromServer says that bytes came from the server: what ToClient gets next was answered at this moment.
	FromServer(at time.Time)
	// ToClient gets what the session is about to send to the client.
	ToClient(b []byte, at time.Time)
	// Encrypted says that TLS with the client has begun.
	Encrypted()
	// Closed says that the session is over.
	Closed(at time.Time)
}

// safeTap is a tap that a panic in it ends; the session goes on without it.
type safeTap struct {
	tap    Tap
	log    zerolog.Logger
	broken atomic.Bool
}

func (t *safeTap) call(f func()) {
	if t.broken.Load() {
		return
	}
	err := Catch(func() error {
		f()
		return nil
	})
	var defect *PanicError
	if errors.As(err, &defect) && !t.broken.Swap(true) {
		t.log.Error().Err(err).Bytes("stack", defect.Stack).Msg("session is not recorded any more")
	}
}

func (t *safeTap) FromClient(b []byte, at time.Time) { t.call(func() { t.tap.FromClient(b, at) }) }
func (t *safeTap) FromServer(at time.Time)           { t.call(func() { t.tap.FromServer(at) }) }
func (t *safeTap) ToClient(b []byte, at time.Time)   { t.call(func() { t.tap.ToClient(b, at) }) }
func (t *safeTap) Encrypted()                        { t.call(func() { t.tap.Encrypted() }) }
func (t *safeTap) Closed(at time.Time)               { t.call(func() { t.tap.Closed(at) }) }

// tappedClient is a client's connection with a tap.
type tappedClient struct {
	net.Conn
	tap Tap
	off atomic.Bool // TLS goes over this connection, and the tap is within it
}

// Read copies what it reads to the tap.
func (c *tappedClient) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.off.Load() {
		c.tap.FromClient(b[:n], time.Now())
	}
	return n, err
}

// Write copies what it writes to the tap.
func (c *tappedClient) Write(b []byte) (int, error) {
	if len(b) > 0 && !c.off.Load() {
		c.tap.ToClient(b, time.Now())
	}
	return c.Conn.Write(b)
}

// CloseWrite ends the sending half.
func (c *tappedClient) CloseWrite() error { return closeWrite(c.Conn) }

// NetConn is the connection without the tap.
func (c *tappedClient) NetConn() net.Conn { return c.Conn }

// tappedServer is a server's connection that tells the tap when bytes arrive.
type tappedServer struct {
	net.Conn
	tap Tap
}

// Read tells the tap when it has read.
func (s *tappedServer) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.tap.FromServer(time.Now())
	}
	return n, err
}

// CloseWrite ends the sending half.
func (s *tappedServer) CloseWrite() error { return closeWrite(s.Conn) }

// NetConn is the connection without the tap.
func (s *tappedServer) NetConn() net.Conn { return s.Conn }

// closeWrite ends the sending half of a connection, and all of one that has no halves.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Tapped reports whether the session has a tap. Then TLS and compression end here, whatever the mode.
func (s *Session) Tapped() bool { return s.tap != nil }

// Number is the session's in a history. A session with a tap has the same number in the trace; another one gets its number from the recorder of
// the history (0).
func (s *Session) Number() uint64 {
	if s.tap == nil {
		return 0
	}
	return s.ID
}

// BeforeTLS gives the client's connection over which TLS is to be spoken: the tap does not get what passes there.
func (s *Session) BeforeTLS(c net.Conn) net.Conn {
	if t, ok := c.(*tappedClient); ok {
		t.off.Store(true)
	}
	return c
}

// WithinTLS gives the client's connection within TLS, once it has begun.
func (s *Session) WithinTLS(c net.Conn) net.Conn {
	if s.tap == nil {
		return c
	}
	s.tap.Encrypted()
	return &tappedClient{Conn: c, tap: s.tap}
}

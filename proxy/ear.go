package proxy

import (
	"net"
	"sync/atomic"
	"time"
)

// Ear hears what the client of a session says and is told, in clear where its TLS ends at the proxy. It must not keep the bytes. Said may be
// called at the same time as the others, which come one after the other.
type Ear interface {
	// Said hears what the client has sent, before any of it is passed on.
	Said(b []byte, at time.Time)
	// Arrived says that something came from the server: what Told hears next was answered at this moment.
	Arrived(at time.Time)
	// Told hears what the client is about to be sent.
	Told(b []byte, at time.Time)
	// Secured says that TLS with the client has begun.
	Secured()
	// Left says that the session is over.
	Left(at time.Time)
}

// heard is a client's connection with an ear at it.
type heard struct {
	net.Conn
	ear  Ear
	deaf atomic.Bool // TLS goes over it, and is heard within
}

// Read hears what it reads.
func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if n > 0 && !h.deaf.Load() {
		h.ear.Said(b[:n], time.Now())
	}
	return n, err
}

// Write hears what it writes.
func (h *heard) Write(b []byte) (int, error) {
	if len(b) > 0 && !h.deaf.Load() {
		h.ear.Told(b, time.Now())
	}
	return h.Conn.Write(b)
}

// CloseWrite ends the sending half.
func (h *heard) CloseWrite() error { return closeWrite(h.Conn) }

// answering is a server's connection of which an ear is told when something arrives.
type answering struct {
	net.Conn
	ear Ear
}

// Read tells when it has read.
func (a *answering) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if n > 0 {
		a.ear.Arrived(time.Now())
	}
	return n, err
}

// CloseWrite ends the sending half.
func (a *answering) CloseWrite() error { return closeWrite(a.Conn) }

// closeWrite ends the sending half of a connection, and all of one that has no halves.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Heard reports whether somebody hears the session. Then TLS and compression end here, whatever the mode.
func (s *Session) Heard() bool { return s.ear != nil }

// Number is the session's in a history. One that is heard has the same in the capture; else the recorder of the history gives it one (0).
func (s *Session) Number() uint64 {
	if s.ear == nil {
		return 0
	}
	return s.ID
}

// BeforeTLS gives the client's connection as TLS is to be spoken over it: what passes there is not heard any more.
func (s *Session) BeforeTLS(c net.Conn) net.Conn {
	if h, ok := c.(*heard); ok {
		h.deaf.Store(true)
	}
	return c
}

// WithinTLS gives the client's connection within TLS, once it has begun.
func (s *Session) WithinTLS(c net.Conn) net.Conn {
	if s.ear == nil {
		return c
	}
	s.ear.Secured()
	return &heard{Conn: c, ear: s.ear}
}

package pgwire

import (
	"io"

	"github.com/jackc/pgproto3/v2"
	"golang.org/x/sys/unix"

	"wirecheck/proxy"
	"wirecheck/proxy/relay"
)

// serverBuffer is how much the server reads of a client at once (PQ_RECV_BUFFER_SIZE, src/backend/libpq/pqcomm.c).
const serverBuffer = 8192

// ahead tells how many bytes the client has sent that nobody has read yet, up to what the server reads at once.
func (s *session) ahead() int { return s.receive(unix.MSG_PEEK) }

// drain takes what a refused client has sent behind its startup message. The server has read it by then. A connection that is closed with bytes that nobody has
// read is reset, and the client may lose the refusal.
func (s *session) drain() { s.receive(0) }

// receive is one recv(2) that does not wait. It gives the number of bytes.
func (s *session) receive(flags int) (n int) {
	raw := relay.RawOf(s.Client)
	if raw == nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { // a connection that is closed has nothing
		n, _, _ = unix.Recvfrom(int(fd), make([]byte, serverBuffer), flags|unix.MSG_DONTWAIT)
	})
	return max(n, 0)
}

// together passes on a request for encryption that came together with what should wait for its answer. The server refuses that (14.1 and later,
// CVE-2021-23214), in its own words. An older one goes on with such a session, which is not observed.
func (s *session) together(raw []byte, more int) error {
	const why = "the client does not wait for the answer to its request for encryption"
	if s.Config.UpstreamTLS.Mode == proxy.Require { // what came may be nobody's business on the way to the server
		s.fatal(&pgproto3.ErrorResponse{Code: "08P01", Message: "wirecheck refuses the session: " + why})
		s.drain()
		return nil
	}
	rest := make([]byte, more)
	if _, err := io.ReadFull(s.client, rest); err != nil {
		return &sideError{client, "read from", err}
	}
	if s.observer != nil {
		s.Log.Warn().Str("why", why).Msg("session is not observed")
	}
	if s.Tapped() {
		s.Log.Warn().Str("why", why).Msg("session is not recorded")
	}
	return s.foreign(append(raw, rest...))
}

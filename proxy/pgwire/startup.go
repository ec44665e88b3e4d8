package pgwire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgproto3/v2"

	"wirecheck/proxy"
)

// Codes in the place of a protocol version (manual, 55.7).
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSS    = 80877104
)

// tlsRecord is the first byte of a TLS handshake: a client that negotiates TLS without asking first (sslnegotiation=direct).
const tlsRecord = 0x16

// startupMessage is a StartupMessage.
type startupMessage struct {
	raw    []byte // with its length
	params map[string]string
}

func (m startupMessage) database() string {
	return cmp.Or(m.params["database"], m.params["user"])
}

// replication reports whether the session is a replication one, whose commands are not SQL (manual, 55.4).
func (m startupMessage) replication() bool {
	switch m.params["replication"] {
	case "", "false", "off", "no", "0":
		return false
	}
	return true
}

func parseStartup(raw []byte) startupMessage {
	m := startupMessage{raw: raw, params: make(map[string]string)}
	fields := bytes.Split(raw[8:], []byte{0})
	for i := 0; i+1 < len(fields) && len(fields[i]) > 0; i += 2 {
		m.params[string(fields[i])] = string(fields[i+1])
	}
	return m
}

// begin speaks with both sides until the client is authenticated. It returns false if that was all there was to do.
func (s *session) begin() (bool, error) {
	for asked := 0; ; asked++ {
		s.AwaitsClient(true)
		var first [8]byte
		if _, err := io.ReadFull(s.client, first[:1]); err != nil {
			return false, &sideError{client, "read from", err}
		}
		if first[0] == tlsRecord && asked == 0 && s.clientTLS == nil {
			return false, s.direct(first[:1])
		}
		if _, err := io.ReadFull(s.client, first[1:4]); err != nil {
			return false, &sideError{client, "read from", err}
		}
		size := binary.BigEndian.Uint32(first[:])
		if size < 8 || size > maxStartup { // the server closes the connection without an answer (ProcessStartupPacket)
			return false, fmt.Errorf("read startup packet: %w", errLength)
		}
		if _, err := io.ReadFull(s.client, first[4:]); err != nil {
			return false, &sideError{client, "read from", err}
		}
		code := binary.BigEndian.Uint32(first[4:])
		raw := make([]byte, size)
		copy(raw, first[:])
		if _, err := io.ReadFull(s.client, raw[8:]); err != nil {
			return false, &sideError{client, "read from", err}
		}
		s.AwaitsClient(false) // the server has its time, too, for TLS among others
		switch {
		case code == codeCancel:
			return false, s.cancel(raw)
		case (code == codeSSL || code == codeGSS) && (asked >= 2 || s.clientTLS != nil):
			s.fatal(&pgproto3.ErrorResponse{Code: "08P01", Message: "encryption was negotiated already"})
			return false, errors.New("client asks for encryption again and again")
		case code == codeSSL || code == codeGSS:
			if done, err := s.negotiate(code, raw); err != nil || done {
				return false, err
			}
		case code>>16 != 3:
			return false, s.foreign(raw)
		default:
			s.startup = parseStartup(raw)
			return s.authenticate()
		}
	}
}

// dial connects to the upstream.
func (s *session) dial() error {
	if s.server != nil {
		return nil
	}
	conn, err := s.Dial(s.ctx)
	if err != nil {
		return err
	}
	s.server = conn
	context.AfterFunc(s.ctx, func() { _ = conn.SetDeadline(past) })
	if err := conn.SetDeadline(time.Now().Add(s.Config.Timeouts.Startup)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	return nil
}

// unreachable is the error for a client when there is no server.
func (s *session) unreachable(err error) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{
		Code:    "08001",
		Message: fmt.Sprintf("wirecheck could not reach the server: %v", err),
		Hint:    fmt.Sprintf("Is PostgreSQL running at %s, and does it accept connections from the machine that wirecheck runs on?", s.Config.Upstream),
	}
}

// refuse reads the client up to its startup message, so that it reads, and sends it e.
func (s *session) refuse(e *pgproto3.ErrorResponse) error {
	if err := s.Client.SetDeadline(time.Now().Add(s.Config.Timeouts.Startup)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	for range 3 {
		var first [8]byte
		if _, err := io.ReadFull(s.client, first[:]); err != nil {
			return &sideError{client, "read from", err}
		}
		size, code := binary.BigEndian.Uint32(first[:]), binary.BigEndian.Uint32(first[4:])
		switch {
		case code == codeSSL && s.clientTLS == nil:
			if err := s.acceptTLS(); err != nil {
				return err
			}
		case code == codeGSS:
			if err := s.answer('N'); err != nil {
				return err
			}
		case code>>16 == 3 && size >= 8 && size <= maxStartup:
			if _, err := io.CopyN(io.Discard, s.client, int64(size-8)); err != nil {
				return &sideError{client, "read from", err}
			}
			s.fatal(e)
			return nil
		default:
			return nil
		}
	}
	return nil
}

func (s *session) answer(b byte) error {
	if _, err := s.client.Write([]byte{b}); err != nil {
		return &sideError{client, "write to", err}
	}
	return nil
}

// ask sends a negotiation request to the server and reads its one byte. Nothing more is read, so nothing that was sent
// in the clear can be taken for encrypted (CVE-2021-23222).
func (s *session) ask(raw []byte) (byte, error) {
	if _, err := s.server.Write(raw); err != nil {
		return 0, &sideError{server, "write to", err}
	}
	var b [1]byte
	if _, err := io.ReadFull(s.server, b[:]); err != nil {
		return 0, &sideError{server, "read from", inside(err)}
	}
	return b[0], nil
}

// passTLS says that TLS goes through to the server end to end: nothing needs to be seen, and there is no
// certificate to end it with.
func (s *session) passTLS() bool {
	return s.observer == nil && !s.Tapped() && !s.Config.ClientTLS.Configured() &&
		(s.Config.UpstreamTLS.Mode == "" || s.Config.UpstreamTLS.Mode == proxy.Mirror) &&
		(s.Config.UpstreamTLS.Verify == "" || s.Config.UpstreamTLS.Verify == proxy.VerifyNone)
}

// negotiate answers a request for encryption. It returns true if the session is over.
func (s *session) negotiate(code uint32, raw []byte) (bool, error) {
	if more := s.ahead(); more > 0 {
		return true, s.together(raw, more)
	}
	if code == codeSSL {
		return s.negotiateTLS(raw)
	}
	return s.negotiateGSS(raw)
}

// negotiateTLS answers an SSLRequest as the server answers it. It returns true if the session is over.
func (s *session) negotiateTLS(raw []byte) (bool, error) {
	if err := s.dial(); err != nil {
		return true, s.refuseInside(err)
	}
	if s.Config.UpstreamTLS.Mode == proxy.Plain {
		return false, s.acceptTLS()
	}
	b, err := s.ask(raw)
	if err != nil {
		s.fatal(s.lost(err))
		return true, err
	}
	switch {
	case b == 'S' && s.passTLS():
		if err := s.answer('S'); err != nil {
			return true, err
		}
		return true, s.join()
	case b == 'S':
		if err := s.upstreamTLS(); err != nil {
			return true, s.refuseInside(err)
		}
		return false, s.acceptTLS()
	case b == 'N' && s.Config.UpstreamTLS.Mode == proxy.Require:
		return true, s.refuseInside(errors.New("the server does not offer TLS, which is required"))
	case b == 'N':
		return false, s.answer('N')
	default: // an ErrorResponse, from a server that could not start a backend
		if err := s.answer(b); err != nil {
			return true, err
		}
		return true, s.join()
	}
}

// refuseInside sends an error to a client that asked for TLS: inside TLS, where a client of any strictness can read it.
func (s *session) refuseInside(cause error) error {
	if err := s.acceptTLS(); err != nil {
		return errors.Join(cause, err)
	}
	return errors.Join(cause, s.refuse(s.unreachable(cause)))
}

func (s *session) acceptTLS() error {
	config, err := s.Session.ClientTLS()
	if err != nil {
		return fmt.Errorf("certificate for clients: %w", err)
	}
	if err := s.answer('S'); err != nil {
		return err
	}
	conn := tls.Server(s.BeforeTLS(s.client), config)
	s.AwaitsClient(true)
	if err := conn.HandshakeContext(s.ctx); err != nil {
		return fmt.Errorf("TLS with client: %w", err)
	}
	s.client, s.clientTLS = s.WithinTLS(conn), conn
	if up, ok := s.server.(*tls.Conn); ok {
		peers := up.ConnectionState().PeerCertificates
		s.sameCert = len(peers) > 0 && bytes.Equal(peers[0].Raw, config.Certificates[0].Certificate[0])
	}
	return nil
}

func (s *session) upstreamTLS() error {
	conn := tls.Client(s.server, s.Session.UpstreamTLS())
	ctx, cancel := context.WithTimeout(s.ctx, s.Config.Timeouts.Dial)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS with %s: %w", s.Config.Upstream, err)
	}
	s.server, s.serverTLS = conn, true
	return nil
}

// negotiateGSS answers a GSSENCRequest. GSSAPI encryption cannot end here, only pass through.
func (s *session) negotiateGSS(raw []byte) (bool, error) {
	if s.observer != nil || s.Tapped() || s.Config.ClientTLS.Configured() {
		return false, s.answer('N')
	}
	if err := s.dial(); err != nil {
		// The client asks for TLS or sends its startup message next; that is where it can get an error.
		return false, s.answer('N')
	}
	b, err := s.ask(raw)
	if err != nil {
		s.fatal(s.lost(err))
		return true, err
	}
	if err := s.answer(b); err != nil {
		return true, err
	}
	if b == 'N' {
		return false, nil
	}
	return true, s.join()
}

// direct passes a connection that begins with a TLS handshake to the server. A server that knows no direct
// negotiation closes it, as it would without us.
func (s *session) direct(first []byte) error {
	if err := s.dial(); err != nil {
		return err // there is no common protocol for an error
	}
	if s.observer != nil {
		s.Log.Warn().Str("why", "direct TLS negotiation").Msg("session is not observed")
	}
	if s.Tapped() {
		s.Log.Warn().Str("why", "direct TLS negotiation").Msg("session is not recorded")
	}
	return s.foreign(first)
}

// foreign passes on what was read and then everything else.
func (s *session) foreign(raw []byte) error {
	if err := s.dial(); err != nil {
		s.fatal(s.unreachable(err))
		return err
	}
	if _, err := s.server.Write(raw); err != nil {
		return &sideError{server, "write to", err}
	}
	return s.join()
}

// requireTLS sees to TLS with the server where the configuration wants it whatever the client does.
func (s *session) requireTLS() error {
	if s.serverTLS || s.Config.UpstreamTLS.Mode != proxy.Require {
		return nil
	}
	b, err := s.ask(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, codeSSL))
	if err != nil {
		return err
	}
	if b != 'S' {
		return errors.New("the server does not offer TLS, which is required")
	}
	return s.upstreamTLS()
}

// lost is the error for a client when the server's connection broke.
func (s *session) lost(err error) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{
		Code:    "08006",
		Message: fmt.Sprintf("wirecheck lost the connection to the server at %s: %v", s.Config.Upstream, cause(err)),
		Hint:    "The server crashed, was stopped, or ended the connection. See its log.",
	}
}

// cause is the innermost reason, in words for people.
func cause(err error) error {
	var e *sideError
	if errors.As(err, &e) {
		err = e.err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it was closed")
	}
	return proxy.Reason(err)
}

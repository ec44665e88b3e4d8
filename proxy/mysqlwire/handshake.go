package mysqlwire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/proxy"
)

// loginMax bounds a packet of the login: user, database and connection attributes (64 KiB at most) and what an
// authentication method sends.
const loginMax = 256 << 10

// errRefused says that the server refused the login and the client was told so.
var errRefused = errors.New("the server refused the login")

// handshake relays the greeting and the login up to the server's final answer, which is returned and not yet relayed if
// it is an OK. No password is known here: challenge and answers pass as they are.
func (s *session) handshake(ctx context.Context) (ok []byte, seq byte, err error) {
	f, b, err := s.loginPacket(s.server)
	if err != nil {
		_ = s.client.put(0, errorUnreachable("it closed the connection before its greeting").encode(false))
		return nil, 0, fmt.Errorf("read greeting: %w", err)
	}
	if f.first == markERR { // too many connections, host not allowed
		return nil, 0, errors.Join(errRefused, s.client.put(f.seq, b))
	}
	if s.greeting, err = parseGreeting(b); err != nil {
		// Another protocol: let the two find out what they can do.
		if err := s.client.put(f.seq, b); err != nil {
			return nil, 0, err
		}
		return nil, 0, errBytes
	}
	keep := capFollowed
	if s.observer == nil && !s.ps.Tapped() {
		keep = ^uint64(0)
	}
	var add uint64
	if s.ps.Config.UpstreamTLS.Mode == proxy.Plain {
		keep &^= clientSSL
		if s.ps.Config.ClientTLS.Configured() {
			add = clientSSL
		}
	}
	s.offered = s.greeting.caps&keep | add
	if err := s.client.put(f.seq, s.greeting.with(s.offered)); err != nil {
		return nil, 0, err
	}
	if err := s.relayLogin(ctx, s.greeting.caps&^s.offered); err != nil {
		return nil, 0, err
	}
	return s.authenticate()
}

// errBytes says that the rest of the session is not understood and passes as bytes.
var errBytes = errors.New("pass as bytes")

// loginPacket reads one packet of bounded length.
func (s *session) loginPacket(c *conn) (frame, []byte, error) {
	f, err := c.peek()
	if err != nil {
		return f, nil, err
	}
	if f.n > loginMax {
		return f, nil, errTooLong
	}
	b, err := c.packet(f)
	return f, b, err
}

// relayLogin relays the client's login, with TLS before it if the client wants that.
func (s *session) relayLogin(ctx context.Context, drop uint64) error {
	f, b, err := s.loginPacket(s.client)
	if err != nil {
		return s.badClient(err, "login")
	}
	if f.seq != 1 {
		return s.badClient(errSequence{f.seq, 1}, "login")
	}
	caps, ok := capsOf(b)
	if !ok { // the protocol before 4.1
		if err := s.server.put(f.seq, b); err != nil {
			return err
		}
		return errBytes
	}
	switch plain := s.ps.Config.UpstreamTLS.Mode == proxy.Plain; {
	case caps&clientSSL != 0 && len(b) == responseFixed:
		if f, b, err = s.startTLS(ctx, f, b, drop, !plain); err != nil {
			return err
		}
	case s.ps.Config.UpstreamTLS.Mode != proxy.Require:
	case s.greeting.caps&clientSSL == 0:
		return s.fail(f.seq+1, errorUnreachable("it does not offer TLS"), errors.New("the server does not offer TLS"))
	default:
		if err := s.requestTLS(ctx, f.seq, bytes.Clone(b[:responseFixed])); err != nil {
			return err
		}
		s.shift = 1
	}
	l, err := parseLogin(b)
	if err != nil {
		return s.badClient(err, "login")
	}
	dropCaps(b, drop)
	switch s.shift {
	case 1:
		setSSL(b)
	case 255:
		b[1] &^= byte(clientSSL >> 8)
	}
	s.caps = l.caps & s.greeting.caps &^ drop
	s.user, s.database, s.program = l.user, l.database, l.program
	return s.server.put(f.seq+s.shift, b)
}

// setSSL sets CLIENT_SSL in a login.
func setSSL(b []byte) { b[1] |= byte(clientSSL >> 8) }

// startTLS mirrors the client's SSLRequest and reads the login from the encrypted connection.
func (s *session) startTLS(ctx context.Context, f frame, request []byte, drop uint64, mirror bool) (frame, []byte, error) {
	if s.offered&clientSSL == 0 {
		return f, nil, s.badClient(fmt.Errorf("TLS was not offered: %w", errMalformed), "login")
	}
	if mirror {
		dropCaps(request, drop)
		if err := s.requestTLS(ctx, f.seq, request); err != nil {
			return f, nil, err
		}
	} else {
		s.shift = 255
	}
	cfg, err := s.ps.ClientTLS()
	if err != nil {
		return f, nil, s.fail(f.seq+1, errorUnreachable("no certificate"), err)
	}
	s.ps.BeforeTLS(s.client.nc)
	tc := tls.Server(s.client.handOver(), cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		return f, nil, fmt.Errorf("TLS with the client: %w", err)
	}
	s.client.nc = s.ps.WithinTLS(tc)
	f, b, err := s.loginPacket(s.client)
	if err != nil {
		return f, nil, s.badClient(err, "login")
	}
	if _, ok := capsOf(b); !ok || f.seq != 2 {
		return f, nil, s.badClient(errMalformed, "login")
	}
	return f, b, nil
}

// handOver gives the connection to TLS, with what was read of it already: the client need not wait after its request.
func (c *conn) handOver() net.Conn {
	p := &prefixed{Conn: c.nc, head: bytes.Clone(c.in[c.r:c.w])}
	c.r, c.w = 0, 0
	return p
}

// prefixed is a connection of which some bytes were read already.
type prefixed struct {
	net.Conn
	head []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.head) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.head)
	p.head = p.head[n:]
	return n, nil
}

// requestTLS sends the SSLRequest and starts TLS with the server.
func (s *session) requestTLS(ctx context.Context, seq byte, request []byte) error {
	setSSL(request)
	if err := s.server.put(seq, request); err != nil {
		return err
	}
	if err := s.server.send(); err != nil {
		return err
	}
	tc := tls.Client(s.server.nc, s.ps.UpstreamTLS())
	if err := tc.HandshakeContext(ctx); err != nil {
		return s.fail(seq+1, errorUnreachable("TLS: "+err.Error()), fmt.Errorf("TLS with the server: %w", err))
	}
	s.server.nc = tc
	return nil
}

// authenticate relays packets in both directions, whatever the method says in them, until the server says OK or ERR: a
// packet of a method that begins like one of these is escaped by the server with a byte 1 (MariaDB Knowledge Base,
// "Authentication plugins"; MySQL, sql_authentication.cc). An OK is returned, an ERR is relayed.
func (s *session) authenticate() (ok []byte, seq byte, err error) {
	if err := s.flushBoth(); err != nil {
		return nil, 0, err
	}
	s.client.flush, s.server.flush = nil, nil
	defer func() { s.client.flush, s.server.flush = s.flushBoth, s.flushBoth }()
	var g errgroup.Group
	over := make(chan struct{})
	g.Go(func() error { return s.relayAnswers(over) })
	ok, seq, err = s.relayChallenges()
	close(over)
	s.client.wake()
	if answers := g.Wait(); err != nil && answers != nil {
		err = answers // the cause: it closed the server's connection
	}
	return ok, seq, err
}

// relayChallenges relays the server's packets up to the final one.
func (s *session) relayChallenges() (ok []byte, seq byte, err error) {
	for {
		f, b, err := s.loginPacket(s.server)
		if err != nil {
			return nil, 0, fmt.Errorf("read the server's answer to the login: %w", err)
		}
		seq := f.seq - s.shift
		switch {
		case f.n > 0 && f.first == markOK:
			return bytes.Clone(b), seq, nil
		case f.first == markERR:
			return nil, 0, errors.Join(errRefused, s.client.put(seq, b))
		}
		if err := s.client.put(seq, b); err != nil {
			return nil, 0, err
		}
		if err := s.client.send(); err != nil {
			return nil, 0, err
		}
	}
}

// relayAnswers relays the client's packets until the login is over. A packet with number 0 is a command that came too
// early; it stays where it is.
func (s *session) relayAnswers(over <-chan struct{}) error {
	for {
		f, err := s.client.peek()
		if err == nil && f.seq == 0 {
			return nil
		}
		var b []byte
		if err == nil {
			_, b, err = s.loginPacket(s.client)
		}
		if err == nil {
			err = s.server.put(f.seq+s.shift, b)
		}
		if err == nil {
			err = s.server.send()
		}
		if err == nil {
			continue
		}
		select {
		case <-over:
			return nil
		default:
			s.server.nc.Close() // ends the wait for the server
			return err
		}
	}
}

// loginDeadline bounds the login; the zero time ends it.
func (s *session) loginDeadline(t time.Time) error {
	s.client.timed, s.server.timed = !t.IsZero(), !t.IsZero()
	return errors.Join(s.client.raw.SetDeadline(t), s.server.raw.SetDeadline(t))
}

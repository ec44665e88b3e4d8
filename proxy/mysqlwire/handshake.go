package mysqlwire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"wirecheck/proxy"
)

// loginMax bounds a packet of the login: user, database and connection attributes (64 KiB at most) and what an
// authentication method sends.
const loginMax = 256 << 10

// errRefused says that the server refused the login and that its error was relayed.
var errRefused = errors.New("the server refused the login")

// handshake is the login of a session. It knows no password: challenge and answers pass as they are.
type handshake struct {
	*session
	offered uint64 // the capabilities in the greeting that the client saw
	// shift is what the server's sequence numbers are ahead of the client's by: one side may count an SSLRequest that the
	// other one has not seen.
	shift byte
}

// relay relays the greeting and the login up to the server's final answer. It returns an OK, which it does not relay.
func (h *handshake) relay(ctx context.Context) (ok []byte, seq byte, err error) {
	f, b, err := h.server.loginPacket()
	if err != nil {
		return nil, 0, fmt.Errorf("read greeting: %w", err)
	}
	if f.first == markERR { // too many connections, host not allowed
		return nil, 0, errors.Join(errRefused, h.client.put(f.seq, b))
	}
	if h.greeting, err = parseGreeting(b); err != nil {
		// Another protocol: let the two find out what they can do.
		if err := h.client.put(f.seq, b); err != nil {
			return nil, 0, err
		}
		return nil, 0, errBytes
	}
	keep, ours := capFollowed, uint64(0)
	switch {
	case h.ps.Tapped():
	case h.observer == nil || !h.ps.Observed():
		keep = ^uint64(0)
	default:
		ours = h.greeting.caps & clientCompress
	}
	var add uint64
	if h.ps.Config.UpstreamTLS.Mode == proxy.Plain {
		keep &^= clientSSL
		if h.ps.Config.ClientTLS.Configured() {
			add = clientSSL
		}
	}
	h.offered = h.greeting.caps&keep | add | ours
	if err := h.client.put(f.seq, h.greeting.with(h.offered)); err != nil {
		return nil, 0, err
	}
	if err := h.relayLogin(ctx, h.greeting.caps&^h.offered|ours); err != nil {
		return nil, 0, err
	}
	return h.authenticate()
}

// loginPacket reads one packet of bounded length.
func (c *conn) loginPacket() (frame, []byte, error) {
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
func (h *handshake) relayLogin(ctx context.Context, drop uint64) error {
	h.ps.AwaitsClient(true)
	f, b, err := h.client.loginPacket()
	if err != nil {
		return h.badClient(err, "login")
	}
	h.ps.AwaitsClient(false) // the server has its time, too
	if f.seq != 1 {
		return h.badClient(errSequence{f.seq, 1}, "login")
	}
	caps, ok := capsOf(b)
	if !ok { // the protocol before 4.1
		if err := h.server.put(f.seq, b); err != nil {
			return err
		}
		return errBytes
	}
	switch plain := h.ps.Config.UpstreamTLS.Mode == proxy.Plain; {
	case caps&clientSSL != 0 && len(b) == responseFixed:
		if f, b, err = h.startTLS(ctx, f, b, drop, !plain); err != nil {
			return err
		}
	case h.ps.Config.UpstreamTLS.Mode != proxy.Require:
	case h.greeting.caps&clientSSL == 0:
		return h.fail(f.seq+1, errorUnreachable("it does not offer TLS"), errors.New("the server does not offer TLS"))
	default:
		if err := h.requestTLS(ctx, f.seq, bytes.Clone(b[:responseFixed])); err != nil {
			return err
		}
		h.shift = 1
	}
	l, err := parseLogin(b)
	if err != nil {
		return h.badClient(err, "login")
	}
	h.compresses = l.caps&h.offered&drop&clientCompress != 0
	dropCaps(b, drop)
	switch h.shift {
	case 1:
		setSSL(b)
	case 255:
		b[1] &^= byte(clientSSL >> 8)
	}
	h.caps = l.caps & h.greeting.caps &^ drop
	h.user, h.database, h.program = l.user, l.database, l.program
	return h.server.put(f.seq+h.shift, b)
}

// setSSL sets CLIENT_SSL in a login.
func setSSL(b []byte) { b[1] |= byte(clientSSL >> 8) }

// startTLS mirrors the client's SSLRequest and reads the login from the encrypted connection.
func (h *handshake) startTLS(ctx context.Context, f frame, request []byte, drop uint64, mirror bool) (frame, []byte, error) {
	if h.offered&clientSSL == 0 {
		return f, nil, h.badClient(fmt.Errorf("TLS was not offered: %w", errMalformed), "login")
	}
	if mirror {
		dropCaps(request, drop)
		if err := h.requestTLS(ctx, f.seq, request); err != nil {
			return f, nil, err
		}
	} else {
		h.shift = 255
	}
	cfg, err := h.ps.ClientTLS()
	if err != nil {
		return f, nil, h.fail(f.seq+1, errorUnreachable("no certificate"), err)
	}
	h.ps.BeforeTLS(h.client.nc)
	h.ps.AwaitsClient(true)
	defer h.ps.AwaitsClient(false)
	tc := tls.Server(h.client.handOver(), cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		return f, nil, fmt.Errorf("TLS with the client: %w", err)
	}
	h.client.nc = h.ps.WithinTLS(tc)
	f, b, err := h.client.loginPacket()
	if err != nil {
		return f, nil, h.badClient(err, "login")
	}
	if _, ok := capsOf(b); !ok || f.seq != 2 {
		return f, nil, h.badClient(errMalformed, "login")
	}
	return f, b, nil
}

// handOver returns the connection for TLS, with what was read of it already: a client need not wait after its request.
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

// NetConn is the connection itself.
func (p *prefixed) NetConn() net.Conn { return p.Conn }

// requestTLS sends the SSLRequest and starts TLS with the server.
func (h *handshake) requestTLS(ctx context.Context, seq byte, request []byte) error {
	setSSL(request)
	if err := h.server.put(seq, request); err != nil {
		return err
	}
	if err := h.server.send(); err != nil {
		return err
	}
	tc := tls.Client(h.server.nc, h.ps.UpstreamTLS())
	if err := tc.HandshakeContext(ctx); err != nil {
		return h.fail(seq+1, errorUnreachable("TLS: "+err.Error()), fmt.Errorf("TLS with the server: %w", err))
	}
	h.server.nc = tc
	return nil
}

// authenticate relays packets in both directions, whatever the method says in them, until the server says OK or ERR. The
// server puts a byte 1 in front of a method's packet that begins like one of these (MariaDB Knowledge Base,
// "Authentication plugins"; MySQL, sql_authentication.cc). authenticate returns an OK and relays an ERR.
func (h *handshake) authenticate() (ok []byte, seq byte, err error) {
	if err := h.flush(); err != nil {
		return nil, 0, err
	}
	h.client.flush, h.server.flush = nil, nil
	defer func() { h.client.flush, h.server.flush = h.flush, h.flush }()
	var g errgroup.Group
	over := make(chan struct{})
	g.Go(func() error { return h.relayAnswers(over) })
	ok, seq, err = h.relayChallenges()
	close(over)
	h.client.wake()
	if answers := g.Wait(); err != nil && answers != nil {
		err = answers // the cause: it closed the server's connection
	}
	return ok, seq, err
}

// relayChallenges relays the server's packets up to the final one.
func (h *handshake) relayChallenges() (ok []byte, seq byte, err error) {
	for {
		f, b, err := h.server.loginPacket()
		if err != nil {
			return nil, 0, fmt.Errorf("read the server's answer to the login: %w", err)
		}
		seq := f.seq - h.shift
		switch {
		case f.n > 0 && f.first == markOK:
			return bytes.Clone(b), seq, nil
		case f.first == markERR:
			return nil, 0, errors.Join(errRefused, h.client.put(seq, b))
		}
		h.ps.AwaitsClient(true) // before it can answer, which says the opposite
		if err := h.client.put(seq, b); err != nil {
			return nil, 0, err
		}
		if err := h.client.send(); err != nil {
			return nil, 0, err
		}
	}
}

// relayAnswers relays the client's packets until the login is over. A packet with number 0 is a command that came too
// early; it stays where it is.
func (h *handshake) relayAnswers(over <-chan struct{}) error {
	for {
		f, err := h.client.peek()
		if err == nil && f.seq == 0 {
			return nil
		}
		var b []byte
		if err == nil {
			_, b, err = h.client.loginPacket()
		}
		if err == nil {
			h.ps.AwaitsClient(false)
			err = h.server.put(f.seq+h.shift, b)
		}
		if err == nil {
			err = h.server.send()
		}
		if err == nil {
			continue
		}
		select {
		case <-over:
			return nil
		default:
			h.server.nc.Close() // ends the wait for the server
			return err
		}
	}
}

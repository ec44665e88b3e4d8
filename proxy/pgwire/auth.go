package pgwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgproto3/v2"

	"wirecheck/proxy"
)

// Kinds of authentication requests (manual, 55.7, AuthenticationXXX).
const (
	authOk          = 0
	authGSS         = 7
	authGSSContinue = 8
	authSSPI        = 9
	authSASL        = 10
	authSASLFinal   = 12
	mechanismPlain  = "SCRAM-SHA-256"
	mechanismPlus   = "SCRAM-SHA-256-PLUS"
	smallMessage    = 1 << 16 // what is decoded while authentication runs is at most this long
	severityError   = "ERROR"
)

// authenticate relays the startup message and the authentication until the first ReadyForQuery was relayed. It returns
// false if the server refused the client.
func (s *session) authenticate() (bool, error) {
	if err := s.dial(); err != nil {
		s.fatal(s.unreachable(err))
		return false, err
	}
	if err := s.requireTLS(); err != nil {
		s.fatal(s.unreachable(err))
		return false, err
	}
	if _, err := s.server.Write(s.startup.raw); err != nil {
		err = &sideError{server, "write to", err}
		s.fatal(s.lost(err))
		return false, err
	}
	s.fromClient, s.toClient = newReader(s.client, client), newWriter(s.client, client)
	s.useServer(s.server)
	a := authentication{session: s}
	ready, err := a.run()
	var e *sideError
	if errors.As(err, &e) && e.side == server {
		if a.refused { // the server ends the connection after it refused the client
			defer s.drain()
			return false, s.toClient.flush()
		}
		s.fatal(s.lost(err))
	}
	return ready, err
}

// useServer makes reader and writer for the server's connection.
func (s *session) useServer(c net.Conn) {
	s.server = c
	s.fromServer, s.toServer = newReader(c, server), newWriter(c, server)
	s.fromServer.before = s.toClient.flush
}

// authentication is the state of one.
type authentication struct {
	*session
	minusPlus bool // channel binding was taken out of the server's offer
	refused   bool
}

func (a *authentication) run() (bool, error) {
	for {
		f, err := a.fromServer.header(maxMessage)
		if err != nil {
			return false, err
		}
		if f.size > smallMessage {
			if err := a.pass(f); err != nil {
				return false, err
			}
			continue
		}
		body, err := a.fromServer.body(f.size)
		if err != nil {
			return false, err
		}
		switch {
		case f.kind == 'R' && len(body) >= 4:
			if err := a.request(body); err != nil {
				return false, err
			}
			continue
		case f.kind == 'Z' && len(body) == 1:
			return true, a.welcome(body)
		case f.kind == 'K' && len(body) >= 4:
			a.backend = binary.BigEndian.Uint32(body)
			a.known = a.cancels.began(a.backend) // before the client can send one
		case f.kind == 'S':
			if name, value, ok := parameterStatus(body); ok {
				a.parameters[name] = value
			}
		case f.kind == 'E':
			a.refused = true
		}
		if err := a.toClient.message(f.kind, body); err != nil {
			return false, err
		}
	}
}

// pass forwards a message that is not looked at.
func (a *authentication) pass(f frame) error {
	if err := a.toClient.header(f.kind, f.size); err != nil {
		return err
	}
	return a.fromServer.copyTo(a.toClient, f.size)
}

// parameterStatus reads a ParameterStatus.
func parameterStatus(body []byte) (name, value string, ok bool) {
	parts := bytes.SplitN(body, []byte{0}, 3)
	if len(parts) < 3 {
		return "", "", false
	}
	return string(parts[0]), string(parts[1]), true
}

// request relays an authentication request and, if it has one, the client's answer.
func (a *authentication) request(body []byte) error {
	code := binary.BigEndian.Uint32(body)
	if code == authSASL && a.serverTLS && !a.sameCert {
		// Channel binding ties the client to the certificate that it sees (RFC 5929, tls-server-end-point): ours, or none.
		body, a.minusPlus = withoutPlus(body)
	}
	if err := a.toClient.message('R', body); err != nil {
		return err
	}
	switch code {
	case authOk, authSASLFinal:
		return nil
	case authGSSContinue:
		// Whether the client answers depends on its mechanism; both sides are read until the server is content.
		return a.either()
	}
	if err := a.toClient.flush(); err != nil {
		return err
	}
	return a.reply(code)
}

// reply relays the client's answer.
func (a *authentication) reply(code uint32) error {
	a.AwaitsClient(true)
	f, err := a.fromClient.header(maxAuth)
	if errors.Is(err, errLength) {
		return fmt.Errorf("read authentication message: %w", err)
	}
	if err != nil {
		return err
	}
	body, err := a.fromClient.body(f.size)
	if err != nil {
		return err
	}
	a.AwaitsClient(false)
	if code == authSASL && a.minusPlus && bindingMissed(body) {
		if err := a.unencrypted(); err != nil {
			return err
		}
	}
	if err := a.toServer.message(f.kind, body); err != nil {
		return err
	}
	return a.toServer.flush()
}

// withoutPlus takes SCRAM-SHA-256-PLUS out of an AuthenticationSASL.
func withoutPlus(body []byte) ([]byte, bool) {
	plus := []byte(mechanismPlus + "\x00")
	i := bytes.Index(body[4:], plus)
	if i < 0 {
		return body, false
	}
	i += 4
	return append(append([]byte{}, body[:i]...), body[i+len(plus):]...), true
}

// bindingMissed reports whether a SASLInitialResponse says that the client could do channel binding but believes that
// the server cannot (RFC 5802, section 7, gs2-cbind-flag "y"). libpq says so over TLS; a server that has TLS then
// refuses the client (read_client_first_message, src/backend/libpq/auth-scram.c), and the flag is signed.
func bindingMissed(body []byte) bool {
	rest, ok := bytes.CutPrefix(body, []byte(mechanismPlain+"\x00"))
	return ok && len(rest) > 5 && rest[4] == 'y' && rest[5] == ','
}

// unencrypted replaces the upstream connection by one without TLS, over which a server takes the flag for the truth.
// That is done only if the connection does not leave this machine and the configuration does not ask for its TLS.
func (a *authentication) unencrypted() error {
	refuse := func(err error) error {
		a.fatal(&pgproto3.ErrorResponse{
			Code:    "28000",
			Message: "SCRAM channel binding is not possible through wirecheck, which ends TLS here with a certificate of its own",
			Hint: "Connect with channel_binding=disable, or give wirecheck the server's own certificate and key (client TLS), " +
				"or set the upstream's TLS to off if its network is trusted.",
		})
		return err
	}
	up := a.Config.UpstreamTLS
	local := a.Config.Upstream.Network == "unix"
	if t, ok := a.server.RemoteAddr().(*net.TCPAddr); ok {
		local = t.IP.IsLoopback()
	}
	if !local || up.Mode == proxy.Require || (up.Verify != "" && up.Verify != proxy.VerifyNone) {
		return refuse(errors.New("SCRAM with channel binding: TLS ends here and the upstream connection needs TLS too"))
	}
	old := a.server
	conn, err := a.Dial(a.ctx)
	if err != nil {
		a.fatal(a.unreachable(err))
		return err
	}
	a.useServer(conn)
	a.serverTLS = false
	if err := ignoreClosed(old.Close()); err != nil {
		return fmt.Errorf("close encrypted upstream connection: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(a.Config.Timeouts.Startup)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	if _, err := a.toServer.Write(a.startup.raw); err != nil {
		return err
	}
	if err := a.toServer.flush(); err != nil {
		return err
	}
	return a.skipToSASL()
}

// skipToSASL reads a second server up to the point that the client has reached already.
func (a *authentication) skipToSASL() error {
	for {
		f, err := a.fromServer.header(smallMessage)
		if err != nil {
			return err
		}
		body, err := a.fromServer.body(f.size)
		if err != nil {
			return err
		}
		switch {
		case f.kind == 'R' && len(body) >= 4 && binary.BigEndian.Uint32(body) == authSASL:
			return nil
		case f.kind == 'E': // pg_hba.conf wants TLS, for example
			a.refused = true
			if err := a.toClient.message('E', body); err != nil {
				return err
			}
			return a.toClient.flush()
		case f.kind == 'R':
			return errors.New("server asks for another authentication without TLS than with it")
		}
	}
}

// either relays both directions while a GSSAPI exchange runs, up to the server's next message.
func (a *authentication) either() error {
	if err := a.toClient.flush(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		done <- proxy.Catch(func() error { return a.reply(authGSSContinue) })
	}()
	err := a.fromServer.fill(headerLen)
	if e := a.Client.SetReadDeadline(past); e != nil {
		err = errors.Join(err, fmt.Errorf("set deadline: %w", e))
	}
	replied := <-done
	if e := a.Client.SetReadDeadline(time.Now().Add(a.Config.Timeouts.Startup)); e != nil {
		err = errors.Join(err, fmt.Errorf("set deadline: %w", e))
	}
	if a.ctx.Err() != nil {
		a.interrupt()
	}
	return errors.Join(err, quiet(replied))
}

// welcome ends the authentication with the first ReadyForQuery. In observe mode the client does not get it yet: first
// what must be known of the server is asked.
func (a *authentication) welcome(body []byte) error {
	if err := a.server.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	if a.observed() {
		return nil
	}
	if err := a.toClient.message('Z', body); err != nil {
		return err
	}
	return a.toClient.flush()
}

// Package pgwire relays one session of the PostgreSQL frontend/backend protocol, version 3 (manual, chapter 55).
//
// It relays frames: a message is decoded only where it must be understood or rewritten; the others, and whatever is not
// understood, pass as the bytes that came. Everything streams through two buffers per direction, whatever the length of
// a message. Authentication is relayed, so no password is known here.
//
// In pass mode (passing) the two connections are joined after authentication, by package relay where it can; the only thing that
// is looked at is whether the session is idle, so that it can be ended politely. In observe mode (observation) two goroutines share a session:
//
//	client -> clientHalf -> server     plans and rewrites statements, puts what it sent into the pipeline
//	client <- serverHalf <- server     takes the answers of the pipeline's entries apart
//
//	pipeline       the messages that wait for their answers, what their names mean, what is recorded of them
//	environment    settings and catalog, which statements are planned with
//
// Each half belongs to one goroutine; the pipeline and the environment have a mutex each.
package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/jackc/pgproto3/v2"
	"golang.org/x/sync/errgroup"

	"wirecheck/proxy"
	"wirecheck/proxy/relay"
)

// Handler serves sessions of the PostgreSQL protocol.
type Handler struct {
	observer *Observer // nil in pass mode
	relays   relay.Relay
	cancels  *cancels
}

// New makes a Handler. Without an observer sessions are only passed through.
func New(o *Observer) *Handler { return &Handler{observer: o, cancels: newCancels()} }

var _ proxy.Handler = (*Handler)(nil)

// lastMessage is how long the last message to a client may take.
const lastMessage = time.Second

// session is one client connection and its upstream connection.
type session struct {
	*proxy.Session
	observer *Observer
	relays   *relay.Relay
	cancels  *cancels
	ctx      context.Context // ends when the session must end at once; kept here because both goroutines wait on connections only

	client, server net.Conn // as they are spoken to, TLS included; server is nil until it is dialled
	fromClient     *reader
	toClient       *writer
	fromServer     *reader
	toServer       *writer
	relayedClient  net.Conn // the client's connection after a relay had it; nil: none had it

	clientTLS  *tls.Conn // TLS with the client, where it ends here
	serverTLS  bool
	sameCert   bool // the client sees the certificate that the server has
	startup    startupMessage
	backend    uint32
	known      func()            // ends that requests to cancel know the session; nil: they do not
	parameters map[string]string // as the server reported them
	cut        bool              // the client's connection broke while the server was still sending

	interrupted <-chan struct{} // closed when the end of ctx has interrupted the session
}

// Serve implements proxy.Handler.
func (h *Handler) Serve(ctx context.Context, p *proxy.Session) error {
	s := h.session(ctx, p)
	defer s.interruptible()()
	err := s.run()
	if s.known != nil {
		s.known()
	}
	s.closeTLS()
	if s.server != nil {
		err = errors.Join(err, s.hangUp())
	}
	return s.verdict(err)
}

// Refuse implements proxy.Handler.
func (h *Handler) Refuse(ctx context.Context, p *proxy.Session) error {
	s := h.session(ctx, p)
	defer s.interruptible()()
	err := s.refuse(&pgproto3.ErrorResponse{
		Code:    "53300",
		Message: "sorry, too many clients already",
		Detail:  fmt.Sprintf("wirecheck serves at most %d sessions on this listener.", p.Config.Limits.Sessions),
	})
	s.closeTLS()
	return s.verdict(err)
}

func (h *Handler) session(ctx context.Context, p *proxy.Session) *session {
	s := &session{Session: p, ctx: ctx, relays: &h.relays, cancels: h.cancels, client: p.Client, parameters: make(map[string]string)}
	if p.Config.Mode.Observes() {
		s.observer = h.observer
	}
	return s
}

// closeTLS says the end of TLS to the client, as the server does whenever a session ends (socket_close, src/backend/libpq/pqcomm.c).
func (s *session) closeTLS() {
	if s.clientTLS != nil && !s.cut && s.ctx.Err() == nil { // else the client does not read, or must not be waited for
		_ = s.clientTLS.CloseWrite() // the client may be gone
	}
}

// hangUp closes the server's connection, from which the server learns that the client is gone, as it would without us.
func (s *session) hangUp() error {
	if t, ok := s.server.(*tls.Conn); ok && s.cut {
		_ = t.NetConn().Close() // the server may not read any more, and TLS would wait for it to take an alert
	}
	return ignoreClosed(s.server.Close())
}

// interruptible makes the end of ctx interrupt the session. The caller calls stop when the session has ended.
func (s *session) interruptible() (stop func() bool) {
	interrupted := make(chan struct{})
	s.interrupted = interrupted
	return context.AfterFunc(s.ctx, func() {
		s.interrupt()
		close(interrupted)
	})
}

// interrupt makes every wait on a connection end.
func (s *session) interrupt() {
	_ = s.Client.SetDeadline(past) // a connection that is closed already needs no deadline
}

var past = time.Unix(1, 0)

// verdict leaves of an error what is worth a warning: a client that leaves is none, nor is the end of the process.
func (s *session) verdict(err error) error {
	if err == nil || s.ctx.Err() != nil {
		return nil
	}
	var e *sideError
	if errors.As(err, &e) && e.side == client && errors.Is(e.err, io.EOF) {
		return nil
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *session) run() error {
	if err := s.Client.SetDeadline(time.Now().Add(s.Config.Timeouts.Startup)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	ready, err := s.begin()
	if err != nil || !ready {
		return err
	}
	return s.relay()
}

// relay is the life of the session after authentication.
func (s *session) relay() error {
	s.LoggedIn()
	if err := s.Client.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	if s.ctx.Err() != nil { // the deadline of interrupt may just have been taken away
		return s.ctx.Err()
	}
	stop := context.AfterFunc(s.ctx, func() { _ = s.server.SetDeadline(past) })
	defer stop()
	if !s.observed() {
		return s.pass()
	}
	return s.observe()
}

// observed reports whether the session's statements are looked at.
func (s *session) observed() bool {
	return s.observer != nil && s.Observed() && !s.startup.replication()
}

// join copies bytes both ways until one side ends. It is for what is not understood: TLS that does not end here, GSSAPI
// encryption, protocols other than 3.
func (s *session) join() error {
	s.LoggedIn()
	for _, c := range []net.Conn{s.Client, s.server} {
		if err := c.SetDeadline(time.Time{}); err != nil {
			return fmt.Errorf("set deadline: %w", err)
		}
	}
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	stop := context.AfterFunc(s.ctx, func() { _ = s.server.SetDeadline(past) })
	defer stop()
	var g errgroup.Group
	g.Go(func() error {
		_, err := io.Copy(s.server, s.client)
		return s.clientEnded(err)
	})
	g.Go(func() error {
		_, err := io.Copy(s.client, s.server)
		return s.serverEnded(err)
	})
	return g.Wait()
}

// clientEnded passes on that the client sends no more. A client that merely closed its sending half still gets its
// answers, and the server notices the end as it would without us.
func (s *session) clientEnded(err error) error {
	if err == nil {
		type half interface{ CloseWrite() error }
		if c, ok := s.server.(half); ok && c.CloseWrite() == nil {
			if c, ok := relay.Below(s.server).(half); ok { // the end of TLS alone is no end for client_connection_check_interval
				_ = c.CloseWrite() // a socket that has ended needs it no more
			}
			return nil
		}
	}
	_ = s.server.SetDeadline(past)                             // wakes the other direction if it reads the server,
	_ = s.Client.SetWriteDeadline(time.Now().Add(lastMessage)) // or soon if it writes to a client that does not read
	return quiet(err)
}

// serverEnded ends the session, as the end of a server's connection does. It is also for a client that does not take its answers any more.
func (s *session) serverEnded(err error) error {
	var e *sideError
	s.cut = errors.As(err, &e) && e.side == client
	_ = s.Client.SetReadDeadline(past)  // wakes the other direction if it reads the client,
	_ = s.server.SetWriteDeadline(past) // or if it writes to a server that does not read, since its answers are not read either
	return quiet(err)
}

// quiet drops the error of a wait that was ended on purpose.
func quiet(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// fatal sends the client the error that ends the session. It is best effort: the client may be gone.
func (s *session) fatal(e *pgproto3.ErrorResponse) {
	e.Severity, e.SeverityUnlocalized = "FATAL", "FATAL"
	if s.ctx.Err() != nil {
		<-s.interrupted // or its deadline would replace ours
	}
	raw, to := s.Client, s.client
	if s.relayedClient != nil {
		raw, to = s.relayedClient, s.relayedClient
	}
	if err := raw.SetDeadline(time.Now().Add(lastMessage)); err != nil {
		return
	}
	text, err := e.Encode(nil)
	if err != nil { // it is too long, so it is not ours
		return
	}
	if s.toClient == nil {
		_, _ = to.Write(text)
		return
	}
	if _, err := s.toClient.Write(text); err == nil {
		_ = s.toClient.flush()
	}
}

// brokenHere is the error for a client whose session met a defect of wirecheck where it cannot go on.
func brokenHere(e *proxy.PanicError) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Code: "XX000", Message: fmt.Sprintf("wirecheck cannot go on with this session: %v", e)}
}

// shuttingDown is the error that ends an idle session when the process ends, as a server sends it that is shut down (ProcessInterrupts,
// src/backend/tcop/postgres.c).
func shuttingDown() *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Code: "57P01", Message: "terminating connection because wirecheck is shutting down"}
}

package mysqlwire

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"
	"golang.org/x/sync/errgroup"

	"wirecheck/proxy"
)

// Handler serves the MySQL protocol on a listener of package proxy.
type Handler struct {
	observer *Observer // nil: pass mode only
}

var _ proxy.Handler = (*Handler)(nil)

// New makes a Handler. Without an observer sessions are only passed through.
func New(o *Observer) *Handler { return &Handler{o} }

// Refuse tells a client that there are too many.
func (h *Handler) Refuse(_ context.Context, s *proxy.Session) error {
	refuse(s.Client, errPacket{mysql.ER_CON_COUNT_ERROR, "08004", "Too many connections"})
	return nil
}

// Serve relays one client's session to a server connection of its own and returns when it is over.
func (h *Handler) Serve(ctx context.Context, ps *proxy.Session) error {
	up, err := ps.Dial(ctx)
	if err != nil {
		refuse(ps.Client, errorUnreachable(err.Error()))
		return err
	}
	defer up.Close()
	stop := context.AfterFunc(ctx, func() {
		ps.Client.Close()
		up.Close()
	})
	defer stop()
	o := h.observer
	if !ps.Config.Mode.Observes() {
		o = nil
	}
	if o == nil && !ps.Tapped() && !endsTLS(ps.Config) {
		return join(ps.Client, up, nil, nil)
	}
	return newSession(ps, o, up).serve(ctx)
}

// endsTLS reports whether a session in pass mode ends the client's TLS. Otherwise TLS passes end to end.
func endsTLS(c *proxy.Config) bool {
	return c.ClientTLS.Configured() || c.UpstreamTLS.Mode == proxy.Require || c.UpstreamTLS.Mode == proxy.Plain
}

// refuse tells the client why there is no session, in place of the greeting. The client may be gone already; there is
// nobody to tell that to.
func refuse(client net.Conn, e errPacket) {
	c := newConn(client)
	if err := c.put(0, e.encode(false)); err == nil {
		_ = c.send()
	}
}

// join copies both ways until both sides have said all. fromClient and fromServer were read before. A side that ends is
// ended towards the other one, as the kernel does on a direct connection: a client may still read its last answer.
func join(client, up net.Conn, fromClient, fromServer []byte) error {
	if _, err := up.Write(fromClient); err != nil {
		return gone(err)
	}
	if _, err := client.Write(fromServer); err != nil {
		return gone(err)
	}
	var g errgroup.Group
	g.Go(func() error { return pump(up, client) })
	err := pump(client, up)
	// The server has said all, or the client cannot hear it: nothing is left to wait for.
	client.Close()
	up.Close()
	return errors.Join(gone(err), gone(g.Wait()))
}

// pump copies one way. TCP connections are spliced in the kernel.
func pump(dst, src net.Conn) error {
	_, err := io.Copy(dst, src)
	if w, ok := dst.(interface{ CloseWrite() error }); ok && err == nil {
		return w.CloseWrite()
	}
	if err == nil {
		return dst.Close()
	}
	dst.Close()
	src.Close()
	return err
}

// gone turns the errors that mean no more than that somebody left into nil.
func gone(err error) error {
	var ne *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &ne):
		return nil
	}
	return err
}

// drainer tells a session's wait for the client's next command that it should end.
func (s *session) drainer() (stop func()) {
	if s.ps.Draining == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.ps.Draining:
			if err := s.client.poke(); err != nil {
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

package mysqlwire

import (
	"context"
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/proxy"
	"wirecheck/proxy/relay"
)

// Handler serves the MySQL protocol on a listener of package proxy.
type Handler struct {
	observer *Observer // nil: pass mode only
	relays   relay.Relay
}

var _ proxy.Handler = (*Handler)(nil)

// New makes a Handler. Without an observer it only passes sessions through.
func New(o *Observer) *Handler { return &Handler{observer: o} }

// Refuse sends a client the error that there are too many.
func (h *Handler) Refuse(_ context.Context, s *proxy.Session) error {
	refuse(s.Client, &history.ServerError{Code: utoa(mysql.ER_CON_COUNT_ERROR), SQLState: "08004", Message: "Too many connections"})
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
		return h.join(ctx, ps, ps.Client, up, nil, nil)
	}
	s := newSession(ps, o, up)
	s.join = h.join
	return s.serve(ctx)
}

// endsTLS reports whether a session in pass mode ends the client's TLS. Otherwise TLS passes end to end.
func endsTLS(c *proxy.Config) bool {
	return c.ClientTLS.Configured() || c.UpstreamTLS.Mode == proxy.Require || c.UpstreamTLS.Mode == proxy.Plain
}

// refuse sends the client the reason why there is no session, in place of the greeting. The client may be gone already.
func refuse(client net.Conn, e *history.ServerError) {
	c := newConn(client)
	if err := c.put(0, encodeERR(e, false)); err == nil {
		_ = c.send()
	}
}

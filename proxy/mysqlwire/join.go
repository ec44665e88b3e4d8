package mysqlwire

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/proxy"
	"wirecheck/proxy/relay"
	"wirecheck/rewrite"
)

// join copies both ways until both sides have ended. fromClient and fromServer were read before. When one side ends, join
// ends the same direction towards the other one, as the kernel does on a direct connection: a client may still read its
// last answer, for which it has the grace time. What is not understood counts as logged in when the client has answered.
// A relay does so if both connections are plain sockets.
func (h *Handler) join(ctx context.Context, ps *proxy.Session, client, up net.Conn, fromClient, fromServer []byte) error {
	watched := &joined{ps: ps}
	if h.observer != nil && !ps.Observed() {
		watched.schema = &schemaWatch{changed: func() { h.observer.catalogs.changed(&rewrite.Plan{}) }}
	}
	end, ok := h.relays.Run(ctx, relay.Pair{
		Client: client, Server: up, FromClient: fromClient, FromServer: fromServer,
		Watcher: watched, ToClient: ps.Config.Timeouts.Grace,
	})
	if ok {
		return relayed(end)
	}
	var g errgroup.Group
	g.Go(func() error {
		reading, writing := pump(up, client, fromClient, 0, watched.request)
		if reading != nil || isTimeout(writing) { // the client is gone; else the server is, and may have said why
			hangUp(client)
			hangUp(up)
		}
		return unlessClosed(errors.Join(reading, writing))
	})
	reading, writing := pump(client, up, fromServer, ps.Config.Timeouts.Grace, watched.Answer)
	if writing != nil { // the client takes nothing any more
		hangUp(client)
		hangUp(up)
	}
	if errors.Is(reading, syscall.ECONNRESET) {
		resetAtClose(client)
	}
	hangUp(client)
	hangUp(up)
	return errors.Join(unlessClosed(errors.Join(reading, writing)), g.Wait())
}

// relayed ends a session that a relay has served.
func relayed(end relay.End) error {
	if end.Client != nil {
		switch {
		case end.Cause != relay.ServerEnded:
		case end.Err == nil:
			_ = closeWrite(end.Client) // the client may be gone
		case errors.Is(end.Err, syscall.ECONNRESET):
			resetAtClose(end.Client)
		}
		hangUp(end.Client)
	}
	if end.Cause == relay.Broke {
		return end.Err
	}
	return nil // the peers closed their connections
}

// joined is a session whose bytes are copied.
type joined struct {
	ps              *proxy.Session
	heard, answered bool
	schema          *schemaWatch // nil: no session relies on what this one does
}

// Request implements relay.Watcher.
func (j *joined) Request(b []byte) error {
	j.request(b)
	return nil
}

func (j *joined) request(b []byte) {
	if !j.heard {
		j.heard = true
		j.ps.LoggedIn()
	}
	if j.schema != nil {
		j.schema.request(b)
	}
}

// Answer implements relay.Watcher.
func (j *joined) Answer([]byte) {
	if !j.answered {
		j.answered = true
		j.ps.AwaitsClient(true)
	}
	if j.schema != nil {
		j.schema.answer()
	}
}

// Leave implements relay.Watcher.
func (j *joined) Leave() bool { return false }

// pump copies one way until src ends, then ends that direction. first was read before. patience is how long a write may take
// after src has ended; saw gets what src has sent, before dst does.
//
// It does not use io.Copy, which splices TCP connections through a pipe: that takes two descriptors for each direction of a
// session, and Go keeps the pipes for minutes after the session's end.
func pump(dst, src net.Conn, first []byte, patience time.Duration, saw func([]byte)) (reading, writing error) {
	guard := newStallGuard(dst, src, patience)
	if len(first) > 0 {
		saw(first)
		if err := guard.write(dst, first); err != nil {
			return nil, err
		}
	}
	r := newByteReader(src)
	defer r.release()
	for {
		b, err := r.next()
		if len(b) > 0 {
			saw(b)
			if err := guard.write(dst, b); err != nil {
				return nil, err
			}
		}
		switch {
		case err == io.EOF:
			return nil, closeWrite(relay.Below(dst))
		case err != nil:
			return err, nil
		}
	}
}

// closeWrite ends the sending half of a connection, and all of one that has no halves.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// resetAtClose makes closing a connection a reset, as the server ended its side: MariaDB does so after wait_timeout.
func resetAtClose(c net.Conn) {
	if tcp, ok := relay.Below(c).(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a connection that is closed already ends as it did
	}
}

// hangUp closes a connection at once, without the alert of TLS: the servers send none either (MariaDB 10.11 and MySQL 9.7,
// vio_ssl_close), and TLS would first wait for the peer to take it.
func hangUp(c net.Conn) { relay.Below(c).Close() }

// unlessClosed turns the errors that mean no more than that a peer closed its connection into nil.
func unlessClosed(err error) error {
	var ne *net.OpError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &ne):
		return nil
	}
	return err
}

package live

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"wirecheck/backends/engine"
	"wirecheck/proxy"
	"wirecheck/rewrite"
)

// Proxy is an observing proxy in this process, in front of one server.
type Proxy struct {
	Checker *Checker
	port    int
	close   func() error
}

// Open starts the proxy. It adds the hidden columns to tables that a client creates through it, where the product needs them. It
// writes the history to a writer, which stays open; nil: it writes none.
func Open(ctx context.Context, log zerolog.Logger, d engine.Descriptor, server engine.Target, to io.Writer) (*Proxy, error) {
	log = log.Level(zerolog.ErrorLevel)
	o := Options{Log: log, Now: time.Now(), Whole: true}
	if to != nil {
		o.Record = unclosed{to}
	}
	l, err := New(o)
	if err != nil {
		return nil, err
	}
	protocol := proxy.Postgres
	if d.Protocol == engine.ProtocolMySQL {
		protocol = proxy.MySQL
	}
	network, address := server.Address()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p, err := proxy.Listen(ctx, log, func(pc proxy.Config) (proxy.Handler, error) {
		return l.Handler(pc, Observation{Capture: rewrite.CaptureAuto, AllTables: true, images: true})
	}, proxy.Config{
		Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}, Protocol: protocol, Mode: proxy.Observe,
		Upstream: proxy.Address{Network: network, Addr: address},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	var g errgroup.Group
	g.Go(func() error { return p.Serve(ctx) })
	return &Proxy{Checker: l, port: p.Addrs()[0].(*net.TCPAddr).Port, close: func() error {
		cancel()
		err := g.Wait()
		_, e := l.Finish()
		return errors.Join(err, e)
	}}, nil
}

// Close ends the proxy and the checker.
func (l *Proxy) Close() error { return l.close() }

// unclosed is a writer that its owner closes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// Through gives the address of a target through the proxy.
func (l *Proxy) Through(t engine.Target) engine.Target {
	t.Host, t.Port, t.Socket = "127.0.0.1", l.port, ""
	return t
}

package main

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
	"wirecheck/proxy/mysqlwire"
	"wirecheck/rewrite"
)

// lens is an observing proxy in this process, in front of one server.
type lens struct {
	live  *live
	port  int
	close func() error
}

// openLens starts the proxy. Tables that are created through it get the hidden columns where the product needs them. The history is
// written to record, if there is one, which stays open.
func openLens(ctx context.Context, log zerolog.Logger, d engine.Descriptor, server engine.Target, to io.Writer) (*lens, error) {
	log = log.Level(zerolog.ErrorLevel)
	o := liveOptions{Log: log, Now: time.Now()}
	if to != nil {
		o.Record = unclosed{to}
	}
	l, err := newLive(o)
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
		return l.handler(pc, observation{capture: rewrite.CaptureAuto, instrument: mysqlwire.InstrumentAuto})
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
	return &lens{live: l, port: p.Addrs()[0].(*net.TCPAddr).Port, close: func() error {
		cancel()
		err := g.Wait()
		_, e := l.finish()
		return errors.Join(err, e)
	}}, nil
}

// Close ends the proxy and the checker.
func (l *lens) Close() error { return l.close() }

// unclosed is a writer that its owner closes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// through is the target as it is reached through the proxy.
func (l *lens) through(t engine.Target) engine.Target {
	t.Host, t.Port, t.Socket = "127.0.0.1", l.port, ""
	return t
}

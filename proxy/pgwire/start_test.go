package pgwire_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/pgwire"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// running is a proxy that serves in the background until its test ends.
type running struct {
	addr *net.TCPAddr
	stop func()
	done chan error
}

// start starts a proxy with one listener.
func start(t testing.TB, c proxy.Config, o *pgwire.Observer) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.Protocol = proxy.Postgres
	if c.Listen.Addr == "" {
		c.Listen = proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}
	}
	if c.Timeouts.Grace == 0 {
		c.Timeouts.Grace = 2 * time.Second
	}
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	p, err := proxy.Listen(ctx, log, func(proxy.Config) (proxy.Handler, error) { return pgwire.New(o), nil }, c)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	r := &running{done: make(chan error, 1)}
	r.addr, _ = p.Addrs()[0].(*net.TCPAddr)
	go func() { r.done <- p.Serve(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-r.done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("the proxy does not end")
		}
		leaks(t)
	}
	t.Cleanup(r.stop)
	return r
}

// leaks fails if a goroutine of a session still runs, although all proxies ended. A goroutine that is about to end after
// it has said so is waited for.
func leaks(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for limit := time.Now().Add(patience); ; {
		stacks := string(buf[:runtime.Stack(buf, true)])
		var found []string
		for _, g := range strings.Split(stacks, "\n\n") {
			if strings.Contains(g, "wirecheck/proxy/pgwire.(") || strings.Contains(g, "wirecheck/proxy.(*Proxy).session") {
				found = append(found, g)
			}
		}
		switch {
		case len(found) == 0:
			return
		case time.Now().After(limit):
			t.Errorf("%d goroutines leaked:\n%s", len(found), strings.Join(found, "\n\n"))
			return
		}
		time.Sleep(5 * time.Millisecond) // there is no event for the end of a goroutine
	}
}

// upstream is the address of a test server.
func upstream(s *testserver.Server) proxy.Address {
	return proxy.Address{Network: "tcp", Addr: s.Address()}
}

// through is the database as it is reached through the proxy.
func (r *running) through(d testserver.Database) testserver.Database {
	return d.At("127.0.0.1", r.addr.Port)
}

// TestFirstMessages sends beginnings of odd lengths, and compares the answers with the server's own.
func TestFirstMessages(t *testing.T) {
	srv := testserver.Postgres(t)
	addrs := []string{srv.Address(), start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Pass}, nil).addr.String(), start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{})).addr.String()}
	message := func(length, n int) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(length))) + string(binary.BigEndian.AppendUint32(nil, 3<<16)) + strings.Repeat("a", n)
	}
	for _, text := range []string{message(3, 0)[:4], message(7, 0)[:4], message(1<<30, 0)[:4], message(-1, 0)[:4], "GET / HTTP/1.0\r\n\r\n", message(10_001, 9_993), message(10_004, 9_996), message(10_005, 0)[:4], message(9, 1)} {
		var want string
		for i, addr := range addrs {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			_, _ = io.WriteString(c, text)
			got, err := io.ReadAll(c)
			if err != nil && !errors.Is(err, syscall.ECONNRESET) { // it may not have read all that was sent
				t.Errorf("%.20q at %s: %v", text, addr, err)
			}
			if c.Close(); i == 0 {
				want = string(got)
			} else if string(got) != want {
				t.Errorf("%.20q: %q, want %q", text, got, want)
			}
		}
	}
}

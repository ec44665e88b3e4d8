package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/proxy"
)

// echo is a protocol that says everything back, and leaves when it is told to.
type echo struct{ fail error }

func (e echo) Serve(ctx context.Context, s *proxy.Session) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Client.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if e.fail != nil {
		return e.fail
	}
	_, err := io.Copy(s.Client, s.Client)
	return err
}

func (echo) Refuse(_ context.Context, s *proxy.Session) error {
	_, err := io.WriteString(s.Client, "full")
	return err
}

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]proxy.Address{
		"127.0.0.1:5432":        {Network: "tcp", Addr: "127.0.0.1:5432"},
		":5432":                 {Network: "tcp", Addr: ":5432"},
		"[::1]:5432":            {Network: "tcp", Addr: "[::1]:5432"},
		"/run/pg/.s.PGSQL.5432": {Network: "unix", Addr: "/run/pg/.s.PGSQL.5432"},
		"unix:/run/x":           {Network: "unix", Addr: "/run/x"},
		"unix:x":                {Network: "unix", Addr: "./x"},
	} {
		got, err := proxy.ParseAddress(in)
		if err != nil || got != want {
			t.Errorf("ParseAddress(%q) = %v, %v; want %v", in, got, err, want)
		}
		if again, err := proxy.ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("ParseAddress(%q) = %v, %v; want %v", got.String(), again, err, got)
		}
	}
	for _, in := range []string{"", "localhost", "a:b:c"} {
		if got, err := proxy.ParseAddress(in); err == nil {
			t.Errorf("ParseAddress(%q) = %v, want an error", in, got)
		}
	}
}

// TestSocketForAll lets every account of the machine connect to a Unix socket, as the servers do.
func TestSocketForAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	p, err := proxy.Listen(t.Context(), zerolog.Nop(), func(proxy.Config) (proxy.Handler, error) { return echo{}, nil },
		proxy.Config{Listen: proxy.Address{Network: "unix", Addr: path}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the socket has mode %v, %v; want 0777", info.Mode().Perm(), err)
	}
}

func TestServe(t *testing.T) {
	local := proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handler := func(c proxy.Config) (proxy.Handler, error) {
		if c.Name == "failing" {
			return echo{errors.New("nothing works")}, nil
		}
		return echo{}, nil
	}
	p, err := proxy.Listen(ctx, zerolog.Nop(), handler,
		proxy.Config{Listen: local, Timeouts: proxy.Timeouts{Grace: 50 * time.Millisecond}, Limits: proxy.Limits{Sessions: 1}},
		proxy.Config{Listen: local, Name: "failing"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx) }()

	first := dial(t, p.Addrs()[0])
	if got := talk(t, first, "hello"); got != "hello" {
		t.Errorf("echo said %q", got)
	}
	if got, err := io.ReadAll(dial(t, p.Addrs()[0])); err != nil || string(got) != "full" {
		t.Errorf("second client: %q, %v; want to be refused", got, err)
	}
	// A session that fails harms no other.
	if got, err := io.ReadAll(dial(t, p.Addrs()[1])); err != nil || len(got) > 0 {
		t.Errorf("failing listener: %q, %v; want the end", got, err)
	}
	if got := talk(t, first, "again"); got != "again" {
		t.Errorf("echo said %q", got)
	}
	cancel()
	if got, err := io.ReadAll(first); err != nil || len(got) > 0 { // it is open until the grace time is over
		t.Errorf("at the end: %q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if c, err := net.Dial("tcp", p.Addrs()[0].String()); err == nil {
		t.Error("the listener is still open")
		_ = c.Close()
	}
}

func TestListenErrors(t *testing.T) {
	for want, c := range map[string]proxy.Config{
		"certificate and key":  {ClientTLS: proxy.ClientTLS{Cert: "x"}},
		"no such file":         {ClientTLS: proxy.ClientTLS{Cert: "/nothere", Key: "/nothere"}},
		"unknown mode":         {UpstreamTLS: proxy.UpstreamTLS{Mode: "sometimes"}},
		"unknown verification": {UpstreamTLS: proxy.UpstreamTLS{Verify: "maybe"}},
		"needs a server name":  {Upstream: proxy.Address{Network: "unix", Addr: "/x"}, UpstreamTLS: proxy.UpstreamTLS{Verify: proxy.VerifyFull}},
		"cannot assign":        {Listen: proxy.Address{Network: "tcp", Addr: "192.0.2.1:1"}},
	} {
		if c.Listen.Network == "" {
			c.Listen = proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}
		}
		p, err := proxy.Listen(t.Context(), zerolog.Nop(), func(proxy.Config) (proxy.Handler, error) { return echo{}, nil }, c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Listen(%+v): %v; want %q", c, err, want)
		}
		if p != nil {
			t.Errorf("Listen(%+v) gave a proxy", c)
		}
	}
}

func dial(t *testing.T, a net.Addr) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", a.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(3 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

func talk(t *testing.T, c net.Conn, s string) string {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(s))
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

package relay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"wirecheck/proxy"
	"wirecheck/proxy/relay"
)

// watcher is a relay.Watcher made of functions; nil ones let everything pass.
type watcher struct {
	request func([]byte) error
	answer  func([]byte)
	leave   func() bool
}

func (w watcher) Request(b []byte) error {
	if w.request == nil {
		return nil
	}
	return w.request(b)
}

func (w watcher) Answer(b []byte) {
	if w.answer != nil {
		w.answer(b)
	}
}

func (w watcher) Leave() bool { return w.leave != nil && w.leave() }

// patience is how long a test waits that hangs.
const patience = 3 * time.Minute

// sockets gives the two ends of a connection.
func sockets(t testing.TB, network string) (a, b net.Conn) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		dir, err := os.MkdirTemp("", "relay")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		addr = dir + "/s"
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial(network, l.Addr().String()); err == nil {
		b, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// running is a pair that a relay runs.
type running struct {
	t              testing.TB
	client, server net.Conn // as the client and the server hold them
	cancel         context.CancelFunc
	ended          chan relay.End
}

func start(t testing.TB, r *relay.Relay, p relay.Pair) *running {
	t.Helper()
	return startOver(t, r, "tcp", p)
}

func startOver(t testing.TB, r *relay.Relay, network string, p relay.Pair) *running {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("there is no loop")
	}
	one := &running{t: t, ended: make(chan relay.End, 1)}
	one.client, p.Client = sockets(t, network)
	one.server, p.Server = sockets(t, network)
	if p.Watcher == nil {
		p.Watcher = watcher{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	one.cancel = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		end, ok := r.Run(ctx, p)
		if !ok {
			t.Error("the pair was refused")
		}
		one.ended <- end
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return one
}

// end waits for the end of the pair and closes the client's connection.
func (r *running) end() relay.End {
	r.t.Helper()
	select {
	case e := <-r.ended:
		if e.Client != nil {
			e.Client.Close()
		}
		return e
	case <-time.After(patience):
		r.t.Fatal("the pair does not end")
	}
	panic("not reached")
}

func say(t testing.TB, to net.Conn, text string) {
	t.Helper()
	if _, err := to.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func hear(t testing.TB, from net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(from, b); err != nil || string(b) != want {
		t.Fatalf("got %q, %v; want %q", b, err, want)
	}
}

// hearEnd wants nothing but the end of the connection.
func hearEnd(t testing.TB, from net.Conn) {
	t.Helper()
	if n, err := from.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Fatalf("got %d bytes, %v; want the end", n, err)
	}
}

// fill sends until no more fits, and gives what was sent. A busy machine may leave the relay without a processor for one of its waits, or two.
func fill(t testing.TB, to net.Conn) (sent int) {
	t.Helper()
	b := bytes.Repeat([]byte("x"), 1<<16)
	for full := 0; full < 4; {
		if err := to.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := to.Write(b)
		sent += n
		if full++; n > 0 {
			full = 0
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if sent > 100<<20 {
			t.Fatal("a connection whose end is not read takes 100 MiB")
		}
	}
	return sent
}

func reset(t testing.TB, c net.Conn) {
	t.Helper()
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestEnds(t *testing.T) {
	var r relay.Relay
	t.Run("first bytes, and the server's end", func(t *testing.T) {
		one := start(t, &r, relay.Pair{FromClient: []byte("ask"), FromServer: []byte("hello")})
		hear(t, one.server, "ask")
		hear(t, one.client, "hello")
		say(t, one.server, "bye")
		one.server.Close()
		hear(t, one.client, "bye")
		if e := one.end(); e.Cause != relay.ServerEnded || e.Err != nil || len(e.Unsent) > 0 {
			t.Errorf("%+v", e)
		}
		hearEnd(t, one.client)
	})
	t.Run("the client ends its sending half", func(t *testing.T) {
		one := start(t, &r, relay.Pair{})
		say(t, one.client, "last")
		if err := one.client.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		hear(t, one.server, "last")
		hearEnd(t, one.server)
		say(t, one.server, "answer")
		hear(t, one.client, "answer")
		one.server.Close()
		if e := one.end(); e.Cause != relay.ServerEnded {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the client's reset", func(t *testing.T) {
		one := start(t, &r, relay.Pair{})
		reset(t, one.client)
		if e := one.end(); e.Cause != relay.ClientBroke || e.Writing || !errors.Is(e.Err, syscall.ECONNRESET) {
			t.Errorf("%+v", e)
		}
		hearEnd(t, one.server)
	})
	t.Run("the client goes while it is sent something", func(t *testing.T) {
		one := start(t, &r, relay.Pair{})
		fill(t, one.server)
		one.client.Close()
		if e := one.end(); e.Cause != relay.ClientBroke || !e.Writing {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the server's reset", func(t *testing.T) {
		one := start(t, &r, relay.Pair{})
		reset(t, one.server)
		if e := one.end(); e.Cause != relay.ServerEnded || !errors.Is(e.Err, syscall.ECONNRESET) {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the server goes while it is sent something", func(t *testing.T) {
		one := start(t, &r, relay.Pair{})
		say(t, one.server, "why")
		hear(t, one.client, "why")
		fill(t, one.client)
		one.server.Close()
		if e := one.end(); e.Cause != relay.ServerEnded || len(e.Unsent) > 0 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("the context, with bytes that were not taken", func(t *testing.T) {
		one := start(t, &r, relay.Pair{ToClient: -1})
		sent := fill(t, one.server)
		one.cancel()
		e := <-one.ended
		if e.Cause != relay.Stopped || len(e.Unsent) == 0 || e.Client == nil {
			t.Fatalf("%v, %d bytes unsent", e.Cause, len(e.Unsent))
		}
		go func() {
			e.Client.Write(e.Unsent)
			e.Client.Close()
		}()
		n, err := io.Copy(io.Discard, one.client)
		if err != nil || n == 0 || n > int64(sent) {
			t.Errorf("got %d bytes of %d, %v", n, sent, err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		no := errors.New("no")
		one := start(t, &r, relay.Pair{Watcher: watcher{request: func(b []byte) error {
			if bytes.Contains(b, []byte("bad")) {
				return no
			}
			return nil
		}}})
		say(t, one.client, "good")
		hear(t, one.server, "good")
		say(t, one.client, "bad")
		if e := one.end(); e.Cause != relay.Refused || e.Err != no {
			t.Errorf("%+v", e)
		}
		hearEnd(t, one.server)
	})
	t.Run("a write waits while its source has ended", func(t *testing.T) {
		one := start(t, &r, relay.Pair{})
		fill(t, one.client)
		reset(t, one.client)
		if e := one.end(); e.Cause != relay.Stalled {
			t.Errorf("%+v", e)
		}
	})
	t.Run("drained", func(t *testing.T) {
		draining := make(chan struct{})
		idle := false // of the loop's goroutine
		one := start(t, &r, relay.Pair{Draining: draining, Watcher: watcher{
			answer: func(b []byte) { idle = bytes.HasSuffix(b, []byte("idle")) },
			leave:  func() bool { return idle },
		}})
		say(t, one.server, "idle")
		hear(t, one.client, "idle")
		say(t, one.server, "busy")
		hear(t, one.client, "busy")
		close(draining)
		say(t, one.client, "go on")
		hear(t, one.server, "go on")
		say(t, one.server, "now idle")
		hear(t, one.client, "now idle")
		if e := one.end(); e.Cause != relay.Left {
			t.Errorf("%+v", e)
		}
		draining = make(chan struct{})
		two := start(t, &r, relay.Pair{Draining: draining, Watcher: watcher{leave: func() bool { return true }}})
		close(draining) // without any byte
		if e := two.end(); e.Cause != relay.Left {
			t.Errorf("%+v", e)
		}
	})
}

// TestPanic lets the watcher of one pair panic. The other pair of the same loop goes on.
func TestPanic(t *testing.T) {
	var r relay.Relay
	other := start(t, &r, relay.Pair{})
	for name, w := range map[string]watcher{
		"request": {request: func([]byte) error { panic("no") }},
		"answer":  {answer: func([]byte) { panic("no") }},
		"leave":   {leave: func() bool { panic("no") }},
	} {
		draining := make(chan struct{})
		one := start(t, &r, relay.Pair{Watcher: w, Draining: draining})
		close(draining)
		say(t, one.client, "a")
		say(t, one.server, "b")
		e := one.end()
		var defect *proxy.PanicError
		if e.Cause != relay.Broke || !errors.As(e.Err, &defect) || len(defect.Stack) == 0 {
			t.Errorf("%s: %+v", name, e)
		}
		say(t, other.client, "still")
		hear(t, other.server, "still")
	}
}

// TestStalledPairs lets many clients and servers not read. A pair beside them is as quick as before, and little is held.
func TestStalledPairs(t *testing.T) {
	var r relay.Relay
	var filling sync.WaitGroup
	for i := range 20 {
		one := start(t, &r, relay.Pair{ToServer: -1, ToClient: -1})
		filling.Go(func() {
			if i%2 == 0 {
				fill(t, one.server)
			} else {
				fill(t, one.client)
			}
		})
	}
	filling.Wait()
	one := start(t, &r, relay.Pair{})
	for range 1000 {
		say(t, one.client, "ping")
		hear(t, one.server, "ping")
		say(t, one.server, "pong")
		hear(t, one.client, "pong")
	}
}

// TestNothingIsLeft runs pairs at a time and counts descriptors and goroutines behind them.
func TestNothingIsLeft(t *testing.T) {
	count := func() (descriptors, goroutines int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(list), runtime.NumGoroutine()
	}
	fds, gos := count()
	t.Run("pairs", func(t *testing.T) {
		var r relay.Relay
		for i := range 100 {
			one := start(t, &r, relay.Pair{})
			say(t, one.client, "a")
			hear(t, one.server, "a")
			switch i % 3 {
			case 0:
				one.client.Close()
				hearEnd(t, one.server)
				one.server.Close()
			case 1:
				one.server.Close()
			case 2:
				one.cancel()
			}
			t.Cleanup(func() { one.end() })
		}
	})
	var f, g int
	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(time.Millisecond) { // the last goroutines may be about to end
		if f, g = count(); f <= fds && g <= gos {
			return
		}
	}
	t.Errorf("%d descriptors and %d goroutines, at first %d and %d", f, g, fds, gos)
}

// TestRandomBytes sends random pieces in both directions at once to readers of random slowness: each side gets what the
// other one sent.
func TestRandomBytes(t *testing.T) {
	var r relay.Relay
	for seed := range uint64(8) {
		network := []string{"tcp", "unix"}[seed%2]
		one := startOver(t, &r, network, relay.Pair{ToServer: -1, ToClient: -1})
		var both sync.WaitGroup
		for i, way := range [][2]net.Conn{{one.client, one.server}, {one.server, one.client}} {
			size := 1 << 20
			sent, got := sha256.New(), sha256.New()
			both.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				for left := size; left > 0; {
					b := make([]byte, min(left, 1+rnd.IntN(1<<(1+rnd.IntN(18)))))
					for k := range b {
						b[k] = byte(rnd.Uint32())
					}
					sent.Write(b)
					if _, err := way[0].Write(b); err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
					left -= len(b)
				}
			})
			both.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)+2))
				for left := size; left > 0; {
					b := make([]byte, min(left, 1+rnd.IntN(1<<(1+rnd.IntN(18)))))
					n, err := way[1].Read(b)
					got.Write(b[:n])
					if left -= n; err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
				}
			})
			defer func() {
				if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
					t.Errorf("seed %d, direction %d: other bytes", seed, i)
				}
			}()
		}
		both.Wait()
	}
}

// TestRefusal gives connections that are no sockets: they stay as they are.
func TestRefusal(t *testing.T) {
	var r relay.Relay
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	c, d := sockets(t, "tcp")
	for _, p := range []relay.Pair{{Client: a, Server: d}, {Client: d, Server: a}} {
		if _, ok := r.Run(t.Context(), p); ok {
			t.Fatal("a pipe was run")
		}
	}
	say(t, c, "a")
	hear(t, d, "a")
}

// BenchmarkRoundTrip is one message and its answer.
func BenchmarkRoundTrip(b *testing.B) {
	var r relay.Relay
	one := start(b, &r, relay.Pair{})
	_ = one.client.SetDeadline(time.Time{})
	_ = one.server.SetDeadline(time.Time{})
	m := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := one.client.Write(m); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(one.server, m); err != nil {
			b.Fatal(err)
		}
		if _, err := one.server.Write(m); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(one.client, m); err != nil {
			b.Fatal(err)
		}
	}
}

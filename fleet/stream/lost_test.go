package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history"
)

// swallower passes bytes on between a client and a NATS server, until the client asks for messages for the first time: then nothing comes to the client any
// more on that connection.
type swallower struct {
	address string
	asks    sync.Once
	asked   chan *swallowed
}

// swallowed is a connection whose client hears nothing.
type swallowed struct {
	client net.Conn
	gate   sync.Mutex
	on     bool
}

// newSwallower makes one in front of the host of a URL, and gives the URL by way of it.
func newSwallower(t *testing.T, where string) (*swallower, string) {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &swallower{address: u.Host, asked: make(chan *swallowed, 1)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			go s.serve(c)
		}
	}()
	u.Host = l.Addr().String()
	return s, u.String()
}

func (s *swallower) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", s.address)
	if err != nil {
		return
	}
	defer server.Close()
	c := &swallowed{client: client}
	go func() {
		defer client.Close()
		_, _ = io.Copy(c, server)
	}()
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if bytes.Contains(buffer[:n], []byte("CONSUMER.MSG.NEXT")) {
			s.asks.Do(func() {
				c.gate.Lock()
				c.on = true
				c.gate.Unlock()
				s.asked <- c
			})
		}
		if err == nil {
			_, err = server.Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// Write is what comes from the server.
func (c *swallowed) Write(data []byte) (int, error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	if c.on {
		return len(data), nil
	}
	return c.client.Write(data)
}

// consumers are those that a stream has.
func consumers(t *testing.T, b *bus.Bus, name string) (list []*jetstream.ConsumerInfo) {
	t.Helper()
	s, err := b.JetStream().Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	all := s.ListConsumers(t.Context())
	for info := range all.Info() {
		list = append(list, info)
	}
	if all.Err() != nil {
		t.Fatal(all.Err())
	}
	return list
}

// cut ends the connection once the server has sent so many messages of a stream into it.
func (s *swallower) cut(t *testing.T, b *bus.Bus, name string, sent uint64) {
	t.Helper()
	limit := time.After(patience)
	select {
	case c := <-s.asked:
		defer c.client.Close()
	case <-limit:
		t.Fatal("nobody asks for messages")
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for { // no event tells
		if list := consumers(t, b, name); len(list) == 1 && list[0].Delivered.Consumer == sent {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the messages were not sent")
		}
	}
}

// TestLost: messages that the server sent into a connection that was lost are read all the same, where no other message follows.
func TestLost(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	for _, tt := range []struct {
		what, stream string
		write        func()
		read         func(ctx context.Context, b *bus.Bus) ([]string, error)
		want         []string
	}{
		{"events", "wirecheck-f", func() {
			p := publisher(t, b, stream.Options{Run: "r"})
			p.Event(&history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres"})
			published(t, p)
			p.Event(&history.Event{Kind: history.EventClose, Session: 1})
			published(t, p)
		}, readEvents, []string{"session", "close"}},
		{"shares", "wirecheck-f-edges", func() {
			if err := shareWriter(t, b, "a", 1).Write(t.Context(), [][]byte{[]byte("x"), []byte("y")}, 5); err != nil {
				t.Fatal(err)
			}
		}, readShares, []string{"x", "y"}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			tt.write()
			s, way := newSwallower(t, b.URL())
			far := openBus(t, way, bus.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var got []string
			end := make(chan error, 1)
			go func() {
				var err error
				got, err = tt.read(ctx, far)
				end <- err
			}()
			s.cut(t, b, tt.stream, 2)
			if err := <-end; err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("read %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

// readEvents gives the kinds of all events.
func readEvents(ctx context.Context, b *bus.Bus) (list []string, err error) {
	c, err := stream.NewCollector(ctx, b, stream.CollectorOptions{
		Fleet: "f", Needed: func() uint64 { return 1 }, Take: func(e *history.Event) { list = append(list, string(e.Kind)) },
	})
	if err == nil {
		err = c.Run(ctx, true)
	}
	return list, err
}

// readShares gives all shares of parts of two.
func readShares(ctx context.Context, b *bus.Bus) (list []string, err error) {
	g, err := stream.NewGathering(ctx, b, "f", stream.Keep{}, 2)
	if err == nil {
		err = g.Read(ctx, true, func(s stream.Share) error {
			list = append(list, string(s.Data))
			return nil
		}, func(context.Context) error { return nil })
	}
	return list, err
}

// TestLeftConsumers: an error that stays leaves no consumers in the server.
func TestLeftConsumers(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	if err := shareWriter(t, b, "a", 1).Write(t.Context(), [][]byte{[]byte("x")}, 5); err != nil {
		t.Fatal(err)
	}
	g, err := stream.NewGathering(t.Context(), b, "f", stream.Keep{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fails := 0
	err = g.Read(ctx, false, func(stream.Share) error { return nil }, func(context.Context) error {
		if list := consumers(t, b, "wirecheck-f-edges"); len(list) != 1 {
			t.Errorf("%d consumers after %d errors", len(list), fails)
		}
		if fails++; fails == 3 {
			cancel()
		}
		return errors.New("it fails")
	})
	if list := consumers(t, b, "wirecheck-f-edges"); err != nil || fails != 3 || len(list) > 0 {
		t.Errorf("%d consumers are left after %d errors: %v", len(list), fails, err)
	}
}

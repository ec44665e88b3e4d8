package relay_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"wirecheck/proxy/relay"
)

// TestBuffersRead reads what is there, what comes later, a timeout and the end, from a plain socket, one that is read past the scheduler, and one of neither kind.
func TestBuffersRead(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"plain": func(c net.Conn) net.Conn { return c }, "past the scheduler": relay.Socket, "another": func(c net.Conn) net.Conn { return struct{ net.Conn }{c} },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := sockets(t, "tcp")
			c, buffers := wrap(near), relay.NewBuffers(100)
			read := func() string {
				p, n, err := buffers.Read(c)
				if err != nil || p == nil || len(*p) != 100 {
					t.Fatalf("got %v, %d, %v", p, n, err)
				}
				defer buffers.Put(p)
				return string((*p)[:n])
			}
			say(t, far, "there")
			if got := read(); got != "there" {
				t.Errorf("got %q", got)
			}
			come := make(chan string)
			go func() { come <- read() }()
			say(t, far, "later")
			if got := <-come; got != "later" {
				t.Errorf("got %q", got)
			}
			say(t, far, string(bytes.Repeat([]byte{'x'}, 130)))
			for got := ""; len(got) < 130; got += read() {
			}
			if err := near.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			if p, n, err := buffers.Read(c); p != nil || n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("behind the deadline: %v, %d, %v", p, n, err)
			}
			if err := errors.Join(near.SetReadDeadline(time.Time{}), far.Close()); err != nil {
				t.Fatal(err)
			}
			if p, n, err := buffers.Read(c); p != nil || n != 0 || err != io.EOF {
				t.Errorf("at the end: %v, %d, %v", p, n, err)
			}
		})
	}
}

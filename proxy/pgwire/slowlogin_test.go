package pgwire_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// withheld forwards connections, but the server's answers only from then on. asked gets each connection's first 8 bytes.
func withheld(t *testing.T, to string, then <-chan struct{}) (addr string, asked <-chan [8]byte) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	requests := make(chan [8]byte, 10)
	forward := func(front, back net.Conn) {
		var first [8]byte
		if _, err := io.ReadFull(front, first[:]); err == nil {
			_, _ = back.Write(first[:])
			requests <- first
			<-then
			go func() {
				_, _ = io.Copy(front, back)
				_ = front.Close()
			}()
			_, _ = io.Copy(back, front)
		}
		_, _ = front.Close(), back.Close()
	}
	go func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				return
			}
			go forward(front, back)
		}
	}()
	return l.Addr().String(), requests
}

// TestLoginAwaitsServer: a client that has asked for TLS and waits for the server keeps its place to log in; one that is silent, and came later, loses it.
func TestLoginAwaitsServer(t *testing.T) {
	answers := make(chan struct{})
	addr, asked := withheld(t, testserver.Postgres(t).Address(), answers)
	r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: addr}, Mode: proxy.Observe, Limits: proxy.Limits{Logins: 2}}, observer(&events{}))
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", r.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	waits := dial()
	if _, err := waits.Write([]byte("\x00\x00\x00\x08\x04\xd2\x16\x2f")); err != nil { // SSLRequest
		t.Fatal(err)
	}
	<-asked
	silent := dial()
	dial() // would have a place
	var b [1]byte
	if _, err := silent.Read(b[:]); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the silent client keeps its place: %v", err)
	}
	close(answers)
	if _, err := waits.Read(b[:]); err != nil || b[0] != 'S' {
		t.Errorf("the client that waits for the server gets %q, %v", b, err)
	}
}

package pgwire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"wirecheck/proxy"
)

// slowServer is a server that takes its time to cancel.
type slowServer struct {
	net.Listener
	came  chan uint32   // the session that each request names
	goOn  chan struct{} // closed when the requests may end
	let   func()        // closes it
	guard sync.WaitGroup
}

const ownSession = 42 // the number of each session of a slowServer

func newSlowServer(t *testing.T) *slowServer {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowServer{Listener: l, came: make(chan uint32, 1000), goOn: make(chan struct{})}
	s.let = sync.OnceFunc(func() { close(s.goOn) })
	s.guard.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.guard.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		s.let()
		l.Close()
		s.guard.Wait()
	})
	return s
}

func (s *slowServer) serve(conn net.Conn) {
	defer conn.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(conn, head); err != nil {
		return
	}
	rest := make([]byte, binary.BigEndian.Uint32(head)-8)
	if _, err := io.ReadFull(conn, rest); err != nil {
		return
	}
	if binary.BigEndian.Uint32(head[4:]) == 80877102 {
		s.came <- binary.BigEndian.Uint32(rest)
		<-s.goOn
		return
	}
	_, _ = conn.Write([]byte("R\x00\x00\x00\x08\x00\x00\x00\x00K\x00\x00\x00\x0c\x00\x00\x00\x2a\x00\x00\x00\x07Z\x00\x00\x00\x05I")) // ownSession, key 7
	_, _ = io.Copy(io.Discard, conn)                                                                                                  // until the client goes
}

func cancelRequest(session uint32) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("\x00\x00\x00\x10\x04\xd2\x16\x2e"), session), 7))
}

// TestCancelMany: requests to cancel hold no place to log in, those for sessions of others have few turns, and neither keeps a client from its own.
func TestCancelMany(t *testing.T) {
	server := newSlowServer(t)
	r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: server.Addr().String()}, Limits: proxy.Limits{Logins: 2}}, nil) // of whom 128 may wait
	dial := func(text string) net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.addr.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	ends := make(chan error, 1000)
	ask := func(session uint32) { // its end is heard in ends
		conn := dial(cancelRequest(session))
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		go func() {
			n, err := io.Copy(io.Discard, conn)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d bytes", n)
			}
			ends <- err
		}()
	}
	comes := func() uint32 {
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		select {
		case session := <-server.came:
			return session
		case <-ctx.Done():
			t.Fatal("no request reaches the server")
			return 0
		}
	}

	const atOnce, waiting, more = 8, 100, 3
	for i := range uint32(atOnce + waiting + more) {
		ask(1000 + i)
	}
	for range atOnce {
		comes()
	}
	for range more { // of too many, some are ended at once
		if err := <-ends; err != nil {
			t.Errorf("one too many: %v", err)
		}
	}
	// A client logs in, which it could not if they held the places.
	own := dial("\x00\x00\x00\x0e\x00\x03\x00\x00user\x00\x00")
	welcome := make([]byte, 28)
	if err := own.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(own, welcome); err != nil || !bytes.HasSuffix(welcome, []byte("Z\x00\x00\x00\x05I")) {
		t.Fatalf("the login: %q, %v", welcome, err)
	}
	// Its request gets there though all turns are taken, and those behind it share one connection.
	ask(ownSession)
	if session := comes(); session != ownSession {
		t.Fatalf("a request for %d was sent beside %d others", session, atOnce)
	}
	ask(ownSession)
	ask(ownSession)
	if n := len(server.came) + len(ends); n != 0 {
		t.Errorf("%d more requests are sent or ended", n)
	}
	// All others are sent when it is their turn.
	server.let()
	for range waiting + atOnce + 3 {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	seen := map[uint32]int{}
	for range len(server.came) {
		seen[<-server.came]++
	}
	if n := len(seen); n != waiting+1 || seen[ownSession] < 1 || seen[ownSession] > 2 {
		t.Errorf("%d sessions, %d requests for one that had two behind its first", n, seen[ownSession])
	}
}

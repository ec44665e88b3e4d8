package mysqlwire_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestLoginAwaitsServer: a client that has asked for TLS and waits for the server keeps its place to log in; one that is silent, and came later, loses it.
func TestLoginAwaitsServer(t *testing.T) {
	d := testserver.Family(t).Database(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answers, asked := make(chan struct{}), make(chan struct{}, 10)
	forward := func(front, back net.Conn) { // the greeting at once, more from answers on
		go func() {
			b := make([]byte, 1<<12)
			n, _ := back.Read(b)
			_, _ = front.Write(b[:n])
			<-answers
			_, _ = io.Copy(front, back)
			_ = front.Close()
		}()
		b := make([]byte, 1<<12)
		if n, err := front.Read(b); err == nil {
			asked <- struct{}{}
			_, _ = back.Write(b[:n])
			_, _ = io.Copy(back, front)
		}
		_ = back.Close()
	}
	go func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", d.Address())
			if err != nil {
				t.Error(err)
				return
			}
			go forward(front, back)
		}
	}()
	through := startProxy(t, d, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: l.Addr().String()}, Mode: proxy.Observe, Limits: proxy.Limits{Logins: 2}}, observer(&sink{}))
	dial := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", through.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return conn, bufio.NewReader(conn)
	}
	waits, r := dial()
	greeting := &rawClient{t: t, conn: waits, r: r, caps: baseCaps | uint64(mysql.CLIENT_SSL)}
	greeting.packet()
	request := make([]byte, 32)
	request[0], request[1], request[2] = byte(greeting.caps), byte(greeting.caps>>8), byte(greeting.caps>>16)
	greeting.write(1, request)
	<-asked
	silent, r := dial()
	(&rawClient{t: t, conn: silent, r: r}).packet()
	dial() // would have a place
	var b [1]byte
	if _, err := r.Read(b[:]); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the silent client keeps its place: %v", err)
	}
	close(answers)
	if err := tls.Client(waits, &tls.Config{InsecureSkipVerify: true}).Handshake(); err != nil {
		t.Errorf("the client that waits for the server: %v", err)
	}
}

package pgwire_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// request is an SSLRequest, a GSSENCRequest or the like.
func request(code uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, code))
}

// startup is a StartupMessage.
func startup(user, database string) string {
	body := string(binary.BigEndian.AppendUint32(nil, 3<<16)) + "user\x00" + user + "\x00database\x00" + database + "\x00\x00"
	return string(binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))) + body
}

// TestRequestForEncryptionWithMore sends a request for encryption and more at once, and compares with the server: one without TLS (its Unix socket), and one with.
func TestRequestForEncryptionWithMore(t *testing.T) {
	const ssl, gss = 80877103, 80877104
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	socket := proxy.Address{Network: "unix", Addr: fmt.Sprintf("%s/.s.PGSQL.%d", srv.Socket, srv.Port)}
	start1 := startup(testserver.AppTrust, db.Name)
	query := string(message('Q', []byte("SELECT 7\x00"))) + string(message('X', nil))
	for _, c := range []struct {
		name    string
		up      proxy.Address
		refused bool
		parts   []string // each is sent when an answer to the one before has come
	}{
		{"SSL", socket, true, []string{request(ssl) + start1}},
		{"GSS", socket, true, []string{request(gss) + start1}},
		{"SSL behind GSS", socket, true, []string{request(gss), request(ssl) + start1}},
		{"SSL, in turn", socket, false, []string{request(ssl), start1 + query}},
		{"GSS and SSL, in turn", socket, false, []string{request(gss), request(ssl), start1 + query}},
		{"TLS", upstream(srv), true, []string{request(ssl) + start1, "TLS"}},
		{"TLS, in turn", upstream(srv), false, []string{request(ssl), "TLS", start1 + query}},
	} {
		play := func(a proxy.Address) string {
			conn, err := net.Dial(a.Network, a.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			out := ""
			for i, part := range c.parts {
				if part == "TLS" {
					inside := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
					if err := inside.Handshake(); err != nil {
						return out + err.Error()
					}
					conn = inside
					continue
				}
				if _, err := io.WriteString(conn, part); err != nil {
					return out + err.Error()
				}
				if len(part) == 8 || i+1 < len(c.parts) {
					var b [1]byte
					_, err := io.ReadFull(conn, b[:])
					out += fmt.Sprintf("%q %v\n", b, err)
				}
			}
			rest, err := io.ReadAll(conn)
			return out + fmt.Sprintf("%q %v", rest, err)
		}
		want := play(c.up)
		if refused := strings.Contains(want, "unencrypted data"); refused != c.refused || !c.refused && !strings.Contains(want, "SELECT 1") {
			t.Errorf("%s: the server itself says %s", c.name, want)
		}
		for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
			r := start(t, proxy.Config{Upstream: c.up, Mode: mode}, observer(&events{}))
			got := play(proxy.Address{Network: "tcp", Addr: r.addr.String()})
			if c.refused && got != want || !c.refused && !strings.Contains(got, "SELECT 1") { // each session has a number of its own
				t.Errorf("%s, %s: %s, want %s", c.name, mode, got, want)
			}
		}
	}
}

// TestRefusedWhilePipelining refuses a client that has sent messages behind its startup message: it reads the refusal and then the end, and no reset.
func TestRefusedWhilePipelining(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t)
	more := strings.Repeat(string(message('Q', []byte("SELECT 1\x00"))), 100)
	for _, database := range []string{"nothing", db.Name} {
		play := func(addr string) string {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			if _, err := io.WriteString(conn, startup(testserver.AppTrust, database)+more+string(message('X', nil))); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn)
			if database == db.Name {
				return fmt.Sprint(strings.Count(string(got), "SELECT 1"), err)
			}
			return fmt.Sprintf("%q %v", got, err)
		}
		want := play(srv.Address())
		if !strings.HasSuffix(want, "<nil>") {
			t.Fatalf("the server itself: %s", want)
		}
		for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
			r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(&events{}))
			for range 20 {
				if got := play(r.addr.String()); got != want {
					t.Fatalf("%s, %s: %s, want %s", database, mode, got, want)
				}
			}
		}
	}
}

package mysqlwire_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"

	"wirecheck/internal/certificate"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// scripted is a server that says what a test wants.
type scripted struct {
	t    *testing.T
	conn net.Conn
	seq  byte
	caps uint32
	salt []byte
}

// startScripted accepts connections and plays the script on each of them.
func startScripted(t *testing.T, play func(*scripted) error) proxy.Address {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
				t.Error(err)
			}
			if err := play(&scripted{t: t, conn: conn}); err != nil && !errors.Is(err, io.EOF) {
				t.Errorf("scripted server: %v", err)
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return proxy.Address{Network: "tcp", Addr: l.Addr().String()}
}

func (s *scripted) send(payload []byte) error {
	n := len(payload)
	_, err := s.conn.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), s.seq}, payload...))
	s.seq++
	return err
}

func (s *scripted) receive() ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(s.conn, head); err != nil {
		return nil, err
	}
	b := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	s.seq = head[3] + 1
	_, err := io.ReadFull(s.conn, b)
	return b, err
}

const scriptedCaps = uint32(mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH |
	mysql.CLIENT_CONNECT_WITH_DB | mysql.CLIENT_TRANSACTIONS | mysql.CLIENT_COMPRESS | mysql.CLIENT_SSL | 1<<25 | 1<<26 | 1<<27)

// greet sends the greeting and reads the login, with TLS if the client wants it.
func (s *scripted) greet(plugin string, cfg *tls.Config) ([]byte, error) {
	s.salt = []byte("abcdefghijklmnopqrst")
	caps := scriptedCaps
	if cfg == nil {
		caps &^= uint32(mysql.CLIENT_SSL)
	}
	b := append([]byte{10}, "8.4.0-scripted\x00"...)
	b = binary.LittleEndian.AppendUint32(b, 77)
	b = append(append(b, s.salt[:8]...), 0)
	b = append(b, byte(caps), byte(caps>>8), 45, 2, 0, byte(caps>>16), byte(caps>>24), 21)
	b = append(append(b, make([]byte, 10)...), s.salt[8:]...)
	b = append(append(append(b, 0), plugin...), 0)
	if err := s.send(b); err != nil {
		return nil, err
	}
	login, err := s.receive()
	if err == nil && len(login) == 32 && cfg != nil {
		s.conn = tls.Server(s.conn, cfg)
		login, err = s.receive()
	}
	if err == nil {
		s.caps = binary.LittleEndian.Uint32(login)
		if hidden := s.caps & uint32(mysql.CLIENT_COMPRESS|1<<25|1<<26|1<<27); hidden != 0 {
			s.t.Errorf("the login has capabilities that were not to be offered: %x", hidden)
		}
	}
	return login, err
}

var okPacket = []byte{0, 0, 0, 2, 0, 0, 0}

// commands answers pings, refuses everything else, and ends at COM_QUIT.
func (s *scripted) commands() error {
	for {
		b, err := s.receive()
		if err != nil || b[0] == mysql.COM_QUIT {
			return err
		}
		answer := okPacket
		if b[0] != mysql.COM_PING {
			answer = []byte("\xff\x20\x04#42000refused")
		}
		if err := s.send(answer); err != nil {
			return err
		}
	}
}

// scriptedTLS gives a server's TLS settings.
func scriptedTLS(t *testing.T) *tls.Config {
	t.Helper()
	authority, err := certificate.NewAuthority("scripted")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue("localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}}
}

func TestCachingSHA2(t *testing.T) {
	const password = "a secret"
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	cfg := scriptedTLS(t)

	fast := func(s *scripted) error {
		login, err := s.greet("caching_sha2_password", nil)
		if err != nil {
			return err
		}
		if want := mysql.CalcCachingSha2Password(s.salt, []byte(password)); !bytes.Contains(login, want) {
			t.Error("fast: the login does not hold the answer to the server's challenge")
		}
		return errors.Join(s.send([]byte{1, 3}), s.send(okPacket), s.commands())
	}
	full := func(s *scripted) error {
		if _, err := s.greet("caching_sha2_password", nil); err != nil {
			return err
		}
		if err := s.send([]byte{1, 4}); err != nil {
			return err
		}
		if b, err := s.receive(); err != nil || !bytes.Equal(b, []byte{2}) {
			t.Errorf("RSA: got %q, %v; want the request for the key", b, err)
		}
		if err := s.send(append([]byte{1}, pemKey...)); err != nil {
			return err
		}
		b, err := s.receive()
		if err != nil {
			return err
		}
		plain, err := rsa.DecryptOAEP(sha1.New(), nil, key, b, nil)
		for i := range plain {
			plain[i] ^= s.salt[i%len(s.salt)]
		}
		if err != nil || string(plain) != password+"\x00" {
			t.Errorf("RSA: got password %q, %v", plain, err)
		}
		return errors.Join(s.send(okPacket), s.commands())
	}
	encrypted := func(s *scripted) error {
		if _, err := s.greet("sha256_password", cfg); err != nil {
			return err
		}
		// Change the method first, then ask for the password in clear text.
		if err := s.send(append([]byte("\xfecaching_sha2_password\x00"), append(s.salt, 0)...)); err != nil {
			return err
		}
		if _, err := s.receive(); err != nil {
			return err
		}
		if err := s.send([]byte{1, 4}); err != nil {
			return err
		}
		if b, err := s.receive(); err != nil || string(b) != password+"\x00" {
			t.Errorf("TLS: got %q, %v; want the password", b, err)
		}
		return errors.Join(s.send(okPacket), s.commands())
	}
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		for name, play := range map[string]func(*scripted) error{"fast": fast, "RSA": full, "TLS": encrypted} {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				c := proxy.Config{Mode: mode, Upstream: startScripted(t, play), Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}}
				if mode == proxy.Pass {
					c.ClientTLS.Cert, c.ClientTLS.Key = certFiles(t)
				}
				login := driver.NewConfig()
				login.User, login.Passwd, login.Net, login.Addr = "u", password, "tcp", serve(t, c, observer(&sink{})).String()
				if name == "TLS" {
					login.TLS = &tls.Config{InsecureSkipVerify: true}
				}
				connector, err := driver.NewConnector(login)
				if err != nil {
					t.Fatal(err)
				}
				db := sql.OpenDB(connector)
				if err := db.PingContext(t.Context()); err != nil {
					t.Errorf("ping: %v", err)
				}
				db.Close()
			})
		}
	}
}

// scriptedClient logs in at a proxy in front of a script that gives one answer to the first text with "ask" in it.
func scriptedClient(t *testing.T, answer func(*scripted) error) *rawClient {
	t.Helper()
	up := startScripted(t, func(s *scripted) error {
		if _, err := s.greet("mysql_native_password", nil); err != nil {
			return err
		}
		if err := s.send(okPacket); err != nil {
			return err
		}
		for {
			b, err := s.receive()
			if err != nil {
				return err
			}
			if bytes.Contains(b, []byte("ask")) {
				return answer(s)
			}
			if err := s.send([]byte("\xff\x20\x04#42000refused")); err != nil {
				return err
			}
		}
	})
	c := proxy.Config{Mode: proxy.Observe, Upstream: up, Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}}
	addr := serve(t, c, observer(&sink{})).(*net.TCPAddr)
	return dialRaw(t, testserver.Database{Host: "127.0.0.1", Port: addr.Port, User: "u", Name: "d"}, baseCaps)
}

// column is the definition of a text column.
var column = []byte("\x03def\x00\x00\x00\x01a\x00\x0c\x2d\x00\xff\x00\x00\x00\xfd\x00\x00\x00\x00\x00")

func TestServerDies(t *testing.T) {
	eof := []byte{0xfe, 0, 0, 2, 0}
	for name, test := range map[string]struct {
		answer func(*scripted) error
		code   uint16 // of the error that ends the answer; 0: the connection just ends, as it does directly
	}{
		"before the answer": {func(*scripted) error { return nil }, 0},
		"between rows": {func(s *scripted) error {
			return errors.Join(s.send([]byte{1}), s.send(column), s.send(eof), s.send([]byte("\x01x")))
		}, 0},
		"in a packet's head": {func(s *scripted) error { _, err := s.conn.Write([]byte{9, 0}); return err }, 0},
		"in a row": {func(s *scripted) error {
			err := errors.Join(s.send([]byte{1}), s.send(column), s.send(eof))
			_, err2 := s.conn.Write(append([]byte{0, 0, 1, 4, 0xfd, 0xfc, 0xff, 0}, make([]byte, 40_000)...))
			return errors.Join(err, err2)
		}, 0},
		"with nonsense":      {func(s *scripted) error { return s.send([]byte{0xfd, 1}) }, 1835},
		"with empty packets": {func(s *scripted) error { return s.send(nil) }, 1835},
	} {
		t.Run(name, func(t *testing.T) {
			c := scriptedClient(t, test.answer)
			c.write(0, []byte("\x03ask"))
			var last []byte
			for {
				_, p, err := c.tryPacket()
				if err != nil {
					break
				}
				last = p
			}
			got := uint16(0)
			if len(last) > 9 && last[0] == 0xff {
				got = binary.LittleEndian.Uint16(last[1:])
				if !strings.Contains(string(last), "#HY000Malformed communication packet") {
					t.Errorf("got %q", last)
				}
			}
			if name == "between rows" && string(last) != "\x01x" {
				t.Errorf("the last packet is %q, want the row", last)
			}
			if got != test.code {
				t.Errorf("got error %d (%q), want %d", got, last, test.code)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		c := proxy.Config{Mode: mode, Upstream: proxy.Address{Network: "tcp", Addr: l.Addr().String()}, Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}}
		addr := serve(t, c, observer(&sink{}))
		conn, err := net.Dial("tcp", addr.String())
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(all), "\xff\x95\x05Can't connect to the server (wirecheck: connect to 127.0.0.1:") {
			t.Errorf("mode %s: got %q, %v", mode, all, err)
		}
		conn.Close()
		out, err := mariadb(testserver.Database{Host: "127.0.0.1", Port: addr.(*net.TCPAddr).Port, User: "u", Name: "d"}, "-e", "SELECT 1")
		if err == nil || !strings.Contains(out, "1429") || !strings.Contains(out, "Can't connect to the server (wirecheck: ") {
			t.Errorf("mode %s: the client says %q, %v", mode, out, err)
		}
	}
}

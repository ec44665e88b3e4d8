package mysqlwire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
)

// patience is how long a test waits that hangs.
const patience = 3 * time.Minute

// pipeline sends commands without reading the answers until no more fit into the connections.
func (c *rawClient) pipeline(sql string) {
	c.t.Helper()
	if err := c.conn.(*net.TCPConn).SetReadBuffer(1 << 16); err != nil {
		c.t.Fatal(err)
	}
	one := append([]byte{byte(len(sql) + 1), byte((len(sql) + 1) >> 8), 0, 0, 3}, sql...)
	many := []byte(strings.Repeat(string(one), 500))
	for sent := 0; sent < 200<<20; {
		if err := c.conn.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			c.t.Fatal(err)
		}
		n, err := c.conn.Write(many)
		sent += n
		if errors.Is(err, os.ErrDeadlineExceeded) {
			c.t.Logf("%d bytes fit", sent)
			return
		}
		if err != nil {
			c.t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	c.t.Fatal("the connections take 200 MB of commands without a reader for the answers")
}

// TestClientDiesWhilePipelining lets a client go away that holds a lock and has sent so many commands without reading the
// answers that every connection is full. Its session must end all the same, at the server too.
func TestClientDiesWhilePipelining(t *testing.T) {
	d := testserver.Family(t).Database(t)
	cert, key := certFiles(t)
	for name, c := range map[string]proxy.Config{
		"pass":                       {Mode: proxy.Pass},
		"observe":                    {Mode: proxy.Observe},
		"pass, TLS to the server":    {Mode: proxy.Pass, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require}, ClientTLS: proxy.ClientTLS{Cert: cert, Key: key}},
		"observe, TLS to the server": {Mode: proxy.Observe, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.Require}},
	} {
		t.Run(name, func(t *testing.T) {
			d.Exec(t, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)")
			direct := dialRaw(t, d, baseCaps)
			w := dialRaw(t, startProxy(t, d, c, observer(&sink{})), baseCaps)
			w.query("BEGIN")
			w.query("UPDATE t SET v = 2 WHERE id = 1")
			w.pipeline("SELECT REPEAT('x', 2000)")
			if err := w.conn.Close(); err != nil {
				t.Fatal(err)
			}
			direct.query("SET innodb_lock_wait_timeout = 100")
			if p := direct.query("UPDATE t SET v = 3 WHERE id = 1 AND v = 1").last(); p[0] != 0 {
				t.Errorf("after the client died: got %q, want OK", p)
			}
		})
	}
}

// ending is a Handler that says when a session has ended.
type ending struct {
	proxy.Handler
	ended chan struct{}
}

func (h ending) Serve(ctx context.Context, s *proxy.Session) error {
	defer close(h.ended)
	return h.Handler.Serve(ctx, s)
}

// served runs a proxy for one session in front of a scripted server that logs the client in and then plays.
func served(t *testing.T, c proxy.Config, play func(*scripted) error) (client *rawClient, ended chan struct{}) {
	t.Helper()
	c.Upstream = startScripted(t, func(s *scripted) error {
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
			if bytes.Contains(b, []byte("begin")) {
				return play(s)
			}
			if err := s.send([]byte("\xff\x20\x04#42000refused")); err != nil {
				return err
			}
		}
	})
	c.Listen = proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}
	h := ending{mysqlwire.New(observer(&sink{})), make(chan struct{})}
	addr := serveBy(t, c, h).(*net.TCPAddr)
	return dialRaw(t, testserver.Database{Host: "127.0.0.1", Port: addr.Port, User: "u", Name: "d"}, baseCaps), h.ended
}

func (c *rawClient) await(ended chan struct{}) {
	c.t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		c.t.Fatal("the session goes on")
	}
}

// TestClientDiesDuringStatement resets the connection of a client that has pipelined commands while the server executes the first one and reads nothing:
// commands that fit into the connections, and more.
func TestClientDiesDuringStatement(t *testing.T) {
	for _, test := range []struct {
		name string
		mode proxy.Mode
		many bool
	}{{"pass, many", proxy.Pass, true}, {"observe, some", proxy.Observe, false}, {"observe, many", proxy.Observe, true}} {
		t.Run(test.name, func(t *testing.T) {
			over, begun := make(chan struct{}), make(chan struct{})
			c, ended := served(t, proxy.Config{Mode: test.mode}, func(*scripted) error { close(begun); <-over; return nil })
			defer close(over)
			c.write(0, []byte("\x03begin"))
			<-begun
			if test.many {
				c.pipeline("SELECT 1")
			} else {
				for range 100 {
					c.write(0, append([]byte{3}, make([]byte, 1000)...))
				}
			}
			if err := c.conn.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
			c.conn.Close()
			c.await(ended)
		})
	}
}

// TestClientEndsItsSide: a client that has sent some commands and ends its sending half gets all answers, as directly.
func TestClientEndsItsSide(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE t (id INT PRIMARY KEY)")
	cert, key := certFiles(t)
	play := func(at testserver.Database, caps uint64) string {
		c := dialRaw(t, at, caps)
		c.query("DELETE FROM t")
		for _, sql := range []string{"INSERT INTO t VALUES (1)", "SELECT SLEEP(0.2)", "INSERT INTO t VALUES (2)", "SELECT id FROM t"} {
			c.write(0, append([]byte{3}, sql...))
		}
		if err := c.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(c.r)
		return fmt.Sprintf("%q %v", b, err)
	}
	if unread, plain := "Got an error reading communication packets", play(d, baseCaps); testserver.IsMySQL() != strings.Contains(plain, unread) { // 1158
		t.Fatalf("directly: %s", plain)
	}
	for name, test := range map[string]struct {
		config proxy.Config
		caps   uint64
	}{
		"pass":         {proxy.Config{Mode: proxy.Pass}, baseCaps},
		"observe":      {proxy.Config{Mode: proxy.Observe}, baseCaps},
		"observe, TLS": {proxy.Config{Mode: proxy.Observe, ClientTLS: proxy.ClientTLS{Cert: cert, Key: key}}, baseCaps | uint64(mysql.CLIENT_SSL)},
	} {
		want := play(d, test.caps)
		if got := play(startProxy(t, d, test.config, observer(&sink{})), test.caps); got != want {
			t.Errorf("%s: got %s, directly %s", name, got, want)
		}
	}
}

// TestServerEndsWhileClientDoesNotRead has the server end while its answer does not go through to the client.
func TestServerEndsWhileClientDoesNotRead(t *testing.T) {
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		t.Run(string(mode), func(t *testing.T) {
			c, ended := served(t, proxy.Config{Mode: mode, Timeouts: proxy.Timeouts{Grace: time.Second}}, func(s *scripted) error {
				err := errors.Join(s.send([]byte{1}), s.send(column), s.send([]byte{0xfe, 0, 0, 2, 0}))
				if err != nil {
					return err
				}
				row := append([]byte{0xfd, 0, 0x10, 0}, make([]byte, 1<<12)...)
				for {
					if err := s.conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
						return err
					}
					if err := s.send(row); err != nil {
						return s.conn.(*net.TCPConn).SetLinger(0) // no connection takes more
					}
				}
			})
			c.write(0, []byte("\x03begin"))
			c.await(ended)
		})
	}
}

// TestDescriptorsInPassMode: a session needs two descriptors, one for each side, and leaves none behind.
func TestDescriptorsInPassMode(t *testing.T) {
	d := testserver.Family(t).Database(t)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Pass}, nil)
	pipes := func() (n int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc here")
		}
		for _, e := range entries {
			if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(name, "pipe:") {
				n++
			}
		}
		return n
	}
	before := pipes()
	var clients []*rawClient
	for range 20 {
		c := dialRaw(t, through, baseCaps)
		expectRows(t, c, "SELECT 1", "1")
		clients = append(clients, c)
	}
	if n := pipes(); n > before {
		t.Errorf("%d sessions take %d descriptors of pipes", len(clients), n-before)
	}
}

// closedGate lets nothing pass. It says when a session waits.
type closedGate struct{ waits chan struct{} }

func (g closedGate) Enter(ctx context.Context, _ *proxy.Session, _ string) error {
	g.waits <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (closedGate) Done(*proxy.Session, bool) {}
func (closedGate) Left(*proxy.Session)       {}

// TestEndBeforeTurn ends either side of a session that waits for its turn: the wait ends, and a client that is still there
// gets what the server has said.
func TestEndBeforeTurn(t *testing.T) {
	d := testserver.Family(t).Database(t)
	for _, side := range []string{"client", "server"} {
		t.Run(side, func(t *testing.T) {
			gate := closedGate{make(chan struct{}, 1)}
			h := ending{mysqlwire.New(observer(&sink{})), make(chan struct{})}
			addr := serveBy(t, proxy.Config{Mode: proxy.Control, Gate: gate, Upstream: proxy.Address{Network: "tcp", Addr: d.Address()}, Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}}, h)
			c := dialRaw(t, d.At("127.0.0.1", addr.(*net.TCPAddr).Port), baseCaps)
			c.write(0, []byte("\x03SELECT 1"))
			<-gate.waits
			if side == "client" {
				c.conn.Close()
			} else {
				dialRaw(t, d, baseCaps).query(fmt.Sprint("KILL ", c.thread))
			}
			c.await(h.ended)
			if side == "client" {
				return
			}
			if _, p, err := c.tryPacket(); err == nil && (p[0] != 0xff || binary.LittleEndian.Uint16(p[1:]) != 1927) {
				t.Errorf("killed connection: got %q, want the end or error 1927", p)
			}
		})
	}
}

// TestMalformedCommands: MySQL answers a command that is too short with an error, also one that has no answer otherwise. No answer is taken for that to another command.
func TestMalformedCommands(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	play := func(at testserver.Database) string {
		c := dialRaw(t, at, baseCaps)
		var all []byte
		for _, command := range []string{"\x18\x01\x00\x00\x00\x00", "\x0e", "\x19\x01\x00\x00", "\x03SELECT id FROM t", "\x18\x99\x00\x00\x00\x00\x00", "\x19\x99\x00\x00\x00", "\x03SELECT 1 FROM t"} {
			all = append(append(all, byte(len(command)), 0, 0, 0), command...)
		}
		if _, err := c.conn.Write(all); err != nil {
			t.Fatal(err)
		}
		if err := c.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(c.r)
		return fmt.Sprintf("%q %v", b, err)
	}
	want := play(d)
	if got := play(startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{}))); got != want {
		t.Errorf("got %s, directly %s", got, want)
	}
	if refusals := strings.Count(want, "Malformed communication packet"); testserver.IsMySQL() != (refusals == 2) || !strings.Contains(want, `\x02id`) {
		t.Errorf("directly: %s", want)
	}
}

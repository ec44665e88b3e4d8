package mysqlwire_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// slowServer is the way to a server that holds its answers back once it is told to.
type slowServer struct {
	t     *testing.T
	port  int
	held  chan struct{} // closed: answers are held back
	freed chan struct{} // closed: they pass again
	left  chan struct{} // closed when the proxy has closed its connection
}

func newSlowServer(t *testing.T, d testserver.Database) *slowServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowServer{t, l.Addr().(*net.TCPAddr).Port, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		in, err := l.Accept()
		if err != nil {
			return
		}
		defer in.Close()
		out, err := net.Dial("tcp", net.JoinHostPort(d.Host, portOf(d)))
		if err != nil {
			t.Error(err)
			return
		}
		answers := make(chan struct{})
		go func() {
			defer close(answers)
			b := make([]byte, 1<<16)
			for {
				n, err := out.Read(b)
				select {
				case <-s.held:
					<-s.freed
				default:
				}
				if _, failed := in.Write(b[:n]); err != nil || failed != nil {
					return
				}
			}
		}()
		_, _ = io.Copy(out, in)
		close(s.left)
		out.Close()
		<-answers
	}()
	return s
}

// TestClientLeavesAtOnce: a client that leaves right behind its last statement does not take along what that statement wrote.
func TestClientLeavesAtOnce(t *testing.T) {
	for name, quit := range map[string]bool{"by COM_QUIT": true, "without a word": false} {
		t.Run(name, func(t *testing.T) {
			d := testserver.Family(t).Database(t)
			slow := newSlowServer(t, d)
			k := &sink{}
			d.Host, d.Port = "127.0.0.1", slow.port
			c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
			const update = "UPDATE t SET v = 2 WHERE id = 1"
			for _, sql := range []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1)", update} {
				if p := c.query(sql).last(); p[0] == 0xff {
					t.Fatalf("%s: %q", sql, p)
				}
			}
			close(slow.held)
			if quit {
				c.write(0, []byte{mysql.COM_QUIT})
			}
			c.conn.Close()
			select { // a session that ends with its client ends within this time
			case <-slow.left:
			case <-time.After(100 * time.Millisecond):
			}
			close(slow.freed)
			<-slow.left
			if !slices.ContainsFunc(k.all(), func(ev *history.Event) bool {
				return ev.Kind == history.EventStmt && ev.SQL == update && len(ev.Accesses) == 1
			}) {
				t.Error("what the last statement wrote is not in the history")
			}
		})
	}
}

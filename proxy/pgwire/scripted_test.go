package pgwire_test

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/proxy"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scripted is a server that does what a test says to each connection after it was authenticated and has answered the
// proxy's questions.
type scripted struct {
	addr    string
	serve   func(c net.Conn, in *bufio.Reader)
	running sync.WaitGroup
}

func newScripted(t *testing.T, serve func(net.Conn, *bufio.Reader)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{addr: l.Addr().String(), serve: serve}
	s.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.running.Go(func() {
				s.session(c)
				_ = c.Close() // it may be closed already
			})
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		s.running.Wait()
	})
	return s
}

// session authenticates anyone, refuses our own questions (so that nothing is rewritten), and then follows the script.
func (s *scripted) session(c net.Conn) {
	in := bufio.NewReader(c)
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, in, int64(binary.BigEndian.Uint32(size[:]))-4); err != nil {
		return
	}
	hello := message('R', []byte{0, 0, 0, 0})
	hello = append(hello, message('S', []byte("client_encoding\x00UTF8\x00"))...)
	hello = append(hello, message('K', []byte{0, 0, 0, 1, 0, 0, 0, 2})...)
	if _, err := c.Write(append(hello, message('Z', []byte("I"))...)); err != nil {
		return
	}
	refusal := message('E', []byte("SERROR\x00VERROR\x00C42501\x00Mnot for you\x00\x00"))
	for _, answer := range [][]byte{refusal, nil} { // to the question, and to what the proxy does after a refusal
		for kind := byte(0); kind != 'S'; {
			var err error
			if kind, _, err = readMessage(in); err != nil {
				return
			}
		}
		if _, err := c.Write(append(answer, message('Z', []byte("I"))...)); err != nil {
			return
		}
	}
	s.serve(c, in)
}

func readMessage(in *bufio.Reader) (byte, []byte, error) {
	var h [5]byte
	if _, err := io.ReadFull(in, h[:]); err != nil {
		return 0, nil, err
	}
	size := int64(binary.BigEndian.Uint32(h[1:])) - 4
	if size < 0 || size > 1<<20 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, size)
	_, err := io.ReadFull(in, b)
	return h[0], b, err
}

// TestTraces plays scripts of both sides; testdata/traces.txt says what each side gets. Lines:
//
//	c <step>      the client does a step of the language of wire.step, without waiting
//	s K text      the server sends a message of kind K; \0 is a zero byte, \xHH any other
//	S K n         the server reads n messages of kind K and everything before
//	C K n         the client reads n messages of kind K and everything before
//	s close       the server closes its connection
func TestTraces(t *testing.T) {
	b, err := os.ReadFile("testdata/traces.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, block := range strings.Split(string(b), "\n\n") {
		var script []string
		for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
			if !strings.HasPrefix(line, "  ") {
				script = append(script, line)
			}
		}
		out.WriteString(trace(t, script) + "\n")
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if *update {
		if err := os.WriteFile("testdata/traces.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(b), text); d != "" {
		t.Errorf("testdata/traces.txt (-file +now):\n%s", d)
	}
}

func trace(t *testing.T, script []string) string {
	t.Helper()
	conns := make(chan net.Conn, 1)
	release := make(chan struct{})
	srv := newScripted(t, func(c net.Conn, _ *bufio.Reader) {
		conns <- c
		<-release
	})
	defer close(release)
	ev := &events{}
	r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: srv.addr}, Mode: proxy.Observe}, observer(ev))
	w := dialWire(t, r.addr.String(), "u", "d")
	up := &wire{t: t, conn: <-conns, oids: map[uint32]int{}}
	up.in = bufio.NewReader(up.conn)
	var out strings.Builder
	for _, line := range script {
		out.WriteString(line + "\n")
		op, arg, _ := strings.Cut(line, " ")
		var got []string
		switch {
		case strings.HasPrefix(line, "#"):
		case op == "c":
			w.step(arg)
		case line == "s close":
			if err := up.conn.Close(); err != nil {
				t.Fatal(err)
			}
		case op == "s":
			var body []byte
			text := arg[1:]
			if len(arg) > 2 {
				text = arg[2:]
			}
			for i := 0; i < len(text); i++ {
				switch {
				case strings.HasPrefix(text[i:], `\0`):
					body = append(body, 0)
					i++
				case strings.HasPrefix(text[i:], `\x`):
					var v byte
					if _, err := fmt.Sscanf(text[i+2:i+4], "%02x", &v); err != nil {
						t.Fatal(err)
					}
					body = append(body, v)
					i += 3
				default:
					body = append(body, text[i])
				}
			}
			up.raw(message(arg[0], body))
		case op == "S", op == "C":
			side := w
			if op == "S" {
				side = up
			}
			var kind byte
			n := 0
			if _, err := fmt.Sscanf(arg, "%c %d", &kind, &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			got = side.until(kind, n)
		default:
			t.Fatalf("unknown line %q", line)
		}
		for _, g := range got {
			out.WriteString("  " + strings.ReplaceAll(g, srv.addr, "SERVER") + "\n")
		}
	}
	r.stop()
	for _, e := range ev.all() {
		if e.Kind == history.EventStmt || e.Kind == history.EventEnd {
			fmt.Fprintf(&out, "  event %s %s\n", e.Kind, strings.TrimSpace(e.SQL+" "+string(e.Outcome)))
		}
	}
	return out.String()
}

// TestGarbage sends random messages, mostly well-formed, from both sides. Whatever comes, the proxy neither panics nor
// hangs nor leaks.
func TestGarbage(t *testing.T) {
	kinds := []byte("QPBDECSHFdcfX123tTnDCIsEZNASGHWVRpz\x00")
	random := func(rnd *rand.Rand) []byte {
		var out []byte
		for range 1 + rnd.IntN(12) {
			body := make([]byte, rnd.IntN(24))
			for i := range body {
				body[i] = "\x00\x00\x00\x01\x02SPab1I"[rnd.IntN(11)]
			}
			if rnd.IntN(3) == 0 {
				body = append([]byte("s\x00SELECT * FROM t\x00"), body...)
			}
			m := message(kinds[rnd.IntN(len(kinds))], body)
			if rnd.IntN(40) == 0 { // a wrong length
				m[1+rnd.IntN(4)] = byte(rnd.Uint32())
			}
			out = append(out, m...)
		}
		return out
	}
	var seed uint64
	var mu sync.Mutex
	next := func() *rand.Rand {
		mu.Lock()
		defer mu.Unlock()
		seed++
		return rand.New(rand.NewPCG(seed, 7))
	}
	srv := newScripted(t, func(c net.Conn, in *bufio.Reader) {
		rnd := next()
		_ = c.SetDeadline(time.Now().Add(patience))
		for range 1 + rnd.IntN(4) {
			if _, err := c.Write(random(rnd)); err != nil {
				return
			}
			if rnd.IntN(2) == 0 {
				if _, err := in.ReadByte(); err != nil {
					return
				}
			}
		}
	})
	r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: srv.addr}, Mode: proxy.Observe}, observer(&events{}))
	for i := range 400 {
		rnd := rand.New(rand.NewPCG(uint64(i), 3))
		w := dialWire(t, r.addr.String(), "u", "d")
		for range 1 + rnd.IntN(4) {
			if _, err := w.conn.Write(random(rnd)); err != nil {
				break
			}
		}
		if rnd.IntN(2) == 0 {
			if err := w.conn.(*net.TCPConn).CloseWrite(); err != nil {
				continue
			}
			_ = w.conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, w.conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Fatalf("seed %d: the session does not end", i)
			}
		}
		_ = w.conn.Close() // it may be reset
	}
}

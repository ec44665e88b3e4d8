package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/internal/natsserver"
)

// natsProcess is a NATS server in a process of its own, which keeps its port and its folder when it is started again.
type natsProcess struct {
	*program
	dir   string
	port  int // 0: the system has not chosen one yet
	flags []string
}

// startNATS starts one; flags are more of nats-server's.
func startNATS(t *testing.T, flags ...string) *natsProcess {
	t.Helper()
	n := &natsProcess{dir: t.TempDir(), port: -1, flags: flags}
	n.start(t)
	return n
}

var natsListens = regexp.MustCompile(`Listening for client connections on 127\.0\.0\.1:(\d+)`)

func (n *natsProcess) start(t *testing.T) {
	t.Helper()
	cmd, err := natsserver.Command(n.port, n.dir, n.flags...)
	if err != nil {
		t.Fatal(err)
	}
	n.program = startCommand(t, cmd)
	n.until(t, "NATS listens", func() bool {
		m := natsListens.FindStringSubmatch(n.stderr.String())
		if m != nil {
			n.port, err = strconv.Atoi(m[1])
		}
		return m != nil && err == nil
	})
}

// url is the server's address for who needs to prove nothing.
func (n *natsProcess) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.port) }

// connect gives a bus as a proxy has it.
func connect(t *testing.T, where string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), where, bus.Options{Patient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// over is the fleet by way of another address.
func (f *fleetOf) over(t *testing.T, where string) *fleetOf {
	t.Helper()
	return &fleetOf{bus: connect(t, where), where: where, name: f.name}
}

// fleetAt is a fleet of a server elsewhere.
func fleetAt(t *testing.T, where string) *fleetOf {
	t.Helper()
	return &fleetOf{bus: connect(t, where), where: where, name: stream.DefaultFleet}
}

// breakable passes bytes on between two parties, until it is held: then nothing passes, and no connection ends.
type breakable struct {
	address string
	gate    sync.RWMutex
}

// newBreakable makes one in front of the host of a URL, and gives the URL by way of it.
func newBreakable(t *testing.T, where string) (*breakable, string) {
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
	b := &breakable{address: u.Host}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			go b.serve(c)
		}
	}()
	u.Host = l.Addr().String()
	return b, u.String()
}

func (b *breakable) serve(c net.Conn) {
	s, err := net.Dial("tcp", b.address)
	if err != nil {
		c.Close()
		return
	}
	go b.pump(s, c)
	b.pump(c, s)
}

func (b *breakable) pump(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		b.gate.RLock()
		if n > 0 {
			_, e := to.Write(buffer[:n])
			if err == nil {
				err = e
			}
		}
		b.gate.RUnlock()
		if err != nil {
			if err != io.EOF {
				from.Close()
			}
			return
		}
	}
}

// hold lets nothing pass until the function that it gives is called.
func (b *breakable) hold() (goOn func()) {
	b.gate.Lock()
	return sync.OnceFunc(b.gate.Unlock)
}

// makeStream makes the fleet's stream.
func (f *fleetOf) makeStream(t *testing.T) {
	t.Helper()
	if _, said, status := command(t, "collect", "--from", f.where, "--fleet", f.name, "--until-end"); status != exitUnknown {
		t.Fatalf("exit status %d, %s", status, said)
	}
}

// messages are what was published, by run, in the order of the stream.
func (f *fleetOf) messages(t *testing.T) map[string][]*nats.Msg {
	t.Helper()
	s, err := f.bus.JetStream().Stream(t.Context(), "wirecheck-"+f.name)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string][]*nats.Msg{}
	for n := max(1, s.CachedInfo().State.FirstSeq); n <= s.CachedInfo().State.LastSeq; n++ {
		m, err := s.GetMsg(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		run := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
		header := nats.Header{}
		for name, values := range m.Header {
			if strings.HasPrefix(name, "Wirecheck-") {
				header[name] = values
			}
		}
		runs[run] = append(runs[run], &nats.Msg{Header: header, Data: m.Data})
	}
	return runs
}

// again publishes messages to another fleet, which f is then. Each comes once or more, and no more than so many of a run are on their way at a time.
func (f *fleetOf) again(t *testing.T, name string, runs map[string][]*nats.Msg, seed, window uint64) {
	t.Helper()
	f.name = name
	f.makeStream(t)
	rnd := rand.New(rand.NewPCG(seed, window))
	type way struct {
		run    string
		rest   []*nats.Msg
		flying []int
		there  map[int]bool
		next   int // all before it are there
		sent   int
	}
	var ways []*way
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		ways = append(ways, &way{run: run, rest: runs[run], there: map[int]bool{}})
	}
	for len(ways) > 0 {
		i := rnd.IntN(len(ways))
		w := ways[i]
		for w.sent < len(w.rest) && w.sent < w.next+int(window) {
			w.flying = append(w.flying, w.sent)
			if rnd.IntN(3) == 0 {
				w.flying = append(w.flying, w.sent)
			}
			w.sent++
		}
		if len(w.flying) == 0 {
			ways = slices.Delete(ways, i, i+1)
			continue
		}
		at := rnd.IntN(len(w.flying))
		n := w.flying[at]
		w.flying = slices.Delete(w.flying, at, at+1)
		for w.there[n] = true; w.there[w.next]; {
			w.next++
		}
		m := &nats.Msg{Subject: "wirecheck." + name + ".events." + w.run, Header: w.rest[n].Header, Data: w.rest[n].Data}
		if _, err := f.bus.JetStream().PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
}

package stream_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history"
)

const patience = time.Minute

func openBus(t *testing.T, where string, o bus.Options) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), where, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func publisher(t *testing.T, b *bus.Bus, o stream.Options) *stream.Publisher {
	t.Helper()
	o.Fleet = "f"
	p, err := stream.NewPublisher(b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(0) })
	return p
}

// transaction records a transaction of a session.
func transaction(p *stream.Publisher, session, txn uint64) {
	p.Event(&history.Event{Kind: history.EventBegin, Session: session, Txn: txn})
	p.Event(&history.Event{Kind: history.EventStmt, Session: session, Txn: txn, N: 1, SQL: "SELECT 1"})
	p.Event(&history.Event{Kind: history.EventEnd, Session: session, Txn: txn, Outcome: history.OutcomeCommitted})
}

// reading is what a collector has taken.
type reading struct {
	events []history.Event
	fresh  int // of them, those that no collector before had judged
	said   []string
}

// collect reads what there is. needed is the first event that is needed at the end.
func collect(t *testing.T, b *bus.Bus, needed uint64) *reading {
	t.Helper()
	return collectWith(t, b, needed, func(*stream.Collector) {})
}

// collectWith is collect with a collector that is prepared.
func collectWith(t *testing.T, b *bus.Bus, needed uint64, prepare func(*stream.Collector)) *reading {
	t.Helper()
	r := &reading{}
	var c *stream.Collector
	c, err := stream.NewCollector(t.Context(), b, stream.CollectorOptions{
		Fleet: "f", Needed: func() uint64 { return needed }, Said: func(_, what string) { r.said = append(r.said, what) },
		Take: func(e *history.Event) {
			r.events = append(r.events, *e)
			if !c.Old() {
				r.fresh++
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	prepare(c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Run(ctx, true); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *reading) kinds() (list []string) {
	for _, e := range r.events {
		list = append(list, string(e.Kind))
	}
	return list
}

// TestWait: what follows a rest goes soon, and a busy process sends a few batches a second. Nothing waits for long.
func TestWait(t *testing.T) {
	const soon, long = 50 * time.Millisecond, 250 * time.Millisecond
	for _, tt := range []struct {
		name          string
		began, sealed time.Duration
		least, most   time.Duration
	}{
		{"after a rest", 0, time.Hour, 1, soon},
		{"after a rest, a moment later", soon, time.Hour, -time.Hour, 0},
		{"right behind another batch", 0, 0, 2 * soon, long},
		{"behind another batch, a moment later", soon, soon, soon, long - soon},
		{"behind another batch, long after it", long, long, -time.Hour, 0},
		{"some time behind another batch", 0, long - soon, 1, soon},
	} {
		if got := stream.Wait(tt.began, tt.sealed); got < tt.least || got > tt.most {
			t.Errorf("%s: %v, want %v to %v", tt.name, got, tt.least, tt.most)
		}
	}
}

// TestAgain: a collector goes on where the one before it ended, and reads again what is still needed.
func TestAgain(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	for i, tt := range []struct {
		needed      uint64
		read, fresh int
	}{{1, 5, 5}, {6, 10, 5}, {100, 10, 5}, {100, 5, 5}} {
		p := publisher(t, b, stream.Options{Run: fmt.Sprintf("r%d", i)})
		p.Event(&history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres"})
		transaction(p, 1, 1)
		p.Event(&history.Event{Kind: history.EventClose, Session: 1})
		if n := p.Close(patience); n > 0 {
			t.Fatalf("%d events were not published", n)
		}
		r := collect(t, b, tt.needed)
		if len(r.events) != tt.read || r.fresh != tt.fresh || len(r.said) > 0 {
			t.Errorf("%d: %d events, of them %d new; want %d and %d; %v", i, len(r.events), r.fresh, tt.read, tt.fresh, r.said)
		}
	}
}

// TestNobody: without a server nobody waits. What finds no room is lost and counted, and the end says what was not published.
func TestNobody(t *testing.T) {
	b := openBus(t, "nats://127.0.0.1:1", bus.Options{Patient: true})
	p := publisher(t, b, stream.Options{Run: "r", Buffer: 1 << 10})
	fill(p)
	if s := p.State(); s.Published > 0 || s.Waiting == 0 {
		t.Errorf("%+v", s)
	}
	if n := p.Close(0); n == 0 || n != p.State().Waiting {
		t.Errorf("%d events are said to be unpublished, and %d wait", n, p.State().Waiting)
	}
}

// fill records transactions of session 1 until one is lost.
func fill(p *stream.Publisher) {
	p.Event(&history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres"})
	for txn := uint64(1); p.State().Lost == 0; txn++ {
		transaction(p, 1, txn)
	}
}

// published waits until nothing waits any more.
func published(t *testing.T, p *stream.Publisher) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); p.State().Waiting > 0; { // no event tells
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it is not published")
		}
	}
}

// TestGap: behind lost events a reader begins anew. The session is announced again, and a transaction that was open is not told further.
func TestGap(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	p := publisher(t, b, stream.Options{Run: "r", Buffer: 1 << 10})
	p.Event(&history.Event{Kind: history.EventSession, Session: 2, Engine: "postgres"})
	p.Event(&history.Event{Kind: history.EventBegin, Session: 2, Txn: 1 << 20})
	fill(p)
	published(t, p)
	lost := p.State().Lost
	p.Event(&history.Event{Kind: history.EventEnd, Session: 2, Txn: 1 << 20, Outcome: history.OutcomeCommitted})
	transaction(p, 1, 1<<21)
	if n := p.Close(patience); n > 0 || p.State().Lost != lost {
		t.Fatalf("%d events were not published; %+v", n, p.State())
	}
	r := collect(t, b, 1)
	unobserved := 0
	for _, e := range r.events {
		if e.Kind == history.EventClose && e.Why != "" {
			unobserved++
		}
	}
	kinds := r.kinds()
	tail := kinds[max(0, len(kinds)-9):]
	// Both sessions end, come again, and session 1 has one more transaction; at the end of the run both end.
	want := []string{"close", "close", "session", "session", "begin", "stmt", "end", "close", "close"}
	if !slices.Equal(tail, want) || unobserved != 4 || !slices.Equal(r.said, []string{fmt.Sprintf("%d events were lost, since the proxy could not publish them", lost)}) {
		t.Errorf("%v, %d sessions ended; %v", tail, unobserved, r.said)
	}
}

// TestServerEnds: the process with the server ends. The others go on, and nothing is missing or there twice.
func TestServerEnds(t *testing.T) {
	where := bus.Embedded + t.TempDir()
	first := openBus(t, where, bus.Options{})
	second := openBus(t, where, bus.Options{})
	p := publisher(t, second, stream.Options{Run: "r"})
	p.Event(&history.Event{Kind: history.EventSession, Session: 1})
	for txn := uint64(1); txn <= 1000; txn++ {
		if txn == 500 {
			first.Close()
		}
		transaction(p, 1, txn)
	}
	p.Event(&history.Event{Kind: history.EventClose, Session: 1})
	if n := p.Close(patience); n > 0 {
		t.Fatalf("%d events were not published", n)
	}
	r := collect(t, second, 1)
	want := []string{"session"}
	for range 1000 {
		want = append(want, "begin", "stmt", "end")
	}
	if want = append(want, "close"); !slices.Equal(r.kinds(), want) || len(r.said) > 0 {
		t.Errorf("%d events, want %d; %v", len(r.events), len(want), r.said)
	}
}

// TestKeep: who says how much a stream keeps changes that alone of one that is there.
func TestKeep(t *testing.T) {
	b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
	opened := func(keep stream.Keep) jetstream.StreamConfig {
		t.Helper()
		if _, err := stream.NewCollector(t.Context(), b, stream.CollectorOptions{Fleet: "f", Keep: keep}); err != nil {
			t.Fatal(err)
		}
		s, err := b.JetStream().Stream(t.Context(), "wirecheck-f")
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().Config
	}
	if c := opened(stream.Keep{Bytes: 50 << 20}); c.MaxBytes != 50<<20 || c.MaxAge != stream.DefaultAge {
		t.Errorf("a new stream keeps %d bytes for %s", c.MaxBytes, c.MaxAge)
	}
	given := opened(stream.Keep{})
	given.MaxMsgs = 12345 // as with replicas, of which one server has one
	if _, err := b.JetStream().UpdateStream(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if c := opened(stream.Keep{Age: time.Hour}); c.MaxBytes != 50<<20 || c.MaxAge != time.Hour || c.MaxMsgs != 12345 {
		t.Errorf("the stream keeps %d bytes for %s, %d messages", c.MaxBytes, c.MaxAge, c.MaxMsgs)
	}
}

// TestDamaged: a message that cannot be read to its end ends the run's sessions, which is said once; what comes behind it is read.
func TestDamaged(t *testing.T) {
	for name, damage := range map[string]func(*nats.Msg){
		"bytes":  func(m *nats.Msg) { m.Data = m.Data[:len(m.Data)-1] },
		"length": func(m *nats.Msg) { m.Data = binary.AppendUvarint(nil, 1<<31) },
		"text":   func(m *nats.Msg) { m.Data = []byte("hello") },
		"none":   func(*nats.Msg) {},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBus(t, bus.Embedded+t.TempDir(), bus.Options{})
			p := publisher(t, b, stream.Options{Run: "a"})
			p.Event(&history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres"})
			transaction(p, 1, 1)
			published(t, p)
			transaction(p, 1, 2)
			published(t, p)
			s, err := b.JetStream().Stream(t.Context(), "wirecheck-f")
			if err != nil {
				t.Fatal(err)
			}
			last, err := s.GetLastMsgForSubject(t.Context(), "wirecheck.f.events.a")
			if err != nil {
				t.Fatal(err)
			}
			m := &nats.Msg{Subject: last.Subject, Header: nats.Header{}, Data: last.Data}
			m.Header.Set("Wirecheck-Batch", last.Header.Get("Wirecheck-Batch"))
			if err := s.DeleteMsg(t.Context(), last.Sequence); err != nil {
				t.Fatal(err)
			}
			damage(m)
			if _, err := b.JetStream().PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			transaction(p, 1, 3)
			published(t, p)
			r := collect(t, b, 1000)
			damaged := slices.ContainsFunc(r.said, func(what string) bool { return strings.Contains(what, "damaged") })
			closed := slices.ContainsFunc(r.events, func(e history.Event) bool { return e.Kind == history.EventClose })
			begun, want := 0, 2
			for _, e := range r.events {
				if e.Kind == history.EventBegin {
					begun++
				}
			}
			if name == "none" || name == "bytes" { // the end alone is cut off
				want = 3
			}
			if begun != want || damaged != (name != "none") || closed != damaged || len(r.said) > 1 {
				t.Errorf("%d transactions begin, want %d; closed: %t, said: %q", begun, want, closed, r.said)
			}
		})
	}
}

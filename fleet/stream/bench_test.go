package stream_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history"
)

// benchPublisher is a Publisher of eight sessions with the server in the same process.
func benchPublisher(b *testing.B) *stream.Publisher {
	bu, err := bus.Open(b.Context(), bus.Embedded+b.TempDir(), bus.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(bu.Close)
	p, err := stream.NewPublisher(bu, stream.Options{Fleet: "f", Run: "r", Buffer: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if n := p.Close(time.Minute); n > 0 {
			b.Errorf("%d events were not published", n)
		}
	})
	for s := range uint64(8) {
		p.Event(&history.Event{Kind: history.EventSession, Session: s + 1, Engine: "postgres"})
	}
	return p
}

// short hands over a transaction with so many statements, the text of each with a value in it.
func short(take func(*history.Event), n, statements int) {
	session, txn := uint64(n%8+1), uint64(n+1)
	take(&history.Event{Kind: history.EventBegin, Session: session, Txn: txn, At: int64(n)})
	for i := range statements {
		key := fmt.Sprint(n + i)
		take(&history.Event{Kind: history.EventStmt, Session: session, Txn: txn, N: i + 1, SQL: "SELECT abalance FROM pgbench_accounts WHERE aid = " + key, Verb: "select", At: int64(n),
			Accesses: []history.Access{{Op: history.OpRead, Row: history.Row{Table: "public.pgbench_accounts", Key: key}, Name: "aid=" + key, Version: "(1,2)/700", Writer: "x700", Order: 700}}})
	}
	take(&history.Event{Kind: history.EventEnd, Session: session, Txn: txn, Outcome: history.OutcomeCommitted, At: int64(n)})
}

// BenchmarkEvent is what the events of a short transaction cost whoever records them.
func BenchmarkEvent(b *testing.B) {
	p := benchPublisher(b)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		short(p.Event, n, 1)
	}
}

// BenchmarkPaced is the processor time of the process for a transaction of five statements, 400 a second, without and with a Publisher: what it costs where
// there is little else to do, and each message wakes goroutines and threads that sleep.
func BenchmarkPaced(b *testing.B) {
	const rate = 400
	for _, published := range []bool{false, true} {
		b.Run(fmt.Sprint("published=", published), func(b *testing.B) {
			take := func(*history.Event) {}
			if published {
				take = benchPublisher(b).Event
			}
			tick := time.NewTicker(time.Second / rate)
			defer tick.Stop()
			n, before := 0, processorTime(b)
			for ; b.Loop(); n++ {
				<-tick.C
				short(take, n, 5)
			}
			b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/1e3/float64(n), "cpu-us/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

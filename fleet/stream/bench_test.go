package stream_test

import (
	"fmt"
	"testing"
	"time"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/history"
)

// BenchmarkEvent is what an event of a short transaction costs whoever records it.
func BenchmarkEvent(b *testing.B) {
	where := bus.Embedded + b.TempDir()
	bu, err := bus.Open(b.Context(), where, bus.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer bu.Close()
	p, err := stream.NewPublisher(bu, stream.Options{Fleet: "f", Run: "r", Buffer: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	for s := range uint64(8) {
		p.Event(&history.Event{Kind: history.EventSession, Session: s + 1, Engine: "postgres"})
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		session, txn := uint64(n%8+1), uint64(n+1)
		p.Event(&history.Event{Kind: history.EventBegin, Session: session, Txn: txn, At: int64(n)})
		p.Event(&history.Event{Kind: history.EventStmt, Session: session, Txn: txn, N: 1, SQL: "SELECT abalance FROM pgbench_accounts WHERE aid = $1", Params: fmt.Sprint(n), At: int64(n),
			Accesses: []history.Access{{Op: history.OpRead, Row: history.Row{Table: "public.pgbench_accounts", Key: fmt.Sprint(n)}, Name: fmt.Sprint("public.pgbench_accounts aid=", n), Version: "(1,2)/700", Writer: "700", Order: 700}}})
		p.Event(&history.Event{Kind: history.EventEnd, Session: session, Txn: txn, Outcome: history.OutcomeCommitted, At: int64(n)})
	}
	b.StopTimer()
	if n := p.Close(time.Minute); n > 0 {
		b.Errorf("%d events were not published", n)
	}
}

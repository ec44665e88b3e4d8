package sieve

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
)

// random is a history of transactions of which some read what is old, and one table of which is chosen by conditions. order says that all places are told.
func random(rng *rand.Rand) (events []history.Event) {
	type txn struct{ id, session, left, n int }
	type place struct {
		version, writer int
	}
	rows := make([][]place, 4+rng.IntN(4))
	var open []*txn
	tick, id := uint64(0), 0
	add := func(t *txn, e history.Event) {
		tick += 2
		e.Session, e.Txn, e.From, e.To = uint64(t.session), uint64(t.id), tick-1, tick
		events = append(events, e)
	}
	for range 3 + rng.IntN(40) {
		id++
		t := &txn{id: id, session: id, left: 1 + rng.IntN(4)}
		open = append(open, t)
		add(t, history.Event{Kind: history.EventBegin, Level: "read committed", Tokens: []string{fmt.Sprint("T", id)}})
		for len(open) > 0 && (len(open) > 2 || rng.IntN(3) > 0) {
			i := rng.IntN(len(open))
			t := open[i]
			if t.left--; t.left < 0 {
				add(t, history.Event{Kind: history.EventEnd, Outcome: history.OutcomeCommitted, Sent: tick})
				open = append(open[:i:i], open[i+1:]...)
				continue
			}
			t.n++
			k := rng.IntN(len(rows))
			e := history.Event{Kind: history.EventStmt, N: t.n, Verb: "select", Coverage: history.CoverageExact}
			a := history.Access{Op: history.OpRead, Row: history.Row{Table: "t", Key: fmt.Sprint(k)}, Order: uint64(len(rows[k]) + 1)}
			last := place{}
			if n := len(rows[k]); n > 0 {
				last = rows[k][n-1]
				if rng.IntN(10) == 0 && n > 1 {
					last, a.Order = rows[k][n-2], uint64(n)
				}
			}
			a.Version = fmt.Sprint("v", last.version)
			if last.writer > 0 && last.writer != t.id {
				a.Writer = fmt.Sprint("T", last.writer)
			}
			switch rng.IntN(6) {
			case 0, 1:
				rows[k] = append(rows[k], place{t.id*100 + t.n, t.id})
				a.Op, a.Version, a.Writer, a.Order = history.OpUpdate, fmt.Sprint("v", t.id*100+t.n), "", uint64(len(rows[k])+1)
			case 2:
				a = history.Access{Op: history.OpInsert, Row: history.Row{Table: "asked", Key: fmt.Sprint(tick)}, Version: "new", Order: 2, Image: fmt.Sprintf("room %d", rng.IntN(3))}
			case 3:
				e.Predicate, e.Reads = true, []history.PredicateRead{{Table: "asked", Where: fmt.Sprintf("(= number room %d)", rng.IntN(3)), From: tick + 1, To: tick + 2}}
			}
			if !e.Predicate {
				e.Accesses = []history.Access{a}
			}
			add(t, e)
		}
	}
	return events
}

func judge(events []history.Event, only func(uint64) bool) string {
	c := isolation.New(isolation.Options{Keep: -1, Only: only})
	for i := range events {
		c.Add(&events[i])
	}
	out := c.Broken()
	for _, f := range c.Summary() {
		out += fmt.Sprintf("%+v\n", f)
	}
	return out
}

// TestKinds: a sieve that leaves out a kind of edges loses findings, and one that leaves out none does not.
func TestKinds(t *testing.T) {
	lost := map[kind]int{}
	for seed := range uint64(400) {
		events := random(rand.New(rand.NewPCG(seed, 1)))
		want := judge(events, nil)
		for _, without := range []kind{0, ww, wr, rw, overConditions} {
			s := New(Options{})
			s.meeting.without = without
			for i := range events {
				s.Add(&events[i])
			}
			r := s.Judge()
			if r.All != "" {
				t.Fatal(r.All)
			}
			if judge(events, r.Suspect) != want {
				lost[without]++
			}
		}
	}
	t.Log(lost)
	if lost[0] > 0 {
		t.Errorf("%d histories lose findings with all kinds of edges", lost[0])
	}
	for _, without := range []kind{ww, wr, rw, overConditions} {
		if lost[without] == 0 {
			t.Errorf("no history shows that edges of kind %d are left out: the test has lost its force", without)
		}
	}
}

// TestSuspects: nothing is suspect where nothing comes back, and of a long history only what does.
func TestSuspects(t *testing.T) {
	for _, stale := range []bool{false, true} {
		s := New(Options{Ordered: true})
		tick := uint64(0)
		for i := range 1000 {
			version := i
			id := uint64(i + 1)
			for _, e := range []history.Event{
				{Kind: history.EventBegin, Session: 1 + id%7, Level: "serializable", Tokens: []string{fmt.Sprint("T", id)}},
				{Kind: history.EventStmt, N: 1, Accesses: []history.Access{{Op: history.OpRead, Row: history.Row{Table: "t", Key: "1"}, Version: fmt.Sprint(version), Order: uint64(version + 1)}}},
				{Kind: history.EventStmt, N: 2, Accesses: []history.Access{{Op: history.OpUpdate, Row: history.Row{Table: "t", Key: "1"}, Version: fmt.Sprint(i + 1), Prev: fmt.Sprint(i), Order: uint64(i + 2), PrevOrder: uint64(i + 1)}}},
				{Kind: history.EventEnd, Outcome: history.OutcomeCommitted},
			} {
				if stale && i == 500 && e.N == 1 {
					e.Accesses[0].Version, e.Accesses[0].Order = "498", 499 // the transaction before replaced it
				}
				tick++
				e.Session, e.Txn, e.From, e.To = 1+id%7, id, tick, tick
				s.Add(&e)
			}
		}
		r := s.Judge()
		want := map[bool]int{true: 3, false: 0}[stale]
		if r.All != "" || r.Suspects != want || r.Suspect(500) != stale || r.Suspect(400) {
			t.Errorf("stale %v: %+v", stale, r)
		}
	}
}

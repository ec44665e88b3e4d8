package sieve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/history"
)

// TestTangle: cycles are found as in all of the graph, whatever the order of ends, the clocks and what has not ended.
func TestTangle(t *testing.T) {
	left, none := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		o := Options{Ordered: seed%4 > 0}
		clocks := 1 + rng.IntN(2)*rng.IntN(2)
		o.Recorder = func(session uint64) int { return int(session) % clocks }
		s := New(o)
		var events []history.Event
		for _, e := range random(rng) {
			switch {
			case e.Predicate && seed%8 > 0: // its table would be one component
			case e.Kind == history.EventEnd && rng.IntN(40) == 0: // it does not end
			default:
				events = append(events, e)
			}
		}
		for i := range events {
			e := &events[i]
			e.Session = 1 + e.Txn%7
			switch rng.IntN(30) {
			case 0:
				e.From += uint64(rng.IntN(40 << rng.IntN(4)))
			case 1:
				e.To -= min(e.To, uint64(rng.IntN(40<<rng.IntN(4))))
			case 2:
				if k := max(0, i-rng.IntN(6)); e.Kind == history.EventEnd && !slices.ContainsFunc(events[k:i], func(o history.Event) bool { return o.Txn == e.Txn }) {
					events[k], events[i] = events[i], events[k]
				}
			}
		}
		for i := range events {
			s.Add(&events[i])
		}
		if s.Judge(); s.why != "" {
			continue
		}
		look := func(g *graph) string {
			in := make([]bool, len(s.txns.id))
			cycles := g.suspects(&s.txns, in, nil)
			return fmt.Sprint(cycles, in)
		}
		g, whole := s.graph(), &graph{nodes: uint32(len(s.txns.id)), use: &s.meeting.edges}
		s.asked(whole)
		if o.Ordered {
			s.meeting.order(whole)
		}
		if a, b := look(g), look(whole); a != b {
			t.Fatalf("seed %d: %s\nin all of the graph\n%s\nonly %v", seed, a, b, g.only)
		}
		if g.only == nil {
			continue
		}
		if slices.Contains(g.only, false) {
			left++
		}
		if !slices.Contains(g.only, true) {
			none++
		}
	}
	t.Log(left, none)
	if left < 600 || none < 20 {
		t.Errorf("in %d histories something is left out, and in %d all: the histories prove little", left, none)
	}
}

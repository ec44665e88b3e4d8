package level

import (
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/anomaly"
)

// mixed reports whether the transactions of a model can be put in an order in which each gets what it asked for: a snapshot has a start and a
// commit, all others happen at one point.
func (m *model) mixed(own []Own) bool {
	n := len(m.txns)
	started, done := make([]bool, n), make([]bool, n)
	start := func(t int) bool {
		for u := range m.txns {
			if !done[u] && m.ww(u, t) {
				return false // it comes after u
			}
		}
		if own[t] < OwnPL2 {
			return true
		}
		for _, o := range m.ops[t] {
			if o.write {
				continue
			}
			if o.from >= 0 && !done[o.from] {
				return false // what it read is not committed
			}
			for _, u := range m.rows[o.row][m.place(o.row, o.from)+1:] {
				if u != t && own[t] >= OwnPL299 && done[u] {
					return false // it read what is not the latest
				}
			}
		}
		return true
	}
	var try func(left int) bool
	try = func(left int) bool {
		if left == 0 {
			return true
		}
		for t := range m.txns {
			switch {
			case started[t] && !done[t]:
				done[t] = true
				if try(left - 1) {
					return true
				}
				done[t] = false
			case !started[t] && start(t):
				started[t], done[t] = true, own[t] != OwnSnapshot
				if try(left - 1) {
					return true
				}
				started[t], done[t] = false, false
			}
		}
		return false
	}
	points := n
	for _, o := range own {
		if o == OwnSnapshot {
			points++
		}
	}
	return try(points)
}

// TestMixed compares with brute force over all orders, and where all ask for the same with the level itself.
func TestMixed(t *testing.T) {
	count := map[bool]int{}
	levels := []Own{OwnPL1, OwnPL2, OwnPL299, OwnSnapshot, OwnPL3}
	for seed := range uint64(4 * *cases) {
		rng := rand.New(rand.NewPCG(seed, 6))
		m := random(rng)
		own := make([]Own, len(m.txns))
		same := seed%4 == 0
		for i := range own {
			if own[i] = levels[rng.IntN(len(levels))]; same {
				own[i] = own[0]
			}
			m.txns[i].Own = own[i]
		}
		g := m.graph()
		got, want := g.Mixed(), m.mixed(own)
		if (got.State == Satisfied) != want {
			t.Fatalf("seed %d: %v, brute force says %v\n%v\n%v\nrows %v", seed, got.State, want, own, m.ops, m.rows)
		}
		if l, err := Parse(own[0].level()); same && (err != nil || g.Decide(l).State != got.State) {
			t.Fatalf("seed %d: all at %s: %s, %v", seed, own[0].level(), got.State, err)
		}
		if !same {
			count[want]++
		}
	}
	if count[true] < 50 || count[false] < 50 {
		t.Errorf("%v: the test has lost its force", count)
	}
}

// TestMixedEdges: a dependency counts if it matters to the level of the transaction that has a right to it.
func TestMixedEdges(t *testing.T) {
	type edges []Edge
	skew := edges{{From: 1, To: 2, Kind: RW}, {From: 2, To: 1, Kind: RW}}
	stale := edges{{From: 1, To: 2, Kind: RW}, {From: 2, To: 1, Kind: WR}}
	lost := edges{{From: 1, To: 2, Kind: RW}, {From: 2, To: 1, Kind: WW}}
	flow := edges{{From: 1, To: 2, Kind: WR}, {From: 2, To: 1, Kind: WW}}
	phantom := edges{{From: 1, To: 2, Kind: RW, Predicate: true}, {From: 2, To: 1, Kind: WR}}
	for _, tt := range []struct {
		name  string
		edges edges
		own   [2]Own
		want  State
	}{
		{"write skew, both PL-3", skew, [2]Own{OwnPL3, OwnPL3}, Broken},
		{"write skew, one PL-2", skew, [2]Own{OwnPL3, OwnPL2}, Satisfied},
		{"write skew, one in a snapshot", skew, [2]Own{OwnPL3, OwnSnapshot}, Satisfied},
		{"write skew, PL-2.99 and PL-3", skew, [2]Own{OwnPL299, OwnPL3}, Broken},
		{"stale read at PL-3 beside PL-1", stale, [2]Own{OwnPL3, OwnPL1}, Broken},
		{"stale read at PL-2 beside PL-3", stale, [2]Own{OwnPL2, OwnPL3}, Satisfied},
		{"stale read in a snapshot beside PL-1", stale, [2]Own{OwnSnapshot, OwnPL1}, Broken},
		{"lost update at PL-2.99 beside PL-1", lost, [2]Own{OwnPL299, OwnPL1}, Broken},
		{"lost update at PL-1 beside PL-3", lost, [2]Own{OwnPL1, OwnPL3}, Satisfied},
		{"circular flow, the reader at PL-2", flow, [2]Own{OwnPL1, OwnPL2}, Broken},
		{"circular flow, the reader at PL-1", flow, [2]Own{OwnPL3, OwnPL1}, Satisfied},
		{"phantom at PL-2.99", phantom, [2]Own{OwnPL299, OwnPL3}, Satisfied},
		{"phantom at PL-3", phantom, [2]Own{OwnPL3, OwnPL2}, Broken},
		{"one level is not known", skew, [2]Own{OwnPL3, OwnUnknown}, Unknown},
		{"one level is not known, and it does not matter", stale, [2]Own{OwnPL3, OwnUnknown}, Broken},
	} {
		g := NewGraph()
		for i, o := range tt.own {
			g.AddTxn(Txn{ID: uint64(i + 1), Session: uint64(i + 1), Own: o})
		}
		for _, e := range tt.edges {
			g.AddEdge(e)
		}
		if v := g.Mixed(); v.State != tt.want || (v.State == Broken) != (v.Witness != nil) {
			t.Errorf("%s: %+v, want %s", tt.name, v, tt.want)
		}
	}
	for own, want := range map[Own]State{OwnPL1: Satisfied, OwnPL2: Broken, OwnPL3: Broken} { // of the reader
		g := NewGraph()
		g.AddTxn(Txn{ID: 2, Own: own})
		g.AddFact(Fact{Class: anomaly.G1a, Txns: []uint64{1, 2}})
		if v := g.Mixed(); v.State != want {
			t.Errorf("an aborted read at %s: %s", own.level(), v.State)
		}
	}
	if slices.Contains(NewGraph().Own(), OwnUnknown) {
		t.Error("an empty history has a level")
	}
}

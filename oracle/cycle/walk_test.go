package cycle

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// nodes makes a graph of transactions without edges.
func nodes(n int) *Graph {
	g := New(n, 0)
	for i := range n {
		g.Add(uint64(i + 1))
	}
	return g
}

// draw draws an edge.
func (g *Graph) draw(k Kinds, from, to uint32) {
	if from == to {
		return
	}
	g.Backward = g.Backward || k != RW && g.ended[from] > g.ended[to]
	for i, x := range g.Out(from) {
		if x.Node() == to {
			in := slices.IndexFunc(g.In(to), func(a Arc) bool { return a.Node() == from })
			g.Set(from, uint32(i), to, uint32(in), x.Kinds()|k)
			return
		}
	}
	g.Join(from, to, k)
}

// forward is the search that Look has to agree with: breadth first from the beginning alone.
func forward(g *Graph, s uint32, a *Automaton) []Hop {
	type place struct {
		node  uint32
		state uint8
	}
	type entry struct {
		place
		way []Hop
	}
	seen := map[place]bool{}
	q := []entry{{place{s, a.start}, nil}}
	for i := 0; i < len(q); i++ {
		at := q[i]
		for n, x := range g.Out(at.node) {
			for _, rw := range [2]bool{false, true} {
				if k := x.Kinds() & a.mask; rw && k&RW == 0 || !rw && k&^RW == 0 {
					continue
				}
				state, ok := a.next(at.state, rw)
				if !ok {
					continue
				}
				way := append(slices.Clone(at.way), Hop{at.node, uint32(n), rw})
				if x.Node() == s && a.final[state] {
					return way
				}
				if next := (place{x.Node(), state}); x.Node() != s && !seen[next] {
					seen[next] = true
					q = append(q, entry{next, way})
				}
			}
		}
	}
	return nil
}

// TestWalkAsForward: searching from both ends finds the very walk that searching from the beginning finds, for every class.
func TestWalkAsForward(t *testing.T) {
	found, none, accepted := 0, 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 15))
		g := nodes(3 + rng.IntN(12))
		n := len(g.nodes)
		type drawn struct {
			k        Kinds
			from, to uint32
		}
		var all []drawn
		for range n * (1 + rng.IntN(3)) {
			from, to := uint32(rng.IntN(n)), uint32(rng.IntN(n))
			kind := []Kinds{WW, WR, RW, RW, SO}[rng.IntN(5)]
			if seed%2 == 0 && kind != RW && from > to { // as a recorder tells them
				from, to = to, from
			}
			all = append(all, drawn{kind, from, to})
			g.draw(kind, from, to)
		}
		if seed%5 == 0 { // as forgetting leaves it
			gone, numbers := uint32(rng.IntN(n)), map[uint32]uint32{}
			g.Clear()
			for old := range uint32(n) {
				if old != gone {
					numbers[old] = g.Add(uint64(old + 1))
				}
			}
			for _, e := range all {
				from, here := numbers[e.from]
				if to, also := numbers[e.to]; here && also {
					g.draw(e.k, from, to)
				}
			}
		}
		for _, cl := range Classes {
			for _, a := range cl.Walks {
				s := uint32(rng.IntN(len(g.nodes)))
				want := forward(g, s, &a)
				got, _ := g.Look(s, &a, Unbounded)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s: got %v, want %v", seed, cl.Class, got, want)
				}
				all := Any(Data | SO | RT)
				if any, _ := g.Look(s, &all, Unbounded); g.Accepts(&a, any) && !slices.Equal(any, want) {
					t.Fatalf("seed %d, %s: the shortest cycle %v is accepted, and the search finds %v", seed, cl.Class, any, want)
				} else if any != nil && g.Accepts(&a, any) {
					accepted++
				}
				if found++; got == nil {
					none, found = none+1, found-1
				}
			}
		}
	}
	if found < 500 || none < 500 || accepted < 100 {
		t.Errorf("%d walks were found, %d were not, %d were the shortest of all: the test does not test much", found, none, accepted)
	}
}

// TestWalkIsLocal: what a search visits depends on the length of the cycle, not on how much follows what was overwritten.
func TestWalkIsLocal(t *testing.T) {
	for _, far := range []int{100, 20_000} {
		g := nodes(far + 3)
		reader, writer, between := uint32(far), uint32(far+1), uint32(far+2)
		g.Join(reader, writer, RW)
		for i := range far { // all that follows the writer
			from := writer
			if i > 0 {
				from = uint32(i-1) / 2
			}
			g.Join(from, uint32(i), WR)
		}
		g.Join(writer, between, WR)
		g.Join(between, reader, WR)
		a := Any(Data)
		if p, _ := g.Look(reader, &a, Unbounded); len(p) != 3 {
			t.Errorf("found %v, want a cycle of three", p)
		}
		if n := cap(g.ahead) + cap(g.back); n > 50 {
			t.Errorf("with %d transactions behind the writer, the search had room for %d visits", far, n)
		}
	}
}

// TestWalkBound: a bounded search ends, and finds what is near.
func TestWalkBound(t *testing.T) {
	g, a := nodes(100), Any(Data)
	for i := range uint32(100) {
		g.Join(i, (i+1)%100, WR)
	}
	if p, whole := g.Look(0, &a, 50); p != nil || whole {
		t.Errorf("a search of 50 visits found a cycle of %d", len(p))
	}
	g.Join(3, 0, RW)
	if p, _ := g.Look(0, &a, 50); len(p) != 4 {
		t.Errorf("found %v, want the near cycle of four", p)
	}
}

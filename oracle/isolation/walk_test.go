package isolation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/product"
)

// nodes makes committed transactions without edges.
func nodes(n int) []*txn {
	s := &session{dbms: product.Of("")}
	list := make([]*txn, n)
	for i := range list {
		list[i] = &txn{id: uint64(i + 1), end: uint64(i + 1), session: s, state: stateCommitted}
	}
	return list
}

// forward is the search that walk has to agree with: breadth first from the beginning alone.
func forward(s *txn, a automaton) []step {
	type place struct {
		t     *txn
		state uint8
	}
	type entry struct {
		place
		way []step
	}
	seen := map[place]bool{}
	q := []entry{{place{s, a.start}, nil}}
	for i := 0; i < len(q); i++ {
		at := q[i]
		for _, l := range at.t.out {
			for _, rw := range [2]bool{false, true} {
				if k := l.kinds & a.mask; rw && k&edgeRW == 0 || !rw && k&^edgeRW == 0 {
					continue
				}
				state, ok := a.next(at.state, rw)
				if !ok {
					continue
				}
				way := append(slices.Clone(at.way), step{at.t, l, rw})
				if l.to == s && a.final[state] {
					return way
				}
				if next := (place{l.to, state}); l.to != s && !seen[next] {
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
		var g graph
		list := nodes(3 + rng.IntN(12))
		for range len(list) * (1 + rng.IntN(3)) {
			from, to := list[rng.IntN(len(list))], list[rng.IntN(len(list))]
			kind := []kinds{edgeWW, edgeWR, edgeRW, edgeRW, edgeSO}[rng.IntN(5)]
			if seed%2 == 0 && kind != edgeRW && from.end > to.end { // as a recorder tells them
				from, to = to, from
			}
			g.addEdge(kind, from, to, nil, nil, -1, -1)
		}
		if seed%5 == 0 { // as forgetting leaves it: links from what is forgotten stay
			list[rng.IntN(len(list))].gone = true
			g.renumber()
		}
		for _, cl := range classWalks {
			for _, a := range cl.walks {
				s := list[rng.IntN(len(list))]
				if s.gone {
					continue
				}
				want := forward(s, a)
				got := g.walk(s, a, unbounded)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s: got %v, want %v", seed, cl.class, got, want)
				}
				if any := g.walk(s, anyCycle(edgeData|edgeSO|edgeRT), unbounded); a.accepts(any) && !slices.Equal(any, want) {
					t.Fatalf("seed %d, %s: the shortest cycle %v is accepted, and the search finds %v", seed, cl.class, any, want)
				} else if any != nil && a.accepts(any) {
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
		var g graph
		list := nodes(far + 3)
		reader, writer, between := list[far], list[far+1], list[far+2]
		g.addEdge(edgeRW, reader, writer, nil, nil, -1, -1)
		for i, x := range list[:far] { // all that follows the writer
			from := writer
			if i > 0 {
				from = list[(i-1)/2]
			}
			g.addEdge(edgeWR, from, x, nil, nil, -1, -1)
		}
		g.addEdge(edgeWR, writer, between, nil, nil, -1, -1)
		g.addEdge(edgeWR, between, reader, nil, nil, -1, -1)
		if p := g.walk(reader, anyCycle(edgeData), unbounded); len(p) != 3 {
			t.Errorf("found %v, want a cycle of three", p)
		}
		if n := cap(g.ahead) + cap(g.back); n > 50 {
			t.Errorf("with %d transactions behind the writer, the search had room for %d visits", far, n)
		}
	}
}

// TestWalkBound: a bounded search ends, and finds what is near.
func TestWalkBound(t *testing.T) {
	var g graph
	list := nodes(100)
	for i, x := range list {
		g.addEdge(edgeWR, x, list[(i+1)%len(list)], nil, nil, -1, -1)
	}
	if p := g.walk(list[0], anyCycle(edgeData), 50); p != nil {
		t.Errorf("a search of 50 visits found a cycle of %d", len(p))
	}
	g.addEdge(edgeRW, list[3], list[0], nil, nil, -1, -1)
	if p := g.walk(list[0], anyCycle(edgeData), 50); len(p) != 4 {
		t.Errorf("found %v, want the near cycle of four", p)
	}
}

// TestNear: what is reported does not depend on whether the shortest cycle of all is found before the classes are looked for.
func TestNear(t *testing.T) {
	found := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 17))
		d := newToy(rng.IntN, 2+rng.IntN(4), 2+rng.IntN(12))
		for range 40 + rng.IntN(160) {
			d.step()
		}
		events, opts := garnish(rng, d), randomOptions(rng)
		opts.Keep = -1
		said := map[int]string{}
		for _, near := range []int{0, unbounded} {
			c := New(opts)
			c.near = near
			for i := range events {
				for _, f := range c.Add(&events[i]) {
					said[near] += fmt.Sprintf("%+v\n", f)
				}
			}
			if found += len(c.order); c.Broken() != "" {
				t.Fatal(c.Broken())
			}
		}
		if said[0] != said[unbounded] {
			t.Fatalf("seed %d, %+v: found first\n%s\nnot found first\n%s\n%s", seed, opts.Options(), said[unbounded], said[0], written(events))
		}
	}
	if found < 500 {
		t.Errorf("%d findings: the histories prove little", found)
	}
}

package sieve

import (
	"slices"

	"wirecheck/oracle/cycle"
)

// graph is what strongly connected components are looked for in. Its first nodes are the transactions.
type graph struct {
	nodes uint32
	edges pile[[2]uint32]
	use   *pile[[2]uint32] // more edges
	only  []bool           // transactions that can be in a cycle; nil: all can, see tangle
	list  []uint32         // transactions in the order of which tangle knows that all edges but those between such ones lead onward; nil: there is none
	of    []uint32         // see components; nil: no cycle was looked for
}

// counts reports whether a transaction can be in a cycle.
func (g *graph) counts(n uint32) bool { return g.only == nil || g.only[n] }

func (g *graph) edge(from, to uint32) {
	if from != to {
		g.edges.add([2]uint32{from, to})
	}
}

// components numbers the strongly connected components, those first to which others lead.
func (g *graph) components() (of []uint32) {
	n := g.nodes
	first := make([]uint32, n+1)
	each := func(f func(from, to uint32)) {
		for _, e := range g.edges.all {
			f(e[0], e[1])
		}
		if g.use != nil {
			for _, e := range g.use.all {
				if g.counts(e[0]) && g.counts(e[1]) {
					f(e[0], e[1])
				}
			}
		}
	}
	each(func(from, _ uint32) { first[from+1]++ })
	for i := range n {
		first[i+1] += first[i]
	}
	to, next := make([]uint32, first[n]), slices.Clone(first[:n])
	each(func(a, b uint32) {
		to[next[a]] = b
		next[a]++
	})
	of = make([]uint32, n)
	count := uint32(0)
	cycle.Components(int(n), cycle.All(int(n)), func(v, k int32) (int32, bool) {
		if at := first[v] + uint32(k); at < first[v+1] {
			return int32(to[at]), true
		}
		return 0, false
	}, func(nodes []int32) {
		for _, v := range nodes {
			of[v] = count
		}
		count++
	})
	g.of = of
	return of
}

package sieve

import "slices"

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

// components numbers the strongly connected components, those first to which others lead (Tarjan 1972, without recursion).
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
	copy(next, first)
	of = make([]uint32, n)
	number, low := make([]uint32, n), make([]uint32, n) // one more than the number; 0: not met
	var stack, path []uint32
	met, count := uint32(0), uint32(0)
	for root := range n {
		if number[root] != 0 {
			continue
		}
		path = append(path, root)
		for len(path) > 0 {
			v := path[len(path)-1]
			if number[v] == 0 {
				met++
				number[v], low[v], of[v] = met, met, none
				stack = append(stack, v)
			}
			deeper := false
			for next[v] < first[v+1] {
				w := to[next[v]]
				next[v]++
				if number[w] == 0 {
					path, deeper = append(path, w), true
					break
				}
				if of[w] == none {
					low[v] = min(low[v], number[w])
				}
			}
			if deeper {
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				p := path[len(path)-1]
				low[p] = min(low[p], low[v])
			}
			if low[v] != number[v] {
				continue
			}
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				of[w] = count
				if w == v {
					break
				}
			}
			count++
		}
	}
	g.of = of
	return of
}

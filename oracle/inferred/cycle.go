package inferred

import (
	"slices"

	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/oracle/cycle"
)

const (
	g1a = anomaly.G1a
	g1b = anomaly.G1b
)

// link is all edges from one transaction to another one.
type link struct {
	to    int32
	kinds kinds
	edge  int32 // the first one, in graph.edges
	count int32
}

// graph has the links of each transaction, as links[at[t]:at[t+1]].
type graph struct {
	edges []edge
	at    []int32
	links []link
	// searches
	mark  []uint32 // by state and transaction
	epoch uint32
	queue []visit
	left  int // steps that searches may still take
}

type visit struct {
	t, parent int32
	link      int32
	state     uint8
	rw        bool
}

// mostSteps bounds the searches for the shortest cycles.
const mostSteps = 300_000_000

func newGraph(n int, edges []edge) *graph {
	g := &graph{left: mostSteps, at: make([]int32, n+1), edges: make([]edge, len(edges))}
	// Sorted by from and to, by counting: first by to, then stably by from.
	byTo := bucket(n, edges, func(e *edge) int32 { return e.to })
	g.edges = bucket(n, byTo, func(e *edge) int32 { return e.from })
	for i := range g.edges {
		e := &g.edges[i]
		if last := len(g.links) - 1; i > 0 && g.edges[i-1].from == e.from && g.links[last].to == e.to {
			g.links[last].kinds |= e.kind
			g.links[last].count++
			continue
		}
		g.links = append(g.links, link{e.to, e.kind, int32(i), 1})
		g.at[e.from+1]++
	}
	for t := range n {
		g.at[t+1] += g.at[t]
	}
	g.mark = make([]uint32, states*n)
	return g
}

func bucket(n int, edges []edge, by func(*edge) int32) []edge {
	at := make([]int32, n+1)
	for i := range edges {
		at[by(&edges[i])+1]++
	}
	for t := range n {
		at[t+1] += at[t]
	}
	out := make([]edge, len(edges))
	for i := range edges {
		k := by(&edges[i])
		out[at[k]] = edges[i]
		at[k]++
	}
	return out
}

// components finds the strongly connected components of more than one transaction among those that in allows.
func (g *graph) components(nodes []int32, mask kinds, in func(t int32) bool) (list [][]int32) {
	cycle.Components(len(g.at)-1, slices.Values(nodes), func(t, k int32) (int32, bool) {
		if k += g.at[t]; k >= g.at[t+1] {
			return 0, false
		}
		if l := &g.links[k]; l.kinds&mask != 0 && in(l.to) {
			return l.to, true
		}
		return -1, true
	}, func(nodes []int32) {
		if len(nodes) > 1 {
			list = append(list, slices.Clone(nodes))
		}
	})
	return list
}

// shape says which closed walks a class of cycles consists of. A state counts rw edges up to two, and says whether the last one was one.
type shape struct {
	class oracle.Class
	mask  kinds // edges besides rw
	first kinds // the kind of edge that the walk begins with
	rws   uint8 // how many rw edges: 0, 1, or 2 for two and more
	apart bool  // no two rw edges follow one another
}

const states = 6

var shapes = []shape{
	{class: anomaly.G0, mask: ww, first: ww},
	{class: anomaly.G1c, mask: ww | wr, first: wr},
	{class: anomaly.GSingle, mask: ww | wr, first: rw, rws: 1},
	{class: anomaly.GNonadjacent, mask: ww | wr, first: rw, rws: 2, apart: true},
	{class: anomaly.G2Item, mask: ww | wr, first: rw, rws: 2},
}

// implies reports whether a cycle of class a makes one of class b needless to report: Elle's list of implied anomalies.
func implies(a, b int) bool { return a == b || a == 0 && b == 1 || a >= 2 && b >= a }

var variants = []struct {
	suffix oracle.Class
	mask   kinds
}{{"", 0}, {anomaly.SuffixProcess, so}, {anomaly.SuffixRealtime, so | rt}}

// hop is one edge of a cycle.
type hop struct {
	from, link int32
	rw         bool
}

// cycles reports one shortest cycle of each class for each strongly connected component, as Elle does.
func (c *checker) cycles() {
	g := newGraph(len(c.h.Transactions), c.edges)
	all := make([]int32, len(c.h.Transactions))
	for i := range all {
		all[i] = int32(i)
	}
	data := ww | wr | rw
	for _, scc := range g.components(all, data|so|rt, func(int32) bool { return true }) {
		c.component(g, scc)
	}
	if g.left <= 0 {
		c.doubt("the search for cycles ended early")
	}
}

func (c *checker) component(g *graph, scc []int32) {
	member := make(map[int32]bool, len(scc))
	for _, t := range scc {
		member[t] = true
	}
	type kind struct{ variant, shape int }
	var had []kind
	for v, variant := range variants {
		for s := range shapes {
			implied := false
			for _, k := range had {
				implied = implied || k.variant <= v && implies(k.shape, s)
			}
			if implied {
				continue
			}
			sh := shapes[s]
			sh.mask |= variant.mask
			if sh.class == anomaly.G0 {
				sh.first = ww
			}
			if found := g.shortest(scc, member, sh); found != nil {
				had = append(had, kind{v, s})
				c.reportCycle(g, found, sh, variant.suffix)
			}
		}
	}
	if len(had) == 0 {
		c.doubt("a cycle exists that could not be classified")
	}
}

// shortest finds the shortest cycle of a shape in a component; nil if there is none.
func (g *graph) shortest(scc []int32, member map[int32]bool, sh shape) (best []hop) {
	all := sh.mask
	if sh.rws > 0 {
		all |= rw
	}
	for _, part := range g.components(scc, all, func(t int32) bool { return member[t] }) {
		in := make(map[int32]bool, len(part))
		for _, t := range part {
			in[t] = true
		}
		for _, t := range part {
			for i := g.at[t]; i < g.at[t+1]; i++ {
				if l := &g.links[i]; l.kinds&sh.first == 0 || !in[l.to] {
					continue
				}
				if found := g.walk(t, i, in, sh, len(best)); found != nil {
					best = found
				}
				if len(best) == 2 || best == nil && g.left <= 0 || g.left < mostSteps/2 && best != nil {
					return best
				}
			}
		}
	}
	return best
}

// walk finds the shortest cycle that begins with a link, breadth first; nil if there is none shorter than limit (0: any).
func (g *graph) walk(start, first int32, in map[int32]bool, sh shape, limit int) []hop {
	g.epoch++
	n := int32(len(g.at) - 1)
	begin := visit{t: g.links[first].to, parent: none, link: first, rw: sh.first == rw}
	if begin.rw {
		begin.state = 1
	}
	q := append(g.queue[:0], begin)
	defer func() { g.queue = q[:0] }()
	g.mark[int32(sh.state(begin.state, begin.rw))*n+begin.t] = g.epoch
	depth, levelEnd := 1, 1
	for i := 0; i < len(q) && g.left > 0; i++ {
		if i == levelEnd {
			depth, levelEnd = depth+1, len(q)
		}
		if limit > 0 && depth+1 >= limit {
			return nil
		}
		at := q[i]
		for k := g.at[at.t]; k < g.at[at.t+1]; k++ {
			g.left--
			l := &g.links[k]
			if !in[l.to] {
				continue
			}
			for _, isRW := range [2]bool{false, true} {
				if isRW && l.kinds&rw == 0 || !isRW && l.kinds&sh.mask == 0 || isRW && sh.apart && (at.rw || l.to == start) || isRW && sh.rws <= at.state && sh.rws < 2 {
					continue
				}
				state := at.state
				if isRW {
					state = min(state+1, 2)
				}
				next := visit{t: l.to, parent: int32(i), link: k, state: state, rw: isRW}
				if l.to == start {
					if state == sh.rws {
						if cycle := g.path(q, next, start); cycle != nil {
							return cycle
						}
					}
					continue
				}
				if m := &g.mark[int32(sh.state(state, isRW))*n+l.to]; *m != g.epoch {
					*m = g.epoch
					q = append(q, next)
				}
			}
		}
	}
	return nil
}

// state numbers the states that a search keeps apart.
func (sh *shape) state(rws uint8, last bool) uint8 {
	if sh.apart && last {
		return rws + 3
	}
	return rws
}

// path follows the parents back; nil if the walk passes a transaction twice.
func (g *graph) path(q []visit, last visit, start int32) []hop {
	var out []hop
	seen := map[int32]bool{}
	for v := last; ; v = q[v.parent] {
		from := start
		if v.parent != none {
			from = q[v.parent].t
		}
		if seen[v.t] {
			return nil
		}
		seen[v.t] = true
		out = append(out, hop{from, v.link, v.rw})
		if v.parent == none {
			break
		}
	}
	for i, k := 0, len(out)-1; i < k; i, k = i+1, k-1 {
		out[i], out[k] = out[k], out[i]
	}
	return out
}

// evidence is the edge of a hop that says most: of a kind that the shape allows, what was read before what was overwritten.
func (g *graph) evidence(h hop, sh shape) *edge {
	l := &g.links[h.link]
	order := []kinds{wr, ww, so, rt}
	switch {
	case h.rw:
		order = []kinds{rw}
	case sh.first == ww:
		order = []kinds{ww, so, rt}
	}
	for _, k := range order {
		if k&sh.mask == 0 && !h.rw {
			continue
		}
		for i := l.edge; i < l.edge+l.count; i++ {
			if g.edges[i].kind == k {
				return &g.edges[i]
			}
		}
	}
	return &g.edges[l.edge]
}

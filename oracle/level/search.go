package level

import (
	"cmp"
	"math"
	"slices"

	"wirecheck/oracle/cycle"
)

// arc leads to a node of a digraph, for an edge: a place in component.edges, or below 0 one that has no place there (digraph.edge).
type arc struct{ to, edge int32 }

// within is the edge of an arc within a transaction, or along the time.
const within int32 = -1

// digraph has the arcs of all nodes in one array: those of node v are arcs[first[v]:first[v+1]]. A history of a million transactions has eight
// million of them.
type digraph struct {
	c     *component
	first []int32
	arcs  []arc
}

// collect makes a digraph of the arcs that each tells: it tells them twice, first to be counted.
func (c *component) collect(nodes int32, each func(add func(from, to, edge int32))) *digraph {
	d := &digraph{c, make([]int32, nodes+1), nil}
	each(func(from, _, _ int32) { d.first[from+1]++ })
	for v := range nodes {
		d.first[v+1] += d.first[v]
	}
	d.arcs = make([]arc, d.first[nodes])
	next := slices.Clone(d.first[:nodes])
	each(func(from, to, edge int32) {
		d.arcs[next[from]] = arc{to, edge}
		next[from]++
	})
	return d
}

func (d *digraph) nodes() int32      { return int32(len(d.first) - 1) }
func (d *digraph) out(v int32) []arc { return d.arcs[d.first[v]:d.first[v+1]] }

// ended and began are the two halves of a real-time edge: from a transaction to the time of its end, and from there to another one.
func ended(txn int32) int32 { return -2 - 2*txn }
func began(txn int32) int32 { return -3 - 2*txn }

// edge is that of an arc; nil for one within.
func (d *digraph) edge(i int32) *edge {
	switch {
	case i >= 0:
		return &d.c.edges[i]
	case i == within:
		return nil
	case i%2 == 0:
		return &edge{from: (-2 - i) / 2, to: -1, kind: RT}
	}
	return &edge{from: -1, to: (-3 - i) / 2, kind: RT}
}

// components numbers the strongly connected components of more than one node from 1 on; others get 0.
func (d *digraph) components() (of []int32, count int32) {
	of = make([]int32, d.nodes())
	cycle.Components(len(of), cycle.All(len(of)), func(v, k int32) (int32, bool) {
		if k += d.first[v]; k < d.first[v+1] {
			return d.arcs[k].to, true
		}
		return 0, false
	}, func(nodes []int32) {
		if len(nodes) == 1 {
			return
		}
		count++
		for _, v := range nodes {
			of[v] = count
		}
	})
	return of, count
}

// maxWork bounds the search for the shortest of several cycles, and the searches that are made for each edge, in arcs.
const maxWork = 2_000_000

// cycle is the shortest cycle, as edges; nil if there is none. Beyond maxWork it is one that is short.
func (d *digraph) cycle() []*edge {
	of, count := d.components()
	if count == 0 {
		return nil
	}
	return d.cycleIn(of)
}

// cycleIn is cycle where the components are known.
func (d *digraph) cycleIn(of []int32) (best []*edge) {
	work := maxWork
	seen, epoch := make([]int32, d.nodes()), int32(0)
	for v := range d.nodes() {
		if best != nil && (work < 0 || length(best) == 2) { // none is shorter
			break
		}
		if of[v] == 0 {
			continue
		}
		epoch++
		if p := d.walk(v, v, of, &work, seen, epoch, below(best)); p != nil {
			best = p
		}
	}
	return best
}

// length is how many dependencies a walk has: a real-time edge is two of its edges.
func length(p []*edge) (n int) {
	for _, e := range p {
		if e.kind != RT || e.to >= 0 {
			n++
		}
	}
	return n
}

// below is the length that a walk must not have to be shorter than another one, which may not be there.
func below(best []*edge) int {
	if best == nil {
		return math.MaxInt
	}
	return length(best)
}

// path is the shortest walk of at least one arc from one node to another, as edges; nil if there is none that is shorter than limit.
func (d *digraph) path(from, to int32, work *int, limit int) []*edge {
	*work -= len(d.first) / 16 // the room that is made
	return d.walk(from, to, nil, work, make([]int32, d.nodes()), 1, limit)
}

// walk is path within a component (of is nil: anywhere), with room for what it saw: seen has epoch where it was, and -epoch where it goes next. It
// looks at walks of one length after those that are shorter.
func (d *digraph) walk(from, to int32, of []int32, work *int, seen []int32, epoch int32, limit int) []*edge {
	type visit struct {
		node, parent, edge int32
	}
	q := []visit{{from, -1, within}}
	now, next := []int32{0}, []int32(nil)
	for n := 0; len(now) > 0 && n < limit; n++ {
		for k := 0; k < len(now); k++ {
			at := now[k]
			if v := q[at].node; at > 0 {
				if seen[v] == epoch {
					continue
				}
				if seen[v] = epoch; v == to {
					p := []*edge{}
					for ; at > 0; at = q[at].parent {
						if e := d.edge(q[at].edge); e != nil {
							p = append(p, e)
						}
					}
					slices.Reverse(p)
					return p
				}
			}
			for _, a := range d.out(q[at].node) {
				*work--
				free := a.edge == within || a.edge < within && a.edge%2 == 0
				if of != nil && of[a.to] != of[from] || seen[a.to] == epoch || !free && seen[a.to] == -epoch {
					continue
				}
				q = append(q, visit{a.to, at, a.edge})
				if free {
					now = append(now, int32(len(q)-1))
				} else {
					seen[a.to], next = -epoch, append(next, int32(len(q)-1))
				}
			}
		}
		now, next = next, now[:0]
	}
	return nil
}

// depths are the lengths of the longest ways to the nodes of a digraph that has no cycle: a way from one node to another leads deeper.
func (d *digraph) depths() []int32 {
	in, depth, ready := make([]int32, d.nodes()), make([]int32, d.nodes()), make([]int32, 0, d.nodes())
	for _, a := range d.arcs {
		in[a.to]++
	}
	for v := range d.nodes() {
		if in[v] == 0 {
			ready = append(ready, v)
		}
	}
	for i := 0; i < len(ready); i++ {
		for _, a := range d.out(ready[i]) {
			depth[a.to] = max(depth[a.to], depth[ready[i]]+1)
			if in[a.to]--; in[a.to] == 0 {
				ready = append(ready, a.to)
			}
		}
	}
	return depth
}

// component is the part of a graph on which all cycles of some kinds are.
type component struct {
	txns  []Txn
	edges []edge
	times []int32 // ends, in their order
	kinds Kind    // of the cycles
	of    []int32 // the numbers of the strongly connected components, from 1 on

	// See rowOrder and later.
	next, byOld []int32
	seen        []int32
	epoch       int32
	row         []uint32  // by version: one of the versions to which ww join it
	writes      [][]int32 // by transaction: the ww edges to it
}

// order gives the session edges, and the ends in their order, if there is one.
func (g *Graph) order(txns []Txn) (so []edge, times []int32) {
	for i := range txns {
		times = append(times, int32(i))
	}
	slices.SortStableFunc(times, func(a, b int32) int {
		return cmp.Or(cmp.Compare(txns[a].Session, txns[b].Session), cmp.Compare(txns[a].From, txns[b].From))
	})
	for k, i := range times {
		if k > 0 && txns[times[k-1]].Session == txns[i].Session {
			so = append(so, edge{from: times[k-1], to: i, kind: SO, fs: -1, ts: -1})
		}
	}
	if g.Timeless {
		return so, nil
	}
	slices.SortStableFunc(times, func(a, b int32) int { return cmp.Compare(txns[a].To, txns[b].To) })
	return so, times
}

// graph makes a digraph of the edges of some kinds. A transaction is one node; or two, its start and its commit, where split says so: then a
// cycle has no two adjacent rw. With prefix, a ww leads from commit to commit.
func (c *component) graph(kinds Kind, split, prefix bool, use func(*edge) bool) *digraph {
	n := int32(len(c.txns))
	commit, nodes := int32(0), n
	if split {
		commit, nodes = n, 2*n
	}
	timeless := nodes
	if kinds&RT != 0 {
		nodes += n // one node for each end, in the order of time: whoever ended leads to it, and it to the next one and to those that began after it
	}
	return c.collect(nodes, func(add func(from, to, edge int32)) {
		for i := range c.edges {
			e := &c.edges[i]
			if e.kind&kinds == 0 || use != nil && !use(e) {
				continue
			}
			from, to := e.from+commit, e.to
			switch {
			case e.kind == RW:
				from, to = e.from, e.to+commit
			case e.kind == WW && prefix:
				to = e.to + commit
			}
			add(from, to, int32(i))
		}
		for i := range commit {
			add(i, i+n, within)
		}
		if kinds&RT == 0 {
			return
		}
		for k, i := range c.times {
			at := timeless + int32(k)
			if add(i+commit, at, ended(i)); k+1 < len(c.times) {
				add(at, at+1, within)
			}
		}
		for i := range n {
			k, _ := slices.BinarySearchFunc(c.times, c.txns[i].From, func(t int32, from uint64) int { return cmp.Compare(c.txns[t].To, from) })
			if k > 0 && c.txns[i].From > 0 {
				add(timeless+int32(k)-1, i, began(i))
			}
		}
	})
}

// cyclic is the component in which the cycles of some kinds are.
func (g *Graph) cyclic(kinds Kind) *component {
	in := g.spans(kinds)
	if !slices.Contains(in, true) {
		return &component{}
	}
	c := g.part(in, kinds)
	if kinds&(SO|RT) != 0 {
		so, times := g.order(c.txns)
		c.edges, c.times = append(c.edges, so...), times
	}
	of, count := c.graph(kinds, false, false, nil).components()
	if count == 0 {
		return &component{}
	}
	c.keep(of)
	if c.times = nil; kinds&RT != 0 {
		_, c.times = g.order(c.txns)
	}
	c.kinds = kinds
	return c
}

// part is the transactions that are in, and the edges of some kinds between them.
func (g *Graph) part(in []bool, kinds Kind) *component {
	c := &component{}
	place, count := make([]int32, len(g.txns)), int32(0)
	for i := range g.txns {
		if in[i] {
			place[i], count = count, count+1
		}
	}
	c.txns = make([]Txn, 0, count) // append would copy all of it again and again
	for i, t := range g.txns {
		if in[i] {
			c.txns = append(c.txns, t)
		}
	}
	within := func(yield func(*edge)) {
		for e := range g.edges.all() {
			if e.kind&kinds != 0 && in[e.from] && in[e.to] {
				yield(&e)
			}
		}
	}
	n := 0
	if kinds&(SO|RT) != 0 {
		n = len(c.txns)
	}
	within(func(*edge) { n++ })
	c.edges = make([]edge, 0, n)
	within(func(e *edge) {
		e.from, e.to = place[e.from], place[e.to]
		c.edges = append(c.edges, *e)
	})
	return c
}

// keep keeps the transactions that have a number, and the edges between those of one number.
func (c *component) keep(of []int32) {
	place, txns, edges := make([]int32, len(c.txns)), c.txns[:0], c.edges[:0]
	for i, t := range c.txns {
		if of[i] != 0 {
			place[i] = int32(len(txns))
			txns, c.of = append(txns, t), append(c.of, of[i])
		}
	}
	for _, e := range c.edges {
		if of[e.from] != 0 && of[e.from] == of[e.to] {
			e.from, e.to = place[e.from], place[e.to]
			edges = append(edges, e)
		}
	}
	c.txns, c.edges = txns, edges
}

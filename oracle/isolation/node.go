package isolation

import "slices"

// Searches for cycles spend their time waiting for memory. So what they go along is kept apart from what is known of transactions and links, by
// numbers and close together.

// node is a transaction that has links.
type node struct {
	t       *txn
	out, in []arc // out[i] is for t.out[i]
}

// arc is a link, from one of its ends.
type arc struct {
	node  uint32 // at the other end
	kinds kinds
}

// visited says where searches met a node.
type visited struct {
	end          uint64            // txn.end
	ahead, back  uint32            // epochs of the last search that reached it from the beginning of the walk, and from its end
	begins, ends uint8             // the states in which these reached it, a bit each
	hops         [maxStates]uint32 // by state: how many hops there are to the end
}

// number gives t its node.
func (g *graph) number(t *txn) uint32 {
	if t.node == 0 {
		g.nodes, g.met = append(g.nodes, node{t: t}), append(g.met, visited{end: t.end})
		t.node = uint32(len(g.nodes))
	}
	return t.node - 1
}

// arcs makes the arcs of l, which is number n of those that lead from its beginning.
func (g *graph) arcs(l *link, n int) {
	from, to := g.number(l.from), g.number(l.to)
	l.outAt, l.inAt = uint32(n), uint32(len(g.nodes[to].in))
	g.nodes[from].out = append(g.nodes[from].out, arc{to, l.kinds})
	g.nodes[to].in = append(g.nodes[to].in, arc{from, l.kinds})
}

// add adds a kind to a link.
func (g *graph) add(l *link, kind kinds) {
	l.kinds |= kind
	g.nodes[l.from.node-1].out[l.outAt].kinds = l.kinds
	g.nodes[l.to.node-1].in[l.inAt].kinds = l.kinds
}

// renumber takes out the nodes of transactions that are forgotten, and the arcs from and to them.
func (g *graph) renumber() {
	kept := 0
	for i, x := range g.nodes {
		if !x.t.gone {
			g.nodes[kept], g.met[kept] = x, g.met[i]
			kept++
			x.t.node = uint32(kept)
		}
	}
	clear(g.nodes[kept:])
	g.nodes, g.met = g.nodes[:kept], g.met[:kept]
	if cap(g.nodes) > 4*kept {
		g.nodes, g.met = slices.Clone(g.nodes), slices.Clone(g.met)
	}
	for i := range g.nodes {
		g.nodes[i].out, g.nodes[i].in = g.nodes[i].out[:0], g.nodes[i].in[:0]
	}
	for i := range g.nodes {
		t := g.nodes[i].t
		t.dropGone()
		for k, l := range t.out {
			g.arcs(l, k)
		}
	}
}

package isolation

import "slices"

// Searches need the arcs of all links. In most histories nearly all edges lead to the transaction that ends, and nothing is searched between two sweeps.
// So the arcs are made when the first search needs them.

// number gives t its node.
func (g *graph) number(t *txn) uint32 {
	if t.node == 0 {
		t.node = g.paths.Add(t.end) + 1
		g.nodes = append(g.nodes, t)
	}
	return t.node - 1
}

// arcs makes the arcs of l.
func (g *graph) arcs(l *link) {
	l.outAt, l.inAt = g.paths.Join(g.number(l.from), g.number(l.to), l.kinds)
}

// become gives a link its kinds.
func (g *graph) become(l *link, k kinds) {
	if l.kinds = k; g.searched {
		g.paths.Set(l.from.node-1, l.outAt, l.to.node-1, l.inAt, k)
	}
}

// retract takes edges out of a link. It keeps a place in the graph, over which no walk leads if nothing is left. Of a kind with more edges than were kept
// (maxEvidence) some may be left and be forgotten.
func (g *graph) retract(l *link, which func(*edge) bool) {
	n := len(l.edges)
	l.edges = slices.DeleteFunc(l.edges, func(e edge) bool { return which(&e) })
	if len(l.edges) == n {
		return
	}
	k := kinds(0)
	for i := range l.edges {
		k |= l.edges[i].kind
	}
	g.become(l, k)
}

// ready makes the arcs of all links, if they are not there.
func ready(c *Checker) {
	if c.searched {
		return
	}
	c.searched = true
	for _, t := range c.ended {
		for _, l := range t.out {
			c.arcs(l)
		}
	}
}

// unready takes out all nodes and arcs.
func (g *graph) unready() {
	for _, t := range g.nodes {
		t.node = 0
	}
	clear(g.nodes)
	g.nodes, g.searched = g.nodes[:0], false
	g.paths.Clear()
}

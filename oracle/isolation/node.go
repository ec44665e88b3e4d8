package isolation

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

// add adds a kind to a link.
func (g *graph) add(l *link, kind kinds) {
	if l.kinds |= kind; g.searched {
		g.paths.Set(l.from.node-1, l.outAt, l.to.node-1, l.inAt, l.kinds)
	}
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

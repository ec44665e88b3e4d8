package isolation

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
	l.kinds |= kind
	g.paths.Set(l.from.node-1, l.outAt, l.to.node-1, l.inAt, l.kinds)
}

// renumber takes out the nodes of transactions that are forgotten, and the arcs from and to them.
func (g *graph) renumber() {
	kept := make([]*txn, 0, len(g.nodes))
	g.paths.Keep(func(n uint32) bool { return !g.nodes[n].gone }, func(old, now uint32) {
		t := g.nodes[old]
		t.node, kept = now+1, append(kept, t)
	})
	g.nodes = kept
	for _, t := range g.nodes {
		t.dropGone()
		for _, l := range t.out {
			g.arcs(l)
		}
	}
}

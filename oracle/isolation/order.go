package isolation

import "slices"

// orderEdges draws session-order and real-time edges (Options.Strict).
func (g *graph) orderEdges(t *txn) {
	if l := t.session.last; l != nil && l != t {
		g.addEdge(edgeSO, l, t, nil, nil, -1, -1)
	}
	t.session.last = t
	for _, p := range t.rt {
		g.addEdge(edgeRT, p, t, nil, nil, -1, -1)
	}
	// Elle's frontier: what ended before t began is reached through t from now on.
	g.frontier = append(slices.DeleteFunc(g.frontier, func(f *txn) bool { return f.to < t.from || f.gone }), t)
}

// realTimeBegin keeps who had ended when t began.
func (g *graph) realTimeBegin(t *txn) {
	for _, f := range g.frontier {
		if f.to < t.from {
			t.rt = append(t.rt, f)
		}
	}
}

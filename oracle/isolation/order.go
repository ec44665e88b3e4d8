package isolation

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
	keep := g.frontier[:0]
	for _, f := range g.frontier {
		if f.to >= t.from && !f.gone {
			keep = append(keep, f)
		}
	}
	g.frontier = append(keep, t)
}

// realTimeBegin keeps who had ended when t began.
func (g *graph) realTimeBegin(t *txn) {
	for _, f := range g.frontier {
		if f.to < t.from {
			t.rt = append(t.rt, f)
		}
	}
}

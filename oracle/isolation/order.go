package isolation

import (
	"math"
	"slices"
)

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
	g.frontier = append(slices.DeleteFunc(g.frontier, func(f *txn) bool { return overBefore(f, t) || f.gone }), t)
}

// realTimeBegin keeps who had ended when t began.
func (g *graph) realTimeBegin(t *txn) {
	for _, f := range g.frontier {
		if overBefore(f, t) {
			t.rt = append(t.rt, f)
		}
	}
}

// overBefore reports whether one transaction was over before another one began.
func overBefore(f, t *txn) bool { return f.over() < t.from && sameClock(f, t) }

// over is the tick by which t was over; the last one there is where nobody knows: its end was lost, its outcome is unknown, so that it may have committed later,
// or the history has its end before its begin.
func (t *txn) over() uint64 {
	if !t.answered || t.to < t.from {
		return math.MaxUint64
	}
	return t.to
}

// sameClock reports whether the ticks of two transactions can be compared.
func sameClock(t, u *txn) bool { return t.session.recorder == u.session.recorder }

// oneClock reports whether the ticks of all of them can be compared.
func oneClock(ts []*txn) bool {
	return !slices.ContainsFunc(ts, func(t *txn) bool { return !sameClock(t, ts[0]) })
}

package sieve

import (
	"iter"

	"wirecheck/oracle/cycle"
)

// Walks are the cycles that a sieve found itself, and the edges that it looked for them in.
type Walks struct {
	txns  *txns
	drawn drafts
	by    map[uint64][]cycle.Walk
	far   int
	back  bool // see Onward
	in    ids
	nodes *ids // of which the edges are drawn
}

// walks gives the cycles of a plain history.
func (s *Sieve) walks(x *exact) *Walks {
	w := x.walks()
	has := func(n uint32) bool { return w.in.has(s.txns.id[n]) }
	for n, is := range x.in {
		if is && s.txns.is[n]&special != 0 {
			w.in.add(s.txns.id[n])
		}
	}
	var more []uint32
	for _, r := range s.parts {
		if !s.tellAll() || x.rough {
			r.context(s.images, has, func(n uint32) { more = append(more, n) })
		}
	}
	for _, n := range more {
		w.in.add(s.txns.id[n])
	}
	return w
}

// What all searches together may visit: less than a Checker's. Of a history in which nearly all transactions are in cycles, a fifth of the searches finds
// the same anomalies as all of them, in fewer variants.
const (
	walksGrant = 1 << 21
	walksFree  = 2
)

// walks searches the edges as the Checker would: each time that a transaction ends, for the cycles that it completes.
func (x *exact) walks() *Walks {
	n := len(x.in)
	w := &Walks{txns: x.txns, drawn: x.drawn, by: map[uint64][]cycle.Walk{}, in: ids{most: 4*uint64(n) + 4096}}
	arcs := 0
	for _, k := range x.out {
		arcs += int(k)
	}
	g := cycle.New(n, arcs)
	g.Limit(cycle.DefaultNear, walksGrant, walksFree)
	for i := range n {
		g.Add(uint64(x.ends[i]))
		g.Room(x.out[i], x.into[i])
	}
	at := [2][]uint32{x.out, x.into} // not needed any more; from here on the places of the arcs from and to a transaction that ends, by their other ends
	begun := 0
	for end, t := range x.txns.ended {
		for begun < n && int(x.txns.began[begun]) <= end {
			begun++
		}
		list := w.drawn.of(t)
		if len(list) == 0 {
			continue
		}
		for i := range list {
			e := &list[i]
			g.Backward = g.Backward || e.kind != cycle.RW && e.leaves
			w.draw(g, t, e.other, e, at)
		}
		if len(g.In(t)) > 0 && len(g.Out(t)) > 0 {
			found, _ := g.Through(t, cycle.Data, begun)
			for _, f := range found {
				w.add(t, f, g, x)
			}
		}
	}
	w.far, w.back = g.Far, x.back
	return w
}

// draw draws an edge of node t, whose transaction ends. The arc between the two, if there is one already, is the last one at the other end.
func (w *Walks) draw(g *cycle.Graph, t, other uint32, e *edge, at [2][]uint32) {
	to, from := g.In(other), g.Out(other)
	switch {
	case e.leaves && len(to) > 0 && to[len(to)-1].Node() == t:
		g.Set(t, at[0][other], other, uint32(len(to)-1), to[len(to)-1].Kinds()|e.kind)
	case e.leaves:
		at[0][other], _ = g.Join(t, other, e.kind)
	case len(from) > 0 && from[len(from)-1].Node() == t:
		g.Set(other, uint32(len(from)-1), t, at[1][other], from[len(from)-1].Kinds()|e.kind)
	default:
		_, at[1][other] = g.Join(other, t, e.kind)
	}
}

// add adds a cycle that transaction t completed.
func (w *Walks) add(t uint32, f cycle.Found, g *cycle.Graph, x *exact) {
	walk := cycle.Walk{Class: f.Class}
	for _, h := range f.Hops {
		from, to := h.From, g.To(h)
		by, leaves, other := from, true, to
		if x.ends[to] > x.ends[from] {
			by, leaves, other = to, false, from
		}
		st := cycle.Step{Txn: w.txns.id[from], RW: h.RW}
		for _, e := range w.drawn.of(by) {
			if e.other != other || e.leaves != leaves {
				continue
			}
			if !leaves {
				e.mine, e.his = e.his, e.mine
			}
			st.Edges = append(st.Edges, cycle.Edge{Kind: e.kind, Over: e.over, From: e.mine, To: e.his})
		}
		w.in.add(w.txns.id[from])
		walk.Steps = append(walk.Steps, st)
	}
	id := w.txns.id[t]
	w.by[id] = append(w.by[id], walk)
}

// Of gives the cycles that a transaction completed.
func (w *Walks) Of(txn uint64) []cycle.Walk { return w.by[txn] }

// Far counts the searches that ended at their limit and had found nothing till then.
func (w *Walks) Far() int { return w.far }

// Onward reports whether each ww leads to a transaction that ended later, so that they make no cycle.
func (w *Walks) Onward() bool { return !w.back }

// Has reports whether a transaction is part of what is reported, or tells what is said of it: these are the ones that a Checker has to be given.
func (w *Walks) Has(txn uint64) bool { return w.in.has(txn) }

// Transactions gives the committed transactions in the order of their ends.
func (w *Walks) Transactions() iter.Seq[cycle.Txn] {
	return func(yield func(cycle.Txn) bool) {
		t := w.txns
		for _, n := range t.ended {
			if t.is[n]&committed != 0 && !yield(cycle.Txn{ID: t.id[n], Session: t.sessionIDs[t.session[n]], From: t.from[n], To: t.to[n], Edges: w.nodes.has(t.id[n])}) {
				return
			}
		}
	}
}

// Dependencies gives all edges in the order in which they were drawn. Behind the last one it keeps neither edges nor transactions, which take much memory.
func (w *Walks) Dependencies() iter.Seq[cycle.Dependency] {
	return func(yield func(cycle.Dependency) bool) {
		for _, t := range w.txns.ended {
			for _, e := range w.drawn.of(t) {
				d := cycle.Dependency{From: w.txns.id[t], To: w.txns.id[e.other], Kind: e.kind, Old: e.old, New: e.new, FromStatement: int32(e.mySt), ToStatement: int32(e.hisS)}
				if !e.leaves {
					d.From, d.To, d.FromStatement, d.ToStatement = d.To, d.From, d.ToStatement, d.FromStatement
				}
				if e.over {
					d.Old = 0 // of the row's order it would leave a part out
				}
				if !yield(d) {
					return
				}
			}
		}
		w.drawn, w.txns = drafts{}, nil
	}
}

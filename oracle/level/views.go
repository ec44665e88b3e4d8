package level

import (
	"cmp"
	"slices"

	"wirecheck/oracle/cycle"
)

// mostViewed bounds the views of a certificate, in transactions of all of them together.
const mostViewed = 1 << 23

// addViews makes the views of a certificate. It puts the order of the certificate so that transactions which are joined by cycles of all edges, the loose
// ones included, stand beside one another: all other edges lead onward in each view. false: there are none, or they are too long.
func (c *component) addViews(f *form, rows *chains, p *Certificate) bool {
	n := int32(len(c.txns))
	rank, ranks := make([]int32, n), int32(0)
	d := c.graph(f.kinds|RW, false, false, func(e *edge) bool { return f.use(c.txns, e) || f.loose(c.txns, e) })
	cycle.Components(int(n), cycle.All(int(n)), func(v, k int32) (int32, bool) {
		if k += d.first[v]; k < d.first[v+1] {
			return d.arcs[k].to, true
		}
		return 0, false
	}, func(nodes []int32) { // the last one first
		ranks++
		for _, v := range nodes {
			rank[v] = -ranks
		}
	})
	order, at := make([]int32, n), make(map[uint64]int32, n)
	for i := range c.txns {
		at[c.txns[i].ID] = int32(i)
	}
	for i := range p.Order {
		order[i] = at[p.Order[i].Txn]
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(rank[a], rank[b]) })
	w := &viewer{c: c, f: f, rows: rows, place: make([]int32, n), placed: make([]int32, n)}
	for i, v := range order {
		p.Order[i].Txn, w.place[v] = c.txns[v].ID, int32(i)
	}
	joined := func(e *edge) bool { return rank[e.from] == rank[e.to] }
	w.before = c.collect(n, func(add func(from, to, edge int32)) {
		for i := range c.edges {
			if e := &c.edges[i]; e.kind&f.views != 0 && f.use(c.txns, e) && joined(e) {
				add(e.to, e.from, int32(i))
			}
		}
	})
	w.missed = c.collect(n, func(add func(from, to, edge int32)) {
		for i := range c.edges {
			if e := &c.edges[i]; f.loose(c.txns, e) && joined(e) {
				add(e.from, e.to, int32(i))
			}
		}
	})
	viewed := 0
	for i := 0; i < len(order); {
		k := i + 1
		for k < len(order) && rank[order[k]] == rank[order[i]] {
			k++
		}
		for j := 0; ; j++ {
			view, more, ok := w.next(order[i:k])
			if viewed += len(view); !ok || viewed > mostViewed {
				return false
			}
			if !more {
				break
			}
			if j == len(p.Views) {
				p.Views = append(p.Views, nil)
			}
			for _, v := range view {
				p.Views[j] = append(p.Views[j], c.txns[v].ID)
			}
		}
		i = k
	}
	return true
}

// viewer makes the views of transactions that cycles join.
type viewer struct {
	c              *component
	f              *form
	rows           *chains
	before, missed *digraph // what precedes a transaction in each view; what it missed
	place          []int32  // in the first order
	placed         []int32  // epoch: it stands in the view at hand
	shown          []bool   // by transaction: a view shows its rw; nil: none was made yet
	epoch          int32
	view           []int32
	last           map[uint32]int32 // by row: the place of the last writer that stands in the view
}

// next makes one more view of joined transactions, in which come those that precede a transaction, then it, then what precedes the next one. more is false if each
// transaction has its view, ok if one cannot have any.
func (w *viewer) next(joined []int32) (view []int32, more, ok bool) {
	if w.shown == nil {
		w.shown = make([]bool, len(w.place))
	}
	w.epoch++
	w.view, w.last = make([]int32, 0, len(joined)), map[uint32]int32{}
	for _, v := range joined {
		if !w.shown[v] && !w.misses(v, func(e *edge) bool { return w.place[e.to] < w.place[v] }) {
			w.shown[v] = true // the first order shows it
		}
		if w.shown[v] || w.misses(v, w.stands) {
			continue
		}
		for _, a := range w.before.out(v) {
			w.put(a.to)
		}
		if w.misses(v, w.stands) {
			return nil, false, false
		}
		w.put(v)
		w.shown[v], more = true, true
	}
	if !more {
		return nil, false, true
	}
	for _, v := range joined {
		w.put(v)
	}
	return w.view, true, true
}

// misses reports whether that is so of something that a transaction missed.
func (w *viewer) misses(v int32, is func(*edge) bool) bool {
	return slices.ContainsFunc(w.missed.out(v), func(a arc) bool { return is(&w.c.edges[a.edge]) })
}

// stands reports whether what an rw leads to, or a later version of its row, stands in the view.
func (w *viewer) stands(e *edge) bool {
	if w.placed[e.to] == w.epoch {
		return true
	}
	last, ok := w.last[w.rows.head[e.new]]
	return ok && !e.pred && last >= w.place[e.to]
}

// put puts a transaction into the view, behind all that precede it.
func (w *viewer) put(v int32) {
	for stack := []int32{v}; len(stack) > 0; {
		v := stack[len(stack)-1]
		if w.placed[v] == w.epoch {
			stack = stack[:len(stack)-1]
			continue
		}
		deep := len(stack)
		for _, a := range w.before.out(v) {
			if w.placed[a.to] != w.epoch {
				stack = append(stack, a.to)
			}
		}
		if len(stack) > deep {
			continue
		}
		w.placed[v] = w.epoch
		w.view = append(w.view, v)
		if w.f.views&WW == 0 { // elsewhere the earlier versions stand in the view, too
			for _, version := range w.rows.written(v) {
				row := w.rows.head[version]
				w.last[row] = max(w.last[row], w.place[v])
			}
		}
	}
}

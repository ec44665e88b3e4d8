package sieve

import (
	"cmp"
	"slices"
)

// Meeting is where the edges of all rows meet.
type Meeting struct {
	txns    *txns
	edges   pile[[2]uint32] // of data
	units   pile[[2]uint32] // transactions and their requests
	special []uint32        // transactions that may be part of something that is reported without a cycle; see join
	without kind            // edges that are not drawn, for tests
	unknown int             // reads by committed transactions of versions whose writer is not known
	limbo   bool            // transactions of unknown outcome count in session order and real time
}

func newMeeting(t *txns) *Meeting { return &Meeting{txns: t} }

// out takes in what rows give.
func (m *Meeting) out() *out {
	t := m.txns
	return &out{
		edge: func(kind kind, from, to uint32) {
			if from != to && kind&m.without == 0 {
				m.edges.add([2]uint32{from, to})
			}
		},
		special: func(list ...uint32) { m.special = append(m.special, list...) },
		unknown: func(reader uint32) {
			if t.is[reader]&committed != 0 {
				m.unknown++
			}
		},
	}
}

// join takes in what another meeting has, which is not used any more.
func (m *Meeting) join(o *Meeting) {
	m.edges.join(&o.edges)
	for _, n := range o.special {
		m.txns.is[n] |= special
	}
	m.unknown += o.unknown
}

// order draws session order and real time.
func (m *Meeting) order(g *graph) {
	t := m.txns
	counts := func(n uint32) bool {
		return g.counts(n) && (t.is[n]&committed != 0 || m.limbo && t.is[n]&limbo != 0)
	}
	list := slices.DeleteFunc(slices.Clone(t.ended), func(n uint32) bool { return !counts(n) })
	last, begun := slices.Repeat([]uint32{none}, len(t.recorders)), true
	for _, n := range list {
		if p := last[t.session[n]]; p != none {
			g.edge(p, n)
			begun = begun && t.from[p] <= t.from[n]
		}
		last[t.session[n]] = n
	}
	if !begun { // levels order the transactions of a session by their beginnings
		by := slices.Clone(list)
		slices.SortStableFunc(by, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(t.session[a], t.session[b]), cmp.Compare(t.from[a], t.from[b]))
		})
		for i := 1; i < len(by); i++ {
			if t.session[by[i-1]] == t.session[by[i]] {
				g.edge(by[i-1], by[i])
			}
		}
	}
	recorder := func(n uint32) int { return t.recorders[t.session[n]] }
	inTime := func(a, b uint32) int {
		return cmp.Or(cmp.Compare(recorder(a), recorder(b)), cmp.Compare(t.to[a], t.to[b]))
	}
	if !slices.IsSortedFunc(list, inTime) {
		slices.SortStableFunc(list, inTime)
	}
	for i := 0; i < len(list); {
		k := i
		for k < len(list) && recorder(list[k]) == recorder(list[i]) {
			k++
		}
		g.times(t, list[i:k])
		i = k
	}
}

// times draws real time between transactions of one clock, in the order of their ends: a node for the time of each end.
func (g *graph) times(t *txns, list []uint32) {
	first := g.nodes
	g.nodes += uint32(len(list))
	for i, n := range list {
		g.edge(n, first+uint32(i))
		if i > 0 {
			g.edge(first+uint32(i)-1, first+uint32(i))
		}
		if k, _ := slices.BinarySearchFunc(list, t.from[n], func(o uint32, from uint64) int { return cmp.Compare(t.to[o], from) }); k > 0 {
			g.edge(first+uint32(k)-1, n)
		}
	}
}

// raced calls f with transactions that ended before others began, and of which the ticks do not say so.
func (m *Meeting) raced(f func(uint32)) {
	t := m.txns
	type clock struct {
		list []uint32 // ended, in order
		most []uint64 // the latest tick of those up to there
	}
	clocks := map[int]*clock{}
	n := 0
	for b := range t.id {
		for ; n < int(t.began[b]); n++ {
			x := t.ended[n]
			c := clocks[t.recorders[t.session[x]]]
			if c == nil {
				c = &clock{}
				clocks[t.recorders[t.session[x]]] = c
			}
			most := t.to[x]
			if k := len(c.most); k > 0 {
				most = max(most, c.most[k-1])
			}
			c.list, c.most = append(c.list, x), append(c.most, most)
		}
		c := clocks[t.recorders[t.session[b]]]
		if c == nil {
			continue
		}
		for k := len(c.list) - 1; k >= 0 && c.most[k] >= t.from[b]; k-- {
			if t.to[c.list[k]] >= t.from[b] {
				f(c.list[k])
			}
		}
	}
}

package inferred

import (
	"container/heap"
	"maps"
	"slices"

	"wirecheck/oracle/cycle"
)

// rule says which orders of a key's versions a level forces: a version comes before another one if its writer precedes the other one's writer, or is seen by a
// reader of the other one (Biswas and Enea 2019, 2.2; Tan et al. 2020, Cobra, 3.2; Huang et al. 2023, PolySI, 4.3).
type rule struct {
	orders kinds // transactions precede one another by these edges; where they have a cycle, no order fits
	sees   kinds // a reader sees what precedes it by these edges
	// when narrows what a reader sees to the transactions that it read of, by the places of the two reads; nil: all that precede it.
	when   func(saw, missed int32) bool
	apart  bool // start and commit of a transaction are two points: rw leads from start to commit, the other edges from commit to start
	prefix bool // ww leads from commit to commit
}

const (
	flow = ww | wr
	item = ww | wr | rw
)

// rules has the rules by levels. A level without one forces no order, or none that this package finds.
var rules = map[string]rule{
	"read committed with monotonic reads": {orders: flow, sees: wr, when: func(saw, missed int32) bool { return saw < missed }},
	"monotonic atomic view":               {orders: flow, sees: wr, when: func(saw, missed int32) bool { return saw <= missed }},
	"read atomic":                         {orders: flow, sees: wr, when: func(int32, int32) bool { return true }},
	"causal":                              {orders: flow | so, sees: wr | so},
	"PL-2.99":                             {orders: item, sees: item}, // and PL-3: there are no predicates here
	"parallel snapshot isolation":         {orders: flow | so, sees: flow | so},
	"prefix consistency":                  {orders: item | so, sees: item | so, apart: true, prefix: true},
	"snapshot isolation":                  {orders: item, sees: item, apart: true},
	"strong session snapshot isolation":   {orders: item | so, sees: item | so, apart: true},
	"strong snapshot isolation":           {orders: item | so | rt, sees: item | so | rt, apart: true},
	"PL-3U":                               {orders: flow, sees: flow},
	"strong session serializable":         {orders: item | so, sees: item | so},
	"strict serializable":                 {orders: item | so | rt, sees: item | so | rt},
}

// mostPoints bounds the points between which precedence is known: it takes a bit for each two of them.
const mostPoints = 1 << 14

// mostForced bounds the work of one search for forced orders, in words of bits. Most cycles show within the first rounds.
const mostForced = 1 << 26

// force is a search for the orders of versions that a rule forces.
type force struct {
	c      *checker
	rule   rule
	place  []int32 // of each transaction: its number; none: it takes no part
	txns   []int32 // by number
	edges  []edge  // those of the rule, the forced ones behind the known ones
	known  int
	out    [][]arc            // by point
	behind [][]uint64         // by point: the points behind it
	sight  [][]uint64         // by number: the transactions behind it by what a reader sees, where that is less; nil: not known
	direct map[int32][]access // by reader: the writers that it read of, and where
	work   int
}

// arc leads to a point by an edge; none: from a transaction's start to its commit.
type arc struct{ to, edge int32 }

// findForced adds to known edges those that a rule forces, until nothing more follows. It gives an order of the transactions, by their commits, that keeps them, or a
// cycle of them, if they have one; neither, if the history is too large.
func findForced(c *checker, r rule, known []edge) (f *force, order []int32, circle []edge) {
	f = &force{c: c, rule: r, place: make([]int32, len(c.node)), direct: map[int32][]access{}}
	for t, node := range c.node {
		f.place[t] = none
		if node {
			f.place[t] = int32(len(f.txns))
			f.txns = append(f.txns, int32(t))
		}
	}
	if !f.draw(known) {
		return f, nil, nil
	}
	if r.when == nil && r.sees != r.orders {
		g := &force{c: c, rule: rule{orders: r.sees}, place: f.place, txns: f.txns}
		if g.draw(known); g.close() != nil {
			f.sight = g.behind
		}
	}
	for i := range known {
		if e := &known[i]; e.kind == wr && r.when != nil {
			f.direct[e.to] = append(f.direct[e.to], access{e.from, e.toOp})
		}
	}
	for {
		order := f.close()
		switch {
		case f.work > mostForced:
			return f, nil, nil
		case order == nil:
			return f, nil, f.circle()
		case !f.extend():
			return f, f.commits(order), nil
		}
	}
}

// draw draws the known edges; false: there are too many transactions, or too many versions of a key.
func (f *force) draw(known []edge) bool {
	points, pairs := len(f.txns), 0
	if f.rule.apart {
		points *= 2
	}
	for k := range f.c.loose {
		key := &f.c.loose[k]
		met := len(key.parent)
		for _, list := range key.readers {
			met += len(list)
		}
		pairs += met * len(key.parent)
	}
	if points > mostPoints || pairs > mostForced {
		return false
	}
	f.out = make([][]arc, points)
	if f.rule.apart {
		for i := range f.txns {
			f.out[2*i] = []arc{{int32(2*i + 1), none}}
		}
	}
	for i := range known {
		if known[i].kind&f.rule.orders != 0 {
			f.add(known[i])
		}
	}
	f.known = len(f.edges)
	return true
}

func (f *force) start(t int32) int32 {
	if f.rule.apart {
		return 2 * f.place[t]
	}
	return f.place[t]
}

func (f *force) commit(t int32) int32 {
	if f.rule.apart {
		return 2*f.place[t] + 1
	}
	return f.place[t]
}

func (f *force) add(e edge) {
	from, to := f.commit(e.from), f.start(e.to)
	switch {
	case e.kind == rw:
		from, to = f.start(e.from), f.commit(e.to)
	case e.kind == ww && f.rule.prefix:
		to = f.commit(e.to)
	}
	f.out[from] = append(f.out[from], arc{to, int32(len(f.edges))})
	f.edges = append(f.edges, e)
}

// close finds what is behind each point, and an order of the points; nil if there is none.
func (f *force) close() (order []int32) {
	in := make([]int32, len(f.out))
	for _, arcs := range f.out {
		for _, a := range arcs {
			in[a.to]++
		}
	}
	ready := &queue{}
	for p := range f.out {
		if in[p] == 0 {
			heap.Push(ready, int32(p))
		}
	}
	for ready.Len() > 0 {
		p := heap.Pop(ready).(int32)
		order = append(order, p)
		for _, a := range f.out[p] {
			if in[a.to]--; in[a.to] == 0 {
				heap.Push(ready, a.to)
			}
		}
	}
	if len(order) < len(f.out) {
		return nil
	}
	words := (len(f.out) + 63) / 64
	f.behind = make([][]uint64, len(f.out))
	store := make([]uint64, words*len(f.out))
	for _, p := range slices.Backward(order) {
		row := store[int(p)*words : (int(p)+1)*words]
		for _, a := range f.out[p] {
			if row[a.to/64]>>(a.to%64)&1 != 0 {
				continue
			}
			f.work += words
			row[a.to/64] |= 1 << (a.to % 64)
			for i, w := range f.behind[a.to] {
				row[i] |= w
			}
		}
		f.behind[p] = row
	}
	return order
}

func has(rows [][]uint64, from, to int32) bool { return rows[from][to/64]>>(to%64)&1 != 0 }

// extend adds the edges that follow from what precedes what; false: there are none.
func (f *force) extend() (more bool) {
	n := len(f.edges)
	for k := range f.c.loose {
		key := &f.c.loose[k]
		versions := slices.Sorted(maps.Keys(key.parent))
		f.work += len(versions) * len(versions)
		for _, a := range versions {
			for _, b := range versions {
				x, y := f.c.versions[a].writer, f.c.versions[b].writer
				if x != y && (has(f.behind, f.commit(x), f.commit(y)) || f.seen(x, key.readers[b])) {
					f.before(key, a, b)
				}
			}
		}
	}
	return len(f.edges) > n
}

// seen reports whether a transaction is seen by a reader of a version that another one wrote.
func (f *force) seen(writer int32, readers []access) bool {
	f.work += len(readers)
	return slices.ContainsFunc(readers, func(r access) bool {
		switch {
		case r.txn == writer || f.place[r.txn] == none:
			return false
		case f.rule.when != nil:
			return slices.ContainsFunc(f.direct[r.txn], func(d access) bool { return d.txn == writer && f.rule.when(d.op, r.op) })
		case f.rule.sees != f.rule.orders:
			return f.sight != nil && has(f.sight, f.place[writer], f.place[r.txn])
		}
		return has(f.behind, f.commit(writer), f.start(r.txn))
	})
}

// before adds the edges of version a of a key and a later one that do not follow from others.
func (f *force) before(key *loose, a, b int32) {
	x, y := &f.c.versions[a], &f.c.versions[b]
	if !has(f.behind, f.commit(x.writer), f.commit(y.writer)) {
		f.add(edge{x.writer, y.writer, x.op, y.op, ww, true})
	}
	if f.rule.orders&rw == 0 {
		return
	}
	for _, r := range key.readers[a] {
		if r.txn != y.writer && f.place[r.txn] != none && !has(f.behind, f.start(r.txn), f.commit(y.writer)) {
			f.add(edge{r.txn, y.writer, r.op, y.op, rw, true})
		}
	}
}

// commits are the transactions in the order of their commits.
func (f *force) commits(points []int32) (order []int32) {
	for _, p := range points {
		switch {
		case !f.rule.apart:
			order = append(order, f.txns[p])
		case p%2 == 1:
			order = append(order, f.txns[p/2])
		}
	}
	return order
}

// mostWalks bounds the walks that look for a short cycle, in points that they may visit.
const mostWalks = 1 << 20

// circle is a short cycle of the edges, which have one.
func (f *force) circle() (best []edge) {
	var part []int32
	cycle.Components(len(f.out), cycle.All(len(f.out)), func(v, k int32) (int32, bool) {
		if int(k) >= len(f.out[v]) {
			return 0, false
		}
		return f.out[v][k].to, true
	}, func(nodes []int32) {
		if len(nodes) > 1 && (part == nil || len(nodes) < len(part)) {
			part = slices.Clone(nodes)
		}
	})
	seen, left := make([]int32, len(f.out)), mostWalks // seen: one more than the point from which the last walk passed here
	for _, from := range part {
		if found := f.walk(from, seen, &left); best == nil || found != nil && len(found) < len(best) {
			best = found
		}
		if left < 0 {
			break
		}
	}
	return best
}

// walk is the shortest way from a point back to it, breadth first.
func (f *force) walk(from int32, seen []int32, left *int) (way []edge) {
	type visit struct {
		arc
		parent int
	}
	q := []visit{{arc{from, none}, none}}
	for i := 0; i < len(q); i++ {
		*left--
		for _, a := range f.out[q[i].to] {
			if a.to == from {
				for v := (visit{a, i}); ; v = q[v.parent] {
					if v.edge != none {
						way = append(way, f.edges[v.edge])
					}
					if v.parent == none {
						slices.Reverse(way)
						return way
					}
				}
			}
			if seen[a.to] != from+1 {
				seen[a.to] = from + 1
				q = append(q, visit{a, i})
			}
		}
	}
	return nil
}

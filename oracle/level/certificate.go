package level

import (
	"cmp"
	"iter"
	"slices"
)

// form says in which order transactions have to fit that a level is satisfied, and what that order has to show besides.
type form struct {
	kinds  Kind
	split  bool // into starts and commits
	prefix bool // a ww orders commits alone
	rows   bool // an rw over what a condition chose does not count

	// saw says of two reads of a transaction, by the places of their statements, that the second one must not miss what the first one saw of another
	// transaction. own: no read misses a version that stands before the transaction's own one.
	saw func(saw, missed int32) bool
	own bool

	// views: the rw of a transaction (readers: of one that only reads) have to lead onward in one of several orders, all of them together. In each of
	// these orders the edges of these kinds lead onward. 0: there are none.
	views   Kind
	readers bool
}

// use reports whether an edge has to lead onward in all orders, loose whether it has to in one of them.
func (f *form) use(txns []Txn, e *edge) bool {
	return e.kind != RW || !(f.rows && e.pred) && !(f.readers && !txns[e.from].Writes)
}

func (f *form) loose(txns []Txn, e *edge) bool {
	return f.views != 0 && e.kind == RW && !(f.rows && e.pred) && !(f.readers && txns[e.from].Writes)
}

// forms are those of the levels.
var forms = map[string]form{
	"PL-1": {kinds: WW}, "PL-2": {kinds: WW | WR}, "PL-2.99": {kinds: WW | WR | RW, rows: true},
	"read committed with monotonic reads": {kinds: WW | WR, saw: earlier}, "monotonic atomic view": {kinds: WW | WR, saw: sameOrEarlier},
	"read atomic": {kinds: WW | WR, saw: anyOrder}, "update atomic": {kinds: WW | WR, saw: anyOrder, own: true}, "cursor stability": {kinds: WW | WR, own: true},
	"causal":                      {kinds: WW | WR | SO, rows: true, views: WR | SO},
	"parallel snapshot isolation": {kinds: WW | WR | SO, views: WW | WR | SO},
	"PL-3U":                       {kinds: WW | WR | RW, views: WW | WR | RW, readers: true},
	"prefix consistency":          {kinds: WW | WR | SO | RW, split: true, prefix: true},
	"snapshot isolation":          {kinds: WW | WR | RW, split: true}, "strong session snapshot isolation": {kinds: WW | WR | RW | SO, split: true},
	"strong snapshot isolation": {kinds: WW | WR | RW | SO | RT, split: true},
	"PL-3":                      {kinds: WW | WR | RW}, "strong session serializable": {kinds: WW | WR | RW | SO}, "strict serializable": {kinds: WW | WR | RW | SO | RT},
}

// Point is a place in a certificate: the commit of a transaction, or its start.
type Point struct {
	Txn   uint64 `json:"txn"`
	Start bool   `json:"start,omitempty"`
}

// Certificate proves that a level is satisfied: an order of commits (and starts, for levels of snapshots) and, for levels in which transactions need
// not see the same order, others. A view has some of the transactions: they stand in its order, at the places that they have together in the first one.
type Certificate struct {
	Order []Point
	Views [][]uint64
}

// Certificate is the proof of a level; nil if there is none, if it would be too long, or if the versions of a row have no order.
//
// Where the graph has a part of a history, groups gives the IDs of all transactions in an order in which the groups fit, whatever the level, and the
// graph has all of each group that is more than one transaction. nil: the graph has the whole history.
func (g *Graph) Certificate(name string, groups iter.Seq[[]uint64]) *Certificate {
	f, ok := forms[name]
	if !ok {
		return nil
	}
	so, times := g.order(g.txns)
	c := &component{txns: g.txns, edges: append(g.edges.list(len(so)), so...), times: times}
	p := &Certificate{Order: c.points(&f)}
	if p.Order == nil {
		return nil
	}
	if f.saw != nil || f.own || f.views != 0 {
		commit := make([]int, len(g.txns))
		for i := range p.Order {
			at, _ := g.at.of(p.Order[i].Txn)
			commit[at] = i
		}
		rows, err := g.chains(commit)
		if err != nil {
			return nil
		}
		if f.views != 0 && !c.addViews(&f, rows, p) {
			return nil
		}
	}
	if groups != nil {
		g.all(p, groups, f.split)
	}
	return p
}

// all puts the other transactions of a history between those of the graph. Those of the views, too, then stand in the order of the groups.
func (g *Graph) all(c *Certificate, groups iter.Seq[[]uint64], split bool) {
	of, lists := make([]int, len(g.txns)), make([][]Point, 1) // of transactions that are a group alone: the first one
	n := 0
	for group := range groups {
		if n += len(group); len(group) == 1 {
			continue
		}
		for _, id := range group {
			if at, ok := g.at.of(id); ok {
				of[at] = len(lists)
			}
		}
		lists = append(lists, nil)
	}
	groupOf := func(id uint64) int {
		at, _ := g.at.of(id)
		return of[at]
	}
	for _, p := range c.Order {
		n := groupOf(p.Txn)
		lists[n] = append(lists[n], p)
	}
	for _, view := range c.Views {
		slices.SortStableFunc(view, func(a, b uint64) int { return cmp.Compare(groupOf(a), groupOf(b)) })
	}
	if split {
		n *= 2
	}
	points := make([]Point, 0, n)
	lists = lists[1:]
	for group := range groups {
		switch {
		case len(group) > 1:
			points, lists = append(points, lists[0]...), lists[1:]
		case split:
			points = append(points, Point{group[0], true}, Point{group[0], false})
		default:
			points = append(points, Point{group[0], false})
		}
	}
	c.Order = points
}

// points is an order of the transactions of the graph; nil if there is none.
func (c *component) points(f *form) []Point {
	d := c.graph(f.kinds, f.split, f.prefix, func(e *edge) bool { return f.use(c.txns, e) })
	in := make([]int32, d.nodes())
	for _, a := range d.arcs {
		in[a.to]++
	}
	var ready []int32
	for v := range d.nodes() {
		if in[v] == 0 {
			ready = append(ready, v)
		}
	}
	n, done, points := int32(len(c.txns)), int32(0), []Point{}
	for len(ready) > 0 {
		v := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done++
		if f.split && v < 2*n || v < n {
			points = append(points, Point{c.txns[v%n].ID, f.split && v < n})
		}
		for _, a := range d.out(v) {
			if in[a.to]--; in[a.to] == 0 {
				ready = append(ready, a.to)
			}
		}
	}
	if done < d.nodes() {
		return nil
	}
	return points
}

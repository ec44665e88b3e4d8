package level

import (
	"fmt"
	"iter"
)

// form says in which order transactions have to fit that a level is satisfied.
type form struct {
	kinds  Kind
	split  bool // into starts and commits
	prefix bool // a ww orders commits alone
	rows   bool // an rw over what a condition chose does not count
}

func (f *form) use(e *edge) bool { return !f.rows || !e.pred || e.kind != RW }

// forms are those of the levels that an order proves. Of the others, the order of PL-2 is a part of the proof.
var forms = map[string]form{
	"PL-1": {kinds: WW}, "PL-2": {kinds: WW | WR}, "PL-2.99": {kinds: WW | WR | RW, rows: true},
	"prefix consistency": {kinds: WW | WR | SO | RW, split: true, prefix: true},
	"snapshot isolation": {kinds: WW | WR | RW, split: true}, "strong session snapshot isolation": {kinds: WW | WR | RW | SO, split: true},
	"strong snapshot isolation": {kinds: WW | WR | RW | SO | RT, split: true},
	"PL-3":                      {kinds: WW | WR | RW}, "strong session serializable": {kinds: WW | WR | RW | SO}, "strict serializable": {kinds: WW | WR | RW | SO | RT},
}

// Point is a place in a certificate: the commit of a transaction, or its start.
type Point struct {
	Txn   uint64 `json:"txn"`
	Start bool   `json:"start,omitempty"`
}

// Certificate is an order of commits (and starts, for levels of snapshots) that proves a level; nil if there is none, or no order alone
// proves the level.
//
// Where the graph has a part of a history, groups gives the IDs of all transactions in an order in which the groups fit, whatever the level, and the
// graph has all of each group that is more than one transaction. nil: the graph has the whole history.
func (g *Graph) Certificate(name string, groups iter.Seq[[]uint64]) []Point {
	f, ok := forms[name]
	if !ok {
		return nil
	}
	points := g.points(f)
	if groups == nil || points == nil {
		return points
	}
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
	for _, p := range points {
		at, _ := g.at.of(p.Txn)
		lists[of[at]] = append(lists[of[at]], p)
	}
	if f.split {
		n *= 2
	}
	points, lists = make([]Point, 0, n), lists[1:]
	for group := range groups {
		switch {
		case len(group) > 1:
			points, lists = append(points, lists[0]...), lists[1:]
		case f.split:
			points = append(points, Point{group[0], true}, Point{group[0], false})
		default:
			points = append(points, Point{group[0], false})
		}
	}
	return points
}

// points is an order of the transactions of the graph; nil if there is none.
func (g *Graph) points(f form) []Point {
	so, times := g.order(g.txns)
	c := &component{txns: g.txns, edges: append(g.edges.list(len(so)), so...), times: times}
	d := c.graph(f.kinds, f.split, f.prefix, f.use)
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
	n, done, points := int32(len(g.txns)), int32(0), []Point{}
	for len(ready) > 0 {
		v := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done++
		if f.split && v < 2*n || v < n {
			points = append(points, Point{g.txns[v%n].ID, f.split && v < n})
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

// Check checks a certificate against all dependencies between the transactions of the graph, session order and real time, and knows nothing of how it
// was made.
func (g *Graph) Check(name string, points []Point) error {
	f, ok := forms[name]
	if !ok {
		return fmt.Errorf("no order proves %s", name)
	}
	start, commit := make([]int, len(g.txns)), make([]int, len(g.txns))
	for i, p := range points {
		at, ok := g.at.of(p.Txn)
		if !ok {
			continue // of the rest of the history
		}
		if !p.Start {
			commit[at] = i + 1
		}
		if p.Start || !f.split {
			start[at] = i + 1
		}
	}
	for i, t := range g.txns {
		if start[i] == 0 || commit[i] == 0 || start[i] > commit[i] {
			return fmt.Errorf("transaction %d has no start before its commit", t.ID)
		}
	}
	for e := range g.edges.all() {
		from, to := commit[e.from], start[e.to]
		switch {
		case e.kind&f.kinds == 0 || !f.use(&e):
			continue
		case e.kind == RW:
			from, to = start[e.from], commit[e.to]
		case e.kind == WW && f.prefix:
			to = commit[e.to]
		}
		if from >= to {
			return fmt.Errorf("transaction %d is not before %d (%s)", g.txns[e.from].ID, g.txns[e.to].ID, e.kind)
		}
	}
	latest := map[uint64]Txn{} // by session, and of all under 0, in the order of the points: who started last
	for _, p := range points {
		at, ok := g.at.of(p.Txn)
		if !ok {
			continue
		}
		t := g.txns[at]
		if f.split && !p.Start {
			for _, in := range []uint64{t.Session, 0} { // whoever started before this commit did not begin after its end
				if l, ok := latest[in]; ok && l.ID != t.ID && t.To < l.From && (in == 0 && f.kinds&RT != 0 || in != 0 && f.kinds&SO != 0) {
					return fmt.Errorf("transaction %d ended before %d began, and commits behind its start", t.ID, l.ID)
				}
			}
			continue
		}
		for _, in := range []uint64{t.Session, 0} {
			l, ok := latest[in]
			if !f.split && ok && t.To < l.From && (in == 0 && f.kinds&RT != 0 || in != 0 && f.kinds&SO != 0) {
				return fmt.Errorf("transaction %d ended before %d began, and stands behind it", t.ID, l.ID)
			}
			if !ok || t.From > l.From {
				latest[in] = t
			}
		}
	}
	return nil
}

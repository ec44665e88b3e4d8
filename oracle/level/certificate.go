package level

import "fmt"

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
func (g *Graph) Certificate(name string) []Point {
	f, ok := forms[name]
	if !ok {
		return nil
	}
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

// Check checks a certificate against all dependencies, session order and real time, and knows nothing of how it was made.
func (g *Graph) Check(name string, points []Point) error {
	f, ok := forms[name]
	if !ok {
		return fmt.Errorf("no order proves %s", name)
	}
	start, commit := map[uint64]int{}, map[uint64]int{}
	for i, p := range points {
		if !p.Start {
			commit[p.Txn] = i + 1
		}
		if p.Start || !f.split {
			start[p.Txn] = i + 1
		}
	}
	for _, t := range g.txns {
		if start[t.ID] == 0 || commit[t.ID] == 0 || start[t.ID] > commit[t.ID] {
			return fmt.Errorf("transaction %d has no start before its commit", t.ID)
		}
	}
	if len(commit) != len(g.txns) {
		return fmt.Errorf("%d transactions commit, of %d", len(commit), len(g.txns))
	}
	for e := range g.edges.all() {
		a, b := g.txns[e.from].ID, g.txns[e.to].ID
		from, to := commit[a], start[b]
		switch {
		case e.kind&f.kinds == 0 || !f.use(&e):
			continue
		case e.kind == RW:
			from, to = start[a], commit[b]
		case e.kind == WW && f.prefix:
			to = commit[b]
		}
		if from >= to {
			return fmt.Errorf("transaction %d is not before %d (%s)", a, b, e.kind)
		}
	}
	latest := map[uint64]Txn{} // by session, and of all under 0, in the order of the points: who started last
	for _, p := range points {
		at, _ := g.at.of(p.Txn)
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

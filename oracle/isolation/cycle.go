package isolation

import (
	"slices"
	"strconv"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/oracle/level"
)

// kinds is a set of edge kinds.
type kinds uint8

const (
	edgeWW kinds = 1 << iota
	edgeWR
	edgeRW
	edgeSO
	edgeRT
	edgeRequest // evidence of findings only, never in the graph

	edgeData = edgeWW | edgeWR | edgeRW
)

// kind is the public name of a set of one.
func (k kinds) kind() oracle.EdgeKind {
	switch k {
	case edgeWW:
		return oracle.EdgeWW
	case edgeWR:
		return oracle.EdgeWR
	case edgeRW:
		return oracle.EdgeRW
	case edgeSO:
		return oracle.EdgeSO
	case edgeRequest:
		return oracle.EdgeRequest
	}
	return oracle.EdgeRT
}

// link is all that is known to lead from one transaction to another.
type link struct {
	to    *txn
	kinds kinds
	edges []edge
	first [1]edge // room for edges: most links have one
}

// edge is one dependency and its evidence.
type edge struct {
	kind     kinds
	from, to *version
	fromStmt int32 // index in its transaction; -1: not captured
	toStmt   int32
	pred     *predicate // of a predicate dependency; from and to are then the version that changed the match
}

// sameRow reports whether both edges go through one row, as far as known.
func (e *edge) sameRow(o *edge) bool {
	if e.from == nil || o.from == nil {
		return false
	}
	for _, a := range []*version{e.from, e.to} {
		for _, b := range []*version{o.from, o.to} {
			if a == b || a.row != nil && a.row == b.row || a.row != nil && b.row != nil && a.row.table == b.row.table && a.row.key == b.row.key {
				return true
			}
		}
	}
	return false
}

// newEdge is a kind of edge between two transactions that was not there before.
type newEdge struct{ from, to *txn }

// maxEvidence is how many edges of one kind between two transactions are kept.
const maxEvidence = 16

// outMap is the number of successors from which a map finds them.
const outMap = 16

// graph is what the search for cycles needs besides the transactions and their links.
type graph struct {
	edges []newEdge // made by the event at hand
	mark  uint32    // epoch of marks in txn and row
	queue []visit

	fresh     *txn   // the transaction that is being made a node, see graph.link
	freshMark uint32 // epoch of txn.fresh

	levels   *level.Graph // nil unless Options.Levels
	versions uint32       // numbered for levels

	frontier []*txn // strict: committed transactions with no committed real-time successor
}

// link finds what leads from one transaction to another. A transaction that just enters the graph is the end of many new
// links, and it is marked in their beginnings which of them are made already, so that nothing is searched.
func (g *graph) link(from, to *txn) *link {
	if to == g.fresh && from.fresh != g.freshMark {
		return nil
	}
	n := len(from.out)
	if n > 0 && from.out[n-1].to == to {
		return from.out[n-1]
	}
	if n > outMap && from.outTo == nil {
		from.outTo = make(map[*txn]*link, 2*n)
		for _, l := range from.out {
			from.outTo[l.to] = l
		}
	}
	if from.outTo != nil {
		return from.outTo[to]
	}
	for _, l := range from.out {
		if l.to == to {
			return l
		}
	}
	return nil
}

func (g *graph) addEdge(kind kinds, from, to *txn, fromV, toV *version, fromStmt, toStmt int32) {
	g.draw(edge{kind: kind, from: fromV, to: toV, fromStmt: fromStmt, toStmt: toStmt}, from, to)
}

// draw draws e from one transaction to another.
func (g *graph) draw(e edge, from, to *txn) {
	if from == to || from == nil || to == nil || from.gone || to.gone || from.state != stateCommitted || to.state != stateCommitted {
		return
	}
	l := g.link(from, to)
	if l == nil {
		l = &link{to: to}
		l.edges = l.first[:0]
		from.out = append(from.out, l)
		to.in++
		if from.outTo != nil {
			from.outTo[to] = l
		}
	}
	if to == g.fresh {
		from.fresh = g.freshMark
	}
	if l.kinds&e.kind == 0 {
		l.kinds |= e.kind
		g.edges = append(g.edges, newEdge{from, to})
	}
	n := 0
	for i := range l.edges {
		o := &l.edges[i]
		if o.kind != e.kind {
			continue
		}
		if *o == e {
			return
		}
		n++
	}
	g.tell(&e, from, to)
	if n < maxEvidence {
		l.edges = append(l.edges, e)
	}
}

// search looks for cycles that the event at hand completed, that is, cycles through its new edges. Nearly all of them
// touch the transaction that ended last.
func (c *Checker) search(session uint64) {
	if len(c.edges) == 0 {
		return
	}
	last := c.ended[len(c.ended)-1]
	sources := []*txn{last}
	for _, e := range c.edges {
		if e.from != last && e.to != last && !slices.Contains(sources, e.from) {
			sources = append(sources, e.from)
		}
	}
	for _, s := range sources {
		if s.in == 0 || len(s.out) == 0 {
			continue
		}
		mask := edgeData
		if c.walk(s, anyCycle(mask)) != nil {
			c.classes(s, session, mask, "")
			continue
		}
		if !c.opts.Strict {
			continue
		}
		if mask |= edgeSO; c.walk(s, anyCycle(mask)) != nil {
			c.classes(s, session, mask, anomaly.SuffixProcess)
		} else if mask |= edgeRT; c.walk(s, anyCycle(mask)) != nil {
			c.classes(s, session, mask, anomaly.SuffixRealtime)
		}
	}
}

// classes reports the shortest cycle through s of each class, most severe first. A cycle over all the transactions of a
// more severe one says nothing new and is left out.
func (c *Checker) classes(s *txn, session uint64, mask kinds, suffix string) {
	var had [][]step
	for _, cl := range classWalks {
		best := []step(nil)
		walks := slices.Clone(cl.walks)
		for i := range walks {
			w := &walks[i]
			w.mask &= mask
			if cl.class == anomaly.G0 && suffix != "" {
				w.mask |= mask & (edgeSO | edgeRT)
			}
			if p := c.walk(s, *w); p != nil && (best == nil || len(p) < len(best)) {
				best = p
			}
		}
		if best != nil && !simple(best) {
			best = c.simpleCycle(s, walks)
		}
		if best == nil || covers(best, had) {
			continue
		}
		had = append(had, best)
		c.report(best, cl.class, suffix, mask, session)
	}
}

// covers reports whether p passes through all transactions of one of the others.
func covers(p []step, others [][]step) bool {
	for _, o := range others {
		all := true
		for _, x := range o {
			in := false
			for _, y := range p {
				in = in || x.t == y.t
			}
			all = all && in
		}
		if all {
			return true
		}
	}
	return false
}

// step is one hop of a cycle: from t by a link, over an rw edge or over one of the others.
type step struct {
	t  *txn
	l  *link
	rw bool
}

// automaton says which closed walks are looked for. States are small numbers; next gives the state after a hop.
type automaton struct {
	mask  kinds
	start uint8
	next  func(state uint8, rw bool) (uint8, bool)
	final func(state uint8) bool
}

const maxStates = 6

// place marks a transaction as visited in a state.
type place uint32

// visit is one entry of the search's queue.
type visit struct {
	t      *txn
	l      *link // by which it was reached from parent
	parent int32
	state  uint8
	rw     bool
}

// walk finds the shortest closed walk from s to s that a accepts, breadth first.
func (g *graph) walk(s *txn, a automaton) []step {
	g.mark++
	epoch := place(g.mark)
	q := append(g.queue[:0], visit{t: s, parent: -1, state: a.start})
	defer func() { g.queue = q[:0] }()
	for i := 0; i < len(q); i++ {
		at := q[i]
		for _, l := range at.t.out {
			k := l.kinds & a.mask
			if k == 0 || l.to.gone {
				continue
			}
			for _, rw := range [2]bool{false, true} {
				if rw && k&edgeRW == 0 || !rw && k&^edgeRW == 0 {
					continue
				}
				state, ok := a.next(at.state, rw)
				if !ok {
					continue
				}
				if l.to == s {
					if a.final(state) {
						return path(q, visit{t: s, l: l, parent: int32(i), rw: rw})
					}
					continue
				}
				if l.to.places[state] == epoch {
					continue
				}
				l.to.places[state] = epoch
				q = append(q, visit{t: l.to, l: l, parent: int32(i), state: state, rw: rw})
			}
		}
	}
	return nil
}

// path follows the parents back.
func path(q []visit, last visit) []step {
	var out []step
	for v := last; v.parent >= 0; v = q[v.parent] {
		out = append(out, step{t: q[v.parent].t, l: v.l, rw: v.rw})
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func simple(p []step) bool {
	for i := range p {
		for j := range p[:i] {
			if p[i].t == p[j].t {
				return false
			}
		}
	}
	return true
}

func anyCycle(mask kinds) automaton {
	return automaton{mask: mask,
		next:  func(uint8, bool) (uint8, bool) { return 0, true },
		final: func(uint8) bool { return true }}
}

// classWalks are the classes of cycles, most severe first (anomalies: Adya 1999, section 4.2; Cerone and Gotsman 2016).
var classWalks = []struct {
	class oracle.Class
	walks []automaton
}{
	{anomaly.G0, []automaton{anyCycle(edgeWW)}},
	{anomaly.G1c, []automaton{anyCycle(edgeWW | edgeWR | edgeSO | edgeRT)}},
	{anomaly.GSingle, []automaton{{
		mask: edgeData | edgeSO | edgeRT,
		next: func(s uint8, rw bool) (uint8, bool) {
			if rw {
				return 1, s == 0
			}
			return s, true
		},
		final: func(s uint8) bool { return s == 1 },
	}}},
	{anomaly.GNonadjacent, []automaton{nonadjacent(false), nonadjacent(true)}},
	{anomaly.G2Item, []automaton{{
		mask:  edgeData | edgeSO | edgeRT,
		next:  func(s uint8, rw bool) (uint8, bool) { return count(s, rw), true },
		final: func(s uint8) bool { return s == 2 },
	}}},
}

// count counts rw edges up to two.
func count(n uint8, rw bool) uint8 {
	if rw && n < 2 {
		return n + 1
	}
	return n
}

// nonadjacent accepts walks with two or more rw edges, no two of them in a row, also not the last and the first. A state
// is twice the count of rw edges, plus one if the last hop was one. Whether the first hop is one is fixed.
func nonadjacent(firstRW bool) automaton {
	return automaton{
		mask:  edgeData | edgeSO | edgeRT,
		start: 6,
		next: func(s uint8, rw bool) (uint8, bool) {
			n, last := s/2, s%2 == 1
			if s == 6 {
				if rw != firstRW {
					return 0, false
				}
				n, last = 0, false
			}
			if rw && last {
				return 0, false
			}
			n = count(n, rw)
			if rw {
				return 2*n + 1, true
			}
			return 2 * n, true
		},
		final: func(s uint8) bool { return s/2 == 2 && !(firstRW && s%2 == 1) },
	}
}

// maxSteps bounds the search for a simple cycle where the shortest closed walk passes a transaction twice.
const maxSteps = 20_000

// simpleCycle looks depth first for a cycle that one of the automata accepts; nil if there is none within maxSteps hops.
func (g *graph) simpleCycle(s *txn, walks []automaton) []step {
	for _, a := range walks {
		left := maxSteps
		on := map[*txn]bool{s: true}
		var p []step
		var visit func(t *txn, state uint8) bool
		visit = func(t *txn, state uint8) bool {
			for _, l := range t.out {
				for _, rw := range [2]bool{false, true} {
					if l.kinds&a.mask == 0 || rw && l.kinds&edgeRW == 0 || !rw && l.kinds&a.mask&^edgeRW == 0 || l.to.gone {
						continue
					}
					next, ok := a.next(state, rw)
					if left--; !ok || left < 0 {
						continue
					}
					p = append(p, step{t, l, rw})
					if l.to == s && a.final(next) {
						return true
					}
					if !on[l.to] {
						on[l.to] = true
						if visit(l.to, next) {
							return true
						}
						delete(on, l.to)
					}
					p = p[:len(p)-1]
				}
			}
			return false
		}
		if visit(s, a.start) {
			return p
		}
	}
	return nil
}

// setKey names a class and a set of transactions; for a dirty read, which has a direction, in their order.
func setKey(class oracle.Class, ts []*txn) string {
	ids := make([]uint64, len(ts))
	for i, t := range ts {
		ids[i] = t.id
	}
	if class != anomaly.G1a && class != anomaly.G1b {
		slices.Sort(ids)
	}
	var b strings.Builder
	b.WriteString(string(class))
	for _, id := range ids {
		b.WriteByte(' ')
		b.WriteString(strconv.FormatUint(id, 10))
	}
	return b.String()
}

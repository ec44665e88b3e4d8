package isolation

import (
	"slices"
	"strconv"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/oracle/cycle"
	"wirecheck/oracle/level"
)

type kinds = cycle.Kinds

const (
	edgeWW      = cycle.WW
	edgeWR      = cycle.WR
	edgeRW      = cycle.RW
	edgeSO      = cycle.SO
	edgeRT      = cycle.RT
	edgeRequest = cycle.Request // evidence of findings only, never in the graph
	edgeRow     = cycle.Row     // ww, of writes that commute: see assigned.go
	edgeRowWR   = cycle.RowWR   // wr and rw, of reads of other columns: see given.go
	edgeRowRW   = cycle.RowRW

	edgeData = cycle.Data
	edgeRows = cycle.Rows
)

// kindOf is the public name of a set of one.
func kindOf(k kinds) oracle.EdgeKind {
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
	from, to *txn
	// outAt and inAt are the places of its arcs: see node.
	outAt, inAt uint32
	kinds       kinds
	edges       []edge
	first       [1]edge // room for edges: most links have one
}

// edge is one dependency and its evidence.
type edge struct {
	kind     kinds
	over     bool // a ww that stands for a path over other versions of the row
	commutes bool // evidence: one of edgeRows, told as the kind without Row
	spares   bool // evidence: a ww that assigned no column that the one before had changed
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
	paths cycle.Graph
	nodes []*txn // by their numbers in paths
	// searched says that paths has all links, see node.go.
	searched bool

	commuted  bool   // there is one of edgeRows
	fresh     *txn   // the transaction that is being made a node, see graph.link
	freshMark uint32 // epoch of txn.fresh

	levels *level.Graph // nil unless Options.Levels
	// What conditions of statements tell of older changes, for levels alone: how many more are compared; rows that were missed; statements of which not all are compared.
	grant, missed, uncompared int
	versions                  uint32 // numbered for levels

	dependencies func(Dependency) // Options.Dependencies
	told         bool             // there is Options.Walks: no edge is drawn

	frontier []*txn // strict: committed transactions with no committed real-time successor

	spare spare // room for the next transactions'
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
	if g.told || from == to || from == nil || to == nil || from.gone || to.gone || from.state != stateCommitted || to.state != stateCommitted {
		return
	}
	l := g.link(from, to)
	if l == nil {
		l = g.spare.link(from, to)
		if to.led = true; g.searched {
			g.arcs(l)
		}
		from.out = append(from.out, l)
		if from.outTo != nil {
			from.outTo[to] = l
		}
	}
	if to == g.fresh {
		from.fresh = g.freshMark
	}
	g.paths.Backward = g.paths.Backward || e.kind&cycle.Anti == 0 && from.end > to.end
	g.commuted = g.commuted || e.kind&edgeRows != 0
	if l.kinds&e.kind == 0 {
		g.become(l, l.kinds|e.kind)
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
	g.show(&e, from, to)
	if n < maxEvidence {
		l.edges = append(l.edges, e)
	}
}

// search looks for cycles that the event at hand completed, that is, cycles through its new edges. Nearly all of them
// touch the transaction that ended last.
func (c *Checker) search(session uint64) {
	if c.told {
		for _, w := range c.opts.Walks(c.hand.id) {
			c.report(stepsOf(c, w), w.Class, "", edgeData, session)
		}
	}
	if len(c.edges) == 0 {
		return
	}
	last := c.hand
	sources := []*txn{last}
	for _, e := range c.edges {
		if e.from != last && e.to != last && !slices.Contains(sources, e.from) {
			sources = append(sources, e.from)
		}
	}
	for _, s := range sources {
		if !s.led || len(s.out) == 0 {
			continue
		}
		ready(c)
		if c.classes(s, session, edgeData, "") {
			continue
		}
		if c.commuted {
			c.classes(s, session, edgeData|edgeRows, "")
		}
		if !c.opts.Strict {
			continue
		}
		if !c.classes(s, session, edgeData|edgeSO, anomaly.SuffixProcess) {
			c.classes(s, session, edgeData|edgeSO|edgeRT, anomaly.SuffixRealtime)
		}
	}
}

// classes reports the shortest cycle through s of each class, most severe first, and whether there is any cycle.
func (c *Checker) classes(s *txn, session uint64, mask kinds, suffix string) (some bool) {
	begun := c.coverage.Transactions
	if c.opts.Passed != nil {
		begun += c.opts.Passed()
	}
	list, some := c.paths.Through(s.node-1, mask, begun)
	for _, f := range list {
		if p := c.steps(f.Hops); s == c.hand || c.completed(p) {
			c.report(p, f.Class, suffix, mask, session)
		}
	}
	return some
}

// completed reports whether a cycle goes through an edge that the event at hand made. An older one was searched for when it was completed: if it were
// reported because an edge leads from it to somewhere else, what is found would depend on transactions that are in no cycle.
func (g *graph) completed(p []step) bool {
	return slices.ContainsFunc(p, func(s step) bool { return slices.Contains(g.edges, newEdge{s.l.from, s.l.to}) })
}

// step is one hop of a cycle: from t by a link, over an rw edge or over one of the others.
type step struct {
	t  *txn
	l  *link
	rw bool
}

// steps are the hops of a cycle, along links.
func (g *graph) steps(hops []cycle.Hop) (p []step) {
	for _, h := range hops {
		t := g.nodes[h.From]
		p = append(p, step{t, t.out[h.Arc], h.RW})
	}
	return p
}

// stepsOf makes the steps of a cycle that another one found.
func stepsOf(c *Checker, w cycle.Walk) []step {
	p := make([]step, len(w.Steps))
	for i, s := range w.Steps {
		l := &link{from: c.walked[s.Txn], to: c.walked[w.Steps[(i+1)%len(w.Steps)].Txn]}
		kept := map[kinds]int{}
		for _, x := range s.Edges {
			a, b := &l.from.accesses[x.From], &l.to.accesses[x.To]
			e := edge{kind: x.Kind, over: x.Over, from: a.node, to: b.node, fromStmt: a.stmt, toStmt: b.stmt}
			if x.Kind == edgeWR {
				e.to = a.node // what b wrote may have replaced it
			}
			l.kinds |= x.Kind
			if kept[x.Kind] < maxEvidence && !slices.Contains(l.edges, e) {
				kept[x.Kind]++
				l.edges = append(l.edges, e)
			}
		}
		p[i] = step{l.from, l, s.RW}
	}
	return p
}

// setKey names a class and a set of transactions; for a dirty read, which has a direction, in their order.
func setKey(class oracle.Class, ts []*txn) string {
	ids := make([]uint64, len(ts))
	for i, t := range ts {
		ids[i] = t.id
	}
	if class != anomaly.G1a && class != anomaly.G1b && class != anomaly.GarbageRead {
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

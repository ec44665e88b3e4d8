package isolation

import (
	"slices"
	"wirecheck/anomaly"
	"wirecheck/oracle"
	"wirecheck/product"
)

// hop is one edge of a reported cycle: from t.
type hop struct {
	t *txn
	e edge
}

// choose picks one edge for each step of a cycle, so that the best everyday name fits, and gives that name.
func choose(c *Checker, p []step, class oracle.Class, mask kinds) ([]hop, string) {
	if len(p) == 2 {
		return choosePair(c, p, class, mask)
	}
	hops := make([]hop, len(p))
	for i, s := range p {
		hops[i] = hop{s.t, shownAs(c, *pick(s, class, mask))}
	}
	if class == anomaly.G1c && count1(hops, edgeWR) == 0 {
		for i, s := range p {
			if e := s.first(edgeWR); e != nil {
				hops[i].e = shownAs(c, *e)
				break
			}
		}
	}
	hops = shorten(hops, class)
	if len(hops) == 2 {
		return hops, namePair(c, hops, class)
	}
	return hops, nameLong(hops, class)
}

// pick prefers, for a hop that is not rw, what was read to what was overwritten: it says more about what went wrong.
func pick(s step, class oracle.Class, mask kinds) *edge {
	order := []kinds{edgeWR, edgeWW, edgeSO, edgeRT, edgeRow, edgeRowWR}
	if class == anomaly.G0 {
		order = []kinds{edgeWW, edgeSO, edgeRT, edgeRow}
	}
	if s.rw {
		order = []kinds{edgeRW, edgeRowRW}
	}
	for _, k := range order {
		if k&mask == 0 {
			continue
		}
		if e := s.first(k); e != nil {
			return e
		}
	}
	panic("isolation: a cycle passes where there is no edge")
}

// shownAs is an edge as a finding tells it.
func shownAs(c *Checker, e edge) edge {
	e.commutes = e.kind&edgeRows != 0
	e.kind = byRow(e.kind)
	if e.kind == edgeWW {
		_, e.spares = overwritten(c, e.from, e.to)
	}
	return e
}

// byRow is a kind as it is where rows are what writes and reads are of.
func byRow(k kinds) kinds {
	switch k {
	case edgeRow:
		return edgeWW
	case edgeRowWR:
		return edgeWR
	case edgeRowRW:
		return edgeRW
	}
	return k
}

// first is the first edge of a kind; those over rows that were read go before those over conditions.
func (s step) first(k kinds) (found *edge) {
	for i := range s.l.edges {
		if e := &s.l.edges[i]; e.kind == k && (found == nil || found.pred != nil && e.pred == nil) {
			found = e
		}
	}
	return found
}

// overPredicates counts the anti-dependencies of a predicate read.
func overPredicates(hops []hop) int {
	n := 0
	for _, h := range hops {
		if h.e.kind == edgeRW && h.e.pred != nil {
			n++
		}
	}
	return n
}

func count1(hops []hop, k kinds) int {
	n := 0
	for _, h := range hops {
		if h.e.kind == k {
			n++
		}
	}
	return n
}

// rank orders the names that the edges of a pair allow: the more telling first.
var rank = map[string]int{
	anomaly.LostUpdate: 1, anomaly.Vanishes: 2, anomaly.ReadSkew: 3, anomaly.NonRepeatableRead: 4,
	anomaly.WriteSkew: 1, anomaly.ReadWriteSkew: 5, anomaly.Phantom: 6, anomaly.DirtyWrite: 1, anomaly.CircularFlow: 1, "": 9,
}

// choosePair tries all edges between two transactions.
func choosePair(c *Checker, p []step, class oracle.Class, mask kinds) (best []hop, name string) {
	for i := range p[0].l.edges {
		for j := range p[1].l.edges {
			a, b := p[0].l.edges[i], p[1].l.edges[j]
			if (byRow(a.kind) == edgeRW) != p[0].rw || (byRow(b.kind) == edgeRW) != p[1].rw || a.kind&mask == 0 || b.kind&mask == 0 {
				continue
			}
			if class == anomaly.G0 && (byRow(a.kind) == edgeWR || byRow(b.kind) == edgeWR) {
				continue
			}
			if class == anomaly.G1c && byRow(a.kind) != edgeWR && byRow(b.kind) != edgeWR && (p[0].l.kinds|p[1].l.kinds)&mask&(edgeWR|edgeRowWR) != 0 {
				continue
			}
			hops := []hop{{p[0].t, shownAs(c, a)}, {p[1].t, shownAs(c, b)}}
			if n := namePair(c, hops, class); best == nil || rank[n] < rank[name] || rank[n] == rank[name] && overPredicates(hops) < overPredicates(best) {
				best, name = hops, n
			}
		}
	}
	if best == nil {
		panic("isolation: a cycle passes where there is no edge")
	}
	return best, name
}

// namePair names a cycle of two transactions (notes of IsoRel, section 2.4; Berenson 1995 for A5A and A5B).
func namePair(c *Checker, h []hop, class oracle.Class) string {
	switch class {
	case anomaly.G0, anomaly.G1c:
		return nameLong(h, class)
	case anomaly.G2Item:
		return anomaly.WriteSkew // over one row: of different columns, since there is no ww
	case anomaly.GSingle:
	default:
		return ""
	}
	r, o := h[0], h[1] // r.t read the old version
	if r.e.kind != edgeRW {
		r, o = o, r
	}
	if r.e.pred != nil {
		return anomaly.Phantom
	}
	same := r.e.sameRow(&o.e)
	switch {
	case o.e.kind == edgeWW && same && !o.e.spares && staleAtWrite(c, r, o):
		return anomaly.LostUpdate
	case o.e.kind == edgeWW && !same:
		return anomaly.ReadWriteSkew
	case o.e.kind == edgeWR && same && r.t.matched(o.e.to, o.e.toStmt):
		// Both derived the same new value from the same old one, so the second UPDATE changed nothing.
		return anomaly.LostUpdate
	case o.e.kind == edgeWR && same:
		return anomaly.NonRepeatableRead
	// A statement that waited for a row sees its newest version beside older ones of other rows: the product documents it.
	case o.e.kind == edgeWR && o.e.toStmt == r.e.fromStmt && r.t.rechecked(&o.e):
		return anomaly.ReadSkew
	// In one statement there is no order: seeing part of a transaction there vanishes, too (MAV, Bailis 2013, 5.1.2).
	case o.e.kind == edgeWR && o.e.toStmt <= r.e.fromStmt && r.e.fromStmt >= 0:
		return anomaly.Vanishes
	case o.e.kind == edgeWR:
		return anomaly.ReadSkew
	}
	return ""
}

// rechecked reports whether a version was read to be locked, or was in the way of an INSERT that passed over it, on a product that goes on with the newest version of a row that a statement waited for,
// and with what the statement's snapshot has of all others (product.EvalPlanQual).
func (t *txn) rechecked(e *edge) bool {
	return t.product().Cause(product.EvalPlanQual) != nil && (e.pred != nil && e.pred.met || slices.ContainsFunc(t.accesses, func(a access) bool {
		return a.op == opLock && a.stmt == e.toStmt && a.node == e.from
	}))
}

// nameLong names a longer cycle where a name fits.
func nameLong(h []hop, class oracle.Class) string {
	switch class {
	case anomaly.G0:
		return anomaly.DirtyWrite
	case anomaly.G1c:
		return anomaly.CircularFlow
	case anomaly.GSingle:
		if overPredicates(h) > 0 {
			return anomaly.Phantom
		}
		if count1(h, edgeWR) == len(h)-1 {
			return anomaly.ReadSkew
		}
	case anomaly.GNonadjacent:
		if len(h) == 4 && count1(h, edgeRW) == 2 && count1(h, edgeWR) == 2 {
			return anomaly.LongFork
		}
	}
	return ""
}

// staleAtWrite reports whether the last thing that the reader r.t saw of the row before it wrote it was still older than
// the other transaction's version. If it read again and saw that version, the update is not lost; unless it read other columns alone.
func staleAtWrite(c *Checker, r, o hop) bool {
	last := (*version)(nil)
	for i := range r.t.accesses {
		a := &r.t.accesses[i]
		if a.stmt > o.e.toStmt && o.e.toStmt >= 0 {
			break
		}
		if a.op.writes() || a.own || a.node == nil {
			continue
		}
		probe := edge{from: a.node, to: a.node}
		if probe.sameRow(&r.e) && concerned(c, reader{r.t, int32(i)}, usesBy(c, r.e.to)) {
			last = a.node
		}
	}
	return last == nil || last == r.e.from || last.order > 0 && last.order < r.e.to.order
}

// shorten merges neighbours of a cycle that go through versions of one row: if A precedes B there and B precedes C by
// ww, then A precedes C. So a stale read of a row that several transactions then wrote is told with two transactions. What is left must
// prove the class: in a G-nonadjacent no rw comes to stand beside another one.
func shorten(h []hop, class oracle.Class) []hop {
	for i := 0; len(h) > 2 && i < len(h); {
		j := (i + 1) % len(h)
		a, b := h[i].e, h[j].e
		if b.kind != edgeWW || a.kind != edgeWW && a.kind != edgeRW || a.to != b.from || a.pred != nil ||
			class == anomaly.GNonadjacent && a.kind == edgeRW && h[(j+1)%len(h)].e.kind == edgeRW {
			i++
			continue
		}
		h[i].e.to, h[i].e.toStmt, h[i].e.commutes = b.to, b.toStmt, a.commutes || b.commutes
		h = append(h[:j:j], h[j+1:]...)
		if j < i {
			i--
		}
		i = 0
	}
	return h
}

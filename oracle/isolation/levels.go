package isolation

import (
	"iter"

	"wirecheck/anomaly"
	"wirecheck/history/prose"
	"wirecheck/oracle/cycle"
	"wirecheck/oracle/level"
	"wirecheck/product"
)

// Levels are the dependencies that c keeps for the levels of the history; nil unless Options.Levels.
func Levels(c *Checker) *level.Graph { return c.levels }

// Unsure says why a level that no dependency breaks may be broken nevertheless; empty: it is not.
func Unsure(c *Checker) string {
	v := c.Coverage()
	for _, g := range append([]gap{
		{v.Unjudged, "event", " not judged"},
		{len(v.Contradictions), "kind", " of contradictions in it"},
		{v.Opaque, "statement", " opaque"},
		{v.Approximate, "statement", " approximate"},
		{v.Unevaluated(), "predicate", " not evaluated"},
		{v.Blind, "change", " whose captured values do not tell whether a condition holds"},
		{v.Unsettled, "predicate", " of which it is not certain what it saw"},
		{c.missed, "row", " missed by a statement that must have found it, unless a session that was not observed deleted it"},
		{c.uncompared, "predicate", " not compared with all older changes"},
	}, v.gaps()...) {
		if g.n > 0 {
			return prose.Count(g.n, g.what) + g.more
		}
	}
	if c.levels != nil && c.levels.Unordered > 0 {
		return prose.Count(c.levels.Unordered, "write") + " whose place among the versions of the row is not known"
	}
	return ""
}

// own is what t asks for by its level. A product's REPEATABLE READ may be snapshot isolation.
func own(t *txn) level.Own {
	switch t.level {
	case product.ReadUncommitted:
		return level.OwnPL1
	case product.ReadCommitted:
		return level.OwnPL2
	case product.Snapshot:
		return level.OwnSnapshot
	case product.Serializable:
		return level.OwnPL3
	case product.RepeatableRead:
		if first, _ := t.product().Promises(t.level, anomaly.P4); first && t.product().WeakestSnapshot() == t.level {
			return level.OwnSnapshot
		}
		return level.OwnPL299
	}
	return level.OwnUnknown
}

// tell tells the levels of an edge.
func (g *graph) tell(e *edge, from, to *txn) {
	if g.levels == nil {
		return
	}
	of := func(v *version) uint32 {
		if v == nil {
			return 0
		}
		if v.number == 0 {
			g.versions++
			v.number = g.versions
		}
		return v.number
	}
	var kind level.Kind
	switch e.kind {
	case edgeWW:
		kind = level.WW
	case edgeWR:
		kind = level.WR
	case edgeRW:
		kind = level.RW
	default:
		return // session order and real time it knows
	}
	old := of(e.from)
	if e.over {
		old = 0 // of the row's order it would leave a part out
	}
	g.levels.AddEdge(level.Edge{From: from.id, To: to.id, Kind: kind, Predicate: e.pred != nil, Old: old, New: of(e.to), FromStatement: e.fromStmt, ToStatement: e.toStmt})
}

// Draw tells the levels the committed transactions, in the order of their ends, and the dependencies that another one drew (Options.Walks). all is a Checker
// that has counted all of them. onward says that its ww make no cycle: then it tells no dependencies where nothing but such a cycle may break a level.
func Draw(c, all *Checker, onward bool, txns iter.Seq[cycle.Txn], edges iter.Seq[cycle.Dependency]) {
	if c.levels == nil {
		return
	}
	n := 0
	c.levels.Room(len(all.ran))
	for t := range txns {
		if is := all.ran[n]; t.Edges {
			c.levels.AddTxn(level.Txn{ID: t.ID, Session: t.Session, From: t.From, To: t.To, Writes: is.wrote, Own: is.own})
		}
		n++
	}
	if onward && c.levels.Open()&^level.WW == 0 {
		return
	}
	for e := range edges {
		kind := level.RW
		switch e.Kind {
		case edgeWW:
			kind = level.WW
		case edgeWR:
			kind = level.WR
		}
		c.levels.AddEdge(level.Edge{From: e.From, To: e.To, Kind: kind, Old: e.Old, New: e.New, FromStatement: e.FromStatement, ToStatement: e.ToStatement})
	}
}

func ids(ts []*txn) (list []uint64) {
	for _, t := range ts {
		list = append(list, t.id)
	}
	return list
}

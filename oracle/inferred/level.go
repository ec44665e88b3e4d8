package inferred

import (
	"math"
	"slices"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/oracle/level"
)

// At judges the findings by a level: what it forbids is a violation. nil stands for strict serializability, name for what people call the level.
func At(l *level.Level, name string, findings []oracle.Finding) {
	for i := range findings {
		f := &findings[i]
		f.Level = name
		if f.Promised = l == nil || l.Excludes(f.Class); f.Promised {
			f.Kind = oracle.KindViolation
		}
	}
}

// levels judges the levels by the dependencies, and by the findings that are no cycles. Where only the order of versions is not known, a level is
// satisfied if there is an order that satisfies it (see orders). Where something else does not decide, a level that nothing breaks is unknown: all of
// them; or, if a serial order was found, those that also ask for the order of sessions or real time, unless that was looked for.
func levels(c *checker, data []edge) []level.Verdict {
	o := newOrders(c, data)
	for i := range c.found {
		if f := &c.found[i]; level.IsFact(f.Class) {
			fact := level.Fact{Class: f.Class}
			for _, t := range f.Transactions {
				fact.Txns = append(fact.Txns, t.ID)
			}
			o.g.AddFact(fact)
		}
	}
	vs := o.g.Judge()
	if orderAlone(c) {
		o.decide(vs)
		return vs
	}
	for i := range vs {
		beyond := c.coverage.Serial && !c.opts.Order && !level.Implies("PL-3", vs[i].Level)
		inDoubt := len(c.doubts) > 0 && !c.coverage.Serial
		if vs[i].State == level.Satisfied && (inDoubt || c.undecided != "" || beyond) {
			vs[i].State = level.Unknown
		}
	}
	return vs
}

// transactions adds the nodes to g and gives all IDs, which are their places in the history if those of the source are not unique, and the nodes.
func transactions(c *checker, g *level.Graph) ([]uint64, []level.Txn) {
	ids, met, unique := make([]uint64, len(c.h.Transactions)), map[uint64]bool{}, true
	nodes := make([]level.Txn, len(c.h.Transactions))
	apart := uint64(0) // the highest number of a session
	for t := range c.h.Transactions {
		x := &c.h.Transactions[t]
		unique = unique && !met[x.ID]
		met[x.ID], ids[t], apart = true, x.ID, max(apart, x.Session)
	}
	began := map[uint64]uint64{} // by session: when its last transaction did, at least
	for t := range c.h.Transactions {
		x := &c.h.Transactions[t]
		if !unique {
			ids[t] = uint64(t + 1)
		}
		if !c.node[t] {
			continue
		}
		n := level.Txn{ID: ids[t], Session: x.Session, From: x.Begin, To: x.End}
		if !c.h.Ordered {
			n.From, n.To = 0, 0
		}
		if n.To == 0 || x.Outcome != history.OutcomeCommitted {
			n.To = math.MaxUint64
		}
		if n.Session == 0 || x.Outcome != history.OutcomeCommitted { // no session orders it
			n.Session = apart + uint64(t) + 1
		}
		n.From = max(n.From, began[n.Session])
		began[n.Session] = n.From
		nodes[t] = n
		g.AddTxn(n)
	}
	for t := range c.h.Transactions {
		if c.node[t] && slices.ContainsFunc(c.h.Transactions[t].Ops, func(op observed.Op) bool { return op.Kind != observed.Read }) {
			g.Wrote(ids[t])
		}
	}
	return ids, nodes
}

func unsure(c *checker) string {
	switch {
	case c.coverage.Preloaded > 0:
		return prose.Count(c.coverage.Preloaded, "key") + " with a value that no transaction wrote"
	case c.coverage.Unordered > 0 && !c.coverage.Serial && !orderAlone(c):
		return prose.Count(c.coverage.Unordered, "key") + " whose versions have an unknown order"
	}
	return ""
}

package level

import (
	"slices"

	"wirecheck/anomaly"
)

// Own is what a transaction asks for by the level that it ran at, where those of a history ran at different ones.
type Own uint8

// What transactions ask for, weakest first.
const (
	OwnUnknown Own = iota
	OwnPL1
	OwnPL2
	OwnPL299
	OwnSnapshot
	OwnPL3
)

// level is the level of the list.
func (o Own) level() string {
	return [...]string{"", "PL-1", "PL-2", "PL-2.99", "snapshot isolation", "PL-3"}[o]
}

// Mixed asks of each transaction for its own level, by Adya's mixed serialization graph (1999). A dependency counts if it matters to the
// transaction that has a right to it: ww to all, wr to a reader at PL-2 or stronger, rw to a reader at PL-2.99 (over rows), snapshot isolation or PL-3.
// A history is right if no cycle is left, and no reader at PL-2 or stronger read what was undone or not final.
//
// A transaction in a snapshot has a start and a commit (Cerone and Gotsman 2016): two adjacent rw with such a one between them make no cycle.
var Mixed = Level{Name: "mixed", Forbids: "a cycle of the dependencies that matter to the levels of their transactions", Source: "Adya 1999, mixing of isolation levels"}

// Own are the different levels at which the transactions ran.
func (g *Graph) Own() (list []Own) {
	seen := g.own
	for i := range g.txns {
		seen |= 1 << g.txns[i].Own
	}
	for o := OwnUnknown; o <= OwnPL3; o++ {
		if seen>>o&1 != 0 {
			list = append(list, o)
		}
	}
	return list
}

// Mixed judges each transaction by its own level. It is unknown if that of one is not known, and nothing is broken.
func (g *Graph) Mixed() Verdict {
	v := Verdict{Level: Mixed.Name, State: Satisfied}
	for _, f := range g.facts {
		at, ok := g.at.of(f.Txns[len(f.Txns)-1]) // who read, or replaced, what was not to be seen
		if !ok {
			continue
		}
		if l, err := Parse(g.txns[at].Own.level()); err == nil && l.Excludes(f.Class) {
			a, _ := anomaly.Of(f.Class, "")
			v.State, v.Witness = Broken, &Witness{Class: f.Class, Name: a.Name, Txns: f.Txns}
			return v
		}
	}
	c := g.cyclic(data)
	if p := c.mixed().cycle(); p != nil {
		v.State, v.Witness = Broken, c.witness(p, "")
	} else if slices.Contains(g.Own(), OwnUnknown) {
		v.State = Unknown
	}
	return v
}

// mixed makes the digraph of the edges that matter. A transaction in a snapshot is two nodes, as in graph; all others are one.
func (c *component) mixed() *digraph {
	n := int32(len(c.txns))
	commit := func(t int32) int32 {
		if c.txns[t].Own == OwnSnapshot {
			return t + n
		}
		return t
	}
	return c.collect(2*n, func(add func(from, to, edge int32)) {
		for i := range c.edges {
			e := &c.edges[i]
			switch own := c.txns[e.from].Own; {
			case e.kind == WW, e.kind == WR && c.txns[e.to].Own >= OwnPL2:
				add(commit(e.from), e.to, int32(i))
			case e.kind == RW && (own > OwnPL299 || own == OwnPL299 && !e.pred):
				add(e.from, commit(e.to), int32(i))
			}
		}
		for t := range n {
			if c.txns[t].Own == OwnSnapshot {
				add(t, t+n, within)
			}
		}
	})
}

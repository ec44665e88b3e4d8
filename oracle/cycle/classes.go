package cycle

import (
	"slices"

	"wirecheck/anomaly"
)

// maxNear bounds the first search for the shortest cycle of all. Where that is long, it is seldom of one of the worst classes, and their own searches
// find what is reported.
const maxNear = 256

// A search for the shortest cycle may visit all that came behind what its transaction missed. Where one read of a hundred is stale, all searches together
// would take a time that grows with the square of the history's length. So there is a limit to what they visit: once maxSpent visits and as many
// as freeVisits for each transaction are spent, one search ends after maxFar visits, and Graph.Far counts it if it found nothing till then.
const (
	maxSpent   = 1 << 23
	freeVisits = 16
	maxFar     = 256
)

// far is how many visits the next search may take, behind so many transactions.
func (g *Graph) far(txns int) int {
	if g.spent > g.grant+g.gift*txns {
		return maxFar
	}
	return Unbounded
}

// Found is the shortest cycle of a class.
type Found struct {
	Class anomaly.Class
	Hops  []Hop
}

// Through gives the shortest cycle through a node of each class, most severe first, and whether it knows of any cycle. txns is how many transactions began
// so far. A cycle over all the transactions of a more severe one says nothing new and is left out, and so does one that is far away while there is a more
// severe one (maxFurther).
func (g *Graph) Through(s uint32, mask Kinds, txns int) (list []Found, some bool) {
	all := Any(mask)
	any, whole := g.Look(s, &all, g.near)
	if any == nil && whole {
		return nil, false
	}
	far := g.far(txns)
	for _, cl := range Classes {
		best, bound := []Hop(nil), far
		if len(list) > 0 {
			bound = maxFurther
		} else if any == nil && cl.Class == anomaly.GNonadjacent {
			if far != Unbounded { // the first search went as far
				g.Far++
				return nil, false
			}
			if any, _ = g.Look(s, &all, far); any == nil {
				return nil, false
			}
		}
		walks := slices.Clone(cl.Walks)
		for i := range walks {
			w := &walks[i]
			w.mask = rows(w.mask) & mask
			if cl.Class == anomaly.G0 {
				w.mask |= mask & (SO | RT)
			}
			p := any
			if len(list) > 0 || any == nil || !g.Accepts(w, any) {
				p, _ = g.Look(s, w, bound)
			}
			if p != nil && (best == nil || len(p) < len(best)) {
				best = p
			}
		}
		if best != nil && !simple(best) {
			best = g.simpleCycle(s, walks)
		}
		if best != nil && !covers(best, list) {
			list = append(list, Found{cl.Class, best})
		}
	}
	if len(list) == 0 && far != Unbounded {
		g.Far++
	}
	return list, true
}

// rows adds to kinds those that are the same by the rows alone.
func rows(k Kinds) Kinds {
	return k | k&Data*(Row/WW)
}

// covers reports whether p passes through all transactions of one of the others.
func covers(p []Hop, others []Found) bool {
	for _, o := range others {
		all := true
		for _, x := range o.Hops {
			all = all && slices.ContainsFunc(p, func(y Hop) bool { return x.From == y.From })
		}
		if all {
			return true
		}
	}
	return false
}

func simple(p []Hop) bool {
	for i := range p {
		if slices.ContainsFunc(p[:i], func(h Hop) bool { return h.From == p[i].From }) {
			return false
		}
	}
	return true
}

// maxSteps bounds the search for a simple cycle where the shortest closed walk passes a transaction twice.
const maxSteps = 20_000

// simpleCycle looks depth first for a cycle that one of the automata accepts; nil if there is none within maxSteps hops.
func (g *Graph) simpleCycle(s uint32, walks []Automaton) []Hop {
	for _, a := range walks {
		left := maxSteps
		on := map[uint32]bool{s: true}
		var p []Hop
		var visit func(at uint32, state uint8) bool
		visit = func(at uint32, state uint8) bool {
			for n, x := range g.Out(at) {
				for k, behind := a.hops(x.Kinds()); k < behind; k++ {
					next := a.to[state][k]
					if left--; next == noState || left < 0 {
						continue
					}
					p = append(p, Hop{at, uint32(n), k == 1})
					if x.Node() == s && a.final[next] {
						return true
					}
					if !on[x.Node()] {
						on[x.Node()] = true
						if visit(x.Node(), next) {
							return true
						}
						delete(on, x.Node())
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

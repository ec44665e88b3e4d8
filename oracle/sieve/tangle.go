package sieve

import (
	"cmp"
	"slices"
)

// tangle says which transactions can be in a cycle, and gives the list in which all edges but those between such ones lead onward; nil: all can.
//
// Nearly all edges lead onward in the order of ends. A cycle comes back over each pair of neighbours between its first and its last transaction in
// that order, by an edge that leads back over the pair. So only what lies between the two ends of an edge that leads back can be in a cycle.
func (m *Meeting) tangle(ordered bool) (in []bool, list []uint32) {
	t := m.txns
	list = t.ended
	if ordered && !t.inTime(list) {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b uint32) int { return cmp.Compare(t.to[a], t.to[b]) })
	}
	place := make([]uint32, len(t.id))
	for i, n := range list {
		place[n] = uint32(i)
	}
	over := make([]int32, len(list)+2) // how many more edges lead back over each place than over the one before
	back := func(from, to uint32) {
		if a, b := place[from], place[to]; a >= b {
			over[b]++
			over[a+1]--
		}
	}
	for _, e := range m.edges.all {
		back(e[0], e[1])
	}
	if ordered {
		last := slices.Repeat([]uint32{none}, len(t.recorders))
		for _, n := range t.ended {
			if p := last[t.session[n]]; p != none {
				if back(p, n); t.from[n] < t.from[p] {
					return nil, nil // in the order of their beginnings it is another one
				}
			}
			last[t.session[n]] = n
		}
		if slices.ContainsFunc(list, func(n uint32) bool { return t.from[n] > t.to[n] }) {
			return nil, nil // what ended before it began may stand behind it
		}
	}
	in = make([]bool, len(t.id))
	sum := int32(0)
	for i, n := range list {
		sum += over[i]
		in[n] = sum > 0
	}
	for n, is := range t.is { // of what has not ended nothing is known
		in[n] = in[n] || is&(committed|aborted|limbo) == 0
	}
	return in, list
}

// inTime reports whether the ticks of the ends of transactions increase, those of each clock for themselves.
func (t *txns) inTime(list []uint32) bool {
	last := map[int]uint64{}
	for _, n := range list {
		clock := t.recorders[t.session[n]]
		if t.to[n] < last[clock] {
			return false
		}
		last[clock] = t.to[n]
	}
	return true
}

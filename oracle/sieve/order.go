package sieve

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Order is an order in which the committed transactions of a history fit: each dependency, session order and real time lead onward in it. Those that
// cycles join are in one group, of which it says nothing: a Checker that is given the suspects knows the rest.
type Order struct {
	s     *Sieve
	ended []uint32 // in order
	group []uint32 // of each transaction: the place of the first one of its group; none: it has not ended
}

// order makes an Order of what cycles were looked for in. Outside of what can be in a cycle all edges lead onward in the list.
func (s *Sieve) order(g *graph) *Order {
	list := g.list
	if list == nil {
		list = s.txns.ended
	}
	o := &Order{s: s, ended: slices.Clone(list), group: slices.Repeat([]uint32{none}, len(s.txns.id))}
	for i := 0; i < len(o.ended); {
		k := i + 1
		if g.of != nil && g.counts(o.ended[i]) {
			for k < len(o.ended) && g.counts(o.ended[k]) {
				k++
			}
			slices.SortStableFunc(o.ended[i:k], func(a, b uint32) int { return cmp.Compare(g.of[b], g.of[a]) })
		}
		for first := i; i < k; i++ {
			if g.of != nil && g.of[o.ended[i]] != g.of[o.ended[first]] {
				first = i
			}
			o.group[o.ended[i]] = uint32(first)
		}
	}
	return o
}

// Groups gives the groups in their order, as the IDs of their committed transactions. A group is good until the next one.
func (o *Order) Groups() iter.Seq[[]uint64] {
	return func(yield func([]uint64) bool) {
		var list []uint64
		for i, n := range o.ended {
			if o.s.txns.is[n]&committed != 0 {
				list = append(list, o.s.txns.id[n])
			}
			if end := i+1 == len(o.ended) || o.group[o.ended[i+1]] != o.group[n]; end && len(list) > 0 {
				if !yield(list) {
					return
				}
				list = list[:0]
			}
		}
	}
}

// Check checks an order of the committed transactions, each of which may come several times, against all edges between groups, session order and real
// time, and knows nothing of how it was made.
func (o *Order) Check(ids iter.Seq[uint64]) error {
	t := &o.s.txns
	numbers, missing := index{}, 0
	numbers.clear(len(t.ended))
	key := func(id uint64) uint64 { return (id + 1) * 0x9e3779b97f4a7c15 }
	for _, n := range t.ended {
		if t.is[n]&committed != 0 {
			numbers.put(key(t.id[n]), n)
			missing++
		}
	}
	for _, e := range o.s.meeting.edges.all {
		if a, b := o.group[e[0]], o.group[e[1]]; a != none && b != none && a > b {
			return fmt.Errorf("transaction %d is not before %d", t.id[e[0]], t.id[e[1]])
		}
	}
	came := make([]bool, len(t.id))
	sessions, clocks := make([]uint64, len(t.recorders)), map[int]uint64{} // the latest begin in the groups before
	var group []uint32                                                     // the one at hand
	at := uint32(0)
	for id := range ids {
		n, ok := numbers.of(key(id))
		if !ok || o.group[n] < at {
			return fmt.Errorf("transaction %d has no place there", id)
		}
		if o.group[n] > at {
			for _, m := range group {
				sessions[t.session[m]] = max(sessions[t.session[m]], t.from[m])
				clock := t.recorders[t.session[m]]
				clocks[clock] = max(clocks[clock], t.from[m])
			}
			group, at = group[:0], o.group[n]
		}
		if came[n] {
			continue
		}
		came[n], group = true, append(group, n)
		missing--
		if max(sessions[t.session[n]], clocks[t.recorders[t.session[n]]]) > t.to[n] {
			return fmt.Errorf("transaction %d ended before another one began, and stands behind it", id)
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d transactions have no place", missing)
	}
	return nil
}

package cycle

import (
	"math"
	"math/bits"
	"slices"

	"wirecheck/anomaly"
)

// Automaton says which closed walks are looked for.
type Automaton struct {
	mask  Kinds
	start uint8
	to    [maxStates][2]uint8 // the state after a hop from a state that is no rw, or is one; noState: there is none
	final [maxStates]bool
	calm  [maxStates]bool // no rw follows
}

const (
	maxStates = 7
	noState   = maxStates
)

// newAutomaton makes an Automaton of what its states mean.
func newAutomaton(mask Kinds, start uint8, next func(state uint8, rw bool) (uint8, bool), final func(state uint8) bool) Automaton {
	a := Automaton{mask: mask, start: start}
	reached := []uint8{start}
	for s := range a.to {
		a.to[s] = [2]uint8{noState, noState}
	}
	for i := 0; i < len(reached); i++ {
		s := reached[i]
		a.final[s] = final(s)
		for k, rw := range [2]bool{false, true} {
			if n, ok := next(s, rw); ok {
				a.to[s][k] = n
				if !slices.Contains(reached, n) {
					reached = append(reached, n)
				}
			}
		}
	}
	for _, s := range reached {
		a.calm[s] = a.to[s][1] == noState && (a.to[s][0] == s || a.to[s][0] == noState)
	}
	return a
}

// next gives the state after a hop.
func (a *Automaton) next(state uint8, rw bool) (uint8, bool) {
	n := a.to[state][0]
	if rw {
		n = a.to[state][1]
	}
	return n, n != noState
}

// hops are the ways in which a walk may pass a link of these Kinds: rw or not.
func (a *Automaton) hops(k Kinds) (first, behind int) {
	first, behind = 0, 2
	if k&a.mask&^Anti == 0 {
		first = 1
	}
	if k&a.mask&Anti == 0 {
		behind = 1
	}
	return first, behind
}

// Accepts reports whether a accepts a closed walk. If that is the one that the search of Any found, the search of a finds it too: it is the
// shortest one, and of several of that length the first.
func (g *Graph) Accepts(a *Automaton, p []Hop) bool {
	state := a.start
	for _, h := range p {
		next, ok := a.next(state, h.RW)
		if k := g.Out(h.From)[h.Arc].Kinds() & a.mask; !ok || h.RW && k&Anti == 0 || !h.RW && k&^Anti == 0 {
			return false
		}
		state = next
	}
	return a.final[state]
}

// Any accepts all closed walks over edges of these kinds.
func Any(mask Kinds) Automaton {
	return newAutomaton(mask, 0, func(uint8, bool) (uint8, bool) { return 0, true }, func(uint8) bool { return true })
}

// Classes are the classes of cycles, most severe first (anomalies: Adya 1999, section 4.2; Cerone and Gotsman 2016).
var Classes = []struct {
	Class anomaly.Class
	Walks []Automaton
}{
	{anomaly.G0, []Automaton{Any(WW)}},
	{anomaly.G1c, []Automaton{Any(WW | WR | SO | RT)}},
	{anomaly.GSingle, []Automaton{newAutomaton(Data|SO|RT, 0, func(s uint8, rw bool) (uint8, bool) {
		if rw {
			return 1, s == 0
		}
		return s, true
	}, func(s uint8) bool { return s == 1 })}},
	{anomaly.GNonadjacent, []Automaton{nonadjacent(false), nonadjacent(true)}},
	{anomaly.G2Item, []Automaton{newAutomaton(Data|SO|RT, 0, func(s uint8, rw bool) (uint8, bool) { return count(s, rw), true },
		func(s uint8) bool { return s == 2 })}},
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
func nonadjacent(firstRW bool) Automaton {
	return newAutomaton(Data|SO|RT, 6, func(s uint8, rw bool) (uint8, bool) {
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
	}, func(s uint8) bool { return s/2 == 2 && !(firstRW && s%2 == 1) })
}

// visit is one entry of a search's queue.
type visit struct {
	at     uint32 // a node
	parent int32  // in back: the entry of the node that came before, in another state
	arc    uint32 // number of the arc by which it was reached from parent; in back: how many hops there are to the end of the walk
	state  uint8
	rw     bool
}

// search is one search for the shortest closed walk that an Automaton accepts. It goes breadth first from both ends of the walk, a whole
// level at a time and on the side where fewer transactions are to be visited, until the sides meet: what it costs is what lies near s, not
// how much of the history follows what s read. Of several shortest walks it finds the one that takes the earliest links.
type search struct {
	*Graph
	s     uint32
	a     *Automaton
	into  [maxStates][2]uint8 // by state and hop: a bit for each state from which the hop leads there
	epoch uint32
	// Of each queue, those from level on are the last level.
	ahead, back           []visit
	aheadLevel, backLevel int
	hops                  uint32            // from the last level of back to the end
	floor                 uint64            // where no rw may follow, no transaction that ended before this is on a walk
	within                uint8             // the states, a bit each, in which a walk may be behind its first hop
	ways                  [RowRW << 1]uint8 // by the kinds of an arc: 1, if a hop may pass it as no rw, and 2, if as rw
}

const (
	// Unbounded says that a search may visit all.
	Unbounded = math.MaxInt
	// maxFurther bounds the search for a cycle of a class while there is one of a more severe class: how many visits it may take.
	maxFurther = 1000
)

// Look finds the shortest closed walk from s to s that a accepts; nil if there is none, or if so many visits do not find it. whole says that the bound did
// not end it.
func (g *Graph) Look(s uint32, a *Automaton, bound int) (p []Hop, whole bool) {
	g.mark++
	w := search{Graph: g, s: s, a: a, epoch: g.mark, ahead: append(g.ahead[:0], visit{at: s, parent: -1, state: a.start}), back: g.back[:0]}
	defer func() {
		if bound == Unbounded {
			g.spent += len(w.ahead) + len(w.back)
		}
		g.ahead, g.back = w.ahead[:0], w.back[:0]
	}()
	for p := range a.to {
		for hop, to := range a.to[p] {
			if to != noState {
				w.into[to][hop] |= 1 << p
			}
		}
	}
	for k := range w.ways {
		if Kinds(k)&a.mask&^Anti != 0 {
			w.ways[k] |= 1
		}
		if Kinds(k)&a.mask&Anti != 0 {
			w.ways[k] |= 2
		}
	}
	w.within = 1<<maxStates - 1
	if bound == Unbounded { // what a bounded search finds depends on what it visits
		w.within = g.withinOf(s, a)
		if !g.Backward {
			w.floor = g.floorOf(s, a)
		}
	}
	for n := range uint8(maxStates) {
		if a.final[n] {
			w.retreat(w.s, n)
		}
	}
	w.hops = 1
	for {
		level, last := w.ahead[w.aheadLevel:], w.back[w.backLevel:]
		if len(level) == 0 || len(last) == 0 {
			return nil, true
		}
		if len(w.ahead)+len(w.back) > bound {
			return nil, false
		}
		for i := range level {
			if v := &level[i]; w.left(v.at, v.state) == w.hops {
				return w.path(w.aheadLevel + i), true
			}
		}
		if len(level) <= len(last) {
			w.advance(bound == Unbounded)
			continue
		}
		from := len(w.back)
		for _, v := range last {
			w.retreat(v.at, v.state)
		}
		w.backLevel = from
		w.hops++
	}
}

// withinOf are the states in which a walk from s may be behind its first hop.
func (g *Graph) withinOf(s uint32, a *Automaton) (states uint8) {
	add := func(state uint8) {
		if state != noState {
			states |= 1 << state
		}
	}
	for _, x := range g.Out(s) {
		for k, behind := a.hops(x.Kinds()); k < behind; k++ {
			add(a.to[a.start][k])
		}
	}
	for before := uint8(0); before != states; {
		before = states
		for left := states; left != 0; left &= left - 1 {
			to := a.to[bits.TrailingZeros8(left)]
			add(to[0])
			add(to[1])
		}
	}
	return states
}

// floorOf is the first end of those to which an rw leads from t; 0 if a walk may begin with another hop. Where each of the other hops leads to
// one that ended later, all that follows the last rw of a walk from t ended no earlier.
func (g *Graph) floorOf(s uint32, a *Automaton) uint64 {
	floor := uint64(math.MaxUint64)
	for _, x := range g.Out(s) {
		if x.Kinds()&a.mask&^Anti != 0 && a.to[a.start][0] != noState {
			return 0
		}
		if x.Kinds()&a.mask&Anti != 0 {
			floor = min(floor, g.ended[x.Node()])
		}
	}
	return floor
}

// left is how many hops there are from a node to the end, as far as the search from there came; 0: it did not come to it.
func (w *search) left(node uint32, state uint8) uint32 {
	seen := &w.met[node]
	if seen.epoch != w.epoch || seen.back>>state&1 == 0 {
		return 0
	}
	v := &w.back[seen.last]
	for v.state != state {
		v = &w.back[v.parent]
	}
	return v.arc
}

// meet is what the search knows of a node.
func (w *search) meet(node uint32) *met {
	seen := &w.met[node]
	if seen.epoch != w.epoch {
		*seen = met{epoch: w.epoch}
	}
	return seen
}

// advance visits the next level of the search from the beginning. short says that it may end where the sides meet: the first one that meets is the
// one that is taken.
func (w *search) advance(short bool) {
	from, to := len(w.ahead), &w.a.to
	for i := w.aheadLevel; i < from; i++ {
		at := w.ahead[i]
		for n, x := range w.Out(at.at) {
			node := x.Node()
			if node == w.s {
				continue
			}
			for ways := w.ways[x.Kinds()]; ways != 0; ways &= ways - 1 {
				rw := ways&1 == 0
				state := to[at.state][0]
				if rw {
					state = to[at.state][1]
				}
				if state == noState {
					continue
				}
				seen := w.meet(node)
				if seen.ahead>>state&1 != 0 {
					continue
				}
				seen.ahead |= 1 << state
				w.ahead = append(w.ahead, visit{at: node, arc: uint32(n), parent: int32(i), state: state, rw: rw})
				if short && w.left(node, state) == w.hops {
					w.aheadLevel = from
					return
				}
			}
		}
	}
	w.aheadLevel = from
}

// retreat visits the nodes from which one hop leads to a node in a state.
func (w *search) retreat(node uint32, state uint8) {
	into := w.into[state]
	for _, x := range w.In(node) {
		states := uint8(0)
		if ways := w.ways[x.Kinds()]; ways == 1 {
			states = into[0]
		} else if ways == 2 {
			states = into[1]
		} else if ways == 3 {
			w.enter(x.Node(), into[0])
			states = into[1]
		}
		w.enter(x.Node(), states)
	}
}

// enter visits a node from which a hop leads on in some states.
func (w *search) enter(node uint32, states uint8) {
	if node == w.s {
		states &= 1 << w.a.start
	} else {
		states &= w.within
	}
	if states == 0 {
		return
	}
	seen := w.meet(node)
	for states &^= seen.back; states != 0; states &= states - 1 {
		p := uint8(bits.TrailingZeros8(states))
		if w.a.calm[p] && w.ended[node] < w.floor {
			continue
		}
		w.back = append(w.back, visit{at: node, state: p, parent: seen.last, arc: w.hops + 1})
		seen.back |= 1 << p
		seen.last = int32(len(w.back) - 1)
	}
}

// path is the walk through entry i of ahead: its parents, and behind it the first arcs that lead on to the end.
func (w *search) path(i int) []Hop {
	var out []Hop
	at := w.ahead[i]
	for v := at; v.parent >= 0; v = w.ahead[v.parent] {
		out = append(out, Hop{From: w.ahead[v.parent].at, Arc: v.arc, RW: v.rw})
	}
	slices.Reverse(out)
	for left := w.hops; left > 0; left-- {
		h, next := w.onward(at, left)
		out, at = append(out, h), next
	}
	return out
}

// onward is the first hop from a visit by which the end is so many hops away.
func (w *search) onward(at visit, left uint32) (Hop, visit) {
	for n, x := range w.Out(at.at) {
		for k, behind := w.a.hops(x.Kinds()); k < behind; k++ {
			state := w.a.to[at.state][k]
			if state == noState || left == 1 && (x.Node() != w.s || !w.a.final[state]) {
				continue
			}
			if left == 1 || x.Node() != w.s && w.left(x.Node(), state) == left-1 {
				return Hop{From: at.at, Arc: uint32(n), RW: k == 1}, visit{at: x.Node(), state: state}
			}
		}
	}
	panic("cycle: the search lost its way")
}

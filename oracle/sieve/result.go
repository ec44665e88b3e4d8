package sieve

import (
	"cmp"
	"math/bits"
	"runtime/debug"
	"slices"
)

// Result is what a Sieve finds.
type Result struct {
	// All says why nothing could be decided, so that all transactions are suspect; empty: it could.
	All string
	// Cycles is how many strongly connected components have suspects.
	Cycles int
	// Suspects is how many transactions a Checker has to be given.
	Suspects int
	// UnknownWriters and Unordered are counts of the whole history, as package isolation has them (Counts), if All is empty.
	UnknownWriters, Unordered int
	// Order is that of the history, if it was asked for and All is empty.
	Order *Order

	// Alone says that nothing that other transactions did matters to the judging of the suspects: a Checker may be given the events of these alone.
	Alone bool

	// Walks are the cycles, if they were asked for and the history is plain (exact.go).
	Walks *Walks

	in ids // the suspects
}

// ids is a set of ids of transactions. Most are small numbers.
type ids struct {
	most uint64 // of near
	near []uint64
	far  map[uint64]bool
}

func (s *ids) has(id uint64) bool {
	if k := id / 64; k < uint64(len(s.near)) {
		return s.near[k]>>(id%64)&1 != 0
	}
	return s.far[id]
}

func (s *ids) add(id uint64) {
	if id < s.most {
		for uint64(len(s.near)) <= id/64 {
			s.near = append(s.near, 0)
		}
		s.near[id/64] |= 1 << (id % 64)
		return
	}
	if s.far == nil {
		s.far = map[uint64]bool{}
	}
	s.far[id] = true
}

// Suspect reports whether a transaction has to be judged by a Checker.
func (r *Result) Suspect(id uint64) bool { return r.All != "" || r.in.has(id) }

// Judge says which of the transactions so far are suspect. Nothing can be added behind it.
func (s *Sieve) Judge() *Result {
	asked := false
	for _, tb := range s.tables {
		asked = asked || tb.asked
		if tb.keyed && tb.unkeyed {
			s.undecided("a table has rows with keys and rows without")
		}
	}
	if !asked {
		s.txns.tables = nil
	}
	if s.why == "" {
		s.judgeRows()
	}
	if s.why != "" {
		return &Result{All: s.why}
	}
	r := &Result{UnknownWriters: s.meeting.unknown, Unordered: s.loose, Alone: s.related() == "", in: ids{most: 4*uint64(len(s.txns.id)) + 4096}}
	g := s.data()
	x := s.tangled(r, g)
	if x == nil {
		in := make([]bool, len(s.txns.id))
		s.time(g)
		r.Cycles = g.suspects(&s.txns, in, nil)
		if s.meeting.units.len() > 0 {
			r.Cycles += s.units(in, nil)
		}
		s.context(r, in)
		if s.opts.Order {
			r.Order = s.order(g)
		} else {
			s.meeting.edges = pile[[2]uint32]{}
		}
		x = s.exact(in, r.Suspects)
	}
	g = nil
	if x != nil {
		if !x.rough && s.tellAll() {
			s.forgetRows()
			debug.FreeOSMemory() // the walks need larger pieces than the facts of rows leave
		}
		r.Walks = s.walks(x)
		r.Walks.nodes = &r.in
	}
	s.forgetRows()
	s.txns.began = nil
	return r
}

// tangled draws the edges of a plain history of which most transactions can be in a cycle: nearly all of these are, and where no order is asked for, nobody
// has to know which ones. nil: it is not plain, or not so.
func (s *Sieve) tangled(r *Result, g *graph) *exact {
	most := 0
	for _, is := range g.only {
		if is {
			most++
		}
	}
	if s.opts.Order || 2*most <= len(g.only) || !s.worth(most) {
		return nil
	}
	in := slices.Clone(g.only)
	for n, is := range s.txns.is {
		in[n] = in[n] || is&special != 0
	}
	s.context(r, in)
	s.meeting.edges = pile[[2]uint32]{} // they take much room
	x := s.exact(in, r.Suspects)
	if x == nil {
		r.Suspects, r.in = 0, ids{most: r.in.most}
		s.judgeRows()
	}
	return x
}

// judgeRows draws the edges of all rows. Each part has a meeting of its own, so that they do not meet before their ends.
func (s *Sieve) judgeRows() {
	own, why := make([]*Meeting, len(s.parts)), make([]string, len(s.parts))
	judge := func(i int) {
		own[i] = newMeeting(&s.txns)
		own[i].without = s.meeting.without
		why[i] = s.parts[i].edges(own[i].out())
	}
	if s.opts.Each != nil {
		s.opts.Each(len(own), judge)
	} else {
		for i := range own {
			judge(i)
		}
	}
	for i, m := range own {
		s.meeting.join(m)
		s.why = cmp.Or(s.why, why[i])
	}
}

// forgetRows makes room: the facts of rows are not needed any more, nor is what is said of transactions for the sake of rows.
func (s *Sieve) forgetRows() {
	s.parts = nil
	s.txns.tokens, s.txns.token, s.txns.tables = index{}, nil, nil
}

// tellAll reports whether each transaction tells all that is said of it, if it tells the places of versions.
func (s *Sieve) tellAll() bool { return !s.named && !s.images && !s.inserts }

// graph is what cycles of transactions are looked for in.
func (s *Sieve) graph() *graph {
	g := s.data()
	s.time(g)
	return g
}

// time adds session order and real time, where they count.
func (s *Sieve) time(g *graph) {
	if s.opts.Ordered {
		s.meeting.order(g)
	}
}

// data is the graph without session order and real time.
func (s *Sieve) data() *graph {
	g := &graph{nodes: uint32(len(s.txns.id)), use: &s.meeting.edges}
	s.asked(g)
	if g.edges.len() == 0 { // who asked by conditions is linked with others back and forth
		g.only, g.list = s.meeting.tangle(s.opts.Ordered)
	}
	return g
}

// asked links what changed a table of which rows were chosen by conditions with what asked.
func (s *Sieve) asked(g *graph) {
	bitsOf := uint64(0)
	for _, tb := range s.tables {
		if tb.asked {
			bitsOf |= tb.bit
		}
	}
	if bitsOf == 0 || s.meeting.without&overConditions != 0 {
		return
	}
	first := g.nodes
	g.nodes += 64
	for n, tables := range s.txns.tables {
		if s.txns.is[n]&(committed|limbo) == 0 {
			continue
		}
		for b := tables & bitsOf; b != 0; b &= b - 1 {
			hub := first + uint32(bits.TrailingZeros64(b))
			g.edge(uint32(n), hub)
			g.edge(hub, uint32(n))
		}
	}
}

// suspects marks the transactions of components with more than one. Where fresh is not nil, only components with one of these count.
func (g *graph) suspects(t *txns, in, fresh []bool) (cycles int) {
	if g.only != nil && !slices.Contains(g.only, true) {
		for n := range in {
			in[n] = in[n] || t.is[n]&special != 0 && (fresh == nil || fresh[n])
		}
		return 0
	}
	of := g.components()
	news := g.news(of, fresh)
	count, has := make([]uint32, g.nodes), make([]bool, g.nodes)
	for n := range in {
		count[of[n]]++
		has[of[n]] = has[of[n]] || t.is[n]&special != 0
	}
	for n := range in {
		in[n] = in[n] || (count[of[n]] > 1 || has[of[n]]) && (news == nil || news[of[n]])
	}
	for _, k := range count {
		if k > 1 {
			cycles++
		}
	}
	return cycles
}

// news says which components have a fresh transaction; nil: all count.
func (g *graph) news(of []uint32, fresh []bool) []bool {
	if fresh == nil {
		return nil
	}
	news := make([]bool, g.nodes)
	for n, is := range fresh {
		news[of[n]] = news[of[n]] || is
	}
	return news
}

// units looks for cycles of requests: the transactions of one count as one. A request that is in a cycle with itself alone is not suspect. fresh is as in
// suspects.
func (s *Sieve) units(in, fresh []bool) (cycles int) {
	g := graph{nodes: uint32(len(in)), use: &s.meeting.edges}
	s.asked(&g)
	first := g.nodes
	g.nodes += uint32(s.requests.n)
	unit := make([]uint32, len(in))
	for _, u := range s.meeting.units.all {
		g.edge(u[0], first+u[1])
		g.edge(first+u[1], u[0])
		unit[u[0]] = u[1] + 1
	}
	of := g.components()
	one, many := make([]uint32, g.nodes), make([]bool, g.nodes) // of each component: a unit in it; it has more
	for n := range in {
		own := unit[n]
		if own == 0 {
			own = uint32(s.requests.n) + 1 + uint32(n) // a unit of its own
		}
		k := of[n]
		many[k] = many[k] || one[k] != 0 && one[k] != own
		one[k] = own
	}
	news := g.news(of, fresh)
	for n := range in {
		in[n] = in[n] || many[of[n]] && (news == nil || news[of[n]])
	}
	for _, m := range many {
		if m {
			cycles++
		}
	}
	return cycles
}

// context adds what a Checker needs to know beside the suspects, and puts it all into r.
func (s *Sieve) context(r *Result, in []bool) {
	some := false
	for _, is := range in {
		some = some || is
	}
	if some {
		more := make([]bool, len(in))
		for _, p := range s.parts {
			if s.tellAll() && !s.rough && !p.heard {
				continue // each tells all that is said of it
			}
			p.context(s.images, func(n uint32) bool { return in[n] }, func(n uint32) { more[n] = true })
		}
		if s.opts.Ordered {
			s.meeting.raced(func(n uint32) { more[n] = true })
		}
		for n := range in {
			in[n] = in[n] || more[n]
		}
	}
	for n, is := range in {
		if !is {
			continue
		}
		r.Suspects++
		r.in.add(s.txns.id[n])
	}
}

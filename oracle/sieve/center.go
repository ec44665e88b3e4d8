package sieve

import (
	"cmp"
	"slices"
	"strconv"
)

// CenterOptions say what a Center looks for.
type CenterOptions struct {
	Parts int
	// Ordered and Transactions are those of Options.
	Ordered, Transactions bool
	// Keep is how many transactions that ended before all began that are open are kept, although no path leads to them from newer ones. 0: DefaultKeep.
	Keep int
	// MaxTxns is how many are kept at most where one stays open. 0: DefaultPartTxns.
	MaxTxns int
}

// DefaultKeep is that of package isolation.
const DefaultKeep = 2000

// Center is where the edges of all parts of a history meet, while it happens. A Round says which transactions a Checker has to judge in full. It is not
// safe for concurrent use.
type Center struct {
	o       CenterOptions
	runs    []string
	numbers map[string]uint32
	nodes   []node
	by      map[ID]uint32
	edges   [][2]uint32
	hubs    map[uint64]*hub
	parts   []reached
	judged  uint64 // all up to this message was in a Round
	next    int    // with so many that have ended, some are forgotten

	// Forgotten counts the transactions that were forgotten while others were open that had begun before their ends (MaxTxns).
	Forgotten int
}

// reached is how far a part is; place is that of its last share.
type reached struct{ upto, oldest, place uint64 }

// node is a transaction.
type node struct {
	Ended
	told  bool   // it has ended, and its part has told so; otherwise edges alone name it
	fresh bool   // it was in no Round
	upto  uint64 // of edges alone: it is told of by what goes up to this message, or never
	place uint64 // of what was told of it first, in the stream of shares
}

// hub is a group, see there.
type hub struct {
	lead    bool
	members []uint32
}

// NewCenter makes a Center.
func NewCenter(o CenterOptions) *Center {
	o.Keep = cmp.Or(o.Keep, DefaultKeep)
	o.MaxTxns = cmp.Or(o.MaxTxns, DefaultPartTxns)
	return &Center{o: o, numbers: map[string]uint32{}, by: map[ID]uint32{}, hubs: map[uint64]*hub{}, parts: make([]reached, o.Parts)}
}

// Run is the name of a recorder, by its number in the IDs of a Round.
func (c *Center) Run(recorder uint32) string { return c.runs[recorder] }

// Kept is how many transactions are remembered.
func (c *Center) Kept() int { return len(c.nodes) }

// Judged is the message up to which all was in a Round.
func (c *Center) Judged() uint64 { return c.judged }

// Upto is the message up to which a part has told all.
func (c *Center) Upto(part int) uint64 { return c.parts[part].upto }

// Needed is the place of the first share that another process needs to go on in place of this one; ^0: there was none.
func (c *Center) Needed() uint64 {
	needed := ^uint64(0)
	for _, p := range c.parts {
		needed = min(needed, p.place)
	}
	for i := range c.nodes {
		needed = min(needed, c.nodes[i].place)
	}
	return needed
}

// Add takes a share of a part, which has all up to a message; more says that another share follows that has the rest. place is the share's place in
// the stream of shares. A share that comes again changes nothing.
func (c *Center) Add(part int, s *Share, upto uint64, more bool, place uint64) {
	p := &c.parts[part]
	if upto <= p.upto {
		return
	}
	name := c.names(s.Runs)
	at := func(id ID) uint32 {
		id.Recorder = name[id.Recorder]
		n, had := c.by[id]
		if !had {
			n = uint32(len(c.nodes))
			c.by[id] = n
			c.nodes = append(c.nodes, node{Ended: Ended{ID: id}, place: place})
		}
		c.nodes[n].upto = max(c.nodes[n].upto, upto)
		return n
	}
	for i := range s.Ended {
		e := s.Ended[i]
		n := &c.nodes[at(e.ID)]
		e.ID, e.is = n.ID, e.is|n.is
		n.Ended, n.told, n.fresh = e, true, true
	}
	for _, e := range s.edges {
		c.edges = append(c.edges, [2]uint32{at(e[0]), at(e[1])})
	}
	for _, id := range s.special {
		c.nodes[at(id)].is |= special
	}
	for _, g := range s.groups {
		h := c.hubs[g.key]
		if h == nil {
			h = &hub{lead: g.lead}
			c.hubs[g.key] = h
		}
		for i, id := range g.members {
			if n := at(id); !g.lead || i > 0 || len(h.members) == 0 {
				h.members = append(h.members, n) // some may be there already
			}
		}
	}
	if !more {
		p.upto, p.oldest, p.place = upto, s.Oldest, place
	}
}

// names gives the numbers of recorders here, by those that they have in a share.
func (c *Center) names(runs map[uint32]string) map[uint32]uint32 {
	name := make(map[uint32]uint32, len(runs))
	for there, run := range runs {
		n, had := c.numbers[run]
		if !had {
			n = uint32(len(c.runs))
			c.numbers[run] = n
			c.runs = append(c.runs, run)
		}
		name[there] = n
	}
	return name
}

// Round is what a Center finds when it has more than before.
type Round struct {
	// From and To are messages: all up to To is known, and all up to From was judged before.
	From, To uint64
	// Judge has the transactions that a Checker is to be given, with all of their events up to To; empty: there is nothing new in any cycle. What is
	// completed by a message up to From was found before.
	Judge []Ended
	// Cycles is how many strongly connected components these are of.
	Cycles int
}

// Round finds out what is new since the last one, and forgets what is over.
func (c *Center) Round() *Round {
	to := ^uint64(0)
	for _, p := range c.parts {
		to = min(to, p.upto)
	}
	r := &Round{From: c.judged, To: to}
	if to <= c.judged {
		r.To = c.judged
		return r
	}
	c.judged = to
	var order []uint32 // in the order of their ends
	some := false
	for i := range c.nodes {
		if n := &c.nodes[i]; n.told && n.End <= to {
			order = append(order, uint32(i))
			some = some || n.fresh
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(c.nodes[a].End, c.nodes[b].End) })
	if some {
		c.look(r, order)
	}
	for _, n := range order {
		c.nodes[n].fresh = c.nodes[n].Last > to
	}
	c.forget(order)
	return r
}

// look finds the suspects among the transactions that have ended.
func (c *Center) look(r *Round, order []uint32) {
	in, fresh := make([]bool, len(order)), make([]bool, len(order))
	s, number := c.sieve(order)
	for i, n := range order {
		fresh[i] = c.nodes[n].fresh
	}
	for _, h := range c.hubs {
		news := false
		for _, n := range h.members {
			news = news || number[n] != none && c.nodes[n].fresh
		}
		for _, n := range h.members {
			if news && number[n] != none {
				fresh[number[n]] = true
			}
		}
	}
	g := s.graph()
	r.Cycles = g.suspects(&s.txns, in, fresh)
	if s.meeting.units.len() > 0 {
		r.Cycles += s.units(in, fresh)
	}
	if !slices.Contains(in, true) {
		r.Cycles = 0
		return
	}
	with := slices.Clone(in)
	for _, h := range c.hubs {
		if slices.ContainsFunc(h.members, func(n uint32) bool { return number[n] != none && in[number[n]] }) {
			for i, n := range h.members {
				if number[n] != none && (!h.lead || i == 0) {
					with[number[n]] = true
				}
			}
		}
	}
	if c.o.Ordered {
		s.meeting.raced(func(n uint32) { with[n] = true })
	}
	for i, is := range with {
		if is {
			r.Judge = append(r.Judge, c.nodes[order[i]].Ended)
		}
	}
}

// sieve makes a Sieve of the transactions that have ended, and of the edges between them. number gives those of the transactions there.
func (c *Center) sieve(order []uint32) (s *Sieve, number []uint32) {
	s = New(Options{Ordered: c.o.Ordered, Transactions: c.o.Transactions})
	number = slices.Repeat([]uint32{none}, len(c.nodes))
	s.meeting.limbo = true
	t := &s.txns
	sessions := map[uint64]uint32{}
	ends, asked := make([]uint64, len(order)), uint64(0)
	for i, at := range order {
		n := &c.nodes[at]
		key := n.Session ^ uint64(n.Recorder)<<32
		session, had := sessions[key]
		if !had {
			session = uint32(len(t.recorders))
			sessions[key] = session
			t.recorders = append(t.recorders, int(n.Recorder))
		}
		k := t.begin(n.Txn, session, n.From)
		number[at], ends[i] = k, n.End
		t.to[k], t.is[k], t.tables[k] = n.To, n.is, n.changed
		t.ended = append(t.ended, k)
		for _, name := range n.requests {
			s.request(k, name)
		}
		asked |= n.asked
	}
	for ; asked != 0; asked &= asked - 1 {
		bit := asked & -asked
		s.tables[strconv.FormatUint(bit, 16)] = &table{asked: true, bit: bit}
	}
	for i, at := range order {
		before, _ := slices.BinarySearch(ends, c.nodes[at].Begin) // those that ended with earlier messages
		t.began[i] = uint32(before)
	}
	for _, e := range c.edges {
		if a, b := number[e[0]], number[e[1]]; a != none && b != none {
			s.meeting.edges.add([2]uint32{a, b})
		}
	}
	return s, number
}

// forget drops the transactions that can be part of no new cycle: they ended before all began that are open, and no path leads to them from one that
// did not. See forget.go of package isolation.
func (c *Center) forget(order []uint32) {
	oldest := ^uint64(0)
	for _, p := range c.parts {
		oldest = min(oldest, p.oldest)
	}
	settled := 0
	for settled < len(order)-c.o.Keep && c.nodes[order[settled]].End < oldest {
		settled++
	}
	if over := len(order) - c.o.MaxTxns; over > settled {
		over = min(len(order), over+c.o.MaxTxns/10)
		c.Forgotten += over - settled
		c.drop(order[:over], nil)
		return
	}
	if settled > 0 && len(order) >= c.next {
		c.drop(order[:settled], c.edges)
		c.next = len(c.nodes) + max(c.o.Keep, len(c.nodes)/2)
	}
}

// drop forgets those of a list that no path leads to from others, and what edges alone name and nobody tells of.
func (c *Center) drop(list []uint32, paths [][2]uint32) {
	keep := make([]bool, len(c.nodes))
	for i := range c.nodes {
		keep[i] = c.nodes[i].told || c.nodes[i].upto > c.judged
	}
	for _, n := range list {
		keep[n] = false
	}
	g := graph{nodes: uint32(len(keep))}
	for _, e := range paths {
		g.edge(e[0], e[1])
	}
	g.reach(keep)
	for _, h := range c.hubs { // who needs others
		if len(paths) > 0 && slices.ContainsFunc(h.members, func(n uint32) bool { return keep[n] }) {
			for i, n := range h.members {
				keep[n] = keep[n] || c.nodes[n].told && (!h.lead || i == 0)
			}
		}
	}
	number := make([]uint32, len(keep))
	nodes := c.nodes[:0]
	for i, is := range keep {
		if !is {
			delete(c.by, c.nodes[i].ID)
			number[i] = none
			continue
		}
		number[i] = uint32(len(nodes))
		c.by[c.nodes[i].ID] = number[i]
		nodes = append(nodes, c.nodes[i])
	}
	clear(c.nodes[len(nodes):])
	c.nodes = nodes
	edges := c.edges[:0]
	for _, e := range c.edges {
		if a, b := number[e[0]], number[e[1]]; a != none && b != none {
			edges = append(edges, [2]uint32{a, b})
		}
	}
	c.edges = edges
	for key, h := range c.hubs {
		lead := number[h.members[0]]
		members := h.members[:0]
		for _, n := range h.members {
			if number[n] != none {
				members = append(members, number[n])
			}
		}
		slices.Sort(members)
		members = slices.Compact(members)
		if h.lead {
			members = append([]uint32{lead}, slices.DeleteFunc(members, func(n uint32) bool { return n == lead })...)
		}
		if h.members = members; len(members) < 2 || h.lead && lead == none {
			delete(c.hubs, key)
		}
	}
}

// reach marks what paths lead to from the nodes that are marked.
func (g *graph) reach(in []bool) {
	to := make([][]uint32, g.nodes)
	for _, e := range g.edges.all {
		to[e[0]] = append(to[e[0]], e[1])
	}
	var stack []uint32
	for n, is := range in {
		if is {
			stack = append(stack, uint32(n))
		}
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, k := range to[n] {
			if !in[k] {
				in[k] = true
				stack = append(stack, k)
			}
		}
	}
}

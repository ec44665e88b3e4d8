package sieve

import (
	"cmp"
	"slices"

	"wirecheck/oracle/cycle"
)

// Where a read of a hundred is stale, nearly all transactions are in one component, and a Checker that is given all of them takes ten times as long as
// the sieve. Of plain histories the sieve therefore draws the very edges that the Checker draws, in the order in which it draws them, and searches them
// for the cycles that it reports. Then the Checker is given the transactions of these alone, and the cycles, which it names and explains.
//
// A history is plain if rows have keys and all versions places, its transactions tell all that they wrote, undid nothing of it and committed or rolled
// back for certain, and no requests and no conditions are judged. That writes of different columns commute in none of its rows the Checker knows
// (isolation.Commuting). What is not plain, a Checker judges.

// exact draws the edges between suspects.
type exact struct {
	txns  *txns
	in    []bool   // the suspects, or all
	ends  []uint32 // of each transaction: one more than its place in the order of ends
	drawn drafts
	out   []uint32 // of each transaction: how many edges leave it
	into  []uint32 // and how many lead to it
	back  bool     // a ww leads from a transaction to one that ended before it
	why   string   // not empty: the history is not plain
	rough bool     // accesses do not tell the places of all versions

	versions uint32   // of all rows so far
	seen     []uint32 // of each transaction: the epoch of the last row that it wrote
	epoch    uint32
	row      *row
	places   []uint32 // of the row's versions in their order
	sorted   []uint32 // the versions by their places
	states   []standing
	last     int     // the last place that a committed transaction wrote so far
	next     []int32 // of each fact: the next reader of its version; none: -1
	lost     []bool  // of each fact that reads: a later current read takes its place
	own      []bool  // of each fact that reads: it is the transaction's own version
	group    []int32 // of each fact: the first one of its transaction
	plain    []int32
}

// standing is what is known of a version at a moment, by its place.
type standing struct {
	writer      uint32
	fact        int32 // that wrote it
	first, last int32 // its readers
	live, inter bool
	dead        bool
	next, prev  int32 // the places of those that replaced it and that it replaced, as a write told; none: -1
	known       bool  // its place was told
}

// related says how transactions may be related but by the rows that they read and wrote; empty: not at all.
func (s *Sieve) related() string {
	for _, tb := range s.tables {
		if tb.asked {
			return "conditions"
		}
	}
	if s.requests.n > 0 || s.part != nil || len(s.late) > 0 || s.pending {
		return "requests, or writes that were told late"
	}
	return ""
}

// plainSoFar says why a history is not plain, by what is known without its rows; empty: it may be.
func (s *Sieve) plainSoFar() string {
	if why := s.related(); why != "" {
		return why
	}
	for _, tb := range s.tables {
		if tb.unkeyed {
			return "rows without keys"
		}
	}
	for _, is := range s.txns.is {
		if is&undone != 0 && is&committed != 0 {
			return "a transaction undid something"
		}
	}
	return ""
}

// worth reports whether the history may be plain, and has so many suspects that it is worth the work.
func (s *Sieve) worth(suspects int) bool {
	return s.opts.Walks > 0 && suspects >= s.opts.Walks && len(s.txns.is) <= cycle.MaxNodes && s.plainSoFar() == "" && (s.opts.Commutes == nil || !s.opts.Commutes())
}

// exact draws the edges of all rows between suspects; nil if the history is not plain, or it is not worth the work. Where the suspects are most of all,
// it draws all edges: some searches are bounded by what they visit, and are to find what those of a Checker find that is given all.
func (s *Sieve) exact(in []bool, suspects int) *exact {
	if !s.worth(suspects) {
		return nil
	}
	if 2*suspects > len(in) {
		in = slices.Repeat([]bool{true}, len(in))
	}
	n := len(in)
	x := &exact{txns: &s.txns, in: in, ends: make([]uint32, n), seen: make([]uint32, n), out: make([]uint32, n), into: make([]uint32, n), drawn: drafts{last: make([]uint32, n)}}
	for i, n := range s.txns.ended {
		x.ends[n] = uint32(i) + 1
	}
	for _, r := range s.parts {
		for n := range r.keyed {
			if x.judge(r.take(n)); x.why != "" {
				return nil
			}
		}
	}
	x.row, x.seen = nil, nil // they keep the facts of rows
	return x
}

// judge draws the edges of a row.
func (x *exact) judge(w *row) {
	if x.row = w; w.why != "" || len(w.facts) < 2 && !w.versions[0].heard() {
		x.why = w.why
		return
	}
	x.rough = x.rough || w.rough
	if !x.place() {
		x.why = cmp.Or(x.why, "versions are not plain")
		return
	}
	n := len(w.facts)
	x.next, x.lost, x.own, x.group = slices.Grow(x.next[:0], n)[:n], slices.Grow(x.lost[:0], n)[:n], slices.Grow(x.own[:0], n)[:n], slices.Grow(x.group[:0], n)[:n]
	clear(x.lost)
	clear(x.own)
	for i := 0; i < n; {
		k := i
		for ; k < n && w.facts[k].txn == w.facts[i].txn; k++ {
			x.group[k], x.next[k] = int32(i), -1
			if v := x.at(k); w.facts[k].order != 0 {
				v.known = true
			} else if !v.known {
				x.why = "a place was told late"
			}
		}
		switch is := x.txns.is[w.facts[i].txn]; {
		case is&committed != 0:
			x.register(i, k)
			for f := i; f < k; f++ {
				x.draw(f)
			}
		case is&aborted != 0:
			x.rolledBack(i, k)
		default:
			x.why = "a transaction whose outcome is not known wrote"
		}
		i = k
	}
	x.versions += uint32(len(w.versions))
}

// place finds the places of the row's versions. It reports whether they are plain: each is told who wrote it by its writer, and those of one writer are
// behind each other.
func (x *exact) place() bool {
	x.epoch++
	w := x.row
	n := len(w.versions)
	x.sorted, x.places, x.states, x.last = x.sorted[:0], slices.Grow(x.places[:0], n)[:n], x.states[:0], -1
	inOrder := true
	for i := range w.versions {
		inOrder = inOrder && (i == 0 || w.versions[i-1].order < w.versions[i].order)
		x.sorted = append(x.sorted, uint32(i))
	}
	if !inOrder {
		slices.SortFunc(x.sorted, func(a, b uint32) int { return cmp.Compare(w.versions[a].order, w.versions[b].order) })
	}
	before := none
	for k, i := range x.sorted {
		v := &w.versions[i]
		x.places[i] = uint32(k)
		x.states = append(x.states, standing{writer: none, fact: -1, first: -1, last: -1, next: -1, prev: -1})
		if v.order == 0 || k > 0 && w.versions[x.sorted[k-1]].order == v.order {
			return false
		}
		if v.writer != none {
			if !v.listed || x.txns.is[v.writer]&limbo != 0 || v.writer != before && x.seen[v.writer] == x.epoch {
				return false
			}
			x.seen[v.writer] = x.epoch
		}
		before = v.writer
	}
	return true
}

func (x *exact) at(f int) *standing { return &x.states[x.places[x.row.of[f]]] }

// read adds a fact to the readers of its version.
func (x *exact) read(f int) {
	v := x.at(f)
	if v.last < 0 {
		v.first = int32(f)
	} else {
		x.next[v.last] = int32(f)
	}
	v.last = int32(f)
}

// supersede says that a current read takes the place of the plain reads before it.
func (x *exact) supersede() {
	for _, f := range x.plain {
		x.lost[f] = true
	}
	x.plain = x.plain[:0]
}

// register enters what a committed transaction did with the row: facts from up to behind.
func (x *exact) register(from, behind int) {
	w := x.row
	x.plain = x.plain[:0]
	last := (*standing)(nil)
	for i := from; i < behind; i++ {
		f, v := &w.facts[i], x.at(i)
		switch {
		case f.flags&fFailed != 0, f.flags&(isRead|fMatch) == isRead|fMatch:
			x.why = "an UPDATE that changed nothing, or failed"
		case f.flags&isRead != 0:
			if x.own[i] = x.reads(f, &w.versions[w.of[i]]); x.own[i] != (v.writer == f.txn) {
				x.why = "a transaction read what it wrote later"
			}
			if x.own[i] {
				continue
			}
			if x.read(i); f.flags&fLock != 0 {
				x.supersede()
			} else {
				x.plain = append(x.plain, int32(i))
			}
		case f.flags&isPrev != 0:
			if f.flags&fCurrent != 0 && v.writer != f.txn {
				x.read(i)
			}
		default:
			if f.flags&fCurrent != 0 {
				if slices.ContainsFunc(x.plain, func(p int32) bool { return x.places[w.of[p]]+1 < x.places[w.of[i]] }) {
					x.why = "a check may be stale"
				}
				x.supersede()
			}
			x.plain = x.plain[:0]
			if v.writer != none {
				x.why = "a version was written twice"
			}
			v.writer, v.fact, v.live = f.txn, int32(i), true
			x.last = max(x.last, int(x.places[w.of[i]]))
			if w.replaces(i) {
				x.join(int32(x.places[w.of[i-1]]), int32(x.places[w.of[i]]))
			}
			if last != nil {
				last.inter = true
			}
			last = v
		}
	}
}

// join says that the version at place k replaced the one at place p.
func (x *exact) join(p, k int32) {
	if x.states[p].next >= 0 || x.states[k].prev >= 0 || p >= k {
		x.why = "versions contradict each other in their order"
		return
	}
	x.states[p].next, x.states[k].prev = k, p
}

// after is the place of the next version, before that of the one before; -1: there is none.
func (x *exact) after(k int) int {
	if n := x.states[k].next; n >= 0 {
		return int(n)
	}
	if k++; k < len(x.states) {
		return k
	}
	return -1
}

func (x *exact) before(k int) int {
	if p := x.states[k].prev; p >= 0 {
		return int(p)
	}
	return k - 1
}

// reads reports whether a transaction read its own version.
func (x *exact) reads(f *fact, v *version) bool {
	if v.writer == f.txn {
		return true
	}
	if f.token == 0 || v.writer != none && x.txns.token[v.writer] == f.token {
		return false
	}
	owner, ok := x.txns.tokens.of(f.token)
	return ok && owner == f.txn
}

// rolledBack enters what a transaction wrote that was rolled back.
func (x *exact) rolledBack(from, behind int) {
	for i := from; i < behind; i++ {
		if v := x.at(i); v.writer != none {
			x.why = "a version was written twice"
		} else {
			v.writer, v.fact, v.dead = x.row.facts[i].txn, int32(i), true
		}
	}
}

// installed is the next version behind place k of another writer than that one's; -1: there is none.
func (x *exact) installed(k int) int {
	for j := x.after(k); j >= 0 && j <= x.last; j = x.after(j) {
		if v := &x.states[j]; v.live && !v.inter && v.writer != x.states[k].writer {
			return j
		}
	}
	return -1
}

// draw draws the edges of a fact of a committed transaction: what the Checker draws of its access (package isolation, install).
func (x *exact) draw(i int) {
	f := &x.row.facts[i]
	k := int(x.places[x.row.of[i]])
	switch {
	case f.flags&isRead != 0:
		if !x.own[i] {
			x.readEdges(i, i, k)
		}
	case f.flags&isWrite != 0:
		x.writeEdges(i, k)
		if p := i - 1; f.flags&fCurrent != 0 && p >= 0 {
			if o := &x.row.facts[p]; o.txn == f.txn && o.nth == f.nth && o.flags&isPrev != 0 && x.at(p).writer != f.txn {
				x.readEdges(i, p, int(x.places[x.row.of[p]]))
			}
		}
	}
}

// readEdges draws the edges of a read of place k by fact r, at fact i.
func (x *exact) readEdges(i, r, k int) {
	v := &x.states[k]
	if v.dead {
		return
	}
	if t := x.row.facts[r].txn; v.live && v.writer != t {
		x.edge(i, cycle.WR, int(v.fact), r, k, k, false)
	}
	x.followed(i, r, k)
}

// followed draws the edge from a read of place k to the next version.
func (x *exact) followed(i, r, k int) {
	if n := x.installed(k); n >= 0 {
		x.antiDependency(i, r, k, n)
	}
}

// writeEdges draws the edges of a version that fact i wrote, at place k.
func (x *exact) writeEdges(i, k int) {
	v := &x.states[k]
	for r := v.first; r >= 0; r = x.next[r] {
		x.edge(i, cycle.WR, i, int(r), k, k, false)
		x.followed(i, int(r), k)
	}
	if v.inter {
		return
	}
	if n := x.installed(k); n >= 0 {
		x.edge(i, cycle.WW, i, int(x.states[n].fact), k, n, false)
	}
	upTo, ended := none, false
	for j := x.before(k); j >= 0; j = x.before(j) {
		u := &x.states[j]
		if ended && u.writer != upTo {
			return
		}
		if u.writer == v.writer {
			continue
		}
		for r := u.first; r >= 0; r = x.next[r] {
			x.antiDependency(i, int(r), j, k)
		}
		if !ended && u.live && !u.inter {
			upTo, ended = u.writer, true
			x.edge(i, cycle.WW, int(u.fact), i, j, k, false)
		}
	}
}

// antiDependency draws the edge from a read of place k, by fact r, to the version at place n. Where the reader wrote the row behind that, it draws one
// back, as the Checker does to tell a lost update.
func (x *exact) antiDependency(i, r, k, n int) {
	f, v := &x.row.facts[r], &x.states[n]
	if f.txn == v.writer || x.lost[r] || f.flags&isPrev != 0 || x.states[k].dead {
		return
	}
	x.edge(i, cycle.RW, r, int(v.fact), k, n, false)
	for g := int(x.group[r]); g < len(x.row.facts) && x.row.facts[g].txn == f.txn; g++ {
		if x.row.facts[g].flags&isWrite == 0 {
			continue
		}
		if w := int(x.places[x.row.of[g]]); w > n && x.states[w].live {
			x.edge(i, cycle.WW, int(v.fact), g, n, w, x.installed(n) != w)
			return
		}
	}
}

// edge draws an edge from fact a to fact b, at fact i, over the versions at two places.
func (x *exact) edge(i int, kind cycle.Kinds, a, b, old, new int, over bool) {
	from, to := &x.row.facts[a], &x.row.facts[b]
	if from.txn == to.txn || !x.in[from.txn] || !x.in[to.txn] {
		return
	}
	at := &x.row.facts[i]
	e := edge{other: to.txn, nth: at.nth, mine: from.nth, his: to.nth, mySt: from.stmt, hisS: to.stmt, old: x.versions + uint32(old) + 1, new: x.versions + uint32(new) + 1, kind: kind, over: over, leaves: true}
	switch at.txn {
	case from.txn:
	case to.txn:
		e.other, e.mine, e.his, e.mySt, e.hisS, e.leaves = from.txn, to.nth, from.nth, to.stmt, from.stmt, false
	default:
		return // it was drawn when the later one of the two ended
	}
	x.back = x.back || e.leaves && kind == cycle.WW
	x.out[from.txn]++
	x.into[to.txn]++
	if !x.drawn.add(at.txn, &e) {
		x.why = "there are too many edges"
	}
}

package inferred

import (
	"cmp"
	"slices"

	"wirecheck/anomaly"
	"wirecheck/history"
)

// kinds is a set of kinds of edges.
type kinds uint8

const (
	ww kinds = 1 << iota
	wr
	rw
	so
	rt
)

// edge is one dependency and its evidence: the operations that show it.
type edge struct {
	from, to     int32
	fromOp, toOp int32
	kind         kinds
	forced       bool // the level forces it; nothing that was read shows it
}

// mostPairs bounds the edges that one version draws between its readers and the writers behind it.
const mostPairs = 1 << 20

// noOrder is the doubt about registers that versions in several orders may have.
const noOrder = "the order in which registers were written is not known"

func (c *checker) link(kind kinds, from, to access) {
	if from.txn != to.txn && c.node[from.txn] && c.node[to.txn] {
		c.edges = append(c.edges, edge{from.txn, to.txn, from.op, to.op, kind, false})
	}
}

// linkAgain draws an edge that Elle's graphs do not have, for the levels alone: of a read after the first one, which shows in what order a
// transaction read, and of a read of an own append, which shows what the append met.
func (c *checker) linkAgain(kind kinds, from, to access) {
	if from.txn != to.txn && c.node[from.txn] && c.node[to.txn] {
		c.reread = append(c.reread, edge{from.txn, to.txn, from.op, to.op, kind, false})
	}
}

// listKey orders the elements of a list and draws the edges of its readers and writers.
func (c *checker) listKey(k int) {
	info := &c.keys[k]
	if info.mixed {
		c.coverage.Unordered++
		return
	}
	order := c.listOrder(info)
	place := make(map[int32]int, len(order))
	for i, v := range order {
		if _, ok := place[v]; !ok {
			place[v] = i
		}
	}
	// Readers by the last element that they saw; none: the empty list.
	readers, again := map[int32][]access{}, map[int32][]access{}
	for _, r := range info.reads {
		last := int32(none)
		if got := seenBy(c.op(r), true); len(got) > 0 {
			last = info.byValue[got[len(got)-1]]
			if x := &c.versions[last]; x.writer != none && !x.twice {
				c.link(wr, access{x.writer, x.op}, r)
			}
			readBefore(c, info, got, r)
		}
		if list := readers[last]; len(list) == 0 || list[len(list)-1].txn != r.txn {
			readers[last] = append(readers[last], r)
		} else {
			again[last] = append(again[last], r)
		}
	}
	behind := func(prev int32, w access) {
		if prev != none {
			if x := &c.versions[prev]; x.writer != none && !x.twice {
				c.link(ww, access{x.writer, x.op}, w)
			}
		}
		for _, r := range readers[prev] {
			c.link(rw, r, w)
		}
		for _, r := range again[prev] {
			c.linkAgain(rw, r, w)
		}
	}
	prev := int32(none)
	for _, v := range order {
		if x := &c.versions[v]; x.writer != none && !x.twice {
			behind(prev, access{x.writer, x.op})
		}
		prev = v
	}
	c.dirtyUpdates(info, order)
	c.ownOrder(info, order)
	hidden := map[int32]int32{}
	for _, w := range info.writes {
		v := info.byValue[c.op(w).Value]
		if _, ok := place[v]; ok || c.versions[v].twice || !c.node[w.txn] {
			continue
		}
		if !c.versions[v].inter {
			hidden[v] = none
		}
		if len(hidden)*len(readers[prev]) > mostPairs {
			c.doubt("too many appends that nobody read")
			break
		}
		behind(prev, w)
	}
	if len(hidden) > 1 {
		c.loose = append(c.loose, loose{info, hidden, nil})
	}
}

// readBefore draws the wr of a read of the reader's own append: the elements in front of it were read, too.
func readBefore(c *checker, info *keyInfo, got []string, r access) {
	for i := range slices.Backward(got) {
		if x := &c.versions[info.byValue[got[i]]]; x.twice || x.writer != r.txn {
			if i+1 < len(got) && x.writer != none && !x.twice {
				c.linkAgain(wr, access{x.writer, x.op}, r)
			}
			return
		}
	}
}

// listOrder is the order of a list's elements: the longest list that was read. A list of one transaction's elements needs no reader.
func (c *checker) listOrder(info *keyInfo) (order []int32) {
	var longest []string
	at := access{none, none}
	for _, r := range info.reads {
		if got := seenBy(c.op(r), true); len(got) > len(longest) {
			longest, at = got, r
		}
	}
	if longest == nil { // nobody read it: those of one transaction come as it appended them
		by := none
		for _, w := range info.writes {
			if !c.node[w.txn] {
				continue
			}
			if by != none && by != int(w.txn) {
				c.coverage.Unordered++
				return nil
			}
			by, order = int(w.txn), append(order, info.byValue[c.op(w).Value])
		}
		return order
	}
	for _, r := range info.reads {
		got := seenBy(c.op(r), true)
		if !slices.Equal(got, longest[:len(got)]) {
			c.report(finding{class: IncompatibleOrder, txns: []int{int(r.txn), int(at.txn)}, stmts: [][]int{{int(r.op)}, {int(at.op)}}, key: info.name,
				text: "T1 read " + resultText(c.op(r)) + " of " + info.name + " and T2 read " + resultText(c.op(at)) + ": neither is the beginning of the other one"})
			break
		}
	}
	seen := make(map[int32]bool, len(longest))
	for _, value := range longest {
		if v := info.byValue[value]; !seen[v] {
			seen[v] = true
			order = append(order, v)
		}
	}
	return order
}

// ownOrder looks for elements that stand in another order than the one in which their transaction appended them.
func (c *checker) ownOrder(info *keyInfo, order []int32) {
	last := map[int32]int32{} // of each transaction: its last element so far
	for _, v := range order {
		x := &c.versions[v]
		if x.writer == none || x.twice || !c.node[x.writer] {
			continue
		}
		if before, ok := last[x.writer]; ok && c.versions[before].op > x.op {
			y := &c.versions[before]
			c.report(finding{class: CyclicVersions, txns: []int{int(x.writer)}, stmts: [][]int{{int(x.op), int(y.op)}}, key: info.name,
				text: "T1 appended " + x.value + " before " + y.value + " to " + info.name + ", where they were read the other way round"})
			return
		}
		last[x.writer] = v
	}
}

// dirtyUpdates looks for committed elements that stand behind aborted ones.
func (c *checker) dirtyUpdates(info *keyInfo, order []int32) {
	aborted := int32(none)
	for _, v := range order {
		x := &c.versions[v]
		if x.twice || x.writer == none {
			aborted = none
			continue
		}
		switch c.h.Transactions[x.writer].Outcome {
		case history.OutcomeAborted:
			aborted = v
		case history.OutcomeCommitted:
			if aborted != none {
				a := &c.versions[aborted]
				c.report(finding{class: anomaly.DirtyUpdate, txns: []int{int(a.writer), int(x.writer)}, stmts: [][]int{{int(a.op)}, {int(x.op)}}, key: info.name,
					text: "T2 appended " + x.value + " to " + info.name + " behind " + a.value + ", which T1 appended and which was rolled back"})
			}
			aborted = none
		}
	}
}

// registerKey draws the edges of a register. A version's parent is the version that its writer read before, if it did; else the initial one.
func (c *checker) registerKey(k int) {
	info := &c.keys[k]
	if info.mixed {
		c.coverage.Unordered++
		return
	}
	first, readers, again := registerReads(c, info)
	parent := map[int32]int32{}
	children := map[int32]int{}
	type follows struct {
		read  int32 // a version that has no place in the order
		write access
	}
	var behind []follows
	for _, w := range info.writes {
		v := info.byValue[c.op(w).Value]
		if x := &c.versions[v]; x.twice || x.inter || !c.node[w.txn] {
			continue
		}
		parent[v] = none
		if r, ok := first[w.txn]; ok {
			switch p := c.readVersion(info, r); {
			case p == v || p == none || c.versions[p].twice:
			case c.known(p):
				parent[v] = p
			default: // it is not final or was undone: who read it read what came before v, too
				behind = append(behind, follows{p, w})
			}
		}
		children[parent[v]]++
	}
	if c.cyclic(info, parent) {
		c.coverage.Unordered++
		return
	}
	for _, n := range children {
		if n > 1 {
			c.coverage.Unordered++
			c.doubt(noOrder)
			break
		}
	}
	for _, w := range info.writes {
		v := info.byValue[c.op(w).Value]
		p, ok := parent[v]
		if !ok {
			continue
		}
		if p != none {
			if x := &c.versions[p]; x.writer != none {
				c.link(ww, access{x.writer, x.op}, w)
			}
		}
		if (len(readers[p])+len(again[p]))*children[p] > mostPairs {
			c.doubt("too many writes of unknown order")
			continue
		}
		for _, r := range readers[p] {
			c.link(rw, r, w)
		}
		for _, r := range again[p] {
			c.linkAgain(rw, r, w)
		}
	}
	pairs := 0
	for _, b := range behind {
		if pairs += len(readers[b.read]); pairs > mostPairs {
			c.doubt("too many writes of unknown order")
			break
		}
		for _, r := range readers[b.read] {
			c.link(rw, r, b.write)
		}
	}
	if len(parent) > 1 {
		for v, list := range again {
			readers[v] = append(readers[v], list...)
		}
		c.loose = append(c.loose, loose{info, parent, readers})
	}
}

// registerReads draws the wr of a register. It gives each transaction's first external read, those of each version, and the others of each version.
func registerReads(c *checker, info *keyInfo) (first map[int32]access, readers, again map[int32][]access) {
	first = map[int32]access{}
	for _, r := range info.reads {
		if _, ok := first[r.txn]; !ok && !c.wroteBefore(info, r) {
			first[r.txn] = r
		}
	}
	readers = map[int32][]access{}
	again = map[int32][]access{}
	for _, r := range info.reads {
		if first[r.txn] != r {
			v := c.readVersion(info, r)
			if v != none && c.versions[v].writer == r.txn {
				continue // its own
			}
			again[v] = append(again[v], r)
			if v != none && c.known(v) {
				c.linkAgain(wr, access{c.versions[v].writer, c.versions[v].op}, r)
			}
			continue
		}
		v := c.readVersion(info, r)
		readers[v] = append(readers[v], r)
		if v == none {
			continue
		}
		if x := &c.versions[v]; x.writer != none && !x.twice && !x.inter {
			c.link(wr, access{x.writer, x.op}, r)
		}
	}
	return first, readers, again
}

// known reports whether a version may be another one's parent: it has one place in the order.
func (c *checker) known(v int32) bool {
	x := &c.versions[v]
	return !x.twice && !x.inter && x.writer != none && c.node[x.writer]
}

// readVersion is the version that a read returned; none: the initial one, which may be a value from before the history.
func (c *checker) readVersion(info *keyInfo, r access) int32 {
	op := c.op(r)
	if op.Initial {
		return none
	}
	v, ok := info.byValue[op.Value]
	if !ok || c.versions[v].writer == none && c.preloaded[c.versions[v].key] != nil {
		return none
	}
	return v
}

// cyclic reports versions each of which comes before the other ones.
func (c *checker) cyclic(info *keyInfo, parent map[int32]int32) bool {
	state := map[int32]int{}
	for _, w := range info.writes {
		start := info.byValue[c.op(w).Value]
		var path []int32
		v := start
		for {
			p, ok := parent[v]
			if !ok || state[v] == 2 {
				break
			}
			if state[v] == 1 {
				a, b := &c.versions[v], &c.versions[p]
				c.report(finding{class: CyclicVersions, txns: []int{int(a.writer), int(b.writer)}, stmts: [][]int{{int(a.op)}, {int(b.op)}}, key: info.name,
					text: "the versions " + a.value + " and " + b.value + " of " + info.name + " each come before the other one"})
				return true
			}
			state[v] = 1
			path = append(path, v)
			if p == none {
				break
			}
			v = p
		}
		for _, v := range path {
			state[v] = 2
		}
	}
	return false
}

// inOrderOf gives the edges, with those of session order and real time.
func inOrderOf(c *checker) []edge {
	edges := slices.Clone(c.edges)
	if !c.opts.Order {
		c.orderEdges()
		edges, c.edges = c.edges, edges
	}
	return edges
}

// orderEdges draws session order and real time.
func (c *checker) orderEdges() {
	last := map[uint64]int32{}
	var all []int32
	for t := range c.h.Transactions {
		x := &c.h.Transactions[t]
		if !c.node[t] {
			continue
		}
		all = append(all, int32(t))
		if x.Session == 0 || x.Outcome != history.OutcomeCommitted {
			continue
		}
		if p, ok := last[x.Session]; ok {
			c.link(so, access{p, none}, access{int32(t), none})
		}
		last[x.Session] = int32(t)
	}
	if c.h.Ordered {
		c.realTime(all)
	}
}

// realTime draws a transitive reduction: from what has ended to what begins, but for what something else between them covers (Elle's realtime-graph).
func (c *checker) realTime(all []int32) {
	type point struct {
		at  uint64
		end bool
		t   int32
	}
	var points []point
	for _, t := range all {
		x := &c.h.Transactions[t]
		if x.Begin > 0 {
			points = append(points, point{x.Begin, false, t})
		}
		if x.End > 0 {
			points = append(points, point{x.End, true, t})
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		if a.at == b.at && a.end != b.end { // what ends when something begins does not precede it
			if a.end {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.t, b.t))
	})
	var frontier []int32
	for _, p := range points {
		if !p.end {
			for _, f := range frontier {
				c.link(rt, access{f, none}, access{p.t, none})
			}
			continue
		}
		x := &c.h.Transactions[p.t]
		if x.Begin > 0 {
			frontier = slices.DeleteFunc(frontier, func(f int32) bool { return c.h.Transactions[f].End < x.Begin })
		}
		frontier = append(frontier, p.t)
	}
}

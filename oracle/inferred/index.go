package inferred

import (
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle"
)

// none stands for no transaction, version or operation.
const none = -1

// version is one value of a key.
type version struct {
	key    int32
	writer int32 // none: no transaction of the history wrote it
	op     int32 // of the writer
	twice  bool  // written more than once: nothing can be inferred from it
	inter  bool  // its writer wrote the key again
	value  string
}

// keyInfo is what is known of a key.
type keyInfo struct {
	name    string
	list    bool
	mixed   bool // appended to and overwritten
	byValue map[string]int32
	reads   []access // by committed transactions
	writes  []access // of all transactions, in the history's order
}

// access is one operation of a transaction.
type access struct{ txn, op int32 }

type checker struct {
	h        *observed.History
	opts     Options
	keys     []keyInfo
	keyOf    map[string]int32
	versions []version
	node     []bool    // the transaction takes part in the graph
	ids      [][]int32 // of each operation: key
	edges    []edge
	cold     []string // why it cannot be decided, without repetitions
	found    []oracle.Finding
	seen     map[string]int
	coverage Coverage

	loose  []loose  // keys whose versions are not all in a known order
	doubts []string // all of cold, before a serial order settles them
	reread []edge   // see readAgain

	undecided string
	preloaded map[int32][]string // what keys had before the history
}

func (c *checker) doubt(why string) {
	if !slices.Contains(c.cold, why) {
		c.cold = append(c.cold, why)
	}
}

// index numbers keys and versions.
func (c *checker) index() {
	c.keyOf = map[string]int32{}
	c.preloaded = map[int32][]string{}
	c.ids = make([][]int32, len(c.h.Transactions))
	c.node = make([]bool, len(c.h.Transactions))
	for t := range c.h.Transactions {
		x := &c.h.Transactions[t]
		c.coverage.Transactions++
		switch x.Outcome {
		case history.OutcomeCommitted:
			c.coverage.Committed++
			c.node[t] = true
		case history.OutcomeAborted:
			c.coverage.Aborted++
		default:
			c.coverage.Unknown++
		}
		c.ids[t] = make([]int32, len(x.Ops))
		last := map[int32]int32{}
		for i := range x.Ops {
			op := &x.Ops[i]
			k := c.key(op.Key)
			c.ids[t][i] = k
			if op.Kind == observed.Read {
				if !op.Unknown && x.Outcome == history.OutcomeCommitted {
					c.keys[k].reads = append(c.keys[k].reads, access{int32(t), int32(i)})
				}
				continue
			}
			c.write(int32(t), int32(i), k, op, last)
		}
	}
	c.coverage.Keys = len(c.keys)
}

func (c *checker) key(name string) int32 {
	k, ok := c.keyOf[name]
	if !ok {
		k = int32(len(c.keys))
		c.keyOf[name] = k
		c.keys = append(c.keys, keyInfo{name: name, byValue: map[string]int32{}})
	}
	return k
}

func (c *checker) write(t, i, k int32, op *observed.Op, last map[int32]int32) {
	info := &c.keys[k]
	list := op.Kind == observed.Append
	info.mixed = info.mixed || len(info.writes) > 0 && info.list != list
	info.list = info.list || list
	info.writes = append(info.writes, access{t, i})
	v, ok := info.byValue[op.Value]
	if !ok {
		v = c.add(version{key: k, writer: t, op: i, value: op.Value})
	} else {
		c.versions[v].twice = true
		c.doubt("two writes of one value to one key")
	}
	if before, again := last[k]; again && before != v {
		c.versions[before].inter = true
	}
	last[k] = v
	c.versions[v].inter = false
}

func (c *checker) add(v version) int32 {
	n := int32(len(c.versions))
	c.keys[v.key].byValue[v.value] = n
	c.versions = append(c.versions, v)
	return n
}

// seenBy gives the values that a read returned.
func seenBy(op *observed.Op, list bool) []string {
	switch {
	case op.Unknown || op.Initial:
		return nil
	case list && op.IsList:
		return op.List
	}
	return []string{op.Value}
}

// promote takes in transactions of unknown outcome of which a committed one read something: they committed, too.
func (c *checker) promote() {
	for k := range c.keys {
		info := &c.keys[k]
		for _, r := range info.reads {
			for _, value := range seenBy(c.op(r), info.list) {
				v, ok := info.byValue[value]
				if !ok || c.versions[v].twice {
					continue
				}
				w := c.versions[v].writer
				if !c.node[w] && c.h.Transactions[w].Outcome == history.OutcomeUnknown {
					c.node[w] = true
					c.coverage.Inferred++
				}
			}
		}
	}
}

func (c *checker) op(a access) *observed.Op { return &c.h.Transactions[a.txn].Ops[a.op] }

// resolveReads gives values that nobody wrote a version without writer. The value that a key had before the history is not garbage.
func (c *checker) resolveReads() {
	for k := range c.keys {
		info := &c.keys[k]
		if info.mixed {
			c.doubt("a key is appended to and overwritten")
			continue
		}
		if !info.list && len(info.writes) == 0 && slices.ContainsFunc(info.reads, func(r access) bool { return c.op(r).IsList }) {
			info.list = true
		}
		unwritten, initial := c.unwritten(info)
		if len(unwritten) == 0 {
			continue
		}
		if !initial && (info.list && c.samePrefix(info, unwritten) || !info.list && len(unwritten) == 1) && !c.h.KnownInitial {
			c.preloaded[int32(k)] = unwritten
			c.coverage.Preloaded++
		} else {
			c.garbage(info, unwritten)
		}
		for _, value := range unwritten {
			c.add(version{key: int32(k), writer: none, op: none, value: value})
		}
	}
}

// unwritten lists the values of a key that were read and that nobody wrote. initial: somebody read the key as it is without any write.
func (c *checker) unwritten(info *keyInfo) (values []string, initial bool) {
	seen := map[string]bool{}
	for _, r := range info.reads {
		op := c.op(r)
		initial = initial || op.Initial
		for _, value := range seenBy(op, info.list) {
			if _, written := info.byValue[value]; !written && !seen[value] {
				seen[value] = true
				values = append(values, value)
			}
		}
	}
	return values, initial
}

// samePrefix reports whether all lists that were read begin with these values.
func (c *checker) samePrefix(info *keyInfo, values []string) bool {
	return !slices.ContainsFunc(info.reads, func(r access) bool {
		list := seenBy(c.op(r), true)
		return len(list) < len(values) || !slices.Equal(list[:len(values)], values)
	})
}

// inside looks for what a transaction shows alone: reads that contradict its own reads and writes (Cerone et al. 2015, axiom INT), and reads of
// what it writes later.
func (c *checker) inside(t int) {
	ops := c.h.Transactions[t].Ops
	state := map[int32]*expected{}
	read := map[int32]map[string]int{} // by key and value: operation
	internal, future := false, false
	for i := range ops {
		op, k := &ops[i], c.ids[t][i]
		if c.keys[k].mixed {
			continue
		}
		s := state[k]
		if s == nil {
			s = &expected{}
			state[k] = s
		}
		if op.Kind == observed.Read {
			if op.Unknown {
				continue
			}
			got := seenBy(op, c.keys[k].list)
			if !internal && !s.allows(got) {
				internal = true
				c.report(finding{class: anomaly.Internal, txns: []int{t}, stmts: [][]int{{s.op, i}}, key: c.keys[k].name,
					text: ownText(ops, i, s)})
			}
			*s = expected{whole: true, values: got, op: i}
			for _, value := range got {
				if read[k] == nil {
					read[k] = map[string]int{}
				}
				if _, ok := read[k][value]; !ok {
					read[k][value] = i
				}
			}
			continue
		}
		if at, ok := read[k][op.Value]; ok && !future && !c.versions[c.keys[k].byValue[op.Value]].twice {
			future = true
			c.report(finding{class: anomaly.FutureRead, txns: []int{t}, stmts: [][]int{{at, i}}, key: c.keys[k].name,
				text: "T1 read " + op.Value + " of " + c.keys[k].name + " before it wrote it"})
		}
		s.op = i
		if op.Kind == observed.Append {
			s.values = append(slices.Clip(s.values), op.Value)
		} else {
			*s = expected{whole: true, values: []string{op.Value}, op: i}
		}
	}
}

// expected is what a transaction must find in a key: the values, or, if not whole, a list that ends with them.
type expected struct {
	whole  bool
	values []string
	op     int
}

func (s *expected) allows(got []string) bool {
	if s.whole {
		return slices.Equal(s.values, got)
	}
	return len(got) >= len(s.values) && slices.Equal(got[len(got)-len(s.values):], s.values)
}

func ownText(ops []observed.Op, i int, s *expected) string {
	want := "[" + strings.Join(s.values, " ") + "]"
	if !s.whole {
		want = "a list that ends with " + want
	}
	return "T1 read " + resultText(&ops[i]) + " of " + ops[i].Key + " where its own operations leave " + want
}

// dirty looks for reads of what aborted transactions wrote (G1a), of what its writer replaced (G1b), and for lists with repetitions.
func (c *checker) dirty(t int) {
	ops := c.h.Transactions[t].Ops
	for i := range ops {
		op, k := &ops[i], c.ids[t][i]
		info := &c.keys[k]
		if op.Kind != observed.Read || op.Unknown || info.mixed {
			continue
		}
		got := seenBy(op, info.list)
		if info.list {
			c.duplicates(t, i, got)
		}
		for n, value := range got {
			v, ok := info.byValue[value]
			if !ok {
				continue
			}
			x := &c.versions[v]
			if x.twice || x.writer == none || int(x.writer) == t {
				continue
			}
			w := int(x.writer)
			switch {
			case c.h.Transactions[w].Outcome == history.OutcomeAborted:
				c.report(finding{class: g1a, txns: []int{w, t}, stmts: [][]int{{int(x.op)}, {i}}, key: info.name, value: value,
					text: "T2 read " + value + " of " + info.name + ", which T1 wrote and which was rolled back", edge: true})
			case x.inter && n == len(got)-1:
				c.report(finding{class: g1b, txns: []int{w, t}, stmts: [][]int{{int(x.op)}, {i}}, key: info.name, value: value,
					text: "T2 read " + value + " of " + info.name + ", which T1 replaced itself", edge: true})
			}
		}
	}
}

func (c *checker) duplicates(t, i int, list []string) {
	seen := make(map[string]bool, len(list))
	for _, value := range list {
		if seen[value] {
			c.report(finding{class: DuplicateElements, txns: []int{t}, stmts: [][]int{{i}}, key: c.h.Transactions[t].Ops[i].Key,
				text: "T1 read a list that has " + value + " more than once"})
			return
		}
		seen[value] = true
	}
}

func (c *checker) garbage(info *keyInfo, values []string) {
	for _, r := range info.reads {
		for _, value := range seenBy(c.op(r), info.list) {
			if slices.Contains(values, value) {
				c.report(finding{class: GarbageRead, txns: []int{int(r.txn)}, stmts: [][]int{{int(r.op)}}, key: info.name, value: value,
					text: "T1 read " + value + " of " + info.name + ", which no transaction of the history wrote"})
				break
			}
		}
	}
}

// lostUpdates looks for transactions that read the same value of a key and then both wrote the key. The order of their versions does not matter
// (Berenson et al. 1995, P4).
func (c *checker) lostUpdates() {
	for k := range c.keys {
		info := &c.keys[k]
		if info.mixed {
			continue
		}
		first := map[string]access{}
		reads := map[int32]access{} // the first read of each transaction
		done := map[int32]bool{}
		for _, r := range info.reads {
			if _, ok := reads[r.txn]; !ok {
				reads[r.txn] = r
			}
		}
		for _, w := range info.writes {
			r, ok := reads[w.txn]
			if !ok || done[w.txn] || r.op > w.op || c.wroteBefore(info, r) || c.h.Transactions[w.txn].Outcome != history.OutcomeCommitted {
				continue
			}
			if v, written := info.byValue[c.op(r).Value]; written && c.versions[v].twice { // they may have read different versions
				continue
			}
			done[w.txn] = true
			got := resultText(c.op(r))
			other, again := first[got]
			if !again {
				first[got] = w
				continue
			}
			c.report(finding{class: LostUpdate, txns: []int{int(other.txn), int(w.txn)},
				stmts: [][]int{{int(reads[other.txn].op), int(other.op)}, {int(r.op), int(w.op)}}, key: info.name, value: got,
				text: "T1 and T2 both read " + got + " of " + info.name + ", and both wrote it"})
		}
	}
}

// wroteBefore reports whether the reader had written the key itself.
func (c *checker) wroteBefore(info *keyInfo, r access) bool {
	for i := range r.op {
		if op := &c.h.Transactions[r.txn].Ops[i]; op.Kind != observed.Read && op.Key == info.name {
			return true
		}
	}
	return false
}

// resultText is what a read returned.
func resultText(op *observed.Op) string {
	switch {
	case op.Unknown:
		return "?"
	case op.IsList:
		return "[" + strings.Join(op.List, " ") + "]"
	case op.Initial:
		return "nil"
	}
	return op.Value
}

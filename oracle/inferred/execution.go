package inferred

import (
	"encoding/binary"
	"slices"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// mostExact is how many transactions a history may have for an exhaustive search.
const mostExact = 20

// mostTries bounds that search.
const mostTries = 1_000_000

// execution is a search for an execution of the transactions in which each read gives what it gave: one after the other, or begins and commits apart, where
// all that a transaction reads is of its begin. It tries all executions, but does at once what cannot be in the way of anything that follows, and ends where a
// value is overwritten that is still to be read: it does not come again.
type execution struct {
	txns   []int32
	apart  bool
	does   [][]deed
	writes [][]deed // of each transaction: the last value of each key
	before []uint32 // those that are done before it begins
	rivals []uint32 // those that must not be under way when it begins
	states map[state]int32
	once   []bool           // by key: each value comes once
	lists  []bool           // by key: it has appends
	needs  map[state]uint32 // who reads a key in a state before writing it
	now    point
	failed map[string]bool // states from which there is no way on
	tries  int
}

// state is a list of values, by the list without the last one; or a key in a state.
type state struct {
	of    int32
	value string
	at    int32
}

// deed is an operation: a read that gave a state, a write that leaves one, or an append.
type deed struct {
	kind  observed.Kind
	key   int32
	state int32
	value string
}

// point is how far an execution is: what the keys have, who has begun and who is done.
type point struct {
	keys        []int32
	begun, done uint32
}

func newExecution(c *checker) *execution {
	x := &execution{states: map[state]int32{}, needs: map[state]uint32{}, failed: map[string]bool{}, once: make([]bool, len(c.keys)), lists: make([]bool, len(c.keys))}
	for k := range c.keys {
		info := &c.keys[k]
		x.lists[k] = info.list
		x.once[k] = !info.mixed && !slices.ContainsFunc(info.writes, func(w access) bool { return c.versions[info.byValue[c.op(w).Value]].twice })
		x.now.keys = append(x.now.keys, x.list(c.preloaded[int32(k)]))
	}
	for t := range c.h.Transactions {
		if c.node[t] {
			x.add(c, int32(t))
		}
	}
	x.before, x.rivals = make([]uint32, len(x.txns)), make([]uint32, len(x.txns))
	return x
}

// serially is a search for a serial order that keeps some edges.
func serially(c *checker, edges []edge) *execution {
	x := newExecution(c)
	for i := range edges {
		from, _ := slices.BinarySearch(x.txns, edges[i].from)
		to, _ := slices.BinarySearch(x.txns, edges[i].to)
		x.before[to] |= 1 << from
	}
	return x
}

// over is a search for an execution at a level that executions define.
func over(o *orders, l *executable) *execution {
	x := newExecution(o.c)
	x.apart = l.apart
	for b, t := range x.txns {
		for a, u := range x.txns {
			switch p, q := &o.txns[u], &o.txns[t]; {
			case l.kinds&so != 0 && a < b && p.Session == q.Session, l.kinds&rt != 0 && p.To < q.From:
				x.before[b] |= 1 << a
			}
			if l.first && a != b && slices.ContainsFunc(x.writes[a], func(d deed) bool {
				return slices.ContainsFunc(x.writes[b], func(e deed) bool { return d.key == e.key })
			}) {
				x.rivals[b] |= 1 << a
			}
		}
	}
	return x
}

// list is the state of a key that has these values.
func (x *execution) list(values []string) (s int32) {
	for _, v := range values {
		s = x.behind(s, v)
	}
	return s
}

// behind is the state of a list to which a value is appended.
func (x *execution) behind(s int32, v string) int32 {
	n := state{of: s, value: v}
	if x.states[n] == 0 {
		x.states[n] = int32(len(x.states) + 1)
	}
	return x.states[n]
}

// add takes in a transaction.
func (x *execution) add(c *checker, t int32) {
	n := len(x.txns)
	var does []deed
	last, wrote := map[int32]deed{}, []int32(nil)
	for i := range c.h.Transactions[t].Ops {
		op, d := &c.h.Transactions[t].Ops[i], deed{key: c.ids[t][i]}
		if d.kind = op.Kind; op.Kind != observed.Read {
			if d.value = op.Value; op.Kind == observed.Write {
				d.state = x.list([]string{op.Value})
			}
			if _, had := last[d.key]; !had {
				wrote = append(wrote, d.key)
			}
			last[d.key] = d
		} else if op.Unknown || c.h.Transactions[t].Outcome != history.OutcomeCommitted {
			continue
		} else if d.state = x.list(seenBy(op, c.keys[d.key].list)); !slices.Contains(wrote, d.key) {
			x.needs[state{of: d.key, at: d.state}] |= 1 << n
		}
		does = append(does, d)
	}
	var writes []deed
	for _, k := range wrote {
		writes = append(writes, last[k])
	}
	x.txns, x.does, x.writes = append(x.txns, t), append(x.does, does), append(x.writes, writes)
}

// search reports whether there is an execution; decided is false if there were too many.
func (x *execution) search() (found, decided bool) {
	found = x.goOn()
	return found, found || x.tries <= mostTries
}

// goOn reports whether an execution of all is found from the point at hand, at which it is afterwards if not.
func (x *execution) goOn() bool {
	was := x.now
	for x.atOnce() {
	}
	if x.now.done == 1<<len(x.txns)-1 {
		return true
	}
	name := x.name()
	if !x.failed[name] {
		here := x.now
		for t := range x.txns {
			if x.tries++; x.tries > mostTries {
				break
			}
			if x.step(t, false) && x.goOn() {
				return true
			}
			x.now = here
		}
		x.failed[name] = true
	}
	x.now = was
	return false
}

// atOnce does what is in the way of nothing.
func (x *execution) atOnce() bool {
	for t := range x.txns {
		if x.step(t, true) {
			return true
		}
	}
	return false
}

// step takes the next step of a transaction, if it can be taken; where alone says so, only if it is in the way of nothing.
func (x *execution) step(t int, alone bool) bool {
	is := uint32(1) << t
	switch {
	case x.now.done&is != 0:
		return false
	case x.now.begun&is != 0:
		return x.mayWrite(t, alone) && x.commit(t)
	case x.before[t]&^x.now.done != 0 || x.rivals[t]&x.now.begun&^x.now.done != 0:
		return false
	case x.apart && (alone && x.rivals[t]&^x.now.done != 0), !x.apart && !x.mayWrite(t, alone):
		return false
	}
	keys := slices.Clone(x.now.keys)
	if !x.run(t, keys) {
		return false
	}
	if x.now.begun |= is; !x.apart || len(x.writes[t]) == 0 {
		x.now.keys = keys
		x.now.done |= is
	}
	return true
}

// run executes a transaction, and reports whether it reads what it read.
func (x *execution) run(t int, keys []int32) bool {
	for _, d := range x.does[t] {
		switch {
		case d.kind == observed.Append:
			keys[d.key] = x.behind(keys[d.key], d.value)
		case d.kind == observed.Write:
			keys[d.key] = d.state
		case keys[d.key] != d.state:
			return false
		}
	}
	return true
}

// commit shows what a transaction wrote.
func (x *execution) commit(t int) bool {
	x.now.keys = slices.Clone(x.now.keys)
	for _, d := range x.writes[t] {
		x.now.keys[d.key] = d.state
	}
	x.now.done |= 1 << t
	return true
}

// mayWrite reports whether nobody is still to read what the transaction overwrites; where alone says so, only if nobody reads what it writes, either, so that
// others may overwrite that at any time.
func (x *execution) mayWrite(t int, alone bool) bool {
	for _, d := range x.writes[t] {
		if alone && (!x.once[d.key] || d.kind == observed.Append || x.awaited(d.key, d.state, 0) != 0) {
			return false
		}
		if x.once[d.key] && x.awaited(d.key, x.now.keys[d.key], 1<<t) != 0 {
			return false
		}
	}
	return true
}

// awaited are those, without some, that have not begun and read a key in a state.
func (x *execution) awaited(key, at int32, without uint32) uint32 {
	return x.needs[state{of: key, at: at}] &^ x.now.begun &^ without
}

// name is what matters of the point at hand to what follows: not what a key has that nobody reads any more.
func (x *execution) name() string {
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, x.now.done), x.now.begun)
	for k, s := range x.now.keys {
		if !x.once[k] || x.lists[k] || x.awaited(int32(k), s, 0) != 0 {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(k)), uint64(s))
		}
	}
	return string(b)
}

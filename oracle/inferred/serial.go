package inferred

import (
	"container/heap"
	"slices"
	"strconv"
	"strings"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// mostExact is how many transactions a history may have for an exhaustive search for a serial order.
const mostExact = 20

// mostTries bounds that search.
const mostTries = 2_000_000

// decide says whether it means something that nothing more was found. data counts the edges that are no mere order.
func (c *checker) decide(data int) {
	for _, reason := range reasons(c.h.Omitted) {
		c.doubt(reason)
	}
	if data == 0 {
		c.doubt("no dependency between the transactions can be inferred")
	}
	c.doubts = slices.Clone(c.cold)
	count := map[kinds]int{}
	for i := range c.edges {
		count[c.edges[i].kind]++
	}
	c.coverage.Edges = map[string]int{"ww": count[ww], "wr": count[wr], "rw": count[rw], "so": count[so], "rt": count[rt]}
	if len(c.found) == 0 && len(c.cold) > 0 && len(c.h.Omitted) == 0 {
		c.serial(data)
	}
	c.undecided = strings.Join(c.cold, "; ")
}

func reasons(omitted map[string]int) (out []string) {
	for reason := range omitted {
		out = append(out, "not all of it was understood: "+reason)
	}
	slices.Sort(out)
	return out
}

// serial looks for a serial order that gives each read its value: one that keeps session order and real time if they are asked for.
// Transactions of unknown outcome of which nobody read anything are left out: without them there is no order less.
func (c *checker) serial(data int) {
	if c.world().replays(c.topological(c.edges)) {
		c.coverage.Serial = true
	} else if n := c.coverage.Committed + c.coverage.Inferred; n <= mostExact && len(c.preloaded) == 0 {
		found, decided := c.world().exhaust(c.edges)
		switch {
		case found:
			c.coverage.Serial = true
		case decided:
			c.notSerial(data)
			return
		}
	}
	if c.coverage.Serial && data > 0 {
		c.cold = nil
	}
}

// notSerial reports that no serial order gives the results.
func (c *checker) notSerial(data int) {
	f := finding{class: NotSerializable, text: "no serial order of the committed transactions gives every read its value"}
	if c.opts.Order {
		if found, decided := c.world().exhaust(c.edges[:data]); found || !decided {
			f.class, f.text = NotStrict, "no serial order that keeps the order of sessions and real time gives every read its value"
		}
	}
	for t := range c.h.Transactions {
		if c.node[t] {
			all := make([]int, len(c.h.Transactions[t].Ops))
			for i := range all {
				all[i] = i
			}
			if len(all) > 0 {
				f.txns, f.stmts = append(f.txns, t), append(f.stmts, all)
			}
		}
	}
	c.cold = nil
	if len(f.txns) > 0 {
		f.key = c.h.Transactions[f.txns[0]].Ops[0].Key
		c.report(f)
	}
}

// topological orders the transactions by edges, those that end first in front. It leaves out what is on a cycle, or behind one.
func (c *checker) topological(edges []edge) []int32 {
	n := len(c.h.Transactions)
	in := make([]int32, n)
	for i := range edges {
		in[edges[i].to]++
	}
	g := newGraph(n, edges)
	ready := &queue{}
	for t := range n {
		if c.node[t] && in[t] == 0 {
			heap.Push(ready, int32(t))
		}
	}
	var out []int32
	for ready.Len() > 0 {
		t := heap.Pop(ready).(int32)
		out = append(out, t)
		for i := g.at[t]; i < g.at[t+1]; i++ {
			l := &g.links[i]
			if in[l.to] -= l.count; in[l.to] == 0 {
				heap.Push(ready, l.to)
			}
		}
	}
	return out
}

// queue is a heap of transactions by their place in the history.
type queue []int32

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, k int) bool { return q[i] < q[k] }
func (q queue) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(int32)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// replays executes all transactions one after the other and compares what they read: the proof of a serial order.
func (w *world) replays(order []int32) bool {
	c := w.c
	seen := 0
	for _, t := range order {
		if _, ok := w.run(t); !ok {
			return false
		}
		seen++
	}
	return seen == c.coverage.Committed+c.coverage.Inferred
}

// world is a database that executes one transaction at a time.
type world struct {
	c     *checker
	state map[int32][]string // of each key: nil is initial, a register has one value
}

// world is an empty database, but for what its keys had before the history.
func (c *checker) world() *world {
	w := &world{c: c, state: map[int32][]string{}}
	for k, values := range c.preloaded {
		w.state[k] = values
	}
	return w
}

// undo is what a key had before.
type undo struct {
	key int32
	old []string
}

// run executes a transaction; ok is false if it read something else. What it changed can be taken back with the undos.
func (w *world) run(t int32) (undos []undo, ok bool) {
	x := &w.c.h.Transactions[t]
	for i := range x.Ops {
		op, k := &x.Ops[i], w.c.ids[t][i]
		if op.Kind != observed.Read {
			undos = append(undos, undo{k, w.state[k]})
			if op.Kind == observed.Append {
				w.state[k] = append(slices.Clip(w.state[k]), op.Value)
			} else {
				w.state[k] = []string{op.Value}
			}
			continue
		}
		if op.Unknown || x.Outcome != history.OutcomeCommitted {
			continue
		}
		got := seenBy(op, w.c.keys[k].list)
		if !slices.Equal(w.state[k], got) {
			return undos, false
		}
	}
	return undos, true
}

func (w *world) back(undos []undo) {
	for _, u := range slices.Backward(undos) {
		if u.old == nil {
			delete(w.state, u.key)
		} else {
			w.state[u.key] = u.old
		}
	}
}

// exhaust tries all serial orders that keep the edges. decided is false if there were too many.
func (w *world) exhaust(edges []edge) (found, decided bool) {
	c := w.c
	var nodes []int32
	place := map[int32]int{}
	for t := range c.h.Transactions {
		if c.node[t] {
			place[int32(t)] = len(nodes)
			nodes = append(nodes, int32(t))
		}
	}
	before := make([]uint32, len(nodes))
	for i := range edges {
		before[place[edges[i].to]] |= 1 << place[edges[i].from]
	}
	failed := map[string]bool{}
	tries := 0
	var search func(done uint32) bool
	search = func(done uint32) bool {
		if done == 1<<len(nodes)-1 {
			return true
		}
		name := strconv.FormatUint(uint64(done), 16) + w.text()
		if failed[name] {
			return false
		}
		for i, t := range nodes {
			if done&(1<<i) != 0 || before[i]&^done != 0 {
				continue
			}
			if tries++; tries > mostTries {
				return false
			}
			undos, ok := w.run(t)
			if ok && search(done|1<<i) {
				return true
			}
			w.back(undos)
		}
		failed[name] = true
		return false
	}
	found = search(0)
	return found, found || tries <= mostTries
}

// text is the state of all keys.
func (w *world) text() string {
	var b strings.Builder
	for k := range w.c.keys {
		if v, ok := w.state[int32(k)]; ok {
			b.WriteString(" " + strconv.Itoa(k) + "=" + strings.Join(v, ","))
		}
	}
	return b.String()
}

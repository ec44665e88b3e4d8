package inferred

import (
	"container/heap"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle"
)

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
	ordered := func(f oracle.Finding) bool { _, is := f.Class.Plain(); return is }
	switch {
	case len(c.cold) == 0 || len(c.h.Omitted) > 0:
	case len(c.found) == 0:
		c.serial(data)
	case !slices.ContainsFunc(c.found, func(f oracle.Finding) bool { return !ordered(f) }): // is it order alone that is broken?
		forcedSerial(c, data, false)
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
	} else if order, broken := forcedSerial(c, data, c.opts.Order); broken {
		return
	} else if order != nil && c.world().replays(order) {
		c.coverage.Serial = true
	} else if n := c.coverage.Committed + c.coverage.Inferred; n <= mostExact && len(c.preloaded) == 0 {
		found, decided := serially(c, c.edges).search()
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

// forcedSerial looks for the orders of versions that a serial order forces, with session order and real time or without. If they have a cycle, it reports that
// there is none; else it gives one that keeps them.
func forcedSerial(c *checker, data int, ordered bool) (order []int32, broken bool) {
	if len(c.preloaded) > 0 {
		return nil, false
	}
	named, edges := "PL-2.99", c.edges[:data]
	if ordered {
		named, edges = "strict serializable", c.edges
	}
	_, order, circle := findForced(c, rules[named], slices.Concat(edges, c.reread))
	if circle == nil {
		return order, false
	}
	class := NotSerializable
	if ordered {
		if _, _, plain := findForced(c, rules["PL-2.99"], slices.Concat(c.edges[:data], c.reread)); plain != nil {
			circle = plain
		} else {
			class = NotStrict
		}
	}
	c.cold = nil
	c.publish(circular(c, class, circle), "")
	return nil, true
}

// notSerial reports that no serial order gives the results.
func (c *checker) notSerial(data int) {
	f := finding{class: NotSerializable, text: "no serial order of the committed transactions gives every read its value"}
	if c.opts.Order {
		if found, decided := serially(c, c.edges[:data]).search(); found || !decided {
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
		if !w.run(t) {
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

// run executes a transaction; ok is false if it read something else.
func (w *world) run(t int32) (ok bool) {
	x := &w.c.h.Transactions[t]
	for i := range x.Ops {
		op, k := &x.Ops[i], w.c.ids[t][i]
		if op.Kind != observed.Read {
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
			return false
		}
	}
	return true
}

package level_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle/inferred"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
)

// This file judges small histories a second time, by the definitions of the levels alone: by relations over all orders of versions, and by
// executing the transactions in all orders. It shares nothing with the oracles and with the other tests.

var strangers = flag.Int("strangers", 600, "random histories that TestStranger judges: few in `make test`, many in `make soak`")

// A value is one write: 100 times its transaction, and its place there. 0 is the initial value, -1 one that nobody wrote.
type sOp struct {
	read  bool
	key   int
	value int   // written, or read of a register
	list  []int // read of a list
}

type sTxn struct {
	ops        []sOp
	outcome    history.Outcome
	session    int
	begin, end int
	in         bool // it takes part: committed, or unknown and a committed one read of it
}

type sHistory struct {
	txns  []sTxn
	keys  int
	lists bool
	order [][]int // of the values of each key, where it is known: all that was written and not undone
}

func (h *sHistory) writer(value int) int { return value/100 - 1 } // -1: nobody

func (h *sHistory) final(key, value int) bool {
	last := 0
	for _, o := range h.txns[h.writer(value)].ops {
		if !o.read && o.key == key {
			last = o.value
		}
	}
	return last == value
}

// head is the version that a read returned: the value, or the last element of a list. own elements at the end do not count.
func (h *sHistory) head(t int, o *sOp) int {
	if !h.lists {
		return o.value
	}
	for _, v := range slices.Backward(o.list) {
		if h.writer(v) != t {
			return v
		}
	}
	return 0
}

// include says who takes part.
func (h *sHistory) include() {
	for t := range h.txns {
		h.txns[t].in = h.txns[t].outcome == history.OutcomeCommitted
	}
	for t := range h.txns {
		if h.txns[t].outcome != history.OutcomeCommitted {
			continue
		}
		for _, o := range h.txns[t].ops {
			for _, v := range append([]int{o.value}, o.list...) {
				if o.read && v > 0 && h.txns[h.writer(v)].outcome == history.OutcomeUnknown {
					h.txns[h.writer(v)].in = true
				}
			}
		}
	}
}

// defects are what single reads show: whether PL-2 is broken, and whether a transaction contradicts its own operations (INT).
func (h *sHistory) defects() (pl1, pl2, internal bool) {
	for t := range h.txns {
		one, two, own := h.defectsOf(t)
		pl1, pl2, internal = pl1 || one, pl2 || two, internal || own
	}
	return pl1, pl2, internal
}

// defectsOf are those that the reads of one transaction show.
func (h *sHistory) defectsOf(t int) (pl1, pl2, internal bool) {
	x := &h.txns[t]
	if x.outcome != history.OutcomeCommitted {
		return false, false, false
	}
	type own struct {
		known, list bool
		values      []int
	}
	state := make([]own, h.keys)
	for i, o := range x.ops {
		s := &state[o.key]
		if !o.read {
			if h.lists {
				s.values = append(slices.Clone(s.values), o.value)
			} else {
				*s = own{known: true, values: []int{o.value}}
			}
			continue
		}
		got := []int{}
		if h.lists {
			got = o.list
		} else if o.value != 0 {
			got = []int{o.value}
		}
		switch {
		case s.known && !slices.Equal(s.values, got), !s.known && len(s.values) > 0 && (len(got) < len(s.values) || !slices.Equal(got[len(got)-len(s.values):], s.values)):
			internal = true
		}
		*s = own{known: true, values: got}
		seen := map[int]bool{}
		for k, v := range got {
			if seen[v] {
				pl1, pl2 = true, true
			}
			seen[v] = true
			if v < 0 {
				pl2 = true
				continue
			}
			w := h.writer(v)
			if w == t {
				pl2 = pl2 || slices.IndexFunc(x.ops, func(p sOp) bool { return !p.read && p.value == v }) > i // from its own future
				continue
			}
			at := slices.IndexFunc(h.txns[w].ops, func(p sOp) bool { return !p.read && p.value == v })
			if _, answered := h.times(t, i); h.order != nil && !h.lists {
				sent, _ := h.times(w, at)
				pl2 = pl2 || answered < sent // from the future
			}
			pl2 = pl2 || h.txns[w].outcome == history.OutcomeAborted || k == len(got)-1 && !h.final(o.key, v)
		}
	}
	return pl1, pl2, internal
}

// times are when an operation was sent and answered.
func (h *sHistory) times(t, i int) (sent, answered uint64) {
	x := &h.txns[t]
	step := uint64(100*(x.end-x.begin)) / uint64(len(x.ops)+1)
	from := uint64(100*x.begin + 2*t) // no two ticks are the same
	return from + uint64(i)*step + 1, from + uint64(i+1)*step
}

type sRel [][]bool

func relation(n int, is func(a, b int) bool) sRel {
	r := make(sRel, n)
	for a := range r {
		r[a] = make([]bool, n)
		for b := range r {
			r[a][b] = is(a, b)
		}
	}
	return r
}

func (r sRel) or(others ...sRel) sRel {
	return relation(len(r), func(a, b int) bool {
		return r[a][b] || slices.ContainsFunc(others, func(o sRel) bool { return o[a][b] })
	})
}

func (r sRel) then(o sRel) sRel {
	return relation(len(r), func(a, b int) bool {
		for m := range r {
			if r[a][m] && o[m][b] {
				return true
			}
		}
		return false
	})
}

func (r sRel) plus() sRel {
	for range r {
		r = r.or(r.then(r))
	}
	return r
}

func (r sRel) cyclic() bool {
	p := r.plus()
	for a := range p {
		if p[a][a] {
			return true
		}
	}
	return false
}

func (r sRel) maybe() sRel { return relation(len(r), func(a, b int) bool { return a == b || r[a][b] }) }

// holds says which levels the history satisfies with these orders of the versions of its keys (values, in each key's order).
func (h *sHistory) holds(orders [][]int) map[string]bool {
	n := len(h.txns)
	in := func(a, b int) bool { return a != b && h.txns[a].in && h.txns[b].in }
	at := func(k, v int) int { return slices.Index(orders[k], v) } // the initial one: -1
	ww := relation(n, func(a, b int) bool {
		return in(a, b) && slices.ContainsFunc(orders, func(o []int) bool {
			for i := 1; i < len(o); i++ {
				if h.writer(o[i-1]) == a && h.writer(o[i]) == b {
					return true
				}
			}
			return false
		})
	})
	type saw struct{ t, i, key, value int }
	var reads []saw // of others' versions
	for t := range h.txns {
		for i := range h.txns[t].ops {
			o := &h.txns[t].ops[i]
			if !o.read || h.txns[t].outcome != history.OutcomeCommitted {
				continue
			}
			if v := h.head(t, o); v == 0 || v > 0 && h.writer(v) != t {
				if v == 0 && h.lists && len(o.list) > 0 {
					continue // nothing but its own elements
				}
				reads = append(reads, saw{t, i, o.key, v})
			}
		}
	}
	// Whoever reads another one's element behind which its own ones stand has read that, and missed nothing that is behind its own.
	own := func(s saw) bool {
		o := &h.txns[s.t].ops[s.i]
		return h.lists && len(o.list) > 0 && h.writer(o.list[len(o.list)-1]) == s.t
	}
	wr := relation(n, func(a, b int) bool {
		return in(a, b) && slices.ContainsFunc(reads, func(s saw) bool { return s.t == b && s.value > 0 && h.writer(s.value) == a })
	})
	placed := func(s saw) bool { return s.value == 0 || at(s.key, s.value) >= 0 }
	missed := func(s saw, b int) bool {
		if own(s) || !placed(s) || !in(s.t, b) {
			return false
		}
		for i, v := range orders[s.key] {
			if i > at(s.key, s.value) && h.writer(v) == b {
				return true
			}
		}
		return false
	}
	// rw leads to the next version; ww leads on from there, but from a version of the reader itself.
	rw := relation(n, func(a, b int) bool {
		return slices.ContainsFunc(reads, func(s saw) bool {
			return s.t == a && missed(s, b) && h.writer(orders[s.key][at(s.key, s.value)+1]) == b
		})
	})
	so := relation(n, func(a, b int) bool {
		x, y := &h.txns[a], &h.txns[b]
		return in(a, b) && a < b && x.session == y.session && x.outcome == history.OutcomeCommitted && y.outcome == history.OutcomeCommitted
	})
	rt := relation(n, func(a, b int) bool {
		x, y := &h.txns[a], &h.txns[b]
		return in(a, b) && x.outcome == history.OutcomeCommitted && x.end < y.begin
	})
	axiom := func(sees func(s saw, w int) bool) bool {
		return !slices.ContainsFunc(reads, func(s saw) bool {
			for w := range n {
				if missed(s, w) && sees(s, w) {
					return true
				}
			}
			return false
		})
	}
	reader := func(t, w int, when func(i int) bool) bool {
		return slices.ContainsFunc(reads, func(r saw) bool { return r.t == t && r.value > 0 && h.writer(r.value) == w && when(r.i) })
	}
	updates := func(t int) bool {
		return slices.ContainsFunc(h.txns[t].ops, func(o sOp) bool { return !o.read })
	}
	cursor := true // Adya's G-cursor: a cycle over one object of ww and one rw
	for k := range h.keys {
		alone := relation(n, func(a, b int) bool {
			for i := 1; i < len(orders[k]); i++ {
				if in(a, b) && h.writer(orders[k][i-1]) == a && h.writer(orders[k][i]) == b {
					return true
				}
			}
			return false
		}).plus()
		for _, s := range reads {
			for w := range n {
				if s.key == k && missed(s, w) && alone[w][s.t] && h.writer(orders[k][at(k, s.value)+1]) != s.t {
					cursor = false
				}
			}
		}
	}
	pl1, pl2, internal := h.defects()
	for _, o := range orders {
		for i, v := range o {
			pl1 = pl1 || slices.ContainsFunc(o[:i], func(u int) bool { return h.writer(u) == h.writer(v) && u > v }) // not as they were written
		}
	}
	data := ww.or(wr, rw)
	step := func(base sRel) bool { return !base.then(rw.maybe()).cyclic() } // no two adjacent rw
	g := map[string]bool{}
	g["PL-1"] = !pl1 && !ww.cyclic()
	g["PL-2"] = g["PL-1"] && !pl2 && !ww.or(wr).cyclic()
	g["read committed with monotonic reads"] = g["PL-2"] && axiom(func(s saw, w int) bool { return reader(s.t, w, func(i int) bool { return i < s.i }) })
	g["monotonic atomic view"] = g["read committed with monotonic reads"]
	g["cursor stability"] = g["PL-2"] && cursor
	g["read atomic"] = g["PL-2"] && !internal && axiom(func(s saw, w int) bool { return reader(s.t, w, func(int) bool { return true }) })
	g["update atomic"] = g["read atomic"] && cursor
	before := so.or(wr).plus()
	g["causal"] = g["read atomic"] && !so.or(wr, ww).cyclic() && axiom(func(s saw, w int) bool { return before[w][s.t] })
	one := so.or(wr, ww).plus().then(rw)
	psi := true
	for t := range n {
		psi = psi && !one[t][t]
	}
	g["parallel snapshot isolation"] = g["causal"] && g["update atomic"] && psi
	g["prefix consistency"] = g["causal"] && !ww.or(so.or(wr).then(rw.maybe())).cyclic()
	g["PL-2.99"] = g["PL-2"] && !data.cyclic()
	g["snapshot isolation"] = g["update atomic"] && step(ww.or(wr))
	g["strong session snapshot isolation"] = g["snapshot isolation"] && step(ww.or(wr, so))
	g["strong snapshot isolation"] = g["strong session snapshot isolation"] && step(ww.or(wr, so, rt))
	g["PL-3U"] = g["update atomic"]
	for t := range n {
		part := relation(n, func(a, b int) bool { return data[a][b] && (a == t || updates(a)) && (b == t || updates(b)) })
		g["PL-3U"] = g["PL-3U"] && !part.cyclic()
	}
	g["PL-3"] = !internal && g["PL-2"] && !data.cyclic()
	g["strong session serializable"] = g["PL-3"] && !data.or(so).cyclic()
	g["strict serializable"] = g["PL-3"] && !data.or(so, rt).cyclic()
	return g
}

// allOrders calls f with all orders of the versions that the history may have had; ok is false if they are too many, or if lists contradict one another.
func (h *sHistory) allOrders(f func(orders [][]int)) (ok bool) {
	if h.order != nil {
		f(h.installed())
		return true
	}
	var options [][][]int
	count := 1
	for k := range h.keys {
		var fixed, rest []int
		for t := range h.txns {
			for _, o := range h.txns[t].ops {
				if o.read && o.key == k && h.txns[t].outcome == history.OutcomeCommitted && len(o.list) > len(fixed) {
					fixed = o.list
				}
			}
		}
		for t := range h.txns {
			for _, o := range h.txns[t].ops {
				if o.read && o.key == k && h.txns[t].outcome == history.OutcomeCommitted && h.lists && !slices.Equal(o.list, fixed[:len(o.list)]) {
					return false
				}
				if !o.read && o.key == k && h.txns[t].in && !slices.Contains(fixed, o.value) && h.final(k, o.value) {
					rest = append(rest, o.value)
				}
			}
		}
		fixed = slices.DeleteFunc(slices.Clone(fixed), func(v int) bool { return v < 0 || !h.txns[h.writer(v)].in })
		var all [][]int
		var grow func(order, left []int)
		grow = func(order, left []int) {
			if len(left) == 0 {
				all = append(all, slices.Clone(order))
			}
			for i, v := range left {
				grow(append(slices.Clone(order), v), slices.Delete(slices.Clone(left), i, i+1))
			}
		}
		grow(fixed, rest)
		options = append(options, all)
		if count *= len(all); count > 200 {
			return false
		}
	}
	var choose func(k int, orders [][]int)
	choose = func(k int, orders [][]int) {
		if k == h.keys {
			f(orders)
			return
		}
		for _, o := range options[k] {
			choose(k+1, append(slices.Clone(orders), o))
		}
	}
	choose(0, nil)
	return true
}

// installed are the final versions in the known order.
func (h *sHistory) installed() [][]int {
	var out [][]int
	for k, order := range h.order {
		out = append(out, slices.DeleteFunc(slices.Clone(order), func(v int) bool { return !h.txns[h.writer(v)].in || !h.final(k, v) }))
	}
	return out
}

// truth says which levels the history satisfies.
func (h *sHistory) truth() (is map[string]bool, ok bool) {
	is = map[string]bool{}
	ok = h.allOrders(func(orders [][]int) {
		for name, holds := range h.holds(orders) {
			is[name] = is[name] || holds
		}
	})
	return is, ok
}

// serial executes the transactions in all orders that keep some of them apart, and compares what they read.
func (h *sHistory) serial(keep func(a, b int) bool) bool {
	var try func(done []int, state [][]int) bool
	try = func(done []int, state [][]int) bool {
		all := true
		for t := range h.txns {
			if !h.txns[t].in || slices.Contains(done, t) {
				continue
			}
			all = false
			early := false
			for u := range h.txns {
				early = early || h.txns[u].in && u != t && !slices.Contains(done, u) && keep(u, t)
			}
			if early {
				continue
			}
			next, fine := slices.Clone(state), true
			for _, o := range h.txns[t].ops {
				now := next[o.key]
				switch {
				case !o.read && h.lists:
					next[o.key] = append(slices.Clone(now), o.value)
				case !o.read:
					next[o.key] = []int{o.value}
				case h.txns[t].outcome != history.OutcomeCommitted:
				case h.lists:
					fine = fine && slices.Equal(now, o.list)
				default:
					fine = fine && (len(now) == 0 && o.value == 0 || len(now) == 1 && now[0] == o.value)
				}
			}
			if fine && try(append(slices.Clone(done), t), next) {
				return true
			}
		}
		return all
	}
	return try(nil, make([][]int, h.keys))
}

// snapshots executes starts and commits in all orders. first says that of two that write one key, one commits before the other one starts.
func (h *sHistory) snapshots(first bool, keep func(a, b int) bool) bool {
	n := len(h.txns)
	started, done := make([]bool, n), make([]bool, n)
	var wrote [][]int // by transaction: how often each key had been installed when it started
	wrote = make([][]int, n)
	var try func(state [][]int, installs []int) bool
	try = func(state [][]int, installs []int) bool {
		all := true
		for t := range h.txns {
			x := &h.txns[t]
			if !x.in || done[t] {
				continue
			}
			all = false
			if !started[t] {
				early := false
				for u := range h.txns {
					early = early || h.txns[u].in && u != t && !done[u] && keep(u, t)
				}
				if early || !h.sees(t, state) {
					continue
				}
				started[t], wrote[t] = true, slices.Clone(installs)
				if try(state, installs) {
					return true
				}
				started[t] = false
				continue
			}
			next, count, fine := slices.Clone(state), slices.Clone(installs), true
			for _, o := range x.ops {
				if o.read { // it showed where its own elements stand
					fine = fine && (!h.lists || len(o.list) == 0 || h.writer(o.list[len(o.list)-1]) != t || installs[o.key] == wrote[t][o.key] || count[o.key] == installs[o.key])
					continue
				}
				fine = fine && (!first || installs[o.key] == wrote[t][o.key])
				count[o.key]++
				if h.lists {
					next[o.key] = append(slices.Clone(next[o.key]), o.value)
				} else {
					next[o.key] = []int{o.value}
				}
			}
			if !fine {
				continue
			}
			done[t] = true
			if try(next, count) {
				return true
			}
			done[t] = false
		}
		return all
	}
	return try(make([][]int, h.keys), make([]int, h.keys))
}

// sees reports whether a transaction that starts in a state reads what it read.
func (h *sHistory) sees(t int, state [][]int) bool {
	own := slices.Clone(state)
	for _, o := range h.txns[t].ops {
		switch {
		case !o.read && h.lists:
			own[o.key] = append(slices.Clone(own[o.key]), o.value)
		case !o.read:
			own[o.key] = []int{o.value}
		case h.txns[t].outcome != history.OutcomeCommitted:
		case h.lists && !slices.Equal(own[o.key], o.list), !h.lists && !(len(own[o.key]) == 0 && o.value == 0 || len(own[o.key]) == 1 && own[o.key][0] == o.value):
			return false
		}
	}
	return true
}

// executed are the levels that executions define.
func (h *sHistory) executed() map[string]bool {
	none := func(a, b int) bool { return false }
	so := func(a, b int) bool {
		x, y := &h.txns[a], &h.txns[b]
		return a < b && x.session == y.session && x.outcome == history.OutcomeCommitted && y.outcome == history.OutcomeCommitted
	}
	rt := func(a, b int) bool {
		return so(a, b) || h.txns[a].outcome == history.OutcomeCommitted && h.txns[a].end < h.txns[b].begin
	}
	return map[string]bool{
		"PL-3": h.serial(none), "strong session serializable": h.serial(so), "strict serializable": h.serial(rt),
		"snapshot isolation": h.snapshots(true, none), "strong session snapshot isolation": h.snapshots(true, so), "strong snapshot isolation": h.snapshots(true, rt),
		"prefix consistency": h.snapshots(false, so),
	}
}

// strange makes a history: an execution over snapshots that lag behind, of which some reads are then wrong.
func strange(rng *rand.Rand, lists, nowhere bool) *sHistory {
	h := &sHistory{keys: 1 + rng.IntN(3), lists: lists}
	n, sessions := 2+rng.IntN(4), 1+rng.IntN(3)
	lag, wrong, twice, guess := rng.IntN(3), rng.IntN(12), rng.IntN(2) == 0, rng.IntN(4) == 0
	ends, long := make([]int, sessions), []int{2, 10, 60}[rng.IntN(3)]
	state := make([][][]int, h.keys) // by key: its states, as lists of all values so far
	for k := range state {
		state[k] = [][]int{nil}
	}
	written := make([][]int, h.keys)
	for t := range n {
		s := rng.IntN(sessions)
		x := sTxn{session: s + 1, begin: ends[s] + 1 + rng.IntN(8), outcome: history.OutcomeCommitted}
		x.end = x.begin + 1 + rng.IntN(long)
		ends[s] = x.end
		switch rng.IntN(14) {
		case 0:
			x.outcome = history.OutcomeAborted
		case 1:
			x.outcome, x.session = history.OutcomeUnknown, 50+t
		}
		view := make([][]int, h.keys)
		for k := range view {
			view[k] = state[k][max(0, len(state[k])-1-rng.IntN(lag+1))]
		}
		mine := make([][]int, h.keys)
		for i := range 1 + rng.IntN(4) {
			o := sOp{key: rng.IntN(h.keys), read: rng.IntN(2) == 0}
			if !o.read && (twice || len(mine[o.key]) == 0) {
				o.value = 100*(t+1) + i
				mine[o.key] = append(mine[o.key], o.value)
			} else {
				o.read = true
				if rng.IntN(6) == 0 {
					view[o.key] = state[o.key][len(state[o.key])-1]
				}
				now := append(slices.Clone(view[o.key]), mine[o.key]...)
				if o.list = now; !lists && len(now) > 0 {
					o.value = now[len(now)-1]
				}
			}
			x.ops = append(x.ops, o)
		}
		for k := range mine {
			written[k] = append(written[k], mine[k]...)
			if x.outcome == history.OutcomeCommitted || x.outcome == history.OutcomeUnknown && rng.IntN(2) == 0 {
				state[k] = append(state[k], append(slices.Clone(state[k][len(state[k])-1]), mine[k]...))
			}
		}
		h.txns = append(h.txns, x)
	}
	for t := range h.txns {
		for i := range h.txns[t].ops {
			o := &h.txns[t].ops[i]
			if o.read && (guess || rng.IntN(12) < wrong/3) && rng.IntN(2) == 0 {
				values := written[o.key]
				n := rng.IntN(len(values) + 1)
				if o.list = slices.Clone(values[:n]); rng.IntN(8) == 0 {
					rng.Shuffle(n, func(a, b int) { o.list[a], o.list[b] = o.list[b], o.list[a] })
				}
				if o.value = 0; n > 0 {
					o.value = values[n-1]
				}
				if nowhere && rng.IntN(40) == 0 {
					o.value, o.list = -1, append(o.list, -1)
				}
			}
			if o.read && !lists {
				o.list = nil
			}
			if o.read && lists {
				o.value = 0
			}
		}
	}
	return h
}

// know gives the versions an order: that of the transactions, with some changes.
func (h *sHistory) know(rng *rand.Rand) {
	h.order = make([][]int, h.keys)
	for k := range h.order {
		var blocks [][]int
		for t := range h.txns {
			var block []int
			for _, o := range h.txns[t].ops {
				if !o.read && o.key == k {
					block = append(block, o.value)
				}
			}
			if block != nil {
				blocks = append(blocks, block)
			}
		}
		if n := len(blocks); n > 1 && rng.IntN(4) == 0 {
			i := rng.IntN(n - 1)
			blocks[i], blocks[i+1] = blocks[i+1], blocks[i]
		}
		h.order[k] = slices.Concat(blocks...)
	}
}

func (h *sHistory) observed() *observed.History {
	out := &observed.History{Ordered: true, KnownInitial: true}
	for t := range h.txns {
		x := &h.txns[t]
		y := observed.Transaction{ID: uint64(t + 1), Session: uint64(x.session), Outcome: x.outcome, Begin: uint64(x.begin), End: uint64(x.end)}
		if x.outcome == history.OutcomeUnknown {
			y.End = 0
		}
		for _, o := range x.ops {
			p := observed.Op{Key: fmt.Sprint("k", o.key)}
			switch {
			case !o.read:
				p.Kind, p.Value = observed.Write, fmt.Sprint(o.value)
				if h.lists {
					p.Kind = observed.Append
				}
			case x.outcome != history.OutcomeCommitted:
				p.Unknown = true
			case h.lists:
				p.IsList, p.Initial = true, len(o.list) == 0
				for _, v := range o.list {
					p.List = append(p.List, fmt.Sprint(v))
				}
			case o.value == 0:
				p.Initial = true
			default:
				p.Value = fmt.Sprint(o.value)
			}
			y.Ops = append(y.Ops, p)
		}
		out.Transactions = append(out.Transactions, y)
	}
	return out
}

func (h *sHistory) events() (out []history.Event) {
	session := map[int]bool{}
	for t := range h.txns {
		x := &h.txns[t]
		id, s := uint64(t+1), uint64(x.session)
		if !session[x.session] {
			session[x.session] = true
			out = append(out, history.Event{Kind: history.EventSession, Session: s, Engine: "postgres"})
		}
		from, to := uint64(100*x.begin+2*t), uint64(100*x.end+50+2*t)
		out = append(out, history.Event{Kind: history.EventBegin, Session: s, Txn: id, From: from, To: from, Tokens: []string{fmt.Sprint("T", id)}})
		for i, o := range x.ops {
			a, verb := history.Access{Op: history.OpUpdate, Row: history.Row{Table: "t", Key: fmt.Sprint(o.key)}, Version: fmt.Sprintf("k%dv%d", o.key, o.value), Order: history.OrderInitial}, "update"
			if o.value > 0 {
				a.Order = uint64(slices.Index(h.order[o.key], o.value) + 2)
			}
			if o.read {
				if a.Op, verb = history.OpRead, "select"; o.value > 0 && h.writer(o.value) != t {
					a.Writer = fmt.Sprint("T", h.writer(o.value)+1)
				}
			}
			sent, answered := h.times(t, i)
			out = append(out, history.Event{Kind: history.EventStmt, Session: s, Txn: id, N: i + 1, Verb: verb, From: sent, To: answered, Coverage: history.CoverageExact, Accesses: []history.Access{a}})
		}
		out = append(out, history.Event{Kind: history.EventEnd, Session: s, Txn: id, From: to - 1, To: to, Outcome: x.outcome})
	}
	slices.SortStableFunc(out, func(a, b history.Event) int { return cmp.Compare(a.To, b.To) })
	return out
}

// merged are the events in another order of delivery, which keeps that of each session alone.
func merged(events []history.Event) (out []history.Event) {
	rng := rand.New(rand.NewPCG(uint64(len(events)), 1))
	by := map[uint64][]history.Event{}
	for _, e := range events {
		by[e.Session] = append(by[e.Session], e)
	}
	for sessions := slices.Sorted(maps.Keys(by)); len(sessions) > 0; {
		i := rng.IntN(len(sessions))
		s := sessions[i]
		if out, by[s] = append(out, by[s][0]), by[s][1:]; len(by[s]) == 0 {
			sessions = slices.Delete(sessions, i, i+1)
		}
	}
	return out
}

func (h *sHistory) String() string {
	var b strings.Builder
	for t := range h.txns {
		x := &h.txns[t]
		fmt.Fprintf(&b, "T%d session %d %s %d..%d:", t+1, x.session, x.outcome, x.begin, x.end)
		for _, o := range x.ops {
			switch {
			case !o.read:
				fmt.Fprintf(&b, " w k%d %d,", o.key, o.value)
			case h.lists:
				fmt.Fprintf(&b, " r k%d %v,", o.key, o.list)
			default:
				fmt.Fprintf(&b, " r k%d %d,", o.key, o.value)
			}
		}
		b.WriteByte('\n')
	}
	if h.order != nil {
		fmt.Fprintln(&b, "orders", h.order)
	}
	return b.String()
}

// judged are wirecheck's verdicts. findings says whether something was found that no serial order explains, and decided whether it means something
// that nothing was.
func (h *sHistory) judged(t *testing.T, form string, strict bool) (vs []level.Verdict, unsure string, findings bool, undecided string) {
	if form == "events" || form == "merged" {
		c := isolation.New(isolation.Options{Levels: true, Keep: -1, Strict: strict})
		events := h.events()
		if form == "merged" {
			events = merged(events)
		}
		for i := range events {
			c.Add(&events[i])
		}
		found := c.Summary()
		vs = isolation.Levels(c).Judge()
		if len(events)%4 == 0 {
			j := judgedFile(t, events, isolation.Options{Levels: true, Strict: strict}, &level.Levels[len(events)/4%len(level.Levels)])
			inFile := isolation.Levels(j.Checker).Judge()
			if a, b := told(c), told(j.Checker); !slices.EqualFunc(vs, inFile, func(a, b level.Verdict) bool { return a.State == b.State }) || !slices.Equal(a, b) {
				t.Errorf("%s, strict %v: the events say\n%q %v\nand a file\n%q %v\n%s", form, strict, a, vs, b, inFile, h)
			}
		}
		return vs, isolation.Unsure(c), len(found) > 0, ""
	}
	r := inferred.Check(h.observed(), inferred.Options{Levels: true, Order: strict})
	return r.Levels, r.Unsure, len(r.Findings) > 0, r.Undecided
}

// TestStranger compares verdicts with the definitions.
func TestStranger(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(*strangers) {
		for _, form := range []string{"events", "merged", "registers", "lists"} {
			rng := rand.New(rand.NewPCG(seed, 34))
			versions := form == "events" || form == "merged"
			h := strange(rng, form == "lists", !versions)
			if versions {
				h.know(rng)
			}
			h.include()
			is, ok := h.truth()
			if !ok {
				count[form+": too many orders, or contradictory lists"]++
				continue
			}
			if !versions {
				for name, holds := range h.executed() {
					if holds != is[name] {
						t.Fatalf("seed %d, %s: the definitions disagree: %s holds %v by execution\n%s", seed, form, name, holds, h)
					}
				}
			}
			for _, strict := range []bool{false, true} {
				vs, unsure, findings, undecided := h.judged(t, form, strict)
				for _, v := range vs {
					what := "right"
					switch {
					case v.State == level.Broken && is[v.Level] && (v.Level != "PL-1" || form != "registers" || is["PL-2"]): // see docs/explain/inferred.md
						what = "WRONGLY BROKEN"
					case v.State == level.Satisfied && unsure == "" && !is[v.Level]:
						what = "WRONGLY SATISFIED"
					case v.State == level.Unknown || v.State == level.Satisfied && unsure != "":
						if what = "unknown"; !strings.Contains(undecided, "no dependency") && !strings.Contains(unsure, "of unknown outcome") {
							what = "UNKNOWN WITHOUT NEED"
						}
					}
					if count[form+" "+v.Level+" "+what]++; what == strings.ToUpper(what) && count[form+" "+v.Level+" "+what] <= 2 {
						t.Errorf("seed %d, %s, strict %v: %s is %s: %s (unsure %q, undecided %q)\n%v\n%s", seed, form, strict, v.Level, v.State, what, unsure, undecided, v.Witness, h)
					}
				}
				name := map[bool]string{false: "PL-3", true: "strict serializable"}[strict]
				if findings && is[name] || !findings && undecided == "" && unsure == "" && !is[name] && (form != "merged" || !strict) { // real time is that of the events' order
					if count[form+" findings wrong"]++; count[form+" findings wrong"] <= 3 {
						t.Errorf("seed %d, %s, strict %v: findings %v, undecided %q, %s %v\n%s", seed, form, strict, findings, undecided, name, is[name], h)
					}
				}
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(count)) {
		t.Log(k, count[k])
	}
}

package inferred

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/history/observed"
)

// appended is a history of lists of which all elements were read in the end, so that the order of all versions is known, as it is to Elle.
type appended struct {
	h     *observed.History
	lists [][]element // by key
}

type element struct{ txn, value int }

// appends makes a history of transactions that append to lists. A read sees the first elements of a list, some time ago; of a list to which its
// transaction appends later or earlier, so do its own.
func appends(rng *rand.Rand) *appended {
	a := &appended{h: &observed.History{KnownInitial: true}, lists: make([][]element, 2+rng.IntN(2))}
	n, value := 3+rng.IntN(4), 0
	type plan struct{ txn, key int }
	var order []plan
	for t := range n {
		a.h.Transactions = append(a.h.Transactions, observed.Transaction{ID: uint64(t), Session: uint64(t + 1), Outcome: history.OutcomeCommitted})
		for key := range a.lists {
			for range rng.IntN(5) / 3 * (1 + rng.IntN(2)) {
				order = append(order, plan{t, key})
			}
		}
	}
	for k := range order { // neighbours change places, so that most histories are nearly serial
		if j := k + 1 + rng.IntN(4); rng.IntN(3) == 0 && j < len(order) {
			order[k], order[j] = order[j], order[k]
		}
	}
	for _, p := range order {
		value++
		a.lists[p.key] = append(a.lists[p.key], element{p.txn, value})
	}
	for t := range n {
		x := &a.h.Transactions[t]
		for key, list := range a.lists {
			mine := slices.IndexFunc(list, func(e element) bool { return e.txn == t })
			seen := rng.IntN(len(list) + 1)
			if mine >= 0 {
				seen = rng.IntN(mine + 1) // a read before its own append
			} else if rng.IntN(2) == 0 { // about what those before it left
				seen = len(list)
				for seen > 0 && list[seen-1].txn > t {
					seen--
				}
			}
			if rng.IntN(3) > 0 {
				x.Ops = append(x.Ops, a.read(key, seen))
			}
			for _, e := range list {
				if e.txn == t {
					x.Ops = append(x.Ops, observed.Op{Kind: observed.Append, Key: fmt.Sprint(key), Value: fmt.Sprint(e.value)})
				}
			}
		}
	}
	last := observed.Transaction{ID: uint64(n), Session: uint64(n + 1), Outcome: history.OutcomeCommitted}
	for key, list := range a.lists {
		last.Ops = append(last.Ops, a.read(key, len(list)))
	}
	a.h.Transactions = append(a.h.Transactions, last)
	return a
}

func (a *appended) read(key, seen int) observed.Op {
	op := observed.Op{Key: fmt.Sprint(key), IsList: true, Initial: seen == 0}
	for _, e := range a.lists[key][:seen] {
		op.List = append(op.List, fmt.Sprint(e.value))
	}
	return op
}

// drawn are the kinds of the dependencies between two transactions.
type drawn map[[2]int]map[string]bool

func (d drawn) add(kind string, from, to int) {
	if from == to {
		return
	}
	if d[[2]int{from, to}] == nil {
		d[[2]int{from, to}] = map[string]bool{}
	}
	d[[2]int{from, to}][kind] = true
}

// depends are the dependencies as Elle's list-append draws them: between neighbours of the order of all elements (Kingsbury and Alvaro 2020, 4.3.2).
// middle says that an intermediate version was read (G1b).
func (a *appended) depends() (edges drawn, middle bool) {
	edges = drawn{}
	add := edges.add
	for key, list := range a.lists {
		for i := 1; i < len(list); i++ {
			add("ww", list[i-1].txn, list[i].txn)
		}
		for t := range a.h.Transactions {
			for _, op := range a.h.Transactions[t].Ops {
				if op.Kind != observed.Read || op.Key != fmt.Sprint(key) {
					continue
				}
				n := len(op.List)
				if n > 0 {
					add("wr", list[n-1].txn, t)
					middle = middle || list[n-1].txn != t && slices.ContainsFunc(list[n:], func(e element) bool { return e.txn == list[n-1].txn })
				}
				if n < len(list) {
					add("rw", t, list[n].txn)
				}
			}
		}
	}
	return edges, middle
}

// cycles are the classes of all simple cycles of n transactions.
func (edges drawn) cycles(n int) map[anomaly.Class]bool {
	found := map[anomaly.Class]bool{}
	var visit func(path []int, kinds []string)
	visit = func(path []int, kinds []string) {
		at := path[len(path)-1]
		for to := path[0]; to < n; to++ {
			for kind := range edges[[2]int{at, to}] {
				switch next := append(slices.Clip(kinds), kind); {
				case to == path[0]:
					found[classOf(next)] = true
				case !slices.Contains(path, to):
					visit(append(slices.Clip(path), to), next)
				}
			}
		}
	}
	for t := range n {
		visit([]int{t}, nil)
	}
	return found
}

func classOf(kinds []string) anomaly.Class {
	rw, adjacent := 0, false
	for i, k := range kinds {
		if k == "rw" {
			rw++
			adjacent = adjacent || kinds[(i+1)%len(kinds)] == "rw"
		}
	}
	switch {
	case rw == 0 && !slices.Contains(kinds, "wr"):
		return anomaly.G0
	case rw == 0:
		return anomaly.G1c
	case rw == 1:
		return anomaly.GSingle
	case !adjacent:
		return anomaly.GNonadjacent
	}
	return anomaly.G2Item
}

// severity is that of the classes of cycles, the worst first.
var severity = []anomaly.Class{anomaly.G0, anomaly.G1c, anomaly.GSingle, anomaly.GNonadjacent, anomaly.G2Item}

// same compares the classes of cycles that were found with those of all cycles: the worst is found, and none of which there is no cycle.
func same(t *testing.T, seed uint64, h *observed.History, got, have map[anomaly.Class]bool, count map[anomaly.Class]int) {
	worst := slices.IndexFunc(severity, func(c anomaly.Class) bool { return have[c] })
	if worst >= 0 && !got[severity[worst]] {
		t.Fatalf("seed %d: no %s in %v\n%s", seed, severity[worst], got, text(h))
	}
	for i, c := range severity {
		if got[c] && !have[c] {
			t.Fatalf("seed %d: %s was found, and there is no such cycle\n%s", seed, c, text(h))
		}
		if i == worst {
			count[c]++
		}
	}
	if worst < 0 {
		count[""]++
	}
}

// TestElle compares with Elle's definitions by brute force over all cycles, where all versions are known: the most severe class of cycles is found,
// no class is found of which there is no cycle, and an intermediate read is found exactly if there is one.
func TestElle(t *testing.T) {
	count := map[anomaly.Class]int{}
	for seed := range uint64(3000) {
		a := appends(rand.New(rand.NewPCG(seed, 7)))
		edges, middle := a.depends()
		got := foundIn(a.h)
		same(t, seed, a.h, got, edges.cycles(len(a.h.Transactions)), count)
		if got[anomaly.G1b] != middle {
			t.Fatalf("seed %d: G1b %v, want %v\n%s", seed, got[anomaly.G1b], middle, text(a.h))
		}
	}
	t.Log(count)
	for _, c := range append(severity, "") {
		if count[c] == 0 {
			t.Errorf("no history has %q as its worst: %v", c, count)
		}
	}
}

// foundIn are the classes of what is found in a history.
func foundIn(h *observed.History) map[anomaly.Class]bool {
	got := map[anomaly.Class]bool{}
	for _, f := range Check(h, Options{}).Findings {
		got[f.Class] = true
	}
	return got
}

// registers makes a history of transactions that may read each register once, mostly what one shortly before left, and may then write it, sometimes twice.
func registers(rng *rand.Rand) *observed.History {
	h := &observed.History{KnownInitial: true}
	keys, n, value := 2+rng.IntN(2), 3+rng.IntN(4), 0
	wild := rng.IntN(6) == 0 // whatever anybody wrote may be read
	type written struct{ txn, value int }
	all := make([][]written, keys)
	for t := range n {
		x := observed.Transaction{ID: uint64(t), Session: uint64(t + 1), Outcome: history.OutcomeCommitted}
		if rng.IntN(10) == 0 {
			x.Outcome = history.OutcomeAborted
		}
		for key := range keys {
			if rng.IntN(3) > 0 {
				x.Ops = append(x.Ops, observed.Op{Key: fmt.Sprint(key)})
			}
			for range (1 + rng.IntN(9)) / 4 * rng.IntN(2) {
				value++
				all[key] = append(all[key], written{t, value})
				x.Ops = append(x.Ops, observed.Op{Kind: observed.Write, Key: fmt.Sprint(key), Value: fmt.Sprint(value)})
			}
		}
		h.Transactions = append(h.Transactions, x)
	}
	for t := range h.Transactions {
		x := &h.Transactions[t]
		for i := range x.Ops {
			op := &x.Ops[i]
			if op.Kind != observed.Read {
				continue
			}
			key := int(op.Key[0] - '0')
			list := slices.DeleteFunc(slices.Clone(all[key]), func(w written) bool {
				return w.txn == t || !wild && (w.txn > t+1 || h.Transactions[w.txn].Outcome == history.OutcomeAborted && rng.IntN(4) > 0)
			})
			at := len(list) - 1 - min(rng.IntN(4), rng.IntN(4))
			switch op.Initial = at < 0; {
			case x.Outcome == history.OutcomeAborted:
				*op = observed.Op{Key: op.Key, Unknown: true}
			case !op.Initial:
				op.Value = fmt.Sprint(list[at].value)
			}
		}
	}
	return h
}

// registerRules are what Elle's rw-register says of a history with the rule that writes follow reads (wfr-keys?; Elle, rw_register.clj): a key's versions
// come behind the initial one, and a version that a transaction wrote comes behind the one that it had read. There is ww and rw between neighbours
// of that order, but not if it has a cycle.
func registerRules(h *observed.History) (edges drawn, found map[anomaly.Class]bool) {
	edges, found = drawn{}, map[anomaly.Class]bool{}
	type op struct{ key, value string }
	final, middle, aborted := map[op]int{}, map[op]int{}, map[op]int{}
	reads, writes := make([]map[string]string, len(h.Transactions)), make([]map[string]string, len(h.Transactions)) // external ones
	for t, x := range h.Transactions {
		reads[t], writes[t] = map[string]string{}, map[string]string{}
		for _, o := range x.Ops {
			switch last, again := writes[t][o.Key]; {
			case o.Kind == observed.Write:
				if again {
					middle[op{o.Key, last}] = t
				}
				writes[t][o.Key] = o.Value
			case !o.Unknown:
				reads[t][o.Key] = o.Value // "": the initial one
			}
		}
		if x.Outcome == history.OutcomeAborted {
			for _, o := range x.Ops {
				aborted[op{o.Key, o.Value}] = t
			}
			reads[t], writes[t] = nil, nil
			continue
		}
		for key, value := range writes[t] {
			final[op{key, value}] = t
		}
	}
	for key := range 3 {
		key := fmt.Sprint(key)
		next := map[string]map[string]bool{"": {}}
		updates := map[string]int{}
		for t := range h.Transactions {
			read, reader := reads[t][key]
			wrote, writer := writes[t][key]
			if writer {
				next[""][wrote] = true
			}
			if reader && writer {
				if next[read] == nil {
					next[read] = map[string]bool{}
				}
				next[read][wrote] = true
				updates[read]++
				if updates[read] > 1 {
					found[anomaly.BothUpdate] = true
				}
			}
			if reader && read != "" {
				if _, is := aborted[op{key, read}]; is {
					found[anomaly.G1a] = true
				} else if _, is := middle[op{key, read}]; is {
					found[anomaly.G1b] = true
				}
				if from, ok := final[op{key, read}]; ok {
					edges.add("wr", from, t)
				}
			}
		}
		var reaches func(from, to string, steps int) bool
		reaches = func(from, to string, steps int) bool {
			for v := range next[from] {
				if v == to || steps > 0 && reaches(v, to, steps-1) {
					return true
				}
			}
			return false
		}
		cyclic := false
		for v := range next {
			cyclic = cyclic || reaches(v, v, len(next))
		}
		if cyclic {
			found[anomaly.CyclicVersions] = true
			continue
		}
		for v, list := range next {
			for w := range list {
				to := final[op{key, w}]
				if from, ok := final[op{key, v}]; ok {
					edges.add("ww", from, to)
				}
				for t := range h.Transactions {
					if read, ok := reads[t][key]; ok && read == v {
						edges.add("rw", t, to)
					}
				}
			}
		}
	}
	return edges, found
}

// TestElleRegisters compares registers with Elle's rules as TestElle does lists.
func TestElleRegisters(t *testing.T) {
	count, others := map[anomaly.Class]int{}, map[anomaly.Class]int{}
	for seed := range uint64(*histories * 2) {
		h := registers(rand.New(rand.NewPCG(seed, 8)))
		edges, want := registerRules(h)
		got := foundIn(h)
		same(t, seed, h, got, edges.cycles(len(h.Transactions)), count)
		for _, c := range []anomaly.Class{anomaly.G1a, anomaly.G1b, anomaly.BothUpdate, anomaly.CyclicVersions} {
			if got[c] != want[c] {
				t.Fatalf("seed %d: %s %v, want %v\n%s", seed, c, got[c], want[c], text(h))
			}
			if want[c] {
				others[c]++
			}
		}
	}
	t.Log(count, others)
	for _, c := range append(severity[1:], "") { // G0 takes a ww that no read shows
		if count[c] == 0 {
			t.Errorf("no history has %q as its worst: %v", c, count)
		}
	}
	if len(others) < 4 {
		t.Errorf("what is found beside cycles: %v", others)
	}
}

// inOrder gives transactions times and sessions: some overlap, and no two of one session do.
func inOrder(rng *rand.Rand, h *observed.History) {
	h.Ordered = true
	busy := make([]uint64, len(h.Transactions)+3) // by session: when its last transaction ended
	for t := range h.Transactions {
		x := &h.Transactions[t]
		x.Begin, x.End = uint64(max(1, 4*t+1-2*rng.IntN(7))), uint64(4*t+2)
		if x.Session = uint64(1 + rng.IntN(3)); busy[x.Session-1] > x.Begin {
			x.Session = uint64(t + 4)
		}
		busy[x.Session-1] = x.End
	}
}

// TestElleInOrder is TestElle with session order and real time (Elle's -process and -realtime): each class that is found has a cycle, and each cycle
// has something found that is no less severe and needs no more order.
func TestElleInOrder(t *testing.T) {
	type kind struct{ variant, shape int }
	name := func(k kind) anomaly.Class { return severity[k.shape] + variants[k.variant].suffix }
	count := map[anomaly.Class]int{}
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 9))
		a := appends(rng)
		if len(a.h.Transactions) > 6 {
			continue
		}
		inOrder(rng, a.h)
		edges, _ := a.depends()
		for i, x := range a.h.Transactions {
			for k, y := range a.h.Transactions {
				if i < k && x.Session == y.Session {
					edges.add("so", i, k)
				}
				if x.End < y.Begin {
					edges.add("rt", i, k)
				}
			}
		}
		got := map[anomaly.Class]bool{}
		for _, f := range Check(a.h, Options{Order: true}).Findings {
			got[f.Class] = true
		}
		have := map[kind]bool{}
		var visit func(path []int, kinds []string, variant int)
		visit = func(path []int, kinds []string, variant int) {
			for to := path[0]; to < len(a.h.Transactions); to++ {
				for k := range edges[[2]int{path[len(path)-1], to}] {
					v := max(variant, map[string]int{"so": 1, "rt": 2}[k])
					switch next := append(slices.Clip(kinds), k); {
					case to == path[0]:
						have[kind{v, slices.Index(severity, classOf(next))}] = true
					case !slices.Contains(path, to):
						visit(append(slices.Clip(path), to), next, v)
					}
				}
			}
		}
		for i := range a.h.Transactions {
			visit([]int{i}, nil, 0)
		}
		for v := range variants {
			for s := range shapes {
				k, covered := kind{v, s}, false
				for w := range v + 1 {
					for worse := range shapes {
						covered = covered || got[name(kind{w, worse})] && (worse == s || worse == 0 && s == 1 || worse >= 2 && worse <= s)
					}
				}
				switch is := name(k); {
				case got[is] && !have[k]:
					t.Fatalf("seed %d: %s was found, and there is no such cycle\n%s", seed, is, text(a.h))
				case have[k] && !covered:
					t.Fatalf("seed %d: a cycle of %s, and %v was found\n%s", seed, is, got, text(a.h))
				case got[is]:
					count[is]++
				}
			}
		}
	}
	t.Log(count)
	for v := range variants {
		for s := range 3 { // the others are rare where two transactions mostly are in a worse cycle, too
			if k := (kind{v, s}); count[name(k)] == 0 {
				t.Errorf("no history has %s", name(k))
			}
		}
	}
}

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

// depends are the dependencies as Elle's list-append draws them: between neighbours of the order of all elements (Kingsbury and Alvaro 2020, 4.3.2).
// middle says that an intermediate version was read (G1b).
func (a *appended) depends() (edges map[[2]int]map[string]bool, middle bool) {
	edges = map[[2]int]map[string]bool{}
	add := func(kind string, from, to int) {
		if from == to {
			return
		}
		if edges[[2]int{from, to}] == nil {
			edges[[2]int{from, to}] = map[string]bool{}
		}
		edges[[2]int{from, to}][kind] = true
	}
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

// cycles are the classes of all simple cycles.
func (a *appended) cycles() map[anomaly.Class]bool {
	edges, _ := a.depends()
	found, n := map[anomaly.Class]bool{}, len(a.h.Transactions)
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

// TestElle compares with Elle's definitions by brute force over all cycles, where all versions are known: the most severe class of cycles is found,
// no class is found of which there is no cycle, and an intermediate read is found exactly if there is one.
func TestElle(t *testing.T) {
	severity := []anomaly.Class{anomaly.G0, anomaly.G1c, anomaly.GSingle, anomaly.GNonadjacent, anomaly.G2Item}
	count := map[anomaly.Class]int{}
	for seed := range uint64(3000) {
		a := appends(rand.New(rand.NewPCG(seed, 7)))
		have := a.cycles()
		_, middle := a.depends()
		got := map[anomaly.Class]bool{}
		for _, f := range Check(a.h, Options{}).Findings {
			got[f.Class] = true
		}
		worst := slices.IndexFunc(severity, func(c anomaly.Class) bool { return have[c] })
		if worst >= 0 && !got[severity[worst]] {
			t.Fatalf("seed %d: no %s in %v\n%s", seed, severity[worst], got, text(a.h))
		}
		for i, c := range severity {
			if got[c] && !have[c] {
				t.Fatalf("seed %d: %s was found, and there is no such cycle\n%s", seed, c, text(a.h))
			}
			if i == worst {
				count[c]++
			}
		}
		if worst < 0 {
			count[""]++
		}
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

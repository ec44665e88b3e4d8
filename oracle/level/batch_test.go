package level_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/history"
	"wirecheck/offline"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
	"wirecheck/product"
)

// judgedFile judges a history as `wirecheck check` judges a file: a sieve says first which transactions can be part of an anomaly. If a level is asked for, the
// proof that it is satisfied is made and checked.
func judgedFile(t *testing.T, events []history.Event, opts isolation.Options, asked *level.Level) *offline.Judgement {
	t.Helper()
	var b bytes.Buffer
	w, err := history.NewWriter(&b, history.Header{Engine: "postgres", Run: "test"})
	for i := range events {
		if err == nil {
			err = w.Write(&events[i])
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	j, err := offline.Judge([]offline.Input{{In: bytes.NewReader(b.Bytes()), Path: "h", Name: "h"}}, opts, asked != nil, func(text string) { t.Error(text) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if asked != nil {
		if _, err := j.Levels(asked); err != nil {
			t.Error(err)
		}
	}
	return j
}

// told are the findings of a judgement: what, and between which transactions.
func told(c *isolation.Checker) (out []string) {
	for _, f := range c.Summary() {
		s := fmt.Sprint(f.ID, " ", f.Class, " ", f.Kind)
		for _, t := range f.Transactions {
			s += fmt.Sprint(" ", t.ID)
		}
		out = append(out, s)
	}
	return out
}

// mixed reports whether each transaction gets what it asks for, by Adya's mixed serialization graph: with a start and a commit for those in snapshots. asks has
// the level of each.
func (h *sHistory) mixed(asks []string) bool {
	n, orders := len(h.txns), h.installed()
	commit := func(t int) int {
		if asks[t] == product.RepeatableRead {
			return n + t
		}
		return t
	}
	edges := relation(2*n, func(a, b int) bool { return b == a+n && asks[a] == product.RepeatableRead })
	draw := func(a, b int, counts bool) {
		if counts && a%n != b%n && h.txns[a%n].in && h.txns[b%n].in {
			edges[a][b] = true
		}
	}
	for _, order := range orders {
		for i := 1; i < len(order); i++ {
			a, b := h.writer(order[i-1]), h.writer(order[i])
			draw(commit(a), b, true)
		}
	}
	for t := range h.txns {
		if asks[t] == product.ReadUncommitted || h.txns[t].outcome != history.OutcomeCommitted {
			continue
		}
		_, unseen, internal := h.defectsOf(t)
		if unseen || internal && asks[t] != product.ReadCommitted {
			return false
		}
		for _, o := range h.txns[t].ops {
			if !o.read || o.value > 0 && h.writer(o.value) == t {
				continue
			}
			if o.value > 0 {
				draw(commit(h.writer(o.value)), t, true)
			}
			if next := slices.Index(orders[o.key], o.value) + 1; next < len(orders[o.key]) {
				draw(t, commit(h.writer(orders[o.key][next])), asks[t] != product.ReadCommitted)
			}
		}
	}
	return !edges.cyclic()
}

// TestStrangerMixed compares the verdict of histories whose transactions ran at different levels with the definition.
func TestStrangerMixed(t *testing.T) {
	count := map[bool]int{}
	levels := []string{product.ReadUncommitted, product.ReadCommitted, product.RepeatableRead, product.Serializable} // as PostgreSQL has them
	for seed := range uint64(4 * *strangers) {
		rng := rand.New(rand.NewPCG(seed, 61))
		h := strange(rng, false, false)
		for i := range h.txns {
			if h.txns[i].outcome == history.OutcomeUnknown { // who sees it decides whether it counts
				h.txns[i].outcome = history.OutcomeCommitted
			}
		}
		h.know(rng)
		h.include()
		asks := make([]string, len(h.txns))
		for i := range asks {
			asks[i] = levels[rng.IntN(4)]
		}
		events := h.events()
		if seed%2 == 0 {
			events = merged(events)
		}
		for i := range events {
			if e := &events[i]; e.Kind == history.EventBegin {
				e.Level = asks[e.Txn-1]
			}
		}
		c := isolation.New(isolation.Options{Levels: true, Keep: -1})
		for i := range events {
			c.Add(&events[i])
		}
		is, v := h.mixed(asks), isolation.Levels(c).Mixed()
		if count[is]++; (v.State == level.Satisfied) != is || v.State == level.Unknown {
			t.Errorf("seed %d: %s, by the definition %v: %v\n%q\n%s", seed, v.State, is, v.Witness, asks, h)
		}
		if seed%5 == 0 {
			if inFile := isolation.Levels(judgedFile(t, events, isolation.Options{Levels: true}, nil).Checker).Mixed(); inFile.State != v.State {
				t.Errorf("seed %d: of a file %s, of its events %s\n%q\n%s", seed, inFile.State, v.State, asks, h)
			}
		}
	}
	if min(count[true], count[false]) < *strangers/4 {
		t.Errorf("%v: the test has lost its force", count)
	}
}

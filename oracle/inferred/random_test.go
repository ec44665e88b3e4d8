package inferred

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle/level"
)

var histories = flag.Int("histories", 4000, "random histories that TestBruteForce judges")

// draw makes a small history in which all reads are guesses, so that most histories are wrong in one way or another.
func draw(rng *rand.Rand) *observed.History {
	h := &observed.History{Ordered: true, KnownInitial: true}
	lists := rng.IntN(2) == 0
	written := map[string][]string{"x": nil, "y": nil}
	n := 2 + rng.IntN(4)
	seq := rng.IntN(2) == 0
	for t := range n {
		x := observed.Transaction{ID: uint64(t), Session: uint64(rng.IntN(3)), Outcome: history.OutcomeCommitted, Begin: 1, End: uint64(t + 2)}
		if seq {
			x.Begin = uint64(max(1, 2*t+1-2*rng.IntN(2)))
			x.End = uint64(2*t + 2)
		}
		switch rng.IntN(8) {
		case 0:
			x.Outcome = history.OutcomeAborted
		case 1:
			x.Outcome, x.End, x.Session = history.OutcomeUnknown, 0, uint64(t+10)
		}
		for range 1 + rng.IntN(3) {
			op := observed.Op{Key: []string{"x", "y"}[rng.IntN(2)]}
			if rng.IntN(2) == 0 {
				op.Kind, op.Value = observed.Write, fmt.Sprint(len(written[op.Key])+1)
				if lists {
					op.Kind = observed.Append
				}
				written[op.Key] = append(written[op.Key], op.Value)
			}
			x.Ops = append(x.Ops, op)
		}
		h.Transactions = append(h.Transactions, x)
	}
	for t := range h.Transactions {
		x := &h.Transactions[t]
		for i := range x.Ops {
			op := &x.Ops[i]
			values := written[op.Key]
			switch {
			case op.Kind != observed.Read:
			case x.Outcome != history.OutcomeCommitted:
				op.Unknown = true
			case lists:
				op.IsList, op.List = true, slices.Clone(values[:rng.IntN(len(values)+1)])
				if rng.IntN(6) == 0 {
					rng.Shuffle(len(op.List), func(a, b int) { op.List[a], op.List[b] = op.List[b], op.List[a] })
				}
				op.Initial = len(op.List) == 0
			default:
				if n := rng.IntN(len(values) + 1); n == 0 {
					op.Initial = true
				} else {
					op.Value = values[n-1]
				}
			}
		}
	}
	return h
}

// serializable tries all orders of the committed transactions and of any of those whose outcome is unknown.
func serializable(h *observed.History, ordered bool) bool {
	n := len(h.Transactions)
	precedes := func(a, b int) bool {
		x, y := &h.Transactions[a], &h.Transactions[b]
		return ordered && (x.Session != 0 && x.Session == y.Session && a < b || x.End != 0 && x.End < y.Begin)
	}
	var try func(done, skipped []int, state map[string]string) bool
	try = func(done, skipped []int, state map[string]string) bool {
		if len(done)+len(skipped) == n {
			return true
		}
		for t := range n {
			if slices.Contains(done, t) || slices.Contains(skipped, t) {
				continue
			}
			outcome := h.Transactions[t].Outcome
			if outcome != history.OutcomeCommitted && try(done, append(slices.Clip(skipped), t), state) {
				return true
			}
			if outcome == history.OutcomeAborted {
				return false // skipping it is all that can be done
			}
			early := false
			for o := range n {
				early = early || precedes(o, t) && !slices.Contains(done, o) && !slices.Contains(skipped, o)
			}
			if early {
				continue
			}
			if next, ok := execute(&h.Transactions[t], state); ok && try(append(slices.Clip(done), t), skipped, next) {
				return true
			}
		}
		return false
	}
	return try(nil, nil, map[string]string{})
}

// execute runs a transaction alone; a key's state is its value, or the elements of its list, each with a blank.
func execute(x *observed.Transaction, before map[string]string) (map[string]string, bool) {
	state := map[string]string{}
	for k, v := range before {
		state[k] = v
	}
	for i := range x.Ops {
		op := &x.Ops[i]
		switch op.Kind {
		case observed.Append:
			state[op.Key] += op.Value + " "
		case observed.Write:
			state[op.Key] = op.Value
		default:
			got := op.Value
			if op.IsList {
				got = ""
				for _, v := range op.List {
					got += v + " "
				}
			}
			if !op.Unknown && state[op.Key] != got {
				return nil, false
			}
		}
	}
	return state, true
}

// TestBruteForce compares verdicts with all serial orders: what is found is wrong, what is accepted is right, and what needs session order or real
// time is right without them.
func TestBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 4))
	wrong, right, undecided := 0, 0, 0
	for n := range *histories {
		h := draw(rng)
		strict, plain := Check(h, Options{Order: true, Levels: true}), Check(h, Options{Levels: true})
		inOrder, serial := serializable(h, true), serializable(h, false)
		complain := func(format string, args ...any) {
			t.Errorf("history %d: %s: found %q, undecided %q\n%s", n, fmt.Sprintf(format, args...), classes(strict), strict.Undecided, text(h))
		}
		if len(plain.Findings) > 0 && serial {
			complain("without order %q was found, and a serial order exists", classes(plain))
		}
		if len(strict.Findings) > 0 && inOrder {
			complain("a serial order exists")
		}
		if len(strict.Findings) == 0 && strict.Undecided == "" && !inOrder {
			complain("no serial order exists")
		}
		if len(plain.Findings) == 0 && plain.Undecided == "" && !serial {
			complain("no serial order exists, with data alone")
		}
		for _, r := range []Result{strict, plain} {
			for name, satisfied := range map[string]bool{"PL-3": serial, "strict serializable": inOrder} {
				switch v := stateOf(r, name); {
				case v == level.Broken && satisfied:
					complain("%s counts as broken, and an order exists", name)
				case v == level.Satisfied && r.Unsure == "" && !satisfied:
					complain("%s counts as satisfied, and no order exists", name)
				}
			}
		}
		switch {
		case len(strict.Findings) > 0:
			wrong++
		case strict.Undecided == "":
			right++
		default:
			undecided++
		}
	}
	t.Logf("%d wrong, %d right, %d undecided", wrong, right, undecided)
	if wrong < *histories/10 || right < *histories/50 {
		t.Errorf("only %d of %d histories were wrong and %d right", wrong, *histories, right)
	}
}

func text(h *observed.History) string {
	var b strings.Builder
	for i := range h.Transactions {
		x := &h.Transactions[i]
		fmt.Fprintf(&b, "  T%d session %d %s %d..%d:", i, x.Session, x.Outcome, x.Begin, x.End)
		for k := range x.Ops {
			fmt.Fprintf(&b, " %s,", opText(&x.Ops[k]))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestSimulated judges histories of a database that executes one transaction at a time: nothing is ever found, and with one stale read something is.
func TestSimulated(t *testing.T) {
	for _, kind := range []observed.Kind{observed.Append, observed.Write} {
		rng := rand.New(rand.NewPCG(uint64(kind), 2))
		stale := 0
		for range 150 {
			h, broken := simulate(rng, kind)
			if r := Check(h, Options{Order: true}); len(r.Findings) > 0 || kind == observed.Append && r.Undecided != "" {
				t.Fatalf("found %q, undecided %q\n%s", classes(r), r.Undecided, text(h))
			}
			if broken() && len(Check(h, Options{Order: true}).Findings) > 0 {
				stale++
			}
		}
		if stale < 100 {
			t.Errorf("kind %d: only %d of 150 stale reads were found", kind, stale)
		}
	}
}

// simulate executes transactions one after the other; some fail, and of some nobody hears. broken makes one read stale.
func simulate(rng *rand.Rand, kind observed.Kind) (h *observed.History, broken func() bool) {
	h = &observed.History{Ordered: true}
	state := map[string][]string{}
	next := 0
	type place struct {
		txn, op int
		old     []string
	}
	var reads []place
	for t := range 60 {
		x := observed.Transaction{ID: uint64(t), Session: uint64(1 + rng.IntN(5)), Outcome: history.OutcomeCommitted, Begin: uint64(2*t + 1), End: uint64(2*t + 2)}
		happens := true
		switch rng.IntN(12) {
		case 0:
			x.Outcome, happens = history.OutcomeAborted, false
		case 1:
			x.Outcome, x.End, happens = history.OutcomeUnknown, 0, rng.IntN(2) == 0
			x.Session = uint64(100 + t)
		}
		own := map[string]bool{}
		for range 1 + rng.IntN(4) {
			op := observed.Op{Key: fmt.Sprint(rng.IntN(4))}
			now := state[op.Key]
			if rng.IntN(2) == 0 {
				next++
				op.Kind, op.Value = kind, fmt.Sprint(next)
				own[op.Key] = true
				if happens && kind == observed.Append {
					state[op.Key] = append(slices.Clip(now), op.Value)
				} else if happens {
					state[op.Key] = []string{op.Value}
				}
			} else if x.Outcome != history.OutcomeCommitted {
				op.Unknown = true
			} else {
				op.Initial = len(now) == 0
				if kind == observed.Append {
					op.IsList, op.List = true, now
				} else if !op.Initial {
					op.Value = now[0]
				}
				if len(now) > 1 && !own[op.Key] {
					reads = append(reads, place{t, len(x.Ops), now[:len(now)-1]})
				} else if kind == observed.Write && !op.Initial && !own[op.Key] {
					reads = append(reads, place{t, len(x.Ops), nil})
				}
			}
			x.Ops = append(x.Ops, op)
		}
		h.Transactions = append(h.Transactions, x)
	}
	return h, func() bool {
		if len(reads) == 0 {
			return false
		}
		r := reads[rng.IntN(len(reads))]
		op := &h.Transactions[r.txn].Ops[r.op]
		op.List, op.Initial, op.Value = r.old, len(r.old) == 0, ""
		return true
	}
}

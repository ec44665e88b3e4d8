package isolation

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/oracle/level"
)

// engineRuns is how many random histories both engines judge: few in `make test`, many in `make soak`.
var engineRuns = flag.Uint64("engine-runs", 400, "random histories for both engines")

// cycleLevels are the levels that forbid every cycle of some edges: the incremental engine finds one exactly if they are broken.
var cycleLevels = []string{"PL-1", "PL-2", "PL-3", "strong session serializable", "strict serializable"}

// TestEngines: the incremental engine (this package) and the batch one (package level: arrays, strongly connected components, all dependencies
// kept) agree which levels a history breaks.
func TestEngines(t *testing.T) {
	broken, clean := map[string]int{}, 0
	for seed := range *engineRuns {
		rng := rand.New(rand.NewPCG(seed, 15))
		d := newToy(rng.IntN, 3+rng.IntN(4), 2+rng.IntN(4))
		for range 20 + rng.IntN(100) {
			d.step()
			if rng.IntN(40) == 0 { // a transaction whose reads may be as old as the history: what only session order or real time forbids
				if s := d.serve[rng.IntN(len(d.serve))]; s != nil {
					clear(s.floor)
				}
			}
		}
		fs, c := run(Options{Repeats: true, Strict: true, Levels: true, Keep: -1}, d.out)
		vs := Levels(c).Judge()
		for _, name := range cycleLevels {
			l, err := level.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for i := range fs {
				found = found || l.Excludes(fs[i].Class)
			}
			if state := stateOf(vs, name); found != (state == level.Broken) {
				t.Fatalf("seed %d: the batch engine says that %s is %s, the incremental one found\n%s\n%s", seed, name, state, briefs(fs), written(d.out))
			}
			if found {
				broken[name]++
			}
		}
		if len(fs) == 0 {
			clean++
		}
	}
	// Rows are locked, so there are no dirty writes.
	for _, name := range cycleLevels[1:] {
		if broken[name] == 0 {
			t.Errorf("no history breaks %s: the test has lost its force", name)
		}
	}
	if clean == 0 {
		t.Error("no history is clean")
	}
}

func stateOf(vs []level.Verdict, name string) level.State {
	return vs[slices.IndexFunc(vs, func(v level.Verdict) bool { return v.Level == name })].State
}

// TestLevelsInWindow: the levels are the same whether the incremental engine forgets or not, if it is complete.
func TestLevelsInWindow(t *testing.T) {
	forgot := 0
	for seed := range 4 + *engineRuns/200 {
		rng := rand.New(rand.NewPCG(seed, 16))
		d := newToy(rng.IntN, 4, 40)
		for range 2500 {
			d.step()
		}
		_, all := run(Options{Strict: true, Levels: true, Keep: -1}, d.out)
		_, some := run(Options{Strict: true, Levels: true, Keep: 20}, d.out)
		if !Complete(some) {
			continue
		}
		if some.Kept() < all.Kept() {
			forgot++
		}
		vs := Levels(some).Judge()
		for _, v := range Levels(all).Judge() {
			if now := stateOf(vs, v.Level); now != v.State {
				t.Errorf("seed %d: %s is %s where all is kept and %s in a window", seed, v.Level, v.State, now)
			}
		}
	}
	if forgot == 0 {
		t.Error("nothing was forgotten: the test has lost its force")
	}
}

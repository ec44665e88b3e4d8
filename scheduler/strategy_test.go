package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wirecheck/scheduler/toy"
)

// walk plays a scenario to its end, with the events that choose picks, and gives the schedule and who was let go.
func walk(sc *scenario, choose func(n int) int) (schedule string, picks []Session, err error) {
	w := newWorld(sc)
	for range 100_000 {
		events := w.events()
		if len(events) == 0 {
			ch := &checker{sc: *sc}
			return scheduleText(w.d.Schedule()), picks, ch.finished(w)
		}
		e := events[choose(len(events))]
		before := w.picks
		e.do(w, e.s)
		if w.picks > before {
			picks = append(picks, w.picked)
		}
	}
	return "", nil, fmt.Errorf("no end after 100000 events of\n%v", sc)
}

// TestStrategiesWhateverTheOrder plays random scenarios with each strategy, in a plain and in a random order of events: the
// schedules are the same. A run is the same again when the sessions that were let go are given to Recorded.
func TestStrategiesWhateverTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.IntRange(0, 1<<20).Draw(t, "seed")
		sessions := rapid.IntRange(1, 4).Draw(t, "sessions")
		steps := rapid.IntRange(1, 4).Draw(t, "steps")
		rng := rand.New(rand.NewPCG(uint64(seed), 6))
		sc := scenario{sessions: drawScenario(rng, sessions, steps), policy: toy.Policy(seed % 2), decider: newShelled}
		var order []string
		for s := range sessions {
			for n := range steps {
				order = append(order, fmt.Sprintf("%d.%d", s+1, n+1))
			}
		}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		sc.strategy = rapid.SampledFrom([]func() Strategy{
			func() Strategy { return Listed(order) },
			func() Strategy { return Random(seeded(seed)) },
			func() Strategy { return PCT(3, len(order), seeded(seed)) },
		}).Draw(t, "strategy")
		want, picks, err := walk(&sc, func(int) int { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := walk(&sc, seeded(seed+1))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("another order of events (-plain +random):\n%s\n%v", diff, sc)
		}
		sc.strategy = func() Strategy { return Recorded(picks) }
		if got, _, err = walk(&sc, seeded(seed+2)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("recorded (-first +recorded):\n%s\n%v", diff, sc)
		}
	})
}

// free lists the sessions as the strategy lets them go, each with that many steps and none ever waiting.
func free(strategy Strategy, sessions, steps int) string {
	var order []byte
	left := slices.Repeat([]int{steps}, sessions)
	for {
		var candidates []Step
		for s, n := range left {
			if n > 0 {
				candidates = append(candidates, Step{Session: Session(s), N: steps - n})
			}
		}
		if len(candidates) == 0 {
			return string(order)
		}
		s := candidates[strategy.Pick(candidates)].Session
		left[s]--
		order = append(order, 'a'+byte(s))
	}
}

// TestPCTMeetsDeepSchedules counts schedules that need as many ordering constraints as PCT's depth. Each is met as often as
// it takes to guess the order of three sessions (1 in 6) and the decisions, of six, at which the others fall.
func TestPCTMeetsDeepSchedules(t *testing.T) {
	const runs = 20_000
	for _, c := range []struct {
		depth    int
		schedule string
		never    bool // with a smaller depth
	}{
		{depth: 1, schedule: "ccaabb"},
		{depth: 2, schedule: "abbcca", never: true},
		{depth: 3, schedule: "abccab", never: true}, // the session that falls first comes back first
		{depth: 3, schedule: "abccba", never: true}, // the session that falls first comes back last
	} {
		count := func(depth int) (n int) {
			for seed := range runs {
				if free(PCT(depth, 6, seeded(seed)), 3, 2) == c.schedule {
					n++
				}
			}
			return n
		}
		want := float64(runs) / 6
		for range c.depth - 1 {
			want /= 6
		}
		if n := float64(count(c.depth)); n < want*0.7 {
			t.Errorf("depth %d: %s was met %v times in %d, want about %.0f or more", c.depth, c.schedule, n, runs, want)
		}
		if n := count(c.depth - 1); c.never && n > 0 {
			t.Errorf("depth %d: %s was met %d times, want never", c.depth-1, c.schedule, n)
		}
	}
}

func TestRandomIsEven(t *testing.T) {
	const runs = 18_000
	met := map[string]int{}
	for seed := range runs {
		met[free(Random(seeded(seed)), 3, 1)]++
	}
	for schedule, n := range met {
		if n < runs/6*9/10 || n > runs/6*11/10 {
			t.Errorf("%s was met %d times in %d, want about %d", schedule, n, runs, runs/6)
		}
	}
	if len(met) != 6 {
		t.Errorf("met %v, want all 6", met)
	}
}

func TestSameSeedSameSchedule(t *testing.T) {
	different := map[string]bool{}
	for seed := range 50 {
		for _, make := range []func() Strategy{
			func() Strategy { return Random(seeded(seed)) },
			func() Strategy { return PCT(3, 16, seeded(seed)) },
		} {
			one, two := free(make(), 4, 4), free(make(), 4, 4)
			if one != two {
				t.Errorf("seed %d gave %s and %s", seed, one, two)
			}
			different[one] = true
		}
	}
	if len(different) < 60 {
		t.Errorf("100 strategies gave only %d schedules", len(different))
	}
}

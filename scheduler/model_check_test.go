package scheduler

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/scheduler/toy"
)

// hashed picks by a hash of the seed and the candidates. It has no memory, so that the checker can copy a core that uses it.
type hashed uint64

func (h hashed) Pick(candidates []Step) int {
	sum := fnv.New64a()
	fmt.Fprint(sum, uint64(h), candidates)
	return int(sum.Sum64() % uint64(len(candidates)))
}

func parseSessions(t testing.TB, text string) [][]toy.Step {
	t.Helper()
	var sessions [][]toy.Step
	for part := range strings.SplitSeq(text, "|") {
		steps, err := toy.Parse(part)
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, steps)
	}
	return sessions
}

// chosenScenarios are those that mutants of Core have to fail on, and others worth a look.
var chosenScenarios = []string{
	"lock a; commit | lock a; commit",
	"lock a; lock b; commit | lock b; lock a; commit",
	"lock a; commit | auto a | auto a | auto a b",
	"lock a; lock b; commit | auto b a | lock a; lock b; commit",
	"lock a; swap a b; commit | lock b; commit | auto a; auto c | lock c; auto c",
	"lock a; lock b; lock c; commit | lock b; lock c; lock a; commit | lock c; lock a; lock b; commit",
	"lock b; commit | lock c b d; commit | auto d c", // the victim waited for who commits, and closed the circle itself
	"lock a; lock b; commit | lock b; lock c; commit | lock c; lock d; commit | lock d; lock a; commit",
	"lock a; lock b; lock c; commit | lock d; swap d a b; commit | auto a b c d; lock a; auto b; commit | lock c; lock a; commit; auto b",
}

func TestModelChosen(t *testing.T) {
	states, scenarios := 0, 0
	for _, text := range chosenScenarios {
		for _, policy := range []toy.Policy{toy.Closer, toy.First} {
			for seed := range 20 {
				ch, err := check(scenario{sessions: parseSessions(t, text), policy: policy, strategy: func() Strategy { return hashed(seed) }, decider: newShelled}, 0)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				states, scenarios = states+len(ch.worlds), scenarios+1
			}
		}
	}
	t.Logf("%d scenarios, %d states, all orders of events", scenarios, states)
}

// alphabet is what the steps of the small exhaustive scenarios are made of.
var alphabet = []string{"lock a", "lock b", "auto a", "auto a b", "auto b a", "commit", "swap a b"}

// TestModelSmall goes through all scenarios of two sessions with two steps each.
func TestModelSmall(t *testing.T) {
	var pairs []string
	for _, first := range alphabet {
		for _, second := range alphabet {
			pairs = append(pairs, first+"; "+second)
		}
	}
	states, scenarios := 0, 0
	for _, one := range pairs {
		for _, two := range pairs {
			for _, policy := range []toy.Policy{toy.Closer, toy.First} {
				for seed := range 4 {
					ch, err := check(scenario{sessions: parseSessions(t, one+" | "+two), policy: policy, strategy: func() Strategy { return hashed(seed) }, decider: newShelled}, 0)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					states, scenarios = states+len(ch.worlds), scenarios+1
				}
			}
		}
	}
	t.Logf("%d scenarios, %d states, all orders of events", scenarios, states)
}

// drawScenario makes sessions of up to that many steps.
func drawScenario(rng *rand.Rand, sessions, steps int) [][]toy.Step {
	verbs := []toy.Verb{toy.Lock, toy.Lock, toy.Lock, toy.Auto, toy.Auto, toy.Swap, toy.Commit}
	drawn := make([][]toy.Step, sessions)
	for i := range drawn {
		for range steps {
			st := toy.Step{Verb: verbs[rng.IntN(len(verbs))]}
			if st.Verb != toy.Commit {
				st.Rows = rng.Perm(4)[:1+rng.IntN(3)]
			}
			drawn[i] = append(drawn[i], st)
		}
	}
	return drawn
}

// TestModelDrawn goes through all orders of events of random scenarios of four sessions with four steps each.
func TestModelDrawn(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 15
	}
	states, decisions := 0, 0
	for seed := range runs {
		rng := rand.New(rand.NewPCG(uint64(seed), 4))
		sc := scenario{
			sessions: drawScenario(rng, 4, 4), policy: toy.Policy(seed % 2),
			strategy: func() Strategy { return hashed(seed) }, decider: newShelled,
		}
		ch, err := check(sc, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		states, decisions = states+len(ch.worlds), decisions+len(ch.schedules)-1
	}
	t.Logf("%d scenarios, %d decisions, %d states, all orders of events", runs, decisions, states)
}

// TestModelDisturbed lets one untimely thing happen at any time. The schedule depends on when; but nobody must hang, or go twice.
func TestModelDisturbed(t *testing.T) {
	states, cut := 0, 0
	for seed := range 30 {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		ch, err := check(scenario{
			sessions: drawScenario(rng, 3, 3), policy: toy.Policy(seed % 2), disturbed: true,
			strategy: func() Strategy { return hashed(seed) }, decider: newShelled,
		}, 20_000)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		states += len(ch.worlds)
		if ch.cut {
			cut++
		}
	}
	t.Logf("%d states; %d of 30 scenarios were cut off", states, cut)
}

// TestModelCatchesMutants sees to it that the checker can fail.
func TestModelCatchesMutants(t *testing.T) {
	for _, mutant := range []struct {
		name string
		new  func(shelled) decider
		want string // of the failure
	}{
		{"believes a wait after a finish", func(d shelled) decider { return &trusting{gullible{shelled: d}} }, "differs"},
		{"tells what happened as it arrives", func(d shelled) decider { return hasty{d} }, "differs"},
		{"believes one wait at a time", func(d shelled) decider { return &gullible{shelled: d} }, "differs"},
		{"goes on while a session thinks", func(d shelled) decider { return impatient{d} }, "differs"},
		{"does not ask again", func(d shelled) decider { return forgetful{d} }, "the end is out of reach"},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			for seed := range 40 {
				for _, text := range chosenScenarios {
					_, err := check(scenario{
						sessions: parseSessions(t, text), strategy: func() Strategy { return hashed(seed) },
						decider: func(n int, strategy Strategy) decider { return mutant.new(newShelled(n, strategy).(shelled)) },
					}, 0)
					if err == nil {
						continue
					}
					if !strings.Contains(err.Error(), mutant.want) {
						t.Errorf("failed otherwise than with %q: %v", mutant.want, err)
					}
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("the mutant was not caught")
		})
	}
}

// hasty puts a finished step into the schedule at once.
type hasty struct{ shelled }

func (d hasty) Finish(s Session, victim bool) {
	d.shelled.Finish(s, victim)
	m := &d.sessions[s]
	kind := EventRun
	if m.told {
		kind = EventResume
	}
	d.finish(kind, m)
}
func (d hasty) clone() decider { return hasty{d.shelled.clone().(shelled)} }

// gullible adds up waits that were seen at different moments.
type gullible struct {
	shelled
	believed map[Session][]Session
}

func (d *gullible) look(asked []Session, waits map[Session][]Session) {
	all := map[Session][]Session{}
	for _, s := range asked {
		if whom, ok := d.believed[s]; ok {
			all[s] = whom
		}
		if whom, ok := waits[s]; ok {
			all[s] = whom
		}
	}
	d.believed = all
	d.shelled.look(asked, all)
}

func (d *gullible) Finish(s Session, victim bool) {
	d.believed = nil
	d.shelled.Finish(s, victim)
}

func (d *gullible) Leave(s Session) {
	d.believed = nil
	d.shelled.Leave(s)
}

func (d *gullible) clone() decider {
	return &gullible{d.shelled.clone().(shelled), d.believed}
}

func (d *gullible) key() string { return d.shelled.key() + fmt.Sprint(d.believed) }

// trusting goes on believing a wait when another step has finished.
type trusting struct{ gullible }

func (d *trusting) Finish(s Session, victim bool) {
	d.believed = maps.Clone(d.believed)
	delete(d.believed, s)
	d.shelled.Finish(s, victim)
}

func (d *trusting) Next() Decision {
	decision := d.shelled.Next()
	if decision.Verdict == Unsettled && len(decision.Ask) > 0 {
		d.look(decision.Ask, nil)
		decision = d.shelled.Next()
	}
	return decision
}

func (d *trusting) clone() decider { return &trusting{*d.gullible.clone().(*gullible)} }

// impatient does not await sessions that think, once somebody has offered a step.
type impatient struct{ shelled }

func (d impatient) Next() Decision {
	decision := d.shelled.Next()
	anybody := slices.ContainsFunc(d.sessions, func(m member) bool { return m.state == offered })
	if decision.Verdict != Unsettled || len(decision.Ask) > 0 || !anybody {
		return decision
	}
	for _, s := range decision.Think {
		d.Idle(s)
	}
	return d.shelled.Next()
}
func (d impatient) clone() decider { return impatient{d.shelled.clone().(shelled)} }

// forgetful misses what a look says when somebody waits.
type forgetful struct{ shelled }

func (d forgetful) look([]Session, map[Session][]Session) {}
func (d forgetful) clone() decider                        { return forgetful{d.shelled.clone().(shelled)} }

package shell

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"wirecheck/scheduler"
	"wirecheck/scheduler/toy"
)

func scheduleText(schedule []scheduler.Event) string {
	var b strings.Builder
	for _, e := range schedule {
		fmt.Fprintf(&b, "%v %d %s for %v\n", e.Kind, e.Step.Session, e.Step.Name, e.For)
	}
	return b.String()
}

// crowd is four sessions that wait for one another a lot.
func crowd(t testing.TB) [][]toy.Step {
	return parseSessions(t,
		"lock a; lock b; lock c; commit",
		"lock d; swap d a b; commit; auto a b",
		"auto a b c d; lock a; lock d; commit",
		"lock c; lock a; commit; auto b",
	)
}

// random gives a source of random numbers for many goroutines.
func random(seed int) func(n int) int {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
}

// repeated plays the crowd with the same strategy again and again and compares the schedules. It gives the number of deadlocks.
func repeated(t *testing.T, runs int, policy toy.Policy, strategy func() scheduler.Strategy, pause func(run int) func()) (deadlocks int) {
	t.Helper()
	want := ""
	for run := range runs {
		sv := newServer(4, policy, pause(run))
		sh := New(strategy(), sv.look, Limits{})
		if err := sv.play(t.Context(), sh, crowd(t)); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		if marks := sh.Marks(); len(marks) > 0 {
			t.Fatalf("run %d: %q", run, marks)
		}
		got := scheduleText(sh.Schedule())
		if run == 0 {
			want = got
		}
		if got != want {
			t.Fatalf("run %d differs. Got:\n%s\nwant:\n%s", run, got, want)
		}
		deadlocks += sv.victims
	}
	return deadlocks
}

// TestSameSeedSameTrace lets every message and every small step of the server take a random time.
func TestSameSeedSameTrace(t *testing.T) {
	deadlocks, different := 0, map[int]bool{}
	for seed := range 8 {
		strategy := func() scheduler.Strategy { return scheduler.Random(seeded(seed)) }
		if seed%2 == 1 {
			strategy = func() scheduler.Strategy { return scheduler.PCT(3, 16, seeded(seed)) }
		}
		synctest.Test(t, func(t *testing.T) {
			n := repeated(t, 200, toy.Policy(seed/2%2), strategy, func(run int) func() {
				intn := random(run)
				limit := 1 + intn(1000)
				return func() { time.Sleep(time.Duration(1+intn(limit)) * time.Microsecond) }
			})
			deadlocks += n
			different[n] = true
		})
	}
	if deadlocks == 0 || len(different) < 2 {
		t.Errorf("%d deadlocks: the crowd is too tame", deadlocks)
	}
	t.Logf("%d deadlocks in 1600 runs", deadlocks)
}

// TestSameSeedSameTraceForReal is the same on the real clock, with the processors' own disorder.
func TestSameSeedSameTraceForReal(t *testing.T) {
	for seed := range 2 {
		strategy := func() scheduler.Strategy { return scheduler.Random(seeded(seed)) }
		n := repeated(t, 200, toy.Policy(seed), strategy, func(run int) func() {
			intn := random(run)
			return func() {
				for range intn(4) {
					runtime.Gosched()
				}
			}
		})
		t.Logf("seed %d: %d deadlocks in 200 runs", seed, n)
	}
}

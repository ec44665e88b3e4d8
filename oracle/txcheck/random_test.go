package txcheck_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"wirecheck/lab/generate"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
)

// casesVariable says how many random cases to execute on each engine at each level, seedVariable from which seed on, and
// levelVariable at which level only.
const (
	casesVariable = "WIRECHECK_TXCHECK_CASES"
	seedVariable  = "WIRECHECK_TXCHECK_SEED"
	levelVariable = "WIRECHECK_TXCHECK_LEVEL"
)

func number(t testing.TB, variable string, or int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return or
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// TestRandom executes random cases without any fault: the oracle must find nothing but what is permitted.
func TestRandom(t *testing.T) {
	t.Parallel()
	count, seed := number(t, casesVariable, 6), uint64(number(t, seedVariable, 1))
	for _, name := range engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			dialect := generate.Dialect(p.engine.Name)
			for _, level := range p.engine.Levels {
				if only := os.Getenv(levelVariable); only != "" && only != level.History {
					continue
				}
				b := p.bench(t, level, seed)
				unknown, permitted, notes := map[string]int{}, 0, map[string]int{}
				var spent time.Duration
				var cases []*scenario.Spec
				for i := range count {
					if i%10 == 0 { // ten cases have the same database
						g, err := generate.New(dialect, generate.DefaultLimits(), rand.New(rand.NewPCG(seed, uint64(i))).IntN)
						if err != nil {
							t.Fatal(err)
						}
						cases = nil
						for db := g.Database(); len(cases) < 10; {
							cases = append(cases, g.CaseOn(db).Spec)
						}
					}
					spec := cases[i%10]
					took, v := b.timed(t, spec, spec.Permutations[0])
					spent += took
					if v.Unknown != "" {
						unknown[v.Unknown]++
					}
					for _, n := range v.Notes {
						_, why, _ := strings.Cut(n, ": ")
						notes[why]++
					}
					for _, f := range v.Findings {
						if f.Kind == oracle.KindPermitted {
							permitted++
							continue
						}
						printed, err := spec.Print()
						if err != nil {
							t.Fatal(err)
						}
						t.Errorf("seed %d case %d at %s on %s:\n%s\n%s", seed, i, level.History, name, text(v), printed)
						break
					}
				}
				left := 0
				for why, n := range unknown {
					left += n
					t.Logf("  %4d unknown: %s", n, why)
				}
				for why, n := range notes {
					t.Logf("  %4d notes: %s", n, why)
				}
				t.Logf("%s at %s: %d cases, %d permitted, %d unknown, %.1f cases/s", name, level.History, count, permitted, left, float64(count)/spent.Seconds())
			}
		})
	}
}

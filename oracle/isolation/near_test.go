package isolation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"wirecheck/oracle/cycle"
)

// TestNear: what is reported does not depend on whether the shortest cycle of all is found before the classes are looked for.
func TestNear(t *testing.T) {
	found := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 17))
		d := newToy(rng.IntN, 2+rng.IntN(4), 2+rng.IntN(12))
		for range 40 + rng.IntN(160) {
			d.step()
		}
		events, opts := garnish(rng, d), randomOptions(rng)
		opts.Keep = -1
		said := map[int]string{}
		for _, near := range []int{0, cycle.Unbounded} {
			c := New(opts)
			c.paths.Limit(near, cycle.DefaultGrant, cycle.DefaultFree)
			for i := range events {
				for _, f := range c.Add(&events[i]) {
					said[near] += fmt.Sprintf("%+v\n", f)
				}
			}
			if found += len(c.order); c.Broken() != "" {
				t.Fatal(c.Broken())
			}
		}
		if said[0] != said[cycle.Unbounded] {
			t.Fatalf("seed %d, %+v: found first\n%s\nnot found first\n%s\n%s", seed, opts.Options(), said[cycle.Unbounded], said[0], written(events))
		}
	}
	if found < 500 {
		t.Errorf("%d findings: the histories prove little", found)
	}
}

package isolation

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestPlaces: places remember what two maps in two generations would, names that differ in their last letters among it.
func TestPlaces(t *testing.T) {
	evicted, moved := 0, 0
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := places{limit: 1 + rng.IntN(200)}
		young, old := map[string]uint64{}, map[string]uint64{}
		put := func(name string, n uint64) {
			if len(young) >= p.limit {
				if len(old) > 0 {
					evicted++
				}
				young, old = map[string]uint64{}, young
			}
			young[name] = n
		}
		for range 2000 {
			name := strconv.Itoa(rng.IntN(4 * p.limit))
			h := start.add("t").add(name)
			if rng.IntN(2) == 0 {
				n := 1 + rng.Uint64N(100)
				p.put(h, n)
				put(name, n)
				continue
			}
			want := young[name]
			if want == 0 {
				if want = old[name]; want != 0 {
					moved++
					put(name, want)
				}
			}
			if got := p.at(h); got != want {
				t.Fatalf("seed %d: %s is at %d, want %d", seed, name, got, want)
			}
		}
	}
	if evicted == 0 || moved == 0 {
		t.Errorf("%d generations were forgotten, %d numbers moved: the test does not test much", evicted, moved)
	}
}

// TestSlots: names that differ in their last letters are not looked for in the same places.
func TestSlots(t *testing.T) {
	var x numbers
	const n = 10_000
	for i := range n {
		x.put(start.add("bank.account").add("7").add(strconv.Itoa(i)), 1)
	}
	steps, mask := 0, len(x.slots)-1
	for i := range x.slots {
		s := &x.slots[i]
		for k := i; s.n != 0 && x.slots[k&mask].n != 0; k++ {
			steps++ // up to the next free one
		}
	}
	if steps > 5*n {
		t.Errorf("%d steps from %d numbers to the next free slot", steps, n)
	}
}

package sieve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"wirecheck/oracle/cycle"
)

// TestDrafts: the edges of each transaction are read as they were drawn, in the order of its accesses, whatever they say and however they lie between
// those of others.
func TestDrafts(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 4))
		number := func() uint32 { return rng.Uint32() >> rng.IntN(32) }
		d, want := drafts{last: make([]uint32, 9)}, make([][]edge, 9)
		for range rng.IntN(40_000) {
			e := edge{other: number(), nth: rng.Uint32N(3), mine: number(), his: number(), mySt: number(), hisS: number(), old: number(), new: number(),
				kind: []cycle.Kinds{cycle.WW, cycle.WR, cycle.RW}[rng.IntN(3)], over: rng.IntN(2) == 0, leaves: rng.IntN(2) == 0}
			by := rng.Uint32N(9)
			if want[by] = append(want[by], e); !d.add(by, &e) {
				t.Fatalf("seed %d: so many do not fit", seed)
			}
		}
		for by := range want {
			slices.SortStableFunc(want[by], func(a, b edge) int { return int(a.nth) - int(b.nth) })
			if got := d.of(uint32(by)); !slices.Equal(got, want[by]) {
				t.Fatalf("seed %d, transaction %d:\n%+v\nwant\n%+v", seed, by, got, want[by])
			}
		}
	}
}

// TestStore: the facts of each row are read as they were added, whatever they say and however they lie between those of other rows.
func TestStore(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		number := func() uint64 { // often none, seldom large
			if rng.IntN(3) == 0 {
				return 0
			}
			return rng.Uint64() >> rng.IntN(64)
		}
		r := newRows(nil)
		want := map[uint32][]fact{}
		for range rng.IntN(4000) {
			f := fact{ver: rng.Uint64N(5), order: number(), asOf: number(), token: rng.Uint64N(6), tick: number(), txn: rng.Uint32() >> rng.IntN(32), flags: flags(rng.IntN(1 << noFlag))}
			if rng.IntN(4) == 0 {
				f.ver = rng.Uint64()
			}
			n := r.add(1+rng.Uint64N(1+seed%20), true, f)
			want[n] = append(want[n], f)
		}
		for n := range r.keyed {
			if got := r.facts(n); !slices.Equal(got, want[uint32(n)]) {
				t.Fatalf("seed %d, row %d:\n%+v\nwant\n%+v", seed, n, got, want[uint32(n)])
			}
		}
	}
}

// TestPileJoin: a list behind another one, whatever their lengths, and more behind both.
func TestPileJoin(t *testing.T) {
	for _, n := range []int{0, 1, pileStep - 1, pileStep, 2*pileStep + 5} {
		for _, m := range []int{0, 1, pileStep, pileStep + 1} {
			var a, b pile[int]
			for i := range n {
				a.add(i)
			}
			for i := range m {
				b.add(n + i)
			}
			a.join(&b)
			a.add(n + m)
			met := make([]bool, n+m+1)
			for i, v := range a.all {
				if i < a.len() && v != nil {
					met[*v] = true
				}
			}
			if a.len() != n+m+1 || slices.Contains(met, false) {
				t.Errorf("%d and %d: %d are there", n, m, a.len())
			}
		}
	}
}

// TestTokenHash: tokens have different hashes and are different names, and those that differ in their last digits alone lie beside each other in an index.
func TestTokenHash(t *testing.T) {
	seen := map[uint64]string{}
	var all names
	var last spot
	for _, prefix := range []string{"", "T", "0", "T0", "T1", "s1-", "123456789012345", "12345678901234567890", "T123456789012345678", "a\x00"} {
		for n := range 300 {
			token := prefix + strconv.Itoa(n)
			if other, had := seen[tokenHash(token)]; had && other != token {
				t.Errorf("%q and %q have one hash", token, other)
			}
			_, had := seen[tokenHash(token)]
			if seen[tokenHash(token)] = token; all.add(nameOf(tokenSeed, token), &last) == had {
				t.Errorf("%q is there: %v", token, !had)
			}
		}
	}
	for n := 16; n < 31; n++ {
		if a, b := tokenHash(fmt.Sprint("T", n)), tokenHash(fmt.Sprint("T", n+1)); b-a != 1<<indexShift {
			t.Errorf("T%d and the next one: %x, %x", n, a, b)
		}
	}
}

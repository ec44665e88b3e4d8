package stream

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSequence: messages that come twice, and in another order within the window, come out once and in order.
func TestSequence(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s, at := newSequence(), time.Unix(1000, 0)
		var flying, got []uint64
		acked := uint64(0) // all up to it are in the stream
		sent, stored := uint64(0), map[uint64]bool{}
		for acked < 100 {
			for sent < 100 && sent < acked+window {
				sent++
				flying = append(flying, sent)
				if rnd.IntN(4) == 0 {
					flying = append(flying, sent)
				}
			}
			i := rnd.IntN(len(flying))
			n := flying[i]
			flying = slices.Delete(flying, i, i+1)
			stored[n] = true
			for stored[acked+1] {
				acked++
			}
			for _, d := range s.put(incoming{run: "a", seq: n, at: at}) {
				if d.hole != "" {
					t.Fatalf("seed %d: %s in front of %d", seed, d.hole, d.seq)
				}
				got = append(got, d.seq)
			}
		}
		if len(got) != 100 || !slices.IsSorted(got) || len(slices.Compact(got)) != 100 {
			t.Fatalf("seed %d: %v", seed, got)
		}
	}
}

// TestSequenceHoles: what is gone is told once, in its place, as soon as it cannot come any more; and a run that is silent is.
func TestSequenceHoles(t *testing.T) {
	at := time.Unix(1000, 0)
	s := newSequence()
	put := func(run string, seq uint64, at time.Time) (got []uint64, holes int) {
		for _, d := range s.put(incoming{run: run, seq: seq, at: at}) {
			if d.hole != "" {
				holes++
			}
			if d.seq > 0 {
				got = append(got, d.seq)
			}
		}
		return got, holes
	}
	if got, holes := put("a", 1000, at); len(got) != 0 || holes != 1 {
		t.Errorf("begun in the middle: %v, %d holes", got, holes)
	}
	for n := uint64(993); n < 999; n++ {
		if got, holes := put("a", n, at); len(got) != 1 || holes != 0 {
			t.Errorf("%d: %v, %d holes", n, got, holes)
		}
	}
	if got, _ := put("a", 992, at); len(got) != 0 {
		t.Errorf("what is taken for gone comes: %v", got)
	}
	if got, holes := put("a", 1006, at); len(got) != 0 || holes != 0 {
		t.Errorf("999 may still come: %v, %d holes", got, holes)
	}
	if got, holes := put("a", 1007, at); !slices.Equal(got, []uint64{1000}) || holes != 1 {
		t.Errorf("999 is gone: %v, %d holes", got, holes)
	}
	if _, holes := put("b", 1, at.Add(silence)); holes != 0 {
		t.Errorf("%d holes: nobody is silent for long yet", holes)
	}
	if got, holes := put("b", 2, at.Add(silence+1)); !slices.Equal(got, []uint64{1006, 1007, 2}) || holes != 2 {
		t.Errorf("a is silent: %v, %d holes", got, holes)
	}
}

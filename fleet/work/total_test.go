package work

import "testing"

// TestFold: a number that is in the sum stays known, in whatever order items are done; a server that was killed may hand it out once more.
func TestFold(t *testing.T) {
	var s total
	for i, n := range []uint64{2, 1, 5, 3} {
		if s.has(n) {
			t.Errorf("%d is known before", n)
		}
		s.fold(n)
		for _, m := range []uint64{2, 1, 5, 3}[:i+1] {
			if !s.has(m) {
				t.Errorf("%d is not known after %d", m, n)
			}
		}
	}
	if s.Through != 3 || len(s.Folded) != 1 || s.has(4) || s.has(6) {
		t.Errorf("%+v", s)
	}
}

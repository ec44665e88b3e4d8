package isolation

import "testing"

// TestUnsure: whatever of the coverage may hide a dependency is a reason not to be sure of a level.
func TestUnsure(t *testing.T) {
	for _, test := range []struct {
		seen Coverage
		want string
	}{
		{Coverage{Exact: 3, Requests: 2}, ""},
		{Coverage{Untold: 1}, "1 transaction whose writes were not told before its session ended"},
		{Coverage{Stale: 2}, "2 reads older than the window"},
		{Coverage{Opaque: 1, Stale: 2}, "1 statement opaque"},
		{Coverage{Contradictions: map[string]int{twoPlaces: 3}}, "1 kind of contradictions in it"},
	} {
		c := New(Options{Levels: true})
		c.coverage = test.seen
		if got := Unsure(c); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.seen, got, test.want)
		}
	}
}

package isolation

import (
	"strings"
	"testing"

	"wirecheck/history"
)

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

// TestAwaited: writes that are still to be told are counted until they are told, or the session ends without them.
func TestAwaited(t *testing.T) {
	const waits = "s1 session mariadb\ns1 t1 begin repeatable read\nt1 stmt\nt1 commit pending\n"
	for _, test := range []struct {
		then            string
		awaited, untold int
	}{{"", 1, 0}, {"t1 late 1 w x 0>1\n", 0, 0}, {"s1 close\n", 0, 1}} {
		events, err := history.ParseText(strings.NewReader(waits + test.then))
		if err != nil {
			t.Fatal(err)
		}
		c := New(Options{})
		for i := range events {
			c.Add(&events[i])
		}
		if v := c.Coverage(); v.Awaited != test.awaited || v.Untold != test.untold {
			t.Errorf("%q: %d awaited, %d untold", test.then, v.Awaited, v.Untold)
		}
	}
}

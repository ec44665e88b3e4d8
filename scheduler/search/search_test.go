package search

import (
	"fmt"
	"slices"
	"testing"

	"wirecheck/scheduler"
)

// play runs sessions of so many steps each, all of which may go at any time, and gives the order.
func play(s scheduler.Strategy, steps ...int) (order []scheduler.Session) {
	done := make([]int, len(steps))
	for {
		var candidates []scheduler.Step
		for i, n := range steps {
			if done[i] < n {
				candidates = append(candidates, scheduler.Step{Session: scheduler.Session(i), N: done[i]})
			}
		}
		if len(candidates) == 0 {
			return order
		}
		c := candidates[s.Pick(candidates)]
		done[c.Session]++
		order = append(order, c.Session)
	}
}

// all gives the runs of a search, one after the other.
func all(yield func(*Run) bool) {
	var a All
	for n := 1; n <= a.Known(); n++ {
		r := a.Run(n)
		if !yield(r) {
			return
		}
		a.Ran(r.Decisions)
	}
}

// TestAllTogether: runs that are under way at the same time are those that come one after the other, in whatever order they end.
func TestAllTogether(t *testing.T) {
	var want, got []string
	for r := range all {
		want = append(want, key(play(r, 2, 2, 1)))
	}
	var a All
	under := map[int]*Run{}
	for n, next := 1, 1; n <= a.Known(); n++ {
		for ; next <= a.Known() && next < n+3; next++ { // three at the same time, of which the last one ends first
			under[next] = a.Run(next)
		}
		for i := next - 1; i >= n; i-- {
			if len(under[i].Decisions) == 0 {
				play(under[i], 2, 2, 1)
			}
		}
		got = append(got, key(under[n].Order()))
		a.Ran(under[n].Decisions)
	}
	if !slices.Equal(got, want) || len(want) != 30 {
		t.Errorf("together %v, one after the other %v", got, want)
	}
}

// TestAll: every schedule comes once, and those that come first have the fewest departures.
func TestAll(t *testing.T) {
	for _, tt := range []struct {
		steps []int
		want  int
	}{{[]int{3}, 1}, {[]int{2, 2}, 6}, {[]int{4, 4}, 70}, {[]int{2, 2, 2}, 90}} {
		seen := map[string]bool{}
		var first []int
		for r := range all {
			order := play(r, tt.steps...)
			if seen[key(order)] {
				t.Fatalf("%v: %v comes twice", tt.steps, order)
			}
			if !slices.Equal(order, r.Order()) {
				t.Fatalf("%v: the run says %v", order, r.Order())
			}
			seen[key(order)] = true
			first = append(first, Switches(order))
		}
		if len(seen) != tt.want || first[0] != len(tt.steps)-1 {
			t.Errorf("%v: %d schedules, the first with %d switches; want %d", tt.steps, len(seen), first[0], tt.want)
		}
	}
}

// TestAllOtherwise: a test that does something else in each run ends the search, too.
func TestAllOtherwise(t *testing.T) {
	n := 0
	for r := range all {
		if n == 1000 {
			break
		}
		play(r, 1+n%3, 2-n%2)
		n++
	}
	if n >= 1000 {
		t.Error("the search does not end")
	}
}

// lost reports whether the second step of a session (its write) comes after the other one's write, and its first (its read) before.
func lost(order []scheduler.Session) bool {
	at := map[scheduler.Session][]int{}
	for i, s := range order {
		at[s] = append(at[s], i)
	}
	a, b := at[0], at[1]
	return a[1] < b[2] && b[1] < a[2]
}

// TestSmallest: of any order that loses an update, a smallest one is left: one switch there, one back.
func TestSmallest(t *testing.T) {
	n := 0
	for r := range all {
		order := play(r, 4, 4)
		if !lost(order) {
			continue
		}
		n++
		small := Smallest(order, func(o []scheduler.Session) ([]scheduler.Session, bool, bool) {
			ran := play(NewRun(scheduler.Recorded(o)), 4, 4)
			return ran, lost(ran), true
		})
		if !lost(small) || Switches(small) != 2 {
			t.Errorf("%v: %v", order, small)
		}
	}
	if n < 10 {
		t.Errorf("%d schedules lose an update", n)
	}
}

// TestSmallestStops: no more is tried than the caller wants, and what does not fail is no result.
func TestSmallestStops(t *testing.T) {
	order := []scheduler.Session{0, 1, 0, 1, 0, 1}
	calls := 0
	got := Smallest(order, func(o []scheduler.Session) ([]scheduler.Session, bool, bool) {
		calls++
		return o, false, calls < 3
	})
	if calls != 3 || fmt.Sprint(got) != fmt.Sprint(order) {
		t.Errorf("%d calls, %v", calls, got)
	}
}

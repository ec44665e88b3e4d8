// Package search looks for the schedule of a test that goes wrong: it says which schedule to run next, and which smaller ones to try where one
// has failed. It is pure, as package scheduler is; its caller runs the schedules.
package search

import (
	"slices"

	"wirecheck/scheduler"
)

// Decision is one decision of a run.
type Decision struct {
	Candidates []scheduler.Session // sorted
	Picked     int                 // index of the one that went
}

// Run is one run of a test: it picks as its strategy does, and remembers the decisions. It implements scheduler.Strategy and belongs to
// one goroutine at a time.
type Run struct {
	strategy  scheduler.Strategy
	Decisions []Decision
}

// NewRun makes a run that picks as a strategy does.
func NewRun(strategy scheduler.Strategy) *Run { return &Run{strategy: strategy} }

// Pick implements scheduler.Strategy.
func (r *Run) Pick(candidates []scheduler.Step) int {
	d := Decision{Picked: r.strategy.Pick(candidates)}
	for _, c := range candidates {
		d.Candidates = append(d.Candidates, c.Session)
	}
	r.Decisions = append(r.Decisions, d)
	return d.Picked
}

// Order is the sessions in the order in which they went.
func (r *Run) Order() []scheduler.Session {
	order := make([]scheduler.Session, len(r.Decisions))
	for i, d := range r.Decisions {
		order[i] = d.Candidates[d.Picked]
	}
	return order
}

// Choices counts the decisions that could have been other ones.
func (r *Run) Choices() (n int) {
	for _, d := range r.Decisions {
		if len(d.Candidates) > 1 {
			n++
		}
	}
	return n
}

// Switches counts how often another session goes than the one before.
func Switches(order []scheduler.Session) (n int) {
	for i := 1; i < len(order); i++ {
		if order[i] != order[i-1] {
			n++
		}
	}
	return n
}

// All goes through all schedules of a test, those with few departures first: a run without one lets each session go on as long as it can.
// Each schedule comes once, if the test does the same in each run (stateless search with a growing bound on departures, as CHESS has it:
// Musuvathi and Qadeer, PLDI 2007).
type All struct {
	queue [][]int // what to pick first, as indexes of candidates; the runs to come
	ran   int     // runs whose decisions are known
}

// Known is how many runs are known, those that have ended included: no others, when all of them have.
func (a *All) Known() int {
	if a.ran == 0 {
		return 1
	}
	return a.ran + len(a.queue)
}

// Run gives a run that is known and has not ended, by its number from 1. Several may be under way.
func (a *All) Run(n int) *Run {
	if a.ran == 0 {
		return NewRun(&guided{})
	}
	return NewRun(&guided{begin: a.queue[n-a.ran-1]})
}

// Ran tells what the runs decided, one after the other in the order of their numbers: the runs that depart once more come behind those that are known.
func (a *All) Ran(decisions []Decision) {
	var given []int // what the run began with
	if a.ran > 0 {
		given, a.queue = a.queue[0], a.queue[1:]
	}
	a.ran++
	picked := make([]int, len(decisions))
	for i, d := range decisions {
		picked[i] = d.Picked
	}
	for i := len(given); i < len(picked); i++ {
		for other := range decisions[i].Candidates {
			if other != picked[i] {
				a.queue = append(a.queue, append(slices.Clone(picked[:i]), other))
			}
		}
	}
}

// guided picks what it is given first; then the session that went last goes on as long as it can, then the lowest.
type guided struct {
	begin []int
	taken int
	last  scheduler.Session
}

// Pick implements scheduler.Strategy.
func (g *guided) Pick(candidates []scheduler.Step) int {
	pick := max(slices.IndexFunc(candidates, func(st scheduler.Step) bool { return g.taken > 0 && st.Session == g.last }), 0)
	if g.taken < len(g.begin) && g.begin[g.taken] < len(candidates) {
		pick = g.begin[g.taken]
	}
	g.taken++
	g.last = candidates[pick].Session
	return pick
}

// Smallest makes an order of sessions as small as it can: it joins runs of steps of one session that others interrupt, as long as try says that
// the smaller order fails, too. try runs an order and gives the order as it then was, which may differ where sessions wait; more is false
// where no more is to be tried. The result is an order that failed, and has as few switches of session as any that was tried.
func Smallest(order []scheduler.Session, try func(order []scheduler.Session) (ran []scheduler.Session, fails, more bool)) []scheduler.Session {
	tried := map[string]bool{key(order): true}
	for {
		smaller, more := step(order, tried, try)
		if smaller == nil || !more {
			if smaller != nil {
				return smaller
			}
			return order
		}
		order = smaller
	}
}

// step tries the orders that have fewer switches, those with the fewest first; nil: none of them fails.
func step(order []scheduler.Session, tried map[string]bool, try func([]scheduler.Session) ([]scheduler.Session, bool, bool)) (smaller []scheduler.Session, more bool) {
	candidates := joined(order)
	slices.SortStableFunc(candidates, func(a, b []scheduler.Session) int { return Switches(a) - Switches(b) })
	for _, c := range candidates {
		if tried[key(c)] || Switches(c) >= Switches(order) {
			continue
		}
		tried[key(c)] = true
		ran, fails, more := try(c)
		tried[key(ran)] = true
		if fails && Switches(ran) < Switches(order) {
			return ran, more
		}
		if !more {
			return nil, false
		}
	}
	return nil, true
}

// joined are the orders in which one block, the steps that a session takes without interruption, is moved to the session's block before it
// or behind it, and those in which from some block on each session goes to its end.
func joined(order []scheduler.Session) (list [][]scheduler.Session) {
	var blocks [][]scheduler.Session
	for i, s := range order {
		if i == 0 || order[i-1] != s {
			blocks = append(blocks, nil)
		}
		blocks[len(blocks)-1] = append(blocks[len(blocks)-1], s)
	}
	for i := range blocks {
		rest := slices.Concat(blocks[i:]...)
		first := slices.Concat(blocks[:i]...)
		var serial []scheduler.Session
		for _, s := range rest {
			if !slices.Contains(serial, s) {
				for _, other := range rest {
					if other == s {
						serial = append(serial, s)
					}
				}
			}
		}
		list = append(list, append(slices.Clone(first), serial...))
		for j := i + 1; j < len(blocks); j++ {
			if blocks[j][0] != blocks[i][0] {
				continue
			}
			between := slices.Concat(blocks[i+1 : j]...)
			behind := slices.Concat(blocks[j+1:]...)
			list = append(list,
				slices.Concat(first, blocks[i], blocks[j], between, behind),
				slices.Concat(first, between, blocks[i], blocks[j], behind))
			break
		}
	}
	return list
}

// key tells orders apart.
func key(order []scheduler.Session) string {
	var b []byte
	for _, s := range order {
		b = append(b, byte(s), byte(s>>8))
	}
	return string(b)
}

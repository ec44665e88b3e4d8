package scheduler

import (
	"math"
	"slices"
)

// listed follows an order of steps by name.
type listed struct {
	place map[string]int
}

// Listed picks the candidate that comes first in the order. A step whose turn it is but whose session waits is passed
// over and comes as soon as it can (WriteCheck 5.3.1, algorithm 1). Steps that the order does not name come last, by
// session.
func Listed(order []string) Strategy {
	l := &listed{place: make(map[string]int, len(order))}
	for i, name := range order {
		if _, twice := l.place[name]; !twice {
			l.place[name] = i
		}
	}
	return l
}

func (l *listed) Pick(candidates []Step) int {
	best, at := 0, math.MaxInt
	for i, st := range candidates {
		if p, ok := l.place[st.Name]; ok && p < at {
			best, at = i, p
		}
	}
	return best
}

// recorded follows an order of sessions.
type recorded struct {
	order []Session
}

// Recorded lets sessions go in the given order, one entry for one step. An entry whose session waits is kept for later and
// the next one is taken; entries of sessions that are gone are kept too, and do no harm. After the last entry, the
// session with the lowest number goes.
func Recorded(order []Session) Strategy { return &recorded{order: slices.Clone(order)} }

func (r *recorded) Pick(candidates []Step) int {
	for i, s := range r.order {
		for j, st := range candidates {
			if st.Session == s {
				r.order = slices.Delete(r.order, i, i+1)
				return j
			}
		}
	}
	return 0
}

// random picks with equal chances.
type random struct {
	intn func(n int) int
}

// Random picks each candidate with the same chance. intn gives a number from 0 to n-1; the same numbers give the same
// schedule.
func Random(intn func(n int) int) Strategy { return random{intn} }

func (r random) Pick(candidates []Step) int { return r.intn(len(candidates)) }

// pct is probabilistic concurrency testing.
type pct struct {
	intn     func(n int) int
	priority []int         // by session; the highest goes
	changes  map[int][]int // by decision: the priorities, below all first ones, that sessions fall to
	taken    int
}

// PCT is probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010, section 3): each session gets a random priority,
// the highest goes, and at depth-1 random ones among the first steps decisions the session that would go falls below all
// that have not fallen yet. Which of the fallen is the lowest is as random as the decisions: the paper's bound needs that.
// A bug that needs depth ordering constraints among n sessions and k steps is met with a chance of at least
// 1/(n*k^(depth-1)).
func PCT(depth, steps int, intn func(n int) int) Strategy {
	p := &pct{intn: intn, changes: map[int][]int{}}
	for i := range depth - 1 {
		at := intn(max(steps, 1))
		p.changes[at] = append(p.changes[at], i-depth)
	}
	return p
}

func (p *pct) Pick(candidates []Step) int {
	// A session gets its place among the others when it is first seen.
	for _, st := range candidates {
		for int(st.Session) >= len(p.priority) {
			p.join()
		}
	}
	best := p.best(candidates)
	for _, low := range p.changes[p.taken] {
		p.priority[candidates[best].Session] = low
		best = p.best(candidates)
	}
	p.taken++
	return best
}

// join puts one more session anywhere among those that have not fallen. Their priorities are 0, 1, 2...
func (p *pct) join() {
	at := p.intn(len(p.priority) + 1)
	for i := range p.priority {
		if p.priority[i] >= at {
			p.priority[i]++
		}
	}
	p.priority = append(p.priority, at)
}

func (p *pct) best(candidates []Step) int {
	best := 0
	for i, st := range candidates {
		if p.priority[st.Session] > p.priority[candidates[best].Session] {
			best = i
		}
	}
	return best
}

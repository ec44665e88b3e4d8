package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/fleet"
	"wirecheck/history"
	"wirecheck/oracle/isolation"
)

// TestJoinLate: what ran one after the other has no anomaly, in whatever order the proxies' events come, and whatever is lost of them. Behind a gap the
// sessions are announced again.
func TestJoinLate(t *testing.T) {
	gaps, found := 0, 0
	for seed := range uint64(600) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		s := newStore([]string{"postgres", "mariadb"}[seed%2], rnd, 1+rnd.IntN(4))
		var open []*session
		for range 60 {
			if len(open) < 6 {
				open = append(open, s.connect(s.proxies[rnd.IntN(len(s.proxies))]))
			}
			c := open[rnd.IntN(len(open))]
			c.transaction(rnd)
		}
		n, c := s.arrives(rnd, seed%3 > 0)
		gaps += n
		found += c.Coverage().Committed
		if list := c.Summary(); len(list) > 0 || c.Broken() != "" {
			t.Fatalf("seed %d: %v %s", seed, list, c.Broken())
		}
	}
	if gaps < 100 || found < 1000 {
		t.Errorf("%d gaps, %d transactions: the test shows little", gaps, found)
	}
}

// arrives judges the proxies' events as they come over a network, with or without losses.
func (s *store) arrives(rnd *rand.Rand, losses bool) (gaps int, c *isolation.Checker) {
	j := fleet.NewJoin()
	c = isolation.New(isolation.Options{Strict: true, Recorder: j.Recorder, Origin: j.Origin, Keep: -1})
	members, at := make([]*fleet.Member, len(s.proxies)), make([]int, len(s.proxies))
	for i := range members {
		members[i] = j.Member(fmt.Sprint("p", i))
	}
	take := func(m *fleet.Member, e history.Event) {
		e.Accesses = slices.Clone(e.Accesses)
		own := e.Txn
		if !m.Take(&e) {
			return
		}
		if name, n := j.Origin(e.Txn); own > 0 && (name != fmt.Sprint("p", slices.Index(members, m)) || n != own) {
			panic(fmt.Sprintf("transaction %d is said to be number %d of %q", own, n, name))
		}
		c.Add(&e)
	}
	for left := len(members); left > 0; {
		i := rnd.IntN(len(members))
		p, m := s.proxies[i], members[i]
		if at[i] == len(p.events) {
			left = 0
			for k := range members {
				left += len(s.proxies[k].events) - at[k]
			}
			continue
		}
		if losses && rnd.IntN(20) == 0 {
			gaps++
			for _, e := range m.Lost("a gap") {
				c.Add(&e)
			}
			at[i] = min(len(p.events), at[i]+1+rnd.IntN(10))
			for _, e := range p.events[:at[i]] {
				if e.Kind == history.EventSession {
					take(m, e)
				}
			}
			continue
		}
		for range 1 + rnd.IntN(8) { // a batch
			if at[i] < len(p.events) {
				take(m, p.events[at[i]])
				at[i]++
			}
		}
	}
	return gaps, c
}

package inferred

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/oracle"
	"wirecheck/oracle/level"
)

// TestForced compares the orders that a level forces with a search over all orders: if they have a cycle, no order satisfies the level. Where what a reader
// sees does not depend on the order (Biswas and Enea 2019, theorem 2), one does if they have none.
func TestForced(t *testing.T) {
	complete := map[string]bool{"read committed with monotonic reads": true, "monotonic atomic view": true, "read atomic": true, "causal": true}
	broken, satisfied := map[string]int{}, map[string]int{}
	for seed := range uint64(*histories / 2) {
		rng := rand.New(rand.NewPCG(seed, 10))
		h := registers(rng)
		inOrder(rng, h)
		c := &checker{h: h, seen: map[string]int{}}
		c.index()
		c.promote()
		c.resolveReads()
		for k := range c.keys {
			c.registerKey(k)
		}
		o := newOrders(c, c.edges)
		if len(c.loose) == 0 || !o.choices() {
			continue
		}
		known := o.g.Mark()
		facts := slices.DeleteFunc(Check(h, Options{}).Findings, func(f oracle.Finding) bool { return f.Class == NotSerializable || !level.IsFact(f.Class) })
		for name, r := range rules {
			l, err := level.Parse(name)
			if err != nil {
				t.Fatal(err)
			}
			if o.g.Decide(l).State != level.Satisfied || slices.ContainsFunc(facts, func(f oracle.Finding) bool { return l.Excludes(f.Class) }) {
				continue
			}
			_, order, circle := findForced(c, r, append(inOrderOf(c), c.reread...))
			found, decided := o.search(l)
			if order == nil && circle == nil || !decided {
				t.Fatalf("seed %d, %s: not decided", seed, name)
			}
			switch {
			case circle != nil && found:
				t.Fatalf("seed %d, %s: the forced orders have a cycle, and there is an order\n%s", seed, name, text(h))
			case circle == nil && !found && complete[name]:
				t.Fatalf("seed %d, %s: the forced orders have no cycle, and there is no order\n%s", seed, name, text(h))
			case circle != nil:
				broken[name]++
				continue
			}
			o.in(order)
			is := o.g.Decide(l).State == level.Satisfied
			if o.g.Cut(known); is && !found {
				t.Fatalf("seed %d, %s: an order that the search does not find\n%s", seed, name, text(h))
			}
			if complete[name] && !is {
				t.Fatalf("seed %d, %s: the order does not satisfy it\n%s", seed, name, text(h))
			}
			if is {
				satisfied[name]++
			}
		}
	}
	for name := range rules {
		t.Logf("%s: %d broken, %d satisfied", name, broken[name], satisfied[name])
		if broken[name] == 0 || satisfied[name] == 0 {
			t.Errorf("%s: no history is broken, or none satisfied", name)
		}
	}
}

// TestForcedAtAnySize judges histories of registers that are too large to try all orders. Nothing shows the order of some versions; a level forces it, or not.
func TestForcedAtAnySize(t *testing.T) {
	for _, tt := range []struct {
		name, text, found, broken string // as Check and level.Weakest say
	}{
		{"writes that cross", "w x 1, w y 1\nw x 2, w y 2\nr x = 1, r y = 2", "PL-3-cycle-exists", "read atomic; PL-2.99"},
		{"writes that cross, and a stale read", "1 w x 1, w y 1\n2 w x 2, w y 2\n3 r x = 1, r y = 2\n4 r z, w z 1\n4 r z", "G-single-process PL-3-cycle-exists", "read atomic; PL-2.99"},
		{"a stale read", "1 w x 1, w y 1\n2 w x 2, w y 2\n3 r x = 2, r y = 2\n4 r z, w z 1\n4 r z", "G-single-process", "causal"},
		{"writes that do not cross", "w x 1, w y 1\nw x 2, w y 2\nr x = 2, r y = 2", "", ""},
		{"an older version behind what follows a newer one", "1 w x 1\n1 w x 2\n2 r x = 2, w z 1\n3 r z = 1, r x = 1", "PL-SS-cycle-exists", "causal"},
		{"an older version where nothing follows", "1 w x 1\n1 w x 2\n2 r x = 2, w z 1\n3 r z, r x = 1", "", ""},
		{"two versions, each older than the other one to a session", "1 w x 1\n2 w x 2\n3 r x = 1\n3 r x = 2\n4 r x = 2\n4 r x = 1", "PL-SS-cycle-exists", "causal"},
		{"two versions in one order", "1 w x 1\n2 w x 2\n3 r x = 1\n3 r x = 2\n4 r x = 1\n4 r x = 2", "", ""},
		{"an overwritten version in real time", "seq w x 1\nw x 2\nr x = 1", "PL-SS-cycle-exists", "strong snapshot isolation"},
		{"the last version in real time", "seq w x 1\nw x 2\nr x = 2", "", ""},
		{"long fork over written versions", "w x 1, w y 1\nr x = 1, r y = 1, w x 2\nr x = 1, r y = 1, w y 2\nr x = 2, r y = 1\nr x = 1, r y = 2", "G-nonadjacent", "PL-2.99; prefix consistency; snapshot isolation; PL-3U"},
		{"long fork over blind writes", "w x 1, w y 1\nw x 2\nw y 2\nr x = 2, r y = 1\nr x = 1, r y = 2", "PL-3-cycle-exists", "PL-2.99; prefix consistency; snapshot isolation"},
		{"no long fork", "w x 1, w y 1\nw x 2\nw y 2\nr x = 2, r y = 1\nr x = 2, r y = 2", "", ""},
	} {
		text := tt.text
		for i := range mostExact {
			text += fmt.Sprintf("\nr p%d, w p%d 1", i, i)
		}
		r := Check(parse(t, text), Options{Order: true, Levels: true})
		if got := classes(r); got != tt.found || r.Undecided != "" && got == "" {
			t.Errorf("%s: got %q, want %q (undecided: %q)", tt.name, got, tt.found, r.Undecided)
		}
		if got := strings.Join(level.Weakest(r.Levels), "; "); got != tt.broken {
			t.Errorf("%s: breaks %q, want %q", tt.name, got, tt.broken)
		}
		if stateOf(r, "strict serializable") == level.Unknown {
			t.Errorf("%s: strict serializability is unknown", tt.name)
		}
		for _, f := range r.Findings {
			if f.Class != NotSerializable && f.Class != NotStrict {
				continue
			}
			for i, e := range f.Edges {
				if e.To != f.Edges[(i+1)%len(f.Edges)].From || e.Text == "" || e.From == e.To {
					t.Errorf("%s: the evidence is no cycle: %+v", tt.name, f.Edges)
				}
			}
		}
	}
}

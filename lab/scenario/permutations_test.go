package scenario

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sized makes a spec with that many steps in each session, named 00, 01, ..., 10, ...
func sized(lengths ...int) *Spec {
	s := &Spec{Name: "x.spec"}
	for i, n := range lengths {
		session := &Session{Name: fmt.Sprint(i)}
		for j := range n {
			session.Steps = append(session.Steps, &Step{Name: fmt.Sprintf("%d%d", i, j), Session: i, Index: j})
		}
		s.Sessions = append(s.Sessions, session)
	}
	return s
}

func names(p *Permutation) string {
	var all []string
	for _, ps := range p.Steps {
		all = append(all, ps.Step.Name)
	}
	return strings.Join(all, " ")
}

func orders(seq iter.Seq[*Permutation]) []string {
	var all []string
	for p := range seq {
		all = append(all, names(p))
	}
	return all
}

func source(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 7)).IntN }

func TestParsePermutations(t *testing.T) {
	for text, want := range map[string]Mode{
		"listed": {Kind: KindListed}, "all": {Kind: KindAll}, "random:10": {Kind: KindRandom, N: 10}, "pct:5,3": {Kind: KindPCT, N: 5, Depth: 3},
	} {
		got, err := ParsePermutations(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":          `permutations "": expected listed, all, random:N or pct:N,D`,
		"All":       `permutations "All": expected listed, all, random:N or pct:N,D`,
		"all:3":     `permutations "all:3": all takes no number, expected listed, all, random:N or pct:N,D`,
		"random":    `permutations "random": found "", expected a number from 1 to 2147483647, as in random:100`,
		"random:0":  `permutations "random:0": found "0", expected a number from 1 to 2147483647, as in random:100`,
		"pct:3":     `permutations "pct:3": found "", expected a number from 1 to 2147483647, as in pct:100,3`,
		"pct:3,0":   `permutations "pct:3,0": found "0", expected a number from 1 to 2147483647, as in pct:100,3`,
		"pct:1,2,3": `permutations "pct:1,2,3": found "2,3", expected a number from 1 to 2147483647, as in pct:100,3`,
	} {
		if _, err := ParsePermutations(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestListed(t *testing.T) {
	s := mustParse(t, small+"permutation b(c) c\npermutation a\n")
	if diff := cmp.Diff([]string{"b c", "a"}, orders(s.Orders(Mode{}, Choice{}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for p := range s.Orders(Mode{}, Choice{}) {
		if p.String() != "b(c) c" {
			t.Errorf("the markers are lost: %s", p)
		}
		break
	}
	// isolationtester's order, if none is listed.
	s = mustParse(t, small)
	if diff := cmp.Diff([]string{"a b c", "a c b", "c a b"}, orders(s.Orders(Mode{Kind: KindListed}, Choice{}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInterleavings(t *testing.T) {
	for want, s := range map[string]*Spec{"1": sized(3), "70": sized(4, 4), "63063000": sized(4, 4, 4, 4), "155117520": sized(15, 15)} {
		if got := s.Interleavings().String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := sized(20, 20, 20, 20).Interleavings().String(); len(got) != 46 {
		t.Errorf("80! / 20!^4 has 46 digits, got %s", got)
	}
}

// TestAll compares with brute force: of each class of interleavings that become each other by swapping independent
// neighbours, exactly one is run, and it is the first in the order of the sessions.
func TestAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sized(rapid.SliceOfN(rapid.IntRange(0, 3), 1, 3).Draw(t, "lengths")...)
		var steps []*Step
		for _, session := range s.Sessions {
			steps = append(steps, session.Steps...)
		}
		table := make(map[[2]*Step]bool)
		for i, a := range steps {
			for _, b := range steps[:i] {
				if a.Session != b.Session && rapid.Bool().Draw(t, a.Name+"|"+b.Name) {
					table[[2]*Step{a, b}], table[[2]*Step{b, a}] = true, true
				}
			}
		}
		independent := func(a, b *Step) bool { return table[[2]*Step{a, b}] }
		var want []string
		for class := range classes(s, independent) {
			want = append(want, class)
		}
		got := orders(s.Orders(Mode{Kind: KindAll}, Choice{Independent: independent}))
		slices.Sort(want)
		sorted := slices.Sorted(slices.Values(got))
		if diff := cmp.Diff(want, sorted); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// classes gives the first interleaving of each class.
func classes(s *Spec, independent Independent) map[string]bool {
	all := make(map[string]*Permutation)
	for p := range s.every(nil) {
		all[names(p)] = p
	}
	first := make(map[string]bool)
	seen := make(map[string]bool)
	for _, start := range slices.Sorted(func(yield func(string) bool) {
		for n := range all {
			if !yield(n) {
				return
			}
		}
	}) {
		if seen[start] {
			continue
		}
		first[start] = true
		seen[start] = true
		for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
			at := all[queue[0]]
			for i := range len(at.Steps) - 1 {
				if !independent(at.Steps[i].Step, at.Steps[i+1].Step) {
					continue
				}
				swapped := &Permutation{Steps: slices.Clone(at.Steps)}
				swapped.Steps[i], swapped.Steps[i+1] = swapped.Steps[i+1], swapped.Steps[i]
				if n := names(swapped); !seen[n] {
					seen[n] = true
					queue = append(queue, n)
				}
			}
		}
	}
	return first
}

// TestAllStops: what is independent is not walked either, and a caller can stop.
func TestAllStops(t *testing.T) {
	s := sized(12, 12, 12, 12)
	if n := len(orders(s.Orders(Mode{Kind: KindAll}, Choice{Independent: func(_, _ *Step) bool { return true }}))); n != 1 {
		t.Errorf("%d orders of independent steps, want 1", n)
	}
	n := 0
	for range s.Orders(Mode{Kind: KindAll}, Choice{}) {
		if n++; n == 5 {
			break
		}
	}
}

func TestRandom(t *testing.T) {
	s := sized(2, 2, 1)
	every := slices.Sorted(slices.Values(orders(s.every(nil))))
	count := make(map[string]int)
	const runs = 6000
	intn := source(1)
	for range runs {
		for _, o := range orders(s.Orders(Mode{Kind: KindRandom, N: 1}, Choice{Intn: intn})) {
			count[o]++
		}
	}
	if len(count) != 30 {
		t.Fatalf("%d different orders, want 30", len(count))
	}
	for o, n := range count {
		if n < 140 || n > 265 { // 200 expected, standard deviation 14
			t.Errorf("%s came %d times of %d, want about 200", o, n, runs)
		}
	}
	for _, n := range []int{29, 30, 1000} {
		got := orders(s.Orders(Mode{Kind: KindRandom, N: n}, Choice{Intn: source(2)}))
		again := orders(s.Orders(Mode{Kind: KindRandom, N: n}, Choice{Intn: source(2)}))
		if !slices.Equal(got, again) {
			t.Errorf("the same seed gave other orders")
		}
		slices.Sort(got)
		if len(got) != min(n, 30) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("random:%d gave %d orders, or repeats", n, len(got))
		}
		if n >= 30 && !slices.Equal(got, every) {
			t.Errorf("random:%d did not give all", n)
		}
	}
}

// TestRandomLarge: too many interleavings to number them.
func TestRandomLarge(t *testing.T) {
	s := sized(20, 20, 20)
	got := orders(s.Orders(Mode{Kind: KindRandom, N: 300}, Choice{Intn: source(3)}))
	firsts := make(map[byte]int)
	for _, o := range got {
		firsts[o[0]]++
		keepsOrder(t, s, o)
	}
	if len(got) != 300 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 300 {
		t.Errorf("%d orders or repeats", len(got))
	}
	for session, n := range firsts {
		if n < 60 || n > 140 {
			t.Errorf("session %c begins %d of 300 orders, want about 100", session, n)
		}
	}
	// A source that always says the same must not make it run forever.
	if got := orders(s.Orders(Mode{Kind: KindRandom, N: 3}, Choice{Intn: func(int) int { return 0 }})); len(got) != 1 {
		t.Errorf("%d orders from a constant source, want 1", len(got))
	}
}

func keepsOrder(t *testing.T, s *Spec, order string) {
	t.Helper()
	next := make([]int, len(s.Sessions))
	for name := range strings.FieldsSeq(order) {
		st := s.Step(name)
		if st.Index != next[st.Session] {
			t.Fatalf("%s is out of order in %s", name, order)
		}
		next[st.Session]++
	}
	for i, n := range s.lengths() {
		if next[i] != n {
			t.Fatalf("steps of session %d are missing in %s", i, order)
		}
	}
}

func TestPCT(t *testing.T) {
	s := sized(4, 4, 4)
	// Depth 1: no priority changes, so sessions run one after the other, in 6 ways.
	one := orders(s.Orders(Mode{Kind: KindPCT, N: 1000, Depth: 1}, Choice{Intn: source(4)}))
	if len(one) != 6 {
		t.Errorf("depth 1 gave %d orders, want 6:\n%s", len(one), strings.Join(one, "\n"))
	}
	switches := func(order string) int {
		n := 0
		for f := strings.Fields(order); len(f) > 1; f = f[1:] {
			if f[0][0] != f[1][0] {
				n++
			}
		}
		return n
	}
	for depth := 1; depth <= 4; depth++ {
		got := orders(s.Orders(Mode{Kind: KindPCT, N: 200, Depth: depth}, Choice{Intn: source(5)}))
		most := 0
		for _, o := range got {
			keepsOrder(t, s, o)
			most = max(most, switches(o))
		}
		// Two switches when sessions end, and at most one more for each change of priority.
		if want := 2 + depth - 1; most != want {
			t.Errorf("depth %d: at most %d switches, want %d", depth, most, want)
		}
		if again := orders(s.Orders(Mode{Kind: KindPCT, N: 200, Depth: depth}, Choice{Intn: source(5)})); !slices.Equal(got, again) {
			t.Errorf("depth %d: the same seed gave other orders", depth)
		}
	}
}

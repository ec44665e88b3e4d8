package scenario

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Kind is a way of choosing permutations.
type Kind string

// The kinds of modes.
const (
	KindListed Kind = "listed" // those of the file; if it lists none, every interleaving, as isolationtester does
	KindAll    Kind = "all"    // every interleaving but those that cannot differ from one that is run
	KindRandom Kind = "random" // N different interleavings, each equally likely
	KindPCT    Kind = "pct"    // N runs of probabilistic concurrency testing with depth D
)

// Mode says which permutations are run. The zero value is listed.
type Mode struct {
	Kind  Kind
	N     int // random, pct: how many
	Depth int // pct: the depth of the bugs looked for; Depth-1 priorities change on the way
}

func (m Mode) String() string {
	switch m.Kind {
	case KindRandom:
		return fmt.Sprintf("random:%d", m.N)
	case KindPCT:
		return fmt.Sprintf("pct:%d,%d", m.N, m.Depth)
	case KindAll:
		return "all"
	}
	return "listed"
}

// ParsePermutations reads listed, all, random:N or pct:N,D.
func ParsePermutations(text string) (Mode, error) {
	const want = "expected listed, all, random:N or pct:N,D"
	word, args, hasArgs := strings.Cut(text, ":")
	m := Mode{Kind: Kind(word)}
	var err error
	switch m.Kind {
	case KindListed, KindAll:
		if hasArgs {
			err = fmt.Errorf("permutations %q: %s takes no number, %s", text, word, want)
		}
	case KindRandom:
		if m.N, err = positive(args); err != nil {
			err = fmt.Errorf("permutations %q: %w, as in random:100", text, err)
		}
	case KindPCT:
		n, depth, _ := strings.Cut(args, ",")
		if m.N, err = positive(n); err == nil {
			m.Depth, err = positive(strings.TrimSpace(depth))
		}
		if err != nil {
			err = fmt.Errorf("permutations %q: %w, as in pct:100,3", text, err)
		}
	default:
		err = fmt.Errorf("permutations %q: %s", text, want)
	}
	if err != nil {
		return Mode{}, err
	}
	return m, nil
}

func positive(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("found %q, expected a number from 1 to %d", text, math.MaxInt32)
	}
	return int(n), nil
}

// Independent reports whether two steps of different sessions, submitted one right after the other, give the same results
// and leave the same state in either order. It must be symmetric and true only where that is certain.
type Independent func(a, b *Step) bool

// Choice is what Orders needs besides the mode.
type Choice struct {
	// Independent prunes in mode all; nil: no steps are independent, so every interleaving is run.
	Independent Independent
	// Intn gives a uniformly random number in [0, n); needed in modes random and pct. The caller's source and seed decide
	// whether a run can be repeated.
	Intn func(n int) int
}

// Switches counts how often the permutation goes from one session to another.
func (p *Permutation) Switches() (n int) {
	for i := 1; i < len(p.Steps); i++ {
		if p.Steps[i].Step.Session != p.Steps[i-1].Step.Session {
			n++
		}
	}
	return n
}

// Orders gives the orders in which the spec's steps are to be submitted. Orders that are not listed have no markers.
// What is yielded belongs to the caller.
//
// A permutation is what is submitted; a step that blocks is overtaken by the next ones when it runs.
func (s *Spec) Orders(m Mode, c Choice) iter.Seq[*Permutation] {
	switch m.Kind {
	case KindAll:
		return s.every(c.Independent)
	case KindRandom:
		return s.random(m.N, c.Intn)
	case KindPCT:
		return s.pct(m.N, m.Depth, c.Intn)
	}
	if len(s.Permutations) > 0 {
		return slices.Values(s.Permutations)
	}
	return s.every(nil)
}

// Interleavings is how many orders of all steps keep each session's order: a multinomial coefficient.
func (s *Spec) Interleavings() *big.Int { return interleavings(s.lengths()) }

func interleavings(lengths []int) *big.Int {
	total, product := int64(0), big.NewInt(1)
	for _, n := range lengths {
		total += int64(n)
		product.Mul(product, new(big.Int).Binomial(total, int64(n)))
	}
	return product
}

func (s *Spec) lengths() []int {
	lengths := make([]int, len(s.Sessions))
	for i, session := range s.Sessions {
		lengths[i] = len(session.Steps)
	}
	return lengths
}

// generated makes a permutation of the sessions' numbers in their order.
func (s *Spec) generated(order []int) *Permutation {
	p := &Permutation{Steps: make([]PermutationStep, len(order))}
	done := make([]int, len(s.Sessions))
	for i, session := range order {
		p.Steps[i].Step = s.Sessions[session].Steps[done[session]]
		done[session]++
	}
	return p
}

// every yields exactly one interleaving of each equivalence class: those that can be made from each other by swapping
// neighbours that are independent (Mazurkiewicz traces). It walks the tree of interleavings, first session first, with
// sleep sets (Godefroid, LNCS 1032, chapter 5): after a step's subtree the step sleeps in its later siblings' subtrees
// until one that depends on it is taken. Since every enabled step is tried, each class is met exactly once.
func (s *Spec) every(independent Independent) iter.Seq[*Permutation] {
	if independent == nil {
		independent = func(_, _ *Step) bool { return false }
	}
	return func(yield func(*Permutation) bool) {
		w := &walk{spec: s, independent: independent, yield: yield, done: make([]int, len(s.Sessions))}
		for _, n := range s.lengths() {
			w.left += n
		}
		w.from(make([]bool, len(s.Sessions)))
	}
}

type walk struct {
	spec        *Spec
	independent Independent
	yield       func(*Permutation) bool
	order       []int // session of each step taken
	done        []int // steps taken, by session
	left        int
}

func (w *walk) next(session int) *Step {
	if steps := w.spec.Sessions[session].Steps; w.done[session] < len(steps) {
		return steps[w.done[session]]
	}
	return nil
}

// from walks all continuations; asleep tells for each session whether its next step sleeps. It reports whether to go on.
func (w *walk) from(asleep []bool) bool {
	if w.left == 0 {
		return w.yield(w.spec.generated(w.order))
	}
	for session := range asleep {
		if asleep[session] && !w.canWake(session) {
			return true // its next step can no longer be taken, so no continuation is complete
		}
	}
	asleep = slices.Clone(asleep)
	for session := range asleep {
		step := w.next(session)
		if step == nil || asleep[session] {
			continue
		}
		below := make([]bool, len(asleep))
		for other := range asleep {
			below[other] = asleep[other] && other != session && w.independent(w.next(other), step)
		}
		w.order = append(w.order, session)
		w.done[session]++
		w.left--
		goOn := w.from(below)
		w.order = w.order[:len(w.order)-1]
		w.done[session]--
		w.left++
		if !goOn {
			return false
		}
		asleep[session] = true
	}
	return true
}

// canWake reports whether some step that is still to come, of another session, depends on the session's next step.
func (w *walk) canWake(session int) bool {
	step := w.next(session)
	for other, s := range w.spec.Sessions {
		if other == session {
			continue
		}
		for _, later := range s.Steps[w.done[other]:] {
			if !w.independent(step, later) {
				return true
			}
		}
	}
	return false
}

// random yields n different interleavings, all if there are no more, each equally likely.
func (s *Spec) random(n int, intn func(int) int) iter.Seq[*Permutation] {
	total := s.Interleavings()
	if total.IsInt64() && total.Int64() <= math.MaxInt32 {
		return s.sample(n, int(total.Int64()), intn)
	}
	return s.distinct(n, func() []int {
		// There are so many that one hardly comes twice. Each step is one of the steps left, all equally likely, which makes
		// all interleavings equally likely.
		lengths := s.lengths()
		left := 0
		for _, n := range lengths {
			left += n
		}
		order := make([]int, 0, left)
		for ; left > 0; left-- {
			i := intn(left)
			session := 0
			for i >= lengths[session] {
				i -= lengths[session]
				session++
			}
			lengths[session]--
			order = append(order, session)
		}
		return order
	})
}

// sample draws numbers of interleavings without putting them back (Fisher and Yates, of which only the cells touched are
// kept).
func (s *Spec) sample(n, total int, intn func(int) int) iter.Seq[*Permutation] {
	return func(yield func(*Permutation) bool) {
		moved := make(map[int]int)
		at := func(i int) int {
			if v, ok := moved[i]; ok {
				return v
			}
			return i
		}
		for i := range min(n, total) {
			j := i + intn(total-i)
			rank := at(j)
			moved[j] = at(i)
			if !yield(s.generated(unrank(s.lengths(), int64(rank)))) {
				return
			}
		}
	}
}

// unrank gives the interleaving with the number, counted in lexicographic order of the sessions.
func unrank(lengths []int, rank int64) []int {
	var order []int
	for session := 0; session < len(lengths); {
		if lengths[session] == 0 {
			session++
			continue
		}
		lengths[session]--
		if with := interleavings(lengths).Int64(); rank >= with {
			rank -= with
			lengths[session]++
			session++
			continue
		}
		order = append(order, session)
		session = 0
	}
	return order
}

// distinct yields up to n different orders that draw makes. It gives up when one that was drawn before comes a hundred
// times in a row.
func (s *Spec) distinct(n int, draw func() []int) iter.Seq[*Permutation] {
	return func(yield func(*Permutation) bool) {
		seen := make(map[string]bool)
		for repeats := 0; len(seen) < n && repeats < 100; {
			order := draw()
			name := fmt.Sprint(order)
			if seen[name] {
				repeats++
				continue
			}
			seen[name] = true
			repeats = 0
			if !yield(s.generated(order)) {
				return
			}
		}
	}
}

// pct yields up to n different orders made by probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi,
// Nagarakatte, ASPLOS 2010, section 3): sessions get random priorities, all above depth; the highest goes on; at depth-1
// random steps the priority of the session that takes it falls to one below all others' first. A bug of that depth is met
// with a probability of at least 1/(n k^(depth-1)) per run, n sessions with k steps in all. The orders ignore blocking:
// what is blocked when it runs is overtaken.
func (s *Spec) pct(n, depth int, intn func(int) int) iter.Seq[*Permutation] {
	return s.distinct(n, func() []int {
		lengths := s.lengths()
		steps := 0
		for _, n := range lengths {
			steps += n
		}
		priority := make([]int, len(lengths))
		for i := range priority { // a random permutation of depth, depth+1, ...
			j := intn(i + 1)
			priority[i] = priority[j]
			priority[j] = depth + i
		}
		change := make(map[int]int)
		for p := 1; p < depth && steps > 0; p++ {
			change[1+intn(steps)] = p
		}
		var order []int
		for len(order) < steps {
			best := -1
			for session := range lengths {
				if lengths[session] > 0 && (best < 0 || priority[session] > priority[best]) {
					best = session
				}
			}
			order = append(order, best)
			lengths[best]--
			if p, ok := change[len(order)]; ok {
				priority[best] = p
			}
		}
		return order
	})
}

package generate

// Frequencies of optional features, in thousandths. Simple features are common and exotic ones rare, so that cases stay small.
const (
	often  = 400
	fairly = 150
	rarely = 50
	seldom = 20
)

// favoredShare is how often a favored feature is used where it can be.
const favoredShare = 700

// has reports whether a feature may be used at all.
func (g *chooser) has(feature string) bool {
	usable, known := g.usable[feature]
	if !known && !isFeature(feature) {
		panic("generate: no feature " + feature)
	}
	return usable
}

// use decides whether an optional feature is used, with a frequency in thousandths, and marks it if so.
func (g *chooser) use(feature string, frequency int) bool {
	if !g.has(feature) {
		return false
	}
	if g.favored[feature] {
		frequency = max(frequency, favoredShare)
	} else if g.coverage != nil {
		frequency = g.coverage.frequency(g.kind, feature, frequency)
	}
	if !g.chance(frequency) {
		return false
	}
	g.mark(feature)
	return true
}

// mark notes that the statement has the feature.
func (g *chooser) mark(features ...string) {
	for _, f := range features {
		if !isFeature(f) {
			panic("generate: no feature " + f)
		}
		g.marks[f] = true
	}
}

func (g *chooser) chance(thousandths int) bool { return g.intn(1000) < thousandths }

// between gives a number from least to most.
func (g *chooser) between(least, most int) int { return least + g.intn(most-least+1) }

// few gives a number from least to most, small ones more often.
func (g *chooser) few(least, most int) int {
	return min(g.between(least, most), g.between(least, most))
}

func oneOf[T any](intn func(int) int, list []T) T { return list[intn(len(list))] }

// some gives n elements of the list at random, in the order of the list.
func some[T any](intn func(int) int, list []T, n int) []T {
	var out []T
	for i, v := range list {
		if intn(len(list)-i) < n-len(out) {
			out = append(out, v)
		}
	}
	return out
}

// option is one of several ways to go on. A way with a feature is open only if that may be used, and taking it marks it.
type option struct {
	weight  int
	feature string // empty: none
	can     bool
	do      func() string
}

// choose takes one of the open options by their weights. At least one must be open.
func (g *chooser) choose(options []option) string {
	open := func(o option) bool { return o.can && (o.feature == "" || g.has(o.feature)) }
	weigh := func(o option) int {
		switch {
		case o.feature != "" && g.favored[o.feature]:
			return o.weight + 300
		case o.feature != "" && g.coverage != nil:
			return g.coverage.frequency(g.kind, o.feature, o.weight)
		}
		return o.weight
	}
	total := 0
	for _, o := range options {
		if open(o) {
			total += weigh(o)
		}
	}
	n := g.intn(total)
	for _, o := range options {
		if !open(o) {
			continue
		}
		if n -= weigh(o); n < 0 {
			if o.feature != "" {
				g.mark(o.feature)
			}
			return o.do()
		}
	}
	panic("generate: no option is open")
}

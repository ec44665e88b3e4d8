package explore

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"wirecheck/history/prose"
	"wirecheck/lab/replay"
	"wirecheck/product"
	"wirecheck/report"
	"wirecheck/trace"
)

// Advice is what wirecheck advise tells.
type Advice struct {
	Trace   string         `json:"trace"`
	Engine  string         `json:"engine"`
	Version string         `json:"version"`
	Units   int            `json:"units"`
	Levels  []string       `json:"levels"`
	Shapes  []*ShapeAdvice `json:"shapes"`
	Pairs   []*Pair        `json:"pairs"`
	// Triples are three shapes each two of which are a pair. TriplesLeft is how many more there are.
	Triples     []*Pair       `json:"triples,omitempty"`
	TriplesLeft int           `json:"triples_left,omitempty"`
	Executed    int           `json:"interleavings"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	Undecided   string        `json:"undecided,omitempty"`
	Broken      []string      `json:"broken,omitempty"` // the invariants that the replay in the recorded order broke, with what their queries gave

	until   time.Time
	budget  time.Duration
	title   string
	unit    string
	product *product.Product
	room    room
}

// ShapeAdvice is a shape of transaction, or of request.
type ShapeAdvice struct {
	Number     int         `json:"number"`
	Name       string      `json:"name"`
	Count      int         `json:"count"`
	Level      string      `json:"level"` // the application's
	Statements []string    `json:"statements"`
	Tags       []trace.Tag `json:"tags,omitempty"`
}

// Pair is two shapes that share tables, one of which writes; or a shape and itself; or three shapes (C).
type Pair struct {
	A      int        `json:"a"`
	B      int        `json:"b"`
	C      int        `json:"c,omitempty"` // 0: there are two
	Tables []string   `json:"tables"`
	Rows   []string   `json:"rows,omitempty"` // that units of both name in the trace: "table.column=value"
	Level  string     `json:"level"`          // the weaker one of the two shapes'
	Levels []*Outcome `json:"levels"`
	mended
	meetings []replay.Meeting
}

// mended are the remedies of a pair. Remedies were executed in every inequivalent interleaving at the own level, and nothing went wrong. Tried were
// executed, too, and something did, or not everything could be executed.
type mended struct {
	Remedies []*Proof `json:"remedies,omitempty"`
	Tried    []*Proof `json:"not_proven,omitempty"`
}

// Proof is a remedy that was executed.
type Proof struct {
	Text   string `json:"text"`
	SQL    string `json:"sql,omitempty"` // one of the statements as it is then
	Proven bool   `json:"proven"`
	*Outcome
}

func (p *Proof) proven() bool { return p.Tried > 0 && p.safe() }

// at is a pair's outcome at a level; nil if there is none.
func (p *Pair) at(level string) *Outcome {
	for _, o := range p.Levels {
		if o.Level == level {
			return o
		}
	}
	return nil
}

// untried says why something of a pair was not tried; empty: it was.
func (p *Pair) untried() string {
	for _, o := range p.Levels {
		if o.Untried != "" {
			return o.Untried
		}
	}
	return ""
}

// all are the pairs and the triples.
func (a *Advice) all() []*Pair { return slices.Concat(a.Pairs, a.Triples) }

// of gives the pairs and triples of a shape.
func (a *Advice) of(shape int) (list []*Pair) {
	for _, p := range a.all() {
		if slices.Contains(p.shapes(), shape) {
			list = append(list, p)
		}
	}
	return list
}

// id names a pair by the numbers of its shapes.
func (p *Pair) id(between string) string { return joined(p.shapes(), between) }

func joined(numbers []int, between string) string {
	var list []string
	for _, n := range numbers {
		list = append(list, fmt.Sprint(n))
	}
	return strings.Join(list, between)
}

// Safe is the weakest level at which nothing goes wrong in any interleaving of a shape with any other one at the same level, nor in any that was tried
// of three. Empty: there is none, or not everything was tried. why says which.
func (a *Advice) Safe(shape int) (level, why string) {
	for _, l := range a.Levels {
		safe, untried := true, false
		for _, p := range a.of(shape) {
			o := p.at(l)
			if p.C != 0 { // seldom can all of their interleavings be tried; Advice.three says how many were
				safe = safe && o.Wrong+o.Possible == 0
				continue
			}
			untried = untried || !o.All && o.Wrong == 0
			safe = safe && o.safe()
		}
		if safe {
			return l, ""
		}
		if untried {
			why = "not all of it could be tried"
		}
	}
	return "", cmp.Or(why, "none")
}

// Found reports whether something goes wrong for sure at the level of the application.
func (a *Advice) Found() bool {
	return slices.ContainsFunc(a.all(), func(p *Pair) bool { return p.at(p.Level).Wrong > 0 })
}

// JSON writes all of it.
func (a *Advice) JSON(w io.Writer) error { return report.Indented(w, a) }

// whole is the text with all that is known.
func (a *Advice) whole() string {
	all := *a
	all.room = true
	return written(all.Text)
}

// How much is printed on a screen.
const (
	shapesOnScreen = 12
	pairsOnScreen  = 4
)

// Text writes it for people, on about one screen.
func (a *Advice) Text(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s on %s %s: %s of %s; pairs that share tables: %d; interleavings executed: %d, in %v\n\n", a.Trace, a.title, a.Version,
		prose.Count(a.Units, a.unit), prose.Count(len(a.Shapes), "shape"), len(a.Pairs), a.Executed, a.Elapsed.Round(time.Second))
	a.table(w)
	broken(w, a.Broken)
	pairs := slices.DeleteFunc(a.all(), func(p *Pair) bool {
		o := p.at(p.Level)
		return o.Wrong+o.Possible == 0 && o.Deadlock == nil
	})
	slices.SortStableFunc(pairs, func(x, y *Pair) int { return rank(x) - rank(y) })
	for i, p := range pairs {
		if i == pairsOnScreen && !a.room {
			fmt.Fprintf(w, "\nand %d more of which something goes wrong, or may (all: --format html, or --out)\n", len(pairs)-i)
			break
		}
		a.pair(w, p)
	}
	a.left(w)
	a.three(w)
	if a.Undecided != "" {
		fmt.Fprintf(w, "undecided: %s\n", a.Undecided)
	}
	return w.Flush()
}

// rank orders pairs: what goes wrong for sure comes first, deadlocks last.
func rank(p *Pair) int {
	switch o := p.at(p.Level); {
	case o.Wrong > 0:
		return 0
	case o.Possible > 0:
		return 1
	}
	return 2
}

// table writes a line for each shape.
func (a *Advice) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\tshape\ttimes\tlevel\tgoes wrong with\tnothing goes wrong at\n")
	for i, s := range a.Shapes {
		if i == shapesOnScreen && !a.room {
			fmt.Fprintf(w, "and %d more\n", len(a.Shapes)-i)
			break
		}
		safe, why := a.Safe(s.Number)
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\n", s.Number, s.Name, s.Count, s.Level, cmp.Or(strings.Join(a.wrongWith(s.Number), " "), "-"), cmp.Or(safe, why))
	}
	_ = w.Flush() // out remembers its error
}

// wrongWith lists the shapes with which a shape goes wrong, in brackets where that is only possible.
func (a *Advice) wrongWith(shape int) (list []string) {
	for _, p := range a.of(shape) {
		rest := p.shapes()
		rest = slices.Delete(rest, slices.Index(rest, shape), slices.Index(rest, shape)+1)
		other := joined(rest, "+")
		switch o := p.at(p.Level); {
		case o.Wrong > 0:
			list = append(list, other)
		case o.Possible > 0:
			list = append(list, "("+other+")")
		}
	}
	return list
}

// pair tells of a pair.
func (a *Advice) pair(w io.Writer, p *Pair) {
	own := p.at(p.Level)
	word, n, shown := "DEADLOCK", 0, own.Shown
	switch {
	case own.Wrong > 0:
		word, n = "ANOMALY: "+strings.ToUpper(own.names()), own.Wrong
	case own.Possible > 0:
		shown = own.Maybe
		word, n = "possible: "+strings.Join(shown.Found, ", "), own.Possible
	case own.Deadlock != nil:
		n = own.Deadlock.Count
	default:
		word = "nothing goes wrong"
	}
	fmt.Fprintf(w, "\n%s: %s, in %d of %s at %s, on %s\n", word, p.id(" with "), n, prose.Count(own.Tried, "interleaving"), p.Level, strings.Join(p.Tables, ", "))
	if shown != nil {
		for _, why := range shown.Why {
			fmt.Fprintf(w, "  %s\n", why)
		}
		if shown.Mark != "" {
			fmt.Fprintf(w, "  not sure: %s\n", shown.Mark)
		}
	}
	for _, b := range own.Breaches {
		fmt.Fprint(w, b.text(a.Engine, own.Tried))
	}
	if c := own.Deadlock; c != nil {
		fmt.Fprintf(w, "  deadlock in %s: ", prose.Count(c.Count, "interleaving"))
		for i, order := range c.Orders {
			if i > 0 {
				fmt.Fprint(w, " | ")
			}
			fmt.Fprint(w, strings.Join(order, " -> "))
		}
		fmt.Fprintln(w)
	}
	var left []string
	for _, o := range p.Levels {
		fmt.Fprintf(w, "  at %s: %s\n", o.Level, o)
		if o.Tried > 0 && o.Untried != "" && !slices.Contains(left, o.Untried) {
			left = append(left, o.Untried)
		}
	}
	for _, why := range left {
		fmt.Fprintf(w, "  not all was tried: %s\n", why)
	}
	for _, r := range p.Remedies {
		fmt.Fprintf(w, "  proven: %s (%s)\n", r.Text, r.Outcome)
		if r.SQL != "" {
			fmt.Fprintf(w, "    %s\n", prose.Query(r.SQL, prose.Width))
		}
	}
	if len(p.Remedies) == 0 && len(p.Tried) > 0 {
		fmt.Fprintf(w, "  no remedy is proven; tried: %s\n", strings.Join(texts(p.Tried), "; "))
	}
	if shown != nil && shown.Kept != "" {
		fmt.Fprintf(w, "  shown by: %s\n", shown.again(shown.Kept, a.Engine))
	}
}

// String says an outcome in a few words.
func (o *Outcome) String() string {
	if o.Tried == 0 {
		return "not tried: " + cmp.Or(o.Untried, "the units have one order only")
	}
	var parts []string
	switch {
	case o.Wrong > 0:
		parts = append(parts, fmt.Sprintf("%s in %d of %d", o.names(), o.Wrong, o.Tried))
	case o.Possible > 0:
	case o.All:
		parts = append(parts, fmt.Sprintf("nothing goes wrong in all %d", o.Tried))
	default:
		parts = append(parts, fmt.Sprintf("nothing goes wrong in %d", o.Tried))
	}
	if o.Possible > 0 {
		parts = append(parts, fmt.Sprintf("possible in %d of %d", o.Possible, o.Tried))
	}
	for _, code := range slices.Sorted(maps.Keys(o.Refused)) {
		parts = append(parts, fmt.Sprintf("refused with %s in %d", code, o.Refused[code]))
	}
	if o.GaveUp > 0 {
		parts = append(parts, fmt.Sprintf("an UPDATE with a condition changes no row in %d", o.GaveUp))
	}
	if o.Waited > 0 {
		parts = append(parts, fmt.Sprintf("waits in %d", o.Waited))
	}
	if o.Untried != "" {
		parts = append(parts, "not all was tried")
	}
	return strings.Join(parts, "; ")
}

// texts are what was tried, each once: one text may stand for the locks of several statements.
func texts(list []*Proof) (words []string) {
	for _, p := range list {
		if !slices.Contains(words, p.Text) {
			words = append(words, p.Text)
		}
	}
	return words
}

// names are what was found; of executions that nobody named: that something goes wrong.
func (o *Outcome) names() string { return cmp.Or(strings.Join(o.Found, ", "), "wrong") }

// left says what was not tried.
func (a *Advice) left(w io.Writer) {
	reasons := map[string]int{}
	for _, p := range a.Pairs {
		for _, o := range p.Levels {
			if o.Untried != "" {
				reasons[o.Untried]++
			}
		}
	}
	if len(reasons) > 0 {
		fmt.Fprintln(w)
	}
	list := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(reasons[b]-reasons[a], strings.Compare(a, b))
	})
	for i, why := range list {
		if i == onScreen && !a.room {
			fmt.Fprintf(w, "and %d more reasons (--out)\n", len(list)-i)
			break
		}
		fmt.Fprintf(w, "not all was tried, of %s at a level: %s\n", prose.Count(reasons[why], "pair"), why)
	}
}

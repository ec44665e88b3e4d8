package level

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"wirecheck/anomaly"
)

// Step is one dependency of a witness, between transactions by their IDs.
type Step struct {
	From uint64 `json:"from"`
	Kind string `json:"kind"`
	To   uint64 `json:"to"`
}

// Witness is the shortest proof that a level is broken.
type Witness struct {
	Class anomaly.Class `json:"class,omitempty"`
	Name  string        `json:"name,omitempty"`
	Txns  []uint64      `json:"transactions"`
	Steps []Step        `json:"steps,omitempty"`
}

// maxShown is how many dependencies a line shows.
const maxShown = 8

// String is the witness in one line. Of a long one it leaves out the middle.
func (w *Witness) String() string {
	var b strings.Builder
	what := cmp.Or(w.Name, string(w.Class))
	if w.Class != "" && string(w.Class) != what {
		what += " (" + string(w.Class) + ")"
	}
	b.WriteString(what + ":")
	for i, s := range w.Steps {
		switch rest := len(w.Steps) - maxShown; {
		case i == 0:
			fmt.Fprintf(&b, " %d", s.From)
		case i == maxShown-1 && rest > 0:
			fmt.Fprintf(&b, " ... %d more ...", rest)
			continue
		case i >= maxShown-1 && i < len(w.Steps)-1 && rest > 0:
			continue
		}
		fmt.Fprintf(&b, " -%s-> %d", s.Kind, s.To)
	}
	if len(w.Steps) == 0 {
		fmt.Fprintf(&b, " transactions %s", strings.Trim(fmt.Sprint(w.Txns), "[]"))
	}
	return b.String()
}

// State says what is known of a level.
type State string

// The states.
const (
	Satisfied State = "satisfied"
	Broken    State = "broken"
	Unknown   State = "unknown" // it would take too long to decide, or needs what the history does not tell
)

// Verdict is what is known of one level.
type Verdict struct {
	Level   string   `json:"level"`
	State   State    `json:"state"`
	Witness *Witness `json:"witness,omitempty"`
}

// Judge judges all levels, in the order of Levels. Those that ask for the same kinds of edges share a component, which takes much memory: one at a time.
func (g *Graph) Judge() []Verdict {
	out := make([]Verdict, len(Levels))
	for i := range Levels {
		var c *component
		for k := i; k < len(Levels); k++ {
			if out[k].Level == "" && Levels[k].kinds == Levels[i].kinds {
				out[k], c = g.verdict(&Levels[k], c)
			}
		}
	}
	return out
}

// Decide judges one level.
func (g *Graph) Decide(l *Level) Verdict {
	v, _ := g.verdict(l, nil)
	return v
}

// verdict judges a level. c is the component with the cycles of its kinds; nil: it was not looked for yet.
func (g *Graph) verdict(l *Level, c *component) (Verdict, *component) {
	v := Verdict{Level: l.Name, State: Satisfied}
	if k := g.breaks(l); k >= 0 {
		a, _ := anomaly.Of(g.facts[k].Class, "")
		v.State, v.Witness = Broken, &Witness{Class: g.facts[k].Class, Name: a.Name, Txns: g.facts[k].Txns}
		return v, c
	}
	if c == nil {
		c = g.cyclic(l.kinds)
	}
	if len(c.txns) > 0 {
		w, sure := l.check(c)
		switch {
		case w != nil:
			v.State, v.Witness = Broken, w
		case !sure && g.Check(l.Name, g.Certificate(l.Name, nil)) != nil: // the search ended early, and there is no proof either
			v.State = Unknown
		}
	}
	if v.State == Satisfied && g.Timeless && forms[l.Name].kinds&RT != 0 {
		v.State = Unknown
	}
	return v, c
}

// Weakest are the weakest levels of those that are broken: all that they imply is not.
func Weakest(vs []Verdict) (names []string) {
	for i, v := range vs {
		if v.State == Broken && !slices.ContainsFunc(vs, func(o Verdict) bool { return o.State == Broken && o.Level != v.Level && stronger(v.Level, o.Level) }) {
			names = append(names, vs[i].Level)
		}
	}
	return names
}

// Strongest are the strongest levels of those that are satisfied: none that is satisfied implies them.
func Strongest(vs []Verdict) (names []string) {
	for i, v := range vs {
		if v.State == Satisfied && !slices.ContainsFunc(vs, func(o Verdict) bool { return o.State == Satisfied && o.Level != v.Level && stronger(o.Level, v.Level) }) {
			names = append(names, vs[i].Level)
		}
	}
	return names
}

// stronger reports whether level a implies level b.
func stronger(a, b string) bool {
	i := slices.IndexFunc(Levels, func(l Level) bool { return l.Name == a })
	return i >= 0 && slices.ContainsFunc(Levels[i].Implies, func(w string) bool { return Implies(w, b) })
}

// Implies reports whether a level is another one or stronger.
func Implies(a, b string) bool { return a == b || stronger(a, b) }

// witness makes a witness of a cycle. An rt edge has two halves, to the end of the one and from the begin of the other.
func (c *component) witness(p []*edge, name string) *Witness {
	w := &Witness{Name: name}
	var kinds []Kind
	for i := 0; i < len(p); i++ {
		e := *p[i]
		if e.kind == RT && e.from < 0 { // the walk began on the time line
			p = append(slices.Clone(p[1:]), p[0])
			return c.witness(p, name)
		}
		if e.kind == RT && i+1 < len(p) && p[i+1].kind == RT {
			e.to = p[i+1].to
			i++
		}
		kinds = append(kinds, e.kind)
		w.Txns = append(w.Txns, c.txns[e.from].ID)
		w.Steps = append(w.Steps, Step{c.txns[e.from].ID, e.kind.String(), c.txns[e.to].ID})
	}
	w.Class = class(kinds, p)
	if w.Name == "" {
		w.Name = c.name(kinds, w, p)
	}
	return w
}

// class is the class of a cycle by the kinds of its edges.
func class(kinds []Kind, p []*edge) anomaly.Class {
	rw, wr, adjacent, over := 0, 0, false, false
	suffix := ""
	for i, k := range kinds {
		switch k {
		case RW:
			rw++
			adjacent = adjacent || kinds[(i+1)%len(kinds)] == RW
		case WR:
			wr++
		case SO:
			suffix = cmp.Or(suffix, anomaly.SuffixProcess)
		case RT:
			suffix = anomaly.SuffixRealtime
		}
	}
	for _, e := range p {
		over = over || e.pred && e.kind == RW
	}
	cl := anomaly.G2Item
	switch {
	case rw == 0 && wr == 0:
		cl = anomaly.G0
	case rw == 0:
		cl = anomaly.G1c
	case rw == 1:
		cl = anomaly.GSingle
	case !adjacent:
		cl = anomaly.GNonadjacent
	case over:
		cl = anomaly.G2
	}
	return cl + anomaly.Class(suffix)
}

// name is the everyday name of a cycle, where one fits.
func (c *component) name(kinds []Kind, w *Witness, p []*edge) string {
	shape := ""
	for i := range kinds { // from the edge on with which the text is the smallest, so that the begin does not matter
		if len(kinds) > 4 {
			break // such a long one has no name of its own
		}
		s := ""
		for k := range kinds {
			s += kinds[(i+k)%len(kinds)].String() + " "
		}
		if shape == "" || s < shape {
			shape = s
		}
	}
	shape = strings.TrimSpace(shape)
	if i := slices.IndexFunc(anomaly.Shapes, func(s anomaly.Shape) bool { return s.Edges != "" && s.Edges == shape }); i >= 0 {
		return anomaly.Shapes[i].Name
	}
	cl, ordered := w.Class.Plain()
	if ordered {
		return ""
	}
	switch cl {
	case anomaly.G0:
		return anomaly.DirtyWrite
	case anomaly.G1c:
		return anomaly.CircularFlow
	case anomaly.G2Item, anomaly.G2:
		reads := 0
		for _, e := range p {
			if !c.txns[e.from].Writes {
				reads++
			}
		}
		if reads == 1 && len(kinds) == 3 {
			return anomaly.ReadOnly
		}
	}
	return ""
}

// both is the first of two checks that breaks.
func both(a, b func(*component) (*Witness, bool)) func(*component) (*Witness, bool) {
	return func(c *component) (*Witness, bool) {
		w, sure := a(c)
		if w != nil {
			return w, true
		}
		v, also := b(c)
		return v, sure && also
	}
}

func cycleOf(kinds Kind) func(*component) (*Witness, bool) { return cycleOver(kinds, nil) }

// cycleOver looks for a cycle of some edges.
func cycleOver(kinds Kind, use func(*edge) bool) func(*component) (*Witness, bool) {
	return func(c *component) (*Witness, bool) {
		d := c.graph(kinds, false, false, use)
		p := []*edge(nil)
		if kinds == c.kinds && kinds&RT == 0 && use == nil {
			p = d.cycleIn(c.of)
		} else {
			p = d.cycle()
		}
		if p != nil {
			return c.witness(p, ""), true
		}
		return nil, true
	}
}

// points looks for a cycle of starts and commits.
func points(kinds Kind, prefix bool) func(*component) (*Witness, bool) {
	return func(c *component) (*Witness, bool) {
		if p := c.graph(kinds, true, prefix, nil).cycle(); p != nil {
			return c.witness(p, ""), true
		}
		return nil, true
	}
}

// onward reports whether all edges of some kinds lead onward in the order of the transactions.
func (c *component) onward(kinds Kind) bool {
	return !slices.ContainsFunc(c.edges, func(e edge) bool { return e.kind&kinds != 0 && e.to < e.from })
}

// oneRW looks for a cycle of so, ww and wr with exactly one rw.
func oneRW(c *component) (*Witness, bool) {
	d, work := c.graph(WW|WR|SO, false, false, nil), maxWork
	onward := c.onward(WW | WR | SO)
	var best []*edge
	for i := range c.edges {
		if e := &c.edges[i]; e.kind == RW && (e.to < e.from || !onward) && work >= 0 && len(best) != 2 {
			if p := d.path(e.to, e.from, &work, below(best)-1); p != nil {
				best = append([]*edge{e}, p...)
			}
		}
	}
	return c.shortest(best, "", work)
}

// shortest is what a search has that ended with what is left of its work.
func (c *component) shortest(best []*edge, name string, work int) (*Witness, bool) {
	if best != nil {
		return c.witness(best, name), true
	}
	return nil, work >= 0
}

// updates looks for a cycle with at most one transaction that only reads.
func updates(c *component) (*Witness, bool) {
	writes := func(e *edge) bool { return c.txns[e.from].Writes && c.txns[e.to].Writes }
	if w, _ := cycleOver(WW|WR|RW, writes)(c); w != nil {
		return w, true
	}
	d, work := c.graph(WW|WR|RW, false, false, writes), maxWork
	reads, depth := c.reads(), d.depths()
	var best []*edge
	for i := range c.edges { // the reader's way out is an rw, its way in a wr
		out := &c.edges[i]
		if out.kind != RW || c.txns[out.from].Writes || work < 0 || len(best) == 2 {
			continue
		}
		for _, in := range reads[out.from] {
			if work--; in.from == out.to {
				best = []*edge{out, in}
				break
			}
			if depth[out.to] >= depth[in.from] {
				continue
			}
			if p := d.path(out.to, in.from, &work, below(best)-2); p != nil {
				best = append(append([]*edge{out}, p...), in)
			}
		}
	}
	return c.shortest(best, "", work)
}

// later calls f with each edge that leads from the version that e's transaction missed to a later one of its row, by ww of that row alone; way
// gives the edges up to it. The first is e itself. f ends it with true. It takes from work what it visits, and ends where nothing is left.
func (c *component) later(e *edge, work *int, f func(last *edge, way func() []*edge) bool) {
	type visit struct {
		e      *edge
		parent int
	}
	q := []visit{{e, -1}}
	c.rowOrder()
	c.epoch++
	c.seen[e.new] = c.epoch
	for i := 0; i < len(q) && *work > 0; i++ {
		*work--
		way := func() (way []*edge) {
			for k := i; k >= 0; k = q[k].parent {
				way = append(way, q[k].e)
			}
			slices.Reverse(way)
			return way
		}
		if f(q[i].e, way) {
			return
		}
		for k := c.next[q[i].e.new]; k < c.next[q[i].e.new+1]; k++ {
			if n := &c.edges[c.byOld[k]]; c.seen[n.new] != c.epoch && n.from == q[i].e.to {
				c.seen[n.new] = c.epoch
				q = append(q, visit{n, i})
			}
		}
	}
}

// rowOrder sorts the ww edges by the version that they replace: those of version v are edges[byOld[k]], from next[v] to next[v+1].
func (c *component) rowOrder() {
	if c.next != nil {
		return
	}
	most := uint32(0)
	for i := range c.edges {
		most = max(most, c.edges[i].old, c.edges[i].new)
	}
	c.next, c.seen = make([]int32, most+2), make([]int32, most+1)
	for i := range c.edges {
		if e := &c.edges[i]; e.kind == WW && e.old != 0 {
			c.next[e.old+1]++
			c.byOld = append(c.byOld, int32(i))
		}
	}
	for v := range most + 1 {
		c.next[v+1] += c.next[v]
	}
	slices.SortStableFunc(c.byOld, func(a, b int32) int { return cmp.Compare(c.edges[a].old, c.edges[b].old) })
	c.row, c.writes = make([]uint32, most+1), make([][]int32, len(c.txns))
	for v := range c.row {
		c.row[v] = uint32(v)
	}
	for i := range c.edges {
		if e := &c.edges[i]; e.kind == WW {
			c.writes[e.to] = append(c.writes[e.to], int32(i))
			if e.old != 0 {
				c.row[c.rowOf(e.old)] = c.rowOf(e.new)
			}
		}
	}
}

// rowOf is what stands for the row of a version.
func (c *component) rowOf(v uint32) uint32 {
	for c.row[v] != v {
		c.row[v] = c.row[c.row[v]]
		v = c.row[v]
	}
	return v
}

// mayWrite reports whether a transaction may be one to which later leads from e.
func (c *component) mayWrite(t int32, e *edge) bool {
	c.rowOrder()
	return t == e.to || slices.ContainsFunc(c.writes[t], func(i int32) bool {
		n := c.edges[i].new
		return (n != e.old || n == 0) && c.rowOf(n) == c.rowOf(e.new) // not what was read, which is before e
	})
}

// least reports whether no witness is shorter.
func (w *Witness) least() bool { return w != nil && len(w.Steps) == 2 }

// nearer is a witness, or that of a walk, if the walk is shorter or there is none.
func (c *component) nearer(w *Witness, p []*edge, name string) *Witness {
	if w == nil || length(p) < len(w.Steps) {
		return c.witness(p, name)
	}
	return w
}

// When the transaction read of the other one, and when it read from before that.
func earlier(saw, missed int32) bool       { return saw >= 0 && saw < missed }
func sameOrEarlier(saw, missed int32) bool { return saw >= 0 && saw <= missed }
func anyOrder(int32, int32) bool           { return true }

// reads are the wr edges by their readers.
func (c *component) reads() [][]*edge {
	reads := make([][]*edge, len(c.txns))
	for i := range c.edges {
		if e := &c.edges[i]; e.kind == WR {
			reads[e.to] = append(reads[e.to], e)
		}
	}
	return reads
}

// overwritten looks for a transaction that read of another one, and read a row as it was before that one wrote it.
func overwritten(when func(saw, missed int32) bool) func(*component) (*Witness, bool) {
	return func(c *component) (w *Witness, sure bool) {
		work := maxWork
		reads, writer := c.reads(), make([]int32, len(c.txns)) // writer: one more than the last transaction that was asked for and read of this one
		for i := range c.edges {
			e := &c.edges[i]
			if e.kind != RW || e.pred || w.least() || !slices.ContainsFunc(reads[e.from], func(r *edge) bool { return c.mayWrite(r.from, e) }) {
				continue
			}
			for _, r := range reads[e.from] {
				writer[r.from] = e.from + 1
			}
			c.later(e, &work, func(last *edge, way func() []*edge) bool {
				if writer[last.to] != e.from+1 {
					return false
				}
				for _, r := range reads[e.from] {
					if r.from == last.to && when(r.ts, e.fs) {
						w = c.nearer(w, append(way(), r), map[bool]string{true: anomaly.Vanishes, false: anomaly.Fractured}[sameOrEarlier(r.ts, e.fs)])
						return true
					}
				}
				return false
			})
		}
		return w, w != nil || work > 0
	}
}

// lostUpdate looks for a cycle over one row of ww and one rw (G-cursor): a transaction that read a version, and wrote a later one over another
// transaction's. That it read that one, too, does not matter: the definition counts each read, and asks for no order.
func lostUpdate(c *component) (w *Witness, sure bool) {
	work := maxWork
	for i := range c.edges {
		e := &c.edges[i]
		if e.kind != RW || e.pred || w.least() || !c.mayWrite(e.from, e) {
			continue
		}
		c.later(e, &work, func(last *edge, way func() []*edge) bool {
			if last.to != e.from || last == e {
				return false
			}
			w = c.nearer(w, way(), anomaly.LostUpdate)
			return true
		})
	}
	return w, w != nil || work > 0
}

// causal looks for a transaction that read a row as it was before another one wrote it which precedes the reader by so and wr.
func causal(c *component) (w *Witness, sure bool) {
	d, work := c.graph(WR|SO, false, false, nil), maxWork
	onward := c.onward(WR | SO) // so that only earlier transactions precede one
	ahead := onward && c.onward(WW)
	for i := range c.edges {
		e := &c.edges[i]
		if e.kind != RW || e.pred || w.least() || ahead && e.to > e.from {
			continue
		}
		c.later(e, &work, func(last *edge, way func() []*edge) bool {
			if onward && last.to > e.from {
				return false
			}
			limit := math.MaxInt
			if w != nil {
				limit = len(w.Steps) - 1
			}
			p := d.path(last.to, e.from, &work, limit)
			if p != nil {
				w = c.nearer(w, append(way(), p...), anomaly.CausalViolation)
			}
			return p != nil
		})
	}
	return w, w != nil || work > 0
}

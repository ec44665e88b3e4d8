package inferred

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"wirecheck/anomaly"
	"wirecheck/oracle/level"
)

// loose is a key whose versions are not all in a known order.
type loose struct {
	info    *keyInfo
	parent  map[int32]int32 // of each version: one that is known to come before it, or none
	readers map[int32][]access
}

// orders decides levels by the orders that the versions of keys may have. A level is satisfied if there is an order in which nothing breaks it, and
// broken if there is none (Biswas and Enea 2019; Huang et al. 2023, PolySI). It tries orders that are likely first, and, if the history is small, all.
type orders struct {
	c      *checker
	g      *level.Graph
	ids    []uint64
	txns   []level.Txn
	number map[[2]int32]uint32 // of what a transaction wrote to a key: only its last version counts
	pairs  []pair
	tries  int
	edges  []edge // the known ones, with session order and real time
}

// pair is two versions of a key of which either may be the first. first is the one that is; none: not chosen.
type pair struct {
	key   *loose
	a, b  int32
	first int32
}

// mostOrders bounds the judgements of graphs in the search for an order.
const mostOrders = 50_000

// newOrders begins with the edges that are known: data, and those for the levels alone.
func newOrders(c *checker, data []edge) *orders {
	o := &orders{c: c, g: level.NewGraph(), number: map[[2]int32]uint32{}, edges: inOrderOf(c)}
	o.ids, o.txns = transactions(c, o.g)
	for _, edges := range [][]edge{data, c.reread} {
		for i := range edges {
			o.addEdge(&edges[i])
		}
	}
	return o
}

// orderAlone reports whether nothing is in doubt but the order of versions.
func orderAlone(c *checker) bool {
	return len(c.loose) > 0 && !slices.ContainsFunc(c.doubts, func(why string) bool { return why != noOrder })
}

func (o *orders) version(a access) uint32 {
	at := [2]int32{o.c.ids[a.txn][a.op], a.txn}
	if o.number[at] == 0 {
		o.number[at] = uint32(len(o.number) + 1)
	}
	return o.number[at]
}

// add tells the levels of an edge.
func (o *orders) add(kind kinds, from, to access) {
	e := level.Edge{From: o.ids[from.txn], To: o.ids[to.txn], FromStatement: from.op, ToStatement: to.op}
	switch kind {
	case ww:
		e.Kind, e.Old, e.New = level.WW, o.version(from), o.version(to)
	case wr:
		e.Kind, e.New = level.WR, o.version(from)
	default:
		e.Kind, e.New = level.RW, o.version(to)
	}
	o.g.AddEdge(e)
}

func (o *orders) addEdge(e *edge) { o.add(e.kind, access{e.from, e.fromOp}, access{e.to, e.toOp}) }

// before draws the edges of version a of a key and a later one.
func (o *orders) before(key *loose, a, b int32) {
	x, y := &o.c.versions[a], &o.c.versions[b]
	w := access{y.writer, y.op}
	o.add(ww, access{x.writer, x.op}, w)
	for _, r := range key.readers[a] {
		if r.txn != w.txn {
			o.add(rw, r, w)
		}
	}
}

// decide settles the verdicts of the levels that the known edges do not break.
func (o *orders) decide(vs []level.Verdict) {
	held := map[string]bool{}
	known := o.g.Mark()
	open := func(v level.Verdict) bool { return v.State == level.Satisfied && !held[v.Level] }
	try := func(order []int32) {
		o.in(order)
		for _, v := range o.g.Judge() {
			held[v.Level] = held[v.Level] || v.State == level.Satisfied
		}
		o.g.Cut(known)
	}
	for order := range o.likely() {
		if try(order); !slices.ContainsFunc(vs, open) {
			return
		}
	}
	small := o.c.coverage.Committed+o.c.coverage.Inferred <= mostExact
	if small {
		o.execute(vs, held, open)
	}
	small = small && o.choices()
	for i := range vs {
		v := &vs[i]
		if !open(*v) {
			continue
		}
		v.State = level.Unknown
		for k := range vs[:i] { // the weaker levels stand in front
			if vs[k].State == level.Broken && level.Implies(v.Level, vs[k].Level) {
				v.State, v.Witness = level.Broken, vs[k].Witness
			}
		}
		l, _ := level.Parse(v.Level)
		if v.State == level.Unknown {
			o.force(v, l, try)
		}
		if v.State == level.Unknown && !held[v.Level] && small {
			found, decided := o.search(l)
			o.g.Cut(known)
			switch {
			case found:
				v.State = level.Satisfied
			case decided:
				v.State, v.Witness = level.Broken, o.noOrder()
			}
		}
	}
	for i := range vs {
		if v := &vs[i]; v.State == level.Unknown && held[v.Level] {
			v.State = level.Satisfied
		}
	}
}

// force looks for the orders that a level forces. They break it, or an order of the transactions that keeps them is tried.
func (o *orders) force(v *level.Verdict, l *level.Level, try func([]int32)) {
	r, ok := rules[v.Level]
	if !ok {
		return
	}
	f, order, circle := findForced(o.c, r, slices.Concat(o.edges, o.c.reread))
	switch {
	case order != nil:
		try(order)
	case circle != nil:
		known := o.g.Mark()
		for _, e := range f.edges[f.known:] {
			o.addEdge(&e)
		}
		if w := o.g.Decide(l); w.State == level.Broken {
			v.State, v.Witness = level.Broken, w.Witness
			w.Witness.Class, w.Witness.Name = "", anomaly.NoOrder
		}
		o.g.Cut(known)
	}
}

// executed are the levels that executions define, each in front of the weaker ones (Cerone, Bernardi and Gotsman 2015): kinds say what is kept apart, and first
// that of two that write one key one commits before the other one begins.
var executed = []executable{
	{level: "strict serializable", kinds: so | rt}, {level: "strong session serializable", kinds: so}, {level: "PL-3", same: "PL-2.99"},
	{level: "strong snapshot isolation", kinds: so | rt, apart: true, first: true}, {level: "strong session snapshot isolation", kinds: so, apart: true, first: true},
	{level: "snapshot isolation", apart: true, first: true}, {level: "prefix consistency", kinds: so, apart: true},
}

// executable is a level that executions define. same is one that is broken wherever that is which no fact breaks, as without conditions PL-2.99 is.
type executable struct {
	level, same  string
	kinds        kinds
	apart, first bool
}

// execute settles the verdicts of the levels that executions of registers define, and of those that they imply.
func (o *orders) execute(vs []level.Verdict, held map[string]bool, open func(level.Verdict) bool) {
	if o.c.h.Lists() {
		return
	}
	for i := range executed {
		at := slices.IndexFunc(vs, func(v level.Verdict) bool { return v.Level == executed[i].level })
		if !open(vs[at]) {
			continue
		}
		found, decided := over(o, &executed[i]).search()
		for k := range vs {
			switch v := &vs[k]; {
			case found && level.Implies(executed[i].level, v.Level):
				held[v.Level] = true
			case decided && !found && (v.Level == executed[i].level || v.Level == executed[i].same):
				v.State, v.Witness = level.Broken, o.noOrder()
			}
		}
	}
}

// noOrder is the witness that there is no order.
func (o *orders) noOrder() *level.Witness {
	w := &level.Witness{Name: anomaly.NoOrder}
	for t, node := range o.c.node {
		if node {
			w.Txns = append(w.Txns, o.ids[t])
		}
	}
	return w
}

// likely are orders of the transactions in which the versions may have come.
func (o *orders) likely() iter.Seq[[]int32] {
	c := o.c
	return func(yield func([]int32) bool) {
		for _, use := range []kinds{ww | wr | rw | so | rt, ww | wr | rw, ww | wr | so, ww | wr, ww} {
			order := c.topological(slices.DeleteFunc(slices.Clone(o.edges), func(e edge) bool { return e.kind&use == 0 }))
			met := make([]bool, len(c.node))
			for _, t := range order {
				met[t] = true
			}
			for t, node := range c.node {
				if node && !met[t] {
					order = append(order, int32(t))
				}
			}
			if !yield(order) {
				return
			}
		}
	}
}

// in draws the edges that versions in the order of the transactions have.
func (o *orders) in(order []int32) {
	pos := make([]int32, len(o.c.node))
	for i, t := range order {
		pos[t] = int32(i)
	}
	for k := range o.c.loose {
		key := &o.c.loose[k]
		versions := slices.SortedFunc(maps.Keys(key.parent), func(a, b int32) int { return cmp.Compare(pos[o.c.versions[a].writer], pos[o.c.versions[b].writer]) })
		for i := 1; i < len(versions); i++ {
			o.before(key, versions[i-1], versions[i])
		}
	}
}

// choices lists the pairs of versions of which either may be the first; ok is false if there are too many.
func (o *orders) choices() (ok bool) {
	for k := range o.c.loose {
		key := &o.c.loose[k]
		versions := slices.Sorted(maps.Keys(key.parent))
		for i, a := range versions {
			for _, b := range versions[i+1:] {
				if o.c.versions[a].writer != o.c.versions[b].writer && !key.descends(a, b) && !key.descends(b, a) {
					o.pairs = append(o.pairs, pair{key, a, b, none})
				}
			}
		}
	}
	return len(o.pairs) < mostOrders/20
}

// descends reports whether a version is known to come behind another one.
func (l *loose) descends(v, from int32) bool {
	for n := 0; n <= len(l.parent); n++ {
		p, ok := l.parent[v]
		if !ok || p == none {
			return false
		}
		if p == from {
			return true
		}
		v = p
	}
	return false
}

// fits reports whether nothing breaks a level with one more pair in order.
func (o *orders) fits(l *level.Level, p *pair, first int32) bool {
	n := o.g.Mark()
	o.put(p, first)
	v := o.g.Decide(l)
	o.tries++
	o.g.Cut(n)
	return v.State != level.Broken
}

func (o *orders) put(p *pair, first int32) {
	if first == p.a {
		o.before(p.key, p.a, p.b)
	} else {
		o.before(p.key, p.b, p.a)
	}
}

// search tries the orders of the pairs that are not chosen yet: more edges break no less, so that it leaves out all orders in which a part is wrong.
func (o *orders) search(l *level.Level) (found, decided bool) {
	var chosen []*pair
	edges := o.g.Mark()
	defer func() {
		for _, p := range chosen {
			p.first = none
		}
		o.g.Cut(edges)
	}()
	choose := func(p *pair, first int32) {
		p.first = first
		chosen = append(chosen, p)
		o.put(p, first)
	}
	var open *pair
	for again := true; again; { // what follows from the choices so far
		again, open = false, nil
		for i := range o.pairs {
			p := &o.pairs[i]
			if p.first != none {
				continue
			}
			if o.tries > mostOrders {
				return false, false
			}
			a, b := o.fits(l, p, p.a), o.fits(l, p, p.b)
			switch {
			case !a && !b:
				return false, true
			case a && b:
				open = p
			case a:
				choose(p, p.a)
				again = true
			default:
				choose(p, p.b)
				again = true
			}
		}
	}
	if open == nil {
		return o.g.Decide(l).State == level.Satisfied, true
	}
	decided = true
	for _, first := range []int32{open.a, open.b} {
		n := o.g.Mark()
		open.first = first
		o.put(open, first)
		found, sure := o.search(l)
		o.g.Cut(n)
		open.first = none
		if found {
			return true, true
		}
		decided = decided && sure
	}
	return false, decided
}

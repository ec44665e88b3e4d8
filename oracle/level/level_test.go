package level

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/anomaly"
)

var cases = flag.Int("level-cases", 500, "random histories that are compared with brute force")

// op is a read of the version that a transaction wrote (-1: the initial one), or a write.
type op struct {
	write bool
	row   int
	from  int
}

// model is a small history whose version orders are known.
type model struct {
	txns []Txn
	ops  [][]op
	rows [][]int // by row: the transactions in the order of their versions
}

// random makes a model. It begins as an execution in snapshots of some serial order, of which a few reads and places are then wrong.
func random(r *rand.Rand) *model {
	n, rows := 2+r.IntN(3), 1+r.IntN(3)
	m := &model{rows: make([][]int, rows), ops: make([][]op, n)}
	faults, lag, sessions := r.IntN(3), r.IntN(3), 1+r.IntN(n)
	tick := map[int]uint64{}
	for t := range n {
		s := r.IntN(sessions)
		from := tick[s] + 1 + r.Uint64N(6)
		tick[s] = from + 1 + r.Uint64N(10)
		m.txns = append(m.txns, Txn{ID: uint64(t + 1), Session: uint64(s + 1), From: from, To: tick[s]})
		wrote := map[int]bool{}
		for range 1 + r.IntN(4) {
			row := r.IntN(rows)
			if r.IntN(2) == 0 && !wrote[row] {
				wrote[row] = true
				m.ops[t] = append(m.ops[t], op{write: true, row: row})
				m.rows[row] = append(m.rows[row], t)
			} else if !wrote[row] {
				from := -1
				if have := m.rows[row]; len(have) > 0 {
					if back := len(have) - 1 - r.IntN(lag+1); back >= 0 {
						from = have[back]
					}
				}
				m.ops[t] = append(m.ops[t], op{row: row, from: from})
			}
		}
	}
	for range faults {
		row := r.IntN(rows)
		if k := len(m.rows[row]); k > 1 && r.IntN(3) == 0 {
			i := r.IntN(k - 1)
			m.rows[row][i], m.rows[row][i+1] = m.rows[row][i+1], m.rows[row][i]
			continue
		}
		t := r.IntN(n)
		for i := range m.ops[t] {
			if o := &m.ops[t][i]; !o.write && o.row == row && len(m.rows[row]) > 0 {
				if from := m.rows[row][r.IntN(len(m.rows[row]))]; from != t {
					o.from = from
				}
			}
		}
	}
	return m
}

func (m *model) place(row, t int) int { return slices.Index(m.rows[row], t) }

func (m *model) version(row, place int) uint32 { return uint32(1 + row*100 + place + 1) }

// graph draws the edges by their definitions.
func (m *model) graph() *Graph {
	g := NewGraph()
	for _, t := range m.txns {
		g.AddTxn(t)
	}
	add := func(k Kind, a, b int, old, new uint32, fs, ts int) {
		g.AddEdge(Edge{From: uint64(a + 1), To: uint64(b + 1), Kind: k, Old: old, New: new, FromStatement: int32(fs), ToStatement: int32(ts)})
	}
	at := func(row, t int) int {
		return slices.IndexFunc(m.ops[t], func(o op) bool { return o.write && o.row == row })
	}
	for row, order := range m.rows {
		for i, t := range order {
			g.Wrote(uint64(t + 1))
			if i > 0 {
				add(WW, order[i-1], t, m.version(row, i-1), m.version(row, i), at(row, order[i-1]), at(row, t))
			}
		}
	}
	for t, ops := range m.ops {
		for i, o := range ops {
			if o.write {
				continue
			}
			p := m.place(o.row, o.from)
			if o.from >= 0 {
				add(WR, o.from, t, 0, m.version(o.row, p), at(o.row, o.from), i)
			}
			for q := p + 1; q < len(m.rows[o.row]); q++ {
				if u := m.rows[o.row][q]; u != t {
					add(RW, t, u, m.version(o.row, p), m.version(o.row, q), i, at(o.row, u))
					break
				}
			}
		}
	}
	return g
}

// before is a relation between transactions.
type before func(a, b int) bool

func (m *model) so(a, b int) bool { return a < b && m.txns[a].Session == m.txns[b].Session }
func (m *model) rt(a, b int) bool { return m.txns[a].To < m.txns[b].From }
func (m *model) ww(a, b int) bool {
	return slices.ContainsFunc(m.rows, func(o []int) bool {
		return slices.Contains(o, a) && slices.Contains(o, b) && slices.Index(o, a) < slices.Index(o, b)
	})
}
func (m *model) wr(a, b int) bool {
	return slices.ContainsFunc(m.ops[b], func(o op) bool { return !o.write && o.from == a })
}

// orders calls f with all orders of so many things until it gives true.
func orders(n int, f func([]int) bool) bool {
	order := make([]int, 0, n)
	var try func() bool
	try = func() bool {
		if len(order) == n {
			return f(order)
		}
		for x := range n {
			if !slices.Contains(order, x) {
				order = append(order, x)
				if try() {
					return true
				}
				order = order[:len(order)-1]
			}
		}
		return false
	}
	return try()
}

// serial reports whether an order of the transactions that are in explains all their reads, and places, one after the other.
func (m *model) serial(in func(int) bool, keep ...before) bool {
	return orders(len(m.txns), func(order []int) bool {
		pos := make([]int, len(order))
		for i, t := range order {
			pos[t] = i
		}
		last := make([]int, len(m.rows))
		for i := range last {
			last[i] = -1
		}
		for i, t := range order {
			for _, k := range keep {
				if slices.ContainsFunc(order[i+1:], func(u int) bool { return k(u, t) }) {
					return false
				}
			}
			if !in(t) {
				continue
			}
			for _, o := range m.ops[t] {
				if !o.write && o.from != last[o.row] {
					return false
				}
			}
			for _, o := range m.ops[t] {
				if o.write {
					for _, u := range m.rows[o.row] {
						if in(u) && u != t && (m.place(o.row, u) < m.place(o.row, t)) != (pos[u] < pos[t]) {
							return false
						}
					}
					last[o.row] = t
				}
			}
		}
		return true
	})
}

// snapshots reports whether starts and commits can be ordered so that each transaction reads the state at its start; first says that of two
// that write one row, one ends before the other starts. keep orders the end of one before the start of another.
func (m *model) snapshots(first bool, keep ...before) bool {
	n := len(m.txns)
	started, done := make([]bool, n), make([]bool, n)
	var try func(left int) bool
	try = func(left int) bool {
		if left == 0 {
			return true
		}
		for t := range n {
			at := started
			switch {
			case !started[t]:
				if !m.starts(t, done, first, keep) {
					continue
				}
			case !done[t]:
				if at = done; slices.ContainsFunc(m.rows, func(o []int) bool { // an older version is to come
					i := slices.Index(o, t)
					return i > 0 && !done[o[i-1]]
				}) {
					continue
				}
			default:
				continue
			}
			at[t] = true
			if try(left - 1) {
				return true
			}
			at[t] = false
		}
		return false
	}
	return try(2 * n)
}

// starts reports whether a transaction can start when some have committed.
func (m *model) starts(t int, done []bool, first bool, keep []before) bool {
	for u := range m.txns {
		if !done[u] && (first && m.ww(u, t) || slices.ContainsFunc(keep, func(k before) bool { return k(u, t) })) {
			return false
		}
	}
	return !slices.ContainsFunc(m.ops[t], func(o op) bool {
		last := -1
		for _, u := range m.rows[o.row] {
			if u != t && done[u] {
				last = u
			}
		}
		return !o.write && last != o.from
	})
}

// closure is the transitive closure of a union.
func (m *model) closure(of ...before) before {
	n := len(m.txns)
	r := make([][]bool, n)
	for a := range n {
		r[a] = make([]bool, n)
		for b := range n {
			r[a][b] = slices.ContainsFunc(of, func(f before) bool { return f(a, b) })
		}
	}
	for k := range n {
		for a := range n {
			for b := range n {
				r[a][b] = r[a][b] || r[a][k] && r[k][b]
			}
		}
	}
	return func(a, b int) bool { return r[a][b] }
}

// axiom reports whether no transaction read a row as it was before one wrote it which it has to see (Biswas and Enea 2019).
func (m *model) axiom(sees func(u, t, read int) bool) bool {
	for t, ops := range m.ops {
		for i, o := range ops {
			if o.write {
				continue
			}
			for _, u := range m.rows[o.row][m.place(o.row, o.from)+1:] {
				if u != t && sees(u, t, i) {
					return false
				}
			}
		}
	}
	return true
}

func (m *model) acyclic(of ...before) bool {
	r := m.closure(of...)
	for t := range m.txns {
		if r(t, t) {
			return false
		}
	}
	return true
}

// brute says which levels a model satisfies, by their definitions.
func brute(m *model) map[string]bool {
	all := func(int) bool { return true }
	writes := func(t int) bool { return slices.ContainsFunc(m.ops[t], func(o op) bool { return o.write }) }
	g1 := m.acyclic(m.ww, m.wr)
	view := func(ok func(saw, read int) bool) bool {
		return g1 && m.axiom(func(u, t, read int) bool {
			for i, o := range m.ops[t] {
				if !o.write && o.from == u && ok(i, read) {
					return true
				}
			}
			return false
		})
	}
	lost := false // a cycle over one row of ww and one rw
	for t, ops := range m.ops {
		for _, w := range ops {
			lost = lost || w.write && slices.ContainsFunc(ops, func(o op) bool { return !o.write && o.row == w.row && m.place(o.row, o.from)+1 < m.place(w.row, t) })
		}
	}
	atomic := view(func(int, int) bool { return true })
	sowr, co := m.closure(m.so, m.wr), m.closure(m.so, m.wr, m.ww)
	update := g1
	for t := range m.txns {
		update = update && m.serial(func(u int) bool { return u == t || writes(u) })
	}
	rw := func(a, b int) bool {
		return slices.ContainsFunc(m.ops[a], func(o op) bool { return !o.write && a != b && m.place(o.row, b) > m.place(o.row, o.from) })
	}
	psi := m.acyclic(m.so, m.wr, m.ww)
	for a := range m.txns {
		for b := range m.txns {
			psi = psi && !(rw(a, b) && co(b, a))
		}
	}
	return map[string]bool{
		"PL-1": m.acyclic(m.ww), "PL-2": g1, "cursor stability": g1 && !lost,
		"read committed with monotonic reads": view(func(saw, read int) bool { return saw < read }),
		"monotonic atomic view":               view(func(saw, read int) bool { return saw <= read }),
		"read atomic":                         atomic, "update atomic": atomic && !lost, "PL-2.99": m.serial(all), "PL-3U": update,
		"causal":                      m.acyclic(m.so, m.wr, m.ww) && m.axiom(func(u, t, _ int) bool { return sowr(u, t) }),
		"parallel snapshot isolation": psi, "prefix consistency": m.snapshots(false, m.so), "snapshot isolation": m.snapshots(true),
		"strong session snapshot isolation": m.snapshots(true, m.so), "strong snapshot isolation": m.snapshots(true, m.so, m.rt),
		"PL-3": m.serial(all), "strong session serializable": m.serial(all, m.so), "strict serializable": m.serial(all, m.so, m.rt),
	}
}

// TestBrute compares the verdicts of all levels with brute force over all orders of small histories.
func TestBrute(t *testing.T) {
	count, views := map[string][2]int{}, map[string]int{}
	for seed := range uint64(*cases) {
		m := random(rand.New(rand.NewPCG(seed, 5)))
		want := brute(m)
		g := m.graph()
		vs := g.Judge()
		for _, v := range vs {
			n := count[v.Level]
			if want[v.Level] {
				n[0]++
			} else {
				n[1]++
			}
			count[v.Level] = n
			proof := g.Certificate(v.Level, nil)
			if err := g.Check(v.Level, proof); (err == nil) != want[v.Level] {
				t.Fatalf("seed %d: %s: %v\n%+v", seed, v.Level, err, proof)
			}
			if proof != nil && len(proof.Views) > 0 {
				views[v.Level]++
				if err := g.Check(v.Level, &Certificate{Order: proof.Order}); err == nil {
					t.Fatalf("seed %d: %s: the views are not needed: %+v", seed, v.Level, proof)
				}
			}
			if proof != nil && g.edges.n > 0 && v.Level == "PL-3" {
				if slices.Reverse(proof.Order); g.Check(v.Level, proof) == nil {
					t.Fatalf("seed %d: the reverse of a certificate is one: %v", seed, proof.Order)
				}
			}
			if (v.State == Satisfied) != want[v.Level] {
				t.Fatalf("seed %d: %s is %s, brute force says %v\n%v\nrows %v\ntransactions %v\n%v", seed, v.Level, v.State, want[v.Level], m.ops, m.rows, m.txns, v.Witness)
			}
		}
		for i := range Levels {
			for _, weaker := range Levels[i].Implies {
				if want[Levels[i].Name] && !want[weaker] {
					t.Fatalf("seed %d: %s holds and %s does not\n%v\nrows %v\ntransactions %v", seed, Levels[i].Name, weaker, m.ops, m.rows, m.txns)
				}
			}
		}
	}
	if views["causal"] == 0 || views["parallel snapshot isolation"] == 0 {
		t.Errorf("certificates with views: %v", views)
	}
	for name, n := range count {
		if n[0] == 0 || n[1] == 0 {
			t.Errorf("%s holds %d times and is broken %d times: the test has lost its force", name, n[0], n[1])
		}
	}
}

// TestViews: of two readers, each of which sees one of two writes, each needs an order of its own. A certificate of which something is changed proves nothing.
func TestViews(t *testing.T) {
	g := NewGraph()
	for id := range uint64(4) {
		g.AddTxn(Txn{ID: id + 1, Session: id + 1, From: 1, To: 10 + id})
	}
	for _, e := range []Edge{{From: 1, Kind: WR, To: 3, New: 1}, {From: 3, Kind: RW, To: 2, New: 2}, {From: 2, Kind: WR, To: 4, New: 2}, {From: 4, Kind: RW, To: 1, New: 1}} {
		g.AddEdge(e)
	}
	for _, name := range []string{"causal", "parallel snapshot isolation", "PL-3U"} {
		p := g.Certificate(name, nil)
		if err := g.Check(name, p); err != nil || len(p.Views) != 1 || len(p.Views[0]) != 4 {
			t.Fatalf("%s: %v, %+v", name, err, p)
		}
		view := p.Views[0]
		for _, wrong := range []*Certificate{nil, {}, {Order: p.Order}, {Order: p.Order[1:], Views: p.Views}, {Order: p.Order, Views: [][]uint64{view[:3]}}, {Order: p.Order, Views: [][]uint64{{view[0], view[0], view[1], view[2]}}},
			{Order: p.Order, Views: [][]uint64{{view[3], view[2], view[1], view[0]}}}, {Order: p.Order, Views: [][]uint64{append(slices.Clone(view), 9)}}} {
			if g.Check(name, wrong) == nil {
				t.Errorf("%s: %+v is not proved by %+v", name, p, wrong)
			}
		}
	}
	if g.Check("snapshot isolation", g.Certificate("snapshot isolation", nil)) == nil {
		t.Error("a long fork is no snapshot isolation")
	}
	for v, after := range []uint64{1, 2} { // a third write of each row in other orders: two versions follow one
		g.AddEdge(Edge{From: after, Kind: WW, To: after%2 + 3, Old: 1, New: uint32(v + 3)})
	}
	if p := g.Certificate("read atomic", nil); p != nil {
		t.Errorf("the versions of a row have no order, and %+v is a proof", p)
	}
}

// TestViewsDecide: of many transactions at the same time, each of which reads what three others then overwrite, the search for a cycle with one rw ends
// early. The views prove that there is none; with one edge more there is one.
func TestViewsDecide(t *testing.T) {
	const batches, size = 2000, 10
	for _, broken := range []bool{false, true} {
		g := NewGraph()
		for i := range uint64(batches * size) {
			g.AddTxn(Txn{ID: i + 1, Session: i%size + 1, From: i/size*100 + 1, To: i/size*100 + 50 + i%size})
		}
		for i := range uint64(batches * size) {
			batch, own := i/size*size, i%size
			for k := range uint64(3) {
				other := batch + (own+k+1)%size
				g.AddEdge(Edge{From: i + 1, Kind: RW, To: other + 1, New: uint32(other + 1)})
				if batch > 0 {
					g.AddEdge(Edge{From: other + 1 - size, Kind: WR, To: i + 1, New: uint32(other + 1 - size)})
				}
			}
			if batch > 0 {
				g.AddEdge(Edge{From: i + 1 - size, Kind: WW, To: i + 1, Old: uint32(i + 1 - size), New: uint32(i + 1)})
			}
		}
		if broken {
			last := uint64(batches*size - 1)
			g.AddEdge(Edge{From: last + 1, Kind: WR, To: last, New: uint32(last + 1)})
		}
		for _, name := range []string{"parallel snapshot isolation", "causal"} {
			l, _ := Parse(name)
			if v := g.Decide(l); (v.State == Satisfied) == broken {
				t.Errorf("%s, broken %v: %s", name, broken, v.State)
			}
		}
	}
}

// TestShortest compares the lengths of witnesses with those of all cycles.
func TestShortest(t *testing.T) {
	longer := 0
	for seed := range uint64(*cases) {
		m := random(rand.New(rand.NewPCG(seed, 6)))
		g := m.graph()
		edges := g.edges.list(0)
		so, _ := g.order(g.txns)
		edges = append(edges, so...)
		for a := range m.txns {
			for b := range m.txns {
				if m.rt(a, b) {
					edges = append(edges, edge{from: int32(a), to: int32(b), kind: RT})
				}
			}
		}
		for name, adjacent := range map[string]bool{"PL-1": true, "PL-2": true, "PL-3": true, "strong session serializable": true, "strict serializable": true,
			"snapshot isolation": false, "strong session snapshot isolation": false, "strong snapshot isolation": false} {
			l, _ := Parse(name)
			want := 0
			for n := 2; n <= 2*len(m.txns) && want == 0; n++ {
				if closes(edges, nil, n, forms[name].kinds, adjacent) {
					want = n
				}
			}
			got := 0
			if w := g.Decide(l).Witness; w != nil {
				got = len(w.Steps)
			}
			if got != want {
				t.Fatalf("seed %d: the witness of %s has %d steps, the shortest cycle %d\n%v\nrows %v\ntransactions %v", seed, name, got, want, m.ops, m.rows, m.txns)
			}
			if want > 2 {
				longer++
			}
		}
	}
	if longer == 0 {
		t.Error("no cycle has more than two steps: the test has lost its force")
	}
}

// closes reports whether a walk can become a cycle of n edges of some kinds, with adjacent rw or without.
func closes(edges, walk []edge, n int, kinds Kind, adjacent bool) bool {
	fits := func(a, b edge) bool { return a.to == b.from && (adjacent || a.kind != RW || b.kind != RW) }
	if len(walk) == n {
		return fits(walk[n-1], walk[0])
	}
	return slices.ContainsFunc(edges, func(e edge) bool {
		return e.kind&kinds != 0 && (len(walk) == 0 || fits(walk[len(walk)-1], e)) && closes(edges, append(slices.Clone(walk), e), n, kinds, adjacent)
	})
}

// TestFacts: what is no cycle breaks the levels that forbid it, and no other.
func TestFacts(t *testing.T) {
	for _, tt := range []struct {
		class anomaly.Class
		want  string
	}{{anomaly.G1a, "[PL-2]"}, {anomaly.FutureRead, "[PL-2]"}, {anomaly.DirtyUpdate, "[PL-2]"}, {anomaly.Internal, "[read atomic]"}, {"unheard of", "[]"}} {
		g := NewGraph()
		g.AddTxn(Txn{ID: 1})
		g.AddFact(Fact{Class: tt.class, Txns: []uint64{1}})
		if got := fmt.Sprint(Weakest(g.Judge())); got != tt.want {
			t.Errorf("%s breaks %s, want %s", tt.class, got, tt.want)
		}
	}
}

// TestParse: each level is found by its name and aliases, and none has two.
func TestParse(t *testing.T) {
	for _, l := range Levels {
		for _, name := range append([]string{l.Name}, l.Aliases...) {
			if got, err := Parse(name); err != nil || got.Name != l.Name {
				t.Errorf("%q is %v, %v", name, got, err)
			}
		}
		if l.Forbids == "" || l.Source == "" {
			t.Errorf("%s is not complete", l.Name)
		}
	}
	if _, err := Parse("chaos"); err == nil {
		t.Error("chaos is a level")
	}
}

// TestOpen: a fact that breaks all levels that ask for other dependencies than ww leaves ww alone; one that breaks stronger levels leaves more, and so do
// transactions at different levels.
func TestOpen(t *testing.T) {
	for _, test := range []struct {
		class anomaly.Class
		own   []Own
		want  Kind
	}{
		{anomaly.G1b, []Own{OwnPL3}, WW},
		{anomaly.G1b, []Own{OwnPL3, OwnPL1}, WW | WR | RW},
		{anomaly.Internal, []Own{OwnPL3}, WW | WR | RW},
		{anomaly.DuplicateElements, []Own{OwnPL3}, 0},
	} {
		g := NewGraph()
		for i, o := range test.own {
			g.AddTxn(Txn{ID: uint64(i + 1), Session: 1, Own: o})
		}
		g.AddFact(Fact{Class: test.class, Txns: []uint64{1}})
		if got := g.Open(); got != test.want {
			t.Errorf("%s at %v: %d is open, want %d", test.class, test.own, got, test.want)
		}
	}
}

package level

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Check checks a certificate against all dependencies between the transactions of the graph, session order and real time, and knows nothing of how it
// was made.
func (g *Graph) Check(name string, p *Certificate) error {
	f, ok := forms[name]
	if !ok || p == nil {
		return fmt.Errorf("no order proves %s", name)
	}
	commit, err := g.leads(&f, f.kinds, p.Order)
	if err != nil || f.saw == nil && !f.own && f.views == 0 {
		return err
	}
	rows, err := g.chains(commit)
	if err != nil {
		return err
	}
	if f.views == 0 {
		return g.sees(&f, rows, commit)
	}
	shown := make([]bool, len(g.txns))
	g.show(&f, rows, commit, shown)
	for _, view := range p.Views {
		points, err := g.viewed(p.Order, commit, view)
		if err != nil {
			return err
		}
		places, err := g.leads(&f, f.views, points)
		if err != nil {
			return fmt.Errorf("in a view, %w", err)
		}
		g.show(&f, rows, places, shown)
	}
	if i := slices.Index(shown, false); i >= 0 {
		return fmt.Errorf("no view shows what transaction %d read", g.txns[i].ID)
	}
	return nil
}

// leads gives the places of the commits, from 1 on, in an order in which all edges of some kinds lead onward.
func (g *Graph) leads(f *form, kinds Kind, points []Point) (commit []int, err error) {
	start := make([]int, len(g.txns))
	commit = make([]int, len(g.txns))
	for i, p := range points {
		at, ok := g.at.of(p.Txn)
		if !ok {
			continue // of the rest of the history
		}
		if !p.Start {
			commit[at] = i + 1
		}
		if p.Start || !f.split {
			start[at] = i + 1
		}
	}
	for i, t := range g.txns {
		if start[i] == 0 || commit[i] == 0 || start[i] > commit[i] {
			return nil, fmt.Errorf("transaction %d has no start before its commit", t.ID)
		}
	}
	for e := range g.edges.all() {
		from, to := commit[e.from], start[e.to]
		switch {
		case e.kind&kinds == 0 || !f.use(g.txns, &e):
			continue
		case e.kind == RW:
			from, to = start[e.from], commit[e.to]
		case e.kind == WW && f.prefix:
			to = commit[e.to]
		}
		if from >= to {
			return nil, fmt.Errorf("transaction %d is not before %d (%s)", g.txns[e.from].ID, g.txns[e.to].ID, e.kind)
		}
	}
	return commit, g.timely(f, kinds, points)
}

// timely checks that nobody stands behind one that began after its end, in its session or in real time.
func (g *Graph) timely(f *form, kinds Kind, points []Point) error {
	latest := map[uint64]Txn{} // by session, and of all under 0, in the order of the points: who started last
	for _, p := range points {
		at, ok := g.at.of(p.Txn)
		if !ok {
			continue
		}
		t := g.txns[at]
		if f.split && !p.Start {
			for _, in := range []uint64{t.Session, 0} { // whoever started before this commit did not begin after its end
				if l, ok := latest[in]; ok && l.ID != t.ID && t.To < l.From && (in == 0 && kinds&RT != 0 || in != 0 && kinds&SO != 0) {
					return fmt.Errorf("transaction %d ended before %d began, and commits behind its start", t.ID, l.ID)
				}
			}
			continue
		}
		for _, in := range []uint64{t.Session, 0} {
			l, ok := latest[in]
			if !f.split && ok && t.To < l.From && (in == 0 && kinds&RT != 0 || in != 0 && kinds&SO != 0) {
				return fmt.Errorf("transaction %d ended before %d began, and stands behind it", t.ID, l.ID)
			}
			if !ok || t.From > l.From {
				latest[in] = t
			}
		}
	}
	return nil
}

// viewed is an order of all transactions in which those of a view stand as the view says, at the places that they have together.
func (g *Graph) viewed(order []Point, commit []int, view []uint64) ([]Point, error) {
	order, places := slices.Clone(order), make([]int, len(view))
	for i, id := range view {
		at, ok := g.at.of(id)
		if !ok {
			return nil, fmt.Errorf("transaction %d of a view is not known", id)
		}
		places[i] = commit[at] - 1
	}
	slices.Sort(places)
	for i, id := range view {
		order[places[i]] = Point{Txn: id}
	}
	return order, nil
}

// show marks the transactions whose loose edges lead onward in an order, over their rows also to those that wrote later versions; and those that have none.
func (g *Graph) show(f *form, rows *chains, places []int, shown []bool) {
	first := make([]int, len(rows.head)) // by version: the place of the first one that wrote it or a later one
	for i, v := range slices.Backward(rows.list) {
		first[v] = places[rows.writer[v]]
		if i+1 < len(rows.list) && rows.head[rows.list[i+1]] == rows.head[v] {
			first[v] = min(first[v], first[rows.list[i+1]])
		}
	}
	misses := make([]bool, len(shown))
	for e := range g.edges.all() {
		if f.loose(g.txns, &e) {
			misses[e.from] = misses[e.from] || places[e.from] > places[e.to] || !e.pred && places[e.from] > first[e.new]
		}
	}
	for i := range shown {
		shown[i] = shown[i] || !misses[i]
	}
}

// chains are the versions of rows in their order.
type chains struct {
	list   []uint32 // the versions, row by row
	head   []uint32 // by version: one that stands for its row
	writer []int32
	of     []int32 // those that transaction t wrote are by[of[t]:of[t+1]]
	by     []uint32
}

// chains makes the chains. All ww lead onward in the order of the commits. It is an error if the versions of a row have no order: each has to be joined to
// the next one.
func (g *Graph) chains(commit []int) (*chains, error) {
	most := uint32(0)
	for e := range g.edges.all() {
		most = max(most, e.old, e.new)
	}
	c := &chains{head: make([]uint32, most+1), writer: slices.Repeat([]int32{-1}, int(most+1)), of: make([]int32, len(g.txns)+1)}
	wrote := func(v uint32, t int32) {
		if v != 0 && c.writer[v] < 0 {
			c.writer[v], c.list, c.head[v] = t, append(c.list, v), v
			c.of[t+1]++
		}
	}
	find := func(v uint32) uint32 {
		for ; c.head[v] != v; v = c.head[v] {
			c.head[v] = c.head[c.head[v]]
		}
		return v
	}
	for e := range g.edges.all() {
		switch {
		case e.kind == WR:
			wrote(e.new, e.from)
		case e.kind == WW:
			wrote(e.old, e.from)
			fallthrough
		case !e.pred:
			wrote(e.new, e.to)
		}
		if e.kind == WW && e.old != 0 && e.new != 0 {
			c.head[find(e.old)] = find(e.new)
		}
	}
	for _, v := range c.list {
		c.head[v] = find(v)
	}
	slices.SortFunc(c.list, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(c.head[a], c.head[b]), cmp.Compare(commit[c.writer[a]], commit[c.writer[b]]))
	})
	at, joined := make([]int, most+1), make([]bool, len(c.list))
	for i, v := range c.list {
		at[v] = i
		joined[i] = i == 0 || c.head[c.list[i-1]] != c.head[v]
	}
	for e := range g.edges.all() {
		if e.kind == WW && e.old != 0 && e.new != 0 && at[e.new] == at[e.old]+1 {
			joined[at[e.new]] = true
		}
	}
	if slices.Contains(joined, false) {
		return nil, errors.New("the versions of a row have no order")
	}
	for t := range g.txns {
		c.of[t+1] += c.of[t]
	}
	c.by = make([]uint32, len(c.list))
	place := slices.Clone(c.of)
	for _, v := range c.list {
		t := c.writer[v]
		c.by[place[t]] = v
		place[t]++
	}
	return c, nil
}

func (c *chains) written(t int32) []uint32 { return c.by[c.of[t]:c.of[t+1]] }

// seen is that a transaction read of another one, in the statement at a place, and that this one wrote a row.
type seen struct {
	row       uint32
	commit    int
	statement int32
}

// sees checks that no transaction missed a version that was before what it saw (form.saw), or before its own one (form.own). Since all ww lead onward, the
// versions of a row stand in the order of the commits of those that wrote them.
func (g *Graph) sees(f *form, rows *chains, commit []int) error {
	saw, missed := make([][]edge, len(g.txns)), make([][]edge, len(g.txns))
	for e := range g.edges.all() {
		if e.kind == RW && !e.pred {
			missed[e.from] = append(missed[e.from], e)
		}
	}
	for e := range g.edges.all() {
		if e.kind == WR && f.saw != nil && missed[e.to] != nil {
			saw[e.to] = append(saw[e.to], e)
		}
	}
	for t := range g.txns {
		var wrote []seen
		for _, e := range saw[t] {
			for _, v := range rows.written(e.from) {
				wrote = append(wrote, seen{rows.head[v], commit[e.from], e.ts})
			}
		}
		slices.SortFunc(wrote, func(a, b seen) int { return cmp.Compare(a.row, b.row) })
		for _, e := range missed[t] {
			in := rows.head[e.new]
			i, _ := slices.BinarySearchFunc(wrote, in, func(s seen, row uint32) int { return cmp.Compare(s.row, row) })
			for ; i < len(wrote) && wrote[i].row == in; i++ {
				if s := wrote[i]; s.commit >= commit[e.to] && f.saw(s.statement, e.fs) {
					return fmt.Errorf("transaction %d missed what one wrote of which it had read", g.txns[t].ID)
				}
			}
			for _, v := range rows.written(int32(t)) {
				if f.own && rows.head[v] == in && commit[t] > commit[e.to] {
					return fmt.Errorf("transaction %d missed what %d had written, and overwrote it", g.txns[t].ID, g.txns[e.to].ID)
				}
			}
		}
	}
	return nil
}

package duckdb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/oracle"
)

// histories are how many random histories are judged. They stand behind one another in one history, each with rows and sessions of its own, since
// most of the time goes into the beginning of DuckDB and not into the rows.
const histories = 400

// toy makes a history of a database in which a transaction reads any version that was current since it began, and writes under a lock.
type toy struct {
	rnd         *rand.Rand
	out         strings.Builder
	table       string
	txns        int
	dirty       bool // reads may see what is not committed
	versions    [][]int
	last        []int // version of each row, by number
	locked      []*toyTxn
	open        [3]*toyTxn
	firstNumber int // of its sessions
}

type toyTxn struct {
	id    int
	floor []int       // by row: the first of versions that it may read
	own   map[int]int // by row: the version that it wrote last
}

func (d *toy) sayf(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

// step lets one session do one thing.
func (d *toy) step() {
	s := d.rnd.IntN(len(d.open))
	t := d.open[s]
	if t == nil {
		d.txns++
		t = &toyTxn{id: d.txns, own: map[int]int{}}
		for _, v := range d.versions {
			t.floor = append(t.floor, len(v)-1)
		}
		d.open[s] = t
		d.sayf(`s%d t%d begin "read committed"`, d.firstNumber+s, t.id)
		return
	}
	row := d.rnd.IntN(len(d.versions))
	name := fmt.Sprintf("%s.r%d", d.table, row)
	owner := d.locked[row]
	own, wrote := t.own[row]
	current := d.versions[row][len(d.versions[row])-1]
	switch what := d.rnd.IntN(12); {
	case what < 5:
		v := d.versions[row][t.floor[row]+d.rnd.IntN(len(d.versions[row])-t.floor[row])]
		if wrote {
			v = own
		} else if owner != nil && d.dirty {
			v = owner.own[row]
		}
		verb := "r"
		if v == current && owner == nil && d.rnd.IntN(5) == 0 {
			verb = "lock"
		}
		d.sayf("t%d %s %s@%d", t.id, verb, name, v)
	case what < 9:
		if owner != nil && owner != t {
			return
		}
		if wrote {
			current = own
		}
		d.last[row]++
		verb := "w"
		if d.rnd.IntN(3) == 0 {
			verb = "inc"
		}
		t.own[row], d.locked[row] = d.last[row], t
		d.sayf("t%d %s %s %d>%d", t.id, verb, name, current, d.last[row])
	default:
		d.end(s, d.rnd.IntN(5) > 0)
	}
}

// end ends the transaction of a session.
func (d *toy) end(s int, commit bool) {
	t := d.open[s]
	if t == nil {
		return
	}
	verb := "abort"
	for row, v := range t.own {
		d.locked[row] = nil
		if commit {
			d.versions[row] = append(d.versions[row], v)
		}
	}
	if commit {
		verb = "commit"
	}
	d.open[s] = nil
	d.sayf("t%d %s", t.id, verb)
}

// randomHistories gives their text, and of each transaction the number of its history.
func randomHistories(seed uint64) (text string, of map[uint64]int) {
	var b strings.Builder
	of = map[uint64]int{}
	txns := 0
	for i := range histories {
		d := &toy{rnd: rand.New(rand.NewPCG(seed, uint64(i))), table: fmt.Sprint("h", i), txns: txns, firstNumber: 1 + 3*i,
			versions: make([][]int, 3), last: make([]int, 3), locked: make([]*toyTxn, 3)}
		d.dirty = d.rnd.IntN(3) == 0
		for row := range d.versions {
			d.versions[row] = []int{0}
		}
		for s := range d.open {
			d.sayf(`s%d session postgres "15.4"`, d.firstNumber+s)
		}
		for range 10 + d.rnd.IntN(50) {
			d.step()
		}
		for s := range d.open {
			d.end(s, true)
		}
		for n := txns + 1; n <= d.txns; n++ {
			of[uint64(n)] = i
		}
		txns = d.txns
		b.WriteString(d.out.String())
	}
	return b.String(), of
}

// component names the strongly connected component of each transaction that lies on a cycle.
func (l *lake) component() map[uint64]uint64 {
	next := map[uint64][]uint64{}
	l.each("SELECT DISTINCT from_txn, to_txn FROM edge", func(from, to uint64) { next[from] = append(next[from], to) })
	reached := map[uint64]map[uint64]bool{}
	for from := range next {
		seen := map[uint64]bool{}
		for queue := slices.Clone(next[from]); len(queue) > 0; queue = queue[1:] {
			if !seen[queue[0]] {
				seen[queue[0]] = true
				queue = append(queue, next[queue[0]]...)
			}
		}
		reached[from] = seen
	}
	of := map[uint64]uint64{}
	for a, seen := range reached {
		if !seen[a] {
			continue
		}
		of[a] = a
		for b := range seen {
			if reached[b][a] {
				of[a] = min(of[a], b)
			}
		}
	}
	return of
}

// each calls a function for each row of two numbers.
func (l *lake) each(query string, f func(a, b uint64)) {
	l.t.Helper()
	rows, err := l.db.QueryContext(l.t.Context(), query)
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b uint64
		if err := rows.Scan(&a, &b); err != nil {
			l.t.Fatal(err)
		}
		f(a, b)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
}

// severity orders the classes that the queries tell apart: G-nonadjacent and G2 are one.
var severity = map[oracle.Class]int{anomaly.G0: 1, anomaly.G1c: 1, anomaly.GSingle: 2, anomaly.GNonadjacent: 3, anomaly.G2Item: 3, anomaly.G2: 3}

// TestRandomHistories: in each group of transactions that lie on cycles together, the queries find the same worst class as the checker, and they find
// each cycle of the checker's: its readers, its lost updates, its write skews.
func TestRandomHistories(t *testing.T) {
	text, of := randomHistories(1)
	l := newLake(t, parse(t, text))
	component, bySQL, byCheck := l.component(), map[uint64]int{}, map[uint64]int{}
	worse := func(m map[uint64]int, c uint64, s int) {
		if c != 0 && (m[c] == 0 || s < m[c]) {
			m[c] = s
		}
	}
	pairs := map[string]map[[2]uint64]bool{}
	for name, s := range map[string]int{"G1c": 1, "G-single": 2, "G2": 3, "lost update": 2, "write skew": 3} {
		pairs[name] = map[[2]uint64]bool{}
		l.each("SELECT DISTINCT #1, #2 FROM ("+strings.TrimSuffix(strings.TrimSpace(l.named(name)), ";")+")", func(a, b uint64) {
			pairs[name][[2]uint64{a, b}] = true
			if component[a] == 0 || component[a] != component[b] {
				t.Errorf("%s: %d and %d are on no cycle", name, a, b)
			}
			worse(bySQL, component[a], s)
		})
	}
	// The checker may say two transactions where others wrote the row in between. And of several cycles of one class that a transaction completes
	// it tells the shortest alone, so that of two transactions with a worse cycle it may tell the write skew.
	direct, worseToo := map[[2]uint64]bool{}, map[[2]uint64]bool{}
	l.each("SELECT from_txn, to_txn FROM edge WHERE kind = 'rw'", func(a, b uint64) { direct[[2]uint64{a, b}] = true })
	l.each("SELECT from_txn, to_txn FROM edge WHERE kind <> 'rw'", func(a, b uint64) { worseToo[[2]uint64{min(a, b), max(a, b)}] = true })
	named := map[string]int{}
	for i := range l.found {
		f := &l.found[i]
		s := severity[f.Class]
		if s == 0 {
			continue // a dirty read
		}
		named[string(f.Class)]++
		named[f.Name]++
		worse(byCheck, component[f.Transactions[0].ID], s)
		whole := !slices.ContainsFunc(f.Edges, func(e oracle.Edge) bool {
			return e.Kind == oracle.EdgeRW && !direct[[2]uint64{f.Transactions[e.From].ID, f.Transactions[e.To].ID}]
		})
		for _, e := range f.Edges {
			from, to := f.Transactions[e.From].ID, f.Transactions[e.To].ID
			pair, sorted := [2]uint64{from, to}, [2]uint64{min(from, to), max(from, to)}
			switch {
			case component[from] == 0:
				t.Errorf("%s: transaction %d is on no cycle", brief(f), from)
			case e.Kind != oracle.EdgeRW:
			case whole && f.Name == anomaly.LostUpdate && !pairs["lost update"][pair],
				whole && f.Name == anomaly.WriteSkew && !pairs["write skew"][sorted] && !worseToo[sorted]:
				t.Errorf("history %d: the query does not find %s", of[from], brief(f))
			case !reads(pairs[map[int]string{2: "G-single", 3: "G2"}[s]], from):
				t.Errorf("history %d: the query does not find the reader %d of %s", of[from], from, brief(f))
			}
		}
	}
	for _, c := range component {
		if bySQL[c] != byCheck[c] {
			t.Errorf("history %d, the cycles of transaction %d: the queries say %d, the checker says %d", of[c], c, bySQL[c], byCheck[c])
		}
	}
	clean := histories
	seen := map[int]bool{}
	for txn := range component {
		if !seen[of[txn]] {
			seen[of[txn]] = true
			clean--
		}
	}
	t.Log(named, "clean:", clean)
	if named[anomaly.LostUpdate] < 10 || named[anomaly.WriteSkew] < 10 || named["G1c"] < 10 || clean < 10 {
		t.Errorf("the test has lost its force: %v, clean %d", named, clean)
	}
}

// reads reports whether a transaction is the first of a pair.
func reads(pairs map[[2]uint64]bool, txn uint64) bool {
	for p := range pairs {
		if p[0] == txn {
			return true
		}
	}
	return false
}

// TestInferred: the edges that the page infers from accesses alone are those of the checker, but for histories with G1b.
func TestInferred(t *testing.T) {
	text, of := randomHistories(2)
	l := newLake(t, parse(t, text))
	l.exec(l.named("edges of accesses"))
	intermediate := map[int]bool{}
	for i := range l.found {
		if f := &l.found[i]; f.Class == anomaly.G1b {
			intermediate[of[f.Transactions[0].ID]] = true
		}
	}
	for _, row := range l.rows("comparison") {
		f := strings.Fields(row)
		from, err := strconv.ParseUint(f[len(f)-3], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if !intermediate[of[from]] {
			t.Errorf("history %d: %s", of[from], row)
		}
	}
	kinds := map[string]int{}
	for _, row := range l.rows("edges by table") {
		kinds[strings.Fields(row)[1]]++
	}
	if kinds["ww"] < 100 || kinds["wr"] < 100 || kinds["rw"] < 100 || len(intermediate) > histories/4 {
		t.Errorf("the test has lost its force: %v, %d histories left out", kinds, len(intermediate))
	}
}

package isolation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle"
)

// columnToy makes histories of transactions at READ COMMITTED that read whole rows or one or two columns, and assign one or two columns, some to the value that they
// have. It knows all dependencies between their columns. Who writes a row locks it.
type columnToy struct {
	rng   *rand.Rand
	rows  [][]columnVersion
	locks []int // by row: the session that holds it; 0: none
	open  []*columnTxn
	txns  []*columnTxn
	lines []string
}

type columnVersion struct {
	by      int // number of the transaction
	columns string
	kept    string // those of them that have the values that they had
	values  [len(columnNames)]int
}

// columnRead is a read of a row's version at a place.
type columnRead struct {
	row, at int
	columns string
}

type columnTxn struct {
	id     int
	reads  []columnRead
	writes map[int]string
	last   map[int]int // of its writes: the place
}

const columnNames = "abc"

func newColumnToy(seed uint64) *columnToy {
	d := &columnToy{rng: rand.New(rand.NewPCG(seed, 31)), rows: make([][]columnVersion, 2), locks: make([]int, 2), open: make([]*columnTxn, 4)}
	for i := range d.rows {
		d.rows[i] = []columnVersion{{}}
	}
	for range 15 + d.rng.IntN(45) {
		d.step()
	}
	return d
}

func (d *columnToy) step() {
	s := d.rng.IntN(len(d.open))
	t := d.open[s]
	if t == nil {
		t = &columnTxn{id: len(d.txns) + 1, writes: map[int]string{}, last: map[int]int{}}
		d.txns, d.open[s] = append(d.txns, t), t
		d.lines = append(d.lines, fmt.Sprintf(`s%d t%d begin "read committed"`, s+1, t.id))
		return
	}
	row := d.rng.IntN(len(d.rows))
	at := len(d.rows[row]) - 1
	switch what := d.rng.IntN(9); {
	case what < 4 && t.writes[row] == "" && d.locks[row] == 0:
		if at > 0 && d.rng.IntN(4) == 0 {
			at-- // as a statement sees that began before the last commit
		}
		r, list := columnRead{row, at, columnNames}, "*"
		if d.rng.IntN(3) > 0 {
			first := d.rng.IntN(len(columnNames))
			if r.columns = columnNames[first : first+1]; d.rng.IntN(3) == 0 {
				r.columns += columnNames[(first+1)%3 : (first+1)%3+1]
			}
			list = strings.Join(strings.Split(r.columns, ""), ", ")
		}
		t.reads = append(t.reads, r)
		d.lines = append(d.lines, fmt.Sprintf("t%d r r%d@%d -- SELECT %s FROM t WHERE id = %[2]d", t.id, row, at, list))
	case what < 7 && (d.locks[row] == 0 || d.locks[row] == s+1):
		first := d.rng.IntN(len(columnNames))
		columns := columnNames[first : first+1]
		if d.rng.IntN(4) == 0 {
			columns += columnNames[(first+1)%3 : (first+1)%3+1]
		}
		if d.locks[row] == 0 {
			d.rows[row] = append(d.rows[row], columnVersion{by: t.id})
			at++
		}
		d.locks[row] = s + 1
		t.writes[row] += columns
		d.rows[row][at].columns = t.writes[row]
		if t.last[row] == 0 { // one statement for each row, so that versions are numbered without gaps
			t.last[row] = at
		}
	case what >= 7:
		for row := range d.rows {
			if w := t.writes[row]; w != "" {
				at := t.last[row]
				d.lines = append(d.lines, fmt.Sprintf("t%d w r%d %d>%d%s -- UPDATE t SET %s = 1 WHERE id = %d", t.id, row, at-1, at, d.values(row, at), strings.Join(strings.Split(w, ""), " = 1, "), row))
				d.locks[row] = 0
			}
		}
		d.lines = append(d.lines, fmt.Sprintf("t%d commit", t.id))
		d.open[s] = nil
	}
}

// values gives the columns of a version their values, and says what its images are.
func (d *columnToy) values(row, at int) string {
	was, v := &d.rows[row][at-1], &d.rows[row][at]
	v.values = was.values
	var before, behind []string
	for i, column := range strings.Split(columnNames, "") {
		if strings.Contains(v.columns, column) {
			if d.rng.IntN(3) == 0 {
				v.kept += column
			} else {
				v.values[i]++
			}
		}
		before, behind = append(before, fmt.Sprint(column, " ", was.values[i])), append(behind, fmt.Sprint(column, " ", v.values[i]))
	}
	switch d.rng.IntN(4) {
	case 0: // nobody wanted images
		v.kept = ""
		return ""
	case 1: // not of what was replaced
		v.kept = ""
		return fmt.Sprintf(" image %q", strings.Join(behind, " "))
	}
	return fmt.Sprintf(" image %q was %q", strings.Join(behind, " "), strings.Join(before, " "))
}

// cyclic says whether the columns of committed transactions depend on each other in a cycle.
func (d *columnToy) cyclic() bool {
	n := len(d.txns) + 1
	before := make([][]bool, n)
	for i := range before {
		before[i] = make([]bool, n)
	}
	open := map[int]bool{0: true}
	for _, t := range d.open {
		if t != nil {
			open[t.id] = true
		}
	}
	add := func(a, b int) {
		if a != b && !open[a] && !open[b] {
			before[a][b] = true
		}
	}
	for row, vs := range d.rows {
		for _, column := range columnNames {
			var by []int // places of the versions that assign it
			kept := func(at int) bool { return strings.ContainsRune(vs[at].kept, column) }
			for at, v := range vs {
				if strings.ContainsRune(v.columns, column) && !open[v.by] {
					by = append(by, at)
				}
			}
			for i := range by {
				for k := range i {
					if !kept(by[k]) || !kept(by[i]) {
						add(vs[by[k]].by, vs[by[i]].by)
					}
				}
			}
			by = slices.DeleteFunc(by, kept)
			for _, t := range d.txns {
				for _, r := range t.reads {
					for _, at := range by {
						switch {
						case r.row != row || !strings.ContainsRune(r.columns, column):
						case at <= r.at:
							add(vs[at].by, t.id)
						default:
							add(t.id, vs[at].by)
						}
					}
				}
			}
		}
	}
	for k := range n {
		for i := range n {
			for j := range n {
				before[i][j] = before[i][j] || before[i][k] && before[k][j]
			}
		}
	}
	for i := range n {
		if before[i][i] {
			return true
		}
	}
	return false
}

// columnRuns is how many random histories TestColumnsReference judges: in `make test` as many as a planted fault took to be found, many in `make soak`.
var columnRuns = flag.Uint64("column-runs", 12_000, "random histories of statements that read and assign some columns")

// TestColumnsReference: there is a finding exactly if the columns depend on each other in a cycle.
func TestColumnsReference(t *testing.T) {
	count := map[bool]int{}
	for seed := range *columnRuns {
		d := newColumnToy(seed)
		text := strings.Join(d.lines, "\n")
		events := parse(t, text)
		late := append([]history.Event(nil), events...)
		(&toy{next: d.rng.IntN, out: late}).late()
		want := d.cyclic()
		for _, list := range [][]history.Event{events, late, toldLater(events, d.rng.IntN)} {
			fs, _ := run(Options{Repeats: true, Keep: -1}, list)
			wrong := slices.ContainsFunc(fs, func(f oracle.Finding) bool { return f.Kind != oracle.KindViolation }) // products protect rows
			if got := len(fs) > 0; want && !got || !want && wrong {
				t.Fatalf("seed %d: found %q, and a cycle of columns: %v\n%s", seed, briefs(fs), want, text)
			}
		}
		count[want]++
	}
	if count[true] < 100 || count[false] < 100 {
		t.Errorf("cycles or not: %v: the test has lost its force", count)
	}
}

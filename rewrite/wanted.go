package rewrite

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Wanted are the columns whose values are captured with each version that is written: those that predicates read. It grows with what
// statements ask. It is safe for concurrent use.
type Wanted struct {
	// Always says that all columns are wanted at all times, Early that they are at first. They are set before the first use.
	Always     bool
	Early      *Early
	generation atomic.Uint64

	mu     sync.RWMutex
	tables map[string][]string // sorted
}

// Early is the time in which nobody knows yet which tables predicates read: a transaction may write a table before the first one of them reads it. It ends after
// some statements. nil: it is over. It is safe for concurrent use.
type Early struct{ statements atomic.Int64 }

// earlyStatements is how many statements the time takes.
const earlyStatements = 10_000

// Statement counts a statement.
func (e *Early) Statement() {
	if !e.over() {
		e.statements.Add(1)
	}
}

func (e *Early) over() bool { return e == nil || e.statements.Load() >= earlyStatements }

// Everything reports whether all columns are wanted.
func (w *Wanted) Everything() bool { return w.Always || !w.Early.over() }

// Generation grows whenever more becomes wanted, and when no longer everything is.
func (w *Wanted) Generation() uint64 {
	g := w.generation.Load()
	if w.Early != nil && w.Early.over() {
		g += 1 << 32
	}
	return g
}

// Plan has a statement planned, and once more if that made more wanted: one that reads a table by a condition may write the same table, and its own change
// must tell what the condition of another session's needs.
func (w *Wanted) Plan(plan func()) {
	before := w.Generation()
	plan()
	if w.Generation() != before {
		plan()
	}
}

// Columns are those wanted of a table, which is also known as name.
func (w *Wanted) Columns(r *Relation, name string) []string {
	w.mu.RLock()
	asked := w.tables[name]
	w.mu.RUnlock()
	if !w.Everything() {
		return asked
	}
	all := slices.Clone(asked)
	for _, c := range r.Columns[:min(len(r.Columns), maxWanted)] {
		if !slices.Contains(asked, c.Name) {
			all = append(all, c.Name)
		}
	}
	return all
}

// Rows reports whether a predicate reads a table, so that new rows matter, whatever their values are.
func (w *Wanted) Rows(name string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	_, known := w.tables[name]
	return known || w.Everything()
}

// maxWanted is how many columns are wanted of a table, besides those that predicates read, where everything is.
const maxWanted = 32

// Ask wants what a predicate read needs.
func (w *Wanted) Ask(a *Ask) {
	var columns []string
	add := func(c string) { columns = append(columns, c) }
	a.Where.Columns(add)
	a.Beyond.Columns(add)
	a.Groups.Columns(add)
	w.add(a.Table, columns)
}

func (w *Wanted) add(table string, columns []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	have, known := w.tables[table]
	all := slices.Concat(have, columns)
	slices.Sort(all)
	if all = slices.Compact(all); known && len(all) == len(have) {
		return
	}
	if w.tables == nil {
		w.tables = map[string][]string{}
	}
	w.tables[table] = all
	if !w.Everything() {
		w.generation.Add(1)
	}
}

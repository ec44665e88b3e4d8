package rewrite

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Wanted are the columns whose values are captured with each version that is written: those that predicates read. It grows with what
// statements ask. It is safe for concurrent use.
type Wanted struct {
	// Everything says that all columns are wanted from the beginning. It is set before the first use.
	Everything bool
	generation atomic.Uint64

	mu     sync.RWMutex
	tables map[string][]string // sorted
}

// Generation grows whenever more becomes wanted.
func (w *Wanted) Generation() uint64 { return w.generation.Load() }

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
	if w.Everything {
		var all []string
		for _, c := range r.Columns[:min(len(r.Columns), maxWanted)] {
			all = append(all, c.Name)
		}
		return all
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.tables[name]
}

// Rows reports whether a predicate reads a table, so that new rows matter, whatever their values are.
func (w *Wanted) Rows(name string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	_, known := w.tables[name]
	return known || w.Everything
}

// maxWanted is how many columns are wanted of a table at most where everything is.
const maxWanted = 32

// Ask wants what a predicate read needs.
func (w *Wanted) Ask(a *Ask) {
	var columns []string
	add := func(c string) { columns = append(columns, c) }
	a.Where.Columns(add)
	a.Beyond.Columns(add)
	w.add(a.Table, columns)
}

func (w *Wanted) add(table string, columns []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	have, known := w.tables[table]
	all := slices.Concat(have, columns)
	slices.Sort(all)
	if all = slices.Compact(all); w.Everything || known && len(all) == len(have) {
		return
	}
	if w.tables == nil {
		w.tables = map[string][]string{}
	}
	w.tables[table] = all
	w.generation.Add(1)
}

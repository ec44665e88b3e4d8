package troc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/product"
)

// version is the paper's triple of data, transaction and deleted (Troc, III-E1).
type version struct {
	tx      int // index of the transaction; initial: what the setup made
	step    int
	values  []answer.Value
	deleted bool
	same    bool // the data are those of the version before: a row that was addressed and not changed
}

const initial = -1

// row is one row's versions, oldest first.
type row struct {
	id       int
	versions []version
}

// birth is the version with which a row began to be there. A row with the key of a deleted one has that row's versions in front of its own;
// first says that it has none.
func (r *row) birth() (v *version, first bool) {
	n := len(r.versions) - 1
	for n > 0 && !r.versions[n-1].deleted {
		n--
	}
	return &r.versions[n], n == 0
}

// tuple is a row as one view shows it.
type tuple struct {
	id     int
	values []answer.Value
}

// relation is a table as one view shows it, in the order of row ids.
type relation []tuple

func (r relation) key(b *strings.Builder) {
	for _, t := range r {
		fmt.Fprintf(b, "%d", t.id)
		for _, v := range t.values {
			if v == nil {
				b.WriteString(";N")
			} else {
				fmt.Fprintf(b, ";%d:%s", len(v), v)
			}
		}
		b.WriteByte('\n')
	}
}

func (r relation) equal(o relation) bool {
	return slices.EqualFunc(r, o, func(a, b tuple) bool { return a.id == b.id && answer.SameRow(a.values, b.values) })
}

func (r relation) find(id int) (tuple, bool) {
	for _, t := range r {
		if t.id == id {
			return t, true
		}
	}
	return tuple{}, false
}

// without leaves rows out.
func (r relation) without(ids []int) relation {
	return slices.DeleteFunc(slices.Clone(r), func(t tuple) bool { return slices.Contains(ids, t.id) })
}

// with gives the rows with these ids, and the others as another view has them.
func (r relation) with(others relation, ids []int) relation {
	out := append(others.without(ids), slices.DeleteFunc(slices.Clone(r), func(t tuple) bool { return !slices.Contains(ids, t.id) })...)
	slices.SortFunc(out, func(a, b tuple) int { return a.id - b.id })
	return out
}

// common gives the rows that are the same in another view.
func (r relation) common(o relation) relation {
	return slices.DeleteFunc(slices.Clone(r), func(t tuple) bool {
		other, ok := o.find(t.id)
		return !ok || !answer.SameRow(t.values, other.values)
	})
}

// status of a transaction.
type status uint8

const (
	running status = iota
	committed
	aborted
)

// progress is how far one transaction has come in a world.
type progress struct {
	status status
	at     int // when it was committed
	began  int // when its first statement was sent
	// snapshots are the moments at one of which the snapshot was taken, as far as is known; empty: not yet. firm says that it was
	// taken by now. An engine need not take one for a SELECT that its optimizer answers without reading.
	snapshots []int
	firm      bool
	lockless  bool // TiDB: an optimistic transaction, which locks nothing before COMMIT
	saves     []save
}

type save struct {
	name string
	step int
}

// lock is a row lock that a transaction got by a statement, besides those on rows that it wrote (Troc, III-E3).
type lock struct {
	tx, step int
	table    string
	row      int
	mode     product.Mode
}

// predicate is a predicate lock: no other transaction can bring in a row that the step's condition holds for.
type predicate struct{ tx, step int }

// world is one possible course of what has happened up to now: the database change history (Troc, III-E1) and what else depends on
// choices that the engine is free to make. Several worlds are followed where there is a choice.
type world struct {
	tables map[string][]row
	txs    []progress
	locks  []lock
	ranges []predicate
	next   int // the next row id
	causes []note
	taint  map[string]string        // tables of which the contents are not certain, and why
	likely map[string]bool          // those of them whose contents have explained all answers up to now
	own    map[string]int           // those of them that are certain to all but one transaction, which is undone in the end
	trail  []string                 // what was executed on which view, for people
	notes  []string                 // what was not compared
	writes []written                // what was executed and changed its tables
	past   map[int]map[string][]row // the tables behind earlier steps, by their number, as long as somebody may have seen what was not committed then
}

// note is a documented deviation that a world contains.
type note struct {
	cause    *product.Cause
	step     int
	evidence *mismatch // nil: what ended the world that is like this one without the departure
}

func (w *world) clone() *world {
	c := *w
	c.tables = maps.Clone(w.tables)
	c.txs = slices.Clone(w.txs)
	c.locks = slices.Clip(w.locks)
	c.ranges = slices.Clip(w.ranges)
	c.causes = slices.Clip(w.causes)
	c.taint = maps.Clone(w.taint)
	c.likely = maps.Clone(w.likely)
	c.own = maps.Clone(w.own)
	c.trail = slices.Clip(w.trail)
	c.writes = slices.Clip(w.writes)
	c.notes = slices.Clip(w.notes)
	return &c
}

// visible says whether a version is seen by a transaction at a moment (V1 to V4).
func (w *world) visible(v *version, tx int, m moment) bool {
	if v.tx == initial || v.tx == tx {
		return true
	}
	t := &w.txs[v.tx]
	if m.dirty {
		return t.status == committed || t.status == running && !t.lockless // what an optimistic transaction writes, nobody meets before COMMIT
	}
	return t.status == committed && t.at <= m.at
}

// latest is the newest version of a row that is seen; nil if none is. A transaction's own one is that (V1): behind it may stand one that another transaction only
// met and left as it was, without a lock.
func (w *world) latest(r *row, tx int, m moment) *version {
	for i := len(r.versions) - 1; i >= 0 && tx != initial; i-- {
		if v := &r.versions[i]; v.tx == tx && !v.same {
			return v
		}
	}
	for i := len(r.versions) - 1; i >= 0; i-- {
		if w.visible(&r.versions[i], tx, m) {
			return &r.versions[i]
		}
	}
	return nil
}

// view is a table as a transaction sees it at a moment (Troc, III-E2).
func (w *world) view(table string, tx int, m moment) relation {
	rel := relation{}
	for i := range w.tables[table] {
		r := &w.tables[table][i]
		if v := w.latest(r, tx, m); v != nil && !v.deleted && (m.gone == 0 || !w.latest(r, tx, moment{at: m.gone}).deleted) {
			rel = append(rel, tuple{r.id, v.values})
		}
	}
	return rel
}

// dirty is a table as it was behind a number of steps, with what was not committed then.
func (w *world) dirty(table string, tx, at int) relation {
	then, ok := w.past[at]
	if !ok {
		return w.view(table, tx, moment{dirty: true})
	}
	rel := relation{}
	for i := range then[table] {
		r := &then[table][i]
		if v := &r.versions[len(r.versions)-1]; !v.deleted {
			rel = append(rel, tuple{r.id, v.values})
		}
	}
	return rel
}

// recall keeps the tables behind a number of steps until a later step, and forgets what nobody can have seen any more.
func (w *world) recall(done int, tables map[string][]row, until []int) {
	past := maps.Clone(w.past)
	maps.DeleteFunc(past, func(at int, _ map[string][]row) bool { return until[at] <= done })
	if until[done] > done {
		if past == nil {
			past = map[int]map[string][]row{}
		}
		past[done] = tables
	}
	w.past = past
}

// add appends a version to a row, or makes a row for it (Troc, III-E4).
func (w *world) add(table string, id int, v version) {
	rows := slices.Clone(w.tables[table])
	i := slices.IndexFunc(rows, func(r row) bool { return r.id == id })
	if i < 0 {
		i = len(rows)
		rows = append(rows, row{id: id})
	}
	rows[i].versions = append(slices.Clip(rows[i].versions), v)
	w.tables[table] = rows
}

// remove takes versions away.
func (w *world) remove(gone func(v *version) bool) {
	for name, rows := range w.tables {
		if !slices.ContainsFunc(rows, func(r row) bool {
			return slices.ContainsFunc(r.versions, func(v version) bool { return gone(&v) })
		}) {
			continue
		}
		kept := make([]row, 0, len(rows))
		for _, r := range rows {
			r.versions = slices.DeleteFunc(slices.Clone(r.versions), func(v version) bool { return gone(&v) })
			if len(r.versions) > 0 {
				kept = append(kept, r)
			}
		}
		w.tables[name] = kept
	}
}

// end ends a transaction. Its versions become the newest of their rows if it commits (optimistic transactions write in the order of
// their commits), and go if it does not (Troc, III-E4, ROLLBACK).
func (w *world) end(tx int, s status, at int) {
	w.txs[tx].status, w.txs[tx].at = s, at
	w.locks = slices.DeleteFunc(slices.Clone(w.locks), func(l lock) bool { return l.tx == tx })
	w.ranges = slices.DeleteFunc(slices.Clone(w.ranges), func(p predicate) bool { return p.tx == tx })
	if s == aborted {
		w.remove(func(v *version) bool { return v.tx == tx })
		for name, own := range w.own {
			if own == tx {
				delete(w.own, name)
				delete(w.taint, name)
				delete(w.likely, name)
			}
		}
		return
	}
	for name, rows := range w.tables {
		for i, r := range rows {
			n := len(r.versions)
			if n == 0 || r.versions[n-1].tx == tx || !slices.ContainsFunc(r.versions, func(v version) bool { return v.tx == tx }) {
				continue
			}
			moved := slices.Clone(r.versions)
			slices.SortStableFunc(moved, func(a, b version) int {
				switch {
				case (a.tx == tx) == (b.tx == tx):
					return 0
				case a.tx == tx:
					return 1
				}
				return -1
			})
			rows = slices.Clone(rows)
			rows[i].versions = moved
			w.tables[name] = rows
		}
	}
}

// back undoes what a transaction did since a savepoint.
func (w *world) back(tx int, name string) bool {
	t := &w.txs[tx]
	for i := len(t.saves) - 1; i >= 0; i-- {
		if strings.EqualFold(t.saves[i].name, name) {
			t.saves = slices.Clip(t.saves[:i+1])
			w.undo(tx, t.saves[i].step)
			return true
		}
	}
	return false
}

// release forgets a savepoint and those set since.
func (w *world) release(tx int, name string) {
	t := &w.txs[tx]
	for i := len(t.saves) - 1; i >= 0; i-- {
		if strings.EqualFold(t.saves[i].name, name) {
			t.saves = slices.Clip(t.saves[:i])
			return
		}
	}
}

// fail undoes what a failed transaction cannot keep: all since the last savepoint, to which it may still go back (PostgreSQL manual,
// ROLLBACK TO SAVEPOINT). Others need not wait for it any more.
func (w *world) fail(tx int) {
	since := -1
	if t := &w.txs[tx]; len(t.saves) > 0 {
		since = t.saves[len(t.saves)-1].step
	}
	w.undo(tx, since)
}

// undo takes back what a transaction did since a step. Whether the locks taken since are kept differs between products: what is not
// certainly held is not held here.
func (w *world) undo(tx, since int) {
	w.remove(func(v *version) bool { return v.tx == tx && v.step > since })
	w.locks = slices.DeleteFunc(slices.Clone(w.locks), func(l lock) bool { return l.tx == tx && l.step > since })
	w.ranges = slices.DeleteFunc(slices.Clone(w.ranges), func(p predicate) bool { return p.tx == tx && p.step > since })
}

// newer lists the versions of a row that others committed after a moment.
func (w *world) newer(table string, id, tx, at int) (list []version) {
	for _, r := range w.tables[table] {
		if r.id != id {
			continue
		}
		for _, v := range r.versions {
			if v.tx != initial && v.tx != tx && w.txs[v.tx].status == committed && w.txs[v.tx].at > at {
				list = append(list, v)
			}
		}
	}
	return list
}

// key is equal for worlds that cannot be told apart any more.
func (w *world) key() string {
	var b strings.Builder
	contents := func(tables map[string][]row) {
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			fmt.Fprintf(&b, "%s\n", name)
			for _, r := range tables[name] {
				for _, v := range r.versions {
					fmt.Fprintf(&b, "%d %v ", v.tx, v.deleted)
					relation{{0, v.values}}.key(&b)
				}
				b.WriteByte('.')
			}
		}
	}
	contents(w.tables)
	for _, at := range slices.Sorted(maps.Keys(w.past)) {
		contents(w.past[at])
	}
	for _, t := range w.txs {
		fmt.Fprintf(&b, "%d %d %v %v %v\n", t.status, t.at, t.snapshots, t.firm, t.saves)
	}
	for _, l := range w.locks {
		fmt.Fprintf(&b, "%d %s %d %d\n", l.tx, l.table, l.row, l.mode)
	}
	for _, name := range slices.Sorted(maps.Keys(w.taint)) {
		own, is := w.own[name]
		fmt.Fprintf(&b, "%s %v %d %v\n", name, w.likely[name], own, is)
	}
	return b.String()
}

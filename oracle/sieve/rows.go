package sieve

import (
	"cmp"
	"slices"
)

// Rows judges some of the rows of a history: it needs the facts of these rows alone, and what is known of the transactions.
type Rows struct {
	txns    *txns
	numbers index // of rows
	keyed   []bool
	hashes  []uint64
	chains  []chain
	store   store
	row     row
}

func newRows(t *txns) *Rows { return &Rows{txns: t} }

func (r *Rows) add(row uint64, keyed bool, f fact) (n uint32) {
	n, had := r.numbers.put(row, uint32(len(r.keyed)))
	if !had {
		r.keyed, r.hashes, r.chains = append(r.keyed, keyed), append(r.hashes, row), append(r.chains, chain{})
	}
	r.store.add(&r.chains[n], &f)
	return n
}

// facts are those of row number n, in the order in which they came, until the next call.
func (r *Rows) facts(n int) []fact {
	r.row.facts = r.store.read(r.row.facts[:0], &r.chains[n])
	return r.row.facts
}

// none stands for no transaction and no version.
const none = ^uint32(0)

// version is one version of a row.
type version struct {
	ver, order, asOf uint64
	sent             uint64 // when the statement that wrote it was sent; 0: not known
	writer           uint32 // who listed it, or whose token a reader told
	next             uint32 // the first version of a committed writer that is known to come later
	after            uint64 // the version that replaced it; 0: not told
	afterBy          uint32 // who did
	before           uint64 // the version that it replaced, in rows without keys; 0: not told
	listed           bool
	dead             bool // undone
	inter            bool // its writer replaced it
	linked           bool // afterBy counts, the places do not tell it
	replaced         bool // it replaced one
}

// row is scratch for the judging of one row.
type row struct {
	facts    []fact
	of       []uint32 // the version of each fact
	versions []version
	find     index
	sorted   []uint32
	rough    bool // the place of a version is not told by all who touch it
	why      string
}

// take reads row number n.
func (r *Rows) take(n int) *row {
	w := &r.row
	w.facts, w.of, w.versions, w.rough, w.why = r.facts(n), w.of[:0], w.versions[:0], !r.keyed[n], ""
	w.find.clear(len(w.facts))
	for i := range w.facts {
		w.place(&w.facts[i], r.keyed[n])
	}
	for i := range w.facts {
		if f := &w.facts[i]; f.token != 0 {
			w.owned(f, &w.versions[w.of[i]], r.txns)
		}
	}
	return w
}

func (w *row) version(ver uint64) uint32 {
	if n := len(w.of); n > 0 && w.versions[w.of[n-1]].ver == ver {
		return w.of[n-1] // that of the fact before
	}
	n, had := w.find.put(ver, uint32(len(w.versions)))
	if !had {
		w.versions = append(w.versions, version{ver: ver, writer: none, next: none, afterBy: none})
	}
	return n
}

// place enters what a fact tells of its version.
func (w *row) place(f *fact, keyed bool) {
	n := w.version(f.ver)
	w.of = append(w.of, n)
	v := &w.versions[n]
	w.rough = w.rough || f.order == 0
	if f.order != 0 {
		if v.order != 0 && v.order != f.order {
			w.why = "a version has two places"
		}
		v.order = f.order
	}
	switch {
	case f.flags&isRead != 0 && f.asOf != 0:
		if v.asOf == 0 || f.asOf < v.asOf {
			v.asOf = f.asOf
		}
	case f.flags&isPrev != 0 && f.flags&fFailed == 0:
		if v.after != 0 && v.after != f.asOf || f.asOf == f.ver {
			w.why = "a version was replaced twice"
		}
		v.after, v.afterBy = f.asOf, f.txn
	case f.flags&isWrite != 0:
		if v.writer != none && v.writer != f.txn {
			w.why = "two transactions wrote one version"
		}
		if v.before != 0 && f.asOf != 0 && v.before != f.asOf {
			w.why = "a version replaced two"
		}
		v.before = max(v.before, f.asOf)
		v.writer, v.listed, v.sent = f.txn, true, f.tick
		v.dead = v.dead || f.flags&fFailed != 0
		v.inter = v.inter || f.flags&fInter != 0
	}
}

// owned enters what a fact tells of the writer of its version, by the token.
func (w *row) owned(f *fact, v *version, t *txns) {
	if v.listed && t.token[v.writer] == f.token {
		return
	}
	owner, ended := t.owner(f.token)
	switch {
	case !ended, owner == f.txn && f.flags&isRead != 0: // its own
	case v.listed && owner != v.writer, v.writer != none && owner != v.writer:
		w.why = "a version has two writers"
	case !v.listed && t.is[owner]&undone != 0:
		w.why = "a version may be one that its writer undid"
	case !v.listed:
		v.writer = owner
		for i := range w.facts {
			if o := &w.facts[i]; o.txn == owner && o.flags&isWrite != 0 {
				w.why = "a transaction did not list all versions that it wrote of a row"
			}
		}
	}
}

// kind is the kind of an edge.
type kind uint8

const (
	ww kind = 1 << iota
	wr
	rw
	overConditions // between who asked for rows and who changed them
)

// out is where the judging of rows puts what it finds.
type out struct {
	edge    func(kind kind, from, to uint32)
	special func(txns ...uint32) // may be part of something together
	unknown func(reader uint32)  // it read a version whose writer is not known
}

// Edges gives the edges of all rows, and what is reported without a cycle. why says that it cannot be decided; empty: it can.
func (r *Rows) edges(o *out) (why string) {
	for n := range r.keyed {
		w := r.take(n)
		if w.why != "" || w.inOrder(r.txns) {
			return cmp.Or(w.why, "versions contradict each other in their order")
		}
		if why := w.judge(o, r.txns, r.keyed[n]); why != "" {
			return why
		}
	}
	return ""
}

// is is the standing of the version's writer; a version that was undone counts as of one rolled back.
func (v *version) is(t *txns) status {
	switch {
	case v.writer == none:
		return 0
	case v.dead:
		return aborted
	}
	return t.is[v.writer] & (committed | aborted | limbo)
}

// inOrder finds for each version the next one that counts. It reports whether the versions contradict each other.
func (w *row) inOrder(t *txns) (bad bool) {
	w.sorted = w.sorted[:0]
	for i := range w.versions {
		v := &w.versions[i]
		if v.order != 0 && v.asOf != 0 && v.order >= v.asOf {
			return true
		}
		if v.after != 0 {
			at, ok := w.find.of(v.after)
			to := uint64(0)
			if ok {
				next := &w.versions[at]
				if to = next.order; next.replaced {
					return true
				}
				next.replaced = true
			}
			if v.order != 0 && to != 0 && v.order >= to {
				return true
			}
			v.linked = v.order == 0 || to == 0
		}
		// A version of nobody that was replaced by one without a place stands for that one.
		if v.order != 0 && (v.is(t)&(committed|limbo) != 0 || v.linked) {
			w.sorted = append(w.sorted, uint32(i))
		}
	}
	slices.SortFunc(w.sorted, func(a, b uint32) int { return cmp.Compare(w.versions[a].order, w.versions[b].order) })
	for k := 1; k < len(w.sorted); k++ {
		if w.versions[w.sorted[k-1]].order == w.versions[w.sorted[k]].order && w.versions[w.sorted[k]].order > 1 {
			return true
		}
	}
	for i := range w.versions {
		if v := &w.versions[i]; v.order != 0 || v.asOf != 0 {
			at := v.order + 1
			if v.order == 0 {
				at = v.asOf
			}
			k, _ := slices.BinarySearchFunc(w.sorted, at, func(n uint32, at uint64) int { return cmp.Compare(w.versions[n].order, at) })
			if k < len(w.sorted) {
				v.next = w.sorted[k]
			}
		}
	}
	return w.ring()
}

// ring reports whether versions that replaced each other without places come round to the first.
func (w *row) ring() bool {
	for i := range w.versions {
		if !w.versions[i].linked {
			continue
		}
		at := uint32(i)
		for steps := 0; ; steps++ {
			next, ok := w.find.of(w.versions[at].after)
			if !ok || w.versions[at].after == 0 {
				break
			}
			if at = next; at == uint32(i) || steps > maxRing {
				return true
			}
		}
	}
	return false
}

// maxRing is how many versions that replaced each other, and of which the places are not told, are followed in one row.
const maxRing = 1000

// stands is who stands for a version in its order: its writer, or who replaced it.
func (v *version) stands(t *txns) uint32 {
	if v.is(t)&(committed|limbo) != 0 {
		return v.writer
	}
	return v.afterBy
}

func (w *row) judge(o *out, t *txns, keyed bool) (why string) {
	// follow draws edges from who read or wrote v to who wrote what is next.
	follow := func(kind kind, from uint32, v *version) {
		if v.next != none {
			o.edge(kind, from, w.versions[v.next].stands(t))
		}
		if v.linked || !keyed && v.after != 0 {
			o.edge(kind, from, v.afterBy)
		}
	}
	for i := range w.versions {
		v := &w.versions[i]
		if is := v.is(t); is&(committed|limbo) != 0 {
			follow(ww, v.writer, v)
		} else if v.linked && v.order != 0 {
			follow(ww, v.afterBy, v)
		}
		if !keyed && v.after != 0 && v.afterBy == v.writer {
			v.inter = true
		}
	}
	for i := range w.facts {
		f, v := &w.facts[i], &w.versions[w.of[i]]
		if f.flags&isWrite != 0 || t.is[f.txn]&aborted != 0 {
			continue
		}
		if f.txn == v.writer {
			if f.flags&isRead != 0 && w.future(f, v, t) {
				o.special(f.txn)
			}
			continue
		}
		own := false
		if f.token != 0 && (v.writer == none || t.token[v.writer] != f.token) { // otherwise it is the writer's, who is another one
			owner, ok := t.tokens.of(f.token)
			own = ok && owner == f.txn
		}
		if own && f.flags&isRead != 0 {
			continue
		}
		is := v.is(t)
		if f.flags&isRead != 0 {
			if v.writer == none && v.order != 1 {
				o.unknown(f.txn)
			}
		}
		if v.writer != none && t.is[v.writer]&limbo != 0 {
			return "a version of a transaction of unknown outcome was seen"
		}
		if is == aborted {
			o.special(f.txn, v.writer)
			continue
		}
		if is != 0 && (f.flags&isRead != 0 || f.flags&fCurrent != 0) {
			o.edge(wr, v.writer, f.txn)
			if v.inter || f.flags&(isRead|fMatch) == isRead && w.future(f, v, t) {
				o.special(f.txn, v.writer)
			}
		}
		if f.flags&isRead != 0 && f.flags&fDropped == 0 {
			follow(rw, f.txn, v)
		}
	}
	return ""
}

// future reports whether a read was answered before the statement that wrote the version was sent, or may have been.
func (w *row) future(f *fact, v *version, t *txns) bool {
	sent := v.sent
	if !v.listed {
		if t.is[v.writer]&single == 0 {
			return false
		}
		sent = t.to[v.writer]
	}
	return sent != 0 && f.tick != 0 && f.tick < sent && t.sameClock(f.txn, v.writer)
}

// replaces reports whether the fact before a write says which version this one replaced.
func (w *row) replaces(i int) bool {
	f := &w.facts[i]
	return i > 0 && w.facts[i-1].txn == f.txn && w.facts[i-1].nth == f.nth && w.facts[i-1].flags&isPrev != 0
}

// fronts marks the versions right before those that INSERTs of some transactions wrote without saying what they replaced.
func (w *row) fronts(suspect func(uint32) bool, front []bool) {
	made := make([]bool, len(w.versions))
	for i := range w.facts {
		x := &w.facts[i]
		made[w.of[i]] = made[w.of[i]] || x.flags&(isWrite|fInsert) == isWrite|fInsert && suspect(x.txn) && !w.replaces(i)
	}
	if !slices.Contains(made, true) {
		return
	}
	list := make([]uint32, 0, len(w.versions)) // by their places
	for i := range w.versions {
		if w.versions[i].order != 0 {
			list = append(list, uint32(i))
		}
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return cmp.Compare(w.versions[a].order, w.versions[b].order) })
	for k := 1; k < len(list); k++ {
		front[list[k-1]] = front[list[k-1]] || made[list[k]]
	}
}

// context calls f with the transactions that a Checker needs beside suspects: see the package's comment. images says that the history has any.
func (r *Rows) context(images bool, suspect func(uint32) bool, f func(uint32)) {
	for n := range r.keyed {
		if !slices.ContainsFunc(r.facts(n), func(f fact) bool { return suspect(f.txn) }) {
			continue
		}
		w := r.take(n)
		touched, front := make([]bool, len(w.versions)), make([]bool, len(w.versions)) // by suspects; right before what an INSERT of theirs wrote
		for i := range w.facts {
			x := &w.facts[i]
			if !suspect(x.txn) {
				continue
			}
			touched[w.of[i]] = true
			if v := w.versions[w.of[i]]; images && x.flags&isPrev != 0 && v.writer != none {
				f(v.writer)
			}
		}
		w.fronts(suspect, front)
		named := false
		for i := range w.facts {
			x := &w.facts[i]
			if x.flags&fNamed != 0 && !named && r.txns.is[x.txn]&aborted == 0 {
				named = r.txns.is[x.txn]&committed != 0
				f(x.txn)
			}
			if w.rough && touched[w.of[i]] || front[w.of[i]] {
				f(x.txn)
			}
		}
	}
}

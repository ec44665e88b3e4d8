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
	heard   bool // see version.heard
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

	first, next []int32  // see byVersion; none: -1
	list        []uint32 // of together

	why string
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
		for i := range w.versions {
			r.heard = r.heard || w.versions[i].heard()
		}
	}
	return ""
}

// heard reports whether others alone tell who wrote the version.
func (v *version) heard() bool { return v.writer != none && !v.listed }

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
	for k := 1; k < len(w.sorted); k++ {
		if v := &w.versions[w.sorted[k-1]]; v.order < w.versions[w.sorted[k]].order {
			v.next = w.sorted[k]
		}
	}
	for i := range w.versions {
		if v := &w.versions[i]; v.next == none && (v.order != 0 || v.asOf != 0) {
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

// need is which transactions a group needs, of which a Checker is given one.
type need uint8

const (
	needAll   need = iota // the whole group
	needFirst             // the first one
	needName              // the first one, which names the row
)

// Which of the groups of a version it is: odd numbers.
const (
	ofVersion = 0x9e3779b97f4a7c15
	ofInsert  = 0xbf58476d1ce4e5b9
	ofImage   = 0x94d049bb133111eb
	ofName    = 0xd6e8feb86659fd93
)

// together calls f with the groups of transactions of which a Checker that is given one needs others beside it: see the package's comment. key tells the
// group from others of the row. images says that the history has any. The list is good until f returns.
func (w *row) together(t *txns, images bool, f func(key uint64, list []uint32, who need)) {
	w.byVersion()
	inserts := false
	for i := range w.facts {
		inserts = inserts || w.made(i)
	}
	for v := range w.versions {
		u := &w.versions[v]
		list := w.touched(w.list[:0], v, nil)
		if heard := u.heard(); heard || w.rough {
			if heard {
				list = append(list, u.writer)
			}
			w.tell(f, u.ver*ofVersion, list, needAll)
		}
		if images && u.writer != none {
			w.tell(f, u.ver*ofImage, w.touched(append(w.list[:0], u.writer), v, func(i int) bool { return w.facts[i].flags&isPrev != 0 }), needFirst)
		}
	}
	if inserts {
		w.inserted(f)
	}
	for i := range w.facts {
		x := &w.facts[i]
		if x.flags&fNamed == 0 || t.is[x.txn]&aborted != 0 {
			continue
		}
		w.list = append(w.list[:0], x.txn)
		for k := range w.facts {
			if n := w.facts[k].txn; n != x.txn && n != w.list[len(w.list)-1] {
				w.list = append(w.list, n)
			}
		}
		w.tell(f, t.token[x.txn]*ofName+1, w.list, needName)
		if t.is[x.txn]&committed != 0 {
			break
		}
	}
}

func (w *row) tell(f func(key uint64, list []uint32, who need), key uint64, list []uint32, who need) {
	if w.list = list; len(list) > 1 {
		f(key, list, who)
	}
}

// inserted is together for INSERTs that do not say what they found in the row: all that touched the version right before tell it.
func (w *row) inserted(f func(key uint64, list []uint32, who need)) {
	w.sorted = w.sorted[:0] // by their places
	for i := range w.versions {
		if w.versions[i].order != 0 {
			w.sorted = append(w.sorted, uint32(i))
		}
	}
	slices.SortStableFunc(w.sorted, func(a, b uint32) int { return cmp.Compare(w.versions[a].order, w.versions[b].order) })
	for k := 1; k < len(w.sorted); k++ {
		if list := w.touched(w.list[:0], int(w.sorted[k]), w.made); len(list) > 0 {
			w.tell(f, w.versions[w.sorted[k]].ver*ofInsert, w.touched(list, int(w.sorted[k-1]), nil), needAll)
		}
	}
}

// made reports whether a fact is an INSERT's that does not say what it found.
func (w *row) made(i int) bool {
	return w.facts[i].flags&(isWrite|fInsert) == isWrite|fInsert && !w.replaces(i)
}

// byVersion links the facts of each version.
func (w *row) byVersion() {
	w.first, w.next = slices.Grow(w.first[:0], len(w.versions))[:len(w.versions)], slices.Grow(w.next[:0], len(w.facts))[:len(w.facts)]
	for v := range w.first {
		w.first[v] = -1
	}
	for i := len(w.facts) - 1; i >= 0; i-- {
		w.next[i], w.first[w.of[i]] = w.first[w.of[i]], int32(i)
	}
}

// touched adds to a list the transactions of a version's facts, or of some of them.
func (w *row) touched(list []uint32, v int, which func(i int) bool) []uint32 {
	for i := w.first[v]; i >= 0; i = w.next[i] {
		if n := w.facts[i].txn; (which == nil || which(int(i))) && (len(list) == 0 || list[len(list)-1] != n) {
			list = append(list, n)
		}
	}
	return list
}

// context calls f with the transactions that a Checker needs beside suspects. images says that the history has any.
func (r *Rows) context(images bool, suspect func(uint32) bool, f func(uint32)) {
	for n := range r.keyed {
		if !slices.ContainsFunc(r.facts(n), func(f fact) bool { return suspect(f.txn) }) {
			continue
		}
		r.take(n).together(r.txns, images, func(_ uint64, list []uint32, who need) {
			if !slices.ContainsFunc(list, suspect) {
				return
			}
			if who != needAll {
				list = list[:1]
			}
			for _, n := range list {
				f(n)
			}
		})
	}
}

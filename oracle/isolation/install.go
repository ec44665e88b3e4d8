package isolation

import (
	"slices"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/cycle"
	"wirecheck/oracle/level"
	"wirecheck/product"
	"wirecheck/statement/condition"
)

// record is scratch for one row while one transaction is installed.
type record struct {
	plain int32    // one more than the number of the last external plain read that a later current read would supersede; 0: none
	match int32    // one more than the number of the last UPDATE that found the row as it was to become; 0: none
	last  *version // last live write
}

// install makes a committed transaction a node: its reads and writes enter the rows' versions, then edges are drawn
// between it and the nodes that are there already. What arrives later draws its own edges to this one. Called again, it
// takes in the accesses that were told late.
func (c *Checker) install(t *txn) {
	again := t.state == stateCommitted
	if !again {
		c.fresh = t
		c.freshMark++
		defer func() { c.fresh = nil }()
	}
	from := t.installed
	t.state, t.installed = stateCommitted, len(t.accesses)
	if c.levels != nil && !c.told {
		c.levels.AddTxn(level.Txn{ID: t.id, Session: t.session.id, From: t.from, To: t.over(), Own: own(t)})
	}
	revealed, limbo, checks := c.register(t, from)
	if c.levels != nil && len(t.writes) > 0 {
		c.levels.Wrote(t.id)
	}
	revealed = append(revealed, c.adopt(t)...)
	changes := t.changes(c, from)
	for i := from; i < len(t.accesses); i++ {
		a := &t.accesses[i]
		if a.node == nil || a.own {
			continue
		}
		if a.op.writes() {
			c.writeEdges(a.node)
			if p := t.readByUpdate(i); p != nil {
				c.readEdges(t, int32(i), p)
			}
		} else {
			c.readEdges(t, int32(i), a.node)
		}
	}
	t.predicates(c, changes)
	c.requests.judgeWrites(t, from)
	judgeChecks(c, t, checks)
	c.spare.entered(t)
	for _, v := range revealed {
		c.writeEdges(v)
	}
	t.checkedApart(&c.coverage, changes)
	c.requests.judgeChanges(t, changes)
	if !again && c.opts.Strict {
		c.orderEdges(t)
	}
	for _, w := range limbo {
		if w.state == stateLimbo {
			c.coverage.Inferred++
			c.install(w)
		}
	}
}

// register enters t's accesses from number first on. It returns versions whose writers this made known and transactions of unknown outcome
// that must have committed.
func (c *Checker) register(t *txn, first int) (revealed []*version, limbo []*txn, checks []staleCheck) {
	c.mark++
	n := entry{c: c, t: t, recs: c.recs[:0], trust: t.level != "" && t.level != product.ReadUncommitted}
	defer func() {
		clear(n.recs)
		if c.recs = nil; cap(n.recs) <= spareLength {
			c.recs = n.recs
		}
	}()
	t.look()
	for i := first; i < len(t.accesses); i++ {
		if t.accesses[i].op.writes() {
			n.write(i)
		} else {
			n.read(i)
		}
	}
	return n.revealed, n.limbo, n.checks
}

// firstReaders is for how many readers of a version there is room from the first one on.
const firstReaders = 4

// look finds the rows of the accesses that are not in the graph yet, and the version where it is the row's last one, as most
// versions read are. Nearly all of that time the processor waits for memory, and in loops that do nothing else it waits
// for several rows at once.
func (t *txn) look() {
	for i := range t.told {
		if said := &t.told[i]; said.key != "" {
			said.row = said.table.row(said.key)
		}
	}
	for i := range t.told {
		said := &t.told[i]
		if r := said.row; r != nil && len(r.ordered) > 0 {
			if v := r.ordered[len(r.ordered)-1]; v.id == said.ver {
				said.was = v
			}
		}
	}
}

// goesBy reports whether token is one of t's. It has few.
func (t *txn) goesBy(token string) bool { return slices.Contains(t.tokens, token) }

// named keeps what people know the row of v by.
func (v *version) named(name string) {
	if name != "" && v.row != nil && v.row.label == "" {
		v.row.label = name
	}
}

func (v *version) recIndex() int32 {
	if v.row != nil {
		return v.row.rec
	}
	return v.rec
}

func supersede(t *txn, rec *record) {
	for i := rec.plain; i > 0; i = t.accesses[i-1].older {
		t.accesses[i-1].superseded = true
	}
	rec.plain = 0
}

// readByUpdate is the version that a CurrentRead update, access number i, read; nil if there is none or it is t's own.
func (t *txn) readByUpdate(i int) *version {
	a, said := &t.accesses[i], t.toldBy(i)
	if t.partial || a.op != opUpdate || said.prev == "" || !t.stmts[a.stmt].current {
		return nil
	}
	if p := said.node(said.prev); p.writer != t {
		return p
	}
	return nil
}

// inLimbo is the writer of v if its outcome is unknown so far.
func (v *version) inLimbo(c *Checker) *txn {
	if v.is != unknownWriter {
		return nil
	}
	w := v.writer
	if w == nil && v.token != "" {
		w = c.tokens[v.token]
	}
	if w != nil && w.state == stateLimbo {
		return w
	}
	return nil
}

// know tells that the writer of v goes by token, and reports whether that makes v a version of a committed transaction
// that had not told of it. If it is not believed (trust) that the reader sees committed versions only, and the writer
// undid some of its work, the version may be one of those undone: then nothing is said.
func (c *Checker) know(v *version, token string, trust bool) bool {
	if v.writer != nil || v.is != unknownWriter {
		return false
	}
	w := c.tokens[token]
	if token == "" || w == nil || w.state == stateOpen || w.state == stateLimbo {
		if token != "" && v.token == "" {
			v.token = token
			c.pending[token] = append(c.pending[token], v)
		}
		if w == nil && v.order != history.OrderInitial && v.row != nil {
			if order := c.places.at(v.hash()); order != 0 {
				putAt(c, v, order, 0)
				v.is = forgotten
			} else if c.places.evicted && v.order == 0 {
				c.unsure = true
			}
		}
		return false
	}
	return c.reveal(v, w, trust)
}

// reveal makes v a version of w, which has ended and did not list it.
func (c *Checker) reveal(v *version, w *txn, trust bool) bool {
	if w.undone && !trust {
		return false
	}
	v.writer, v.wstmt = w, -1
	if w.implicit && len(w.stmts) == 1 { // it can have been no other, told already or not: so the finding's id does not depend on when it is told
		v.wstmt = 0
	}
	w.touched = append(w.touched, v)
	if v.thin = garbage(c, v, w); v.thin || w.state == stateAborted {
		dies(c, v)
		return false
	}
	if w.undone && v.row != nil && v.order > 0 && slices.ContainsFunc(v.row.ordered, func(u *version) bool { return u != v && u.writer == w && u.is == live }) {
		// Beside a version that the transaction lists, this one was replaced by it, or it was undone.
		if w.undid() {
			dies(c, v)
		} else {
			v.writer = nil
		}
		return false
	}
	v.is = live
	if v.row == nil || v.order == 0 {
		return true
	}
	for _, u := range v.row.ordered {
		if u == v || u.writer != w || u.is != live {
			continue
		}
		if u.order > v.order {
			v.inter = true
		} else if u.order < v.order && !u.inter {
			u.inter = true
			c.dirtyReads(anomaly.G1b, u)
		}
	}
	return true
}

// adopt gives t the versions that were seen before its tokens or its end were known.
func (c *Checker) adopt(t *txn) (revealed []*version) {
	for _, tok := range t.tokens {
		list := c.pending[tok]
		if list == nil {
			continue
		}
		delete(c.pending, tok)
		for _, v := range list {
			v.token = ""
			if v.writer != nil || v.is == live {
				continue
			}
			if c.reveal(v, t, v.trusted(t)) {
				revealed = append(revealed, v)
			} else if v.is == dead {
				c.dirtyReads(anomaly.G1a, v)
			}
		}
	}
	return revealed
}

// trusted reports whether v, of w, was read at a level that shows committed versions only, or another transaction replaced it. What w replaced itself it
// may have undone together with that.
func (v *version) trusted(w *txn) bool {
	if v.next != nil && v.next.writer != w {
		return true
	}
	return slices.ContainsFunc(v.readers, func(r reader) bool { return r.t.level != "" && r.t.level != product.ReadUncommitted })
}

// installAborted marks what a rolled-back transaction wrote.
func (c *Checker) installAborted(t *txn) {
	from := t.installed
	t.state, t.installed = stateAborted, len(t.accesses)
	defer c.spare.entered(t)
	for i := from; i < len(t.accesses); i++ {
		a, said := &t.accesses[i], t.toldBy(i)
		if !a.op.writes() || a.op == opDelete {
			continue
		}
		v := said.node(said.ver)
		t.touched = append(t.touched, v)
		if v.writer != nil || v.is == forgotten {
			if v.writer != t {
				c.coverage.contradiction(twoWriters)
			}
			continue
		}
		v.writer, v.wstmt, a.node = t, a.stmt, v
		dies(c, v)
		putAt(c, v, said.order, 0)
		c.dirtyReads(anomaly.G1a, v)
		if v.next != nil {
			dirtyUpdate(c, v, v.next)
		}
	}
	c.adopt(t)
}

// dies says that v was undone. It is not in the version order then and has no successor (Adya 1999, section 4.1), so the anti-dependencies that reads of it
// have from the time when that was not known are taken out.
func dies(c *Checker, v *version) {
	if v.is = dead; v.after() == nil {
		return // there are none
	}
	for _, r := range v.readers {
		for _, l := range r.t.out {
			c.retract(l, func(e *edge) bool { return e.from == v && e.pred == nil && e.kind&cycle.Anti != 0 })
		}
	}
}

// installLimbo keeps a transaction of unknown outcome aside, until a version of it is seen.
func (c *Checker) installLimbo(t *txn) {
	t.state = stateLimbo
	seen := false
	for i := range t.accesses {
		a := &t.accesses[i]
		if !a.op.writes() || a.op == opDelete || t.stmts[a.stmt].failed {
			continue
		}
		said := t.toldBy(i)
		v := said.node(said.ver)
		t.touched = append(t.touched, v)
		if v.writer == nil && v.is == unknownWriter {
			v.writer = t
			seen = seen || v.trusted(t)
		}
	}
	for _, tok := range t.tokens {
		for _, v := range c.pending[tok] {
			seen = seen || v.trusted(t)
		}
	}
	if seen {
		c.coverage.Inferred++
		c.install(t)
	}
}

// writeEdges draws the edges of a version that a committed transaction wrote.
func (c *Checker) writeEdges(v *version) {
	w := v.writer
	if w == nil {
		return
	}
	if v.is == dead {
		c.dirtyReads(anomaly.G1a, v)
		return
	}
	if v.is != live {
		return
	}
	for _, r := range v.readers {
		readOf(c, r, v)
		followed(c, r, v)
	}
	if v.inter {
		c.dirtyReads(anomaly.G1b, v)
		return
	}
	if c.told {
		return
	}
	orderedBehind(c, v)
	before := orderedBefore(c, v)
	if v.mixed {
		mixed(c, v)
	}
	if v.row == nil || v.order == 0 {
		return
	}
	floats := v.row.floats
	for i := len(floats) - 1; i >= 0 && floats[i].asOf > before.stop; i-- {
		f := floats[i]
		if f.asOf > v.order || f.asOf == 0 || f.next != nil {
			continue
		}
		for _, r := range f.readers {
			before.readOf(c, r, f, v)
		}
	}
}

// readEdges draws the edges of t's access number i, which read v.
func (c *Checker) readEdges(t *txn, i int32, v *version) {
	switch {
	case v.is == dead:
		c.dirtyRead(anomaly.G1a, v, reader{t, i})
		return // not in the version order: it has no successor
	case v.is == live && v.writer != nil && v.writer != t:
		readOf(c, reader{t, i}, v)
		if v.inter {
			c.dirtyRead(anomaly.G1b, v, reader{t, i})
		}
	}
	followed(c, reader{t, i}, v)
}

// readOf draws the dependencies of a read of v on the writers of what it gave.
func readOf(c *Checker, r reader, v *version) {
	if !v.mixed && !limited(c, r) {
		c.addWR(v, v, r, edgeWR)
		return
	}
	his, kind := usesBy(c, v), edgeWR
	if !concerned(c, r, his) {
		kind = edgeRowWR
	}
	c.addWR(v, v, r, kind)
	if v.mixed || kind == edgeRowWR {
		readBehind(c, v, r, his)
	}
}

// addWR draws the dependency of a read of v on the writer of u, which is v or a version of which it took over columns. An UPDATE that changed nothing depends on that writer only
// if the writer itself depended on the row: if it wrote blindly, the two could have come in the other order, with the
// same result. Not so if the transaction then read the row as it was before v: then the UPDATE had not come first either.
func (c *Checker) addWR(u, v *version, r reader, kind kinds) {
	switch a := r.access(); {
	case a.op == opMatch && !a.denied && !u.writer.used(u):
		return
	case (a.op == opMatch || a.op == opUpdate) && usesBy(c, u).commutes(c.texts.of(r.t, a.stmt)):
		return // it looked at columns that the other one left alone
	}
	if u == v {
		futureRead(c, v, r)
	}
	c.addEdge(kind, u.writer, r.t, u, v, u.wstmt, r.access().stmt)
}

// used reports whether t read the row of v, its own version, or computed v from the row.
func (t *txn) used(v *version) bool {
	if v.wstmt >= 0 && t.stmts[v.wstmt].current {
		return true
	}
	self := edge{from: v, to: v}
	for i := range t.accesses {
		a := &t.accesses[i]
		if a.node == nil || a.own || a.op.writes() {
			continue
		}
		if probe := (edge{from: a.node, to: a.node}); probe.sameRow(&self) {
			return true
		}
	}
	return false
}

// matched reports whether statement number stmt of t is an UPDATE that found v and changed nothing in it.
func (t *txn) matched(v *version, stmt int32) bool {
	return slices.ContainsFunc(t.accesses, func(a access) bool { return a.op == opMatch && a.node == v && a.stmt == stmt })
}

// addRW draws the anti-dependency from a read of v to the writer of the later version n: edgeRW, or edgeRowRW if n's writer assigned other columns.
func (c *Checker) addRW(r reader, v, n *version, kind kinds) {
	a := r.access()
	if r.t == n.writer || a.superseded || a.op.writes() {
		return // an UPDATE that read v replaced it itself
	}
	if v.is == dead || v.row == nil && currentLater(r, v) || r.refused(v, n) || r.confirmed(c, v, n) {
		return
	}
	c.addEdge(kind, r.t, n.writer, v, n, a.stmt, n.wstmt)
	c.requests.judgeRead(r, v, n)
	if kind == edgeRowRW {
		return
	}
	if w := r.t.wroteAfter(n); w != nil && !usesBy(c, n).commutes(usesBy(c, w)) {
		// The reader overwrote, perhaps by way of others, what it had not seen: one edge stands for the ww path, so that
		// a lost update is told as one of two transactions, however many wrote in between.
		c.draw(edge{kind: edgeWW, over: n.nextInstalled() != w, from: n, to: w, fromStmt: n.wstmt, toStmt: w.wstmt}, n.writer, r.t)
	}
}

// wroteAfter gives a version of t's that comes after n in the same row; nil if there is none.
func (t *txn) wroteAfter(n *version) *version {
	if r := n.row; r != nil && n.order != 0 && n.next == nil && len(r.ordered) > 0 && r.ordered[len(r.ordered)-1] == n {
		return nil // nothing does, see precedes
	}
	for _, i := range t.writes {
		if w := t.accesses[i].node; w != nil && w != n && w.writer == t && w.is == live && n.precedes(w) {
			return w
		}
	}
	return nil
}

// precedes reports whether w is known to come after v in the same row.
func (v *version) precedes(w *version) bool {
	if v.row != nil && v.row == w.row && v.order != 0 && w.order != 0 {
		return v.order < w.order
	}
	for u, i := v.next, 0; u != nil && i < maxWalk; u, i = u.next, i+1 {
		if u == w {
			return true
		}
	}
	return false
}

// currentLater reports whether r's transaction later made a current read of the same row, for rows known by their chain
// of versions only: there register cannot know that two versions are of one row.
func currentLater(r reader, v *version) bool {
	if r.access().op != opRead {
		return false
	}
	for u, i := v, 0; u != nil && i < maxWalk; u, i = u.next, i+1 {
		for _, o := range u.readers {
			if o.t == r.t && o.acc > r.acc && o.access().op != opRead {
				return true
			}
		}
	}
	return false
}

// refused reports whether a later UPDATE or DELETE of the reader named the row by its key, was to change it as it was before n, and left it alone since n: its
// WHERE had the old value (WHERE id = 1 AND version = 7), or may have had it, where the images do not tell. That showed the transaction that its read was out
// of date, as a locking read does.
func (r reader) refused(v, n *version) bool {
	if r.access().op != opRead {
		return false
	}
	for _, p := range r.t.reads {
		if s := &r.t.stmts[p.stmt]; p.stmt <= r.access().stmt || !p.whole || p.table != n.table || !p.names(n) || s.failed || s.verb != "update" && s.verb != "delete" {
			continue
		}
		for _, ch := range p.table.changes {
			if !ch.of(n) || ch.t.gone || ch.was.matches(&p.where) == condition.False || ch.now.matches(&p.where) == condition.True {
				continue
			}
			if found, _ := p.found(ch); !found && (ch.prev == v || ch.v == v.nextInstalled() || committedBefore(ch.t, p)) {
				return true
			}
		}
	}
	return false
}

// confirmed reports whether a later UPDATE of the reader compared each column that n's writer changed with the value that the reader had read, not with the one
// that n has, and found the row all the same (WHERE id = 1 AND stock = 161): another transaction had put the value back. So what the reader had read was current.
func (r reader) confirmed(c *Checker, v, n *version) bool {
	if r.access().op != opRead {
		return false
	}
	w := r.t.wroteAfter(n)
	if w == nil {
		return false
	}
	for _, p := range r.t.reads {
		if s := &r.t.stmts[p.stmt]; p.stmt != w.wstmt || p.stmt <= r.access().stmt || p.table != n.table || s.failed || s.verb != "update" {
			continue
		}
		his, list := usesBy(c, n), p.table.changes
		for i := len(list) - 1; i >= 0 && i >= len(list)-maxWalk && his != nil; i-- {
			if ch := list[i]; ch.of(n) && ch.prev == v && !ch.t.gone {
				return len(his.assigned) > 0 && !slices.ContainsFunc(his.assigned, func(name string) bool { return !ch.undoneBy(&p.where, name) })
			}
		}
	}
	return false
}

// undoneBy reports whether a condition asks for the value that a column had before the change, and not for the one that it has since.
func (ch *change) undoneBy(where *condition.Condition, column string) bool {
	if where.Op == "and" {
		return slices.ContainsFunc(where.Args, func(c condition.Condition) bool { return ch.undoneBy(&c, column) })
	}
	return where.Op == "=" && where.Column == column && ch.was.matches(where) == condition.True && ch.now.matches(where) == condition.False
}

// dirtyReads reports the committed readers of a version that was rolled back (G1a) or that its writer replaced itself (G1b).
func (c *Checker) dirtyReads(class oracle.Class, v *version) {
	for _, r := range v.readers {
		c.dirtyRead(class, v, r)
	}
}

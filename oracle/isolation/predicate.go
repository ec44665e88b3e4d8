package isolation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/statement/condition"
	"wirecheck/trace/lex"
)

// Predicate dependencies (Adya 1999, section 4.4). Take a statement S of T that asked for the rows of a table for which P holds, and
// another transaction W that changed a row of the table. W changes the match of the row if P holds for the row before W's first write and
// not behind its last one, or the other way round; it holds for no row that does not exist.
//
//   - W -wr-> T, if S could see what W committed, and W changes the match: what S found rests on it. Adya draws this edge from the last
//     such W alone; from an earlier one a path of ww leads to that one.
//   - T -rw-> W, if S could not see what W committed, and W changes the match, or S did not find the row though it names all that it
//     found, and P holds for what W made of it. Adya draws this edge to the first later W' that changes the match. W' is W or comes
//     before W in the row, so a path of ww leads from W' to W, and the edge has as many rw as the path.
//
// Where the history has all that is written (Options.Whole), what S found settles what it saw, too: if P holds for the version that W
// replaced, S could see that one for certain, and S names all that it found but not this row, then S saw the row as W left it, or later.
// Elsewhere a session that nobody observed may have deleted it before W came, and so may a statement of which not all was seen.
//
// S may also miss a row that it should have found: it names all that it found, P holds for what W made of the row, S must have seen that, and
// the history has no later version. Then S saw an older state than it had to, or a session that nobody observed deleted the row: not settled.
//
// So neither rule needs to know all versions of the row. Rows that S found have item dependencies already. There is an edge only if
// the images are known, P is certainly true or certainly not, and the history settles what S could see: W's COMMIT was answered
// before S took its view of the database, or sent after that.
//
// PostgreSQL tells the snapshot of a statement that may wait. It shows that S could not see what W wrote though S ended after W's COMMIT: S waited for W, say.
// A statement that locks or writes rows follows those that its snapshot has to their newest versions (PostgreSQL manual, 13.2.1). So its snapshot decides
// only if W made the row, or changed one for which P did not hold, in a version that S could see for certain.
//
// Where the level of T may show what is not committed, S could not see what W wrote only if W's first write of the row was sent after that.
// A row that T had written before S shows S T's own version, whatever its view of the database.
//
// A statement whose answer only tells that there are rows (EXISTS) depends on what it found as long as one is left. The history does not tell which change takes
// away the last one, so a change that takes away one and that S did not see is counted as not settled.
//
// An INSERT that passed over a row which was in the way found the one for which P holds, though it does not name it.
//
// A plain read is superseded, as an item read is, if T later locked the row; and if T later met a row in the way of an INSERT
// (a duplicate key): that showed it what was current. So does an upsert that met the row and lost nothing of it, and a later locking read of the table of
// which the rows are not known.

// predicate is a predicate read of a transaction.
type predicate struct {
	t        *txn
	stmt     int32
	table    *table
	where    condition.Condition
	interval condition.Interval // of where; without a column if there is none
	from, to uint64
	whole    bool              // the statement's accesses name all rows for which the condition held
	current  bool              // it saw what was current
	within   bool              // a subquery asked: what the statement wrote does not tell what it saw
	met      bool              // the condition held for one row, which was in the way of an INSERT
	some     bool              // the answer tells that there are some rows, and the statement does not name them
	last     string            // see history.PredicateRead.Last
	groups   *condition.Groups // which groups the answer showed, and why; nil: each row that comes or goes changes it
	effects  effects           // of the transaction whose changes were compared last
	counted  bool              // the client saw a number of them or a sum, and no row
	dirty    bool              // it may have seen what was not committed
	snapshot *history.Snapshot // nil: not known
	awaits   bool              // what is known of its groups is still to be told
	compared bool              // with the changes that were there when its transaction ended
	// relocked are later reads of the transaction that saw what was current in the table, where it is not known which rows.
	relocked []*predicate
}

// maxCompared is how many changes a predicate read is compared with at most, and the other way round.
const maxCompared = 4096

// addReads keeps what statement i asked for, until its transaction ends.
func (t *txn) addReads(c *Checker, i int32, e *history.Event) {
	if !e.Predicate || e.Error != nil {
		return
	}
	clean, _ := t.product().Promises(t.level, anomaly.PG1a)
	why := e.Unread
	if why == "" && len(e.Reads) == 0 {
		why = "the condition was not recorded"
	}
	part := 0
	for k := range e.Reads {
		r := &e.Reads[k]
		where, err := condition.Parse(r.Where)
		if err != nil {
			why = err.Error()
			continue
		}
		if list := where.Reasons(); len(list) == 0 {
			part = 1
		} else if why == "" {
			why = list[0]
		}
		if where.IsNever() { // no row beside those that were found changes the answer
			continue
		}
		var groups *condition.Groups
		if r.Groups != "" {
			if groups, err = condition.ParseGroups(r.Groups); err != nil {
				why = err.Error()
				continue
			}
		}
		interval, _ := where.Interval()
		var snapshot *history.Snapshot
		if s, ok := history.ParseSnapshot(r.Snapshot); ok {
			snapshot = &s
		}
		t.reads = append(t.reads, &predicate{snapshot: snapshot, t: t, stmt: i, table: c.tableOf(r.Table), where: where, interval: interval, from: r.From, to: r.To, whole: r.Whole, current: r.Current, within: r.Within, met: r.Met, some: r.Some, counted: r.Counted, groups: groups, last: r.Last, dirty: !clean && !r.Current})
	}
	if why != "" {
		c.coverage.unread(why)
		c.conditions.add(e, lex.Of(t.product().Dialect), "", why)
		c.coverage.Partly += part
	} else {
		c.coverage.Predicates++
	}
}

// predicates draws the predicate dependencies of t, which has just committed, and of what it changed.
func (t *txn) predicates(c *Checker, changes []*change) {
	for _, ch := range changes {
		tb := ch.v.table
		tb.changes = byEnd(tb.changes, ch, func(ch *change) uint64 { return ch.t.end })
	}
	for _, ch := range changes {
		tb := ch.v.table
		for i := len(tb.reads) - 1; i >= 0 && tb.reads[i].t.end >= t.floor; i-- {
			if len(tb.reads)-i > maxCompared {
				c.coverage.Crowded++
				break
			}
			if p := tb.reads[i]; !p.t.gone {
				p.compare(ch, c)
			}
		}
	}
	for _, p := range t.reads {
		if t.stmts[p.stmt].failed || p.compared {
			continue
		}
		if p.awaits = c.late[t.id] == t && p.hides(); p.awaits {
			continue
		}
		p.compared = true
		for _, q := range t.reads {
			if q.stmt > p.stmt && q.current && q.table == p.table && !t.stmts[q.stmt].exact() {
				p.relocked = append(p.relocked, q)
			}
		}
		p.whole = p.whole && !t.partial
		list := p.table.changes
		i := len(list) - 1
		for ; i >= 0 && list[i].t.end >= t.floor; i-- {
			if len(list)-i > maxCompared {
				c.coverage.Crowded++
				break
			}
			if !list[i].t.gone {
				p.compare(list[i], c)
			}
		}
		if c.levels != nil {
			p.compareOld(c, list[:i+1])
		}
		p.table.reads = byEnd(p.table.reads, p, func(p *predicate) uint64 { return p.t.end })
	}
}

// byEnd puts one more into a list in the order of the ends of transactions. What one did may be told when others have ended since.
func byEnd[T any](list []T, one T, end func(T) uint64) []T {
	i := len(list)
	for i > 0 && end(list[i-1]) > end(one) {
		i--
	}
	return slices.Insert(list, i, one)
}

// compareOld looks for rows that the statement must have found and did not, among those that older transactions left. No level is known to be satisfied with
// such a row, or where too much would have to be compared.
func (p *predicate) compareOld(c *Checker, list []*change) {
	if p.table.forgot || len(list) > c.grant {
		c.uncompared++
		return
	}
	c.grant -= len(list)
	unsure := false
	for _, ch := range list {
		switch p.mustFind(ch) {
		case condition.True:
			c.missed++
		case condition.Unsure:
			unsure = true
		}
	}
	if unsure {
		c.uncompared++
	}
}

// mustFind reports whether the statement names all rows that it found, but not this one, though it must have found it as the change left it.
func (p *predicate) mustFind(ch *change) condition.Truth {
	if !p.whole || p.met || p.t == ch.t || ch.outside(&p.interval) {
		return condition.False
	}
	holds := ch.now.matches(&p.where)
	if holds == condition.False || p.wrote(ch) || !committedBefore(ch.t, p) || p.mayBeGone(ch.v) {
		return condition.False
	}
	if found, certain := p.found(ch); found || !certain {
		return condition.False
	}
	return holds
}

// grantOld is how many comparisons of conditions with old changes there are at most.
const grantOld = 1 << 24

// compare draws the dependency between a predicate read and a change, if there is one for certain.
func (p *predicate) compare(ch *change, c *Checker) {
	switch p.relate(ch, c) {
	case edgeWR:
		c.draw(edge{kind: edgeWR, from: ch.v, to: ch.v, fromStmt: ch.stmt, toStmt: p.stmt, pred: p}, ch.t, p.t)
	case edgeRW:
		c.draw(edge{kind: edgeRW, from: ch.v, to: ch.v, fromStmt: p.stmt, toStmt: ch.stmt, pred: p}, p.t, ch.t)
	case unsettled:
		c.coverage.Unsettled++
	}
}

// unsettled says that there is a dependency, and that it is not certain which.
const unsettled = edgeRW | edgeWR

// relate gives the kind of the dependency between a predicate read and a change; 0: there is none for certain.
func (p *predicate) relate(ch *change, c *Checker) kinds {
	if p.t == ch.t || p.awaits || p.t.state != stateCommitted || ch.outside(&p.interval) {
		return 0
	}
	was, now := ch.was.matches(&p.where), ch.now.matches(&p.where)
	if was == condition.False && now == condition.False {
		return 0
	}
	found, certain := p.found(ch)
	if found && !p.some || p.wrote(ch) {
		return 0
	}
	if was == condition.Unsure && !(p.whole && certain && now == condition.True) || now == condition.Unsure {
		ch.unknown(c)
		return 0
	}
	if p.some {
		if was == condition.True && (now == condition.False || p.differs(ch)) && !committedBefore(ch.t, p) {
			c.coverage.Others++
		}
		return 0
	}
	changed := was != condition.Unsure && was != now
	visible := committedBefore(ch.t, p) || c.opts.Whole && c.coverage.Approximate+c.coverage.Opaque == 0 && was == condition.True && p.whole && certain && p.sawAtLeast(ch.prev)
	hidden := ch.t.sent > p.to
	if p.dirty {
		hidden = ch.t.stmts[ch.first].from > p.to
	}
	hidden = (hidden || p.outOfSnapshot(ch, was)) && sameClock(ch.t, p.t)
	visible = visible || p.met && now == condition.True && !hidden && p.waitedFor(ch)
	if p.groups != nil {
		switch p.effect(ch, visible) {
		case condition.False:
			return 0
		case condition.Unsure:
			ch.unknown(c)
			return 0
		}
		changed = true
	}
	if p.moved(ch, was, now) && certain && !visible {
		ch.unknown(c)
	}
	switch {
	case !changed && !(p.whole && certain && now == condition.True):
	case visible && now == condition.True && p.whole && certain && !p.met && !p.mayBeGone(ch.v):
		return unsettled
	case visible && changed:
		return edgeWR
	case hidden && !p.superseded(c, ch):
		return edgeRW
	case !visible && !hidden:
		return unsettled
	}
	return 0
}

// moved reports whether a change left a row among those for which the condition holds, which the statement did not name, and changed what the condition names:
// one that OFFSET left out may then be in the answer.
func (p *predicate) moved(ch *change, was, now condition.Truth) bool {
	return was == condition.True && now == condition.True && !p.whole && !p.counted && p.groups == nil && p.differs(ch)
}

// differs reports whether a change of a row changed a column that the condition names, so that the row may be another one to it.
func (p *predicate) differs(ch *change) (differs bool) {
	p.where.Columns(func(column string) {
		was, is := ch.was.values[column], ch.now.values[column]
		differs = differs || (was == nil) != (is == nil) || was != nil && *was != *is
	})
	return differs
}

// found reports whether the statement found the row of a change, in whatever version; certain is false if a row without a key cannot
// be followed far enough back to say that it did not.
func (p *predicate) found(ch *change) (found, certain bool) {
	if r := ch.v.row; r != nil {
		return slices.ContainsFunc(p.t.accesses, func(a access) bool { return p.own(a) && a.node.row == r }), true
	}
	v := ch.v
	for range maxWalk {
		if slices.ContainsFunc(p.t.accesses, func(a access) bool { return p.own(a) && a.node == v }) {
			return true, true
		}
		if v.prev == nil {
			break
		}
		v = v.prev
	}
	return false, ch.born
}

// waitedFor reports whether the row of a change had the key all the while that an INSERT met a row with it: no other row could then have it, and the
// INSERT waits until the transaction ends that makes such a row.
func (p *predicate) waitedFor(ch *change) bool {
	to := ch.t.stmts[ch.stmt].to
	return to != 0 && to < p.from && sameClock(ch.t, p.t)
}

// outOfSnapshot reports whether the snapshot of the statement certainly does not have a change, and the statement did not follow the row to it. was says
// whether the condition held before.
func (p *predicate) outOfSnapshot(ch *change, was condition.Truth) bool {
	if p.snapshot == nil || p.dirty || !(ch.born || was == condition.False && p.sawAtLeast(ch.prev)) {
		return false
	}
	return slices.ContainsFunc(ch.t.accesses, func(a access) bool {
		xmin, ok := xminOf(a.node)
		return ok && a.op.writes() && a.node.writer == ch.t && p.snapshot.Hides(xmin)
	})
}

// xminOf reads the number of the transaction, or subtransaction, in the id of a version of PostgreSQL: (block,place)/xmin, see rewrite/postgres.
func xminOf(v *version) (uint32, bool) {
	if v == nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(v.id, ")/")
	text, _, _ := strings.Cut(rest, "/")
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err == nil
}

func committedBefore(t *txn, p *predicate) bool {
	return t.state == stateCommitted && t.answered && t.to < p.from && sameClock(t, p.t)
}

// sawAtLeast reports whether a version, or a later one of the row, is what the statement saw.
func (p *predicate) sawAtLeast(v *version) bool {
	switch {
	case v == nil || p.dirty:
		return false
	case v.order == history.OrderInitial:
		return true
	}
	return v.is == live && v.writer != nil && committedBefore(v.writer, p)
}

// mayBeGone reports whether the statement may have seen a later version of a row.
func (p *predicate) mayBeGone(v *version) bool {
	for i := 0; i < maxWalk; i++ {
		if v = v.after(); v == nil {
			return false
		}
		if w := v.writer; w == nil || p.dirty || w.sent <= p.to || !sameClock(w, p.t) {
			return true
		}
	}
	return true
}

// wrote reports whether the transaction had written the row before.
func (p *predicate) wrote(ch *change) bool {
	r := ch.v.row
	return r != nil && slices.ContainsFunc(p.t.accesses, func(a access) bool {
		return a.stmt < p.stmt && a.op.writes() && a.node != nil && a.node.row == r && !p.t.stmts[a.stmt].failed
	})
}

// superseded reports whether the transaction later saw the current state of the changed row, see above.
func (p *predicate) superseded(c *Checker, ch *change) bool {
	t := p.t
	if slices.ContainsFunc(p.relocked, func(q *predicate) bool { return ch.t.sent <= q.to }) {
		return true
	}
	wrote := map[int32]bool{}
	for i := range t.accesses {
		a := &t.accesses[i]
		if a.node == nil || a.stmt < p.stmt {
			continue
		}
		wrote[a.stmt] = wrote[a.stmt] || a.op.writes()
		if a.stmt == p.stmt {
			if a.op == opLock || a.op.writes() {
				return false // it was no plain read
			}
			continue
		}
		same := a.node == ch.v || a.node.row != nil && a.node.row == ch.v.row
		if same && (a.op == opLock || t.stmts[a.stmt].current && (a.op == opUpdate || a.op == opMatch) || upserted(c, t, a, ch)) {
			return true
		}
	}
	for i := p.stmt + 1; int(i) < len(t.stmts); i++ {
		if s := &t.stmts[i]; s.duplicate || s.verb == "insert" && !s.failed && s.coverage != history.CoverageOpaque && !wrote[i] {
			return true
		}
	}
	return false
}

// upserted reports whether access a of t is of an INSERT that met the changed row and lost nothing of the change: it left the row alone, or gave the columns
// that it assigned the values that they had since the change, by the images or since both offered the same.
func upserted(c *Checker, t *txn, a *access, ch *change) bool {
	if t.stmts[a.stmt].verb != "insert" || a.op != opUpdate {
		return a.op == opMatch && t.stmts[a.stmt].verb == "insert"
	}
	u := c.texts.of(t, a.stmt)
	if u == nil {
		return false
	}
	same := ch.now.same(a.node.image)
	mine, takes := offered(t, a.stmt)
	his, _ := offered(ch.t, ch.stmt)
	takes = takes && ch.born && ch.first == ch.stmt
	return !slices.ContainsFunc(u.assigned, func(name string) bool {
		v, known := mine[name]
		w, also := his[name]
		return !slices.Contains(same, name) && !(takes && known && also && v == w)
	})
}

// offered are the values of the row that statement i offered, see oracle.Offered.
func offered(t *txn, i int32) (map[string]string, bool) {
	s := &t.stmts[i]
	if s.verb != "insert" || s.shown == nil && strings.ContainsAny(s.sql, "$?") {
		return nil, false
	}
	params := ""
	if s.shown != nil {
		params = s.shown.params
	}
	return oracle.Offered(s.sql, params, s.at, t.product())
}

// forget drops the predicate reads and the changes of forgotten transactions.
func (tb *table) forget() {
	tb.reads = slices.DeleteFunc(tb.reads, func(p *predicate) bool { return p.t.gone })
	changes := len(tb.changes)
	tb.changes = slices.DeleteFunc(tb.changes, func(ch *change) bool { return ch.t.gone })
	tb.forgot = tb.forgot || len(tb.changes) < changes
}

// predicateSentence says why a predicate dependency leads from a to b. from and to say in which statements.
func predicateSentence(p *oracle.Edge, e *edge, a, b, from, to string) string {
	verb, rows := p.Asked("rows of " + e.pred.table.name)
	asked := verb + " " + rows
	row := "row " + p.RowText()
	how := "changed"
	switch v := e.to; {
	case v.del:
		how = "deleted"
	case v.inserted():
		how = "inserted"
	}
	if e.kind == edgeRW {
		if how == "inserted" {
			row = "one more, " + row
		}
		found := p.FoundText()
		return fmt.Sprintf("%s %s %s%s; %s then %s %s, %s", a, asked, from, found, b, how, row, to)
	}
	return fmt.Sprintf("%s %s %s, when %s had %s %s, %s", b, asked, to, a, how, row, from)
}

// words is what the predicate asked for, and how many rows it found, nil: that is not known. groups is the group of an edge's row, where it asked for groups.
func (p *predicate) words(e *edge) (where, groups string, found *int) {
	if p.groups != nil {
		return p.where.Words(), p.groupWords(e), nil
	}
	rows, of := p.where.Groups()
	if of.Op == "" {
		if !p.where.Partial() { // else they are those of the other part, too
			found = p.count()
		}
		return p.where.Words(), "", found
	}
	for _, v := range []*version{e.to, e.from} {
		if v == nil {
			continue
		}
		if value, known := v.image.values[of.Column]; known {
			return rows.Words(), condition.Compare("=", of.Kind, of.Column, value).Words(), nil
		}
	}
	return rows.Words(), of.Words(), nil
}

// count counts the rows that the statement found; nil: that is not known.
func (p *predicate) count() *int {
	if !p.whole {
		return nil
	}
	n := 0
	for i := range p.t.accesses {
		if a := p.t.accesses[i]; p.own(a) && a.node.table == p.table {
			n++
		}
	}
	return &n
}

// own reports whether a transaction's access is one of the statement's that tells what the predicate read.
func (p *predicate) own(a access) bool {
	return a.stmt == p.stmt && a.node != nil && !(p.within && a.op.writes())
}

package isolation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/statement/condition"
	"wirecheck/trace/flow"
)

// Write skew between requests.
//
// A unit is a request, or a transaction that belongs to none. Two units U and V show a write skew if U did not see a change by V that bears on
// what U had asked for or read before, V did not see such a change by U, and each made its change after its read. Then each of them comes
// before the other. Two rules keep it true:
//   - A read that its unit renewed before its change does not count: a later read that concerns the changed row stands for it. If a statement
//     in between may have read the table, and it is not known what, nothing is reported.
//   - A read on which no later write depends does not count. Within one transaction each read counts (Adya). Otherwise the values do not tell,
//     but a condition may: the unit asked for the rows where room = 1 and hour = 9, found none, and then made a row for which that holds. It took
//     the constants of its question for the row. That is a check, unless requests are known that found rows with a question of the
//     same shape and made one more all the same (a list that grows, and no check). Or the unit counted the rows where on_call holds, or listed
//     them all behind a read of one that it knew already, and then moved this one out by an UPDATE: it changed what it had counted. That is a check, unless
//     requests are known that did so with the number that the unit would have seen behind the other one, or with one that is farther off.
//
// And what a question missed must still be there when the second of the two changes comes: a booking that was cancelled stands in nobody's way. Where the writes of
// transactions that ended in between are still to be told, the finding waits for them.
//
// Where the second rule does not hold for both units, the finding is only possible: a list may be what a request chose its row from.
//
// Two transactions that show this by themselves are on a cycle of transactions, and are reported as such alone.

// missed is a read of a unit that did not see a change by another unit.
type missed struct {
	t    *txn
	stmt int32
	ch   *change
	e    edge // its pred is nil if the statement read the changed row itself
}

// maxGuards bounds the shapes of questions that are known to be no check, and those with known numbers.
const maxGuards = 10_000

// maxUnit bounds the transactions of a unit: a trace may cover a whole job.
const maxUnit = 500

// judged reports whether t's unit can be judged.
func (t *txn) judged() bool { return !t.mixed && (t.request == nil || len(t.request.txns) <= maxUnit) }

// sameUnit reports whether two transactions belong to one unit.
func sameUnit(a, b *txn) bool { return a == b || a.request != nil && a.request == b.request }

// unit gives the transactions of t's unit, in the order of their numbers.
func (t *txn) unit() []*txn {
	if t.request == nil {
		return []*txn{t}
	}
	return slices.SortedFunc(maps.Values(t.request.txns), func(a, b *txn) int { return int(int64(a.id) - int64(b.id)) })
}

// judgeChanges looks for write skew between the unit of t, which has just made changes, and others.
func (q *requests) judgeChanges(t *txn, changes []*change) {
	if len(q.by) == 0 || len(changes) == 0 || !t.judged() {
		return
	}
	mine, begin := t.unit(), t.begin
	for _, u := range mine {
		begin = min(begin, u.begin)
	}
	q.learn(mine, changes)
	since := func(tb *table) []*change {
		i := len(tb.changes)
		for i > 0 && tb.changes[i-1].t.end >= begin {
			if i--; len(tb.changes)-i > maxCompared {
				q.c.coverage.Crowded++
				break
			}
		}
		return tb.changes[i:]
	}
	own := func(tb *table) []*change {
		return slices.DeleteFunc(slices.Clone(changes), func(ch *change) bool { return ch.v.table != tb })
	}
	known := map[*txn][]missed{} // what the unit of a transaction missed, by its first transaction
	for _, u := range mine {
		for _, m := range u.missed(q.c, since) {
			other := m.ch.t
			if !other.judged() {
				continue
			}
			theirs := other.unit()
			if t.request == nil && other.request == nil || alone(theirs, mine) || alone(mine, theirs) {
				continue
			}
			list, ok := known[theirs[0]]
			if !ok {
				for _, v := range theirs {
					list = append(list, v.missed(q.c, own)...)
				}
				known[theirs[0]] = list
			}
			for _, n := range list {
				if m.before(n.ch) && n.before(m.ch) && !m.withinTransactions(&n) && !m.renewed(mine, n.ch) && !n.renewed(theirs, m.ch) {
					q.reportSkew(m, n)
				}
			}
		}
	}
}

// alone reports whether a unit is one transaction without a request, in a session that the other unit uses: it may belong to that one.
func alone(unit, other []*txn) bool {
	return unit[0].request == nil && slices.ContainsFunc(other, func(t *txn) bool { return t.session == unit[0].session })
}

// missed gives the reads of t that did not see one of the changes by another unit.
func (t *txn) missed(c *Checker, changes func(*table) []*change) (list []missed) {
	if t.state != stateCommitted {
		return nil
	}
	for _, p := range t.reads {
		if t.stmts[p.stmt].failed {
			continue
		}
		for _, ch := range changes(p.table) {
			if !sameUnit(t, ch.t) && !ch.t.gone && p.relate(ch, c) == edgeRW {
				list = append(list, missed{t, p.stmt, ch, edge{kind: edgeRW, from: ch.v, to: ch.v, fromStmt: p.stmt, toStmt: ch.stmt, pred: p}})
			}
		}
	}
	for _, l := range t.out {
		if l.kinds&edgeRW == 0 || l.to.gone || sameUnit(t, l.to) {
			continue
		}
		for _, e := range l.edges {
			if e.kind != edgeRW || e.pred != nil || e.fromStmt < 0 {
				continue
			}
			for _, ch := range changes(e.to.table) {
				if ch.t == l.to && ch.of(e.to) {
					list = append(list, missed{t, e.fromStmt, ch, e})
				}
			}
		}
	}
	return list
}

// of reports whether the change is of the row of a version, as far as known.
func (ch *change) of(v *version) bool { return ch.v == v || v.row != nil && ch.v.row == v.row }

// before reports whether the read certainly comes before a change by its own unit.
func (m *missed) before(ch *change) bool {
	if m.t == ch.t {
		return m.stmt < ch.first
	}
	return m.t.stmts[m.stmt].to < ch.t.stmts[ch.first].from && sameClock(m.t, ch.t)
}

// withinTransactions reports whether the cycle is one of two transactions, or both changed one row: those are other anomalies.
func (m *missed) withinTransactions(n *missed) bool {
	return m.t == n.ch.t && n.t == m.ch.t || m.ch.of(n.ch.v)
}

// renewed reports whether the unit looked again at what the other unit changed, between its read and its own change, or may have.
func (m *missed) renewed(unit []*txn, until *change) bool {
	read, end := m.t.stmts[m.stmt].to, until.t.stmts[until.stmt].from
	name := bare(m.ch.v.table.name)
	for _, u := range unit {
		for i := range u.stmts {
			s := &u.stmts[i]
			if u == m.t && int32(i) == m.stmt || s.to <= read && sameClock(u, m.t) || s.from > end && sameClock(u, until.t) || s.failed {
				continue
			}
			if u.looked(int32(i), m) {
				return true
			}
			evaluated := slices.ContainsFunc(u.reads, func(p *predicate) bool { return p.stmt == int32(i) && p.table == m.ch.v.table })
			inexact := s.coverage == history.CoverageOpaque || s.coverage == history.CoverageApproximate || s.unsure
			if inexact && !evaluated && strings.Contains(strings.ToLower(s.sql), name) {
				return true
			}
		}
	}
	return false
}

// bare is a table's name without its schema, in lower case.
func bare(table string) string { return strings.ToLower(history.Bare(table)) }

// looked reports whether statement i of t asked for, or read, the row that m missed. A later read that missed it, too, stands for m.
func (t *txn) looked(i int32, m *missed) bool {
	ch := m.ch
	for _, p := range t.reads {
		if p.stmt != i || p.table != ch.v.table {
			continue
		}
		if was, now := ch.was.matches(&p.where), ch.now.matches(&p.where); was != now || was != 0 {
			return true
		}
	}
	return slices.ContainsFunc(t.accesses, func(a access) bool { return a.stmt == i && !a.op.writes() && a.node != nil && ch.of(a.node) })
}

// depends reports whether a change by the unit of m certainly depends on the read, see above.
func (q *requests) depends(m *missed, ch *change) bool {
	if m.t == ch.t {
		return true
	}
	p := m.question()
	if p == nil {
		return false
	}
	n := p.count()
	switch {
	case p.numbers(ch):
		return true
	case n == nil:
		return false
	case *n == 0:
		return pins(&p.where) && p.made(ch) && !q.open[p.shape()]
	}
	by := p.turned(ch)
	return by != 0 && p.counts(ch, m.t.unit()) && !q.passes(move{p.shape(), by}, *n+p.turned(m.ch))
}

// question is the predicate read that missed the change, or that found the changed row among others; nil: there is none.
func (m *missed) question() *predicate {
	i := slices.IndexFunc(m.t.reads, func(p *predicate) bool { return p.stmt == m.stmt && p.whole && p.table == m.ch.v.table })
	if m.e.pred != nil || i < 0 {
		return m.e.pred
	}
	return m.t.reads[i]
}

// stands reports whether what missed the change would miss it still: nobody has taken it back since, as far as the condition tells. Where several recorders
// made the history, a change by way of another one may come only later.
func (m *missed) stands(c *Checker) bool {
	p := m.question()
	return p == nil || c.opts.Recorder == nil && !slices.ContainsFunc(p.table.changes, func(ch *change) bool {
		return ch != m.ch && ch.of(m.ch.v) && m.ch.v.precedes(ch.v) && ch.now.matches(&p.where) != m.ch.now.matches(&p.where)
	})
}

// made reports whether the condition holds for the row since the change. Who asks whether another row has a name that he is about to give to this one leaves
// this one out (WHERE name = 'x' AND id <> 7): such parts do not count.
func (p *predicate) made(ch *change) bool {
	return p.turned(ch) == 1
}

// counts reports whether the unit knew the number of rows for which the condition holds, and changed one by an UPDATE: it did not list them to choose one, or had
// read this one before.
func (p *predicate) counts(ch *change, unit []*txn) bool {
	return !ch.born && ch.now.values != nil && (p.counted || p.whole && slices.ContainsFunc(unit, func(t *txn) bool { return knew(t, ch, p) }))
}

// knew reports whether t had read the changed row before the predicate read.
func knew(t *txn, ch *change, p *predicate) bool {
	return slices.ContainsFunc(t.accesses, func(a access) bool {
		before := t == p.t && a.stmt < p.stmt || t != p.t && t.stmts[a.stmt].to < p.t.stmts[p.stmt].from && sameClock(t, p.t)
		return before && !a.op.writes() && a.node != nil && ch.of(a.node)
	})
}

// numbers reports whether the unit read the last number of a list, such as the greatest one of an invoice, and then made a row with the next one.
func (p *predicate) numbers(ch *change) bool {
	return p.turned(ch) == 1 && p.precedes(&p.where, ch.now)
}

// precedes reports whether the row has the number next to the last one, behind which the condition or a part of it asks. The readings of a clock follow one another, too,
// and are no such numbers.
func (p *predicate) precedes(where *condition.Condition, row image) bool {
	step := map[string]int64{">": 1, ">=": 1, "<": -1, "<=": -1}[where.Op]
	if step == 0 || p.last == "" || where.Column != p.last || len(where.Values) != 1 {
		return slices.ContainsFunc(where.Args, func(part condition.Condition) bool { return p.precedes(&part, row) })
	}
	last, ok := condition.Integer(where.Values[0])
	n, known := condition.Integer(row.values[p.last])
	return ok && known && n == last+step && !flow.IsClock(*where.Values[0])
}

// turned is 1 if the change made a row for which the condition holds, -1 if it made one for which it does not any more; else, and where it is not known, 0.
func (p *predicate) turned(ch *change) int {
	switch was, now := p.turns(ch); {
	case was == condition.False && now == condition.True:
		return 1
	case was == condition.True && now == condition.False:
		return -1
	}
	return 0
}

// turns tells whether the condition held for the row before the change, and since, but for a part that leaves this row out, see made.
func (p *predicate) turns(ch *change) (was, now condition.Truth) {
	if p.table != ch.v.table {
		return condition.Unsure, condition.Unsure
	}
	where := p.where
	if where.Op == "and" {
		where.Args = slices.DeleteFunc(conjuncts(&where), func(a condition.Condition) bool {
			leaves := a.Op == "<>" && ch.v.hasKey(&a) || a.Op == "not" && a.Args[0].Op == "=" && ch.v.hasKey(&a.Args[0])
			return leaves && ch.was.matches(&a) == condition.False && ch.now.matches(&a) == condition.False
		})
	}
	return ch.was.matches(&where), ch.now.matches(&where)
}

// names reports whether the condition asks for the row of a version by its key, and for more.
func (p *predicate) names(v *version) bool {
	return p.where.Op == "and" && slices.ContainsFunc(conjuncts(&p.where), func(a condition.Condition) bool { return a.Op == "=" && v.hasKey(&a) })
}

// conjuncts are what a condition joins by AND, however it is put in brackets.
func conjuncts(where *condition.Condition) (list []condition.Condition) {
	if where.Op != "and" {
		return []condition.Condition{*where}
	}
	for i := range where.Args {
		list = append(list, conjuncts(&where.Args[i])...)
	}
	return list
}

// hasKey reports whether a comparison is with the key of the version's row, or with what people know the row by where hidden columns number the rows.
func (v *version) hasKey(where *condition.Condition) bool {
	if len(where.Values) != 1 || where.Values[0] == nil {
		return false
	}
	value, label := *where.Values[0], v.rowLabel()
	return value == v.name().Key || where.Column != "" && (label == where.Column+"="+value || label == where.Column+"='"+value+"'")
}

// pins reports whether the condition fixes the value of a column, perhaps but for case; of alternatives, each must.
func pins(where *condition.Condition) bool {
	switch where.Op {
	case "and":
		return slices.ContainsFunc(where.Args, func(a condition.Condition) bool { return pins(&a) })
	case "or":
		return len(where.Args) > 0 && !slices.ContainsFunc(where.Args, func(a condition.Condition) bool { return !pins(&a) })
	}
	return where.Op == "=" || where.Op == "alike"
}

// shape is the question without its constants, however many there are.
func (p *predicate) shape() string {
	var b strings.Builder
	var add func(where *condition.Condition)
	add = func(where *condition.Condition) {
		op := where.Op
		if op == "in" {
			op = "="
		}
		fmt.Fprintf(&b, "(%s %q", op, where.Of())
		for i := range where.Args {
			add(&where.Args[i])
		}
		b.WriteByte(')')
	}
	b.WriteString(p.table.name)
	add(&p.where)
	return b.String()
}

// question is a predicate read without its transaction.
type question struct {
	table *table
	where condition.Condition
	text  string // of the condition
}

// checkedApart remembers the questions of t that no row answered, asked outside of transactions and requests, and counts the rows that the session
// makes later and for which it had asked.
func (t *txn) checkedApart(v *Coverage, changes []*change) {
	s := t.session
	if t.request != nil || t.mixed {
		return
	}
	for _, ch := range changes {
		if i := slices.IndexFunc(s.apart.asked, func(q question) bool { return (&predicate{table: q.table, where: q.where}).made(ch) }); i >= 0 {
			v.Apart++
			s.apart.asked = slices.Delete(s.apart.asked, i, i+1)
		}
	}
	for _, p := range t.reads {
		if n := p.count(); !t.implicit || t.stmts[p.stmt].failed || n == nil || *n > 0 || !pins(&p.where) {
			continue
		}
		q := question{p.table, p.where, p.where.String()}
		s.apart.asked = slices.DeleteFunc(s.apart.asked, func(k question) bool { return k.table == q.table && k.text == q.text })
		if len(s.apart.asked) == maxApart {
			s.apart.asked = slices.Delete(s.apart.asked, 0, 1)
		}
		s.apart.asked = append(s.apart.asked, q)
	}
}

// move is a question for a number of rows, without its constants, and whether the unit then moved a row in or out (see turned).
type move struct {
	shape string
	by    int
}

// passes reports whether units are known to go on with that many rows, or with more of them (moves in) or less (moves out).
func (q *requests) passes(k move, n int) bool {
	far, ok := q.moved[k]
	return ok && far*k.by >= n*k.by
}

// learn notes the questions of a unit that found rows, after which it made one more row for which their condition holds, and the numbers with which it moved
// one in or out.
func (q *requests) learn(unit []*txn, changes []*change) {
	for _, u := range unit {
		for _, p := range u.reads {
			for _, ch := range changes {
				if u == ch.t || !(&missed{t: u, stmt: p.stmt}).before(ch) {
					continue
				}
				by, n := p.turned(ch), p.count()
				if by == 0 || n == nil || *n == 0 {
					continue
				}
				if by == 1 && len(q.open) < maxGuards {
					q.open[p.shape()] = true
				}
				k := move{p.shape(), by}
				if _, known := q.moved[k]; (known || len(q.moved) < maxGuards) && p.counts(ch, unit) && !q.passes(k, *n) {
					q.moved[k] = *n
				}
			}
		}
	}
}

// doubt is a certain write skew, unless a transaction whose writes are still to be told took back what one of the units missed.
type doubt struct {
	m, n  missed
	until []*txn
}

// maxDoubts bounds the findings that wait. More of them are reported at once.
const maxDoubts = 1000

// waits reports whether a finding waits for transactions that ended between the two changes, or may have.
func (q *requests) waits(m, n *missed) bool {
	d := doubt{m: *m, n: *n}
	first, last := min(m.ch.t.end, n.ch.t.end), max(m.ch.t.end, n.ch.t.end)
	for _, t := range q.c.late {
		if t.end > first && t.begin < last && !sameUnit(t, m.ch.t) && !sameUnit(t, n.ch.t) && (m.ch.v.table.mentionedBy(t) || n.ch.v.table.mentionedBy(t)) {
			d.until = append(d.until, t)
		}
	}
	if len(d.until) == 0 || len(q.doubts) == maxDoubts {
		return false
	}
	if !slices.ContainsFunc(q.doubts, func(o doubt) bool { return o.m.t == m.t && o.n.t == n.t || o.m.t == n.t && o.n.t == m.t }) {
		q.doubts = append(q.doubts, d)
	}
	return true
}

// mentionedBy reports whether a statement of t may write the table, by its text.
func (tb *table) mentionedBy(t *txn) bool {
	return slices.ContainsFunc(t.stmts, func(s stmt) bool { return s.sql == "" || strings.Contains(strings.ToLower(s.sql), bare(tb.name)) })
}

// told goes on with the findings that waited for t, which is told or never will be.
func (q *requests) told(t *txn) {
	var ready []doubt
	for i := range q.doubts {
		d := &q.doubts[i]
		if d.until = slices.DeleteFunc(d.until, func(o *txn) bool { return o == t }); len(d.until) == 0 {
			ready = append(ready, *d)
		}
	}
	q.doubts = slices.DeleteFunc(q.doubts, func(d doubt) bool { return len(d.until) == 0 })
	for _, d := range ready {
		if d.m.t.gone || d.n.t.gone || d.m.ch.t.gone || d.n.ch.t.gone {
			q.c.coverage.maybe(anomaly.SkewBetween, d.m.ch.v.table)
			continue
		}
		q.reportSkew(d.m, d.n)
	}
}

// reportSkew reports that two units missed what the other one changed.
func (q *requests) reportSkew(m, n missed) {
	sure := q.depends(&m, n.ch) && q.depends(&n, m.ch) && m.stands(q.c) && n.stands(q.c)
	key := setKey(anomaly.G2Request, []*txn{m.t, n.t})
	if q.c.reported[key] || !sure && q.c.reported[key+"?"] || sure && q.waits(&m, &n) {
		return
	}
	if !sure {
		key += "?"
	}
	q.c.reported[key] = true
	m.t.sets = append(m.t.sets, key)
	if !sure && !q.c.opts.Possible {
		q.c.coverage.maybe(anomaly.SkewBetween, m.ch.v.table)
		return
	}
	ts, edges := []*txn{}, []edge{}
	for _, s := range []struct{ from, to *missed }{{&m, &n}, {&n, &m}} {
		ts, edges = append(ts, s.from.t), append(edges, s.from.e)
		if s.from.ch.t != s.to.t {
			ts, edges = append(ts, s.from.ch.t), append(edges, edge{kind: edgeRequest, fromStmt: s.from.ch.stmt, toStmt: s.to.stmt})
		}
	}
	first, to := firstOf(ts), make([]int, len(ts))
	for i := range ts {
		to[i] = (i + 1) % len(ts)
	}
	ts, edges = append(ts[first:len(ts):len(ts)], ts[:first]...), append(edges[first:len(edges):len(edges)], edges[:first]...)
	f := draft(q.c, anomaly.G2Request, anomaly.SkewBetween, ts, edges, to, q.c.session)
	for i := range f.Edges {
		e := &f.Edges[i]
		if e.Kind != oracle.EdgeRequest {
			continue
		}
		write, read := &f.Transactions[e.From], &f.Transactions[e.To]
		e.Text = fmt.Sprintf("%s and %s are one request (%s), and %s changed rows after %s had read", write.Label, read.Label, ts[e.From].request.name, write.Label, read.Label)
		if !sure {
			e.Text += "; whether the one depends on the other is not known"
		}
	}
	if !sure {
		f.Kind = oracle.KindUnknown
	}
	publish(q.c, f)
}

package isolation

import (
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/product"
)

// Rows that are made anew.
//
// A request reads a row; then it deletes the row and inserts one with the same key, or replaces it by REPLACE. That is an update of what the key names. In the
// MySQL family the new row has another hidden number, and REPLACE does not tell which row it deleted. So there two rows are taken for one if people know them by
// the same primary key. What comes between the read of one and the write of the other one is
//   - what others did to the row that was read: the key was free only behind that, as long as none of them gave the row another key,
//   - what others did to the row that was written, if they sent it after the read was answered,
//   - another row of the key that a request made between the two, by the clock.
//
// A DELETE or REPLACE of another request is a change of a column if that request made the row anew with another value there. If it did not, or that is not known, the
// finding is only possible. If a DELETE of the request itself checked a column that the other one changed, nothing is reported.

// made is a row of a key that a request inserted, or a claim that rests on such a one and was not found certain.
type made struct {
	t     *txn
	v     *version // nil: a claim
	claim claim
	from  reader
}

const (
	maxMade   = 10_000 // keys of which rows are remembered
	maxOfMade = 16     // rows of one of them
)

// alias is the name of a row beside its key, in the MySQL family; empty if there is none.
func (v *version) alias(t *txn) history.Row {
	if v == nil || v.row == nil || v.row.label == "" || t.product().Dialect != product.DialectMySQL {
		return history.Row{}
	}
	return history.Row{Table: v.table.name, Key: "\x00" + v.row.label}
}

// aliasOf is alias for a row that was read.
func (q *requests) aliasOf(t *txn, row history.Row) history.Row {
	label := q.c.tables[row.Table].labelOf(row.Key)
	if label == "" || t.product().Dialect != product.DialectMySQL {
		return history.Row{}
	}
	return history.Row{Table: row.Table, Key: "\x00" + label}
}

// labelOf is what people know the row of a key by; empty if that was not told.
func (tb *table) labelOf(key string) string {
	if tb == nil {
		return ""
	}
	if r := tb.find(key); r != nil {
		return r.label
	}
	return ""
}

// isOf reports whether the version is of a row, or of one with the same primary key.
func (v *version) isOf(row history.Row) bool {
	return v.name() == row || row.Table == v.table.name && v.rowLabel() != "" && v.table.labelOf(row.Key) == v.rowLabel()
}

// sameKey reports whether two versions are of one row, or of two with the same primary key.
func (v *version) sameKey(w *version) bool {
	return v.name() == w.name() || v.table == w.table && v.rowLabel() != "" && v.rowLabel() == w.rowLabel()
}

// judgeAnew judges what t claimed of the row of its write a by another row with the same key, and notes what it inserted.
func (q *requests) judgeAnew(t *txn, a *access) {
	if t.request == nil {
		return
	}
	alias := a.node.alias(t)
	if alias.Key == "" {
		return
	}
	q.judgeClaims(t, alias, a.stmt)
	if a.op == opInsert {
		q.makes(t, a.node, a.stmt)
	}
}

// makes notes that t inserted v, and judges the claims that have waited for that.
func (q *requests) makes(t *txn, v *version, stmt int32) {
	key := v.alias(t)
	if t.stmts[stmt].columns == nil || key.Key == "" {
		return
	}
	list := q.made[key]
	q.remember(key, made{t: t, v: v})
	for _, m := range list {
		if m.v == nil && !m.t.gone && !m.from.t.gone && !sameUnit(m.t, t) {
			q.judgeClaim(m.claim, m.from, m.from.access().node.nextInstalled())
		}
	}
}

// awaits remembers a claim of which more may become known.
func (q *requests) awaits(k claim, from reader, v *version) {
	key := v.alias(k.t)
	if key.Key == "" || slices.ContainsFunc(q.made[key], func(m made) bool { return m.v == nil && m.claim == k }) {
		return
	}
	q.remember(key, made{t: k.t, claim: k, from: from})
}

func (q *requests) remember(key history.Row, m made) {
	if q.made == nil || len(q.made) >= maxMade {
		q.made = map[history.Row][]made{}
	}
	list := slices.DeleteFunc(q.made[key], func(m made) bool { return m.t.gone })
	q.made[key] = append(list[max(0, len(list)+1-maxOfMade):], m)
}

// between are the versions by others between what r read and w, which is of another row with the same key.
func (q *requests) between(r reader, w *version, stmt int32, t *txn) (list []*version) {
	v := r.access().node
	others := func(n *version) bool { return n.writer != r.t && n.writer != t && !sameUnit(n.writer, t) }
	sent := func(n *version) bool { // after the read was answered
		s := r.t.stmts[r.access().stmt]
		return n.wstmt >= 0 && n.writer.stmts[n.wstmt].from > s.to && sameClock(n.writer, r.t)
	}
	for n, i := v.nextInstalled(), 0; n != nil && i < maxWalk && !rekeys(n); n, i = n.nextInstalled(), i+1 {
		if others(n) {
			list = append(list, n)
		}
	}
	for n, i := w.before(), 0; n != nil && i < maxWalk; n, i = n.before(), i+1 {
		if n.installed() && others(n) && sent(n) {
			list = append(list, n)
		}
	}
	for _, m := range q.made[w.alias(t)] {
		if n := m.v; n != nil && !m.t.gone && n.installed() && n.writer == m.t && n.row != v.row && n.row != w.row && others(n) && sent(n) &&
			m.t.to != 0 && m.t.to < t.stmts[stmt].from && sameClock(m.t, t) {
			list = append(list, n)
		}
	}
	return list
}

// rekeys reports whether the writer of n may have given the row another key.
func rekeys(n *version) bool {
	if n.del {
		return false
	}
	change, known := n.changed(n.name())
	if !known || n.row == nil {
		return true
	}
	for part := range strings.SplitSeq(n.row.label, ", ") {
		column, value, _ := strings.Cut(part, "=")
		if does(change, strings.ToLower(column), strings.Trim(value, "'")) {
			return true
		}
	}
	return false
}

// anew are the columns of the row that the unit of n's writer made in the place of the one that n deleted; nil: that is not known.
func (n *version) anew() (list []*columns) {
	for _, u := range n.writer.unit() {
		if u.state != stateCommitted || u.id < n.writer.id {
			continue
		}
		for _, i := range u.writes {
			a := &u.accesses[i]
			if a.op == opInsert && a.node != nil && a.node.sameKey(n) && (u != n.writer || a.stmt > n.wstmt) {
				list = list[:0]
				if k := u.stmts[a.stmt].columns; k != nil {
					list = append(list, k)
				}
			}
		}
	}
	return list
}

// guards are what the request compared when it deleted the row that w stands in the place of. It is not known if one of the statements does not tell.
func (k *claim) guards(w *version) (list []history.Operand, known bool) {
	for _, u := range k.t.unit() {
		for _, i := range u.writes {
			a := &u.accesses[i]
			if a.op != opDelete || a.node == nil || !a.node.sameKey(w) || u.id > k.t.id {
				continue
			}
			s := &u.stmts[a.stmt]
			if s.columns == nil {
				return nil, false
			}
			list = append(list, s.columns.operands...)
		}
	}
	return list, true
}

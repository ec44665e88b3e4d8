package wss

import (
	"math"
	"slices"

	"wirecheck/answer"
)

// version is the state that one statement gave a row.
type version struct {
	writer int            // in model.transactions; -1: the initial database
	at     int            // when it was done (Step.Done)
	undone int            // when its transaction went back to a savepoint before it; else behind everything
	values []answer.Value // nil: the row is deleted
	from   int            // a new key has made it of this row (from 1); 0: of none
}

const never = math.MaxInt

// row is one row with all its versions, in the order in which they were written.
type row struct {
	table    int // in model.tables
	key      string
	versions []version
}

// inserter is the transaction that inserted a row whose key no row had before; -1: none did.
func (r *row) inserter() int {
	if v := &r.versions[0]; v.from == 0 {
		return v.writer
	}
	return -1
}

// store is the model's database. Rows are never taken out: what rolled-back transactions inserted is simply not visible to anybody.
type store []row

// with gives a store that has one more version of a row; the old one stays as it is.
func (s store) with(r int, v version) store {
	s = slices.Clone(s)
	s[r].versions = append(slices.Clip(s[r].versions), v)
	return s
}

// insert gives a store that has one more row, and the row's number. Where rows are found by their key (InnoDB's clustered index), a row
// that had the same key and is deleted is the same one: its record is used again, with the history that it has.
func (m *model) insert(s store, table int, v version) (store, int) {
	key, keyed := m.keyOf(table, v.values)
	if keyed {
		for r := range s {
			if s[r].table == table && s[r].key == key {
				return s.with(r, v), r
			}
		}
	}
	return append(slices.Clip(s), row{table, key, []version{v}}), len(s)
}

// change gives a store in which a statement has changed or deleted a row. A new key makes it another row.
func (m *model) change(s store, r, n int, values []answer.Value) store {
	v := version{writer: m.of[n], at: m.s.Steps[n].Done, undone: never, values: values}
	if values != nil {
		if key, keyed := m.keyOf(s[r].table, values); keyed && key != s[r].key {
			v.from = r + 1
			s, _ = m.insert(s, s[r].table, v)
			v.from, v.values = 0, nil
		}
	}
	return s.with(r, v)
}

// keyOf is what a row is found by; false if a row keeps its place whatever its values are.
func (m *scene) keyOf(table int, values []answer.Value) (string, bool) {
	columns := m.keys[table]
	if len(columns) == 0 {
		return "", false
	}
	row := make([]answer.Value, len(columns))
	for i, c := range columns {
		row[i] = values[c]
	}
	return key(0, "", []answer.Table{{Rows: [][]answer.Value{row}}}), true
}

// visible is the last version of a row that a statement sees if its snapshot is of a moment: its own transaction's, or what others have
// committed by then. Nil: there is none.
func (m *scene) visible(r *row, n, moment int) *version {
	for i := len(r.versions) - 1; i >= 0; i-- {
		if v := &r.versions[i]; m.own(v, n) || v.writer != m.of[n] && m.committedBy(v, moment) {
			return v
		}
	}
	return nil
}

// own reports whether a version is one that the statement's own transaction has made before it.
func (m *scene) own(v *version, n int) bool {
	sent := m.s.Steps[n].Sent
	return v.writer == m.of[n] && v.at < sent && v.undone >= sent
}

// committedBy reports whether a version is committed at a moment.
func (m *scene) committedBy(v *version, moment int) bool {
	return v.writer < 0 || committed(&m.transactions[v.writer]) && m.transactions[v.writer].End <= moment && v.undone == never
}

// pending is the last version that another transaction than the statement's has written and not committed at a moment: that
// transaction has the row's lock. An optimistic one has none before its COMMIT (TiDB docs, optimistic transactions).
func (m *scene) pending(r *row, n, moment int) *version {
	for i := len(r.versions) - 1; i >= 0; i-- {
		v := &r.versions[i]
		if v.writer >= 0 && v.writer != m.of[n] && v.at < moment && v.undone >= moment && m.transactions[v.writer].End > moment && !m.optimistic(v.writer) {
			return v
		}
	}
	return nil
}

// serially is the version that a statement sees in the serial schedule: everything of the transactions that end before its own, and
// what its own has made before it.
func (m *scene) serially(r *row, n int) *version {
	end := func(v *version) int {
		if v.writer < 0 {
			return -1
		}
		return m.transactions[v.writer].End
	}
	var best *version
	for i := range r.versions {
		v := &r.versions[i]
		if m.own(v, n) {
			best = v
			continue
		}
		if v.writer == m.of[n] || !m.committedBy(v, m.transactions[m.of[n]].End) || best != nil && (best.writer == m.of[n] || end(best) > end(v)) {
			continue
		}
		best = v
	}
	return best
}

// alive reports whether there is a row in a version.
func (v *version) alive() bool { return v != nil && v.values != nil }

// final are the tables when everything has ended.
func (m *scene) final(s store) []answer.Table {
	out := slices.Clone(m.tables)
	for i := range out {
		out[i].Rows = nil
	}
	for i := range s {
		for k := len(s[i].versions) - 1; k >= 0; k-- {
			if v := &s[i].versions[k]; m.committedBy(v, never) {
				if v.alive() {
					out[s[i].table].Rows = append(out[s[i].table].Rows, v.values)
				}
				break
			}
		}
	}
	return out
}

// view is what one moment shows of a table to a transaction. A dirty one shows what is not committed, too.
type view struct {
	moment int
	dirty  bool
}

func (m *scene) see(r *row, n int, v view) *version {
	if v.dirty {
		if p := m.pending(r, n, v.moment); p != nil {
			return p
		}
	}
	return m.visible(r, n, v.moment)
}

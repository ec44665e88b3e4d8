package sieve

import (
	"slices"

	"wirecheck/history"
)

// around says what the other accesses of a transaction make of each of them.
type around struct {
	of      []flags
	special bool // it may have read a row in a version before its own

	rows    index // the number of each row, of unkeyed ones of each version
	written index // the versions written
	row     []uint32
	wrote   []bool   // by row: an access that was passed wrote it
	last    []uint64 // by row: the version that it wrote
	later   []bool   // the transaction had written the row before
	current []bool   // by row: a later current read takes the place of a plain read
}

// place is the row of an access, or of a version where rows have no keys.
func (a *access) place(version uint64) uint64 {
	if a.key != 0 {
		version = a.key * 3
	}
	return max((a.table.hash^version)*0x9e3779b97f4a7c15, 1)
}

// look looks at the accesses of a transaction.
//
// A later current read of the row takes the place of a plain read for certain (package isolation, What is believed) only where it cannot be of the
// transaction's own version.
func (r *around) look(t *running) {
	n := len(t.accesses)
	r.of, r.row, r.special = slices.Grow(r.of[:0], n)[:n], slices.Grow(r.row[:0], n)[:n], false
	r.later = slices.Grow(r.later[:0], n)[:n]
	clear(r.of)
	clear(r.later)
	if n == 1 {
		return
	}
	r.rows.clear(2 * n)
	r.written.clear(n)
	r.wrote = slices.Grow(r.wrote[:0], 2*n)[:2*n]
	r.last = slices.Grow(r.last[:0], 2*n)[:2*n]
	r.current = slices.Grow(r.current[:0], 2*n)[:2*n]
	clear(r.wrote)
	clear(r.current)
	number := func(place uint64) uint32 {
		at, _ := r.rows.put(place, uint32(r.rows.n))
		return at
	}
	for i := range t.accesses {
		a := &t.accesses[i]
		r.row[i] = number(a.place(a.ver))
		id := a.place(a.ver) ^ a.ver*7 | 1
		if !a.op.Writes() {
			if r.wrote[r.row[i]] {
				r.later[i] = true
				if _, mine := r.written.of(id); mine && id != r.last[r.row[i]] || !mine && !slices.Contains(t.tokens, a.token) {
					r.special = true
				}
			}
			continue
		}
		r.written.put(id, 0)
		r.special = r.special || a.key == 0 && r.wrote[r.row[i]] || a.prev != 0 && a.prev == a.ver // the links would be a ring
		row := r.row[i]
		if a.key == 0 && a.prev != 0 {
			row = number(a.place(a.prev)) // read again, that is older than its own
		}
		if a.key != 0 || a.prev != 0 {
			r.wrote[row], r.last[row] = true, id
		}
	}
	clear(r.wrote)
	for i := n - 1; i >= 0; i-- {
		a := &t.accesses[i]
		row, current := r.row[i], t.stmts[a.stmt].current
		if a.op.Writes() {
			if r.wrote[row] {
				r.of[i] |= fInter
			}
			if a.key != 0 {
				r.wrote[row] = true
			} else if a.prev != 0 {
				r.wrote[number(a.place(a.prev))] = true
			}
		}
		switch {
		case a.op == history.OpLock, a.op == history.OpMatch && current:
			r.current[row] = a.key != 0 && !slices.Contains(t.tokens, a.token)
		case a.op.Writes(): // what an UPDATE that computes superseded may have been checked (package isolation, stale.go)
			r.current[row] = false
		case a.op != history.OpMatch && !r.later[i] && r.current[row]:
			r.of[i] |= fDropped
		}
	}
}

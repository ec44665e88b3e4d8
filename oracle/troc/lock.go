package troc

import (
	"wirecheck/product"
	"wirecheck/statement"
)

// modeOf is the mode of the locks that a statement takes on the rows of its tables that are locked.
func modeOf(p *product.Product, level string, kind product.Kind, st *statement.Statement) product.Mode {
	l, _ := p.Lock(level, kind)
	if st.Verb == "select" && l.Mode != product.LockNone { // modes that only PostgreSQL's statements have
		switch st.Locking.Lock {
		case statement.LockKeyShare:
			return product.LockKeyShare
		case statement.LockNoKeyUpdate:
			return product.LockNoKeyUpdate
		}
	}
	return l.Mode
}

// meets gives another running transaction that holds a lock, or has a version that is not committed, on a row, so that a lock of that mode must
// wait for it.
func (w *world) meets(tx int, table string, id int, mode product.Mode) (holder int, found bool) {
	for _, r := range w.tables[table] {
		if r.id != id {
			continue
		}
		for i := range r.versions {
			v := &r.versions[i]
			if v.tx == initial || v.tx == tx || w.txs[v.tx].status != running || w.txs[v.tx].lockless {
				continue
			}
			has := product.LockNoKeyUpdate // an UPDATE that changes no key is the least
			if v.deleted {
				has = product.LockUpdate
			}
			if mode.Conflicts(has) {
				return v.tx, true
			}
		}
	}
	for _, l := range w.locks {
		if l.tx != tx && l.table == table && l.row == id && w.txs[l.tx].status == running && mode.Conflicts(l.mode) {
			return l.tx, true
		}
	}
	return 0, false
}

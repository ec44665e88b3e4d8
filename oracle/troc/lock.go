package troc

import (
	"slices"

	"wirecheck/oracle"
	"wirecheck/rewrite"
)

// Mode is the strength of a row lock, weakest first (PostgreSQL manual, 13.3.2; the others have Share and Update only).
type Mode uint8

// The modes.
const (
	None Mode = iota
	KeyShare
	Share
	NoKeyUpdate
	Update
)

// Conflicts reports whether two transactions cannot hold both modes on one row.
func (m Mode) Conflicts(o Mode) bool {
	if m > o {
		m, o = o, m
	}
	switch m {
	case None:
		return false
	case KeyShare:
		return o == Update
	case Share:
		return o >= NoKeyUpdate
	}
	return true
}

// Locks is a line of table III: what a statement locks for certain. The paper's rule is sound in one direction only: engines lock more
// (III-E3), so that nothing follows from a wait that was not expected.
type Locks struct {
	Products []string
	Levels   []string // nil: all
	Kinds    []Kind
	Mode     Mode
	// Predicate says that no other transaction can bring in a row that the condition holds for.
	Predicate bool
	Source    string
}

// LockTable is table III with the lines that it lacks. The first line that fits holds.
var LockTable = []Locks{
	{innodb, nil, []Kind{KindSelect}, None, false, "Troc, table III; MySQL manual, 17.7.2.3"},
	{innodb, []string{oracle.ReadUncommitted, oracle.ReadCommitted}, []Kind{KindShare}, Share, false, "Troc, table III; MySQL manual, 17.7.3"},
	{innodb, []string{oracle.ReadUncommitted, oracle.ReadCommitted}, []Kind{KindForUpdate, KindUpdate, KindDelete}, Update, false, "Troc, table III; MySQL manual, 17.7.3"},
	{innodb, nil, []Kind{KindShare}, Share, true, "Troc, table III; MySQL manual, 17.7.3"},
	{innodb, nil, []Kind{KindForUpdate, KindUpdate, KindDelete}, Update, true, "Troc, table III; MySQL manual, 17.7.3"},
	{innodb, nil, []Kind{KindInsert}, Update, false, "Troc, table III; MySQL manual, 17.7.3"},
	{[]string{"tidb"}, []string{oracle.Snapshot}, all, None, false, "TiDB documentation, optimistic mode: no locks before COMMIT"},
	{[]string{"tidb"}, nil, []Kind{KindSelect, KindShare}, None, false, "Troc, table III; TiDB documentation: FOR SHARE takes no locks"},
	{[]string{"tidb"}, nil, []Kind{KindForUpdate, KindUpdate, KindDelete, KindInsert}, Update, false, "Troc, table III; TiDB documentation, pessimistic mode"},
	{[]string{"postgres"}, nil, []Kind{KindSelect}, None, false, "PostgreSQL manual, 13.3.2"},
	{[]string{"postgres"}, nil, []Kind{KindShare}, Share, false, "PostgreSQL manual, 13.3.2"},
	{[]string{"postgres"}, nil, []Kind{KindForUpdate}, Update, false, "PostgreSQL manual, 13.3.2"},
	{[]string{"postgres"}, nil, []Kind{KindUpdate}, NoKeyUpdate, false, "PostgreSQL manual, 13.3.2: FOR NO KEY UPDATE unless a key changes"},
	{[]string{"postgres"}, nil, []Kind{KindDelete, KindInsert}, Update, false, "PostgreSQL manual, 13.3.2"},
}

// LocksOf finds the line of table III.
func LocksOf(product, level string, kind Kind) (l Locks, ok bool) {
	for _, l := range LockTable {
		if slices.Contains(l.Products, product) && (l.Levels == nil || slices.Contains(l.Levels, level)) && slices.Contains(l.Kinds, kind) {
			return l, true
		}
	}
	return Locks{}, false
}

// modeOf is the mode of the locks that a statement takes on the rows of its tables that are locked.
func modeOf(product, level string, kind Kind, st *rewrite.Statement) Mode {
	l, ok := LocksOf(product, level, kind)
	if !ok {
		return None
	}
	if product == "postgres" && st.Verb == "select" {
		switch st.Locking.Lock {
		case rewrite.LockKeyShare:
			return KeyShare
		case rewrite.LockNoKeyUpdate:
			return NoKeyUpdate
		}
	}
	return l.Mode
}

// held is a lock, or a version that is not committed, that a statement meets.
type held struct {
	tx    int
	table string
	row   int
}

// meets lists what another running transaction holds on a row so that a lock of that mode must wait for it.
func (w *world) meets(tx int, table string, id int, mode Mode) (held, bool) {
	for _, r := range w.tables[table] {
		if r.id != id {
			continue
		}
		for i := range r.versions {
			v := &r.versions[i]
			if v.tx == initial || v.tx == tx || w.txs[v.tx].status != running || w.txs[v.tx].lockless {
				continue
			}
			has := NoKeyUpdate // an UPDATE that changes no key is the least
			if v.deleted {
				has = Update
			}
			if mode.Conflicts(has) {
				return held{v.tx, table, id}, true
			}
		}
	}
	for _, l := range w.locks {
		if l.tx != tx && l.table == table && l.row == id && w.txs[l.tx].status == running && mode.Conflicts(l.mode) {
			return held{l.tx, table, id}, true
		}
	}
	return held{}, false
}

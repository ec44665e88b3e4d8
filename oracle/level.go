package oracle

import "strings"

// Phenomenon is what a promise speaks of: the columns of the Hermitage table. It is finer than Class where products
// differ within one class (lost update and OTV are both G-single).
type Phenomenon string

// The phenomena. OTV is "observed transaction vanishes", P4 lost update.
const (
	PG0           Phenomenon = "G0"
	PG1a          Phenomenon = "G1a"
	PG1b          Phenomenon = "G1b"
	PG1c          Phenomenon = "G1c"
	POTV          Phenomenon = "OTV"
	P4            Phenomenon = "P4"
	PGSingle      Phenomenon = "G-single"
	PGNonadjacent Phenomenon = "G-nonadjacent"
	PG2Item       Phenomenon = "G2-item"
)

// The levels, as in history.Event.Level.
const (
	ReadUncommitted = "read uncommitted"
	ReadCommitted   = "read committed"
	RepeatableRead  = "repeatable read"
	Snapshot        = "snapshot" // MariaDB: repeatable read with innodb_snapshot_isolation=ON
	Serializable    = "serializable"
)

// Promise is one row of the level tables.
type Promise struct {
	Product  string // as history.Event.Engine
	Level    string
	Prevents []Phenomenon
	// Source is where the product promises it, or who measured it. A cell that neither the manual nor a measurement
	// covers is left out of Prevents: then it is never called a violation.
	Source string
}

var (
	dirty    = []Phenomenon{PG0}
	noDirty  = []Phenomenon{PG0, PG1a, PG1b, PG1c}       // PL-2
	mav      = []Phenomenon{PG0, PG1a, PG1b, PG1c, POTV} // monotonic atomic view
	snapshot = append(append([]Phenomenon{}, mav...), P4, PGSingle, PGNonadjacent)
	all      = append(append([]Phenomenon{}, snapshot...), PG2Item)
)

// Promises are the level tables of all products, per product from the weakest level to the strongest.
//
// They follow the Hermitage table (github.com/ept/hermitage, README) with these deviations: InnoDB at REPEATABLE READ is
// only held to G0 and G1, since a transaction that has written mixes its snapshot with current rows, so that OTV and
// lost updates occur (jepsen.io/analyses/mysql-8.0.34); TiDB's pessimistic REPEATABLE READ likewise (Hermitage, tidb.md).
// READ UNCOMMITTED of the MySQL family prevents dirty writes by its row locks.
var Promises = []Promise{
	{"postgres", ReadUncommitted, mav, "PostgreSQL manual, 13.2: READ UNCOMMITTED behaves like READ COMMITTED; Hermitage postgres.md"},
	{"postgres", ReadCommitted, mav, "PostgreSQL manual, 13.2.1; Hermitage postgres.md"},
	{"postgres", RepeatableRead, snapshot, "PostgreSQL manual, 13.2.2 (snapshot isolation); Hermitage postgres.md"},
	{"postgres", Serializable, all, "PostgreSQL manual, 13.2.3"},

	{"mariadb", ReadUncommitted, dirty, "MariaDB manual, SET TRANSACTION; Hermitage mysql.md"},
	{"mariadb", ReadCommitted, mav, "MariaDB manual, SET TRANSACTION; Hermitage mysql.md"},
	{"mariadb", RepeatableRead, noDirty, "Hermitage mysql.md; jepsen.io/analyses/mysql-8.0.34 (same engine)"},
	{"mariadb", Snapshot, snapshot, "MariaDB manual, innodb_snapshot_isolation; MDEV-35124"},
	{"mariadb", Serializable, all, "MariaDB manual, SET TRANSACTION: SERIALIZABLE; Hermitage mysql.md"},

	{"mysql", ReadUncommitted, dirty, "MySQL manual, 17.7.2.1; Hermitage mysql.md"},
	{"mysql", ReadCommitted, mav, "MySQL manual, 17.7.2.1; Hermitage mysql.md"},
	{"mysql", RepeatableRead, noDirty, "jepsen.io/analyses/mysql-8.0.34; Hermitage mysql.md"},
	{"mysql", Serializable, all, "MySQL manual, 17.7.2.1: SERIALIZABLE; Hermitage mysql.md"},

	{"tidb", ReadCommitted, mav, "TiDB docs, transaction isolation levels; Hermitage tidb.md"},
	{"tidb", RepeatableRead, noDirty, "Hermitage tidb.md (pessimistic, the default)"},
	{"tidb", Snapshot, snapshot, "TiDB docs, optimistic transactions: the commit fails on a write conflict"},

	{"cockroach", ReadCommitted, mav, "CockroachDB docs, Read Committed Transactions; Hermitage cockroachdb.md"},
	{"cockroach", RepeatableRead, snapshot, "CockroachDB docs, Repeatable Read Transactions (snapshot isolation)"},
	{"cockroach", Serializable, all, "CockroachDB docs, SERIALIZABLE"},

	{"sqlite", Serializable, all, "sqlite.org/isolation.html"},
}

// promise finds the row of a product and level; nil if there is none.
func promise(product, level string) *Promise {
	for i := range Promises {
		if p := &Promises[i]; p.Product == product && p.Level == level {
			return p
		}
	}
	return nil
}

// Prevents reports whether p holds ph to be prevented.
func (p *Promise) prevents(ph Phenomenon) bool {
	for _, x := range p.Prevents {
		if x == ph {
			return true
		}
	}
	return false
}

// Promised reports whether product promises to prevent ph at level, and where that is written. An unknown product or
// level promises nothing.
func Promised(product, level string, ph Phenomenon) (bool, string) {
	p := promise(product, level)
	if p == nil {
		return false, ""
	}
	return p.prevents(ph), p.Source
}

// Weakest is the weakest level of product that prevents ph; empty if none does.
func Weakest(product string, ph Phenomenon) string {
	for i := range Promises {
		if p := &Promises[i]; p.Product == product && p.prevents(ph) {
			return p.Level
		}
	}
	return ""
}

// PhenomenonOf tells which column of the tables a finding falls under. Classes that need session order or real time
// have none: no product here promises strict serializability.
func PhenomenonOf(class Class, name string) (Phenomenon, bool) {
	switch {
	case strings.HasSuffix(string(class), SuffixProcess), strings.HasSuffix(string(class), SuffixRealtime):
		return "", false
	case name == NameLostUpdate:
		return P4, true
	case name == NameVanishes:
		return POTV, true
	}
	return Phenomenon(class), true
}

// LevelName spells a level for people: "READ COMMITTED", and for MariaDB's and TiDB's Snapshot what to set.
func LevelName(product, level string) string {
	if level == Snapshot {
		switch product {
		case "mariadb":
			return "REPEATABLE READ with innodb_snapshot_isolation=ON"
		case "tidb":
			return "REPEATABLE READ with optimistic transactions"
		}
	}
	return strings.ToUpper(level)
}

// ProductName spells a product for people.
func ProductName(product string) string {
	names := map[string]string{"postgres": "PostgreSQL", "mariadb": "MariaDB", "mysql": "MySQL", "tidb": "TiDB",
		"cockroach": "CockroachDB", "sqlite": "SQLite"}
	if n := names[product]; n != "" {
		return n
	}
	return product
}

package troc

import (
	"slices"

	"wirecheck/oracle"
	"wirecheck/rewrite"
)

// Visibility is one of the paper's rules of which versions a statement of a transaction sees (Troc, III-E2).
type Visibility uint8

// The rules. V1, a transaction's own versions and what was committed before it began, holds always and is not listed.
const (
	V2 Visibility = 2 // all versions, committed or not
	V3 Visibility = 3 // versions that are committed when the statement is executed
	V4 Visibility = 4 // versions that were committed when the transaction took its snapshot
)

// Kind is the kind of a statement as tables II and III know it.
type Kind uint8

// The kinds. In SERIALIZABLE transactions of InnoDB a plain SELECT is a KindShare (MySQL manual, 17.7.2.1).
const (
	KindSelect    Kind = iota
	KindShare          // SELECT ... FOR SHARE
	KindForUpdate      // SELECT ... FOR UPDATE
	KindUpdate         // MERGE too
	KindDelete
	KindInsert // REPLACE too
)

func (k Kind) String() string {
	return [...]string{"SELECT", "SELECT FOR SHARE", "SELECT FOR UPDATE", "UPDATE", "DELETE", "INSERT"}[k]
}

func (k Kind) writes() bool { return k >= KindUpdate }

// Strategy is a line of table II, widened: which versions a statement sees in the tables that it locks or writes, and in those that
// it only reads (subqueries, joined tables of a write, the source of INSERT ... SELECT).
type Strategy struct {
	Products []string
	Levels   []string
	Kinds    []Kind
	Locked   Visibility // of the tables that are locked or written
	Read     Visibility // of the others
	Source   string
}

var (
	innodb  = []string{"mysql", "mariadb"}
	all     = []Kind{KindSelect, KindShare, KindForUpdate, KindUpdate, KindDelete, KindInsert}
	locking = all[1:3]
	changes = all[3:]
)

// Strategies are table II of the paper with the lines that it lacks: PostgreSQL, TiDB, MariaDB's innodb_snapshot_isolation, and a
// view for each role of a table. The first line that fits holds.
var Strategies = []Strategy{
	{innodb, []string{oracle.ReadUncommitted}, all[:1], V2, V2, "Troc, table II; MySQL manual, 17.7.2.1"},
	{innodb, []string{oracle.ReadUncommitted}, all, V3, V2, "Troc, table II; MySQL manual, 17.7.2.3: a source table is read without locks"},
	{innodb, []string{oracle.ReadCommitted}, all, V3, V3, "Troc, table II; MySQL manual, 17.7.2.1"},
	{innodb, []string{oracle.RepeatableRead}, all[:1], V4, V4, "Troc, table II; MySQL manual, 17.7.2.3"},
	{innodb, []string{oracle.RepeatableRead}, locking, V3, V4, "Troc, table II; MySQL manual, 17.7.2.4: a locking read does not lock the tables of a nested subquery"},
	{innodb, []string{oracle.RepeatableRead}, changes, V3, V3, "Troc, table II; MySQL manual, 17.7.3: shared next-key locks on what a write reads"},
	{innodb, []string{oracle.Serializable}, all, V3, V3, "Troc, table II (V1: locks keep everything else away); MySQL manual, 17.7.2.1"},
	{[]string{"mariadb"}, []string{oracle.Snapshot}, changes[2:], V3, V4, "MariaDB manual, innodb_snapshot_isolation; a key is unique among all committed rows"},
	{[]string{"mariadb"}, []string{oracle.Snapshot}, all, V4, V4, "MariaDB manual, innodb_snapshot_isolation: error 1020 instead of a newer row"},

	{[]string{"tidb"}, []string{oracle.ReadCommitted}, all, V3, V3, "TiDB documentation, transaction isolation levels: READ COMMITTED"},
	{[]string{"tidb"}, []string{oracle.RepeatableRead}, all[:1], V4, V4, "TiDB documentation, transaction isolation levels: snapshot at BEGIN"},
	{[]string{"tidb"}, []string{oracle.RepeatableRead}, all, V3, V3, "TiDB documentation, pessimistic mode: DML and SELECT FOR UPDATE read the latest committed version"},
	{[]string{"tidb"}, []string{oracle.Snapshot}, all, V4, V4, "TiDB documentation, optimistic mode: everything from the snapshot, conflicts show at COMMIT"},

	{[]string{"postgres"}, []string{oracle.ReadUncommitted, oracle.ReadCommitted}, all, V3, V3, "PostgreSQL manual, 13.2.1"},
	{[]string{"postgres"}, []string{oracle.RepeatableRead, oracle.Serializable}, changes[2:], V3, V4, "PostgreSQL manual, 13.2.2, and 64.5: a key is unique among all committed rows"},
	{[]string{"postgres"}, []string{oracle.RepeatableRead}, all, V4, V4, "PostgreSQL manual, 13.2.2: snapshot at the first statement, first updater wins"},
	{[]string{"postgres"}, []string{oracle.Serializable}, all, V4, V4, "PostgreSQL manual, 13.2.3: as REPEATABLE READ, with more refusals"},
}

// StrategyOf finds the line of table II; ok is false for a product or level that it does not have.
func StrategyOf(product, level string, kind Kind) (s Strategy, ok bool) {
	for _, s := range Strategies {
		if slices.Contains(s.Products, product) && slices.Contains(s.Levels, level) && slices.Contains(s.Kinds, kind) {
			return s, true
		}
	}
	return Strategy{}, false
}

// kindOf classifies a statement. explicit says that it is in a transaction of several statements.
func kindOf(product, level string, explicit bool, st *rewrite.Statement) (k Kind, ok bool) {
	switch st.Verb {
	case "select":
		lock := st.Locking.Lock
		for _, u := range st.Tables {
			if u.Lock.Stronger(lock) {
				lock = u.Lock
			}
		}
		switch {
		case lock == rewrite.LockUpdate, lock == rewrite.LockNoKeyUpdate:
			return KindForUpdate, true
		case lock != rewrite.LockNone && product == "tidb": // read and ignored: tidb_enable_noop_functions, "SELECT ... LOCK IN SHARE MODE"
			return KindSelect, true
		case lock != rewrite.LockNone:
			return KindShare, true
		case level == oracle.Serializable && slices.Contains(innodb, product) && explicit:
			return KindShare, true
		}
		return KindSelect, true
	case "update", "merge":
		return KindUpdate, true
	case "delete":
		return KindDelete, true
	case "insert", "replace":
		return KindInsert, true
	}
	return 0, false
}

// moment is what V2, V3 and V4 come down to: the versions of transactions that were committed at a time, or all.
type moment struct {
	dirty bool
	at    int
}

package troc

import (
	"slices"

	"wirecheck/oracle"
)

// Cause is a way in which an engine is known to depart from table II, with what its vendor says of it. A difference that one of them
// explains is of that kind; all others are violations.
type Cause struct {
	Name     string
	Products []string
	Kind     oracle.Kind
	Reason   string
	Source   string
}

// The names of the causes.
const (
	causeTwoMoments = "an UPDATE judges its rows at two moments"
	causeMoved      = "a record moved behind the scan"
	causePhantom    = "a row inserted behind the scan"
	causeNoop       = "an update that changes nothing is not a write"
	causeRecheck    = "only rows of the statement's snapshot are checked again"
	causeSemi       = "semi-consistent read"
	causeInserted   = "semi-consistent read passes an inserted row"
	causeUnseen     = "rows that are not committed are not looked at"
	causeDeleted    = "a row deleted since the snapshot is passed over"
	causeCovering   = "a covering index is not held against the snapshot"
	causeCurrent    = "current read of a subquery"
)

// Causes are the known departures.
var Causes = []Cause{
	{
		causeTwoMoments, innodb, oracle.KindViolation,
		"rows that the scan had passed before it waited were judged by the version of then (semi-consistent read), the others by the version that was there after the wait",
		"bugs.mysql.com/104833 (verified, serious); MDEV-26643 (open unless innodb_snapshot_isolation=ON)",
	},
	{
		causeMoved, []string{"mariadb"}, oracle.KindViolation,
		"the row that the statement waited for was moved by a change of its key, and is not found where the scan goes on",
		"MDEV-27992 (confirmed; fixed for REPEATABLE READ and SERIALIZABLE)",
	},
	{
		causeMoved, []string{"mysql"}, oracle.KindPermitted,
		"the row that the statement waited for was moved by a change of its key, and is not found where the scan goes on",
		"bugs.mysql.com/106629 (not a bug)",
	},
	{
		causePhantom, innodb, oracle.KindPermitted,
		"while the statement waited, a row was inserted at a place that its scan had passed: there are no gap locks at this level",
		"MySQL manual, 17.7.2.1, READ COMMITTED",
	},
	{
		causeNoop, []string{"mysql", "mariadb", "tidb"}, oracle.KindViolation,
		"the update found the row as it was to become, wrote no version, and the transaction goes on to see its snapshot's",
		"MDEV-26642 (confirmed, critical); bugs.mysql.com/104986; pingcap/tidb#28212",
	},
	{
		causeRecheck, []string{"postgres"}, oracle.KindPermitted,
		"after a wait, the condition is evaluated again for the rows that the statement's snapshot had matched, and for no others",
		"PostgreSQL manual, 13.2.1",
	},
	{
		causeSemi, innodb, oracle.KindPermitted,
		"at this level an UPDATE judges a locked row by its last committed version, and does not wait for one that does not match",
		"MySQL manual, 17.7.2.1, READ COMMITTED",
	},
	{
		causeInserted, []string{"mariadb"}, oracle.KindViolation,
		"an UPDATE did not wait for a row that a running transaction had inserted and of which there is no committed version, where a DELETE waits",
		"MDEV-30835 (confirmed)",
	},
	{
		causeInserted, []string{"mysql"}, oracle.KindPermitted,
		"at this level an UPDATE judges a locked row by its last committed version, and passes by a row that has none",
		"MySQL manual, 17.7.2.1, READ COMMITTED",
	},
	{
		causeUnseen, []string{"postgres", "tidb"}, oracle.KindPermitted,
		"the statement chooses its rows among committed versions, and does not wait for one that is not",
		"PostgreSQL manual, 13.2.1; TiDB documentation, transaction isolation levels: READ COMMITTED",
	},
	{
		causeDeleted, []string{"mariadb"}, oracle.KindViolation,
		"with innodb_snapshot_isolation, a locking read or a write that meets a row which the snapshot shows and another transaction has deleted is to be refused with error 1020",
		"MDEV-40092 (confirmed)",
	},
	{
		causeCovering, []string{"mariadb"}, oracle.KindViolation,
		"with innodb_snapshot_isolation, a locking read that meets a row newer than the snapshot is to be refused with error 1020, as it is through the primary key; from a secondary index that has all columns it returns the row",
		"found with wirecheck, no report known (MariaDB manual, innodb_snapshot_isolation)",
	},
	{
		causeCurrent, innodb, oracle.KindPermitted,
		"all tables that a write reads are read as they are now, the tables of its subqueries too, unlike those of a SELECT",
		"MySQL manual, 17.7.3; bugs.mysql.com/108528 (intended)",
	},
}

// causeOf finds what is known of a departure for a product.
func causeOf(product, name string) *Cause {
	for i := range Causes {
		if Causes[i].Name == name && slices.Contains(Causes[i].Products, product) {
			return &Causes[i]
		}
	}
	return nil
}

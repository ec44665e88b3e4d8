package wss

import (
	"wirecheck/oracle"
)

// The causes by which differences that are no bugs are counted, and the known bugs.
const (
	CauseSemiConsistent = "semi-consistent read"
	CauseGap            = "missing gap locks"
	CauseEvalPlanQual   = "EvalPlanQual"
	CauseStatement      = "statement snapshot"
	CauseOlder          = "older snapshot commits last"
	CauseWaiters        = "two waiters resumed at once"
	CauseCounter        = "AUTO_INCREMENT"
	CauseReadOnly       = "READ ONLY"
	CauseDeferred       = "deferred constraint"
	CauseNonlocking     = "nonlocking read in a write"
	CauseTorn           = "torn semi-consistent UPDATE"
	CauseMoved          = "row moved in the index"
	CauseInserted       = "UPDATE passes by a row that a running transaction inserted"
	CauseEarlySnapshot  = "snapshot at BEGIN of an optimistic transaction"
)

// ruling is what one vendor says of a cause.
type ruling struct {
	cause, product string // product: empty for all
	kind           oracle.Kind
	reason, source string
}

// rulings are the vendors' words, the first that fits. A cause that a vendor calls a bug is a violation there and may be permitted
// elsewhere.
var rulings = []ruling{
	{CauseTorn, "", oracle.KindViolation, "one UPDATE decided on some rows by what another transaction had not yet changed, waited for it, and decided on the rest by what it left: the vendors verified it as a bug", "bugs.mysql.com/104833; jira.mariadb.org/browse/MDEV-26643"},
	{CauseMoved, "mysql", oracle.KindPermitted, "while it waited, another transaction changed the key of a row that it had yet to reach, so that the row came to lie behind its scan; MySQL answered that this is not a bug", "bugs.mysql.com/106629"},
	{CauseMoved, "", oracle.KindViolation, "while it waited, another transaction changed the key of a row that it had yet to reach, so that the row came to lie behind its scan; MariaDB treated it as a bug", "jira.mariadb.org/browse/MDEV-27992"},
	{CauseInserted, "mariadb", oracle.KindViolation, "an UPDATE did not wait for a row that a running transaction had inserted, where a DELETE waits; MariaDB confirmed it as a bug", "jira.mariadb.org/browse/MDEV-30835"},
	{CauseInserted, "", oracle.KindPermitted, "semi-consistent read: a row that a running transaction inserted has no committed version, so that an UPDATE passes it by", "MySQL manual, 17.7.2.1, READ COMMITTED"},
	{CauseSemiConsistent, "tidb", oracle.KindPermitted, "a write reads the latest committed rows (current read), and waits only for rows that it changes", "TiDB docs, TiDB Pessimistic Transaction Mode; WriteCheck, section 6.4"},
	{CauseSemiConsistent, "", oracle.KindPermitted, "an UPDATE decides by the last committed version whether it waits for a row that another transaction has locked", "MySQL manual, 17.7.2.1, READ COMMITTED: semi-consistent read"},
	{CauseGap, "postgres", oracle.KindPermitted, "rows that did not match when the statement ran are not locked, nor is the place where they would be: another transaction's write moved a row into its range and was committed earlier", "PostgreSQL manual, 13.2.1"},
	{CauseGap, "tidb", oracle.KindPermitted, "there are no gap locks: another transaction's write moved a row into the statement's range and was committed earlier", "TiDB docs, TiDB Pessimistic Transaction Mode: differences with MySQL InnoDB"},
	{CauseGap, "", oracle.KindPermitted, "there are no gap locks at this level, and locks on rows that do not match are released: another transaction's write moved a row into the statement's range and was committed earlier", "MySQL manual, 17.7.2.1, READ COMMITTED"},
	{CauseEvalPlanQual, "", oracle.KindPermitted, "a write that waited looks again only at the rows that its snapshot had found, not at those that others made match", "PostgreSQL manual, 13.2.1"},
	{CauseStatement, "", oracle.KindPermitted, "a write finds its rows in the snapshot of its beginning; what a running transaction wrote is not in it", "PostgreSQL manual, 13.2.1"},
	{CauseOlder, "tidb", oracle.KindPermitted, "an optimistic transaction sees the state of its beginning, though others were committed before it", "TiDB docs, TiDB Optimistic Transaction Model"},
	{CauseOlder, "", oracle.KindPermitted, "the transaction with the older snapshot committed last: it comes before the other one in every serial order, if there is one", "PostgreSQL manual, 13.2.2 and 13.2.3; WriteCheck, section 5.4, footnote 4"},
	{CauseEarlySnapshot, "", oracle.KindViolation, "a write of an optimistic transaction does not see what was committed after BEGIN and before it, and its transaction is not refused: reported and accepted as a bug", "github.com/pingcap/tidb/issues/42486"},
	{CauseNonlocking, "tidb", oracle.KindPermitted, "what a SELECT within a write reads is not locked, and may be read from the transaction's snapshot", "TiDB docs, TiDB Pessimistic Transaction Mode: behaviors, and differences from MySQL InnoDB"},
	{CauseNonlocking, "", oracle.KindPermitted, "what an INSERT ... SELECT or an UPDATE reads besides its target is read without locks at this level", "MySQL manual, 17.7.2.3 and 17.7.3"},
	{CauseWaiters, "", oracle.KindPermitted, "several waiting statements went on at once, and which was first cannot be observed; in another of the possible orders there is no difference", "WriteCheck, section 5.3.1"},
	{CauseCounter, "postgres", oracle.KindPermitted, "only values that the server takes from a sequence differ: taking one is not undone, and does not wait for other transactions", "PostgreSQL manual, 9.17"},
	{CauseCounter, "tidb", oracle.KindPermitted, "only values that the server takes from a counter differ: taking one is not undone, and does not wait for other transactions", "TiDB docs, AUTO_INCREMENT"},
	{CauseCounter, "", oracle.KindPermitted, "only values that the server takes from a counter differ: taking one is not undone, and does not wait for other transactions", "MySQL manual, 17.6.1.6; bugs.mysql.com/119707"},
	{CauseReadOnly, "", oracle.KindPermitted, "the transaction was READ ONLY, which a statement in autocommit is not", "MySQL manual, 15.3.1; PostgreSQL manual, SET TRANSACTION"},
	{CauseDeferred, "", oracle.KindPermitted, "a deferrable constraint is checked at the end of the transaction, in autocommit at the end of each statement", "PostgreSQL manual, CREATE TABLE: DEFERRABLE"},
}

// judged is the judgement of a cause for a product.
func judged(cause, product string) judgement {
	for _, r := range rulings {
		if r.cause == cause && (r.product == "" || r.product == product) {
			return judgement{kind: r.kind, cause: cause, reason: r.reason, source: r.source}
		}
	}
	panic("wss: no ruling for " + cause)
}

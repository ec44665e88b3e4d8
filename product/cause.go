package product

// CauseID is the short name of a way in which products are known to depart from what a simple model expects. All oracles count, compare and
// report by it.
type CauseID string

// The causes.
const (
	TornUpdate        CauseID = "torn semi-consistent update"
	TornInsert        CauseID = "one of several rows that a transaction inserted"
	MovedRow          CauseID = "row moved behind the scan"
	NoGapLocks        CauseID = "missing gap locks"
	SemiConsistent    CauseID = "semi-consistent read"
	PassedInsert      CauseID = "semi-consistent read passes an inserted row"
	EvalPlanQual      CauseID = "EvalPlanQual"
	StatementSnapshot CauseID = "statement snapshot"
	NoopUpdate        CauseID = "an update that changes nothing is not a write"
	MovedAway         CauseID = "a row that another transaction moved stays in the snapshot of a transaction that wrote"
	DeletedMeanwhile  CauseID = "a row that another transaction deleted stays in the snapshot of a transaction that wrote"
	KeyTwice          CauseID = "two rows with one primary key"
	DeletedRow        CauseID = "a row deleted since the snapshot is passed over"
	CoveringIndex     CauseID = "a covering index is not held against the snapshot"
	VirtualIndex      CauseID = "a sorted read by an index of a virtual column loses rows"
	ReverseScan       CauseID = "a descending scan is not held to the snapshot"
	LockedKey         CauseID = "a locked unique key is read as if it had been written"
	UnlockedDuplicate CauseID = "INSERT IGNORE and REPLACE do not lock what they leave as it is"
	UnlockedKey       CauseID = "a key that is not there is not locked"
	KeyUnseen         CauseID = "a foreign key that acts hides a duplicate key"
	ForeignSnapshot   CauseID = "a foreign key is followed in the transaction's snapshot"
	CurrentRead       CauseID = "current read in a write"
	NonlockingRead    CauseID = "nonlocking read in a write"
	OlderSnapshot     CauseID = "older snapshot commits last"
	EarlySnapshot     CauseID = "snapshot at BEGIN of an optimistic transaction"
	Waiters           CauseID = "two waiters resumed at once"
	Counter           CauseID = "AUTO_INCREMENT"
	ReadOnly          CauseID = "READ ONLY"
	Deferred          CauseID = "deferred constraint"
	ZeroDates         CauseID = "IS NULL finds zero dates of NOT NULL columns"
	MixedList         CauseID = "a list in IN mixes quoted and unquoted values"
	JSONTruth         CauseID = "a JSON value as a condition"
	FirstType         CauseID = "IFNULL has the type of its first argument"
	Unevaluated       CauseID = "an error of an expression that need not be evaluated"
)

// Cause is what is known of a departure on one product.
type Cause struct {
	ID CauseID
	// Confirmed says that it is a bug: the vendor confirmed it, or it breaks the manual's words. Else the vendor documents it, or closed
	// a report of it as intended.
	Confirmed bool
	Reason    string // why the product does so
	Source    string // the vendor's words, and the reports; of what is documented, those that the vendor closed as such, or that none is known
}

// Cause finds what is known of a departure; nil if nothing is.
func (p *Product) Cause(id CauseID) *Cause {
	for i := range p.Causes {
		if p.Causes[i].ID == id {
			return &p.Causes[i]
		}
	}
	return nil
}

// mysqlQueries are the causes of single queries in the MySQL family.
var mysqlQueries = []Cause{
	{
		ID:     Unevaluated,
		Reason: "whether and in which order the parts of a query are evaluated is the server's affair",
		Source: "https://dev.mysql.com/doc/refman/8.4/en/where-optimization.html; no report known",
	},
	{
		ID:     ZeroDates,
		Reason: "IS NULL finds the date '0000-00-00' in a column that is NOT NULL, so that this constraint has a say in the answer",
		Source: "https://dev.mysql.com/doc/refman/8.4/en/comparison-operators.html#operator_is-null; no report known",
	},
}

// transactional are the causes of all products that have servers with transactions that wait.
var transactional = []Cause{
	{ID: Waiters, Reason: "several waiting statements went on at once, and which was first cannot be observed; in another of the possible orders there is no difference", Source: "WriteCheck, section 5.3.1; no report known"},
	{ID: ReadOnly, Reason: "the transaction was READ ONLY, which a statement in autocommit is not", Source: "MySQL manual, 15.3.1; PostgreSQL manual, SET TRANSACTION; no report known"},
	{ID: Deferred, Reason: "a deferrable constraint is checked at the end of the transaction, in autocommit at the end of each statement", Source: "PostgreSQL manual, CREATE TABLE: DEFERRABLE; no report known"},
}

package product

// Traits are what a product does that is no table: one line for each question that an oracle, a backend or a session loop asks. The zero
// value is that of a product of which nothing is known. Each product's file has the source beside each line.
type Traits struct {
	// SnapshotAt is the moment at which a transaction takes the snapshot that its level gives it.
	SnapshotAt Moment
	// AfterWait is what a write, or a locking read, does when the row that it waited for was changed.
	AfterWait AfterWait
	// ReadsLock says that plain SELECTs in explicit SERIALIZABLE transactions are locking reads, so that the order of the ends of
	// transactions is a serial order of reads too.
	ReadsLock bool
	// Certifies says that SERIALIZABLE takes no locks for reads, and refuses transactions that would not fit (SSI).
	Certifies bool
	// ErrorFails says that an error fails the transaction: the client must roll it back, and the server lets go of its locks.
	ErrorFails bool
	// ReadOnlyRefuses says that a READ ONLY transaction refuses every write to a table that is not temporary.
	ReadOnlyRefuses bool
	// CountsMatched says that an UPDATE counts, and writes, rows that it leaves as they are.
	CountsMatched bool
	// SavepointRestarts says that the storage engine's part of a transaction begins again where the transaction goes back to a
	// savepoint from before it: Participation.
	SavepointRestarts bool
	// KeysByRow says that foreign keys are looked at for each row as it is written, and not when the statement has written all.
	KeysByRow bool
	// ReplaceUpdates says that REPLACE may change a row in place of deleting it and inserting another one, so that it is the server's choice whether a foreign
	// key refuses the deletion.
	ReplaceUpdates bool
	// Clustered says whether rows are kept under their primary key, so that a change of the key removes one record and makes another
	// one, and a row with the key of a deleted one is a newer version of that record.
	Clustered Certainty
	// ByPrimary follows a table's name in a query that must go by the table's primary key; empty: nothing needs that.
	ByPrimary string
	// CoveringLocks says that a locking read may lock records of a secondary index alone.
	CoveringLocks bool
	// ShareIgnored says that FOR SHARE is read and locks nothing.
	ShareIgnored bool
	// DeletionsPass says that a deletion since the snapshot does not always refuse a statement at snapshot isolation.
	DeletionsPass bool
	// DuplicatesAtCommit says that an optimistic transaction may look for duplicate keys at COMMIT only.
	DuplicatesAtCommit bool
	// AutocommitRetries says that an optimistic autocommit statement that meets a conflict is executed again.
	AutocommitRetries bool
	// SubqueryEither says that a subquery of a write may be read as of now or from the transaction's snapshot.
	SubqueryEither bool
	// AutocommitWaitsHidden says that the server does not show that an autocommit statement waits.
	AutocommitWaitsHidden bool
	// NumbersAhead says that servers hand out AUTO_INCREMENT numbers in batches, so that the same run gives other numbers.
	NumbersAhead bool
	// InvisibleColumns says that columns can be invisible to SELECT * and INSERT without a column list.
	InvisibleColumns bool
	// WriteReturning says that INSERT, UPDATE and DELETE can all return the rows that they wrote.
	WriteReturning bool
	// DefaultsAdded says that ADD COLUMN takes a default that is not constant without copying the table at a high cost.
	DefaultsAdded bool
	// UniqueDefaults says that a column can have a default that gives each row an id of its own.
	UniqueDefaults bool
	// OneAddition says that ALTER TABLE takes several additions of columns at once.
	OneAddition bool
	// TransactionIDs says that the server names transactions itself, so that their ids are the tokens of a history.
	TransactionIDs bool
	// WarnsOfAssignments says that the server warns of assignments within expressions (1287) where it parses them.
	WarnsOfAssignments bool
	// UpdateSetsFoundRows says that UPDATE, to the rows that it found, and DO set FOUND_ROWS() too.
	UpdateSetsFoundRows bool
	// ClearsWarnings says that every statement that does not ask for diagnostics clears the list of warnings. Elsewhere only one that reads
	// or writes tables does so at once.
	ClearsWarnings bool
	// TellsNewColumns says that the status of an answer tells whether a prepared statement has another number of columns than it had, since its tables
	// were changed (SERVER_STATUS_METADATA_CHANGED).
	TellsNewColumns bool
	// RefusesShort says that a command of the protocol that is too short is answered by an error, even one that has no answer otherwise.
	RefusesShort bool
	// KeepsTypes says that a prepared statement keeps the types of its parameters where an execution is refused: from the first type that the server does not know
	// on, and all of them while the statement is unusable, since long data came for no parameter.
	KeepsTypes bool
	// CatalogApart says that reading information_schema neither opens a transaction nor takes the snapshot of the one that is open, and leaves no
	// lock in it.
	CatalogApart bool
	// UnionUnordered says that the rows of a UNION ALL may come in another order than its parts.
	UnionUnordered bool
	// CommitErrorAborts says that an error at COMMIT means that the transaction was rolled back; else its outcome is not known.
	CommitErrorAborts bool
	// DuplicateError is the code of the error for a row whose key is there already.
	DuplicateError string
	// DefaultSchema is the schema of a table that is named without one; empty: it is the database.
	DefaultSchema string
}

// Moment is when a transaction takes its snapshot.
type Moment uint8

// The moments.
const (
	AtUnknown        Moment = iota
	AtBegin                 // at BEGIN
	AtFirstStatement        // when its first statement that reads or writes begins
	AtFirstRead             // at its first read without locks
)

// AfterWait is what a statement that waited for a row does when the row's new version is there.
type AfterWait uint8

// The ways.
const (
	WaitUnknown  AfterWait = iota
	WaitRechecks           // it evaluates its condition again on the new version, for rows that its snapshot had found (EvalPlanQual)
	WaitGoesOn             // its scan goes on with the newest version of each row
	WaitRestarts           // it begins again with what is committed now, if the row was changed
)

// Certainty says how certain a trait is.
type Certainty uint8

// The degrees.
const (
	No Certainty = iota
	Perhaps
	Yes
)

package product

import (
	"slices"
	"wirecheck/answer"
)

// What MySQL and MariaDB share, since both store rows with InnoDB.

var innodbTraits = Traits{
	SnapshotAt:        AtFirstRead, // MySQL manual, 17.7.2.3
	AfterWait:         WaitGoesOn,  // MySQL manual, 17.7.2.4
	ReadsLock:         true,        // MySQL manual, 17.7.2.1, SERIALIZABLE
	SavepointRestarts: true,        // MariaDB and MySQL, sql/handler.cc, ha_rollback_to_savepoint
	ReadOnlyRefuses:   true,        // MySQL manual, 15.3.1; MariaDB manual, START TRANSACTION
	KeysByRow:         true,        // MySQL manual, 1.6.3.2: FOREIGN KEY constraints are checked row by row
	Clustered:         Yes,         // MySQL manual, 17.6.2.1
	CoveringLocks:     true,        // MySQL manual, 17.7.3
	InvisibleColumns:  true,        // MySQL manual, 15.1.20.10; MariaDB manual, Invisible Columns
	TellsNewColumns:   true,        // measured with MariaDB 10.11 and MySQL 9.7
	UniqueDefaults:    true,        // MySQL manual, 13.6; MariaDB manual, DEFAULT
	DuplicateError:    "1062",      // MySQL manual, ER_DUP_ENTRY
	OneAddition:       true,        // MySQL manual, 15.1.9
}

// The levels from which snapshot isolation is missing (MySQL manual, "Transaction Isolation Levels"). REPEATABLE READ reads from a snapshot
// but writes to the latest rows, so that lost updates and OTV pass once a transaction writes (jepsen.io/analyses/mysql-8.0.34): it is only
// held to G0 and G1. READ UNCOMMITTED prevents dirty writes by its row locks.
func innodbLevels(manual string) []Level {
	return []Level{
		{SQL: "READ UNCOMMITTED", History: ReadUncommitted, Gives: pl1, Source: manual + "; Hermitage mysql.md"},
		{SQL: "READ COMMITTED", History: ReadCommitted, Gives: mav, Source: manual + "; Hermitage mysql.md"},
		{SQL: "REPEATABLE READ", History: RepeatableRead, Gives: pl2, Source: "Hermitage mysql.md; jepsen.io/analyses/mysql-8.0.34"},
		{SQL: "SERIALIZABLE", History: Serializable, Gives: full, Source: manual + ": SERIALIZABLE; Hermitage mysql.md"},
	}
}

var innodbViews = []View{
	{[]string{ReadUncommitted}, reads, V2, V2, "Troc, table II; MySQL manual, 17.7.2.1"},
	{[]string{ReadUncommitted}, nil, V3, V2, "Troc, table II; MySQL manual, 17.7.2.3: a source table is read without locks"},
	{[]string{ReadCommitted}, nil, V3, V3, "Troc, table II; MySQL manual, 17.7.2.1"},
	{[]string{RepeatableRead}, reads, V4, V4, "Troc, table II; MySQL manual, 17.7.2.3"},
	{[]string{RepeatableRead}, locking, V3, V4, "Troc, table II; MySQL manual, 17.7.2.4: a locking read does not lock the tables of a nested subquery"},
	{[]string{RepeatableRead}, writes, V3, V3, "Troc, table II; MySQL manual, 17.7.3: shared next-key locks on what a write reads"},
	{[]string{Serializable}, nil, V3, V3, "Troc, table II (V1: locks keep everything else away); MySQL manual, 17.7.2.1"},
}

var innodbLocks = []Lock{
	{nil, reads, LockNone, false, "Troc, table III; MySQL manual, 17.7.2.3"},
	{[]string{ReadUncommitted, ReadCommitted}, []Kind{Share}, LockShare, false, "Troc, table III; MySQL manual, 17.7.3"},
	{[]string{ReadUncommitted, ReadCommitted}, []Kind{ForUpdate, Update, Delete}, LockUpdate, false, "Troc, table III; MySQL manual, 17.7.3"},
	{nil, []Kind{Share}, LockShare, true, "Troc, table III; MySQL manual, 17.7.3"},
	{nil, []Kind{ForUpdate, Update, Delete}, LockUpdate, true, "Troc, table III; MySQL manual, 17.7.3"},
	{nil, inserts, LockUpdate, false, "Troc, table III; MySQL manual, 17.7.3"},
}

var innodbCauses = append([]Cause{
	{
		ID: TornUpdate, Confirmed: true,
		Reason: "one UPDATE decided on rows that its scan had passed before it waited by the version of then (semi-consistent read), and on the others by the version that was there after the wait",
		Source: "bugs.mysql.com/104833 (verified, serious); MDEV-26643 (open unless innodb_snapshot_isolation=ON)",
	},
	{
		ID: TornInsert, Confirmed: true,
		Reason: "a locking read or a DELETE that waited met one of the rows that a transaction had inserted, and not another one that the same transaction inserted behind its scan",
		Source: "MDEV-34106 (confirmed); bugs.mysql.com/114952 (verified)",
	},
	{
		ID:     NoGapLocks,
		Reason: "there are no gap locks at this level, and locks on rows that do not match are released: another transaction brought a row into the statement's range, behind its scan, and was committed earlier",
		Source: "MySQL manual, 17.7.2.1, READ COMMITTED: because gap locking is disabled, phantom row problems may occur, as other sessions can insert new rows into the gaps; record locks for nonmatching rows are released; bugs.mysql.com/62021 (closed: the manual said otherwise)",
	},
	{
		ID:     SemiConsistent,
		Reason: "at this level an UPDATE judges a locked row by its last committed version, and does not wait for one that does not match",
		Source: "MySQL manual, 17.7.2.1, READ COMMITTED: for UPDATE statements, if a row is already locked, InnoDB performs a semi-consistent read; MDEV-26687 (by design, only needs to be documented), bugs.mysql.com/105042 (verified, as a bug of the manual)",
	},
	{
		ID: NoopUpdate, Confirmed: true,
		Reason: "the update found the row as it was to become, wrote no version, and the transaction goes on to see its snapshot's",
		Source: "MDEV-26642 (confirmed, critical); bugs.mysql.com/104986",
	},
	{
		ID:     DeletedMeanwhile,
		Reason: "the write did not meet a row that another transaction has deleted since the snapshot, and the transaction goes on to see it",
		Source: "MySQL manual, 17.7.2.3: the snapshot applies to SELECT statements, not necessarily to DML statements; the table may be seen in a state that never existed in the database; bugs.mysql.com/117218 (won't fix: works as intended)",
	},
	{
		ID:     CurrentRead,
		Reason: "all tables that a write reads are read as they are now, the tables of its subqueries too, unlike those of a SELECT",
		Source: "MySQL manual, 17.7.2.3: the snapshot applies to SELECT statements, not necessarily to DML statements, and 17.7.3; bugs.mysql.com/108528 (intended); MDEV-29565",
	},
	{
		ID:     NonlockingRead,
		Reason: "what an INSERT ... SELECT or an UPDATE reads besides its target is read without locks at this level",
		Source: "MySQL manual, 17.7.2.3: InnoDB uses a consistent read for the SELECT in INSERT INTO ... SELECT and UPDATE ... (SELECT) unless the level is REPEATABLE READ or SERIALIZABLE; bugs.mysql.com/114548 (not a bug)",
	},
	{
		ID:     OlderSnapshot,
		Reason: "the transaction with the older snapshot committed last: it comes before the other one in every serial order, if there is one",
		Source: "WriteCheck, section 5.4, footnote 4; MySQL manual, 17.7.2.3: a consistent read sees the changes made before its point of time; no report known",
	},
	{
		ID:     Counter,
		Reason: "only values that the server takes from a counter differ: taking one is not undone, and does not wait for other transactions",
		Source: "MySQL manual, 17.6.1.6; bugs.mysql.com/119707",
	},
}, slices.Concat(mysqlQueries, transactional)...)

// mysqlOwn are the system schemas of the family.
var mysqlOwn = []string{"information_schema", "mysql", "performance_schema", "sys"}

// innodbErrors are numbers of MySQL and MariaDB (MySQL error message reference; MySQL manual, 17.20.5, "InnoDB Error Handling").
var innodbErrors = []ErrorRow{
	{Codes: []string{"1213"}, Class: aborting(deadlock)}, // InnoDB, and the metadata locks
	{Codes: []string{"3058"}, Class: deadlock},           // GET_LOCK: nothing is rolled back
	// A table was truncated or altered behind the snapshot (MySQL manual, 17.7.2.3: "please retry transaction"). The transaction goes on.
	{Codes: []string{"1412"}, Class: serialization},
	// Only the statement is rolled back unless innodb_rollback_on_timeout is on, which the backend asks for.
	{Codes: []string{"1205"}, Class: lockTimeout},
	{Codes: []string{"1206"}, Class: aborting(ErrorClass{Reason: answer.ReasonOther})}, // the lock table is full
	{Codes: []string{"1792"}, Class: readOnly},
	{Codes: []string{"3572"}, Class: noWait},                    // MySQL: NOWAIT. MariaDB says 1205
	{Codes: []string{"1317", "1969", "3024"}, Class: cancelled}, // KILL QUERY; max_statement_time (MariaDB), max_execution_time (MySQL)
	// MariaDB: connection was killed. Then: aborted connections, broken packets; MySQL: disconnected for inactivity.
	{Codes: []string{"1927", "1152", "1184", "1158", "1159", "1160", "1161", "4031"}, Class: killed},
	{Codes: []string{"1053", "1077", "1079", "2006", "2013", "1040", "1129", "1130"}, Class: serverGone}, // shutdown in progress, and what clients call a lost server
	{Codes: []string{"1105", "1815", "1030"}, Class: internal},                                           // unknown error, internal error, error from the storage engine
	{Codes: innodbMistakes, Class: mistake},
}

// innodbMistakes are the numbers for statements that are not valid, name what is not there, or are not allowed to their user.
var innodbMistakes = []string{
	"1044", "1142", "1143", "1227", "1290", "1370", "1698", // access denied, for the database, table, column, privilege; a server that only reads; a routine
	"1046", "1049", "1051", "1054", "1109", "1146", "1176", "1305", "1193", // no database selected; unknown database, tables, column, key, routine, variable
	"1064", "1065", "1115", "1149", "1235", "1273", "1289", // syntax; empty; unknown character set; not supported; unknown collation; feature disabled
	"1052", "1055", "1056", "1058", "1066", "1111", "1136", "1140", "1210", "1221", "1222", "1241", "1247", "1248", "1582", "1583", // names, groups, numbers of columns and arguments
	"1243", "1318", "1324", "1327", "1630", "3065", // unknown prepared statement; arguments of a routine; undefined cursor, variable, function; ORDER BY with DISTINCT
}

package product

import "wirecheck/answer"

// postgres is PostgreSQL. Sources: PostgreSQL manual 15, by section. READ UNCOMMITTED behaves like READ COMMITTED, and REPEATABLE READ is snapshot
// isolation (13.2).
var postgres = Product{
	Name: "postgres", Title: "PostgreSQL", Dialect: DialectPostgres, Tests: IsolationTester,
	Levels: []Level{
		{SQL: "READ UNCOMMITTED", History: ReadUncommitted, Gives: mav, Source: "PostgreSQL manual, 13.2: READ UNCOMMITTED behaves like READ COMMITTED; Hermitage postgres.md"},
		{SQL: "READ COMMITTED", History: ReadCommitted, Gives: mav, Source: "PostgreSQL manual, 13.2.1; Hermitage postgres.md"},
		{SQL: "REPEATABLE READ", History: RepeatableRead, Gives: si, Source: "PostgreSQL manual, 13.2.2 (snapshot isolation); Hermitage postgres.md"},
		{SQL: "SERIALIZABLE", History: Serializable, Gives: full, Source: "PostgreSQL manual, 13.2.3"},
	},
	Default: "READ COMMITTED",
	Traits: Traits{
		DuplicateError:    "23505",          // appendix A
		SnapshotAt:        AtFirstStatement, // 13.2.2
		AfterWait:         WaitRechecks,     // 13.2.1; src/backend/executor/README, EvalPlanQual
		Certifies:         true,             // 13.2.3
		ErrorFails:        true,             // 3.4; ReadyForQuery 'E'
		ReadOnlyRefuses:   true,             // SET TRANSACTION
		CountsMatched:     true,             // UPDATE: rows that already had the new values count
		WriteReturning:    true,             // 6.4
		UniqueDefaults:    true,             // 5.2: gen_random_uuid()
		OneAddition:       true,             // ALTER TABLE
		TransactionIDs:    true,             // 74.1: xmin
		CommitErrorAborts: true,             // COMMIT of a transaction that cannot commit rolls it back
		DefaultSchema:     "public",         // 5.9.2
	},
	Views: []View{
		{[]string{ReadUncommitted, ReadCommitted}, nil, V3, V3, "PostgreSQL manual, 13.2.1"},
		{[]string{RepeatableRead, Serializable}, inserts, V3, V4, "PostgreSQL manual, 13.2.2, and 64.5: a key is unique among all committed rows"},
		{[]string{RepeatableRead}, nil, V4, V4, "PostgreSQL manual, 13.2.2: snapshot at the first statement, first updater wins"},
		{[]string{Serializable}, nil, V4, V4, "PostgreSQL manual, 13.2.3: as REPEATABLE READ, with more refusals"},
	},
	Locks: []Lock{
		{nil, reads, LockNone, false, "PostgreSQL manual, 13.3.2"},
		{nil, []Kind{Share}, LockShare, false, "PostgreSQL manual, 13.3.2"},
		{nil, []Kind{ForUpdate}, LockUpdate, false, "PostgreSQL manual, 13.3.2"},
		{nil, []Kind{Update}, LockNoKeyUpdate, false, "PostgreSQL manual, 13.3.2: FOR NO KEY UPDATE unless a key changes"},
		{nil, []Kind{Delete, Insert}, LockUpdate, false, "PostgreSQL manual, 13.3.2"},
	},
	Causes: append([]Cause{
		{
			ID:     EvalPlanQual,
			Reason: "after a wait, the condition is evaluated again for the rows that the statement's snapshot had found, and for no others; tables that are joined to them are read as the snapshot has them",
			Source: "PostgreSQL manual, 13.2.1: the search condition is re-evaluated to see if the updated version of the row still matches; an updating command may see an inconsistent snapshot; src/backend/executor/README, EvalPlanQual; no report known",
		},
		{
			ID:     StatementSnapshot,
			Reason: "the statement finds its rows in the snapshot of its beginning; what a running transaction wrote is not in it",
			Source: "PostgreSQL manual, 13.2.1: UPDATE, DELETE and locking SELECT only find target rows that were committed as of the command start time; no report known",
		},
		{
			ID:     NoGapLocks,
			Reason: "rows that did not match when the statement ran are not locked, nor is the place where they would be: another transaction's write moved a row into its range and was committed earlier",
			Source: "PostgreSQL manual, 13.2.1: only rows that were committed as of the command start time are found; 13.3.2: row-level locks are on rows; no report known",
		},
		{
			ID:     OlderSnapshot,
			Reason: "the transaction with the older snapshot committed last: it comes before the other one in every serial order, if there is one",
			Source: "PostgreSQL manual, 13.2.2: a query sees a snapshot as of the start of the first statement in the transaction; 13.2.3; WriteCheck, section 5.4, footnote 4; no report known",
		},
		{
			ID:     KeyTwice,
			Reason: "the snapshot shows a row that another transaction has deleted, and beside it the row with its key that this transaction has made since",
			Source: "Tom Lane, pgsql-bugs, 28 November 2021 (708274.1638118266@sss.pgh.pa.us): operating as designed",
		},
		{
			ID:     Counter,
			Reason: "only values that the server takes from a sequence differ: taking one is not undone, and does not wait for other transactions",
			Source: "PostgreSQL manual, 9.17: nextval is never rolled back, so that sequences cannot be used to obtain gapless numbers; no report known",
		},
		{
			ID:     Unevaluated,
			Reason: "whether and in which order the parts of a query are evaluated is the server's affair",
			Source: "https://www.postgresql.org/docs/current/sql-expressions.html#SYNTAX-EXPRESS-EVAL; no report known",
		},
	}, transactional...),
	// PostgreSQL manual, appendix A, "Error Codes", and 13.5, "Serialization Failure Handling". No error leaves the session outside of any transaction: inside
	// a transaction block every one leaves a failed transaction, COMMIT's own errors apart, and those that end the transaction for good end the session.
	Errors: []ErrorRow{
		{Codes: []string{"40001"}, Class: serialization},
		{Codes: []string{"40P01"}, Class: deadlock},
		{Codes: []string{"55P03"}, Class: noWait}, // lock_timeout, and NOWAIT: the code is one
		{Codes: []string{"25P02"}, Class: ErrorClass{Reason: answer.ReasonFailed}},
		{Codes: []string{"25006"}, Class: readOnly},
		{Codes: []string{"57014"}, Class: cancelled},                           // statement_timeout, pg_cancel_backend
		{Codes: []string{"57P01", "57P05", "25P03", "25P04"}, Class: killed},   // pg_terminate_backend and shutdown; idle_session, idle_in_transaction_session, transaction_timeout
		{Codes: []string{"57P02", "57P03", "57P04", "08*"}, Class: serverGone}, // a crash of another session, starting or stopping, database dropped; connection exceptions
		// Two statements defined or granted the same at once: a row of the catalog is not waited for twice (heapam.c, simple_heap_update).
		{Codes: []string{"XX000"}, Class: serialization, Says: []string{"tuple concurrently updated", "tuple concurrently deleted"}},
		{Codes: []string{"XX*"}, Class: internal}, // internal error, corrupted data
		// Something of that name is there already: the state of the database refuses it, as a constraint does.
		{Codes: []string{"42P03", "42P04", "42P05", "42P06", "42P07", "42701", "42710", "42723"}, Class: ErrorClass{Reason: answer.ReasonOther}},
		// Feature not supported; invalid prepared statement, cursor, catalog and schema names; syntax error, undefined names, privileges.
		{Codes: []string{"0A*", "26*", "34*", "3D*", "3F*", "42*"}, Class: mistake},
	},
	Own:    []string{"information_schema", "pg_*"}, // 5.9.5: names that begin with pg_ are reserved
	Client: "psql",
	Dump:   "pg_dump --no-owner",
	// Manual, 54.24: pg_settings.
	Changed:    "SELECT name, setting FROM pg_settings WHERE source NOT IN ('default', 'override', 'client') AND setting IS DISTINCT FROM boot_val",
	Exclusion:  "EXCLUDE", // 5.4.6
	CaseCounts: true,      // 11.7: a unique index on lower(col)
	Refusals:   "SQLSTATE 40001",
}

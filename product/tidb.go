package product

import (
	"slices"
	"wirecheck/answer"
)

// tidb is TiDB. Sources: TiDB documentation, by page.
var tidb = Product{
	Name: "tidb", Title: "TiDB", Dialect: DialectMySQL, Tests: TestKit,
	// READ COMMITTED takes effect in pessimistic transactions only. REPEATABLE READ in these reads from a snapshot but writes to the latest
	// rows, like MySQL's, so it is only held to G0 and G1.
	Levels: []Level{
		{SQL: "READ COMMITTED", History: ReadCommitted, Gives: mav, Source: "TiDB docs, transaction isolation levels; Hermitage tidb.md"},
		{SQL: "REPEATABLE READ", History: RepeatableRead, Gives: pl2, Source: "Hermitage tidb.md (pessimistic, the default)"},
		{
			SQL: "SNAPSHOT", History: Snapshot, Title: "REPEATABLE READ with optimistic transactions", Gives: si, Optimistic: true,
			Source:  "TiDB docs, optimistic transactions: the commit fails on a write conflict",
			Setting: &Setting{"tidb_txn_mode", []string{"optimistic", ""}}, Under: []string{RepeatableRead, ReadCommitted},
		},
	},
	Default: "REPEATABLE READ",
	Retry:   &Setting{"tidb_disable_txn_auto_retry", []string{"off", "0", "false"}}, // optimistic transactions: automatic retry; updates may be lost
	Traits: Traits{
		DuplicateError:        "1062",       // error codes
		SnapshotAt:            AtBegin,      // transaction isolation levels
		AfterWait:             WaitRestarts, // pessimistic transaction mode: current read
		ByPrimary:             " FORCE INDEX (PRIMARY)",
		Clustered:             Perhaps, // clustered indexes: they depend on the key and on a setting
		ShareIgnored:          true,    // tidb_enable_noop_functions; SELECT ... LOCK IN SHARE MODE
		DuplicatesAtCommit:    true,    // constraints, UNIQUE KEY; pingcap/tidb#22730
		AutocommitRetries:     true,    // optimistic transactions: automatic retry
		SubqueryEither:        true,    // pessimistic transaction mode: behaviors, and differences from MySQL InnoDB
		AutocommitWaitsHidden: true,    // TIDB_TRX has transactions, and no statement outside of one
		NumbersAhead:          true,    // AUTO_INCREMENT
		UnionUnordered:        true,    // explain walkthrough: the parts of a Union are read side by side
	},
	Views: []View{
		{[]string{ReadCommitted}, nil, V3, V3, "TiDB documentation, transaction isolation levels: READ COMMITTED"},
		{[]string{RepeatableRead}, reads, V4, V4, "TiDB documentation, transaction isolation levels: snapshot at BEGIN"},
		{[]string{RepeatableRead}, nil, V3, V3, "TiDB documentation, pessimistic mode: DML and SELECT FOR UPDATE read the latest committed version"},
		{[]string{Snapshot}, nil, V4, V4, "TiDB documentation, optimistic mode: everything from the snapshot, conflicts show at COMMIT"},
	},
	Locks: []Lock{
		{[]string{Snapshot}, nil, LockNone, false, "TiDB documentation, optimistic mode: no locks before COMMIT"},
		{nil, []Kind{Select, Share}, LockNone, false, "Troc, table III; TiDB documentation: FOR SHARE takes no locks"},
		{nil, []Kind{ForUpdate, Update, Delete, Insert}, LockUpdate, false, "Troc, table III; TiDB documentation, pessimistic mode"},
	},
	Causes: append([]Cause{
		{
			ID: NoopUpdate, Confirmed: true,
			Reason: "the update found the row as it was to become, wrote no version, and the transaction goes on to see its snapshot's",
			Source: "pingcap/tidb#28212",
		},
		{
			ID: KeyTwice, Confirmed: true,
			Reason: "a pessimistic transaction sees the row that another one has deleted or moved since its snapshot beside the row with the same key that it has inserted",
			Source: "pingcap/tidb#44200 and #46900 (confirmed)",
		},
		{
			ID: ReverseScan, Confirmed: true,
			Reason: "a scan in descending order gives rows as they are committed now, and not as the transaction's snapshot has them",
			Source: "found with wirecheck on unistore; pingcap/tidb#30361 is alike (fixed for another plan); TiDB documentation, transaction isolation levels: snapshot at BEGIN",
		},
		{
			ID: LockedKey, Confirmed: true,
			Reason: "a transaction that has locked a unique key, and not changed its row, reads the row twice: once from its storage, and once as if the transaction had written it",
			Source: "pingcap/tidb#24195 and #30823, which are about keys that were written; TiDB documentation, constraints, PRIMARY KEY; no report known of this one",
		},
		{
			ID: JSONTruth, Confirmed: true,
			Reason: "the truth of a JSON column's value depends on whether NOT stands in front of it, and on where the server evaluates it",
			Source: "pingcap/tidb#61209",
		},
		{
			ID: FirstType, Confirmed: true,
			Reason: "IFNULL of a column that cannot be NULL has the column's type, and not that of both arguments",
			Source: "pingcap/tidb#41734 (fixed)",
		},
		{
			ID: UnlockedDuplicate, Confirmed: true,
			Reason: "an INSERT IGNORE or REPLACE of a pessimistic transaction does not lock a row with its key that it leaves as it is, and sees it as its transaction's snapshot has it",
			Source: "pingcap/tidb#42121 (fixed); TiDB documentation, pessimistic mode: DML reads the latest committed version",
		},
		{
			ID: UnlockedKey, Confirmed: true,
			Reason: "a statement of a pessimistic transaction chose its row by a whole unique key, and another transaction gave that key to a row and ended, before the first one did",
			Source: "pingcap/tidb#20692 and #57589 (fixed for some plans): such a statement locks the key, also if no row has it; READ COMMITTED does not",
		},
		{
			ID: KeyUnseen, Confirmed: true,
			Reason: "an UPDATE in a pessimistic transaction gives a row a key that is there, and is not refused, where a foreign key with ON UPDATE CASCADE or SET NULL refers to the table; COMMIT fails",
			Source: "found with wirecheck, no report known; TiDB documentation, constraints, UNIQUE KEY: the constraint is checked when the statement is executed",
		},
		{
			ID: ForeignSnapshot, Confirmed: true,
			Reason: "a write of a pessimistic transaction looks for the rows to which its foreign keys lead in the transaction's snapshot, and not among those that are committed",
			Source: "pingcap/tidb#70600; TiDB documentation, pessimistic mode: DML reads the latest committed version",
		},
		{
			ID:     MovedAway,
			Reason: "the write met a row under the key that another transaction has given it since the snapshot, and the transaction goes on to see it under the old key, too",
			Source: "pingcap/tidb#23966 (closed: compatible with MySQL; current read and snapshot read); #54744 is the same, and open",
		},
		{
			ID:     DeletedMeanwhile,
			Reason: "the write did not meet a row that another transaction has deleted since the snapshot, and the transaction goes on to see it",
			Source: "pingcap/tidb#54640 (a question, not a bug): current read and snapshot read",
		},
		{
			ID:     SemiConsistent,
			Reason: "a write reads the latest committed rows (current read), and waits only for rows that it changes",
			Source: "TiDB docs, TiDB Pessimistic Transaction Mode: UPDATE, DELETE and INSERT read the latest committed data; WriteCheck, section 6.4; pingcap/tidb#41928 (closed: design choice), #28337 (expected)",
		},
		{
			ID:     StatementSnapshot,
			Reason: "the statement chooses its rows among committed versions, and does not wait for one that is not",
			Source: "TiDB documentation, transaction isolation levels: READ COMMITTED; pingcap/tidb#20731 (closed: documented)",
		},
		{
			ID:     NoGapLocks,
			Reason: "there are no gap locks: another transaction's write moved a row into the statement's range and was committed earlier",
			Source: "TiDB docs, TiDB Pessimistic Transaction Mode, differences with MySQL InnoDB: a range in WHERE does not block concurrent statements within the range; TiDB does not support gap locks; pingcap/tidb#55432 (open, not confirmed) asks for the lock of a key that an INSERT met",
		},
		{
			ID:     OlderSnapshot,
			Reason: "an optimistic transaction sees the state of its beginning, though others were committed before it",
			Source: "TiDB docs, TiDB Optimistic Transaction Model; no report known",
		},
		{
			ID: EarlySnapshot, Confirmed: true,
			Reason: "a write of an optimistic transaction does not see what was committed after BEGIN and before it, and its transaction is not refused: reported and accepted as a bug",
			Source: "github.com/pingcap/tidb/issues/42486",
		},
		{
			ID:     NonlockingRead,
			Reason: "what a SELECT within a write reads is not locked, and may be read from the transaction's snapshot",
			Source: "TiDB docs, TiDB Pessimistic Transaction Mode, differences from MySQL InnoDB: the embedded SELECT in DML does not lock; pingcap/tidb#45677 and #21506 are open, and not confirmed; no report known that was closed",
		},
		{
			ID:     Counter,
			Reason: "only values that the server takes from a counter differ: taking one is not undone, and does not wait for other transactions",
			Source: "TiDB docs, AUTO_INCREMENT; no report known",
		},
	}, slices.Concat(mysqlQueries, transactional)...),
	// TiDB docs, "Error Codes and Troubleshooting", and MySQL's for the rest. TiDB rolls the transaction back at a deadlock and at whatever its storage
	// refuses when it commits.
	Errors: append([]ErrorRow{
		{Codes: []string{"9007", "8005", "8002", "8022", "8028"}, Class: aborting(serialization)}, // write conflict; its older number; SELECT FOR UPDATE; retryable commit error; schema changed
		// Resolving a lock, a transaction too large, schema out of date, the storage's and the scheduler's time-outs, garbage collection.
		{Codes: []string{"9004", "8004", "8027", "8223", "9001", "9002", "9003", "9005", "9006", "9008"}, Class: aborting(ErrorClass{Reason: answer.ReasonOther})},
		{Codes: []string{"8141", "8133"}, Class: aborting(internal)}, // assertion failed, data inconsistent
		// Unknown error: what its sources have no number for. Two say that a statement in conflict was tried again for too long, or too often
		// (sessiontxn/isolation, handleAfterPessimisticLockError; executor/adapter.go, handlePessimisticLockError), others that a setting forbids it.
		{Codes: []string{"1105"}, Class: lockTimeout, Says: []string{"lock wait timeout", "pessimistic lock retry limit reached"}},
		{Codes: []string{"1105"}, Class: mistake, Says: []string{"can not execute write statement when", "can not execute select for update statement when"}},
	}, innodbErrors...),
	Own:      append([]string{"metrics_schema", "inspection_schema", "lightning_task_info"}, mysqlOwn...),
	Client:   "mysql",
	Dump:     "mysqldump --single-transaction --routines --triggers",
	Refusals: "errors 1213 and 9007",
}

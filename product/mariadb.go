package product

import "slices"

// mariadb is MariaDB. With innodb_snapshot_isolation (10.6.18, 10.11.8, 11.4.2 and later; on by default from 11.6.2) REPEATABLE READ refuses
// to change what the snapshot does not show (error 1020), which makes it snapshot isolation.
var mariadb = Product{
	Name: "mariadb", Title: "MariaDB", Dialect: DialectMySQL, Tests: MySQLTest,
	Levels: slices.Insert(innodbLevels("MariaDB manual, SET TRANSACTION"), 3, Level{
		SQL: "SNAPSHOT", History: Snapshot, Title: "REPEATABLE READ with innodb_snapshot_isolation=ON", Gives: si,
		Source:  "MariaDB manual, innodb_snapshot_isolation; MDEV-35124",
		Setting: &Setting{"innodb_snapshot_isolation", []string{"on", "1", "true"}}, Under: []string{RepeatableRead},
	}),
	Default: "REPEATABLE READ",
	Traits:  mariadbTraits(),
	Views: append(slices.Clip(innodbViews),
		View{[]string{Snapshot}, inserts, V3, V4, "MariaDB manual, innodb_snapshot_isolation; a key is unique among all committed rows"},
		View{[]string{Snapshot}, nil, V4, V4, "MariaDB manual, innodb_snapshot_isolation: error 1020 instead of a newer row"},
	),
	Locks: innodbLocks,
	Causes: append(slices.Clip(innodbCauses),
		Cause{
			ID: MovedRow, Confirmed: true,
			Reason: "while the statement waited, another transaction changed the key of a row that it had yet to reach, so that the row came to lie behind its scan",
			Source: "MDEV-27992 (confirmed; fixed for REPEATABLE READ and SERIALIZABLE)",
		},
		Cause{
			ID: MovedAway, Confirmed: true,
			Reason: "the write met a row under the key that another transaction has given it since the snapshot; the transaction goes on to see it under the old key, too, as if its write had not met it",
			Source: "MDEV-32898 (confirmed; with innodb_snapshot_isolation=ON error 1020)",
		},
		Cause{
			ID: PassedInsert, Confirmed: true,
			Reason: "an UPDATE did not wait for a row that a running transaction had inserted and of which there is no committed version, where a DELETE waits",
			Source: "MDEV-30835 (confirmed)",
		},
		Cause{
			ID: DeletedRow, Confirmed: true,
			Reason: "with innodb_snapshot_isolation, a locking read or a write that meets a row which the snapshot shows and another transaction has deleted is to be refused with error 1020",
			Source: "MDEV-40092 (confirmed)",
		},
		Cause{
			ID: CoveringIndex, Confirmed: true,
			Reason: "with innodb_snapshot_isolation, a locking read that meets a row newer than the snapshot, or a write that reads one, is to be refused with error 1020, as it is through the primary key; from a secondary index that has all columns it gets the row",
			Source: "found with wirecheck, no report known (MariaDB manual, innodb_snapshot_isolation)",
		},
		Cause{
			ID: VirtualIndex, Confirmed: true,
			Reason: "the query sorts rows that it finds by an index with a virtual column; from the first row on of which it needs an older version it finds no more",
			Source: "found with wirecheck, no report of lost rows known; MDEV-36896 is an assertion of debug servers at the same place: a filesort and the evaluation of a virtual column share one set of columns",
		},
	),
	// With innodb_snapshot_isolation: the row has changed behind the snapshot (ER_CHECKREAD).
	Errors: append([]ErrorRow{{Codes: []string{"1020"}, Class: aborting(serialization)}}, innodbErrors...),
	Own:    mysqlOwn,
	Client: "mariadb",
	Dump:   "mariadb-dump --single-transaction --routines --triggers",
	Changed: "SELECT LOWER(variable_name), global_value FROM information_schema.system_variables WHERE global_value_origin IN ('CONFIG', 'COMMAND-LINE', 'SQL') " +
		"AND NOT global_value <=> default_value", // MariaDB manual, "Information Schema SYSTEM_VARIABLES Table"
	Refusals: "errors 1213 and 1020",
}

func mariadbTraits() Traits {
	t := innodbTraits
	t.DeletionsPass = true // MDEV-40092
	t.DefaultsAdded = true // MariaDB manual, "Instant ADD COLUMN"
	t.CatalogApart = true  // measured with 10.11.19
	t.KeepsTypes = true    // measured with 10.11.19
	return t
}

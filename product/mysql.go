package product

import "slices"

// mysql is MySQL. Sources: MySQL Reference Manual 8.4, by section.
var mysql = Product{
	Name: "mysql", Title: "MySQL", Dialect: DialectMySQL, Tests: MySQLTest,
	Levels: innodbLevels("MySQL manual, 17.7.2.1"), Default: "REPEATABLE READ",
	Traits: mysqlTraits(), Views: innodbViews, Locks: innodbLocks,
	Causes: append(slices.Clip(innodbCauses),
		Cause{
			ID:     MovedRow,
			Reason: "while the statement waited, another transaction changed the key of a row that it had yet to reach, so that the row came to lie behind its scan",
			Source: "bugs.mysql.com/106629 (not a bug)",
		},
		Cause{
			ID:     MovedAway,
			Reason: "the write met a row under the key that another transaction has given it since the snapshot, and the transaction goes on to see it under the old key, too",
			Source: "MySQL manual, 17.7.2.3: the snapshot applies to SELECT statements, not necessarily to DML statements; the table may be seen in a state that never existed in the database; bugs.mysql.com/117218 (won't fix: works as intended)",
		},
		Cause{
			ID:     MixedList,
			Reason: "quoted and unquoted values are compared by different rules, so that a list of both may give inconsistent results",
			Source: "MySQL manual, 14.4.2, IN(): never mix quoted and unquoted values in a list; mixing types may lead to inconsistent results; no report known",
		},
		Cause{
			ID:     PassedInsert,
			Reason: "at this level an UPDATE judges a locked row by its last committed version, and passes by a row that has none",
			Source: "MySQL manual, 17.7.2.1, READ COMMITTED: a semi-consistent read returns the latest committed version to MySQL, which decides whether the row matches; bugs.mysql.com/110347 (not a bug)",
		},
	),
	Errors: innodbErrors,
	Own:    mysqlOwn,
	Client: "mysql",
	Dump:   "mysqldump --single-transaction --routines --triggers",
	Changed: "SELECT variable_name, variable_value FROM performance_schema.variables_info JOIN performance_schema.global_variables USING (variable_name) " +
		"WHERE variable_source <> 'COMPILED'", // MySQL manual, "Performance Schema variables_info Table"
	Refusals: "error 1213",
}

func mysqlTraits() Traits {
	t := innodbTraits
	t.WarnsOfAssignments = true  // 11.4: assignments within expressions are deprecated
	t.UpdateSetsFoundRows = true // measured with 9.7
	t.RefusesShort = true        // 1835, measured with 9.7.4
	t.ClearsWarnings = true      // 15.6.7.7, "The MySQL Diagnostics Area"
	t.ReplaceUpdates = true      // 15.2.12: a storage engine may perform the REPLACE as an update rather than a delete plus insert
	return t
}

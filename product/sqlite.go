package product

// sqlite is SQLite. A statement that meets a lock is refused at once, so there are no lines of Troc's tables: its rules are about locks that are waited
// for.
var sqlite = Product{
	Name: "sqlite", Title: "SQLite", Dialect: DialectSQLite,
	// Shared cache, which alone has READ UNCOMMITTED (sqlite.org/isolation.html), is left out: its use is discouraged
	// (sqlite.org/sharedcache.html).
	Levels:  []Level{{SQL: "SERIALIZABLE", History: Serializable, Gives: full, Source: "sqlite.org/isolation.html"}},
	Default: "SERIALIZABLE",
	Traits: Traits{
		CountsMatched: true, // sqlite.org/c3ref/changes.html
	},
	Causes: []Cause{
		{
			ID:     Unevaluated,
			Reason: "whether and in which order the parts of a query are evaluated is the server's affair",
			Source: "sqlite.org/queryplanner.html; no report known",
		},
	},
	// sqlite.org/rescode.html. Whether an error has rolled a transaction back is asked of the library each time: it depends on more than the code
	// (sqlite.org/lang_transaction.html, section 3).
	Errors: []ErrorRow{
		{Codes: []string{"SQLITE_BUSY_SNAPSHOT"}, Class: serialization}, // another session has written since the transaction's first read
		{Codes: []string{"SQLITE_BUSY*", "SQLITE_LOCKED*"}, Class: noWait},
		{Codes: []string{"SQLITE_INTERRUPT"}, Class: cancelled},
		// Syntax, and names that are not there; a call that is not authorised.
		{Codes: []string{"SQLITE_ERROR", "SQLITE_AUTH", "SQLITE_RANGE"}, Class: mistake},
		{Codes: []string{"SQLITE_INTERNAL*", "SQLITE_CORRUPT*", "SQLITE_NOTADB*", "SQLITE_MISUSE*"}, Class: internal},
	},
	Refusals: "SQLITE_BUSY",
}

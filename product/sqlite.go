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
			Source: "sqlite.org/queryplanner.html",
		},
	},
	Refusals: "SQLITE_BUSY",
}

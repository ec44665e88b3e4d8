package generate

import (
	"slices"
	"strings"
	"sync"
)

// Feature is one thing that generated SQL can have.
type Feature struct {
	Name  string // "index-functional"
	Where string // Database, Query, Write, Transaction or Template
	What  string // for docs/reference/generation.md
	// OptIn features are only used when Limits.Include or Limits.Favor names them: they break what most oracles assume.
	OptIn    bool
	dialects string // letters: P PostgreSQL, A MariaDB, M MySQL, T TiDB, S SQLite
}

// In reports whether the dialect has the feature.
func (f Feature) In(d Dialect) bool {
	for _, letter := range f.dialects {
		if dialectOf[letter] == d {
			return true
		}
	}
	return false
}

// dialectOf gives the dialects by the letters of the table.
var dialectOf = map[rune]Dialect{'P': Postgres, 'A': MariaDB, 'M': MySQL, 'T': TiDB, 'S': SQLite}

// AllFeatures lists the features of all dialects, in the order of docs/reference/generation.md.
func AllFeatures() []Feature { return features() }

// Features lists the features of a dialect.
func Features(d Dialect) []Feature {
	var out []Feature
	for _, f := range features() {
		if f.In(d) {
			out = append(out, f)
		}
	}
	return out
}

var featureNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, f := range features() {
		names[f.Name] = true
	}
	return names
})

func isFeature(name string) bool { return featureNames()[name] }

// features is the table. What stands here and what the code uses is compared by a test.
func features() []Feature {
	var out []Feature
	where := ""
	add := func(dialects, name, what string) {
		out = append(out, Feature{Name: name, Where: where, What: what, dialects: dialects})
	}
	optIn := func(dialects, name, what string) {
		add(dialects, name, what)
		out[len(out)-1].OptIn = true
	}
	const all, servers, family = "PAMTS", "PAMT", "AMT"

	where = "Database"
	add(family, "type-tinyint", "TINYINT")
	add(all, "type-smallint", "SMALLINT")
	add(family, "type-mediumint", "MEDIUMINT")
	add(all, "type-int", "INT")
	add(all, "type-bigint", "BIGINT")
	add(family, "type-unsigned", "integers without sign")
	add(all, "type-decimal", "DECIMAL(10,2)")
	add(all, "type-float", "FLOAT, REAL")
	add(all, "type-double", "DOUBLE PRECISION")
	add(all, "type-varchar", "VARCHAR(20)")
	add(all, "type-char", "CHAR(5)")
	add(all, "type-text", "TEXT")
	add(all, "collation", "a text column with a collation of its own")
	add(servers, "type-binary", "VARBINARY(20), bytea")
	add("AMTS", "type-blob", "BLOB")
	add(all, "type-date", "DATE")
	add(all, "type-datetime", "DATETIME, TIMESTAMP")
	add(all, "type-time", "TIME")
	add(family, "type-year", "YEAR")
	add(all, "type-boolean", "BOOLEAN")
	add(servers, "type-enum", "ENUM")
	add(all, "type-json", "JSON, jsonb")
	add(family, "type-set", "SET")
	add("PA", "type-uuid", "UUID")
	add("S", "type-untyped", "a column without a type, ANY in a STRICT table")
	add("P", "type-array", "INT[]")
	add(all, "not-null", "NOT NULL")
	add(all, "default", "DEFAULT with a constant")
	add("PAMS", "default-expression", "DEFAULT with an expression")
	add(all, "generated-stored", "GENERATED ALWAYS AS ... STORED")
	add("AMTS", "generated-virtual", "GENERATED ALWAYS AS ... VIRTUAL")
	add(all, "check", "CHECK on one column")
	add(all, "check-multi-column", "CHECK over two columns")
	add(all, "primary-key", "PRIMARY KEY")
	add(all, "primary-key-multi-column", "PRIMARY KEY over several columns")
	add(family, "primary-key-prefix", "PRIMARY KEY over the beginning of a text")
	add("T", "primary-key-nonclustered", "PRIMARY KEY ... NONCLUSTERED")
	add(all, "unique", "UNIQUE")
	add(all, "unique-multi-column", "UNIQUE over several columns")
	add(family, "unique-prefix", "UNIQUE over the beginning of a text")
	add("P", "unique-nulls-not-distinct", "UNIQUE NULLS NOT DISTINCT")
	add("PMTS", "unique-expression", "a unique index over an expression")
	add("PS", "unique-partial", "a unique index over some of the rows")
	add(all, "index", "CREATE INDEX")
	add("S", "index-collation", "an index with a collation of its own")
	add(all, "index-unique", "CREATE UNIQUE INDEX")
	add(all, "index-multi-column", "an index over several columns")
	add(all, "index-descending", "an index in descending order")
	add(family, "index-prefix", "an index over the beginning of a text")
	add(all, "index-generated", "an index over a generated column")
	add(family, "index-invisible", "an INVISIBLE index, IGNORED in MariaDB")
	add("PMTS", "index-functional", "an index over an expression")
	add("PS", "index-partial", "an index over some of the rows")
	add("P", "index-hash", "an index USING HASH")
	add("P", "index-include", "an index with INCLUDE columns")
	add(all, "foreign-key", "FOREIGN KEY")
	add(all, "foreign-key-self", "FOREIGN KEY to the same table")
	add(all, "foreign-key-cascade", "ON DELETE or ON UPDATE CASCADE")
	add(all, "foreign-key-set-null", "ON DELETE or ON UPDATE SET NULL")
	add(all, "foreign-key-restrict", "ON DELETE or ON UPDATE RESTRICT")
	add(all, "foreign-key-no-action", "ON DELETE or ON UPDATE NO ACTION")
	add("PS", "foreign-key-set-default", "ON DELETE or ON UPDATE SET DEFAULT")
	add("PS", "foreign-key-deferrable", "DEFERRABLE INITIALLY DEFERRED")
	add(servers, "partition-hash", "PARTITION BY HASH")
	add(servers, "partition-range", "PARTITION BY RANGE")
	add(servers, "partition-list", "PARTITION BY LIST")
	add("AM", "partition-key", "PARTITION BY KEY")
	add("S", "strict", "STRICT")
	add("S", "without-rowid", "WITHOUT ROWID")
	add("S", "primary-key-rowid", "INTEGER PRIMARY KEY, which is the rowid")
	add(family, "engine", "ENGINE = InnoDB written out")
	optIn("AM", "engine-nontransactional", "ENGINE = MyISAM, MEMORY or Aria")
	add("AM", "row-format", "ROW_FORMAT")
	add("P", "storage-parameter", "WITH (fillfactor = ...)")
	add("P", "unlogged", "UNLOGGED tables")
	optIn(all, "auto-increment", "AUTO_INCREMENT, AUTOINCREMENT, GENERATED BY DEFAULT AS IDENTITY")
	optIn("PAMS", "trigger", "a trigger BEFORE or AFTER UPDATE that changes a column")
	add(all, "view", "CREATE VIEW")
	add(all, "empty-table", "a table without rows")

	where = "Query"
	add(all, "select", "SELECT")
	add(all, "where", "WHERE")
	add(all, "null-safe", "IS [NOT] DISTINCT FROM, <=>")
	add(all, "between", "BETWEEN")
	add(all, "in-list", "IN (...)")
	add(all, "is-null", "IS [NOT] NULL")
	add(all, "like", "LIKE")
	add(all, "and-or", "AND, OR")
	add(family, "xor", "XOR")
	add(all, "not", "NOT")
	add(all, "is-true", "IS [NOT] TRUE, FALSE")
	add(all, "extreme-constant", "a comparison with a number at the edge of an integer type")
	add(all, "arithmetic", "+, -, %")
	add(all, "function", "ABS, UPPER, LENGTH and so on")
	add(all, "case", "CASE")
	add(all, "coalesce", "COALESCE, NULLIF")
	add(all, "cast", "CAST")
	add("AMTS", "implicit-cast", "a number compared with a text")
	add("MT", "mixed-types", "expressions over values of different types, such as IFNULL(c, '0')")
	add("MT", "cast-types", "CAST to other types of what is mixed")
	add("MT", "bit-operator", "&, |, ^, ~ of whatever type")
	add("MT", "unary-minus", "- of whatever type")
	add(all, "json-path", "a part of a JSON value")
	add(all, "row-value", "(a, b) = (1, 2)")
	add(all, "join-inner", "[INNER] JOIN ... ON")
	add(all, "join-left", "LEFT JOIN")
	add(all, "join-right", "RIGHT JOIN")
	add("PS", "join-full", "FULL JOIN")
	add("T", "hint", "optimizer hints that name a way to join or to aggregate")
	add(all, "join-cross", "CROSS JOIN")
	add(family, "join-straight", "STRAIGHT_JOIN")
	add("PM", "join-lateral", "LATERAL")
	add(all, "join-using", "JOIN ... USING")
	add(all, "join-three", "a join of three")
	add(all, "self-join", "a table joined with itself")
	add(all, "derived-table", "a subquery in FROM")
	add(all, "subquery-scalar", "(SELECT aggregate ...) as a value")
	add(all, "subquery-in", "[NOT] IN (SELECT ...)")
	add(all, "subquery-exists", "[NOT] EXISTS (SELECT ...)")
	add(servers, "subquery-any", "= ANY, < ALL and so on (SELECT ...)")
	add(all, "subquery-correlated", "a subquery that names a column of the outer query")
	add(all, "aggregate", "COUNT, SUM, MIN, MAX, AVG")
	add(all, "aggregate-distinct", "COUNT(DISTINCT ...)")
	add("PS", "aggregate-filter", "FILTER (WHERE ...)")
	add(all, "group-concat", "GROUP_CONCAT, string_agg, with a total order")
	add(all, "group-by", "GROUP BY")
	add("PAM", "rollup", "GROUP BY ROLLUP (...), WITH ROLLUP")
	add(all, "having", "HAVING")
	add(all, "distinct", "DISTINCT")
	add("P", "distinct-on", "DISTINCT ON (...), with a total order")
	add(all, "order-by", "ORDER BY")
	add(all, "limit", "LIMIT, with a total order")
	add(all, "offset", "OFFSET")
	add(all, "union", "UNION")
	add(all, "union-all", "UNION ALL")
	add(all, "intersect", "INTERSECT")
	add(all, "except", "EXCEPT")
	add("PAM", "set-all", "INTERSECT ALL, EXCEPT ALL")
	add(all, "cte", "WITH")
	add(all, "cte-recursive", "WITH RECURSIVE")
	add(all, "window", "OVER (PARTITION BY ... ORDER BY ...)")
	add(all, "window-frame", "ROWS BETWEEN ... in a total order")
	add(all, "view-read", "a query of a view")
	add(servers, "for-update", "FOR UPDATE")
	add("PM", "for-share", "FOR SHARE")
	add("AM", "lock-in-share-mode", "LOCK IN SHARE MODE")
	add("P", "for-no-key-update", "FOR NO KEY UPDATE")
	add("P", "for-key-share", "FOR KEY SHARE")
	add("PM", "for-update-of", "FOR UPDATE OF one of the tables")
	add(servers, "nowait", "NOWAIT")
	add("PAM", "skip-locked", "SKIP LOCKED")

	where = "Write"
	add(all, "insert", "INSERT")
	add(all, "insert-multi-row", "INSERT of several rows")
	add(all, "extreme-value", "INSERT of the least or the greatest number of a type")
	add(servers, "insert-default", "INSERT with DEFAULT as a value")
	add(all, "insert-select", "INSERT ... SELECT")
	add(family, "insert-set", "INSERT ... SET")
	add("AMTS", "insert-ignore", "INSERT IGNORE, INSERT OR IGNORE")
	add(family, "on-duplicate-key", "ON DUPLICATE KEY UPDATE")
	add("PS", "on-conflict-nothing", "ON CONFLICT DO NOTHING")
	add("PS", "on-conflict-update", "ON CONFLICT ... DO UPDATE")
	add("PAS", "returning", "RETURNING")
	add("AMTS", "replace", "REPLACE")
	add("AMTS", "replace-select", "REPLACE ... SELECT")
	add("P", "merge", "MERGE")
	add(all, "update", "UPDATE")
	add(all, "update-expression", "SET c = an expression of the row")
	add(servers, "update-default", "SET c = DEFAULT")
	add(all, "update-key", "UPDATE of a key column")
	add(all, "update-subquery", "SET c = (SELECT ...)")
	add(all, "update-join", "UPDATE of a join, UPDATE ... FROM")
	add(family, "update-multi-table", "UPDATE of two tables at once")
	add("PS", "update-row", "SET (a, b) = (1, 2)")
	add(family, "update-limit", "UPDATE ... ORDER BY ... LIMIT")
	add(family, "update-ignore", "UPDATE IGNORE, in a total order")
	add(all, "delete", "DELETE")
	add(all, "delete-all", "DELETE without condition")
	add(servers, "delete-join", "DELETE of a join, DELETE ... USING")
	add(family, "delete-multi-table", "DELETE from two tables at once")
	add(family, "delete-limit", "DELETE ... ORDER BY ... LIMIT")
	add("PMTS", "write-cte", "WITH in front of an UPDATE or DELETE")
	add("P", "modifying-cte", "WITH (DELETE ... RETURNING) SELECT")
	add("PAM", "view-write", "a write through a view")

	where = "Transaction"
	add(all, "begin", "BEGIN")
	add(all, "start-transaction", "START TRANSACTION, BEGIN TRANSACTION")
	add("PAM", "begin-read-only", "START TRANSACTION READ ONLY")
	add("PAM", "begin-read-write", "START TRANSACTION READ WRITE")
	add("P", "begin-deferrable", "BEGIN ... SERIALIZABLE, READ ONLY, DEFERRABLE")
	add(family, "begin-snapshot", "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	add("S", "begin-deferred", "BEGIN DEFERRED")
	add("S", "begin-immediate", "BEGIN IMMEDIATE")
	add("S", "begin-exclusive", "BEGIN EXCLUSIVE")
	add("T", "begin-optimistic", "BEGIN OPTIMISTIC")
	add("T", "begin-pessimistic", "BEGIN PESSIMISTIC")
	add(servers, "set-transaction", "SET TRANSACTION ISOLATION LEVEL")
	add("P", "set-constraints", "SET CONSTRAINTS ALL DEFERRED, IMMEDIATE")
	add(all, "commit", "COMMIT")
	add(all, "rollback", "ROLLBACK at the end")
	optIn(family, "autocommit-off", "SET autocommit = 0 in place of BEGIN, and 1 after the end")
	optIn(all, "ddl-index", "CREATE INDEX as a transaction of its own")
	optIn(all, "ddl-add-column", "ALTER TABLE ... ADD COLUMN as a transaction of its own")
	optIn(servers, "ddl-truncate", "TRUNCATE TABLE as a transaction of its own")
	add(all, "autocommit", "a statement outside of explicit transactions")
	add(all, "several-transactions", "several transactions in a session")
	add(all, "savepoint", "SAVEPOINT")
	add(all, "rollback-to-savepoint", "ROLLBACK TO SAVEPOINT")
	add(all, "release-savepoint", "RELEASE SAVEPOINT")

	where = "Template"
	for _, t := range templates() {
		add(all, "template-"+t.name, t.what)
	}
	return out
}

// needs names the feature without which another one cannot be; empty: it needs none.
func needs(feature string) string {
	switch feature {
	case "group-concat", "aggregate-distinct", "aggregate-filter":
		return "aggregate"
	case "rollup", "having":
		return "group-by"
	case "window-frame":
		return "window"
	case "set-all":
		return "intersect"
	case "join-three":
		return "join-inner"
	case "cast-types", "bit-operator", "unary-minus":
		return "mixed-types"
	case "offset":
		return "limit"
	case "update-multi-table":
		return "update-join"
	case "delete-multi-table":
		return "delete-join"
	case "rollback-to-savepoint", "release-savepoint":
		return "savepoint"
	case "view-read", "view-write":
		return "view"
	case "index-generated":
		return "generated-stored"
	case "default-expression":
		return "default"
	case "unique-nulls-not-distinct":
		return "unique"
	case "without-rowid", "primary-key-rowid":
		return "primary-key"
	case "index-unique", "unique-prefix", "unique-expression", "unique-partial":
		return "index"
	case "index", "foreign-key":
		return ""
	}
	switch {
	case strings.HasPrefix(feature, "index-"):
		return "index"
	case strings.HasPrefix(feature, "foreign-key-"):
		return "foreign-key"
	}
	return ""
}

// kindsOf gives the kinds of statements that can have the feature; none for features of databases and transactions.
func kindsOf(feature string) []Kind {
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(feature, p) })
	}
	switch {
	case has("for-", "lock-in", "nowait", "skip-locked"):
		return []Kind{KindLock}
	case has("insert-ignore", "on-"):
		return []Kind{KindUpsert}
	case has("insert"):
		return []Kind{KindInsert}
	case has("replace"):
		return []Kind{KindReplace}
	case has("update"), feature == "write-cte":
		return []Kind{KindUpdate}
	case has("delete"), feature == "modifying-cte":
		return []Kind{KindDelete}
	case feature == "returning", feature == "view-write":
		return []Kind{KindInsert}
	case feature == "merge":
		return []Kind{KindMerge}
	}
	for _, f := range features() {
		if f.Name == feature && f.Where == "Query" {
			return []Kind{KindSelect}
		}
	}
	return nil
}

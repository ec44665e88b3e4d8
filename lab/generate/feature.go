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
	return strings.ContainsRune(f.dialects, grammarOf(d).letter)
}

// AllFeatures lists the features of all dialects, in the order of docs/reference/generation.md.
func AllFeatures() []Feature { return features() }

// Features lists the features of a dialect.
func Features(d Dialect) []Feature {
	return slices.DeleteFunc(slices.Clone(features()), func(f Feature) bool { return !f.In(d) })
}

var featureNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, f := range features() {
		names[f.Name] = true
	}
	return names
})

func isFeature(name string) bool { return featureNames()[name] }

// The sets of dialects that several features have.
const (
	all     = "PAMTS"
	servers = "PAMT"
	family  = "AMT"
)

// features is the table, the templates included. What stands here and what the code uses is compared by a test.
func features() []Feature {
	out := slices.Clip(table)
	for _, t := range templates() {
		out = append(out, Feature{Name: "template-" + t.name, Where: "Template", What: t.what, dialects: all})
	}
	return out
}

var table = []Feature{
	{"type-tinyint", "Database", "TINYINT", false, family},
	{"type-smallint", "Database", "SMALLINT", false, all},
	{"type-mediumint", "Database", "MEDIUMINT", false, family},
	{"type-int", "Database", "INT", false, all},
	{"type-bigint", "Database", "BIGINT", false, all},
	{"type-unsigned", "Database", "integers without sign", false, family},
	{"type-decimal", "Database", "DECIMAL(10,2)", false, all},
	{"type-float", "Database", "FLOAT, REAL", false, all},
	{"type-double", "Database", "DOUBLE PRECISION", false, all},
	{"type-varchar", "Database", "VARCHAR(20)", false, all},
	{"type-char", "Database", "CHAR(5)", false, all},
	{"type-text", "Database", "TEXT", false, all},
	{"collation", "Database", "a text column with a collation of its own", false, all},
	{"type-binary", "Database", "VARBINARY(20), bytea", false, servers},
	{"type-blob", "Database", "BLOB", false, "AMTS"},
	{"type-date", "Database", "DATE", false, all},
	{"type-datetime", "Database", "DATETIME, TIMESTAMP", false, all},
	{"type-time", "Database", "TIME", false, all},
	{"type-year", "Database", "YEAR", false, family},
	{"type-boolean", "Database", "BOOLEAN", false, all},
	{"type-enum", "Database", "ENUM", false, servers},
	{"type-json", "Database", "JSON, jsonb", false, all},
	{"type-set", "Database", "SET", false, family},
	{"type-uuid", "Database", "UUID", false, "PA"},
	{"type-untyped", "Database", "a column without a type, ANY in a STRICT table", false, "S"},
	{"type-array", "Database", "INT[]", false, "P"},
	{"not-null", "Database", "NOT NULL", false, all},
	{"default", "Database", "DEFAULT with a constant", false, all},
	{"default-expression", "Database", "DEFAULT with an expression", false, "PAMS"},
	{"generated-stored", "Database", "GENERATED ALWAYS AS ... STORED", false, all},
	{"generated-virtual", "Database", "GENERATED ALWAYS AS ... VIRTUAL", false, "AMTS"},
	{"check", "Database", "CHECK on one column", false, all},
	{"check-multi-column", "Database", "CHECK over two columns", false, all},
	{"primary-key", "Database", "PRIMARY KEY", false, all},
	{"primary-key-multi-column", "Database", "PRIMARY KEY over several columns", false, all},
	{"primary-key-prefix", "Database", "PRIMARY KEY over the beginning of a text", false, family},
	{"primary-key-nonclustered", "Database", "PRIMARY KEY ... NONCLUSTERED", false, "T"},
	{"unique", "Database", "UNIQUE", false, all},
	{"unique-multi-column", "Database", "UNIQUE over several columns", false, all},
	{"unique-prefix", "Database", "UNIQUE over the beginning of a text", false, family},
	{"unique-nulls-not-distinct", "Database", "UNIQUE NULLS NOT DISTINCT", false, "P"},
	{"unique-expression", "Database", "a unique index over an expression", false, "PMTS"},
	{"unique-partial", "Database", "a unique index over some of the rows", false, "PS"},
	{"index", "Database", "CREATE INDEX", false, all},
	{"index-collation", "Database", "an index with a collation of its own", false, "S"},
	{"index-unique", "Database", "CREATE UNIQUE INDEX", false, all},
	{"index-multi-column", "Database", "an index over several columns", false, all},
	{"index-descending", "Database", "an index in descending order", false, all},
	{"index-prefix", "Database", "an index over the beginning of a text", false, family},
	{"index-generated", "Database", "an index over a generated column", false, all},
	{"index-invisible", "Database", "an INVISIBLE index, IGNORED in MariaDB", false, family},
	{"index-functional", "Database", "an index over an expression", false, "PMTS"},
	{"index-partial", "Database", "an index over some of the rows", false, "PS"},
	{"index-hash", "Database", "an index USING HASH", false, "P"},
	{"index-include", "Database", "an index with INCLUDE columns", false, "P"},
	{"foreign-key", "Database", "FOREIGN KEY", false, all},
	{"foreign-key-self", "Database", "FOREIGN KEY to the same table", false, all},
	{"foreign-key-cascade", "Database", "ON DELETE or ON UPDATE CASCADE", false, all},
	{"foreign-key-set-null", "Database", "ON DELETE or ON UPDATE SET NULL", false, all},
	{"foreign-key-restrict", "Database", "ON DELETE or ON UPDATE RESTRICT", false, all},
	{"foreign-key-no-action", "Database", "ON DELETE or ON UPDATE NO ACTION", false, all},
	{"foreign-key-set-default", "Database", "ON DELETE or ON UPDATE SET DEFAULT", false, "PS"},
	{"foreign-key-deferrable", "Database", "DEFERRABLE INITIALLY DEFERRED", false, "PS"},
	{"partition-hash", "Database", "PARTITION BY HASH", false, servers},
	{"partition-range", "Database", "PARTITION BY RANGE", false, servers},
	{"partition-list", "Database", "PARTITION BY LIST", false, servers},
	{"partition-key", "Database", "PARTITION BY KEY", false, "AM"},
	{"strict", "Database", "STRICT", false, "S"},
	{"without-rowid", "Database", "WITHOUT ROWID", false, "S"},
	{"primary-key-rowid", "Database", "INTEGER PRIMARY KEY, which is the rowid", false, "S"},
	{"engine", "Database", "ENGINE = InnoDB written out", false, family},
	{"engine-nontransactional", "Database", "ENGINE = MyISAM, MEMORY or Aria", true, "AM"},
	{"row-format", "Database", "ROW_FORMAT", false, "AM"},
	{"storage-parameter", "Database", "WITH (fillfactor = ...)", false, "P"},
	{"unlogged", "Database", "UNLOGGED tables", false, "P"},
	{"auto-increment", "Database", "AUTO_INCREMENT, AUTOINCREMENT, GENERATED BY DEFAULT AS IDENTITY", true, all},
	{"trigger", "Database", "a trigger BEFORE or AFTER UPDATE that changes a column", true, "PAMS"},
	{"view", "Database", "CREATE VIEW", false, all},
	{"empty-table", "Database", "a table without rows", false, all},
	{"select", "Query", "SELECT", false, all},
	{"where", "Query", "WHERE", false, all},
	{"null-safe", "Query", "IS [NOT] DISTINCT FROM, <=>", false, all},
	{"between", "Query", "BETWEEN", false, all},
	{"in-list", "Query", "IN (...)", false, all},
	{"is-null", "Query", "IS [NOT] NULL", false, all},
	{"like", "Query", "LIKE", false, all},
	{"and-or", "Query", "AND, OR", false, all},
	{"xor", "Query", "XOR", false, family},
	{"not", "Query", "NOT", false, all},
	{"is-true", "Query", "IS [NOT] TRUE, FALSE", false, all},
	{"extreme-constant", "Query", "a comparison with a number at the edge of an integer type", false, all},
	{"arithmetic", "Query", "+, -, %", false, all},
	{"function", "Query", "ABS, UPPER, LENGTH and so on", false, all},
	{"case", "Query", "CASE", false, all},
	{"coalesce", "Query", "COALESCE, NULLIF", false, all},
	{"cast", "Query", "CAST", false, all},
	{"implicit-cast", "Query", "a number compared with a text", false, "AMTS"},
	{"mixed-types", "Query", "expressions over values of different types, such as IFNULL(c, '0')", false, "MT"},
	{"cast-types", "Query", "CAST to other types of what is mixed", false, "MT"},
	{"bit-operator", "Query", "&, |, ^, ~ of whatever type", false, "MT"},
	{"unary-minus", "Query", "- of whatever type", false, "MT"},
	{"json-path", "Query", "a part of a JSON value", false, all},
	{"row-value", "Query", "(a, b) = (1, 2)", false, all},
	{"join-inner", "Query", "[INNER] JOIN ... ON", false, all},
	{"join-left", "Query", "LEFT JOIN", false, all},
	{"join-right", "Query", "RIGHT JOIN", false, all},
	{"join-full", "Query", "FULL JOIN", false, "PS"},
	{"hint", "Query", "optimizer hints that name a way to join or to aggregate", false, "T"},
	{"join-cross", "Query", "CROSS JOIN", false, all},
	{"join-straight", "Query", "STRAIGHT_JOIN", false, family},
	{"join-lateral", "Query", "LATERAL", false, "PM"},
	{"join-using", "Query", "JOIN ... USING", false, all},
	{"join-three", "Query", "a join of three", false, all},
	{"self-join", "Query", "a table joined with itself", false, all},
	{"derived-table", "Query", "a subquery in FROM", false, all},
	{"subquery-scalar", "Query", "(SELECT aggregate ...) as a value", false, all},
	{"subquery-in", "Query", "[NOT] IN (SELECT ...)", false, all},
	{"subquery-exists", "Query", "[NOT] EXISTS (SELECT ...)", false, all},
	{"subquery-any", "Query", "= ANY, < ALL and so on (SELECT ...)", false, servers},
	{"subquery-correlated", "Query", "a subquery that names a column of the outer query", false, all},
	{"aggregate", "Query", "COUNT, SUM, MIN, MAX, AVG", false, all},
	{"aggregate-distinct", "Query", "COUNT(DISTINCT ...)", false, all},
	{"aggregate-filter", "Query", "FILTER (WHERE ...)", false, "PS"},
	{"group-concat", "Query", "GROUP_CONCAT, string_agg, with a total order", false, all},
	{"group-by", "Query", "GROUP BY", false, all},
	{"rollup", "Query", "GROUP BY ROLLUP (...), WITH ROLLUP", false, "PAM"},
	{"having", "Query", "HAVING", false, all},
	{"distinct", "Query", "DISTINCT", false, all},
	{"distinct-on", "Query", "DISTINCT ON (...), with a total order", false, "P"},
	{"order-by", "Query", "ORDER BY", false, all},
	{"limit", "Query", "LIMIT, with a total order", false, all},
	{"offset", "Query", "OFFSET", false, all},
	{"union", "Query", "UNION", false, all},
	{"union-all", "Query", "UNION ALL", false, all},
	{"intersect", "Query", "INTERSECT", false, all},
	{"except", "Query", "EXCEPT", false, all},
	{"set-all", "Query", "INTERSECT ALL, EXCEPT ALL", false, "PAM"},
	{"cte", "Query", "WITH", false, all},
	{"cte-recursive", "Query", "WITH RECURSIVE", false, all},
	{"window", "Query", "OVER (PARTITION BY ... ORDER BY ...)", false, all},
	{"window-frame", "Query", "ROWS BETWEEN ... in a total order", false, all},
	{"view-read", "Query", "a query of a view", false, all},
	{"for-update", "Query", "FOR UPDATE", false, servers},
	{"for-share", "Query", "FOR SHARE", false, "PM"},
	{"lock-in-share-mode", "Query", "LOCK IN SHARE MODE", false, "AM"},
	{"for-no-key-update", "Query", "FOR NO KEY UPDATE", false, "P"},
	{"for-key-share", "Query", "FOR KEY SHARE", false, "P"},
	{"for-update-of", "Query", "FOR UPDATE OF one of the tables", false, "PM"},
	{"nowait", "Query", "NOWAIT", false, servers},
	{"skip-locked", "Query", "SKIP LOCKED", false, "PAM"},
	{"insert", "Write", "INSERT", false, all},
	{"insert-multi-row", "Write", "INSERT of several rows", false, all},
	{"extreme-value", "Write", "INSERT of the least or the greatest number of a type", false, all},
	{"insert-default", "Write", "INSERT with DEFAULT as a value", false, servers},
	{"insert-select", "Write", "INSERT ... SELECT", false, all},
	{"insert-set", "Write", "INSERT ... SET", false, family},
	{"insert-ignore", "Write", "INSERT IGNORE, INSERT OR IGNORE", false, "AMTS"},
	{"on-duplicate-key", "Write", "ON DUPLICATE KEY UPDATE", false, family},
	{"on-conflict-nothing", "Write", "ON CONFLICT DO NOTHING", false, "PS"},
	{"on-conflict-update", "Write", "ON CONFLICT ... DO UPDATE", false, "PS"},
	{"returning", "Write", "RETURNING", false, "PAS"},
	{"replace", "Write", "REPLACE", false, "AMTS"},
	{"replace-select", "Write", "REPLACE ... SELECT", false, "AMTS"},
	{"merge", "Write", "MERGE", false, "P"},
	{"update", "Write", "UPDATE", false, all},
	{"update-expression", "Write", "SET c = an expression of the row", false, all},
	{"update-default", "Write", "SET c = DEFAULT", false, servers},
	{"update-key", "Write", "UPDATE of a key column", false, all},
	{"update-subquery", "Write", "SET c = (SELECT ...)", false, all},
	{"update-join", "Write", "UPDATE of a join, UPDATE ... FROM", false, all},
	{"update-multi-table", "Write", "UPDATE of two tables at once", false, family},
	{"update-row", "Write", "SET (a, b) = (1, 2)", false, "PS"},
	{"update-limit", "Write", "UPDATE ... ORDER BY ... LIMIT", false, family},
	{"update-ignore", "Write", "UPDATE IGNORE, in a total order", false, family},
	{"delete", "Write", "DELETE", false, all},
	{"delete-all", "Write", "DELETE without condition", false, all},
	{"delete-join", "Write", "DELETE of a join, DELETE ... USING", false, servers},
	{"delete-multi-table", "Write", "DELETE from two tables at once", false, family},
	{"delete-limit", "Write", "DELETE ... ORDER BY ... LIMIT", false, family},
	{"write-cte", "Write", "WITH in front of an UPDATE or DELETE", false, "PMTS"},
	{"modifying-cte", "Write", "WITH (DELETE ... RETURNING) SELECT", false, "P"},
	{"view-write", "Write", "a write through a view", false, "PAM"},
	{"begin", "Transaction", "BEGIN", false, all},
	{"start-transaction", "Transaction", "START TRANSACTION, BEGIN TRANSACTION", false, all},
	{"begin-read-only", "Transaction", "START TRANSACTION READ ONLY", false, "PAM"},
	{"begin-read-write", "Transaction", "START TRANSACTION READ WRITE", false, "PAM"},
	{"begin-deferrable", "Transaction", "BEGIN ... SERIALIZABLE, READ ONLY, DEFERRABLE", false, "P"},
	{"begin-snapshot", "Transaction", "START TRANSACTION WITH CONSISTENT SNAPSHOT", false, family},
	{"begin-deferred", "Transaction", "BEGIN DEFERRED", false, "S"},
	{"begin-immediate", "Transaction", "BEGIN IMMEDIATE", false, "S"},
	{"begin-exclusive", "Transaction", "BEGIN EXCLUSIVE", false, "S"},
	{"begin-optimistic", "Transaction", "BEGIN OPTIMISTIC", false, "T"},
	{"begin-pessimistic", "Transaction", "BEGIN PESSIMISTIC", false, "T"},
	{"set-transaction", "Transaction", "SET TRANSACTION ISOLATION LEVEL", false, servers},
	{"set-constraints", "Transaction", "SET CONSTRAINTS ALL DEFERRED, IMMEDIATE", false, "P"},
	{"commit", "Transaction", "COMMIT", false, all},
	{"rollback", "Transaction", "ROLLBACK at the end", false, all},
	{"autocommit-off", "Transaction", "SET autocommit = 0 in place of BEGIN, and 1 after the end", true, family},
	{"ddl-index", "Transaction", "CREATE INDEX as a transaction of its own", true, all},
	{"ddl-add-column", "Transaction", "ALTER TABLE ... ADD COLUMN as a transaction of its own", true, all},
	{"ddl-drop-index", "Transaction", "DROP INDEX as a transaction of its own", true, all},
	{"ddl-rename-index", "Transaction", "an index gets another name, as a transaction of its own", true, servers},
	{"ddl-drop-column", "Transaction", "ALTER TABLE ... DROP COLUMN as a transaction of its own", true, servers},
	{"ddl-modify-column", "Transaction", "a column gets a wider type, or a default, as a transaction of its own", true, servers},
	{"ddl-rename", "Transaction", "RENAME TABLE to another name and back as a transaction of its own", true, "AM"},
	{"ddl-rebuild", "Transaction", "ALTER TABLE ... FORCE, REBUILD PARTITION, OPTIMIZE TABLE, REINDEX, VACUUM FULL as a transaction of its own", true, "PAM"},
	{"ddl-truncate", "Transaction", "TRUNCATE TABLE as a transaction of its own", true, servers},
	{"ddl-partition", "Transaction", "a partition more, fewer or emptied, or none any more, as a transaction of its own", true, family},
	{"admin-analyze", "Transaction", "ANALYZE [TABLE] as a transaction of its own", true, all},
	{"admin-flush", "Transaction", "FLUSH TABLES as a transaction of its own", true, "AM"},
	{"set-optimizer", "Transaction", "SET of a switch of the optimizer in front of a transaction", true, servers},
	{"set-retry", "Transaction", "SET of what lets the server execute transactions again, in front of one", true, "T"},
	{"fault-killed", "Transaction", "the server is asked to end the connection in place of a ROLLBACK", true, "PAM"},
	{"fault-cut", "Transaction", "the connection breaks in place of a ROLLBACK", true, "PAM"},
	{"fault-doubt", "Transaction", "the connection breaks behind a COMMIT, before its answer", true, "PAM"},
	{"fault-wait", "Transaction", "the server is asked to end the connection as soon as a statement waits", true, "PAM"},
	{"autocommit", "Transaction", "a statement outside of explicit transactions", false, all},
	{"several-transactions", "Transaction", "several transactions in a session", false, all},
	{"savepoint", "Transaction", "SAVEPOINT", false, all},
	{"rollback-to-savepoint", "Transaction", "ROLLBACK TO SAVEPOINT", false, all},
	{"release-savepoint", "Transaction", "RELEASE SAVEPOINT", false, all},
}

// needed names the features without which others cannot be.
var needed = map[string]string{
	"group-concat": "aggregate", "aggregate-distinct": "aggregate", "aggregate-filter": "aggregate",
	"rollup": "group-by", "having": "group-by", "window-frame": "window", "set-all": "intersect", "join-three": "join-inner", "offset": "limit",
	"cast-types": "mixed-types", "bit-operator": "mixed-types", "unary-minus": "mixed-types",
	"update-multi-table": "update-join", "delete-multi-table": "delete-join", "rollback-to-savepoint": "savepoint", "release-savepoint": "savepoint",
	"view-read": "view", "view-write": "view", "default-expression": "default", "unique-nulls-not-distinct": "unique",
	"without-rowid": "primary-key", "primary-key-rowid": "primary-key",
	"index-generated": "generated-stored", "unique-prefix": "index", "unique-expression": "index", "unique-partial": "index",
}

// needs names the feature without which another one cannot be; empty: it needs none.
func needs(feature string) string {
	if other, ok := needed[feature]; ok {
		return other
	}
	for _, group := range []string{"index", "foreign-key"} {
		if strings.HasPrefix(feature, group+"-") {
			return group
		}
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
	if slices.ContainsFunc(features(), func(f Feature) bool { return f.Name == feature && f.Where == "Query" }) {
		return []Kind{KindSelect}
	}
	return nil
}

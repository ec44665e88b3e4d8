package mysql

import (
	"strings"

	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// Flavor is a product of the family.
type Flavor string

// The flavors.
const (
	MariaDB Flavor = "mariadb"
	MySQL   Flavor = "mysql"
	TiDB    Flavor = "tidb"
)

// FlavorOf tells the product by its version string.
func FlavorOf(version string) Flavor { return Flavor(product.OfVersion(version).Name) }

// Effect is what a statement does to its transaction, its session and the catalog.
type Effect struct {
	Verb    string // as history.Event.Verb
	Control statement.Control
	Schema  bool // it may change the catalog, or what names mean
	// Temporary is the name of the temporary table that it creates, and TemporarySchema its schema if the text names one.
	TemporarySchema, Temporary string
}

// EffectOf tells the effect of a statement that begins at token i. It works on tokens, as the parser does not know many of the
// statements that steer transactions and sessions. known says that it is such a one, or has nothing to do with rows.
func EffectOf(t *statement.Text, i int, flavor Flavor) (e Effect, known bool) {
	e.Verb = "other"
	switch {
	case t.Is(i, "SELECT", "WITH", "TABLE", "VALUES"):
		e.Verb = "select"
		return e, false
	case t.Is(i, "INSERT", "REPLACE", "UPDATE", "DELETE"):
		e.Verb = strings.ToLower(t.At(i))
		return e, false
	case t.Is(i, "BEGIN"), t.Seq(i, "START", "TRANSACTION"):
		e.Verb = "begin"
		e.Control = statement.Control{Verb: statement.ControlBegin, Ends: true}
		if flavor == TiDB && t.Any(i, "OPTIMISTIC") {
			e.Control.Level = "snapshot"
		}
	case t.Is(i, "COMMIT"):
		e.Verb = "commit"
		e.Control = statement.Control{Verb: statement.ControlCommit, Chain: t.Any(i, "AND", "CHAIN")}
	case t.Is(i, "ROLLBACK"):
		e.rollback(t, i)
	case t.Is(i, "SAVEPOINT"):
		e.Verb = "savepoint"
		e.Control = statement.Control{Verb: statement.ControlSavepoint, Name: savepoint(t, i+1)}
	case t.Seq(i, "RELEASE", "SAVEPOINT"):
		e.Verb = "release"
		e.Control = statement.Control{Verb: statement.ControlRelease, Name: savepoint(t, i+2)}
	case t.Is(i, "SET"):
		e.Verb = "set"
		e.set(t, i+1)
	case t.Is(i, "USE"):
		name, _ := t.Name(i + 1)
		e.Control = statement.Control{Verb: statement.ControlDatabase, Name: name}
	case t.Is(i, "LOCK", "UNLOCK") && t.Is(i+1, "TABLES", "TABLE"):
		e.Control = statement.Control{Verb: statement.ControlLocks, Ends: t.Is(i, "LOCK")}
	case t.Seq(i, "DROP", "PREPARE"):
	case t.Is(i, "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"):
		e.ddl(t, i)
	case t.Is(i, "GRANT", "REVOKE", "FLUSH", "RESET", "INSTALL", "UNINSTALL", "CACHE", "CHANGE", "STOP", "PURGE", "OPTIMIZE", "REPAIR", "CHECK"),
		t.Is(i, "START"), t.Is(i, "ANALYZE") && t.Is(i+1, "TABLE", "LOCAL", "NO_WRITE_TO_BINLOG"), t.Seq(i, "LOAD", "INDEX"):
		e.Control.Ends = true
	case t.Is(i, "CALL"):
		e.Control.Verb = statement.ControlReset
	case t.Is(i, "EXECUTE"):
		e.Control.Verb, e.Schema = statement.ControlReset, true
	case t.Is(i, "XA"):
		// Whether and when such a transaction commits is decided elsewhere; the server's status flags tell when it is over.
	case t.Is(i, "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "LOAD", "HELP", "KILL", "SIGNAL", "RESIGNAL", "GET", "DEALLOCATE", "BINLOG", "SHUTDOWN", "PREPARE"):
	default:
		return e, false
	}
	return e, true
}

func (e *Effect) rollback(t *statement.Text, i int) {
	j := i + 1
	if t.Is(j, "WORK") {
		j++
	}
	if !t.Is(j, "TO") {
		e.Verb = "rollback"
		e.Control = statement.Control{Verb: statement.ControlRollback, Chain: t.Any(i, "AND", "CHAIN")}
		return
	}
	j++
	if t.Is(j, "SAVEPOINT") && j+1 < len(t.Tokens) {
		j++
	}
	e.Verb = "rollback to"
	e.Control = statement.Control{Verb: statement.ControlRollbackTo, Name: savepoint(t, j)}
}

// savepoint gives the name of a savepoint; they are compared without regard to case.
func savepoint(t *statement.Text, i int) string {
	name, _ := t.Name(i)
	return strings.ToLower(name)
}

// set is for SET; i is the token behind it.
func (e *Effect) set(t *statement.Text, i int) {
	scope := statement.ScopeNext
	j := i
	if t.Is(j, "SESSION", "LOCAL") {
		scope, j = statement.ScopeSession, j+1
	}
	switch {
	case t.Is(j, "TRANSACTION"):
		if level := levelWords(t, j+1); level != "" {
			e.Control = statement.Control{Verb: statement.ControlLevel, Level: level, Scope: scope}
		}
	case t.Seq(i, "GLOBAL", "TRANSACTION"):
	case t.Is(i, "STATEMENT"):
		e.Control.Verb = statement.ControlReset
	case t.Is(i, "PASSWORD"):
		e.Control.Ends = true
	case SetsNames(t, i):
		if name := strings.Trim(strings.ToLower(t.At(len(t.Tokens)-1)), `'"`); len(t.Tokens) > i+3 || !mysqlsyntax.PlainCharset(name) {
			e.Control.Verb = statement.ControlReset
		}
	default:
		e.assignments(t, i)
	}
}

// SetsNames reports whether a SET, which stands in front of token i, is SET NAMES or one of its relatives.
func SetsNames(t *statement.Text, i int) bool {
	return t.Is(i, "NAMES", "CHARSET") || t.Seq(i, "CHARACTER", "SET")
}

// levelWords finds ISOLATION LEVEL words from token i on. What REPEATABLE READ means the session knows.
func levelWords(t *statement.Text, i int) string {
	for ; i < len(t.Tokens); i++ {
		if t.Seq(i, "ISOLATION", "LEVEL") {
			words := t.At(i + 2)
			if !t.Is(i+2, "SERIALIZABLE") {
				words += " " + t.At(i+3)
			}
			return Level(words)
		}
	}
	return ""
}

// Level gives the name that history.Event.Level has for a level; empty if it is none.
func Level(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, "-", " "))
	switch s {
	case "read uncommitted", "read committed", "repeatable read", "serializable":
		return s
	}
	return ""
}

// assignments follows SET name = value, ... .
func (e *Effect) assignments(t *statement.Text, i int) {
	for _, part := range t.Split(i, len(t.Tokens)) {
		if c, ok := assignment(t, part[0], part[1]); ok {
			if e.Control.Verb != statement.ControlNone {
				c = statement.Control{Verb: statement.ControlReset}
			}
			e.Control = c
		}
	}
}

func assignment(t *statement.Text, i, end int) (statement.Control, bool) {
	reset := statement.Control{Verb: statement.ControlReset}
	session := true
	var name string
	switch {
	case t.Is(i, "GLOBAL", "PERSIST", "PERSIST_ONLY") && i+2 < end:
		return statement.Control{}, false
	case t.Is(i, "SESSION", "LOCAL") && i+2 < end:
		i++
		name, _ = t.Name(i)
	case i < len(t.Tokens) && t.Tokens[i].Kind == statement.TokenSystemVariable:
		name = strings.ToLower(strings.ReplaceAll(t.At(i)[2:], "`", ""))
		scope, rest, ok := strings.Cut(name, ".")
		if ok && scope != "session" && scope != "local" {
			return statement.Control{}, false
		}
		if ok {
			name = rest
		}
		session = ok
	default:
		name, _ = t.Name(i)
	}
	for i++; i < end && t.Is(i, ":", "="); i++ {
	}
	value := ""
	if i+1 == end {
		value = strings.ToLower(strings.Trim(t.At(i), `'"`))
	}
	switch strings.ToLower(name) {
	case "autocommit":
		switch value {
		case "1", "on", "true", "0", "off", "false":
			return statement.Control{Verb: statement.ControlAutocommit, On: value == "1" || value == "on" || value == "true"}, true
		}
		return reset, true
	case "tx_isolation", "transaction_isolation":
		if level := Level(value); level != "" {
			c := statement.Control{Verb: statement.ControlLevel, Level: level, Scope: statement.ScopeSession}
			if !session { // SET @@transaction_isolation: the next transaction only (MySQL manual, 15.3.7)
				c.Scope = statement.ScopeNext
			}
			return c, true
		}
		return reset, true
	case "sql_mode", "innodb_snapshot_isolation", "character_set_client", "character_set_connection", "character_set_results", "names",
		"collation_connection", "group_concat_max_len", "sql_select_limit", "max_sort_length", "time_zone", "binlog_format", "completion_type", "tidb_txn_mode", "tidb_disable_txn_auto_retry", "tidb_snapshot", "tidb_read_staleness", "tidb_low_resolution_tso", "tidb_enable_external_ts_read", "sql_log_bin":
		return reset, true
	}
	return statement.Control{}, false
}

func (e *Effect) ddl(t *statement.Text, i int) {
	e.Verb, e.Schema, e.Control.Ends = "ddl", true, true
	if t.Is(i, "DROP") {
		e.Control.Ends = !t.Is(i+1, "TEMPORARY")
	}
	if !t.Is(i, "CREATE") {
		return
	}
	j := i + 1
	if t.Seq(j, "OR", "REPLACE") {
		j += 2
	}
	if !t.Is(j, "TEMPORARY") {
		return
	}
	e.Control.Ends = false
	if j++; !t.Is(j, "TABLE") {
		return
	}
	if j++; t.Seq(j, "IF", "NOT", "EXISTS") {
		j += 3
	}
	if schema, name, _, ok := t.Qualified(j); ok {
		e.TemporarySchema, e.Temporary = schema, name
	}
}

// Parsable gives the text of a statement for the parser: what that does not know, but what tells nothing of tables, is blanked out;
// returning says that this was a RETURNING clause. why says why there is no such text.
func Parsable(t *statement.Text, verb string, flavor Flavor) (sql string, returning bool, why string) {
	base, end := t.Tokens[0].Start, t.Tokens[len(t.Tokens)-1].End
	sql = t.SQL[base:end]
	depth := t.Tokens[0].Depth
	if flavor == TiDB && verb != "select" {
		return sql, false, "" // the parser is its own
	}
	from := end
	switch verb {
	case "select":
		if t.Any(0, "INTO") {
			return "", false, "its result goes to variables or a file"
		}
		// LOCK IN SHARE MODE NOWAIT | SKIP LOCKED | WAIT n (MariaDB)
		if i := t.Find(0, depth, "LOCK"); flavor != TiDB && i >= 0 && t.Seq(i, "LOCK", "IN", "SHARE", "MODE") && i+4 < len(t.Tokens) {
			from = t.Tokens[i+4].Start
		}
	case "insert", "replace", "delete":
		if i := t.Find(0, depth, "RETURNING"); i >= 0 {
			returning, from = true, t.Tokens[i].Start
		}
		if flavor == MariaDB && verb == "insert" {
			sql = withoutValue(t, sql)
		}
	}
	return sql[:from-base] + strings.Repeat(" ", end-from), returning, ""
}

// withoutValue blanks out VALUE in front of the columns of ON DUPLICATE KEY UPDATE, which is VALUES there (MariaDB 10.3.3 and later). What is left names the
// same column.
func withoutValue(t *statement.Text, sql string) string {
	i := t.Find(0, t.Tokens[0].Depth, "DUPLICATE")
	for ; i >= 0 && i+1 < len(t.Tokens); i++ {
		if at := t.Tokens[i].Start - t.Tokens[0].Start; t.Is(i, "VALUE") && t.Is(i+1, "(") {
			sql = sql[:at] + strings.Repeat(" ", len("VALUE")) + sql[at+len("VALUE"):]
		}
	}
	return sql
}

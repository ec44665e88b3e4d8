package mysql

import (
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// control recognises statements that steer transactions and sessions, and those that have nothing to do with rows. It
// works on tokens, as the parser does not know many of them. It reports whether the statement is dealt with.
func (s *statement) control(i int) bool {
	t, p := s.text, s.plan
	switch {
	case t.is(i, "BEGIN"), t.seq(i, "START", "TRANSACTION"):
		s.begin(i)
	case t.is(i, "COMMIT"):
		p.Verb = "commit"
		p.Control = rewrite.Control{Verb: rewrite.ControlCommit, Chain: s.chains(i)}
	case t.is(i, "ROLLBACK"):
		s.rollback(i)
	case t.is(i, "SAVEPOINT"):
		p.Verb = "savepoint"
		p.Control = rewrite.Control{Verb: rewrite.ControlSavepoint, Name: s.savepoint(i + 1)}
	case t.seq(i, "RELEASE", "SAVEPOINT"):
		p.Verb = "release"
		p.Control = rewrite.Control{Verb: rewrite.ControlRelease, Name: s.savepoint(i + 2)}
	case t.is(i, "SET"):
		p.Verb = "set"
		s.set(i + 1)
	case t.is(i, "USE"):
		name, _ := t.name(i + 1)
		p.Control = rewrite.Control{Verb: rewrite.ControlDatabase, Name: name}
	case t.is(i, "LOCK", "UNLOCK") && t.is(i+1, "TABLES", "TABLE"):
		p.Control = rewrite.Control{Verb: rewrite.ControlLocks, Ends: t.is(i, "LOCK")}
	case t.seq(i, "DROP", "PREPARE"):
	case t.is(i, "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"):
		s.ddl(i)
	case t.is(i, "GRANT", "REVOKE", "FLUSH", "RESET", "INSTALL", "UNINSTALL", "CACHE", "CHANGE", "STOP", "PURGE", "OPTIMIZE", "REPAIR", "CHECK"),
		t.is(i, "START"), t.is(i, "ANALYZE") && t.is(i+1, "TABLE", "LOCAL", "NO_WRITE_TO_BINLOG"), t.seq(i, "LOAD", "INDEX"):
		p.Control.Ends = true
	case t.is(i, "SHOW"):
		p.Conceal = s.concealShow(i)
	case t.is(i, "DESC", "DESCRIBE", "EXPLAIN"):
		s.explain(i)
	case t.is(i, "XA"):
		// Whether and when such a transaction commits is decided elsewhere; the server's status flags tell when it is over.
	case t.is(i, "HELP", "KILL", "SIGNAL", "RESIGNAL", "GET", "DEALLOCATE", "BINLOG", "SHUTDOWN", "PREPARE"):
	case t.is(i, "CALL"):
		s.opaque("a stored procedure")
		p.Control.Verb = rewrite.ControlReset
	case t.is(i, "EXECUTE"):
		s.opaque("a statement prepared in SQL")
		p.Control.Verb = rewrite.ControlReset
		p.Schema = true
	case t.is(i, "LOAD"):
		s.opaque("rows from a file")
		if j := t.find(i, t.tokens[i].depth, "TABLE"); j >= 0 {
			s.wrote(j + 1)
		}
	default:
		return false
	}
	return true
}

// diagnostics reports whether the text asks for what the previous statement left behind.
func diagnostics(sql string) bool {
	sql = strings.ToLower(sql)
	for _, w := range []string{"row_count", "found_rows", "warning", "error", "diagnostics"} {
		if strings.Contains(sql, w) {
			return true
		}
	}
	return false
}

func diagnosticsIn(t *text) bool {
	for i, tok := range t.tokens {
		switch {
		case t.is(i, "ROW_COUNT", "FOUND_ROWS", "DIAGNOSTICS"),
			i == 1 && t.is(0, "SHOW") && t.is(1, "WARNINGS", "ERRORS"),
			i == 1 && t.is(0, "SHOW") && t.is(1, "COUNT") && t.is(5, "WARNINGS", "ERRORS"):
			return true
		case tok.kind == tokSysVar || tok.kind == tokIdent:
			if s := strings.ToLower(t.at(i)); strings.HasSuffix(s, "warning_count") || strings.HasSuffix(s, "error_count") {
				return true
			}
		}
	}
	return false
}

func (s *statement) begin(i int) {
	t, p := s.text, s.plan
	p.Verb = "begin"
	p.Control = rewrite.Control{Verb: rewrite.ControlBegin, Ends: true}
	for ; i < len(t.tokens); i++ {
		if t.seq(i, "WITH", "CONSISTENT", "SNAPSHOT") {
			p.Coverage = history.CoverageExact // its snapshot is taken now
		}
		if s.r.flavor == TiDB && t.is(i, "OPTIMISTIC") {
			p.Control.Level = "snapshot"
		}
	}
}

func (s *statement) chains(i int) bool {
	for ; i < len(s.text.tokens); i++ {
		if s.text.seq(i, "AND", "CHAIN") {
			return true
		}
	}
	return false
}

func (s *statement) rollback(i int) {
	t, p := s.text, s.plan
	j := i + 1
	if t.is(j, "WORK") {
		j++
	}
	if !t.is(j, "TO") {
		p.Verb = "rollback"
		p.Control = rewrite.Control{Verb: rewrite.ControlRollback, Chain: s.chains(i)}
		return
	}
	j++
	if t.is(j, "SAVEPOINT") && j+1 < len(t.tokens) {
		j++
	}
	p.Verb = "rollback to"
	p.Control = rewrite.Control{Verb: rewrite.ControlRollbackTo, Name: s.savepoint(j)}
}

// savepoint gives the name of a savepoint; they are compared without regard to case.
func (s *statement) savepoint(i int) string {
	name, _ := s.text.name(i)
	return strings.ToLower(name)
}

func (s *statement) set(i int) {
	t, p := s.text, s.plan
	if s.mayReadTables() {
		s.opaque("it may read tables")
	}
	scope := rewrite.ScopeNext
	j := i
	if t.is(j, "SESSION", "LOCAL") {
		scope, j = rewrite.ScopeSession, j+1
	}
	switch {
	case t.is(j, "TRANSACTION"):
		if level := s.levelWords(j + 1); level != "" {
			p.Control = rewrite.Control{Verb: rewrite.ControlLevel, Level: level, Scope: scope}
		}
		return
	case t.seq(i, "GLOBAL", "TRANSACTION"):
		return
	case t.is(i, "STATEMENT"):
		s.opaque("SET STATEMENT")
		p.Control.Verb = rewrite.ControlReset
		return
	case t.is(i, "PASSWORD"):
		p.Control.Ends = true
		return
	case t.is(i, "NAMES", "CHARSET") || t.seq(i, "CHARACTER", "SET"):
		if name := strings.Trim(strings.ToLower(t.at(len(t.tokens)-1)), `'"`); len(t.tokens) > i+3 || !plainCharset(name) || s.session.Mode&Foreign != 0 {
			p.Control.Verb = rewrite.ControlReset
		}
		return
	}
	s.assignments(i)
}

// levelWords finds ISOLATION LEVEL words. What REPEATABLE READ means the session knows (Facts.Snapshot).
func (s *statement) levelWords(i int) string {
	t := s.text
	for ; i < len(t.tokens); i++ {
		if t.seq(i, "ISOLATION", "LEVEL") {
			words := t.at(i + 2)
			if !t.is(i+2, "SERIALIZABLE") {
				words += " " + t.at(i+3)
			}
			return levelOf(words)
		}
	}
	return ""
}

// assignments follows SET name = value, ... .
func (s *statement) assignments(i int) {
	t, p := s.text, s.plan
	depth := int32(0)
	if i < len(t.tokens) {
		depth = t.tokens[i].depth
	}
	n := 0
	for start := i; start < len(t.tokens); n++ {
		end := t.find(start, depth, ",")
		if end < 0 {
			end = len(t.tokens)
		}
		if c, ok := s.assignment(start, end); ok {
			if p.Control.Verb != rewrite.ControlNone {
				c = rewrite.Control{Verb: rewrite.ControlReset}
			}
			p.Control = c
		}
		start = end + 1
	}
}

func (s *statement) assignment(i, end int) (rewrite.Control, bool) {
	t := s.text
	reset := rewrite.Control{Verb: rewrite.ControlReset}
	session := true
	var name string
	switch {
	case t.is(i, "GLOBAL", "PERSIST", "PERSIST_ONLY") && i+2 < end:
		return rewrite.Control{}, false
	case t.is(i, "SESSION", "LOCAL") && i+2 < end:
		i++
		name, _ = t.name(i)
	case i < len(t.tokens) && t.tokens[i].kind == tokSysVar:
		name = strings.ToLower(strings.ReplaceAll(t.at(i)[2:], "`", ""))
		scope, rest, ok := strings.Cut(name, ".")
		if ok && scope != "session" && scope != "local" {
			return rewrite.Control{}, false
		}
		if ok {
			name = rest
		}
		session = ok
	default:
		name, _ = t.name(i)
	}
	for i++; i < end && t.is(i, ":", "="); i++ {
	}
	value := ""
	if i+1 == end {
		value = strings.ToLower(strings.Trim(t.at(i), `'"`))
	}
	switch strings.ToLower(name) {
	case "autocommit":
		switch value {
		case "1", "on", "true", "0", "off", "false":
			return rewrite.Control{Verb: rewrite.ControlAutocommit, On: value == "1" || value == "on" || value == "true"}, true
		}
		return reset, true
	case "tx_isolation", "transaction_isolation":
		if level := levelOf(value); level != "" {
			c := rewrite.Control{Verb: rewrite.ControlLevel, Level: level, Scope: rewrite.ScopeSession}
			if !session { // SET @@transaction_isolation: the next transaction only (MySQL manual, 15.3.7)
				c.Scope = rewrite.ScopeNext
			}
			return c, true
		}
		return reset, true
	case "sql_mode", "innodb_snapshot_isolation", "character_set_client", "character_set_connection", "character_set_results", "names",
		"collation_connection", "group_concat_max_len", "binlog_format", "completion_type", "tidb_txn_mode", "sql_log_bin":
		return reset, true
	}
	return rewrite.Control{}, false
}

func (s *statement) ddl(i int) {
	t, p := s.text, s.plan
	p.Verb = "ddl"
	p.Schema = true
	p.Control.Ends = true
	if t.is(i, "ALTER") && t.is(i+1, "TABLE", "ONLINE", "IGNORE") || t.is(i, "RENAME", "DROP") {
		p.Coverage = history.CoverageNone
	}
	if t.is(i, "TRUNCATE") {
		j := i + 1
		if t.is(j, "TABLE") {
			j++
		}
		s.opaque("it removes all rows at once")
		s.wrote(j)
		return
	}
	if t.is(i, "DROP") {
		p.Control.Ends = !t.is(i+1, "TEMPORARY")
		return
	}
	if !t.is(i, "CREATE") {
		return
	}
	j := i + 1
	if t.seq(j, "OR", "REPLACE") {
		j += 2
	}
	temporary := t.is(j, "TEMPORARY")
	if temporary {
		j++
		p.Control.Ends = false
	}
	if !t.is(j, "TABLE") {
		return
	}
	j++
	if t.seq(j, "IF", "NOT", "EXISTS") {
		j += 3
	}
	if temporary {
		if schema, name, _, ok := t.qualified(j); ok {
			p.Temporary = s.qualify(schema, name)
		}
	}
	for k := range t.tokens {
		if t.is(k, "SELECT") {
			s.opaque("a table made from a query")
		}
	}
}

// wrote notes the table that is named from token i on as written.
func (s *statement) wrote(i int) {
	if schema, name, _, ok := s.text.qualified(i); ok {
		s.plan.Writes = append(s.plan.Writes, s.qualify(schema, name))
	}
}

func (s *statement) qualify(schema, name string) string {
	if schema == "" {
		schema = s.session.Database
	}
	if schema == "" {
		return name
	}
	return schema + "." + name
}

func (s *statement) explain(i int) {
	t := s.text
	j := i + 1
	if t.is(j, "ANALYZE") {
		s.opaque("it executes a statement")
		return
	}
	if !t.is(j, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "FORMAT", "FOR", "EXTENDED", "PARTITIONS", "(", "TABLE", "VALUES") {
		s.plan.Conceal = concealRows
	}
}

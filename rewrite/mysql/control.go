package mysql

import (
	"strings"

	"wirecheck/history"
	"wirecheck/statement"
	describe "wirecheck/statement/mysql"
	"wirecheck/statement/mysqlsyntax"
)

// utility deals with the statements that steer transactions and sessions, and those that have nothing to do with rows.
func (s *planner) utility(i int) {
	t, p := s.text, s.plan
	switch {
	case p.Verb == "begin":
		if t.Any(i, "WITH", "CONSISTENT", "SNAPSHOT") {
			p.Coverage = history.CoverageExact // its snapshot is taken now
		}
	case t.Is(i, "SET"):
		s.set(i + 1)
	case p.Verb == "ddl":
		s.ddl(i)
	case t.Is(i, "SHOW"):
		p.Conceal = s.concealShow(i)
	case t.Is(i, "DESC", "DESCRIBE", "EXPLAIN"):
		s.explain(i)
	case t.Is(i, "CALL"):
		s.opaque("a stored procedure")
	case t.Is(i, "EXECUTE"):
		s.opaque("a statement prepared in SQL")
	case t.Is(i, "LOAD") && !t.Is(i+1, "INDEX"):
		s.opaque("rows from a file")
	}
}

func (s *planner) set(i int) {
	if s.mayReadTables() {
		s.opaque("it may read tables")
	}
	if s.text.Is(i, "STATEMENT") {
		s.opaque("SET STATEMENT")
	}
	if describe.SetsNames(s.text, i) && s.session.Mode&mysqlsyntax.Foreign != 0 {
		s.plan.Control.Verb = statement.ControlReset
	}
}

func (s *planner) ddl(i int) {
	t := s.text
	s.changes()
	s.definition()
	switch {
	case t.Is(i, "ALTER") && t.Is(i+1, "TABLE", "ONLINE", "IGNORE"), t.Is(i, "RENAME", "DROP"):
		s.plan.Coverage = history.CoverageNone
	case t.Is(i, "TRUNCATE"):
		s.opaque("it removes all rows at once")
	case t.Is(i, "CREATE") && definesTable(t, i+1) && t.Any(0, "SELECT"):
		s.opaque("a table made from a query")
	}
}

// definesTable reports whether the tokens behind CREATE, from i on, are those of a table's definition.
func definesTable(t *statement.Text, i int) bool {
	if t.Seq(i, "OR", "REPLACE") {
		i += 2
	}
	return t.Is(t.Skip(i, "TEMPORARY"), "TABLE")
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

// mentions reports whether a word is in the statement.
func mentions(t *statement.Text, word string) bool {
	for i := range t.Tokens {
		if t.Is(i, word) {
			return true
		}
	}
	return false
}

func diagnosticsIn(t *statement.Text) bool {
	for i, tok := range t.Tokens {
		switch {
		case t.Is(i, "ROW_COUNT", "FOUND_ROWS", "DIAGNOSTICS"),
			i == 1 && t.Is(0, "SHOW") && t.Is(1, "WARNINGS", "ERRORS"),
			i == 1 && t.Is(0, "SHOW") && t.Is(1, "COUNT") && t.Is(5, "WARNINGS", "ERRORS"):
			return true
		case tok.Kind == statement.TokenSystemVariable || tok.Kind == statement.TokenName:
			if s := strings.ToLower(t.At(i)); strings.HasSuffix(s, "warning_count") || strings.HasSuffix(s, "error_count") {
				return true
			}
		}
	}
	return false
}

func (s *planner) explain(i int) {
	t := s.text
	j := i + 1
	if t.Is(j, "ANALYZE") {
		s.opaque("it executes a statement")
		return
	}
	if !t.Is(j, "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "FORMAT", "FOR", "EXTENDED", "PARTITIONS", "(", "TABLE", "VALUES") {
		s.plan.Conceal = concealRows
	}
}

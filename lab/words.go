package lab

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/lab/scenario"
)

// begins reports whether a step starts a transaction.
func begins(sql string) bool {
	return slices.Contains([]string{"BEGIN", "START"}, scenario.FirstWord(sql))
}

// ends reports whether a step ends a transaction.
func ends(sql string) bool {
	return slices.Contains([]string{"COMMIT", "ROLLBACK", "END", "ABORT"}, scenario.FirstWord(sql))
}

// harmless are the words in front of a parenthesis that leave nothing in a session.
var harmless = map[string]bool{
	"ABS": true, "ALL": true, "AND": true, "ANY": true, "AS": true, "AVG": true, "BY": true, "CAST": true, "COALESCE": true, "CONCAT": true,
	"CONFLICT": true, "CONVERT_TO": true, "COUNT": true, "ELSE": true, "EXISTS": true, "FILTER": true, "FROM": true, "GREATEST": true,
	"GROUP_CONCAT": true, "IN": true, "JOIN": true, "LATERAL": true, "LEAST": true, "LENGTH": true, "LOWER": true, "MAX": true, "MIN": true,
	"NOT": true, "NOW": true, "NULLIF": true, "ON": true, "OR": true, "OVER": true, "ROLLUP": true, "ROUND": true, "ROW": true, "ROW_NUMBER": true,
	"SELECT": true, "SET": true, "SOME": true, "STRING_AGG": true, "SUBSTRING": true, "SUM": true, "THEN": true, "TRIM": true, "UPPER": true,
	"USING": true, "VALUES": true, "WHEN": true, "WHERE": true, "XOR": true,
}

// inserts are the words in front of an INTO that makes no table.
var inserts = []string{"INSERT", "REPLACE", "MERGE", "IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED"}

// limits finds settings that make a server end by itself a statement that waits: PostgreSQL's, MySQL's and MariaDB's, and TiDB's,
// which has MySQL's.
var limits = regexp.MustCompile(`(?i)\b(lock_timeout|statement_timeout|transaction_timeout|(innodb_)?lock_wait_timeout|max_execution_time|max_statement_time)\b`)

// setsLimit reports whether a statement may set one of them. Most have no "_time" in any letters, as all of these have; to look for that takes a hundredth of the time.
func setsLimit(sql string) bool {
	const mark = "_time"
	for rest := sql; ; {
		at := strings.IndexByte(rest, mark[0])
		if at < 0 || len(rest)-at < len(mark) {
			return false
		}
		if rest = rest[at:]; strings.EqualFold(rest[:len(mark)], mark) {
			return limits.MatchString(sql)
		}
		rest = rest[1:]
	}
}

// plain reports whether a step surely leaves nothing in its session when its transaction is over: no settings, variables,
// temporary tables, session-level locks. Every function may do anything to the session, if it is not known. It errs on
// the side of no.
func plain(sql string) bool {
	switch scenario.FirstWord(sql) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "TABLE", "VALUES", "WITH":
	default:
		return false
	}
	selects := scenario.FirstWord(sql) == "SELECT"
	if strings.ContainsAny(strings.TrimRight(sql, "; \t\r\n"), "@;") {
		return false
	}
	word, before := "", "" // the last two words
	for i := 0; i < len(sql); i++ {
		switch {
		case isNamed(sql[i]):
			start := i
			for i < len(sql) && isNamed(sql[i]) {
				i++
			}
			word, before = strings.ToUpper(sql[start:i]), word
			if word == "INTO" && (selects || !slices.Contains(inserts, before)) { // a new table
				return false
			}
			i--
		case sql[i] == '(':
			if word != "" && !harmless[word] && before != "INTO" {
				return false
			}
			word = ""
		case sql[i] > ' ':
			word = ""
		}
	}
	return true
}

// setting finds a SET statement of words and literals alone: it leaves something in the session, and changes no definition. SET STATEMENT ... FOR
// executes another statement (MariaDB), and an expression may call a function.
var setting = regexp.MustCompile(`(?i)^\s*SET\s+[^();*]*$`)

// defines reports whether a text may change definitions. It errs on the side of yes.
func defines(sql string) bool {
	for part := range strings.SplitSeq(sql, ";") {
		part = strings.TrimSpace(part)
		of := strings.ToUpper(part)
		if part != "" && !plain(part) && (!setting.MatchString(part) || strings.HasPrefix(strings.Join(strings.Fields(of), " "), "SET STATEMENT ")) {
			return true
		}
	}
	return false
}

// isNamed reports whether a character belongs to a word or to a name in quotes, which may be a function's, too.
func isNamed(c byte) bool { return isWord(c) || c == '"' || c == '`' }

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

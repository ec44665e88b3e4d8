package record

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Question is what a client asks wirecheck itself.
type Question struct {
	Explain bool   // wirecheck.explain(...): one finding is asked for, not the list. It names a schema.
	ID      string // the finding
	Param   bool   // ID is the one parameter of a prepared statement
	Like    string // pattern of the list; empty: all of it
}

var (
	showOwn    = regexp.MustCompile(`(?is)^\s*SHOW\s+WIRECHECK(?:\s+LIKE\s+(?:'([^'\\]*)'|"([^"\\]*)"))?\s*;?\s*$`)
	explainOwn = regexp.MustCompile(`(?is)^\s*(?:SELECT(?:\s+\*\s+FROM)?|CALL)\s+wirecheck\s*\.\s*explain\s*\(\s*(?:'([^'\\]*)'|"([^"\\]*)"|(\$1(?:\s*::\s*\w+)?|\?))\s*\)(?:\s+AS\s+\w+)?\s*;?\s*$`)
)

// maxQuestion bounds the texts that may be a question.
const maxQuestion = 1000

// AskedOf finds out whether a text is a question for wirecheck. No server takes SHOW WIRECHECK. The schema that
// wirecheck.explain(...) names is one that the caller must know the server does not have.
func AskedOf(sql string) (q Question, ok bool) {
	if len(sql) > maxQuestion {
		return q, false
	}
	if m := showOwn.FindStringSubmatch(sql); m != nil {
		return Question{Like: m[1] + m[2]}, true
	}
	if m := explainOwn.FindStringSubmatch(sql); m != nil {
		return Question{Explain: true, ID: m[1] + m[2], Param: m[3] != ""}, true
	}
	return q, false
}

// Table is the answer to a question.
type Table struct {
	Columns []string
	Rows    [][]string
}

// Ask answers a question of the session; nil: nobody does.
func (t *Tracker) Ask(q Question) *Table {
	if t.rec.Answers == nil {
		return nil
	}
	return t.rec.Answers(t.session, q)
}

// PostgreSQL is a SELECT that gives the table: the server answers it as the state of the session demands, in each protocol. It names no table, and
// writes texts in hexadecimal digits, since the session's settings say what a quote means. ascii says that the client or the server may not know
// other characters, and param that the SELECT has a parameter, which changes nothing.
func (t *Table) PostgreSQL(ascii, param bool) string {
	columns := make([]string, len(t.Columns))
	for k, name := range t.Columns {
		cells := make([]string, len(t.Rows))
		for i, row := range t.Rows {
			text := row[k]
			if ascii {
				text = strings.Map(func(r rune) rune {
					if r >= 0x80 {
						return '?'
					}
					return r
				}, text)
			}
			cells[i] = "pg_catalog.convert_from(pg_catalog.decode('" + hex.EncodeToString([]byte(text)) + "', 'hex'), 'UTF8')"
		}
		columns[k] = fmt.Sprintf(`pg_catalog.unnest(ARRAY[%s]::pg_catalog.text[]) AS "%s"`, strings.Join(cells, ", "), name)
	}
	sql := "SELECT " + strings.Join(columns, ", ")
	if param {
		sql += " WHERE $1::pg_catalog.text IS NULL OR true"
	}
	return sql
}

// MySQL is such a SELECT for the MySQL family. ordered says that the server gives the parts of a UNION in their order; where it does not, lines are
// one text. param says that it has a parameter, which changes nothing.
func (t *Table) MySQL(ordered, param bool) string {
	rows, limit := t.Rows, ""
	switch {
	case len(rows) == 0:
		rows, limit = [][]string{make([]string, len(t.Columns))}, " LIMIT 0"
	case !ordered && len(t.Columns) == 1:
		rows = [][]string{{strings.Join(slices.Concat(rows...), "\n")}}
	}
	parts := make([]string, len(rows))
	for i, row := range rows {
		cells := make([]string, len(row))
		for k, text := range row {
			cells[k] = fmt.Sprintf("CONVERT(X'%s' USING utf8mb4) AS `%s`", hex.EncodeToString([]byte(text)), t.Columns[k])
		}
		parts[i] = "SELECT " + strings.Join(cells, ", ")
	}
	if param {
		parts[0] += " FROM DUAL WHERE ? IS NULL OR 1 = 1"
	}
	return strings.Join(parts, " UNION ALL ") + limit
}

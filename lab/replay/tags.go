package replay

import (
	"slices"
	"strings"

	"wirecheck/statement"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// WithoutTags is a statement without the comments in which its application tells where it comes from; those that the server reads (hints)
// and others stay.
func WithoutTags(sql string, d lex.Dialect) string {
	if !strings.Contains(sql, "/*") {
		return sql
	}
	var b strings.Builder
	for t := range lex.Tokens(sql, d) {
		if t.Kind != lex.Comment || trace.ParseTags(t.Text, d) == nil {
			b.WriteString(t.Text)
		}
	}
	return strings.TrimSpace(b.String())
}

// Unqualified is a statement of the MySQL family with the names of tables in a database as the names of tables alone: in a lab they are in another
// one. If something else in the statement has the database's name, it stays as it is.
func Unqualified(sql, database string, verbs []statement.Statement) string {
	if database == "" || !strings.Contains(strings.ToLower(sql), strings.ToLower(database)) {
		return sql
	}
	for _, v := range verbs {
		for _, t := range v.Tables {
			if strings.EqualFold(t.Name, database) || strings.EqualFold(t.Alias, database) {
				return sql
			}
		}
	}
	tokens := slices.Collect(lex.Tokens(sql, lex.MySQL))
	named := func(i int) bool {
		return i < len(tokens) && (tokens[i].Kind == lex.Word || tokens[i].Kind == lex.Name)
	}
	var b strings.Builder
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		if named(i) && strings.EqualFold(strings.Trim(t.Text, "`"), database) && (i == 0 || tokens[i-1].Text != ".") &&
			i+2 < len(tokens) && tokens[i+1].Text == "." && named(i+2) {
			i++
			continue
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

package mysql

import (
	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// Define reads the metadata of one statement (rewrite.Definition). It cuts the text itself, so that it also understands what TiDB's
// parser does not know: types and options of MariaDB's and MySQL's own.
func Define(sql string) rewrite.Definition {
	t, err := mysqlsyntax.Lex(sql, 0)
	if err != nil {
		return rewrite.Definition{Why: err.Error()}
	}
	return rewrite.Define(t, true)
}

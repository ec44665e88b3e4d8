package mysql

import (
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// Define reads the metadata of one statement (statement.Definition). It cuts the text itself, so that it also understands what TiDB's
// parser does not know: types and options of MariaDB's and MySQL's own.
func Define(sql string) statement.Definition {
	t, err := mysqlsyntax.Lex(sql, 0)
	if err != nil {
		return statement.Definition{Why: err.Error()}
	}
	return statement.Define(t, true)
}

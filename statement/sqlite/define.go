package sqlite

import "wirecheck/statement"

// Define reads the metadata of one statement (statement.Definition).
func Define(sql string) statement.Definition {
	t, err := lex(sql)
	if err != nil {
		return statement.Definition{Why: err.Error()}
	}
	return statement.DefineSQLite(t)
}

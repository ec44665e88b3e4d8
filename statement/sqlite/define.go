package sqlite

import "wirecheck/rewrite"

// Define reads the metadata of one statement (rewrite.Definition).
func Define(sql string) rewrite.Definition {
	t, err := lex(sql)
	if err != nil {
		return rewrite.Definition{Why: err.Error()}
	}
	return rewrite.DefineSQLite(t)
}

package sqlite

import "wirecheck/rewrite"

// Define reads the metadata of one statement (rewrite.Definition).
func Define(sql string) rewrite.Definition {
	tokens, err := lex(sql)
	if err != nil {
		return rewrite.Definition{Why: err.Error()}
	}
	t := &text{sql, tokens}
	list := make([]rewrite.Lexeme, len(tokens))
	for i, k := range tokens {
		l := rewrite.Lexeme{Start: k.start, End: k.end, Depth: k.depth, Kind: rewrite.LexOther}
		switch k.kind {
		case tokWord:
			l.Kind = rewrite.LexWord
		case tokName:
			l.Kind = rewrite.LexQuoted
		case tokSymbol:
			l.Kind = rewrite.LexSymbol
		}
		l.Name, _ = t.name(i)
		list[i] = l
	}
	return rewrite.DefineSQLite(sql, list)
}

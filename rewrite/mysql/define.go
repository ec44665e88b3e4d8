package mysql

import "wirecheck/rewrite"

// Define reads the metadata of one statement (rewrite.Definition). It cuts the text itself, so that it also understands what TiDB's
// parser does not know: types and options of MariaDB's and MySQL's own.
func Define(sql string) rewrite.Definition {
	tokens, err := lex(sql, 0)
	if err != nil {
		return rewrite.Definition{Why: err.Error()}
	}
	t := &text{sql, tokens}
	list := make([]rewrite.Lexeme, len(tokens))
	for i, k := range tokens {
		l := rewrite.Lexeme{Start: k.start, End: k.end, Depth: int(k.depth), Kind: rewrite.LexOther}
		switch k.kind {
		case tokWord:
			l.Kind = rewrite.LexWord
		case tokIdent:
			l.Kind = rewrite.LexQuoted
		case tokSymbol:
			l.Kind = rewrite.LexSymbol
		}
		if name, ok := t.name(i); ok {
			l.Name = name
		}
		list[i] = l
	}
	return rewrite.Define(sql, list, true)
}

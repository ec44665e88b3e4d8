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
	list := make([]rewrite.Lexeme, len(t.Tokens))
	for i, k := range t.Tokens {
		l := rewrite.Lexeme{Start: k.Start, End: k.End, Depth: int(k.Depth), Kind: rewrite.LexOther}
		switch k.Kind {
		case mysqlsyntax.Word:
			l.Kind = rewrite.LexWord
		case mysqlsyntax.Ident:
			l.Kind = rewrite.LexQuoted
		case mysqlsyntax.Symbol:
			l.Kind = rewrite.LexSymbol
		}
		if name, ok := t.Name(i); ok {
			l.Name = name
		}
		list[i] = l
	}
	return rewrite.Define(sql, list, true)
}

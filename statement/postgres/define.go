package postgres

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// Define reads the metadata of one statement (rewrite.Definition).
func Define(sql string) rewrite.Definition {
	if strings.IndexByte(sql, 0) >= 0 {
		return rewrite.Definition{Why: "a zero byte"}
	}
	toks, err := pgsyntax.Tokens(sql)
	if err != nil {
		return rewrite.Definition{Why: err.Error()}
	}
	depth := 0
	list := make([]rewrite.Lexeme, len(toks))
	for i, t := range toks {
		if t.Token == pgsyntax.TokenClose || t.Token == pgsyntax.TokenUnbracket { // brackets have commas in them, too
			depth--
		}
		l := rewrite.Lexeme{Start: int(t.Start), End: int(t.End), Depth: depth, Kind: rewrite.LexOther}
		text := sql[t.Start:t.End]
		switch {
		case t.Token == pg.Token_IDENT && text[0] == '"':
			l.Kind, l.Name = rewrite.LexQuoted, strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
		case i > 0 && list[i-1].Kind == rewrite.LexSymbol && sql[list[i-1].Start] == '.' && pgsyntax.BeginsWord(text[0]):
			l.Kind, l.Name = rewrite.LexQuoted, strings.ToLower(text)
		case t.Token == pg.Token_IDENT, t.KeywordKind != pg.KeywordKind_NO_KEYWORD:
			l.Kind, l.Name = rewrite.LexWord, strings.ToLower(text)
		case len(text) == 1 && strings.Contains("(),.;=*", text):
			l.Kind = rewrite.LexSymbol
		}
		list[i] = l
		if t.Token == pgsyntax.TokenOpen || t.Token == pgsyntax.TokenBracket {
			depth++
		}
	}
	return rewrite.Define(sql, list, false)
}

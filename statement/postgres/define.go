package postgres

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// Define reads the metadata of one statement (statement.Definition).
func Define(sql string) statement.Definition {
	if strings.IndexByte(sql, 0) >= 0 {
		return statement.Definition{Why: "a zero byte"}
	}
	toks, err := pgsyntax.Tokens(sql)
	if err != nil {
		return statement.Definition{Why: err.Error()}
	}
	depth := int32(0)
	t := &statement.Text{SQL: sql, Tokens: make([]statement.Token, len(toks)), Fold: true}
	for i, tok := range toks {
		if tok.Token == pgsyntax.TokenClose || tok.Token == pgsyntax.TokenUnbracket { // brackets have commas in them, too
			depth--
		}
		k := statement.Token{Start: int(tok.Start), End: int(tok.End), Depth: depth, Kind: statement.TokenOther}
		text := sql[tok.Start:tok.End]
		switch {
		case tok.Token == pg.Token_IDENT && text[0] == '"', i > 0 && t.Is(i-1, ".") && pgsyntax.BeginsWord(text[0]):
			k.Kind = statement.TokenName
		case tok.Token == pg.Token_IDENT, tok.KeywordKind != pg.KeywordKind_NO_KEYWORD:
			k.Kind = statement.TokenWord
		case len(text) == 1 && strings.Contains("(),.;=*", text):
			k.Kind = statement.TokenSymbol
		}
		t.Tokens[i] = k
		if tok.Token == pgsyntax.TokenOpen || tok.Token == pgsyntax.TokenBracket {
			depth++
		}
	}
	return statement.Define(t, false)
}

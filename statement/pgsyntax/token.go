package pgsyntax

import pg "github.com/pganalyze/pg_query_go/v6"

// The tokens of one character have no names in the grammar.
const (
	TokenOpen      = pg.Token_ASCII_40 // (
	TokenClose     = pg.Token_ASCII_41 // )
	TokenComma     = pg.Token_ASCII_44
	TokenDot       = pg.Token_ASCII_46
	TokenEnd       = pg.Token_ASCII_59 // ;
	TokenEquals    = pg.Token_ASCII_61
	TokenBracket   = pg.Token_ASCII_91 // [
	TokenUnbracket = pg.Token_ASCII_93 // ]
)

// AfterTargets are the keywords that may follow a target list. All are fully reserved and none is a label without AS
// (manual, appendix C), so outside of parentheses they end the list, but for what BeginsClause leaves out.
var AfterTargets = map[pg.Token]bool{
	pg.Token_FROM: true, pg.Token_INTO: true, pg.Token_WHERE: true, pg.Token_GROUP_P: true, pg.Token_HAVING: true,
	pg.Token_WINDOW: true, pg.Token_UNION: true, pg.Token_INTERSECT: true, pg.Token_EXCEPT: true, pg.Token_ORDER: true,
	pg.Token_LIMIT: true, pg.Token_OFFSET: true, pg.Token_FETCH: true, pg.Token_FOR: true,
}

// BeginsClause reports whether a keyword, which is not the first token, begins a clause.
func BeginsClause(tokens []*pg.ScanToken, i int) bool {
	switch tokens[i-1].Token {
	case pg.Token_AS, TokenDot: // a label or a field name
	case pg.Token_DISTINCT: // IS DISTINCT FROM
	case pg.Token_WITHIN: // WITHIN GROUP
	default:
		return true
	}
	return false
}

// BeginsWord reports whether a byte begins an identifier or a keyword.
func BeginsWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80
}

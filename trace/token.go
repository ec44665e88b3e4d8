package trace

import "iter"

// TokenKind is what a Token is.
type TokenKind uint8

// The kinds that a reader of SQL text can need to tell apart.
const (
	TokenSpace       TokenKind = TokenKind(tokenSpace)
	TokenComment     TokenKind = TokenKind(tokenComment)
	TokenWord        TokenKind = TokenKind(tokenWord)   // a keyword or a name without quotes
	TokenName        TokenKind = TokenKind(tokenName)   // a name in quotes
	TokenString      TokenKind = TokenKind(tokenString) // with its quotes and prefix
	TokenNumber      TokenKind = TokenKind(tokenNumber)
	TokenPlaceholder TokenKind = TokenKind(tokenParam) // $1, ?
	TokenOther       TokenKind = TokenKind(tokenOther) // one character
)

// Token is a piece of SQL text.
type Token struct {
	Kind TokenKind
	Text string
	At   int // byte offset
}

// Tokens splits SQL into tokens; joined they are the text again. It knows no grammar and fails at nothing.
func Tokens(sql string, d Dialect) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		l := lexer{sql: sql, dialect: d}
		for at := 0; ; {
			kind, text, ok := l.next()
			if !ok || !yield(Token{TokenKind(kind), text, at}) {
				return
			}
			at += len(text)
		}
	}
}

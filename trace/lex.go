package trace

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Dialect tells how SQL text is split into tokens.
type Dialect uint8

// The dialects.
const (
	PostgreSQL Dialect = iota // strings may be dollar-quoted; backslashes escape in E'...' only
	MySQL                     // backslashes escape, "..." is a string, # begins a comment
)

// DialectOf is the dialect of a product.
func DialectOf(product string) Dialect {
	switch product {
	case "mysql", "mariadb", "tidb":
		return MySQL
	}
	return PostgreSQL
}

// tokenKind is what a token is.
type tokenKind uint8

const (
	tokenSpace tokenKind = iota
	tokenComment
	tokenWord   // a keyword or a name without quotes
	tokenName   // a name in quotes
	tokenString // with its quotes and prefix
	tokenNumber
	tokenParam // $1, ?
	tokenOther // one character
)

// lexer splits SQL into tokens; joined they are the text again. It knows no grammar and fails at nothing: what is left open at the
// end is a token that ends there. (PostgreSQL manual, 4.1 Lexical Structure; MySQL manual, 11.1 Literal Values, 11.7 Comments.)
type lexer struct {
	sql     string
	at      int
	dialect Dialect
	inHint  bool // within /*! ... */, whose text MySQL executes
}

// next gives the next token; ok is false at the end.
func (l *lexer) next() (kind tokenKind, text string, ok bool) {
	if l.at >= len(l.sql) {
		return 0, "", false
	}
	from := l.at
	kind = l.scan(l.sql[l.at:])
	return kind, l.sql[from:l.at], true
}

// scan finds out what s begins with and moves on behind it.
func (l *lexer) scan(s string) tokenKind {
	c := s[0]
	switch {
	case c == ' ' || c >= '\t' && c <= '\r':
		return l.take(tokenSpace, span(s, func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }))
	case strings.HasPrefix(s, "--") && (l.dialect == PostgreSQL || len(s) == 2 || s[2] <= ' '), c == '#' && l.dialect == MySQL:
		return l.take(tokenComment, lineEnd(s))
	case strings.HasPrefix(s, "/*"):
		return l.comment(s)
	case l.inHint && strings.HasPrefix(s, "*/"):
		l.inHint = false
		return l.take(tokenComment, 2)
	case c == '\'':
		return l.quoted(tokenString, s, 0, l.dialect == MySQL)
	case c == '"' && l.dialect == MySQL:
		return l.quoted(tokenString, s, 0, true)
	case c == '"', c == '`' && l.dialect == MySQL:
		return l.quoted(tokenName, s, 0, false)
	case c == '$' && l.dialect == PostgreSQL:
		return l.dollar(s)
	case c >= '0' && c <= '9', c == '.' && len(s) > 1 && s[1] >= '0' && s[1] <= '9' && !l.afterName():
		return l.number(s)
	case c == '?' && l.dialect == MySQL:
		return l.take(tokenParam, 1)
	case wordStart(c):
		return l.word(s)
	}
	_, size := utf8.DecodeRuneInString(s)
	return l.take(tokenOther, size)
}

func (l *lexer) take(kind tokenKind, n int) tokenKind {
	l.at += n
	return kind
}

// afterName tells that a dot belongs to a name (t.1a) rather than to a number.
func (l *lexer) afterName() bool {
	return l.at > 0 && (wordByte(l.sql[l.at-1]) || l.sql[l.at-1] == '`' || l.sql[l.at-1] == '"')
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

func span(s string, in func(byte) bool) int {
	i := 0
	for i < len(s) && in(s[i]) {
		i++
	}
	return i
}

func (l *lexer) comment(s string) tokenKind {
	if l.dialect == MySQL && (strings.HasPrefix(s, "/*!") || strings.HasPrefix(s, "/*M!")) {
		l.inHint = true
		n := strings.IndexByte(s, '!') + 1
		return l.take(tokenComment, n+span(s[n:], func(c byte) bool { return c >= '0' && c <= '9' }))
	}
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch {
		case s[i] == '/' && s[i+1] == '*' && (depth == 0 || l.dialect == PostgreSQL): // PostgreSQL's comments nest
			depth++
			i++
		case s[i] == '*' && s[i+1] == '/':
			depth--
			i++
			if depth == 0 {
				return l.take(tokenComment, i+1)
			}
		}
	}
	return l.take(tokenComment, len(s))
}

func (l *lexer) quoted(kind tokenKind, s string, at int, backslash bool) tokenKind {
	n, _ := quoted(s, at, backslash)
	return l.take(kind, n)
}

// quoted gives the length of a quoted thing whose opening quote is at s[at], and whether it has a closing one.
func quoted(s string, at int, backslash bool) (n int, closed bool) {
	q := s[at]
	for i := at + 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && backslash:
			i++
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1, true
		}
	}
	return len(s), false
}

func (l *lexer) dollar(s string) tokenKind {
	if n := span(s[1:], func(c byte) bool { return c >= '0' && c <= '9' }); n > 0 {
		return l.take(tokenParam, 1+n)
	}
	n := 1 + span(s[1:], func(c byte) bool { return wordByte(c) && c != '$' })
	if n >= len(s) || s[n] != '$' {
		return l.take(tokenOther, 1)
	}
	tag := s[:n+1]
	if i := strings.Index(s[len(tag):], tag); i >= 0 {
		return l.take(tokenString, 2*len(tag)+i)
	}
	return l.take(tokenString, len(s))
}

func (l *lexer) number(s string) tokenKind {
	if len(s) > 2 && s[0] == '0' && (s[1]|0x20 == 'x' || s[1]|0x20 == 'b' || s[1]|0x20 == 'o') {
		if n := span(s[2:], wordByte); n > 0 {
			return l.take(tokenNumber, 2+n)
		}
	}
	digit := func(c byte) bool { return c >= '0' && c <= '9' || c == '_' }
	n := span(s, digit)
	if n < len(s) && s[n] == '.' {
		n++
		n += span(s[n:], digit)
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		e := n + 1
		if e < len(s) && (s[e] == '+' || s[e] == '-') {
			e++
		}
		if d := span(s[e:], digit); d > 0 {
			n = e + d
		}
	}
	if n < len(s) && wordStart(s[n]) && l.dialect == MySQL { // a name may begin with digits
		return l.take(tokenWord, n+span(s[n:], wordByte))
	}
	return l.take(tokenNumber, n)
}

// word scans a word, or a string with a prefix: E'..', B'..', X'..', N'..', U&'..', _utf8'..'.
func (l *lexer) word(s string) tokenKind {
	n := span(s, wordByte)
	prefix := strings.ToLower(s[:n])
	rest := s[n:]
	switch {
	case strings.HasPrefix(rest, "'") && (prefix == "e" || prefix == "b" || prefix == "x" || prefix == "n" || l.dialect == MySQL && prefix[0] == '_'):
		backslash := l.dialect == MySQL || prefix == "e"
		return l.quoted(tokenString, s, n, backslash)
	case prefix == "u" && strings.HasPrefix(rest, "&'") && l.dialect == PostgreSQL:
		return l.quoted(tokenString, s, n+1, false)
	case prefix == "u" && strings.HasPrefix(rest, `&"`) && l.dialect == PostgreSQL:
		return l.quoted(tokenName, s, n+1, false)
	}
	return l.take(tokenWord, n)
}

func wordStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

func wordByte(c byte) bool { return wordStart(c) || c >= '0' && c <= '9' || c == '$' }

// words gives the first n words of a statement in lower case, comments left out; MySQL's executed comments count.
func words(sql string, d Dialect, n int) []string {
	l := lexer{sql: sql, dialect: d}
	var out []string
	for len(out) < n {
		kind, text, ok := l.next()
		if !ok {
			break
		}
		switch {
		case kind == tokenSpace || kind == tokenComment, kind == tokenOther && text == "(" && len(out) == 0:
		case kind == tokenWord:
			out = append(out, strings.ToLower(text))
		case kind == tokenOther && text == ";" && len(out) == 0:
		default:
			return out
		}
	}
	return out
}

// openQuote tells whether a text of the MySQL family that grows line by line ends within quotes or a comment, so that what follows may still
// belong to it. Each byte is looked at once.
type openQuote struct {
	in   byte // ', ", `, or * for a comment; 0: neither
	seen int  // bytes
}

// ends takes the whole text so far.
func (o *openQuote) ends(text []byte) bool {
	for ; o.seen < len(text); o.seen++ {
		c, rest := text[o.seen], text[o.seen+1:]
		switch {
		case o.in == '*':
			if c == '*' && bytes.HasPrefix(rest, []byte("/")) {
				o.in = 0
				o.seen++
			}
		case o.in != 0 && c == '\\' && o.in != '`':
			o.seen++
		case o.in != 0 && c == o.in:
			o.in = 0 // a doubled quote closes and opens
		case o.in != 0:
		case c == '\'' || c == '"' || c == '`':
			o.in = c
		case c == '#', c == '-' && len(rest) > 1 && rest[0] == '-' && rest[1] <= ' ':
			if end := bytes.IndexByte(rest, '\n'); end >= 0 {
				o.seen += end + 1
			} else {
				o.seen = len(text) - 1
			}
		case c == '/' && bytes.HasPrefix(rest, []byte("*")) && !bytes.HasPrefix(rest, []byte("*!")) && !bytes.HasPrefix(rest, []byte("*M!")):
			o.in = '*'
			o.seen++
		}
	}
	return o.in != 0
}

package lex

import (
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

// Of is how the text of a product's SQL is split (see product.Dialect); of one that is not known, as PostgreSQL's.
func Of[D ~string](dialect D) Dialect {
	if dialect == "mysql" {
		return MySQL
	}
	return PostgreSQL
}

// lexer splits SQL into tokens; joined they are the text again. It knows no grammar and fails at nothing: what is left open at the
// end is a token that ends there. (PostgreSQL manual, 4.1 Lexical Structure; MySQL manual, 11.1 Literal Values, 11.7 Comments.)
type lexer struct {
	sql     string
	at      int
	dialect Dialect
	inHint  bool // within /*! ... */, whose text MySQL executes
}

// next gives the next token; ok is false at the end.
func (l *lexer) next() (kind Kind, text string, ok bool) {
	if l.at >= len(l.sql) {
		return 0, "", false
	}
	from := l.at
	kind = l.scan(l.sql[l.at:])
	return kind, l.sql[from:l.at], true
}

// scan finds out what s begins with and moves on behind it.
func (l *lexer) scan(s string) Kind {
	c := s[0]
	switch {
	case c == ' ' || c >= '\t' && c <= '\r':
		return l.take(Space, span(s, func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }))
	case strings.HasPrefix(s, "--") && (l.dialect == PostgreSQL || len(s) == 2 || s[2] <= ' '), c == '#' && l.dialect == MySQL:
		return l.take(Comment, lineEnd(s))
	case strings.HasPrefix(s, "/*"):
		return l.comment(s)
	case l.inHint && strings.HasPrefix(s, "*/"):
		l.inHint = false
		return l.take(Comment, 2)
	case c == '\'':
		return l.quoted(String, s, 0, l.dialect == MySQL)
	case c == '"' && l.dialect == MySQL:
		return l.quoted(String, s, 0, true)
	case c == '"', c == '`' && l.dialect == MySQL:
		return l.quoted(Name, s, 0, false)
	case c == '$' && l.dialect == PostgreSQL:
		return l.dollar(s)
	case c >= '0' && c <= '9', c == '.' && len(s) > 1 && s[1] >= '0' && s[1] <= '9' && !l.afterName():
		return l.number(s)
	case c == '?' && l.dialect == MySQL:
		return l.take(Placeholder, 1)
	case wordStart(c):
		return l.word(s)
	}
	_, size := utf8.DecodeRuneInString(s)
	return l.take(Other, size)
}

func (l *lexer) take(kind Kind, n int) Kind {
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

func (l *lexer) comment(s string) Kind {
	if l.dialect == MySQL && (strings.HasPrefix(s, "/*!") || strings.HasPrefix(s, "/*M!")) {
		l.inHint = true
		n := strings.IndexByte(s, '!') + 1
		return l.take(Comment, n+span(s[n:], func(c byte) bool { return c >= '0' && c <= '9' }))
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
				return l.take(Comment, i+1)
			}
		}
	}
	return l.take(Comment, len(s))
}

func (l *lexer) quoted(kind Kind, s string, at int, backslash bool) Kind {
	n, _ := Quoted(s, at, backslash)
	return l.take(kind, n)
}

// Quoted gives the length of a quoted thing whose opening quote is at s[at], and whether it has a closing one.
func Quoted(s string, at int, backslash bool) (n int, closed bool) {
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

func (l *lexer) dollar(s string) Kind {
	if n := span(s[1:], func(c byte) bool { return c >= '0' && c <= '9' }); n > 0 {
		return l.take(Placeholder, 1+n)
	}
	n := 1 + span(s[1:], func(c byte) bool { return wordByte(c) && c != '$' })
	if n >= len(s) || s[n] != '$' {
		return l.take(Other, 1)
	}
	tag := s[:n+1]
	if i := strings.Index(s[len(tag):], tag); i >= 0 {
		return l.take(String, 2*len(tag)+i)
	}
	return l.take(String, len(s))
}

func (l *lexer) number(s string) Kind {
	if len(s) > 2 && s[0] == '0' && (s[1]|0x20 == 'x' || s[1]|0x20 == 'b' || s[1]|0x20 == 'o') {
		if n := span(s[2:], wordByte); n > 0 {
			return l.take(Number, 2+n)
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
		return l.take(Word, n+span(s[n:], wordByte))
	}
	return l.take(Number, n)
}

// word scans a word, or a string with a prefix: E'..', B'..', X'..', N'..', U&'..', _utf8'..'.
func (l *lexer) word(s string) Kind {
	n := span(s, wordByte)
	prefix := strings.ToLower(s[:n])
	rest := s[n:]
	switch {
	case strings.HasPrefix(rest, "'") && (prefix == "e" || prefix == "b" || prefix == "x" || prefix == "n" || l.dialect == MySQL && prefix[0] == '_'):
		backslash := l.dialect == MySQL || prefix == "e"
		return l.quoted(String, s, n, backslash)
	case prefix == "u" && strings.HasPrefix(rest, "&'") && l.dialect == PostgreSQL:
		return l.quoted(String, s, n+1, false)
	case prefix == "u" && strings.HasPrefix(rest, `&"`) && l.dialect == PostgreSQL:
		return l.quoted(Name, s, n+1, false)
	}
	return l.take(Word, n)
}

func wordStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

func wordByte(c byte) bool { return wordStart(c) || c >= '0' && c <= '9' || c == '$' }

// Unescape takes away backslashes. A letter behind one is the byte at its place; anything else is itself.
func Unescape(s, letters, bytes string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if n := strings.IndexByte(letters, s[i]); n >= 0 {
				b.WriteByte(bytes[n])
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// QuoteElement writes an element of an array in text form: in quotes where PostgreSQL puts it in quotes.
func QuoteElement(s string) string {
	if s != "" && !strings.EqualFold(s, "null") && !strings.ContainsAny(s, "{}\",\\ \t\n\r\v\f") {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Package mysqlsyntax reads SQL of the MySQL family: it cuts a text into tokens, and has TiDB's parser make the tree. All of wirecheck
// calls that parser through this package alone.
package mysqlsyntax

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"wirecheck/statement"
)

// The lexer knows just enough of the language to find the places where text is put in: words, quoted text, comments and
// the depth of parentheses (MariaDB knowledge base, "Identifier Names" and "Comment Syntax"; MySQL manual, 11.1, 11.7).
// The parser says what a statement means; the two must agree before anything is rewritten.

var errText = errors.New("unterminated text or comment")

// manyTokens is for how many there is room at first: the values of a long text are often long themselves.
const manyTokens = 1 << 12

// Lex cuts sql into tokens.
func Lex(sql string, mode Mode) (*statement.Text, error) { return lex(sql, mode, len(sql)) }

// LexFew is Lex for a text that is to be parsed. It stops, with statement.TooLarge, at one that has too many tokens for that.
func LexFew(sql string, mode Mode) (*statement.Text, error) { return lex(sql, mode, MaxTokens) }

func lex(sql string, mode Mode, limit int) (*statement.Text, error) {
	l := lexer{sql: sql, mode: mode, tokens: make([]statement.Token, 0, min(16+len(sql)/5, manyTokens))}
	for l.at < len(sql) {
		if err := l.next(); err != nil {
			return nil, fmt.Errorf("%w at byte %d", err, l.at)
		}
		if n := len(l.tokens); n > limit {
			return nil, &statement.TooLarge{Of: "a number of tokens", Amount: n, Limit: limit}
		}
	}
	if l.executable {
		return nil, fmt.Errorf("%w at the end of the text", errText)
	}
	return &statement.Text{SQL: sql, Tokens: l.tokens}, nil
}

type lexer struct {
	sql        string
	mode       Mode
	at         int
	depth      int32
	executable bool
	tokens     []statement.Token
}

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.sql) {
		return l.sql[l.at+n]
	}
	return 0
}

func (l *lexer) add(kind statement.TokenKind, end int) {
	l.tokens = append(l.tokens, statement.Token{Start: l.at, End: end, Depth: l.depth, Kind: kind, Executable: l.executable})
	l.at = end
}

func (l *lexer) next() error {
	switch c := l.sql[l.at]; {
	case c == ' ' || c >= '\t' && c <= '\r':
		l.at++
	case c == '#', c == '-' && l.peek(1) == '-' && (l.at+2 == len(l.sql) || l.peek(2) <= ' '):
		if i := strings.IndexByte(l.sql[l.at:], '\n'); i >= 0 {
			l.at += i + 1
		} else {
			l.at = len(l.sql)
		}
	case c == '/' && l.peek(1) == '*':
		return l.comment()
	case c == '*' && l.peek(1) == '/' && l.executable:
		l.executable = false
		l.at += 2
	case c == '\'':
		return l.quoted(statement.TokenString, 0)
	case c == '"':
		if l.mode&AnsiQuotes != 0 {
			return l.quoted(statement.TokenName, 0)
		}
		return l.quoted(statement.TokenString, 0)
	case c == '`':
		return l.quoted(statement.TokenName, 0)
	case c == '@':
		return l.variable()
	case c == '?':
		l.add(statement.TokenParam, l.at+1)
	case c == '(':
		l.add(statement.TokenSymbol, l.at+1)
		l.depth++
	case c == ')':
		l.depth--
		l.add(statement.TokenSymbol, l.at+1)
	case WordByte(c):
		l.word()
	default:
		l.add(statement.TokenSymbol, l.at+1)
	}
	return nil
}

func (l *lexer) comment() error {
	head := l.sql[l.at:]
	if strings.HasPrefix(head, "/*!") || strings.HasPrefix(head, "/*M!") {
		if l.executable {
			return errText // nested: the version numbers decide
		}
		at := strings.IndexByte(head, '!') + 1
		digits := min(6, len(head[at:])-len(strings.TrimLeft(head[at:], "0123456789")))
		if l.mode&MariaDB != 0 && at == len("/*!") && foreignVersion(head[at:at+digits]) {
			return l.skip()
		}
		l.executable = true
		l.at += at + digits
		return nil
	}
	end := strings.Index(head[2:], "*/")
	if end < 0 {
		return errText
	}
	l.at += end + 4
	return nil
}

// foreignVersion reports whether MariaDB takes the number in a comment for a version of MySQL that it is not: it then executes none of the
// comment (10.11.19 and knowledge base, "Comment Syntax": 5 or 6 digits, from 50700 to 99999, without M).
func foreignVersion(digits string) bool {
	n, err := strconv.Atoi(digits)
	return err == nil && len(digits) >= 5 && n >= 50700 && n <= 99999
}

// skip passes over a comment that may have comments in it.
func (l *lexer) skip() error {
	end := 2
	for head := l.sql[l.at:]; ; {
		i := strings.Index(head[end:], "*/")
		if i < 0 {
			return errText
		}
		inner := strings.Index(head[end:end+i], "/*")
		if end += i + 2; inner < 0 {
			l.at += end
			return nil
		}
	}
}

// quoted reads text in quotes; skip characters stand before the first quote.
func (l *lexer) quoted(kind statement.TokenKind, skip int) error {
	quote := l.sql[l.at+skip]
	escapes := kind != statement.TokenName && quote != '`' && l.mode&NoBackslashEscapes == 0
	for i := l.at + skip + 1; i < len(l.sql); i++ {
		switch c := l.sql[i]; {
		case c == '\\' && escapes:
			i++
		case c == quote && i+1 < len(l.sql) && l.sql[i+1] == quote:
			i++
		case c == quote:
			l.add(kind, i+1)
			return nil
		}
	}
	return errText
}

func (l *lexer) variable() error {
	kind, i := statement.TokenVariable, 1
	if l.peek(1) == '@' {
		kind, i = statement.TokenSystemVariable, 2
	}
	switch c := l.peek(i); c {
	case '`':
		return l.quotedVariable(kind, i)
	case '\'', '"':
		if kind == statement.TokenVariable {
			return l.quotedVariable(kind, i)
		}
	}
	end := l.at + i
	for end < len(l.sql) && (WordByte(l.sql[end]) || l.sql[end] == '.') {
		end++
	}
	if end == l.at+i {
		kind, end = statement.TokenSymbol, l.at+1
	}
	l.add(kind, end)
	return nil
}

func (l *lexer) quotedVariable(kind statement.TokenKind, skip int) error {
	start := l.at
	if err := l.quoted(statement.TokenString, skip); err != nil {
		return err
	}
	last := &l.tokens[len(l.tokens)-1]
	last.Kind, last.Start = kind, start
	return nil
}

func (l *lexer) word() {
	end := l.at
	digits := true
	for end < len(l.sql) && WordByte(l.sql[end]) {
		digits = digits && l.sql[end] >= '0' && l.sql[end] <= '9'
		end++
	}
	text := l.sql[l.at:end]
	afterDot := l.at > 0 && l.sql[l.at-1] == '.' && len(l.tokens) > 0 && l.tokens[len(l.tokens)-1].End == l.at
	switch {
	case digits:
		if end < len(l.sql) && l.sql[end] == '.' && !afterDot {
			end++
			for end < len(l.sql) && (l.sql[end] >= '0' && l.sql[end] <= '9') {
				end++
			}
		}
		l.add(statement.TokenNumber, l.exponent(end))
	case text[0] >= '0' && text[0] <= '9' && !afterDot && number(text):
		if strings.ContainsAny(text[len(text)-1:], "eE") && !strings.HasPrefix(text, "0x") && end+1 < len(l.sql) &&
			(l.sql[end] == '+' || l.sql[end] == '-') && l.sql[end+1] >= '0' && l.sql[end+1] <= '9' {
			end++
			for end < len(l.sql) && l.sql[end] >= '0' && l.sql[end] <= '9' {
				end++
			}
		}
		l.add(statement.TokenNumber, end)
	case afterDot:
		l.add(statement.TokenName, end)
	default:
		l.add(statement.TokenWord, end)
	}
}

// exponent extends a number that ends at end by its exponent.
func (l *lexer) exponent(end int) int {
	i := end
	if i >= len(l.sql) || l.sql[i]|0x20 != 'e' {
		return end
	}
	if i++; i < len(l.sql) && (l.sql[i] == '+' || l.sql[i] == '-') {
		i++
	}
	first := i
	for i < len(l.sql) && l.sql[i] >= '0' && l.sql[i] <= '9' {
		i++
	}
	if i == first {
		return end
	}
	return i
}

// number reports whether text, which begins with a digit and has other characters, is a number: 0x1f, 0b1, 1e5, or the
// beginning of 1e+5.
func number(text string) bool {
	only := func(s, set string) bool { return s != "" && strings.Trim(s, set) == "" }
	switch {
	case strings.HasPrefix(text, "0x") && only(text[2:], "0123456789abcdefABCDEF"),
		strings.HasPrefix(text, "0b") && only(text[2:], "01"):
		return true
	}
	mantissa := strings.TrimLeft(text, "0123456789")
	return mantissa != "" && mantissa[0]|0x20 == 'e' && strings.Trim(mantissa[1:], "0123456789") == ""
}

// WordByte reports whether a byte may stand in an unquoted name.
func WordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a token; the keywords and punctuation are their own kind.
type kind string

const (
	kindName    kind = "a name"
	kindSQL     kind = "an SQL block { ... }"
	kindNumber  kind = "a number"
	kindEnd     kind = "the end of the file"
	kindBad     kind = "bad" // already complained about
	kindComment kind = "comment"
)

// keywords are words only when they are not quoted (specscanner.l).
var keywords = map[string]bool{"notices": true, "permutation": true, "session": true, "setup": true, "step": true, "teardown": true}

type token struct {
	kind   kind
	text   string // name, SQL, digits, comment without #
	pos    Pos
	alone  bool // comment: nothing but blanks before it on its line
	number int
}

// lexer splits a file as specscanner.l does.
type lexer struct {
	file     string
	src      string
	at       int // byte offset
	line     int
	lineAt   int // offset of the line's first byte
	counted  int // the offset up to which columns are counted
	column   int // of counted
	problems Problems
}

func newLexer(file, src string) *lexer { return &lexer{file: file, src: src, line: 1} }

func (l *lexer) pos() Pos {
	if l.counted <= l.lineAt {
		l.counted, l.column = l.lineAt, 1
	}
	l.column += utf8.RuneCountInString(l.src[l.counted:l.at])
	l.counted = l.at
	return Pos{Line: l.line, Column: l.column}
}

// maxProblems bounds what is said of one file. The rest of it is not read.
const maxProblems = 100

func (l *lexer) fail(pos Pos, format string, args ...any) {
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, Problem{File: l.file, Pos: pos, Text: fmt.Sprintf(format, args...)})
	}
}

// isBlank is {space}: a newline is not one. Vertical tab is one since PostgreSQL 17.
func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'
}

func isNameStart(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameRest(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }

// next gives the next token; comments are tokens here because directives are in them.
func (l *lexer) next() token {
	for l.at < len(l.src) && len(l.problems) < maxProblems {
		c := l.src[l.at]
		switch {
		case c == '\n':
			l.newline()
		case isBlank(c):
			l.at++
		case c == '#':
			return l.comment()
		case isNameStart(c):
			return l.word()
		case c == '"':
			return l.quoted()
		case c == '{':
			return l.block()
		case isDigit(c):
			return l.digits()
		case c == ',' || c == '(' || c == ')' || c == '*':
			t := token{kind: kind(c), text: string(c), pos: l.pos()}
			l.at++
			return t
		default:
			r, n := utf8.DecodeRuneInString(l.src[l.at:])
			l.fail(l.pos(), "unexpected character %q; SQL stands in braces { ... }, comments begin with #", r)
			l.at += n
		}
	}
	return token{kind: kindEnd, pos: l.pos()}
}

func (l *lexer) newline() {
	l.at++
	l.line++
	l.lineAt = l.at
}

// comment reads up to a newline or carriage return; what follows a carriage return in the same line is not comment.
func (l *lexer) comment() token {
	t := token{kind: kindComment, pos: l.pos(), alone: strings.Trim(l.src[l.lineAt:l.at], " \t\r\f\v") == ""}
	start := l.at + 1
	for l.at < len(l.src) && l.src[l.at] != '\n' && l.src[l.at] != '\r' {
		l.at++
	}
	t.text = l.src[start:l.at]
	return t
}

func (l *lexer) word() token {
	t := token{kind: kindName, pos: l.pos()}
	start := l.at
	for l.at < len(l.src) && isNameRest(l.src[l.at]) {
		l.at++
	}
	t.text = l.src[start:l.at]
	if keywords[t.text] {
		t.kind = kind(t.text)
	}
	return t
}

// quoted reads "name"; two quotes stand for one, and a name may be empty.
func (l *lexer) quoted() token {
	t := token{kind: kindName, pos: l.pos()}
	var name strings.Builder
	for l.at++; l.at < len(l.src); l.at++ {
		switch c := l.src[l.at]; c {
		case '\n':
			l.fail(t.pos, "the quoted name that begins here is not closed on its line; add the missing \"")
			return token{kind: kindBad, pos: t.pos}
		case 0:
			l.fail(l.pos(), "a zero byte in a quoted name; remove it")
		case '"':
			if !strings.HasPrefix(l.src[l.at:], `""`) {
				l.at++
				t.text = name.String()
				return t
			}
			l.at++
			name.WriteByte(c)
		default:
			name.WriteByte(c)
		}
	}
	l.fail(t.pos, "the quoted name that begins here is not closed before the end of the file; add the missing \"")
	return token{kind: kindBad, pos: t.pos}
}

// block reads an SQL block. The first } ends it that is not quoted.
func (l *lexer) block() token {
	t := token{kind: kindSQL, pos: l.pos()}
	n := blockEnd(l.src[l.at:])
	if n < 0 {
		l.fail(t.pos, "the SQL block that begins here is not closed before the end of the file; add the missing }")
		l.skip(len(l.src))
		return token{kind: kindBad, pos: t.pos}
	}
	raw := l.src[l.at+1 : l.at+n]
	if i := strings.IndexByte(raw, 0); i >= 0 {
		l.fail(t.pos, "the SQL block that begins here holds a zero byte; remove it")
	}
	l.skip(l.at + n + 1)
	t.text = strings.Trim(raw, " \t\r\f\v")
	return t
}

// skip moves on to the offset and counts the lines on the way.
func (l *lexer) skip(to int) {
	for l.at < to {
		if l.src[l.at] == '\n' {
			l.newline()
		} else {
			l.at++
		}
	}
}

func (l *lexer) digits() token {
	t := token{kind: kindNumber, pos: l.pos()}
	start := l.at
	for l.at < len(l.src) && isDigit(l.src[l.at]) {
		l.at++
	}
	t.text = l.src[start:l.at]
	n, err := strconv.ParseInt(t.text, 10, 32)
	if err != nil {
		l.fail(t.pos, "the number %s is too large; at most %d", t.text, math.MaxInt32)
	}
	t.number = int(n)
	return t
}

// quoteName gives a name as it is written in a file: plain where that is enough.
func quoteName(name string) string {
	if name != "" && isNameStart(name[0]) && !keywords[name] {
		plain := true
		for i := range len(name) {
			plain = plain && isNameRest(name[i])
		}
		if plain {
			return name
		}
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

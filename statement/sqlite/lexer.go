// Package sqlite describes statements of SQLite by their text alone, and reads the metadata that they define. It goes by tokens and
// parentheses, without a parser: the words with which SQLite's clauses begin are reserved (sqlite.org/lang_keywords.html), so no name
// looks like them. A statement with anything that it does not expect is Unparsed.
package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

type tokenKind uint8

const (
	tokWord   tokenKind = iota // unquoted name or keyword
	tokName                    // "name", [name], `name`
	tokString                  // 'text', x'00'
	tokNumber                  //
	tokParam                   // ?, ?1, :a, @a, $a
	tokSymbol                  // one character
)

type token struct {
	start, end int
	depth      int // of parentheses around it; both parentheses of a pair have the outer depth
	kind       tokenKind
}

var errText = errors.New("unterminated text or name")

// lex cuts sql into tokens (sqlite.org/lang_expr.html, section 2; sqlite.org/lang_comment.html).
func lex(sql string) (list []token, err error) {
	depth := 0
	for at := 0; at < len(sql); {
		end, kind := at+1, tokSymbol
		switch c := sql[at]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			at++
			continue
		case c == '-' && strings.HasPrefix(sql[at:], "--"):
			at = through(sql, at, "\n")
			continue
		case c == '/' && strings.HasPrefix(sql[at:], "/*"): // an unterminated one ends with the text
			at = through(sql, at+2, "*/")
			continue
		case c == '\'':
			end, kind = quoted(sql, at, '\''), tokString
		case (c == 'x' || c == 'X') && at+1 < len(sql) && sql[at+1] == '\'':
			end, kind = quoted(sql, at+1, '\''), tokString
		case c == '"' || c == '`':
			end, kind = quoted(sql, at, c), tokName
		case c == '[':
			end, kind = -1, tokName
			if i := strings.IndexByte(sql[at:], ']'); i > 0 {
				end = at + i + 1
			}
		case c >= '0' && c <= '9', c == '.' && at+1 < len(sql) && sql[at+1] >= '0' && sql[at+1] <= '9' && !afterName(list, at):
			end, kind = number(sql, at), tokNumber
		case c == '?', (c == ':' || c == '@' || c == '$') && at+1 < len(sql) && wordByte(sql[at+1]):
			for end < len(sql) && wordByte(sql[end]) {
				end++
			}
			kind = tokParam
		case wordByte(c):
			for end < len(sql) && wordByte(sql[end]) {
				end++
			}
			kind = tokWord
		case c == ')':
			depth--
		}
		if end < 0 {
			return nil, fmt.Errorf("%w at byte %d", errText, at)
		}
		list = append(list, token{at, end, depth, kind})
		if kind == tokSymbol && sql[at] == '(' {
			depth++
		}
		at = end
	}
	return list, nil
}

// afterName reports whether a dot at that place belongs to the name in front of it.
func afterName(list []token, at int) bool {
	n := len(list)
	return n > 0 && list[n-1].end == at && list[n-1].kind <= tokName
}

// through is the place behind the first mark from at on, or the end of the text.
func through(sql string, at int, mark string) int {
	if at > len(sql) {
		return len(sql)
	}
	if i := strings.Index(sql[at:], mark); i >= 0 {
		return at + i + len(mark)
	}
	return len(sql)
}

// quoted is the end of what is quoted from at on, with doubled quotes inside; -1: there is none.
func quoted(sql string, at int, quote byte) int {
	for i := at + 1; i < len(sql); i++ {
		if sql[i] != quote {
			continue
		}
		if i+1 == len(sql) || sql[i+1] != quote {
			return i + 1
		}
		i++
	}
	return -1
}

func number(sql string, at int) int {
	for at < len(sql) && (wordByte(sql[at]) || sql[at] == '.' ||
		(sql[at] == '+' || sql[at] == '-') && (sql[at-1] == 'e' || sql[at-1] == 'E') && at+1 < len(sql) && sql[at+1] >= '0' && sql[at+1] <= '9') {
		at++
	}
	return at
}

// wordByte reports whether a name may have the byte (sqlite.org/lang_keywords.html: names are letters, digits, _, $ and all beyond ASCII).
func wordByte(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// text is a statement, or a script, cut into tokens.
type text struct {
	sql    string
	tokens []token
}

func (t *text) at(i int) string { return t.sql[t.tokens[i].start:t.tokens[i].end] }

// is reports whether token i is one of the keywords or symbols.
func (t *text) is(i int, words ...string) bool {
	if i < 0 || i >= len(t.tokens) || t.tokens[i].kind != tokWord && t.tokens[i].kind != tokSymbol {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, t.at(i)) })
}

func (t *text) seq(i int, words ...string) bool {
	for n, w := range words {
		if !t.is(i+n, w) {
			return false
		}
	}
	return true
}

// name is what token i names, without quotes; false if it is no name.
func (t *text) name(i int) (string, bool) {
	if i < 0 || i >= len(t.tokens) {
		return "", false
	}
	s := t.at(i)
	switch t.tokens[i].kind {
	case tokWord:
		return s, true
	case tokName:
		q, inner := s[len(s)-1:], s[1:len(s)-1]
		if q == "]" {
			return inner, true
		}
		return strings.ReplaceAll(inner, q+q, q), true
	}
	return "", false
}

// between is the text of the tokens from i to j.
func (t *text) between(i, j int) string {
	if i >= j || j > len(t.tokens) {
		return ""
	}
	return t.sql[t.tokens[i].start:t.tokens[j-1].end]
}

// close gives the token that closes the parenthesis at i, or -1.
func (t *text) close(i int) int {
	for j := i + 1; j < len(t.tokens); j++ {
		if t.tokens[j].depth == t.tokens[i].depth && t.is(j, ")") {
			return j
		}
	}
	return -1
}

// split cuts the tokens from i to end at the commas of depth.
func (t *text) split(i, end, depth int) (parts [][2]int) {
	first := i
	for ; i <= end; i++ {
		if i < end && (t.tokens[i].depth != depth || !t.is(i, ",")) {
			continue
		}
		if i > first {
			parts = append(parts, [2]int{first, i})
		}
		first = i + 1
	}
	return parts
}

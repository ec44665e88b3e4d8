// Package sqlite describes statements of SQLite by their text alone, and reads the metadata that they define. It goes by tokens and
// parentheses, without a parser: the words with which SQLite's clauses begin are reserved (sqlite.org/lang_keywords.html), so no name
// looks like them. A statement with anything that it does not expect is Unparsed.
package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"wirecheck/statement"
)

var errText = errors.New("unterminated text or name")

// lex cuts sql into tokens (sqlite.org/lang_expr.html, section 2; sqlite.org/lang_comment.html).
func lex(sql string) (*statement.Text, error) {
	var list []statement.Token
	depth := int32(0)
	for at := 0; at < len(sql); {
		end, kind := at+1, statement.TokenSymbol
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
			end, kind = quoted(sql, at, '\''), statement.TokenString
		case (c == 'x' || c == 'X') && at+1 < len(sql) && sql[at+1] == '\'':
			end, kind = quoted(sql, at+1, '\''), statement.TokenString
		case c == '"' || c == '`':
			end, kind = quoted(sql, at, c), statement.TokenName
		case c == '[':
			end, kind = -1, statement.TokenName
			if i := strings.IndexByte(sql[at:], ']'); i > 0 {
				end = at + i + 1
			}
		case c >= '0' && c <= '9', c == '.' && at+1 < len(sql) && sql[at+1] >= '0' && sql[at+1] <= '9' && !afterName(list, at):
			end, kind = number(sql, at), statement.TokenNumber
		case c == '?', (c == ':' || c == '@' || c == '$') && at+1 < len(sql) && wordByte(sql[at+1]):
			for end < len(sql) && wordByte(sql[end]) {
				end++
			}
			kind = statement.TokenParam
		case wordByte(c):
			for end < len(sql) && wordByte(sql[end]) {
				end++
			}
			kind = statement.TokenWord
		case c == ')':
			depth--
		}
		if end < 0 {
			return nil, fmt.Errorf("%w at byte %d", errText, at)
		}
		list = append(list, statement.Token{Start: at, End: end, Depth: depth, Kind: kind})
		if kind == statement.TokenSymbol && sql[at] == '(' {
			depth++
		}
		at = end
	}
	return &statement.Text{SQL: sql, Tokens: list}, nil
}

// afterName reports whether a dot at that place belongs to the name in front of it.
func afterName(list []statement.Token, at int) bool {
	n := len(list)
	return n > 0 && list[n-1].End == at && list[n-1].Kind <= statement.TokenName
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

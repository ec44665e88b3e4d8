package lex

import (
	"iter"
	"strings"
)

// Kind is what a token is.
type Kind uint8

// The kinds of tokens.
const (
	Space Kind = iota
	Comment
	Word   // a keyword or a name without quotes
	Name   // a name in quotes
	String // with its quotes and prefix
	Number
	Placeholder // $1, ?
	Other       // one character
)

// Token is a piece of SQL text.
type Token struct {
	Kind Kind
	Text string
	At   int // byte offset
}

// Is reports whether it is a word, in any case; a quoted name is none.
func (t Token) Is(word string) bool { return t.Kind == Word && strings.EqualFold(t.Text, word) }

// Executed reports whether a comment is one that servers of the MySQL family execute (MySQL manual, 11.7: /*! */; MariaDB: /*M! */).
func (t Token) Executed() bool {
	return t.Kind == Comment && (strings.HasPrefix(t.Text, "/*!") || strings.HasPrefix(t.Text, "/*M!"))
}

// Tokens splits SQL into tokens; joined they are the text again.
func Tokens(sql string, d Dialect) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		l := lexer{sql: sql, dialect: d}
		for at := 0; ; {
			kind, text, ok := l.next()
			if !ok || !yield(Token{kind, text, at}) {
				return
			}
			at += len(text)
		}
	}
}

// Words gives the first n words of a statement in lower case, comments left out; MySQL's executed comments count.
func Words(sql string, d Dialect, n int) []string {
	l := lexer{sql: sql, dialect: d}
	var out []string
	for len(out) < n {
		kind, text, ok := l.next()
		if !ok {
			break
		}
		switch {
		case kind == Space || kind == Comment, kind == Other && text == "(" && len(out) == 0:
		case kind == Word:
			out = append(out, strings.ToLower(text))
		case kind == Other && text == ";" && len(out) == 0:
		default:
			return out
		}
	}
	return out
}

// Several reports whether the text has more than one statement.
func Several(sql string, d Dialect) bool {
	if w := Words(sql, d, 4); len(w) > 0 && w[0] == "create" {
		return false // a routine's body has semicolons
	}
	behind := false
	for t := range Tokens(sql, d) {
		switch {
		case t.Kind == Other && t.Text == ";":
			behind = true
		case behind && t.Kind != Space && t.Kind != Comment:
			return true
		}
	}
	return false
}

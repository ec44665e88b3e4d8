package lex

import (
	"slices"
	"testing"
)

func TestTokens(t *testing.T) {
	kinds := func(sql string, d Dialect) (list []Kind) {
		at := 0
		for token := range Tokens(sql, d) {
			if token.At != at {
				t.Errorf("%q: %q stands at %d, not at %d", sql, token.Text, at, token.At)
			}
			if at += len(token.Text); token.Kind != Space {
				list = append(list, token.Kind)
			}
		}
		return list
	}
	for _, tt := range []struct {
		sql  string
		d    Dialect
		want []Kind
	}{
		{`SELECT "a" 'b'`, PostgreSQL, []Kind{Word, Name, String}},
		{`SELECT "a" 'b'`, MySQL, []Kind{Word, String, String}},
		{"$1 $$a$$ $x$ ; $x$", PostgreSQL, []Kind{Placeholder, String, String}},
		{"? `a` # c", MySQL, []Kind{Placeholder, Name, Comment}},
		{"/* a /* b */ c */ x", PostgreSQL, []Kind{Comment, Word}},
		{"/* a /* b */ c */ x", MySQL, []Kind{Comment, Word, Other, Other, Word}},
		{"/*!50000 x */", MySQL, []Kind{Comment, Word, Comment}},
		{"E'\\'' '\\'", PostgreSQL, []Kind{String, String}},
		{"1e5 .5 0xff t.1", PostgreSQL, []Kind{Number, Number, Number, Word, Other, Number}},
		{"'open", PostgreSQL, []Kind{String}},
	} {
		if got := kinds(tt.sql, tt.d); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.sql, got, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	for sql, want := range map[string][]string{
		"SELECT 1": {"select"}, "(( Select all * from t": {"select", "all"}, "/* c */ START -- x\n TRANSACTION;": {"start", "transaction"}, "; COMMIT": {"commit"}, "'x'": nil, "a b c d": {"a", "b", "c"},
	} {
		if got := Words(sql, PostgreSQL, 3); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}

func TestSeveral(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1": false, "SELECT 1;": false, "SELECT 1; -- x": false, "SELECT ';'": false, "SELECT 1; SELECT 2": true, "CREATE FUNCTION f() BEGIN; END": false,
	} {
		if got := Several(sql, MySQL); got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

func TestQuoted(t *testing.T) {
	for _, tt := range []struct {
		text      string
		backslash bool
		n         int
		closed    bool
	}{
		{"'a' b", false, 3, true}, {"'it''s'", false, 7, true}, {`'a\'b'`, true, 6, true}, {`'a\'b'`, false, 4, true}, {"'a", false, 2, false},
	} {
		if n, closed := Quoted(tt.text, 0, tt.backslash); n != tt.n || closed != tt.closed {
			t.Errorf("%s: %d, %v", tt.text, n, closed)
		}
	}
	if got := Unescape(`a\nb\\c\x`, "n", "\n"); got != "a\nb\\cx" {
		t.Errorf("Unescape: %q", got)
	}
	if got := QuoteElement("a") + QuoteElement("") + QuoteElement("null") + QuoteElement(`a"b\c`); got != `a"""null""a\"b\\c"` {
		t.Errorf("QuoteElement: %s", got)
	}
}

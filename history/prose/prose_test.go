package prose

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"SELECT 1", 0, "SELECT 1"},
		{"SELECT 1", 8, "SELECT 1"},
		{"SELECT 12", 8, "SELEC..."},
		{" SELECT\n\t1 ", 8, "SELECT 1"},
		{"SELECT 1 \n\n", 8, "SELECT 1"},
		{"äöüß", 4, "äöüß"},
		{"äöüßé", 4, "ä..."},
		{"a\x1b[2Jb\xff", 0, "a.[2Jb."},
		{"a b c d", 4, "a..."},
		{" \n", 5, ""},
		{"", 5, ""},
	} {
		if got := Line(tt.text, tt.most); got != tt.want {
			t.Errorf("Line(%q, %d): got %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
	if got := string(AppendLine([]byte("x: "), " a\nb", 0)); got != "x: a b" {
		t.Errorf("AppendLine: %q", got)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text      string
		most      int
		cut, tail string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdefg", 6, "abc...", "...bcdefg"},
		{"aääää", 6, "aä...", "...äää"},
		{"äääää", 5, "ä...", "...ää"},
		{"abc", 2, "...", "...bc"},
		{"abc", -1, "...", ""},
	} {
		if got := Cut(tt.text, tt.most); got != tt.cut {
			t.Errorf("Cut(%q, %d): got %q, want %q", tt.text, tt.most, got, tt.cut)
		}
		if tt.most < 0 {
			continue
		}
		if got := Tail(tt.text, tt.most); got != tt.tail {
			t.Errorf("Tail(%q, %d): got %q, want %q", tt.text, tt.most, got, tt.tail)
		}
	}
}

func TestCount(t *testing.T) {
	if got := Count(1, "row") + Count(0, "row") + Count(int64(-1), "row"); got != "1 row0 rows-1 rows" {
		t.Error(got)
	}
}

// TestStatement: what a reader needs of a long statement is kept, whatever a framework puts around it.
func TestStatement(t *testing.T) {
	columns := strings.Repeat(`"Order"."from ""x""" AS "y", (SELECT a FROM b), ' from ', `, 4)
	for _, tt := range []struct{ sql, want string }{
		{"SELECT a\n  FROM t", "SELECT a FROM t"},
		{"SELECT " + columns + `1 FROM "Order" WHERE id = $1 /* route='/buy' */`, `SELECT ... FROM "Order" WHERE id = $1 /* route='/buy' */`},
		{"SELECT 'it" + strings.Repeat(" from", 20), "SELECT 'it from from from fr...from from from from from from"},
		{"UPDATE t SET a = 1 WHERE id IN (" + strings.Repeat("1, ", 40) + "2) /* route='/buy' */", "UPDATE t SET a = 1 WHERE id IN (1,... 2) /* route='/buy' */"},
		{"UPDATE stock_level SET a = 1, b = 2, c = 3, d = 4, e = 5, f = 6 WHERE id = $1 /* r='/b' */", "UPDATE stock_level SET a = 1, ... WHERE id = $1 /* r='/b' */"},
		{`SELECT s.* FROM stock AS s JOIN a ON a.id = s.a JOIN b ON b.id = s.b WHERE s.id = $1`, "SELECT s.* FROM stock AS s JOIN a ON a.id... WHERE s.id = $1"},
		{"INSERT INTO t (" + strings.Repeat("a, ", 40) + "b) VALUES (" + strings.Repeat("'x', ", 40) + "1) /* r='/b' */", "INSERT INTO t (a,... b) VALUES ('x... 1) /* r='/b' */"},
		{"SELECT a FROM t WHERE b = 'first' AND c = 'a very long text that says little' AND d = 'last'", "SELECT a FROM t WHERE b = 'first' AN...ittle' AND d = 'last'"},
		{"SELECT " + strings.Repeat("é", 70), "SELECT " + strings.Repeat("é", 21) + "..." + strings.Repeat("é", 29)},
		{"SELECT a FROM t WHERE id = $1 /*route='/b',traceparent='00-0123456789abcdef0123456789abcdef-0123456789abcdef-01'*/",
			"SELECT a FROM t WHERE id = $1 /*rout...t='...456789abcdef'*/"},
		{"SELECT 1 /*traceparent=00-0123456789abcdef0123456789abcdef-0123456789abcdef-01*/", "SELECT 1 /*traceparent=...456789abcdef*/"},
		{"SELECT 1 /*traceparent='00-0123456789abcdef'*/", "SELECT 1 /*traceparent='00-0123456789abcdef'*/"},
		{`UPDATE t SET a = $1 WHERE id = $2 RETURNING "t"."id", "t"."number_left", "t"."name" /*r='/b'*/`, `UPDATE t SET a = $1 WHERE id = $2 RETURNING ... /*r='/b'*/`},
		{`UPDATE t SET a = 'x returning y ' WHERE id = 777777777777777777777777777`, `UPDATE t SET a = 'x returni... WHERE id = 7...77777777777777`},
		{"SELECT", "SELECT"},
		{"", ""},
	} {
		if got := Statement(tt.sql, 60); got != tt.want {
			t.Errorf("%.50q...\n got %q\nwant %q", tt.sql, got, tt.want)
		}
	}
	for _, hostile := range []string{strings.Repeat("("+strings.Repeat("𝄞", 50)+")", 2000), strings.Repeat("(", 1<<16) + strings.Repeat(")", 1<<16), "a where " + strings.Repeat("'", 99)} {
		if n := utf8.RuneCountInString(Statement(hostile, 60)); n > 60 {
			t.Errorf("%.20q...: %d characters", hostile, n)
		}
	}
	if long := strings.Repeat("SELECT 1, ", 100); Statement(long, 0) != strings.TrimSpace(long) {
		t.Error("without a bound, something was cut")
	}
}

func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ text, printable, lines string }{
		{"shop.coupon  ä id=1", "shop.coupon  ä id=1", "shop.coupon  ä id=1"},
		{"a\x1b[2Jb", "a.[2Jb", "a.[2Jb"},
		{"a\nERROR", "a ERROR", "a\nERROR"},
		{"a\u202eb\u2066\u200b", "a.b..", "a.b.."},
		{"a\u009b\x7f\xff", "a...", "a..."},
		{"", "", ""},
	} {
		if p, l := Printable(tt.text), Lines(tt.text); p != tt.printable || l != tt.lines {
			t.Errorf("%q: printable %q, want %q; lines %q, want %q", tt.text, p, tt.printable, l, tt.lines)
		}
	}
}

func TestFit(t *testing.T) {
	const text = `a line that fits
  a line of prose that is too long for the terminal
shape            times  level
    SELECT a, b, c, d, e, f, g FROM somewhere
  shown by: wirecheck run out/1.spec --engine postgres
wirecheck replay a.wct --snapshot before.sql
`
	const want = `a line that fits
  a line of prose that is
    too long for the
    terminal
shape            times  level
    SELECT a, b, c, d, e, f, g FROM somewhere
  shown by: wirecheck run out/1.spec --engine postgres
wirecheck replay a.wct --snapshot before.sql
`
	if got := Fit(text, 26); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := Fit(text, 0); got != text {
		t.Errorf("no terminal: got\n%s", got)
	}
}

package replay

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Inline puts a statement's parameters into its text as literals. The text protocol has no parameters; a literal in quotes without a type
// is resolved by PostgreSQL as a parameter without a type is (manual, 10.2 and PREPARE), and one whose type is known is cast to it. In the MySQL
// family numbers are written bare, bytes in hexadecimal, everything else in quotes.
func Inline(st *trace.Statement, d lex.Dialect) (string, error) {
	if len(st.Params) == 0 {
		return st.SQL, nil
	}
	var b strings.Builder
	next := 0
	for t := range lex.Tokens(st.SQL, d) {
		if t.Kind != lex.Placeholder {
			b.WriteString(t.Text)
			continue
		}
		n := next
		if d == lex.PostgreSQL {
			v, err := strconv.Atoi(strings.TrimPrefix(t.Text, "$"))
			if err != nil || v < 1 {
				return "", fmt.Errorf("the placeholder %s is none", t.Text)
			}
			n = v - 1
		}
		next++
		if n >= len(st.Params) {
			return "", fmt.Errorf("it has %d parameters, and the text asks for number %d", len(st.Params), n+1)
		}
		text, err := literal(st.Params[n], d)
		if err != nil {
			return "", fmt.Errorf("parameter %d: %w", n+1, err)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func literal(p trace.Param, d lex.Dialect) (string, error) {
	if p.Null {
		if d == lex.PostgreSQL && castable(p.Type) {
			return "NULL::" + p.Type, nil
		}
		return "NULL", nil
	}
	if d == lex.MySQL {
		return mysqlLiteral(p), nil
	}
	if p.Binary {
		return "", fmt.Errorf("its value is in the binary form of the type %q, which nobody here can write as text", p.Type)
	}
	if strings.IndexByte(p.Value, 0) >= 0 {
		return "", fmt.Errorf("it holds a zero byte")
	}
	text := quotePostgres(p.Value)
	if castable(p.Type) {
		text += "::" + p.Type
	}
	return text, nil
}

// castable reports whether a literal of the type can be written with a cast. Text stays without one: so it can become what its place asks
// for, as strings of drivers do, which declare text for everything.
func castable(kind string) bool {
	switch kind {
	case "", "unknown", "text", "varchar", "bpchar", "name":
		return false
	}
	return !strings.ContainsFunc(kind, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// quotePostgres writes a string that means the same whatever standard_conforming_strings is.
func quotePostgres(s string) string {
	if !strings.Contains(s, `\`) {
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	// A word must not run into the prefix.
	return " E'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
}

// quoteMySQL writes a string as a literal.
func quoteMySQL(s string) string {
	return "'" + strings.NewReplacer("'", `\'`, `\`, `\\`, "\x00", `\0`).Replace(s) + "'"
}

func mysqlLiteral(p trace.Param) string {
	kind := strings.TrimPrefix(strings.ToUpper(p.Type), "UNSIGNED ")
	kind = strings.TrimSuffix(kind, " UNSIGNED")
	switch kind {
	case "TINY", "SHORT", "INT24", "LONG", "LONGLONG", "YEAR", "DECIMAL", "NEWDECIMAL":
		if flow.IsNumber(p.Value) {
			return signed(p.Value)
		}
	case "FLOAT", "DOUBLE":
		if flow.IsNumber(p.Value) {
			if strings.ContainsAny(p.Value, "eE") {
				return signed(p.Value)
			}
			return signed(p.Value + "e0")
		}
	case "TINY_BLOB", "MEDIUM_BLOB", "LONG_BLOB", "BLOB", "BIT", "GEOMETRY":
		return "x'" + hex.EncodeToString([]byte(p.Value)) + "'"
	}
	if p.Binary {
		return "x'" + hex.EncodeToString([]byte(p.Value)) + "'"
	}
	return quoteMySQL(p.Value)
}

// signed keeps a sign from meeting one of the statement's own.
func signed(number string) string {
	if strings.HasPrefix(number, "-") {
		return "(" + number + ")"
	}
	return number
}

// Braceless writes string literals that hold a closing brace, which ends a statement in a scenario file, so that they hold none: on PostgreSQL by an
// escape, in the MySQL family in hexadecimal. Comments that hold one are left out.
func Braceless(sql string, d lex.Dialect) string {
	if !strings.Contains(sql, "}") {
		return sql
	}
	var b strings.Builder
	for t := range lex.Tokens(sql, d) {
		text := t.Text
		switch {
		case !strings.Contains(text, "}"):
		case t.Kind == lex.Comment:
			text = " "
		case t.Kind != lex.String || strings.IndexAny(text, "'$\"") > 1 || len(text) < 2:
		case d == lex.MySQL:
			text = "_utf8mb4 0x" + hex.EncodeToString([]byte(flow.Unquote(text)))
		default:
			text = " E'" + strings.NewReplacer("'", "''", `\`, `\\`, "}", `\x7D`).Replace(plainString(text)) + "'"
		}
		b.WriteString(text)
	}
	return b.String()
}

// plainString is the value of one of PostgreSQL's string literals (manual, 4.1.2): '...', E'...' with the escapes that drivers and dumps
// write, $tag$...$tag$.
func plainString(text string) string {
	if strings.HasPrefix(text, "$") {
		tag := strings.IndexByte(text[1:], '$') + 2
		if len(text) >= 2*tag {
			return text[tag : len(text)-tag]
		}
		return text
	}
	if text[0] == 'e' || text[0] == 'E' {
		return flow.Unquote(text)
	}
	return strings.ReplaceAll(text[1:len(text)-1], "''", "'")
}

package mysql

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"wirecheck/history/prose"
	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// People know a row by its primary key, so the hidden column of a read and each entry of the log end with it: the values
// of at most nameColumns columns with commas between them. Numbers and times are as they print, in which there is no
// comma and no semicolon; texts are an x and the hex form of their first characters, so that no character set, quote or
// NUL matters. In the log each value has its column's name in front: "a=5,b=x6162". Every index holds the key, so that
// reading it locks and reads nothing more.

const (
	nameColumns = 4  // columns of a key that are told
	nameLimit   = 60 // bytes of a name
)

// textLimit is how many characters of each text are told if there are n texts in a key. All of them together stay below
// 250 characters in hex: beyond 512 the server would keep the hidden column apart from the row in its temporary tables.
func textLimit(n int) int {
	switch n {
	case 1:
		return 20
	case 2:
		return 10
	}
	return 6
}

// nameParts gives the SQL texts of the key's values, each to be put behind its literal; none if the table has no key or
// one of a type that is not known.
func nameParts(src *source) (columns, literals, values []string) {
	key := src.rel.Key[:min(len(src.rel.Key), nameColumns)]
	texts := 0
	for _, c := range key {
		a := src.column(c)
		if a == nil {
			return nil, nil, nil
		}
		ref := src.ref + "." + mysqlsyntax.Quote(a.Name)
		literal := ""
		switch typeName(a.Type) {
		case "tinyint", "smallint", "mediumint", "int", "integer", "bigint", "decimal", "numeric", "float", "double", "real",
			"year", "date", "time", "datetime", "timestamp", "uuid", "inet4", "inet6":
		case "bit":
			ref += "+0"
		case "char", "varchar", "binary", "varbinary", "tinytext", "text", "mediumtext", "longtext",
			"tinyblob", "blob", "mediumblob", "longblob", "enum", "set":
			texts++
			literal = "x"
		default:
			return nil, nil, nil
		}
		columns, literals, values = append(columns, a.Name), append(literals, literal), append(values, ref)
	}
	for i := range values {
		if literals[i] == "x" {
			values[i] = fmt.Sprintf("HEX(LEFT(%s,%d))", values[i], textLimit(texts)+1)
		}
	}
	return columns, literals, values
}

// nameOf is SQL text that goes on within CONCAT and adds the values of the key, with the columns' names if so wanted.
func nameOf(src *source, named bool) string {
	if src.label != "" {
		return "," + src.label
	}
	columns, literals, values := nameParts(src)
	var b strings.Builder
	for i := range values {
		literal := literals[i]
		if named {
			literal = escapeName(columns[i]) + "=" + literal
		}
		separator := ","
		if i == 0 {
			separator = " "
		}
		b.WriteString(",'" + separator + literal + "'," + values[i])
	}
	return b.String()
}

// typeName is the bare name of a column's type.
func typeName(typ string) string {
	name, _, _ := strings.Cut(strings.ToLower(typ), "(")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// keyNames are the names of the columns whose values the hidden column of a read tells.
func keyNames(rel *rewrite.Relation) []string { return rel.Key[:min(len(rel.Key), nameColumns)] }

// readName makes a row's name from the values that nameOf added. columns are the names; nil if the values have theirs.
func readName(text string, columns []string) (string, error) {
	if name, ok := soleName(text, columns); ok {
		return name, nil
	}
	return fullName(text, columns)
}

// fullName is readName for all keys.
func fullName(text string, columns []string) (string, error) {
	values := strings.Split(text, ",")
	if columns == nil {
		columns = make([]string, len(values))
		for i, v := range values {
			name, value, ok := strings.Cut(v, "=")
			if !ok {
				return "", fmt.Errorf("key value %q has no name", v)
			}
			name, err := unescapeName(name)
			if err != nil {
				return "", err
			}
			columns[i], values[i] = name, value
		}
	}
	if len(columns) != len(values) {
		return "", fmt.Errorf("%q are not the values of %d columns", text, len(columns))
	}
	texts := 0
	for _, v := range values {
		if strings.HasPrefix(v, "x") {
			texts++
		}
	}
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(columns[i] + "=")
		if !strings.HasPrefix(v, "x") {
			b.WriteString(v)
			continue
		}
		raw, err := hex.DecodeString(v[1:])
		if err != nil {
			return "", fmt.Errorf("key value %q: %w", v, err)
		}
		b.WriteString(quoteText(raw, textLimit(texts)))
	}
	return prose.Cut(b.String(), nameLimit), nil
}

// soleName is readName for a single number or time, as most keys are.
func soleName(text string, columns []string) (string, bool) {
	if len(columns) > 1 || columns != nil && len(columns) == 0 || strings.IndexByte(text, ',') >= 0 || len(text) > nameLimit {
		return "", false
	}
	if columns != nil {
		return columns[0] + "=" + text, isSole([]byte(text), columns)
	}
	name, value, ok := strings.Cut(text, "=")
	return text, ok && !strings.HasPrefix(value, "x") && strings.IndexByte(name, '%') < 0
}

// isSole reports whether text is the single value, a number or a time, of a key whose column is known.
func isSole(text []byte, columns []string) bool {
	return len(columns) == 1 && len(text) > 0 && text[0] != 'x' && len(columns[0])+1+len(text) <= nameLimit && bytes.IndexByte(text, ',') < 0
}

// quoteText prints a text of at most limit characters, or in hex what is no text.
func quoteText(raw []byte, limit int) string {
	s := string(raw)
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") || !unicode.IsPrint(r) {
			if len(raw) > limit {
				return fmt.Sprintf("0x%x...", raw[:limit])
			}
			return fmt.Sprintf("0x%x", raw)
		}
	}
	more := ""
	if runes := []rune(s); len(runes) > limit {
		s, more = string(runes[:limit]), "..."
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'" + more
}

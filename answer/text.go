package answer

import "strings"

// Names are the columns' names.
func Names(columns []Column) []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

// Strings are rows as JSON has them; nil is NULL.
func Strings(rows [][]Value) [][]*string {
	var out [][]*string
	for _, row := range rows {
		texts := make([]*string, len(row))
		for i, v := range row {
			if v != nil {
				text := string(v)
				texts[i] = &text
			}
		}
		out = append(out, texts)
	}
	return out
}

// Text is a value for people.
func Text(v Value) string {
	if v == nil {
		return "NULL"
	}
	return string(v)
}

// RowText is a row for people: (1, NULL).
func RowText(row []Value) string {
	texts := make([]string, len(row))
	for i, v := range row {
		texts[i] = Text(v)
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

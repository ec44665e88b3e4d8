package record

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"wirecheck/statement/condition"
	"wirecheck/trace/flow"
	"wirecheck/trace/secret"
)

// Bounds of the values that are recorded for people: what a person compares is short.
const (
	maxShown   = 20  // rows of an answer
	maxColumns = 40  // values of a row, and parameters of a statement
	maxValue   = 64  // bytes of a value
	imageRoom  = 256 // bytes that most images take
)

// shows reports whether a value is one that a finding can show.
func shows(text string) bool {
	return len(text) <= maxValue && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// valuesImage has the values of a row's cells, as history.Access.Values. A column that the answer shows twice with two values is not in it.
func valuesImage(table string, cells []Cell) string {
	b := make([]byte, 0, imageRoom)
	for i, c := range cells {
		if i == maxColumns {
			break
		}
		if c.Table != table || c.Null || c.Unread || c.digest || !shows(c.Text) || secret.Column(c.Column) ||
			slices.ContainsFunc(cells, func(d Cell) bool {
				return d.Table == table && d.Column == c.Column && (d.Null || d.Unread || d.Text != c.Text)
			}) {
			continue
		}
		b = condition.AppendColumn(b, c.name, &c.Text)
	}
	return string(b)
}

// paramsImage has the parameters of an execution, as history.Event.Params.
func paramsImage(params []flow.Param) string {
	b := make([]byte, 0, imageRoom)
	for i, p := range params {
		switch {
		case i == maxColumns:
			return string(b)
		case p.Unknown, !shows(p.Text):
		case p.Null:
			b = condition.AppendColumn(b, strconv.Itoa(i+1), nil)
		default:
			b = condition.AppendColumn(b, strconv.Itoa(i+1), &p.Text)
		}
	}
	return string(b)
}

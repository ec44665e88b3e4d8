package schedule

import (
	"regexp"
	"strconv"
	"strings"

	"wirecheck/oracle"
)

// sideRows is the most rows that a finding shows of each side.
const sideRows = 20

// SideOf shows rows of one side of a difference; same counts those that both sides have.
func SideOf(columns []Column, rows [][]Value, same int) oracle.Side {
	out := oracle.Side{Omitted: same}
	for _, col := range columns {
		out.Columns = append(out.Columns, col.Name)
	}
	for i, row := range rows {
		if i == sideRows {
			out.Omitted += len(rows) - sideRows
			break
		}
		cells := make([]*string, len(row))
		for n, v := range row {
			if v != nil {
				text := string(v)
				cells[n] = &text
			}
		}
		out.Rows = append(out.Rows, cells)
	}
	if len(rows) == 0 && same == 0 {
		out.Text = "no rows"
	}
	return out
}

var number = regexp.MustCompile(`^[-+]?[0-9]*\.?[0-9]*(e[-+]?[0-9]+)?$`)

// Fold makes values alike that some collation or type may take for equal: letters of either case, characters beyond ASCII, blanks at
// the end, and numbers with zeros at the end.
func Fold(v string) string {
	if v != "" && number.MatchString(v) {
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return strconv.FormatFloat(f+0, 'g', -1, 64) // + 0: not -0
		}
	}
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if r > 127 {
			return '~'
		}
		return r
	}, strings.ToLower(v)), " ")
}

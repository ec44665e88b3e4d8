package schedule

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// sideRows is the most rows that a finding shows of each side.
const sideRows = 20

// SideOf shows rows of one side of a difference; same counts those that both sides have.
func SideOf(columns []answer.Column, rows [][]answer.Value, same int) oracle.Side {
	out := oracle.Side{Columns: answer.Names(columns), Rows: [][]*string{}, Omitted: same}
	if more := len(rows) - sideRows; more > 0 {
		rows, out.Text = rows[:sideRows], prose.Count(more, "more row")
	}
	out.Rows = append(out.Rows, answer.Strings(rows)...)
	return out
}

// Sides shows what differs between the rows that were expected and those that came.
func Sides(columns []answer.Column, want, got [][]answer.Value, d answer.Difference) (expected, observed oracle.Side) {
	return SideOf(columns, d.Missing, len(want)-len(d.Missing)), SideOf(columns, d.Extra, len(got)-len(d.Extra))
}

var number = regexp.MustCompile(`^[-+]?[0-9]*\.?[0-9]*(e[-+]?[0-9]+)?$`)

// Alike reports whether rows differ only in values that some collation or type may take for equal: letters of either case, blanks at the
// end, numbers with zeros at the end. Of what is beyond ASCII nothing is known: a column in which there is some is not compared.
func Alike(d answer.Difference) bool {
	rows := append(slices.Clone(d.Missing), d.Extra...)
	foreign := map[int]bool{}
	for _, row := range rows {
		for n, v := range row {
			foreign[n] = foreign[n] || bytes.ContainsFunc(v, func(r rune) bool { return r > 127 })
		}
	}
	change := func(rows [][]answer.Value) [][]answer.Value {
		out := make([][]answer.Value, len(rows))
		for i, row := range rows {
			out[i] = make([]answer.Value, len(row))
			for n, v := range row {
				switch {
				case v == nil:
				case foreign[n]:
					out[i][n] = answer.Value("text")
				default:
					out[i][n] = answer.Value(fold(string(v)))
				}
			}
		}
		return out
	}
	missing, extra := change(d.Missing), change(d.Extra)
	return answer.DiffRows(missing, extra).Equal()
}

// groups finds what shows one of several equal values for all of them.
var groups = regexp.MustCompile(`(?i)\b(group\s+by|distinct|union|intersect|except|min|max|greatest|least|mode|percentile_disc)\b`)

// Groups reports whether a query shows one of several equal values for all of them: which one is not defined.
func Groups(text string) bool { return groups.MatchString(text) }

// Represents reports whether answers of a query may differ in nothing else than which of several equal values stands for them.
func Represents(text string, d answer.Difference) bool { return Groups(text) && Alike(d) }

func fold(v string) string {
	if v != "" && number.MatchString(v) {
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return strconv.FormatFloat(f+0, 'g', -1, 64) // + 0: not -0
		}
	}
	return strings.TrimRight(strings.ToLower(v), " ")
}

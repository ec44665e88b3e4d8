package serial

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
)

// cell is a value that is compared, with its column.
type cell struct{ column, value string }

// cells are the rows of a table or an answer without the columns that are not compared.
func cells(columns []answer.Column, rows [][]answer.Value, compared func(i int, v answer.Value) (string, bool)) [][]cell {
	out := make([][]cell, len(rows))
	for i, row := range rows {
		for j, v := range row {
			if j >= len(columns) {
				break
			}
			if text, ok := compared(j, v); ok {
				out[i] = append(out[i], cell{columns[j].Name, text})
			}
		}
	}
	return out
}

// detail names the row and the columns by which rows differ from those that would have been there. It pairs the rows that have the most
// values in common.
func detail(was, would [][]cell) string {
	here, there := without(was, would), without(would, was)
	switch {
	case len(here) == 0 && len(there) == 0:
		return ""
	case len(there) == 0:
		return "row " + rowText(here[0], 4) + " would not be there"
	case len(here) == 0:
		return "row " + rowText(there[0], 4) + " is missing"
	}
	best, common := [2]int{}, -1
	for i, a := range here {
		for j, b := range there {
			if n := alike(a, b); n > common {
				best, common = [2]int{i, j}, n
			}
		}
	}
	a, b := here[best[0]], there[best[1]]
	if len(a) != len(b) || common == 0 && len(a) > 1 {
		return "row " + rowText(a, 4) + " would be " + rowText(b, 4)
	}
	var same []cell
	var differ []string
	for i := range a {
		if a[i] == b[i] {
			same = append(same, a[i])
			continue
		}
		differ = append(differ, fmt.Sprintf("%s is %s, and would be %s", a[i].column, shown(a[i].value), shown(b[i].value)))
	}
	text := strings.Join(differ, "; ")
	if len(same) > 0 {
		text = "row " + rowText(same, 2) + ": " + text
	}
	return text
}

// alike counts the values that two rows have in common.
func alike(a, b []cell) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

// without gives those of the rows that others does not have.
func without(rows, others [][]cell) (left [][]cell) {
	taken := make([]bool, len(others))
next:
	for _, r := range rows {
		for i, o := range others {
			if !taken[i] && slices.Equal(r, o) {
				taken[i] = true
				continue next
			}
		}
		left = append(left, r)
	}
	return left
}

// rowText writes the first values of a row.
func rowText(row []cell, most int) string {
	var parts []string
	for _, c := range row[:min(len(row), most)] {
		parts = append(parts, c.column+"="+c.value)
	}
	if len(row) > most {
		parts = append(parts, "...")
	}
	return prose.Line("("+strings.Join(parts, ", ")+")", prose.Width)
}

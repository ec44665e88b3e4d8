package lab

import (
	"fmt"
	"io"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
)

// pqPrint writes a result as libpq's old PQprint does with header and align (fe-print.c): widths are of bytes, and a column is
// aligned to the right if all its values look like numbers. What has no columns is not written.
func pqPrint(w io.Writer, r answer.Result) {
	if len(r.Columns) == 0 {
		return
	}
	widths, text := make([]int, len(r.Columns)), make([]bool, len(r.Columns))
	for i, c := range r.Columns {
		widths[i] = len(c.Name)
		for _, row := range r.Rows {
			widths[i] = max(widths[i], len(row[i]))
			text[i] = text[i] || !looksNumeric(row[i])
		}
	}
	line := func(value func(i int) string) {
		fields := make([]string, len(r.Columns))
		for i := range fields {
			v := value(i)
			padding := strings.Repeat(" ", widths[i]-len(v))
			if text[i] {
				fields[i] = v + padding
			} else {
				fields[i] = padding + v
			}
		}
		fmt.Fprintln(w, strings.Join(fields, "|"))
	}
	line(func(i int) string { return r.Columns[i].Name })
	rules := make([]string, len(widths))
	for i, n := range widths {
		rules[i] = strings.Repeat("-", n)
	}
	fmt.Fprintln(w, strings.Join(rules, "+"))
	for _, row := range r.Rows {
		line(func(i int) string { return string(row[i]) })
	}
	fmt.Fprintf(w, "(%s)\n\n", prose.Count(len(r.Rows), "row"))
}

// looksNumeric is PQprint's test: digits, points, blanks, signs and e, a digit last, and no e first. NULL and empty texts
// say nothing against it.
func looksNumeric(v answer.Value) bool {
	if len(v) == 0 {
		return true
	}
	if strings.Trim(string(v), "0123456789.Ee -") != "" {
		return false
	}
	end := v[len(v)-1]
	return v[0] != 'E' && v[0] != 'e' && end >= '0' && end <= '9'
}

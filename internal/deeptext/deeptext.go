// Package deeptext holds texts that are long, or whose trees are deep, for tests of what parses them.
package deeptext

import (
	_ "embed" // the forms
	"fmt"
	"strings"
)

//go:embed postgres.txt
var postgres string

//go:embed mysql.txt
var mysql string

// Form makes texts of one production of a grammar.
type Form struct {
	Kind                           string // as the file says
	head, left, middle, right, end string
}

// Text repeats the production n times.
func (f Form) Text(n int) string {
	return f.head + strings.Repeat(f.left, n) + f.middle + strings.Repeat(f.right, n) + f.end
}

// Most gives the longest text, of at most limit bytes, that is not refused.
func (f Form) Most(limit int, refused func(sql string) bool) string {
	low, high := 1, limit/len(f.left+f.right)
	for low < high {
		if n := (low + high + 1) / 2; refused(f.Text(n)) {
			high = n - 1
		} else {
			low = n
		}
	}
	return f.Text(low)
}

// Postgres are forms of PostgreSQL's grammar.
func Postgres() []Form { return forms(postgres) }

// MySQL are forms of the MySQL family's grammars.
func MySQL() []Form { return forms(mysql) }

func forms(file string) (list []Form) {
	for line := range strings.Lines(file) {
		if f := (Form{}); line != "\n" && line[0] != '#' {
			if _, err := fmt.Sscanf(line, "%s %q %q %q %q %q", &f.Kind, &f.head, &f.left, &f.middle, &f.right, &f.end); err != nil {
				panic(fmt.Sprintf("form %q: %v", line, err)) // the file is part of the program
			}
			list = append(list, f)
		}
	}
	return list
}

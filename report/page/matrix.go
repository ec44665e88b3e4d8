package page

import (
	"io"

	"wirecheck/history/prose"
)

// Matrix is a page of things that were tried with each other, and what each pair brought.
type Matrix struct {
	Title   string
	Notes   []string
	Facts   []string // the names of what each row tells besides its cells
	Rows    []MatrixRow
	Details []Detail
}

// MatrixRow is one of the things.
type MatrixRow struct {
	Number     int
	Name       string
	Statements []string
	Facts      []string
	Cells      []Cell
}

// Cell leads to the detail of a pair.
type Cell struct {
	ID    string // of the detail; empty: there is none
	Text  string
	Class string // wrong, possible, safe, open
}

// Detail is what is known of a pair, with the scenarios that show it.
type Detail struct {
	ID, Title, Text string
	Scenarios       []Named
}

// Named is a text with a name.
type Named struct{ Name, Text string }

// Write writes the page.
func (m *Matrix) Write(w io.Writer) error {
	for i := range m.Rows {
		r := &m.Rows[i]
		r.Name = prose.Printable(r.Name)
		for j, st := range r.Statements {
			r.Statements[j] = prose.Line(st, 0)
		}
	}
	return render(w, m.html(new(frameOf())))
}

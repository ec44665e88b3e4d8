package schedule

import (
	"fmt"
	"slices"

	"wirecheck/answer"
)

// CompareRows, Difference and DiffRows are those of package answer.
type Difference = answer.Difference

// CompareRows is answer.CompareRows.
func CompareRows(a, b []Value) int { return answer.CompareRows(a, b) }

// DiffRows is answer.DiffRows.
func DiffRows(want, got [][]Value) Difference { return answer.DiffRows(want, got) }

// TableDifference is how one table differs between two states of a database.
type TableDifference struct {
	Table string
	// Shape says how the definitions differ, in words; empty: they do not, and Rows tells.
	Shape string
	Rows  Difference
}

// DiffTables compares two states of a database, table by table, as multisets of typed rows. Tables of which one side has none
// differ in shape.
func DiffTables(want, got []Table) (out []TableDifference) {
	find := func(list []Table, name string) *Table {
		if i := slices.IndexFunc(list, func(t Table) bool { return t.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for i := range want {
		w := &want[i]
		g := find(got, w.Name)
		if g == nil {
			out = append(out, TableDifference{Table: w.Name, Shape: "the table is not there"})
			continue
		}
		if !slices.EqualFunc(w.Columns, g.Columns, Column.Equal) {
			out = append(out, TableDifference{Table: w.Name, Shape: fmt.Sprintf("columns %v, not %v", g.Columns, w.Columns)})
			continue
		}
		if d := DiffRows(w.Rows, g.Rows); !d.Equal() {
			out = append(out, TableDifference{Table: w.Name, Rows: d})
		}
	}
	for i := range got {
		if find(want, got[i].Name) == nil {
			out = append(out, TableDifference{Table: got[i].Name, Shape: "the table should not be there"})
		}
	}
	return out
}

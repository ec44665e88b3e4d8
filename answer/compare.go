package answer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// CompareRows orders rows by their values' bytes, NULL first, and shorter rows before longer ones.
func CompareRows(a, b []Value) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == nil && b[i] == nil:
		case a[i] == nil:
			return -1
		case b[i] == nil:
			return 1
		default:
			if c := bytes.Compare(a[i], b[i]); c != 0 {
				return c
			}
		}
	}
	return len(a) - len(b)
}

// Difference is what two multisets of rows do not have in common: Missing is in the first only, Extra in the second only.
type Difference struct{ Missing, Extra [][]Value }

// Equal reports whether there is no difference.
func (d Difference) Equal() bool { return len(d.Missing)+len(d.Extra) == 0 }

// DiffRows compares rows as multisets: the order in which a server returns them is not looked at.
func DiffRows(want, got [][]Value) (d Difference) {
	want, got = slices.Clone(want), slices.Clone(got)
	slices.SortFunc(want, CompareRows)
	slices.SortFunc(got, CompareRows)
	for len(want) > 0 && len(got) > 0 {
		switch c := CompareRows(want[0], got[0]); {
		case c == 0:
			want, got = want[1:], got[1:]
		case c < 0:
			d.Missing, want = append(d.Missing, want[0]), want[1:]
		default:
			d.Extra, got = append(d.Extra, got[0]), got[1:]
		}
	}
	d.Missing, d.Extra = append(d.Missing, want...), append(d.Extra, got...)
	return d
}

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

// SameValue reports whether two values are equal. NULL is equal to NULL only.
func SameValue(a, b Value) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// SameRow reports whether two rows have the same values.
func SameRow(a, b []Value) bool { return slices.EqualFunc(a, b, SameValue) }

// SameError reports whether two statements were done, or refused with the same code.
func SameError(a, b *Error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Code == b.Code)
}

// BreaksConstraint reports whether an error is the violation of a constraint: the statement itself was understood (SQL standard, class 23).
func BreaksConstraint(e *Error) bool {
	return e != nil && (strings.HasPrefix(e.Code, "23") || strings.HasPrefix(e.SQLState, "23") || strings.HasPrefix(e.Code, "SQLITE_CONSTRAINT"))
}

// DistinctRows leaves one of equal rows each, in order.
func DistinctRows(rows [][]Value) [][]Value {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, CompareRows)
	return slices.CompactFunc(rows, SameRow)
}

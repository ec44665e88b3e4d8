package answer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffRows(t *testing.T) {
	row := func(values ...string) (r []Value) {
		for _, v := range values {
			if v == "NULL" {
				r = append(r, nil)
			} else {
				r = append(r, Value(v))
			}
		}
		return r
	}
	a, b := [][]Value{row("1", "x"), row("1", "x"), row("2", "NULL")}, [][]Value{row("2", "NULL"), row("1", "x"), row("2", "")}
	d := DiffRows(a, b)
	if want := (Difference{Missing: [][]Value{row("1", "x")}, Extra: [][]Value{row("2", "")}}); !cmp.Equal(want, d) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, d))
	}
	if d := DiffRows(a, [][]Value{a[2], a[1], a[0]}); !d.Equal() {
		t.Errorf("another order is a difference: %v", d)
	}
	if string(a[0][0]) != "1" || string(a[2][0]) != "2" {
		t.Error("the rows that were compared are in another order now")
	}
}

func TestDiffTables(t *testing.T) {
	table := func(name, typ string, rows ...string) Table {
		out := Table{Name: name, Columns: []Column{{Name: "a", Type: typ}}}
		for _, r := range rows {
			out.Rows = append(out.Rows, []Value{Value(r)})
		}
		return out
	}
	got := DiffTables([]Table{table("t", "int", "1"), table("u", "int"), table("v", "int", "1")}, []Table{table("t", "int", "1"), table("v", "text", "1"), table("w", "int")})
	var texts []string
	for _, d := range got {
		texts = append(texts, d.Table+": "+d.Shape)
	}
	want := []string{"u: the table is not there", "v: columns [a text], not [a int]", "w: the table should not be there"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d := DiffTables([]Table{table("t", "int", "1", "2")}, []Table{table("t", "int", "2", "3")}); len(d) != 1 || len(d[0].Rows.Missing) != 1 || string(d[0].Rows.Extra[0][0]) != "3" {
		t.Errorf("got %v", d)
	}
}

package rewrite

import (
	"slices"
	"testing"
)

// TestEarly: at first all columns of a table are wanted, and then those that were asked for meanwhile; a plan made before is made again.
func TestEarly(t *testing.T) {
	var e Early
	w := Wanted{Early: &e}
	r := &Relation{Columns: []Attribute{{Name: "id"}, {Name: "room"}, {Name: "guest"}}}
	for i := range maxWanted {
		r.Columns = append(r.Columns, Attribute{Name: string(rune('A' + i))})
	}
	last := r.Columns[len(r.Columns)-1].Name
	if !w.Rows("t") || len(w.Columns(r, "t")) != maxWanted {
		t.Errorf("%v are wanted", w.Columns(r, "t"))
	}
	before := w.Generation()
	w.add("t", []string{last})
	if got := w.Columns(r, "t"); !slices.Contains(got, last) || !slices.Contains(got, "id") || w.Generation() != before {
		t.Errorf("%v are wanted in generation %d, before %d", got, w.Generation(), before)
	}
	for range earlyStatements - 1 {
		e.Statement()
	}
	if !w.Rows("u") || w.Generation() != before {
		t.Error("it is over too early")
	}
	e.Statement()
	if got := w.Columns(r, "t"); !slices.Equal(got, []string{last}) || w.Rows("u") || w.Generation() == before {
		t.Errorf("%v are wanted, in generation %d", got, w.Generation())
	}
	before = w.Generation()
	if w.add("t", []string{"id"}); w.Generation() == before {
		t.Error("what is wanted behind that is no news")
	}
	always := Wanted{Always: true, Early: &e}
	if !always.Rows("u") {
		t.Error("always is over")
	}
}

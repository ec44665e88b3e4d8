package rewrite

import (
	"slices"
	"testing"
)

func TestKeyed(t *testing.T) {
	c := func(table int, name string) Column { return Column{table, name} }
	const a, b, d = 0, 1, 2
	left := func(added int, equal [2]Column, more ...Column) Join {
		return Join{Tables: []int{a, b, d}[:added+1], Added: []int{added}, Refs: append(more, equal[:]...), Equal: [][2]Column{equal}}
	}
	where := func(refs ...Column) Join { return Join{Tables: []int{a, b, d}, Refs: refs} }
	byKey := left(b, [2]Column{c(b, "id"), c(a, "b_id")})
	children := left(b, [2]Column{c(b, "a_id"), c(a, "id")})
	for _, test := range []struct {
		name         string
		joins        []Join
		shown, order []Column
		needed       []bool
		ok           bool
	}{
		{"the key is shown", []Join{children}, []Column{c(a, "id")}, []Column{c(a, "id")}, []bool{true, false}, true},
		{"the key is not shown", []Join{children}, []Column{c(a, "name")}, []Column{c(a, "name")}, []bool{true, false}, false},
		{"the order is not that of all", []Join{children}, []Column{c(a, "id"), c(a, "name")}, []Column{c(a, "name")}, nil, false},
		{"a condition on a table with several rows", []Join{children, where(c(b, "x"))}, []Column{c(a, "id")}, []Column{c(a, "id")}, []bool{true, true}, false},
		{"a condition on a table that is found by its key", []Join{byKey, where(c(b, "x"))}, []Column{c(a, "id")}, []Column{c(a, "id")}, []bool{true, true}, true},
		{"through an idle table", []Join{children, left(d, [2]Column{c(d, "id"), c(b, "d_id")})}, []Column{c(a, "id")}, []Column{c(a, "id")}, []bool{true, false, false}, true},
		{"through a table with several rows", []Join{children, left(d, [2]Column{c(d, "id"), c(b, "d_id")}), where(c(d, "x"))}, []Column{c(a, "id")}, []Column{c(a, "id")}, []bool{true, true, true}, false},
		{"a left join that depends on more", []Join{children, left(d, [2]Column{c(d, "id"), c(a, "d_id")}, c(b, "x")), where(c(d, "x"))}, []Column{c(a, "id")}, []Column{c(a, "id")}, []bool{true, true, true}, false},
		{"a left join fixes nothing of its left side", []Join{byKey}, []Column{c(b, "id")}, []Column{c(b, "id")}, []bool{true, true}, false},
		{"an inner join fixes both", []Join{{Tables: []int{a, b}, Refs: []Column{c(b, "id"), c(a, "id")}, Equal: [][2]Column{{c(b, "id"), c(a, "id")}}}}, []Column{c(b, "id")}, []Column{c(b, "id")}, []bool{true, true}, true},
	} {
		k := Keyed{Keys: slices.Repeat([][]string{{"id"}}, max(2, len(test.needed))), Joins: test.joins}
		if test.needed == nil {
			k.Keys = k.Keys[:2]
		}
		needed, ok := k.Certain(test.shown, test.order)
		if ok != test.ok || !slices.Equal(needed, test.needed) {
			t.Errorf("%s: %v, %v; want %v, %v", test.name, needed, ok, test.needed, test.ok)
		}
	}
}

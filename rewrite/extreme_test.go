package rewrite

import (
	"testing"

	"wirecheck/statement/condition"
)

// TestDecides: rows from the greatest value on decide MAX, and those up to the least one MIN. Where the answer may be that of no rows, all do.
func TestDecides(t *testing.T) {
	v := func(s string) condition.Value { return &s }
	where := condition.Compare("=", condition.Number, "y", v("1"))
	for _, tt := range []struct {
		e           Extreme
		shown, want string // empty: the condition as it is
	}{
		{Extreme{Column: "n"}, "41", "(and (= number y 1) (>= number n 41))"},
		{Extreme{Column: "n", Least: true}, "-7", "(and (= number y 1) (<= number n -7))"},
		{Extreme{Column: "n", Plus: v("@9=1")}, "42", "(and (= number y 1) (>= number n 41))"},
		{Extreme{Column: "n", Least: true, Plus: v("=1")}, "40", "(and (= number y 1) (<= number n 41))"},
		{Extreme{Column: "n", Plus: v("=1"), Instead: v("=0")}, "42", "(and (= number y 1) (>= number n 41))"},
		{Extreme{Column: "n", Plus: v("=1"), Instead: v("=0")}, "1", ""},
		{Extreme{Column: "n", Instead: v("=0")}, "0", ""},
		{Extreme{Column: "n", Instead: v("$1")}, "41", ""},
		{Extreme{Column: "n", Plus: v("=0.5")}, "41", ""},
		{Extreme{Column: "n"}, "41.5", ""},
		{Extreme{Column: "n"}, "", ""},
		{Extreme{Column: "n"}, "99999999999999999999", ""},
		{Extreme{Column: "n"}, "9223372036854775807", ""},
	} {
		got, ok := tt.e.Decides(where, tt.shown)
		if want := tt.want; ok != (want != "") || ok && got.String() != want || !ok && got.String() != where.String() {
			t.Errorf("%+v of %q: %s, %v; want %q", tt.e, tt.shown, got.String(), ok, want)
		}
	}
}

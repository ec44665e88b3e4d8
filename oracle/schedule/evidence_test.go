package schedule

import (
	"testing"

	"wirecheck/answer"
)

// TestAlike has rows that may stand for the same group, and near misses.
func TestAlike(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"a", "A", true},
		{"a ", "a", true},
		{"é", "e", true},
		{"1.0", "1.00", true},
		{"-0", "0", true},
		{"0.30000000000000004", "0.3", false},
		{"a", "b", false},
		{" a", "a", false},
		{"1", "2", false},
	} {
		d := answer.DiffRows([][]answer.Value{{answer.Value("x"), answer.Value(test.a)}}, [][]answer.Value{{answer.Value("x"), answer.Value(test.b)}})
		if got := Alike(d); got != test.want {
			t.Errorf("%q and %q: %v", test.a, test.b, got)
		}
	}
	if Alike(answer.Difference{Missing: [][]answer.Value{{answer.Value("a")}}}) {
		t.Error("a missing row is alike")
	}
	if Alike(answer.Difference{Missing: [][]answer.Value{{nil}}, Extra: [][]answer.Value{{answer.Value("")}}}) {
		t.Error("NULL is alike an empty text")
	}
}

// TestRepresents has queries that may show another one of equal values, and near misses.
func TestRepresents(t *testing.T) {
	for _, test := range []struct {
		sql, a, b string
		want      bool
	}{
		{"SELECT MIN(c) FROM t", "ab", "Ab", true},
		{"SELECT c FROM t GROUP BY c", "a ", "a", true},
		{"SELECT c FROM t", "ab", "Ab", false},
		{"SELECT MIN(c) FROM t", "ab", "b", false},
	} {
		d := answer.DiffRows([][]answer.Value{{answer.Value(test.a)}}, [][]answer.Value{{answer.Value(test.b)}})
		if got := Represents(test.sql, d); got != test.want {
			t.Errorf("%s: %q and %q: %v", test.sql, test.a, test.b, got)
		}
	}
}

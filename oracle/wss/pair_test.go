package wss

import (
	"strings"
	"testing"

	"wirecheck/answer"
)

// TestPair: what became of each row, where that is certain.
func TestPair(t *testing.T) {
	rows := func(text string) (out [][]answer.Value) {
		for _, r := range strings.Fields(text) {
			var row []answer.Value
			for _, v := range strings.Split(r, "|") {
				row = append(row, answer.Value(v))
			}
			out = append(out, row)
		}
		return out
	}
	text := func(rows [][]answer.Value) string {
		var words []string
		for _, r := range rows {
			var values []string
			for _, v := range r {
				values = append(values, string(v))
			}
			words = append(words, strings.Join(values, "|"))
		}
		return strings.Join(words, " ")
	}
	for _, test := range []struct {
		name                 string
		key                  []int
		missing, extra       string
		wantInto, wantOthers string
	}{
		{"a single row needs no key", nil, "1|a", "2|b", "2|b", ""},
		{"by the key", []int{0}, "1|a 2|a", "2|b 1|c", "1|c 2|b", ""},
		{"by the key, with a new row", []int{0}, "1|a", "2|b 1|c", "1|c", "2|b"},
		{"only new rows", []int{0}, "", "2|b", "", "2|b"},
		{"a changed key is not certain", []int{0}, "1|a 2|a", "1|b 3|a", "", ""},
		{"several without a key", nil, "1|a 2|a", "1|b 2|b", "", ""},
	} {
		m := &model{scene: scene{names: [][]int{test.key}}}
		into, others := m.pair(0, answer.Difference{Missing: rows(test.missing), Extra: rows(test.extra)})
		if text(into) != test.wantInto || text(others) != test.wantOthers {
			t.Errorf("%s: %q became %q, new %q; want %q, new %q", test.name, test.missing, text(into), text(others), test.wantInto, test.wantOthers)
		}
	}
}

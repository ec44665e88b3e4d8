package suite

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/product"
)

// TestMarks: the matrix fits 80 columns whatever the scenarios are called, has a mark for each cell, and says below where the isolation oracle does
// not agree. Colours are for terminals alone.
func TestMarks(t *testing.T) {
	s := &backends.Instance{Engine: engine.Descriptor{Product: &product.Product{Name: "mariadb", Title: "MariaDB"}}, Version: "10.11"}
	var levels []product.Level
	for _, name := range product.LevelNames {
		levels = append(levels, product.Level{History: name})
	}
	specs := []*scenario.Spec{{Name: "dir/p4.spec"}, {Name: strings.Repeat("ä", 100) + ".spec"}}
	through, prevented := matrixCell{results: letThrough, oracle: "lost update", verdict: agrees}, matrixCell{results: "prevented: blocked"}
	wrong := matrixCell{results: letThrough, oracle: "nothing", verdict: disagrees, why: "a reason"}
	rows := [][]matrixCell{{through, prevented, wrong, {results: notMeant}, {results: "unknown: it broke"}}, {through, through, prevented, prevented, prevented}}
	for _, color := range []bool{false, true} {
		var out bytes.Buffer
		(&runner{o: Options{Color: color}}).marks(&out, s, levels, specs, rows)
		text := out.String()
		if color != strings.Contains(text, "\x1b[31m✗\x1b[0m") {
			t.Errorf("color %v:\n%s", color, text)
		}
		if color {
			continue
		}
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("a line is %d wide: %s", n, line)
			}
		}
		name := strings.Repeat(" ", maxName)
		for _, want := range []string{name + "  RU  RC  RR  SI  SER\n", "p4" + name[2:] + "  ✗   ✓   ✗   ·   ?\n", strings.Repeat("ä", maxName-1) + "…  ✗   ✗   ✓   ✓   ✓\n",
			"p4 at RR: let through; oracle: nothing; disagrees (a reason)\n", "p4 at SER: unknown: it broke\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
}

// TestQuiet: the first permutation of each kind is shown, and the last line numbers all.
func TestQuiet(t *testing.T) {
	for _, tt := range []struct {
		name, cases string // f found, w not as expected, u unknown, - nothing
		shown, want string
	}{
		{"some", "----fff-------", "5", "found in permutations 5, 6, 7 of 14"},
		{"one", "-f-", "2", "found in permutation 2 of 3"},
		{"many in a row", "ffffff-f", "1", "found in permutations 1 to 6, 8 of 8"},
		{"none", "---", "", "nothing found in 3 permutations"},
		{"of each kind", "-wuf-wuf", "2 3 4", "found in permutations 4, 8 of 8\nnot as expected in permutations 2, 6 of 8\nunknown in permutations 3, 7 of 8"},
	} {
		q, shown := quietly{on: true}, []string{}
		for i, c := range tt.cases {
			r := panel.CaseReport{N: i + 1}
			switch c {
			case 'f':
				r.Found = []string{"lost update"}
			case 'w':
				r.Wrong = []string{"expected none"}
			case 'u':
				r.Unknown = "why"
			}
			if q.shows(&r) {
				shown = append(shown, string(rune('1'+i)))
			}
		}
		if got := strings.Join(shown, " "); got != tt.shown || q.text(len(tt.cases)) != tt.want {
			t.Errorf("%s: shown %q, text %q; want %q and %q", tt.name, got, q.text(len(tt.cases)), tt.shown, tt.want)
		}
	}
}

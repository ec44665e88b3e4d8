package panel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// examined are the bugs of WriteCheck's exam (VLDB'25, table 3) that the papers name: those that it reports itself, and those of Troc that
// leave wrong data behind (section 6.5.1). By file in testdata/cases, with the product and the paper.
var examined = map[string][2]string{
	"tidb-42121":    {"tidb", "WriteCheck, figure 1"},
	"tidb-39976":    {"tidb", "WriteCheck, listing 3"},
	"tidb-42486":    {"tidb", "WriteCheck, listing 4"},
	"mariadb-30835": {"mariadb", "WriteCheck, figure 5"},
	"mysql-104833":  {"mysql", "Troc, table V"},
	"mariadb-27992": {"mariadb", "Troc, table V"},
	"mariadb-26643": {"mariadb", "Troc, table V"},
	"tidb-28092":    {"tidb", "Troc, table V"},
	"tidb-28095":    {"tidb", "Troc, table V"},
}

// TestExam executes what is known of WriteCheck's exam on the engines at hand, and prints the table of docs/lab/exam.md (make exam). A bug
// that a server shows at one of its levels must be found there.
func TestExam(t *testing.T) {
	t.Parallel()
	const none = "not on this machine"
	seen, found := map[string]string{}, map[string]map[string]bool{}
	for _, exam := range slices.Sorted(maps.Keys(examined)) {
		seen[exam] = none
		found[exam] = map[string]bool{}
		eachCase(t, "../../testdata/cases/"+exam+".spec", "wss,troc,txcheck", func(_ string, spec *scenario.Spec, target scenario.Target, d *Judgement) {
			if target.Engine != examined[exam][0] {
				return
			}
			r := d.Report(spec, target)
			if seen[exam] == none {
				seen[exam] = "not shown"
			}
			if !slices.Contains(r.Outcomes, "buggy") {
				return
			}
			seen[exam] = "shown"
			n := 0
			for _, v := range d.Rulings {
				if slices.ContainsFunc(v.Findings, func(f oracle.Finding) bool { return f.Kind == oracle.KindViolation }) {
					found[exam][v.Oracle] = true
					n++
				}
			}
			if n == 0 {
				t.Errorf("%s on %s at %s: it is there, and no oracle finds it", exam, target.Engine, target.Level)
			}
		})
	}
	var text strings.Builder
	fmt.Fprintf(&text, "| bug | in | product | here | found by |\n|---|---|---|---|---|\n")
	shown, hits := 0, 0
	for _, exam := range slices.Sorted(maps.Keys(examined)) {
		by := slices.Sorted(maps.Keys(found[exam]))
		if seen[exam] == "shown" {
			if shown++; len(by) > 0 {
				hits++
			}
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", exam, examined[exam][1], product.Of(examined[exam][0]).Title, seen[exam], strings.Join(by, ", "))
	}
	fmt.Fprintf(&text, "\n| | bugs | wirecheck | WriteCheck | DT² | TxCheck | Troc |\n|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(&text, "| the whole exam (table 3) | 29 | | 29 | 23 | 16 | 14 |\n| named in papers | %d | | | | | |\n| shown by the servers here | %d | %d | | | | |\n", len(examined), shown, hits)
	fmt.Println(text.String())
}

package hunt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/backends"
	"wirecheck/history/prose"
	"wirecheck/lab/scenario"
	"wirecheck/product"
	"wirecheck/report"
)

// bugReport is the text for an issue tracker.
func bugReport(s *backends.Instance, spec *scenario.Spec, b *Bug) string {
	var w strings.Builder
	f := b.Finding
	fmt.Fprintf(&w, "# %s %s: %s at %s\n\n", s.Engine.Title, s.Version, f.Title(), product.Of(s.Engine.Name).LevelTitle(b.Level))
	fmt.Fprintf(&w, "## Version and settings\n\n%s %s, every session at %s", s.Engine.Title, s.Version, product.Of(s.Engine.Name).LevelTitle(b.Level))
	if s.Server != nil {
		fmt.Fprintf(&w, "; a private server with wirecheck's settings for labs:")
		for _, name := range slices.Sorted(maps.Keys(s.Engine.LabSettings)) {
			fmt.Fprintf(&w, " `%s=%s`", name, s.Engine.LabSettings[name])
		}
	}
	fmt.Fprintf(&w, ".\n\n## How to repeat\n\n```sql\n")
	for _, block := range spec.Setup {
		fmt.Fprintf(&w, "/* setup */ %s;\n", block.SQL)
	}
	for _, session := range spec.Sessions {
		if session.Setup != nil {
			fmt.Fprintf(&w, "/* %s */ %s;\n", session.Name, session.Setup.SQL)
		}
	}
	for _, ps := range spec.Permutations[0].Steps {
		fmt.Fprintf(&w, "/* %s */ %s;\n", spec.Sessions[ps.Step.Session].Name, ps.Step.SQL)
	}
	for _, sql := range spec.Finals() {
		fmt.Fprintf(&w, "/* at the end */ %s;\n", sql)
	}
	fmt.Fprintf(&w, "```\n\nThe statements are submitted in this order; one that waits goes on as soon as it can.\n\n")
	var sides strings.Builder
	if f.Difference != nil {
		d := f.Difference
		if d.Step != "" {
			fmt.Fprintf(&w, "The statement that differs: `%s` (%s)\n\n", prose.Line(d.SQL, 0), d.Session)
		}
		report.Side(&sides, "Expected", d.Expected)
		report.Side(&sides, "Observed", d.Observed)
		fmt.Fprintf(&w, "```\n%s```\n\n## Why it is wrong\n\n%s\n", sides.String(), d.Rule)
		if len(d.Reference) > 0 {
			fmt.Fprintf(&w, "\nWhat is expected is what these statements give, one after the other:\n\n```sql\n%s\n```\n", strings.Join(d.Reference, "\n"))
		}
	} else {
		fmt.Fprintf(&w, "## Why it is wrong\n\n%s (%s), which the level promises to prevent (%s):\n\n", f.Title(), f.Class, f.Source)
		for _, e := range f.Edges {
			fmt.Fprintf(&w, "- %s\n", e.Text)
		}
	}
	if d := f.Difference; d != nil && d.Reason != "" {
		fmt.Fprintf(&w, "\nWhat probably happens: %s.", strings.TrimSuffix(d.Reason, "."))
		if f.Source != "" {
			fmt.Fprintf(&w, " Compare %s.", f.Source)
		}
		fmt.Fprintln(&w)
	}
	fmt.Fprintf(&w, "\nFound by wirecheck, oracle %s. `reproduce.sh` shows it with one command.\n", f.Oracle)
	return w.String()
}

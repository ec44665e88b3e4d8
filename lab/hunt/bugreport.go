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
	f := report.Printable(*b.Finding)
	const fence = "\x00" // stands for what no text below can end
	fmt.Fprintf(&w, "# %s %s: %s at %s\n\n", s.Engine.Title, s.Version, f.Title(), product.Of(s.Engine.Name).LevelTitle(b.Level))
	fmt.Fprintf(&w, "## Version and settings\n\n%s %s, every session at %s", s.Engine.Title, s.Version, product.Of(s.Engine.Name).LevelTitle(b.Level))
	if s.Server != nil {
		fmt.Fprintf(&w, "; a private server with wirecheck's settings for labs:")
		for _, name := range slices.Sorted(maps.Keys(s.Engine.LabSettings)) {
			fmt.Fprintf(&w, " `%s=%s`", name, s.Engine.LabSettings[name])
		}
	}
	fmt.Fprintf(&w, ".\n\n## How to repeat\n\n%ssql\n", fence)
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
	fmt.Fprintf(&w, "%s\n\nThe statements are submitted in this order; one that waits goes on as soon as it can.\n\n", fence)
	var sides strings.Builder
	if f.Difference != nil {
		d := f.Difference
		if d.Step != "" {
			fmt.Fprintf(&w, "The statement that differs: %s (%s)\n\n", code(prose.Line(d.SQL, 0)), plain.Replace(d.Session))
		}
		report.Side(&sides, "Expected", d.Expected)
		report.Side(&sides, "Observed", d.Observed)
		fmt.Fprintf(&w, "%s\n%s%s\n\n## Why it is wrong\n\n%s\n", fence, sides.String(), fence, d.Rule)
		if len(d.Reference) > 0 {
			fmt.Fprintf(&w, "\nWhat is expected is what these statements give, one after the other:\n\n%ssql\n%s\n%s\n", fence, strings.Join(d.Reference, "\n"), fence)
		}
	} else {
		fmt.Fprintf(&w, "## Why it is wrong\n\n%s (%s), which the level promises to prevent (%s):\n\n", f.Title(), f.Class, f.Source)
		for _, e := range f.Edges {
			fmt.Fprintf(&w, "- %s\n", plain.Replace(e.Text))
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
	return fenced(w.String())
}

// fenced puts fences of code where they are meant, longer than any that the text has.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return strings.ReplaceAll(text, "\x00", fence)
}

// code is a piece of code within a line of Markdown.
func code(text string) string {
	if !strings.Contains(text, "`") {
		return "`" + text + "`"
	}
	ticks := "``"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	return ticks + " " + text + " " + ticks
}

// plain are the characters that mean something in Markdown or HTML, which text of others must not.
var plain = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", "\\|")

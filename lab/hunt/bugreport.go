package hunt

import (
	"context"
	"fmt"
	"strings"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/lab/hunt/filing"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/report"
	"wirecheck/statement"
)

// bugReport is the text for an issue tracker.
func bugReport(s *backends.Instance, k *filing.Case, b *Bug) string {
	var w strings.Builder
	f := report.Printable(*b.Finding)
	d := f.Difference
	const fence = "\x00" // stands for what no text below can end
	fmt.Fprintf(&w, "# %s %s: %s\n\n", s.Engine.Title, s.Version, headline(&f))
	fmt.Fprintf(&w, "## Version and settings\n\n%s %s", s.Engine.Title, s.Version)
	if !k.Single() {
		fmt.Fprintf(&w, ", every session at %s", product.Of(s.Engine.Name).LevelTitle(b.Level))
	}
	w.WriteString(".\n")
	if lines := k.Settings.Lines(); len(lines) > 0 {
		fmt.Fprintf(&w, "\n%s\n%s\n%s\n", fence, strings.Join(lines, "\n"), fence)
	}
	if !s.Engine.Embedded && product.Of(s.Engine.Name).Changed == "" {
		w.WriteString("\nThe server does not tell which other settings differ from their defaults.\n")
	}
	fmt.Fprintf(&w, "\n## How to repeat\n\n%ssql\n%s%s\n\n", fence, k.Script(), fence)
	switch {
	case k.Single():
		writeParts(&w, d, fence)
	case d != nil:
		if d.Step != "" {
			fmt.Fprintf(&w, "The statement that differs: %s (%s)\n\n", code(prose.Line(d.SQL, 0)), plain.Replace(d.Session))
		}
		writeSides(&w, d, fence)
		if len(d.Reference) > 0 {
			fmt.Fprintf(&w, "\nWhat is expected is what these statements give, one after the other:\n\n%ssql\n%s\n%s\n", fence, strings.Join(d.Reference, "\n"), fence)
		}
	default:
		fmt.Fprintf(&w, "## Why it is wrong\n\n%s (%s), which the level promises to prevent (%s):\n\n", f.Title(), f.Class, f.Source)
		for _, e := range f.Edges {
			fmt.Fprintf(&w, "- %s\n", plain.Replace(e.Text))
		}
	}
	if d != nil && d.Reason != "" {
		fmt.Fprintf(&w, "\nWhat probably happens: %s.", strings.TrimSuffix(d.Reason, "."))
		if f.Source != "" {
			fmt.Fprintf(&w, " Compare %s.", f.Source)
		}
		fmt.Fprintln(&w)
	}
	if len(b.Elsewhere) > 0 {
		fmt.Fprint(&w, "\n## On other servers\n\n")
		for _, e := range b.Elsewhere {
			fmt.Fprintf(&w, "- %s %s, %s: %s\n", plain.Replace(e.Engine), plain.Replace(e.Version), e.Level, plain.Replace(e.Says))
		}
	}
	fmt.Fprintf(&w, "\nFound by wirecheck, oracle %s. `reproduce.sh` shows it with one command.\n", f.Oracle)
	return fenced(w.String())
}

// headline says what is wrong.
func headline(f *oracle.Finding) string {
	d := f.Difference
	if d == nil || d.SQL == "" {
		return f.Title()
	}
	title := f.Title()
	if contradictory(d) && f.Name == oracle.NameResult { // the statement may be right
		title = "answers that contradict each other"
	}
	return title + ": " + code(prose.Line(d.SQL, prose.Width))
}

// contradictory reports whether nobody knows which of the answers is wrong.
func contradictory(d *oracle.Difference) bool { return len(d.Parts) > 0 && len(d.Wrong()) == 0 }

// writeSides writes what was expected and what came.
func writeSides(w *strings.Builder, d *oracle.Difference, fence string) {
	var sides strings.Builder
	expected, observed := "Expected", "Observed"
	if contradictory(d) {
		expected, observed = "By one of the answers below", "By another one"
	}
	report.Side(&sides, expected, d.Expected)
	report.Side(&sides, observed, d.Observed)
	fmt.Fprintf(w, "%s\n%s%s\n\n## Why it is wrong\n\n%s\n", fence, sides.String(), fence, d.Rule)
}

// writeParts writes the statements that the rule compares, each with its answer.
func writeParts(w *strings.Builder, d *oracle.Difference, fence string) {
	if len(d.Wrong()) > 0 {
		fmt.Fprintf(w, "The statement that is wrong: %s\n\n", code(prose.Line(d.SQL, 0)))
	}
	writeSides(w, d, fence)
	for i := range d.Parts {
		part, also := &d.Parts[i], ""
		if part.Database != "" {
			also = ", in the " + part.Database + " database"
		}
		if part.Wrong {
			also += ", wrong"
		}
		fmt.Fprintf(w, "\n- %s%s:\n\n%s\n%s\n%s\n", code(prose.Line(part.SQL, 0)), also, fence, report.SideText(part.Answer), fence)
	}
	if d.Origin != "" {
		fmt.Fprintf(w, "\nThe type of %s is %s.\n", code(prose.Line(d.Origin, 0)), plain.Replace(d.Types))
	}
	if d.Opinion != "" {
		fmt.Fprintf(w, "\nWhich of them is wrong is known by a third opinion: %s.\n", opinion(d))
		return
	}
	fmt.Fprint(w, "\nWhich of them is wrong is not known; they contradict each other.\n")
}

// opinion is who says which part is wrong, with a query of its own as code.
func opinion(d *oracle.Difference) string {
	if before, rest, asked := strings.Cut(d.Opinion, " by SELECT "); asked {
		sql, says, told := strings.Cut(rest, schedule.Counted)
		if told {
			says = schedule.Counted + says
		}
		return plain.Replace(before) + " by " + code("SELECT "+prose.Line(sql, 0)) + plain.Replace(says)
	}
	return plain.Replace(d.Opinion)
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

// plain are the characters that mean something in Markdown or HTML within a line, which text of others must not.
var plain = strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", "&", "&amp;", "|", "\\|")

// file adds what a person needs who has no wirecheck: the report, a script, and a test in the product's own form.
func (h *hunter) file(ctx context.Context, files map[string]string, small *scenario.Spec, level product.Level, b *Bug, seen *schedule.Schedule) {
	if seen == nil { // in the submitted order
		seen = submitted(h.Instance, small, level)
	}
	finding := report.Printable(*b.Finding)
	k := &filing.Case{Engine: h.Instance.Engine, Level: level, Schedule: seen, Finals: small.Finals(), Finding: &finding, Settings: h.settings}
	files["report.md"] = bugReport(h.Instance, k, b)
	files["reproduce.sql"] = k.Script()
	if name, text := k.Test(); text != "" {
		files[name] = text
	}
	for _, name := range []string{"report.md", "reproduce.sql"} { // errors name the database
		files[name] = engine.RenameLabs(files[name], filing.Database)
	}
}

// submitted is a case that nobody executed, or that ended the server, as it was submitted.
func submitted(s *backends.Instance, spec *scenario.Spec, level product.Level) *schedule.Schedule {
	out := &schedule.Schedule{Product: s.Engine.Name, Version: s.Version, Level: level.History}
	for _, block := range spec.Setup {
		out.Setup = append(out.Setup, block.SQL)
	}
	for _, session := range spec.Sessions {
		k := schedule.Session{Name: session.Name}
		if session.Setup != nil {
			k.Setup = []statement.Statement{{Text: session.Setup.SQL}}
		}
		out.Sessions = append(out.Sessions, k)
	}
	for i, ps := range spec.Permutations[0].Steps {
		out.Steps = append(out.Steps, schedule.Step{Session: ps.Step.Session, Name: ps.Step.Name, Statement: statement.Statement{Text: ps.Step.SQL}, Sent: i + 1, Done: i + 1})
	}
	return out
}

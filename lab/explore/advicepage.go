package explore

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"wirecheck/history/prose"
	"wirecheck/report/page"
)

// HTML writes it as a page: a matrix of the shapes, with what each pair brought behind its cell.
func (a *Advice) HTML(w io.Writer) error {
	m := page.Matrix{Title: "Advice on " + a.Trace, Facts: []string{"times", "level", "nothing goes wrong at"}, Notes: []string{fmt.Sprintf("%s %s; %s; interleavings executed: %d, in %v",
		a.title, a.Version, prose.Count(a.Units, a.unit), a.Executed, a.Elapsed.Round(time.Second))}}
	if a.Undecided != "" {
		m.Notes = append(m.Notes, "undecided: "+a.Undecided)
	}
	for _, s := range a.Shapes {
		safe, why := a.Safe(s.Number)
		row := page.MatrixRow{Number: s.Number, Name: s.Name, Statements: slices.Clone(s.Statements), Facts: []string{fmt.Sprint(s.Count), s.Level, cmp.Or(safe, why)}}
		for _, o := range a.Shapes {
			row.Cells = append(row.Cells, a.cell(min(s.Number, o.Number), max(s.Number, o.Number)))
		}
		m.Rows = append(m.Rows, row)
	}
	all := *a
	all.room = true
	for _, p := range a.all() {
		if p.C != 0 && p.at(p.Level).Tried == 0 {
			continue
		}
		var text strings.Builder
		all.pair(&text, p)
		d := page.Detail{ID: "pair-" + p.id("-"), Title: a.names(p), Text: strings.TrimSpace(text.String())}
		for _, o := range p.Levels {
			if o.Shown != nil && o.Shown.Spec != "" {
				d.Scenarios = append(d.Scenarios, page.Named{Name: "scenario at " + o.Level, Text: o.Shown.Spec})
			}
		}
		m.Details = append(m.Details, d)
	}
	return m.Write(w)
}

// names are those of a pair's shapes.
func (a *Advice) names(p *Pair) string {
	var list []string
	for _, n := range p.shapes() {
		list = append(list, a.Shapes[n-1].Name)
	}
	return strings.Join(list, " with ")
}

// cell is what the matrix shows of a pair; an empty one, if the two share nothing.
func (a *Advice) cell(x, y int) page.Cell {
	i := slices.IndexFunc(a.Pairs, func(p *Pair) bool { return p.A == x && p.B == y })
	if i < 0 {
		return page.Cell{}
	}
	p := a.Pairs[i]
	c, o := page.Cell{ID: "pair-" + p.id("-")}, p.at(p.Level)
	switch {
	case o.Wrong > 0:
		c.Class, c.Text = "wrong", o.names()
	case o.Possible > 0:
		c.Class, c.Text = "possible", "possible: "+strings.Join(o.Maybe.Found, ", ")
	case o.Deadlock != nil:
		c.Class, c.Text = "possible", "deadlock"
	case o.safe():
		c.Class, c.Text = "safe", "nothing"
	default:
		c.Class, c.Text = "open", "not all tried"
	}
	return c
}

// Markdown writes the shapes as a table, and what goes wrong below it.
func (a *Advice) Markdown(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "## Advice on %s\n\n| # | shape | times | level | goes wrong with | nothing goes wrong at |\n|---|---|---|---|---|---|\n", a.Trace)
	cell := func(text string) string { return strings.ReplaceAll(prose.Line(text, 0), "|", `\|`) }
	for _, s := range a.Shapes {
		safe, why := a.Safe(s.Number)
		fmt.Fprintf(w, "| %d | %s | %d | %s | %s | %s |\n", s.Number, cell(s.Name), s.Count, s.Level, cmp.Or(strings.Join(a.wrongWith(s.Number), " "), "-"), cmp.Or(safe, why))
	}
	fmt.Fprintf(w, "\n```text\n%s```\n", strings.ReplaceAll(a.whole(), "```", "'''"))
	return w.Flush()
}

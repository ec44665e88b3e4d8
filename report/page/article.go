package page

import (
	"cmp"
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/report"
)

// entry is the finding in the index.
func (v *findingView) entry() g.Node {
	id := v.ID
	if v.Seen > 1 {
		id += fmt.Sprintf(" · %d×", v.Seen)
	}
	return h.Li(h.A(h.Href("#"+v.Anchor), h.B(g.Text(v.Title)), g.Text(" "), h.Span(g.Text(v.Tables)), g.Text(" "), h.Span(h.Class("id"), g.Text(id))))
}

// html is all that the page has of the finding.
func (v *findingView) html() g.Node {
	title := v.Anchor + "-title"
	about := g.Group{h.A(h.Href("#"+v.Anchor), g.Text(v.ID)), g.Text(" · " + v.Class)}
	if v.Seen > 0 {
		about = append(about, g.Text(" · seen "), h.Span(h.Class("seen"), g.Text(prose.Count(v.Seen, "time"))))
	}
	if v.First != "" {
		about = append(about, g.Text(" · first "+v.First))
	}
	return h.Article(h.Class("finding"), h.ID(v.Anchor), h.Aria("labelledby", title),
		h.Header(
			h.H2(h.ID(title), g.Text(v.Title+" "), h.Span(h.Class("on"), g.Text(v.Tables))),
			h.P(h.Class("about"), about)),
		h.P(h.Class("sentence"), g.Text(v.Words.Sentence)),
		given(v.Words.Effect, paragraph),
		h.P(h.Class("blame"), h.Span(h.Class("badge "+v.Blame.Kind), g.Text(v.Blame.Title)), g.Text(" "+cmp.Or(v.Words.Level, v.Blame.Text)),
			given(v.Source, func(s string) g.Node { return g.Group{g.Text(" "), h.Span(h.Class("soft"), g.Text("("+s+")"))} })),
		listed(v.Ladder, func(rungs []rung) g.Node {
			return h.Ol(h.Class("ladder"), h.Aria("label", "Isolation levels, the weakest first"), each(rungs, (*rung).html))
		}),
		given(v.Picture, v.figure),
		listed(v.Words.Acts, func(acts []report.Act) g.Node {
			return g.Group{h.H3(g.Text("What happened")), h.Ol(h.Class("acts"), each(acts, func(a *report.Act) g.Node {
				return h.Li(g.Text(a.Text), given(a.SQL, sqlCode))
			}))}
		}),
		given(v.Difference, (*differenceView).html),
		h.Div(h.Class("columns"), v.fixes(), v.again()),
		given(v.Scenario, func(s string) g.Node { return folded("The scenario", preCode(s)) }),
		g.Iff(len(v.Edges) > 0, v.whole),
	)
}

func (r *rung) html() g.Node {
	class := r.State
	if r.Ran {
		class += " ran"
	}
	return h.Li(h.Class(class), h.B(g.Text(r.Title)), g.Text(" "), h.Span(g.Text(r.Text)))
}

// figure is the picture with what explains it.
func (v *findingView) figure(d *lanes) g.Node {
	return h.Figure(
		scroll("Picture of "+v.ID, d.svg()),
		h.FigCaption(g.Text("Time runs down. Each numbered arrow leads from the transaction that must have come first; together they lead in a circle, "+
			"so no order explains the results. A dashed arrow leads from a read to the write that it did not see.")),
		h.Div(h.Class("look"), h.ID(v.Anchor+"-look"), h.Aria("live", "polite"),
			h.P(h.Class("hint"), g.Text("Choose a statement or an arrow to see it whole. The arrow keys move from one to the next."))))
}

func (v *findingView) fixes() g.Node {
	return listed(v.Remedies, func(remedies []oracle.Remedy) g.Node {
		return h.Section(h.H3(g.Text("Fix: one of these")), h.Ol(each(remedies, func(r *oracle.Remedy) g.Node {
			return h.Li(g.Text(r.Text), given(r.SQL, sqlCode), given(r.Cost, func(c string) g.Node { return h.Span(h.Class("cost"), g.Text("Cost: "+c)) }))
		})))
	})
}

// again is where the finding was found, how to see it again, and how to say that it is known.
func (v *findingView) again() g.Node {
	if len(v.Again)+len(v.Where) == 0 && v.Known == "" {
		return nil
	}
	return h.Section(
		listed(v.Where, func(places []string) g.Node { return g.Group{h.H3(g.Text("Found in")), h.Ul(each(places, item))} }),
		listed(v.Again, func(commands []string) g.Node {
			return g.Group{h.H3(g.Text("Show it again")), each(commands, func(c *string) g.Node { return preCode(*c) })}
		}),
		given(v.Known, func(entry string) g.Node {
			return g.Group{h.H3(g.Text("Ignore it")), h.P(g.Text("In the file that "), h.Code(g.Text("--baseline")), g.Text(" names:")), preCode(entry)}
		}))
}

// whole is what the picture has too little room for, and the proof.
func (v *findingView) whole() g.Node {
	return g.Group{
		h.Details(h.Class("whole"), h.Summary(g.Text("Statements and arrows in full")),
			each(v.Statements, (*statementView).html),
			each(v.Edges, func(e *edgeView) g.Node {
				return h.Div(h.Class("part edge"), h.ID(e.ID), h.H4(g.Textf("Arrow %s: %s", e.Number, e.Order)), paragraph(e.Text+"."), soft("The first one "+e.Kind+"."))
			})),
		folded("Proof ("+v.Words.Shape+")", h.Ul(each(v.Words.Who, item)), h.Ol(each(v.Words.Argument, item))),
	}
}

func (s *statementView) html() g.Node {
	return h.Div(h.Class(fmt.Sprintf("part h%d", s.Hue)), h.ID(s.ID), h.H4(g.Text(s.Name)),
		given(s.SQL, preCode),
		given(s.Left, func(n int) g.Node {
			return soft(prose.Count(n, "character") + " left out of the middle; --format json has the whole text.")
		}),
		listed(s.Facts, func(facts []string) g.Node { return h.Ul(each(facts, item)) }),
		listed(s.Tags, func(tags []string) g.Node { return soft(strings.Join(tags, ", ")) }),
		given(s.Code, func(place string) g.Node { return h.P(g.Text("Sent by "), h.Code(g.Text(place))) }),
		given(s.At, soft))
}

func (d *differenceView) html() g.Node {
	compared := func(name string, s *side) g.Node { return h.Section(h.H3(g.Text(name)), s.html()) }
	return g.Group{
		given(d.Place, func(p string) g.Node { return h.H3(g.Text(p)) }),
		given(d.SQL, preCode),
		h.Div(h.Class("columns sides"), compared("Expected", &d.Expected), compared("Observed", &d.Observed)),
		given(d.Reason, paragraph),
		given(d.Repeated, soft),
		listed(d.Reference, func(steps []string) g.Node {
			return folded("The execution that gave what was expected", h.Ol(each(steps, func(s *string) g.Node { return h.Li(sqlCode(*s)) })))
		}),
	}
}

func (s *side) html() g.Node {
	none := "no rows"
	if s.Both > 0 {
		none = "nothing more"
	}
	return g.Group{
		given(s.Text, paragraph),
		g.Iff(len(s.Columns)+len(s.Rows) > 0, func() g.Node {
			return scroll("Rows", h.Table(
				listed(s.Columns, func(names []string) g.Node { return heads(names) }),
				h.TBody(
					each(s.Rows, func(r *sideRow) g.Node {
						return h.Tr(g.If(r.Differs, h.Class("differs")), each(r.Values, func(value *string) g.Node { return h.Td(g.Text(*value)) }))
					}),
					g.If(len(s.Rows) == 0, h.Tr(h.Td(h.ColSpan(fmt.Sprint(len(s.Columns))), g.Text(none)))))))
		}),
		given(s.Both, func(n int) g.Node { return soft("besides " + prose.Count(n, "row") + " that both have") }),
		given(s.More, func(n int) g.Node { return soft(prose.Count(n, "row") + " left out") }),
	}
}

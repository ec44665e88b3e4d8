package page

import (
	"fmt"
	"io"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"wirecheck/history/prose"
)

// The pages are made of nodes, not of text: what a node is given as text or as the value of an attribute is escaped, whatever it holds. Only
// style and scripts, which are parts of the program, are written as they are. (html/template would do the same. But it looks up methods by name,
// and a program that does so keeps all methods of all types: 9 MB.)

// render writes a node whole or not at all.
func render(w io.Writer, n g.Node) error {
	_, err := io.WriteString(w, textOf(n))
	return err
}

// textOf is a node as text.
func textOf(n g.Node) string {
	var b strings.Builder
	_ = n.Render(&b) // a strings.Builder gives no error
	return b.String()
}

// document is a whole page.
func document(f *frame, title string, body ...g.Node) g.Node {
	if title != "" {
		title += " · "
	}
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(f.Policy)),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("referrer"), h.Content("no-referrer")),
			h.TitleEl(g.Text(title+"wirecheck")),
			h.StyleEl(g.Raw(f.Style)),
		),
		h.Body(body...),
	))
}

// alonePage is a page without an index.
func alonePage(f *frame, title string, body ...g.Node) g.Node {
	return document(f, title, h.Class("alone"), h.Main(h.H1(g.Text(title)), g.Group(body)))
}

// each makes a node of each thing, a line each.
func each[T any](list []T, node func(*T) g.Node) g.Node {
	out := make(g.Group, 0, 2*len(list))
	for i := range list {
		out = append(out, node(&list[i]), g.Raw("\n"))
	}
	return out
}

// given makes a node of what is not its type's zero value.
func given[T comparable](v T, node func(T) g.Node) g.Node {
	var zero T
	return g.Iff(v != zero, func() g.Node { return node(v) })
}

// listed makes a node of a list that is not empty.
func listed[T any](list []T, node func([]T) g.Node) g.Node {
	return g.Iff(len(list) > 0, func() g.Node { return node(list) })
}

func paragraph(text string) g.Node { return h.P(g.Text(text)) }
func soft(text string) g.Node      { return h.P(h.Class("soft"), g.Text(text)) }
func item(text *string) g.Node     { return h.Li(g.Text(*text)) }
func sqlCode(sql string) g.Node    { return h.Code(h.Class("sql"), g.Text(sql)) }

// pre is text as it is. Who has no mouse can scroll it.
func pre(what g.Node) g.Node { return h.Pre(h.TabIndex("0"), what) }

func preCode(text string) g.Node { return pre(h.Code(g.Text(text))) }

// folded is what a reader unfolds.
func folded(summary string, what ...g.Node) g.Node {
	return h.Details(h.Summary(g.Text(summary)), g.Group(what))
}

// scroll is what scrolls by itself, as it may be wide.
func scroll(label string, what ...g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.TabIndex("0"), h.Role("region"), h.Aria("label", label), g.Group(what))
}

// heads is the first row of a table.
func heads(names []string, more ...g.Node) g.Node {
	return h.THead(h.Tr(each(names, func(name *string) g.Node { return columnHead(*name) }), g.Group(more)))
}

func columnHead(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) }

// grid is a table of texts; none is said where it has no rows.
func grid[T any](label string, names []string, rows []T, none string, cells func(*T) []any) g.Node {
	body := each(rows, func(r *T) g.Node {
		var tds g.Group
		for _, c := range cells(r) {
			if n, ok := c.(g.Node); ok {
				tds = append(tds, h.Td(n))
			} else {
				tds = append(tds, h.Td(g.Text(fmt.Sprint(c))))
			}
		}
		return h.Tr(tds)
	})
	if len(rows) == 0 {
		body = h.Tr(h.Td(h.ColSpan(fmt.Sprint(len(names))), g.Text(none)))
	}
	return scroll(label, h.Table(heads(names), h.TBody(body)))
}

// html is the page of findings.
func (v *pageView) html() g.Node {
	return document(&v.frame, v.Title,
		h.A(h.Class("skip"), h.Href("#findings"), g.Text("To the findings")),
		h.Nav(h.Aria("label", "Findings"), h.ID("index"), v.list()),
		h.Main(h.ID("findings"),
			given(v.Live, func(l *Live) g.Node {
				return g.Group{
					h.P(h.Class("news"), h.ID("news"), h.Role("status")),
					h.Section(h.Class("text"), h.ID("live"), h.Aria("label", "The proxy now"), l.html()),
				}
			}),
			each(v.Findings, (*findingView).html),
			g.If(len(v.Findings) == 0, h.P(h.Class("nothing"), h.ID("nothing"), g.Text("No findings."))),
			given(v.Text, func(text string) g.Node { return h.Section(h.Class("text"), pre(g.Text(text))) }),
		),
		h.Script(g.Raw(v.Script)),
	)
}

// manyFindings is from how many findings on an index can be filtered.
const manyFindings = 8

// list is the index.
func (v *pageView) list() g.Node {
	return g.Group{
		h.H1(g.Text("wirecheck")),
		given(v.Title, soft),
		h.P(h.Class("verdict"), g.Text(v.Verdict)),
		given(v.Bar, (*bar).html),
		each(v.Notes, func(n *string) g.Node { return h.P(h.Class("note"), g.Text(*n)) }),
		g.If(v.Live != nil || len(v.Findings) > manyFindings,
			h.P(h.Label(g.Text("Filter "), h.Input(h.Type("search"), h.ID("filter"), h.AutoComplete("off"))))),
		each(v.Groups, func(of *group) g.Node {
			return g.Group{h.H2(g.Textf("%s (%d)", of.Title, len(of.Findings))), h.Ul(each(of.Findings, func(f **findingView) g.Node { return (*f).entry() }))}
		}),
	}
}

func (b *bar) html() g.Node {
	part := func(class string, to float64) g.Node {
		return g.El("rect", attributes("class", class, "width", to, "height", 4))
	}
	return g.El("svg", attributes("class", "bar", "viewBox", "0 0 100 4", "preserveAspectRatio", "none", "role", "img",
		"aria-label", fmt.Sprintf("%d statements seen exactly, %d approximately, %d not", b.Exact, b.Approximate, b.Opaque)),
		part("opaque", b.Total), part("approximate", b.ApproximateTo), part("exact", b.ExactTo))
}

// html is the state of the proxy.
func (l *Live) html() g.Node {
	return g.Group{
		h.Dl(h.Class("facts"), each(l.Facts, func(f *Fact) g.Node { return h.Div(h.Dt(g.Text(f.Name)), h.Dd(g.Text(f.Value))) })),
		h.Details(h.ID("live-open"), g.Attr("open"), h.Summary(g.Textf("Open transactions (%d)", len(l.Open))),
			grid("Open transactions", []string{"session", "who", "level", "since", "statements", "the last one"}, l.Open, "none", func(o *OpenTransaction) []any {
				return []any{o.Session, o.Who, o.Level, o.Since, o.Statements, h.Code(g.Text(o.SQL))}
			})),
		h.Details(h.ID("live-sessions"), h.Summary(g.Textf("Sessions (%d)", l.SessionCount)),
			grid("Sessions", []string{"session", "who", "server", "since"}, l.Sessions, "none", func(s *Session) []any {
				return []any{s.Session, s.Who, s.Server, s.Since}
			})),
		h.Details(h.ID("live-coverage"), h.Summary(g.Text("What wirecheck sees, by table and by reason")), h.Div(h.Class("columns"),
			grid("Tables", []string{"table", "row versions seen exactly", "approximately"}, l.Tables, "none yet", func(t *Table) []any {
				return []any{t.Table, t.Exact, t.Approximate}
			}),
			grid("Reasons", []string{"statements", "why not exactly"}, l.Reasons, "none", func(r *Reason) []any { return []any{r.N, r.Why} }))),
	}
}

// html is the page of a trace.
func (v *traceView) html() g.Node {
	about := "Time runs down; each session has a column."
	if v.Left > 0 {
		about += fmt.Sprintf(" %s left out: --from, --to and --session choose others.", prose.Count(v.Left, "later line"))
	}
	empty := func(n int) g.Node { return g.If(n > 0, h.Td(h.ColSpan(fmt.Sprint(n)))) }
	return alonePage(&v.frame, v.Title, soft(about), scroll("Sessions", h.Table(h.Class("trace"), heads(append([]string{"time"}, v.Heads...)), h.TBody(
		each(v.Moments, func(m *momentView) g.Node {
			class := fmt.Sprintf("part h%d", m.Hue)
			if m.Failed {
				class += " failed"
			}
			return h.Tr(h.Th(h.Scope("row"), g.Text(m.Time)), empty(m.Before), h.Td(h.Class(class),
				g.If(m.Shared, g.Group{h.B(g.Textf("session %d", m.Session)), g.Text(" ")}), h.Code(g.Text(m.Text))), empty(m.After))
		}),
		g.If(len(v.Moments) == 0, h.Tr(h.Td(g.Text("nothing")))),
	))))
}

// html is the page of a matrix.
func (m *Matrix) html(f *frame) g.Node {
	return alonePage(f, m.Title,
		each(m.Notes, func(n *string) g.Node { return soft(*n) }),
		scroll("Shape by shape", h.Table(h.Class("matrix"),
			heads(append([]string{"#", "shape"}, m.Facts...), each(m.Rows, func(r *MatrixRow) g.Node { return columnHead(fmt.Sprint(r.Number)) })),
			h.TBody(each(m.Rows, (*MatrixRow).html)))),
		each(m.Details, func(d *Detail) g.Node {
			return h.Section(h.Class("text"), h.ID(d.ID), h.Aria("labelledby", d.ID+"-title"),
				h.H2(h.ID(d.ID+"-title"), g.Text(d.Title)), pre(g.Text(d.Text)),
				each(d.Scenarios, func(s *Named) g.Node { return folded(s.Name, pre(g.Text(s.Text))) }))
		}))
}

func (r *MatrixRow) html() g.Node {
	return h.Tr(h.Th(h.Scope("row"), g.Text(fmt.Sprint(r.Number))),
		h.Td(folded(r.Name, each(r.Statements, func(s *string) g.Node { return g.Group{h.Code(g.Text(*s)), h.Br()} }))),
		each(r.Facts, func(f *string) g.Node { return h.Td(g.Text(*f)) }),
		each(r.Cells, func(c *Cell) g.Node {
			return h.Td(h.Class(c.Class), g.If(c.ID != "", h.A(h.Href("#"+c.ID), g.Text(c.Text))))
		}))
}

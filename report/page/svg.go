package page

import (
	"fmt"

	g "maragu.dev/gomponents"

	"wirecheck/history/prose"
)

// attributes are names and values in turn.
func attributes(pairs ...any) g.Node {
	out := make(g.Group, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, g.Attr(fmt.Sprint(pairs[i]), fmt.Sprint(pairs[i+1])))
	}
	return out
}

// svg is the picture as a part of a page.
func (d *lanes) svg() g.Node {
	class := "picture"
	if len(d.Lanes) > 3 {
		class += " many"
	}
	return picture(class, d.Width, d.Height, "group", fmt.Sprintf("The transactions as lanes, time running down: %s, %s",
		prose.Count(len(d.Boxes), "statement"), prose.Count(len(d.Arrows), "arrow")), d.drawing())
}

func picture(class string, width, height int, role, label string, what ...g.Node) g.Node {
	return g.El("svg", attributes("class", class, "xmlns", "http://www.w3.org/2000/svg", "width", width, "height", height,
		"viewBox", fmt.Sprintf("0 0 %d %d", width, height), "role", role, "aria-label", label), g.Raw("\n"), g.Group(what))
}

// svg is the picture as a file of its own.
func (v *aloneView) svg() g.Node {
	return g.Group{
		picture("picture", v.Width, v.Height, "img", v.Title+": "+v.Sentence,
			g.El("style", g.Raw("\n"+v.Style)),
			g.El("rect", attributes("class", "card", "x", "0.5", "y", "0.5", "width", v.CardWidth, "height", v.CardHeight, "rx", 8)), g.Raw("\n"),
			each(v.Lines, func(l *line) g.Node { return l.svg() }),
			g.El("g", attributes("transform", fmt.Sprintf("translate(%d,%d)", v.ShiftX, v.ShiftY)), g.Raw("\n"), v.Picture.drawing())),
		g.Raw("\n"),
	}
}

// svg is the line; more are attributes besides.
func (l *line) svg(more ...any) g.Node {
	return g.El("text", attributes("class", l.Class, "x", l.X, "y", l.Y), attributes(more...), g.Text(l.Text))
}

// drawing is what the picture shows.
func (d *lanes) drawing() g.Node {
	tip := g.El("marker", attributes("id", d.ID+"-tip", "viewBox", "0 0 10 10", "refX", 9, "refY", 5, "markerWidth", 6, "markerHeight", 6, "orient", "auto"),
		g.El("path", attributes("class", "tip", "d", "M0,0 L10,5 L0,10 z")))
	return g.Group{
		g.El("defs", tip), g.Raw("\n"),
		each(d.Lanes, (*lane).svg),
		each(d.Marks, (*mark).svg),
		each(d.Boxes, func(b *box) g.Node { return b.svg(d.Alone) }),
		each(d.Arrows, func(a *arrow) g.Node { return a.svg(d.Alone, d.ID) }),
	}
}

func (l *lane) svg() g.Node {
	return g.El("g", attributes("class", fmt.Sprintf("h%d", l.Hue), "aria-hidden", true),
		g.El("line", attributes("class", "rail", "x1", l.X, "x2", l.X, "y1", l.Top, "y2", l.Bottom)),
		g.Map(l.Head, func(head line) g.Node { return head.svg("text-anchor", "middle") }))
}

func (m *mark) svg() g.Node {
	group := func(what ...g.Node) g.Node {
		return g.El("g", attributes("class", fmt.Sprintf("h%d %s", m.Hue, m.Kind), "aria-hidden", true), g.Group(what))
	}
	if m.Kind == "answered" || m.Kind == "begin" {
		return group((&line{"note", m.X, m.TextY, m.Text}).svg())
	}
	return group(g.El("rect", attributes("class", "pill", "x", m.Left, "y", m.Y, "width", m.Width, "height", 24, "rx", 12)),
		(&line{"pilltext", m.X, m.TextY, m.Text}).svg("text-anchor", "middle"))
}

// svg is the statement. In a page it leads to its full text; alone, it leads nowhere.
func (b *box) svg(alone bool) g.Node {
	class := fmt.Sprintf("h%d", b.Hue)
	if b.Unseen {
		class += " unseen"
	}
	place := attributes("x", b.X, "y", b.Y, "width", b.W, "height", b.H)
	shown := g.Group{
		g.If(b.Answered > 0, g.El("line", attributes("class", "pending", "x1", b.PendingX, "x2", b.PendingX, "y1", b.Y, "y2", b.Answered))),
		g.El("rect", attributes("class", "shape"), place, attributes("rx", 6)),
		g.El("svg", place, g.Map(b.Lines, func(l line) g.Node { return l.svg() })),
	}
	if alone {
		return g.El("g", attributes("class", class), shown)
	}
	return g.El("a", attributes("class", "statement "+class, "href", "#"+b.ID, "id", b.ID+"-box", "aria-label", b.Name), shown)
}

// svg is the arrow. In a page it leads to what it means, and a wider one below makes it easy to hit.
func (a *arrow) svg(alone bool, picture string) g.Node {
	class := "arrow"
	if a.Anti {
		class += " anti"
	}
	shown := g.Group{
		g.El("path", attributes("d", a.Path, "marker-end", "url(#"+picture+"-tip)")),
		g.El("circle", attributes("class", "number", "cx", a.X, "cy", a.Y, "r", 11)),
		(&line{"digits", a.X, a.TextY, a.Number}).svg("text-anchor", "middle"),
	}
	if alone {
		return g.El("g", attributes("class", class), shown)
	}
	return g.El("a", attributes("class", class, "href", "#"+a.ID, "id", a.ID+"-arrow", "data-from", a.From, "data-to", a.To, "aria-label", a.Name),
		g.El("path", attributes("class", "wide", "d", a.Path)), shown)
}

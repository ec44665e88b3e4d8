package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/report"
)

// lanes is the picture of a finding: a lane for each transaction, time running down, the statements as boxes, and the cycle as numbered arrows.
type lanes struct {
	ID            string
	Alone         bool // not part of a page: nothing leads from it
	Width, Height int
	Lanes         []lane
	Boxes         []box
	Marks         []mark
	Arrows        []arrow
}

type lane struct {
	X, Top, Bottom, Hue int
	Head                []line // label, client, level
}

// line is a line of text.
type line struct {
	Class string
	X, Y  int
	Text  string
}

// box is a statement. It spans from the moment it was sent; Answered is the place of its answer, where others did something meanwhile.
type box struct {
	ID, Name        string
	X, Y, W, H, Hue int
	Lines           []line
	Answered        int // 0: before anything else happened
	PendingX        int
	Unseen          bool

	sql, facts           []string
	at, to               uint64
	txn, n               int
	left, right, attachY int // arrows that are attached at a side
}

// mark is where a transaction begins or ends.
type mark struct {
	X, Y, Hue          int
	TextY, Left, Width int
	Text               string
	Kind               string // begin, commit, rollback
}

type arrow struct {
	ID, Name, Path, Number string
	X, Y, TextY            int    // of the number
	Order                  string // "T1 before T2"
	Anti                   bool
	From, To               string // boxes
}

const (
	headHeight  = 64
	lineHeight  = 16
	boxPadding  = 8
	gap         = 10
	markHeight  = 24
	gutter      = 96
	hues        = 6
	charWidth   = 7.3 // of the statements' font
	smallHeight = 18
	stagger     = 22
)

// boxWidth is narrower where there are many lanes.
func boxWidth(lanes int) int {
	switch {
	case lanes <= 2:
		return 410
	case lanes <= 4:
		return 300
	case lanes <= 8:
		return 240
	}
	return 210
}

// point is a moment in the picture.
type point struct {
	at   uint64
	rank int // among those of one tick
	txn  int
	box  *box // of sent and answered
}

const (
	begun = iota
	sent
	answered
	ended
)

// draw lays the picture out. The finding is printable, id distinguishes it on the page.
func draw(f *oracle.Finding, w *report.Words, id string) *lanes {
	if len(f.Transactions) == 0 {
		return nil
	}
	d := &lanes{ID: id}
	width := boxWidth(len(f.Transactions))
	boxes, points := collect(f, w, id, width)
	x := func(txn int) int { return 8 + width/2 + txn*(width+gutter) }
	for i := range f.Transactions {
		t := &f.Transactions[i]
		d.Lanes = append(d.Lanes, lane{X: x(i), Top: headHeight - 8, Hue: i % hues, Head: head(t, x(i), width)})
	}
	y := headHeight
	// Where there are many lanes, boxes of different lanes overlap in height: their upper edges still show the order.
	step := func(txn, height int) {
		d.Lanes[txn].Bottom = y + height
		if len(d.Lanes) > 4 {
			height = min(height, stagger)
		}
		y += height
	}
	low := 0
	for i, p := range points {
		before := i > 0 && points[i-1].txn == p.txn
		if p.rank != answered || !before || points[i-1].box != p.box {
			y = max(y, d.Lanes[p.txn].Bottom)
		}
		switch p.rank {
		case begun:
			d.Marks = append(d.Marks, mark{X: x(p.txn) + 8, TextY: y + 12, Hue: p.txn % hues, Text: "BEGIN", Kind: "begin"})
			step(p.txn, smallHeight)
		case sent:
			b := p.box
			b.X, b.Y, b.W, b.Hue = x(b.txn)-width/2, y, width, b.txn%hues
			b.lay()
			step(p.txn, b.H+gap)
		case answered:
			if before && points[i-1].box == p.box {
				continue
			}
			p.box.Answered, p.box.PendingX = y+smallHeight, p.box.X+6
			d.Marks = append(d.Marks, mark{X: p.box.X + 12, TextY: y + smallHeight - 2, Hue: p.box.Hue, Text: "answered", Kind: "answered"})
			step(p.txn, smallHeight)
		case ended:
			text, kind := "COMMIT", "commit"
			switch f.Transactions[p.txn].Outcome {
			case history.OutcomeAborted:
				text, kind = "ROLLBACK", "rollback"
			case history.OutcomeCommitted:
			default:
				text, kind = "end not seen", "rollback"
			}
			pill := 34 + 6*len(text)
			d.Marks = append(d.Marks, mark{X: x(p.txn), Y: y, TextY: y + 16, Left: x(p.txn) - pill/2, Width: pill, Hue: p.txn % hues, Text: text, Kind: kind})
			step(p.txn, markHeight+gap)
		}
		low = max(low, d.Lanes[p.txn].Bottom)
	}
	for i := range d.Lanes {
		d.Lanes[i].Bottom -= gap
	}
	d.Height, d.Width = low+4, x(len(f.Transactions)-1)+width/2+8
	d.arrows(f, w, boxes, width)
	for _, b := range boxes {
		d.Boxes = append(d.Boxes, *b)
	}
	return d
}

// lay places the lines of the box.
func (b *box) lay() {
	b.H = 2*boxPadding + lineHeight*max(1, len(b.sql)+len(b.facts)) - 4
	for i, text := range slices.Concat(b.sql, b.facts) {
		class := "sql"
		if i >= len(b.sql) {
			class = "fact"
		}
		b.Lines = append(b.Lines, line{class, boxPadding, boxPadding + 11 + i*lineHeight, text})
	}
}

// head introduces a lane.
func head(t *oracle.Transaction, x, width int) (lines []line) {
	most := int(float64(width+gutter/2) / charWidth)
	who := append([]string{}, t.Tags...)
	for _, s := range []string{t.Client, t.User} {
		if s != "" && !slices.Contains(who, s) {
			who = append(who, s)
		}
	}
	level := product.Of(t.Engine).LevelTitle(t.Level)
	if t.Implicit {
		level = strings.TrimPrefix(level+", autocommit", ", ")
	}
	for i, text := range []string{fmt.Sprintf("%s · session %d", t.Label, t.Session), prose.Line(strings.Join(who, ", "), most), level} {
		lines = append(lines, line{[]string{"label", "note", "note"}[i], x, 14 + 16*i, text})
	}
	return lines
}

// collect makes the boxes, and the moments of the picture in order.
func collect(f *oracle.Finding, w *report.Words, id string, width int) (boxes []*box, points []point) {
	add := func(txn, n int) *box {
		for _, b := range boxes {
			if b.txn == txn && b.n == n {
				return b
			}
		}
		b := &box{txn: txn, n: n, ID: fmt.Sprintf("%s-%d-%d", id, txn+1, n), Unseen: true, at: cmp.Or(f.Transactions[txn].To, math.MaxUint64)}
		b.to = b.at
		boxes = append(boxes, b)
		return b
	}
	chars := int(float64(width-2*boxPadding) / charWidth)
	for i := range f.Transactions {
		t := &f.Transactions[i]
		for k := range t.Statements {
			s := &t.Statements[k]
			b := add(i, s.N)
			b.Unseen, b.at, b.to = false, s.From, s.To
			b.sql = twoLines(cmp.Or(s.SQL, s.Verb), chars)
		}
		if !t.Implicit && t.From != 0 {
			points = append(points, point{t.From, begun, i, nil})
		}
		if !t.Implicit && t.To != 0 {
			points = append(points, point{t.To, ended, i, nil})
		}
	}
	fact := func(txn, n int, text string) {
		if b := add(txn, n); !slices.Contains(b.facts, text) {
			b.facts = append(b.facts, text)
		}
	}
	for i := range f.Edges {
		e := &f.Edges[i]
		if !rows(e) {
			continue
		}
		from, to := deed(f, e, w.Rows[i])
		fact(e.From, e.FromStatement, from)
		fact(e.To, e.ToStatement, to)
	}
	for _, b := range boxes {
		t := &f.Transactions[b.txn]
		if b.Unseen {
			b.sql = []string{"a statement that was not captured"}
		}
		b.Name = fmt.Sprintf("%s, statement %d: %s; %s", t.Label, b.n, strings.Join(b.sql, " "), strings.Join(b.facts, ", "))
		if n := len(b.facts) - 3; n > 0 {
			b.facts = append(b.facts[:3], fmt.Sprintf("and %d more", n))
		}
		points = append(points, point{b.at, sent, b.txn, b}, point{b.to, answered, b.txn, b})
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank)) })
	slices.SortStableFunc(boxes, func(a, b *box) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.txn, b.txn)) })
	return boxes, points
}

// rows reports whether an edge is about rows, and so about statements.
func rows(e *oracle.Edge) bool {
	return e.Kind == oracle.EdgeWW || e.Kind == oracle.EdgeWR || e.Kind == oracle.EdgeRW
}

// deed says what both sides of an edge did with its row.
func deed(f *oracle.Finding, e *oracle.Edge, row string) (from, to string) {
	wrote := func(version string) string {
		if version == "deleted" {
			return "deleted " + row
		}
		return "wrote " + row + of(version)
	}
	read := "read " + row + of(cmp.Or(e.ToVersion, e.FromVersion))
	if e.Kind == oracle.EdgeRW {
		read = "read " + row + of(e.FromVersion)
	}
	if e.ByCondition() {
		verb, rows := e.Asked("rows")
		read = verb + " " + rows + e.FoundText()
	}
	switch e.Kind {
	case oracle.EdgeRW:
		return read, wrote(e.ToVersion)
	case oracle.EdgeWR:
		return wrote(e.FromVersion), read
	}
	return wrote(e.FromVersion), wrote(e.ToVersion)
}

func of(version string) string {
	if version == "" {
		return ""
	}
	return " · version " + version
}

// twoLines shortens a statement to two lines of a box.
func twoLines(sql string, chars int) []string {
	line := []rune(prose.Statement(sql, 2*chars-8))
	if len(line) <= chars {
		return []string{string(line)}
	}
	at := chars
	for i := chars; i > chars-12 && i > 0; i-- {
		if line[i] == ' ' {
			at = i
			break
		}
	}
	return []string{string(line[:at]), strings.TrimPrefix(string(line[at:]), " ")}
}

// arrows draws the edges, in the order of the cycle.
func (d *lanes) arrows(f *oracle.Finding, w *report.Words, boxes []*box, width int) {
	find := func(txn, n int) *box {
		for _, b := range boxes {
			if b.txn == txn && b.n == n {
				return b
			}
		}
		return nil
	}
	for i := range f.Edges {
		e := &f.Edges[i]
		a := arrow{
			ID: fmt.Sprintf("%s-e%d", d.ID, i+1), Number: fmt.Sprint(i + 1), Anti: e.Kind == oracle.EdgeRW,
			Order: f.Transactions[e.From].Label + " before " + f.Transactions[e.To].Label,
		}
		a.Name = fmt.Sprintf("arrow %d, %s: %s", i+1, a.Order, e.Text)
		y1, y2 := d.Lanes[e.From].Bottom-markHeight/2, d.Lanes[e.To].Top+8
		side := 1 // the arrow leaves to the right
		if e.To < e.From {
			side = -1
		}
		if from, to := find(e.From, e.FromStatement), find(e.To, e.ToStatement); rows(e) && from != nil && to != nil {
			y1, y2, a.From, a.To = from.attach(side), to.attach(-side), from.ID, to.ID
		}
		x1, x2 := d.Lanes[e.From].X+side*width/2, d.Lanes[e.To].X-side*width/2
		if e.From == e.To {
			x2 = x1
		}
		bend := max(gutter/2, (x2-x1)*side/2) * side
		c1, c2 := x1+bend, x2-bend
		if e.From == e.To {
			c2 = x2 + bend
		}
		a.Path = fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x1, y1, c1, y1, c2, y2, x2-2*side, y2)
		const t = 0.36 // near the beginning, so that the numbers of two arrows that cross stand apart
		bezier := func(p0, p1, p2, p3 int) int {
			const u = 1 - t
			return int(u*u*u*float64(p0) + 3*u*u*t*float64(p1) + 3*u*t*t*float64(p2) + t*t*t*float64(p3))
		}
		a.X, a.Y = bezier(x1, c1, c2, x2), bezier(y1, y1, y2, y2)
		a.TextY = a.Y + 4
		d.Arrows = append(d.Arrows, a)
	}
}

// attach gives the height for the next arrow at a side of the box.
func (b *box) attach(side int) int {
	n := &b.left
	if side > 0 {
		n = &b.right
	}
	*n++
	return b.Y + min(b.H-6, 14+(*n-1)*12)
}

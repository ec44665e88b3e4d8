package page

import (
	"io"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle"
)

// aloneView is what a picture that stands alone shows.
type aloneView struct {
	Width, Height, ShiftX, ShiftY int
	CardWidth, CardHeight         int
	Title, Sentence               string
	Style                         string
	Lines                         []line
	Picture                       *lanes
}

const aloneStyle = `.picture .card { fill: var(--page); stroke: var(--line); }
.picture .title { font-size: 18px; font-weight: 700; }
.picture .soft { fill: var(--soft); }
.picture .fix { fill: var(--green); font-weight: 600; }
`

// Picture writes the picture of one finding as an SVG file. A finding that has no transactions gives its words alone.
func Picture(w io.Writer, finding oracle.Finding) error {
	v := viewOf(&Item{Finding: finding}, "f")
	d := v.Picture
	if d == nil {
		d = &lanes{ID: "f", Width: 760}
	}
	d.Alone = true
	const margin, least = 16, 760
	a := aloneView{
		Width: max(d.Width, least) + 2*margin, Title: v.Title, Sentence: v.Words.Sentence, Picture: d,
		Style: file("colors.css") + file("picture.css") + aloneStyle,
	}
	y := 0
	say := func(class, text string, height int) {
		most := (a.Width - 2*margin) * 10 / 66
		for _, l := range wrap(prose.Line(text, 4*most), most) {
			y += height
			a.Lines = append(a.Lines, line{class, margin, y, l})
		}
	}
	say("title", v.Title, 30)
	about := v.Tables + " · " + v.Class + " · " + v.ID
	say("soft", strings.TrimPrefix(about, " · "), 20)
	say("", v.Words.Sentence, 22)
	for _, text := range []string{v.Words.Effect, v.Words.Level} {
		if text != "" {
			say("", text, 18)
		}
	}
	a.ShiftX, a.ShiftY = (a.Width-d.Width)/2, y+16
	top := y + 16 + d.Height
	y = top
	if len(v.Remedies) > 0 {
		fix := "Fix: " + v.Remedies[0].Text
		if sql := v.Remedies[0].SQL; sql != "" {
			fix += ": " + prose.Statement(sql, prose.Width)
		}
		say("fix", fix, 20)
	}
	a.Height = y + margin
	a.CardWidth, a.CardHeight = a.Width-1, a.Height-1
	return render(w, a.svg())
}

// wrap breaks a text into lines at blanks.
func wrap(text string, most int) (lines []string) {
	now := ""
	for _, word := range strings.Fields(text) {
		if now != "" && len([]rune(now))+1+len([]rune(word)) > most {
			lines, now = append(lines, now), ""
		}
		now = strings.TrimPrefix(now+" "+word, " ")
	}
	if now != "" {
		lines = append(lines, now)
	}
	return lines
}

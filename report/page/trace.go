package page

import (
	"fmt"
	"io"

	"wirecheck/history/prose"
)

// maxMoments is how many moments a page of a trace shows: a browser shows no more of them well.
const maxMoments = 3000

// Trace collects what a page of a trace shows: a column for each session, time running down.
type Trace struct {
	Title    string
	sessions []uint64
	columns  map[uint64]int
	moments  []moment
	left     int
}

// moment is what happened at one time in one session.
type moment struct {
	Time, Text string
	Session    uint64
	Column     int
	Failed     bool
}

// maxColumns is how many sessions have a column of their own. The others share the last one, where their numbers stand.
const maxColumns = 12

// Add adds what happened in a session. The text may hold whatever it likes.
func (t *Trace) Add(at string, session uint64, text string, failed bool) {
	if len(t.moments) == maxMoments {
		t.left++
		return
	}
	if t.columns == nil {
		t.columns = map[uint64]int{}
	}
	k, ok := t.columns[session]
	if !ok {
		k = min(len(t.sessions), maxColumns-1)
		t.columns[session] = k
		t.sessions = append(t.sessions, session)
	}
	shown, left := long(prose.Printable(text))
	if left > 0 {
		shown += fmt.Sprintf(" (%s left out)", prose.Count(left, "character"))
	}
	t.moments = append(t.moments, moment{at, shown, session, k, failed})
}

// traceView is what the page of a trace shows.
type traceView struct {
	frame
	Title   string
	Heads   []string
	Moments []momentView
	Left    int
}

type momentView struct {
	moment
	Hue, Before, After int // empty cells
	Shared             bool
}

// WriteTrace writes the page of a trace.
func WriteTrace(w io.Writer, t *Trace) error {
	v := traceView{frame: frameOf("page.js"), Title: prose.Printable(t.Title), Left: t.left}
	columns := min(len(t.sessions), maxColumns)
	for i := range columns {
		head := fmt.Sprintf("session %d", t.sessions[i])
		if i == maxColumns-1 && len(t.sessions) > maxColumns {
			head = "other sessions"
		}
		v.Heads = append(v.Heads, head)
	}
	for _, m := range t.moments {
		v.Moments = append(v.Moments, momentView{m, m.Column % hues, m.Column, columns - 1 - m.Column, m.Column == maxColumns-1 && len(t.sessions) > maxColumns})
	}
	return render(w, v.html())
}

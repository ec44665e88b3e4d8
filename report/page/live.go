package page

import (
	"bytes"
	"encoding/json"
	"io"

	"wirecheck/history/prose"
)

// Live is what a page shows of a proxy that runs. It is printable when Write and Update show it.
type Live struct {
	Facts        []Fact
	Open         []OpenTransaction
	SessionCount int
	Sessions     []Session
	Tables       []Table
	Reasons      []Reason
}

// Fact is one number with its name.
type Fact struct{ Name, Value string }

// OpenTransaction is a transaction that has not ended.
type OpenTransaction struct {
	Session           uint64
	Who, Level, Since string
	Statements        int
	SQL               string
}

// Session is a session that is open.
type Session struct {
	Session            uint64
	Who, Server, Since string
}

// Table says how many row versions of a table were seen.
type Table struct {
	Table              string
	Exact, Approximate int
}

// Reason says how many statements were not seen exactly for one reason.
type Reason struct {
	Why string
	N   int
}

// printable makes a copy of which every text can be printed.
func (l *Live) printable() *Live {
	p := *l
	p.Open, p.Sessions, p.Tables, p.Reasons = nil, nil, nil, nil
	for _, o := range l.Open {
		o.Who, o.Level, o.SQL = prose.Printable(o.Who), prose.Printable(o.Level), prose.Statement(o.SQL, prose.Width)
		p.Open = append(p.Open, o)
	}
	for _, s := range l.Sessions {
		s.Who, s.Server = prose.Printable(s.Who), prose.Printable(s.Server)
		p.Sessions = append(p.Sessions, s)
	}
	for _, t := range l.Tables {
		t.Table = prose.Printable(t.Table)
		p.Tables = append(p.Tables, t)
	}
	for _, r := range l.Reasons {
		r.Why = prose.Line(r.Why, 200)
		p.Reasons = append(p.Reasons, r)
	}
	return &p
}

// WriteLive writes the page of a proxy that runs. Its script asks "state?have=N" for what is new, and nothing else.
func WriteLive(w io.Writer, d Document, l *Live) error {
	v := d.view(0)
	v.frame, v.Live = frameOf("page.js", "live.js"), l.printable()
	v.Policy += "; connect-src 'self'"
	return render(w, v.html())
}

// Update writes what a page needs that has the first findings already: its parts that change, and the findings that are new. It is JSON.
func Update(w io.Writer, d Document, l *Live, have int) error {
	v := d.view(have)
	v.Live = l.printable()
	update := struct {
		Live  string            `json:"live"`
		Index string            `json:"index"`
		Have  int               `json:"have"`
		New   []string          `json:"new"`
		Names []string          `json:"names"` // of the new ones
		Seen  map[string]string `json:"seen"`
	}{Have: len(v.Findings), Seen: map[string]string{}}
	update.Live, update.Index = textOf(v.Live.html()), textOf(v.list())
	for i := range v.Findings {
		f := &v.Findings[i]
		if i >= have {
			update.New, update.Names = append(update.New, textOf(f.html())), append(update.Names, f.Title+" on "+f.Tables)
		} else if f.Seen > 1 {
			update.Seen[f.Anchor] = prose.Count(f.Seen, "time")
		}
	}
	text, err := json.Marshal(update)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, bytes.NewReader(text))
	return err
}

package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/report"
)

// maxSQL is how many characters of a statement a page holds. Of a longer one it shows the beginning and the end.
const maxSQL = 6000

// findingView is what a page shows of a finding.
type findingView struct {
	ID, Anchor, Title, Class, Tables string
	Seen                             int
	First                            string
	Words                            report.Words
	Blame                            blame
	Ladder                           []rung
	Picture                          *lanes
	Remedies                         []oracle.Remedy
	Source                           string
	Statements                       []statementView
	Edges                            []edgeView
	Difference                       *differenceView
	Where                            []string
	Again                            []string
	Scenario, Known                  string
}

// blame says who has to do something.
type blame struct{ Kind, Title, Text string }

// rung is an isolation level of the product, and what it does about the finding.
type rung struct {
	Title, State, Text string
	Ran                bool
}

type statementView struct {
	ID, Name, SQL string
	Left          int // characters that are left out
	Hue           int
	Facts         []string
	Tags          []string
	Code, At      string
}

type edgeView struct {
	ID, Number, Order, Kind, Text string
}

type differenceView struct {
	Rule, Place, SQL   string
	Expected, Observed side
	Reference          []string
	Reason, Repeated   string
}

// side is one of two results that are compared.
type side struct {
	Text    string
	Columns []string
	Rows    []sideRow
	Both    int // rows that are not shown, since both sides have them
	More    int // rows that are not shown, since there are so many
}

type sideRow struct {
	Values  []string
	Differs bool
}

// findings makes the views. A finding that was found in several places is shown once, with the places.
func (d *Document) findings(had int) []findingView {
	type same struct{ id, engine, level string }
	places := map[same]int{}
	count := map[string]int{}
	var out []findingView
	for i := range d.Items {
		item := &d.Items[i]
		key := same{item.Finding.ID, "", item.Finding.Level}
		if len(item.Finding.Transactions) > 0 {
			key.engine = item.Finding.Transactions[0].Engine
		}
		if k, ok := places[key]; ok && len(item.Where) > 0 {
			out[k].Where = append(out[k].Where, printables(item.Where)...)
			continue
		}
		count[item.Finding.ID]++
		anchor := item.Finding.ID
		if n := count[anchor]; n > 1 {
			anchor += fmt.Sprintf("-%d", n)
		}
		places[key] = len(out)
		if len(out) < had {
			out = append(out, entryOf(&item.Finding, anchor))
			continue
		}
		v := viewOf(item, anchor)
		if d.Known != nil {
			v.Known = prose.Lines(d.Known(&item.Finding))
		}
		out = append(out, v)
	}
	return out
}

// entryOf is what the index shows of a finding.
func entryOf(f *oracle.Finding, anchor string) findingView {
	v := findingView{ID: f.ID, Anchor: anchor, Title: prose.Printable(f.Title()), Class: string(f.Class), Tables: prose.Printable(strings.Join(f.Tables, ", ")), Seen: f.Seen, Blame: blameOf(f)}
	v.Title = strings.ToUpper(v.Title[:1]) + v.Title[1:]
	return v
}

func viewOf(item *Item, anchor string) findingView {
	f := new(report.Printable(item.Finding))
	v := entryOf(f, anchor)
	v.Ladder, v.Remedies, v.Source, v.Where, v.Again, v.Scenario = ladder(f), slices.Clone(f.Remedies), f.Source, printables(item.Where), printables(item.Again), prose.Lines(item.Scenario)
	for i := range v.Remedies {
		v.Remedies[i].SQL = prose.Statement(v.Remedies[i].SQL, maxSQL)
	}
	if f.FirstAt != 0 {
		v.First = clock(f.FirstAt)
	}
	if f.Difference != nil {
		v.Difference = differenceOf(f.Difference)
		v.Words.Sentence = v.Difference.Rule
		v.Tables = cmp.Or(v.Tables, f.Difference.Table)
		return v
	}
	v.Words = report.Tell(f)
	if len(f.Edges) == 0 {
		return v
	}
	v.Picture = draw(f, &v.Words, anchor)
	v.statements(f)
	for i := range f.Edges {
		e := &f.Edges[i]
		v.Edges = append(v.Edges, edgeView{v.Picture.Arrows[i].ID, v.Picture.Arrows[i].Number, v.Picture.Arrows[i].Order, kinds[e.Kind], e.Text})
	}
	return v
}

// kinds say what an edge is.
var kinds = map[oracle.EdgeKind]string{
	oracle.EdgeWW: "overwrote the other one's version (ww)", oracle.EdgeWR: "read the other one's version (wr)",
	oracle.EdgeRW: "read before the other one wrote (rw)", oracle.EdgeSO: "came first in the same session", oracle.EdgeRT: "ended before the other one began",
	oracle.EdgeRequest: "belongs to the same request",
}

// statements lists the picture's statements with all that is known of them.
func (v *findingView) statements(f *oracle.Finding) {
	for i := range v.Picture.Boxes {
		b := &v.Picture.Boxes[i]
		t := &f.Transactions[b.txn]
		s := statementView{ID: b.ID, Name: fmt.Sprintf("%s, session %d, statement %d", t.Label, t.Session, b.n), Hue: b.Hue, Facts: facts(f, v.Words.Rows, b.txn, b.n)}
		if b.Unseen {
			s.Name = fmt.Sprintf("%s, session %d, a statement that was not captured", t.Label, t.Session)
		}
		for k := range t.Statements {
			st := &t.Statements[k]
			if st.N != b.n {
				continue
			}
			s.SQL, s.Left = long(prose.Lines(st.SQL))
			s.Tags = st.Tags
			if file, line := st.Code(); line > 0 {
				s.Code = fmt.Sprintf("%s:%d", file, line)
			} else {
				s.Code = file
			}
			if st.At != 0 {
				s.At = clock(st.At)
			}
		}
		v.Statements = append(v.Statements, s)
	}
}

// facts say what a statement did with rows.
func facts(f *oracle.Finding, rowNames []string, txn, n int) (list []string) {
	add := func(text string) {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for i := range f.Edges {
		e := &f.Edges[i]
		if !rows(e) {
			continue
		}
		from, to := deed(f, e, rowNames[i])
		if e.From == txn && e.FromStatement == n {
			add(from)
		}
		if e.To == txn && e.ToStatement == n {
			add(to)
		}
	}
	return list
}

// long cuts the middle out of a text that is too long for a page.
func long(text string) (shown string, left int) {
	n := utf8.RuneCountInString(text)
	if n <= maxSQL {
		return text, 0
	}
	runes := []rune(text)
	return string(runes[:maxSQL/2]) + "\n ... \n" + string(runes[n-maxSQL/2:]), n - maxSQL
}

// blameOf says whose defect it is.
func blameOf(f *oracle.Finding) blame {
	if f.Difference != nil && f.Difference.Flaky {
		return blame{"unknown", "Not repeated", "It was not there each time the case was executed again."}
	}
	switch f.Kind {
	case oracle.KindViolation:
		return blame{"server", "Bug of the server", "The server does not do what it promises: report it to the vendor."}
	case oracle.KindPermitted:
		return blame{"permitted", "Documented", "The vendor documents that the server does so."}
	case oracle.KindUnknown:
		return blame{"unknown", "Possible only", "What wirecheck saw does not decide it."}
	}
	return blame{"application", "Bug of the application", "The server allows this at that level, so the application has to prevent it."}
}

// ladder lists the product's levels, the weakest first, with what each one does about the finding.
func ladder(f *oracle.Finding) (out []rung) {
	if len(f.Transactions) == 0 || f.Difference != nil {
		return nil
	}
	p := product.Of(f.Transactions[0].Engine)
	prevented := false
	for _, l := range p.Levels {
		r := rung{Title: p.LevelTitle(l.History), State: "allows", Text: "allows it"}
		prevented = prevented || f.PreventedBy != "" && l.History == f.PreventedBy
		for i := range f.Transactions {
			r.Ran = r.Ran || f.Transactions[i].Level == l.History
		}
		if prevented {
			r.State, r.Text = "prevents", "prevents it"
		}
		switch {
		case r.Ran && f.Promised:
			r.State, r.Text = "broken", "it ran here; promises to prevent it"
		case r.Ran && f.Level == "mixed" && prevented:
			r.Text = "some ran here; prevents it if all do"
		case r.Ran && f.Level == "mixed":
			r.Text = "some ran here; allows it"
		case r.Ran:
			r.Text = "it ran here; " + r.Text
		}
		out = append(out, r)
	}
	return out
}

func differenceOf(d *oracle.Difference) *differenceView {
	v := &differenceView{Rule: d.Rule, SQL: prose.Statement(d.SQL, maxSQL), Reason: d.Reason}
	switch {
	case d.Step != "":
		v.Place = fmt.Sprintf("Step %s of %s", d.Step, d.Session)
	case d.Table != "":
		v.Place = fmt.Sprintf("Table %s at the end", d.Table)
	}
	v.Expected, v.Observed = sideOf(&d.Expected, &d.Observed), sideOf(&d.Observed, &d.Expected)
	for _, line := range d.Reference {
		v.Reference = append(v.Reference, prose.Line(line, maxSQL))
	}
	if d.Attempts > 0 {
		v.Repeated = fmt.Sprintf("Seen again in %d of %s.", d.Reproduced, prose.Count(d.Attempts, "execution"))
	}
	return v
}

// maxRows is how many rows of a result a page shows.
const maxRows = 200

// sideOf marks the rows that the other side does not have.
func sideOf(s, other *oracle.Side) side {
	rowText := func(row []*string) string {
		var b strings.Builder
		for _, v := range row {
			if v == nil {
				b.WriteString("\x00")
			} else {
				fmt.Fprintf(&b, "%d:%s", len(*v), *v)
			}
		}
		return b.String()
	}
	has := map[string]int{}
	for _, row := range other.Rows {
		has[rowText(row)]++
	}
	v := side{Text: s.Text, Columns: s.Columns, Both: s.Omitted}
	for i, row := range s.Rows {
		if i == maxRows {
			v.More = len(s.Rows) - i
			break
		}
		r := sideRow{Differs: has[rowText(row)] == 0}
		has[rowText(row)]--
		for _, value := range row {
			if value == nil {
				r.Values = append(r.Values, "NULL")
			} else {
				r.Values = append(r.Values, prose.Line(*value, 200))
			}
		}
		v.Rows = append(v.Rows, r)
	}
	return v
}

func printables(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = prose.Printable(s)
	}
	return out
}

// clock prints a wall clock in UTC.
func clock(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000 UTC") }

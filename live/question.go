package live

import (
	"regexp"
	"strconv"
	"strings"

	"wirecheck/oracle"
	"wirecheck/proxy/record"
	"wirecheck/report"
)

// answers answers what a session's client asks: the list of findings, or one of them whole, without what the session may not see.
func (l *Checker) answers(session uint64, q record.Question) *record.Table {
	l.mu.Lock()
	defer l.mu.Unlock()
	reader := report.Reader{Session: session, Others: l.audience.others}
	if h := l.audience.sessions[session]; h != nil {
		reader = h.reader
	}
	var list []answerable
	seen := map[string]bool{}
	for _, f := range l.checker.Summary() {
		seen[f.ID] = true
		list = append(list, answerable{f, reader})
	}
	for _, n := range l.notices.list {
		if reader.Session = n.as(session); !seen[n.Finding.ID] {
			list = append(list, answerable{n.Finding, reader})
		}
	}
	if q.Explain {
		return explained(list, q.ID)
	}
	t := &record.Table{Columns: []string{"id", "finding", "tables", "seen"}}
	for i := range list {
		f := report.Printable(list[i].Finding)
		row := []string{f.ID, f.Title(), strings.Join(f.Tables, ", "), strconv.Itoa(f.Seen)}
		if q.Like == "" || like(q.Like, row[0]) || like(q.Like, row[1]) || like(q.Like, row[2]) {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// due are the warnings that wait for a session's answer. Most answers find none.
func (l *Checker) due(session uint64) []record.Warning {
	if l.audience.waiting.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.audience.due(session)
}

// answerable is a finding with who asks for it.
type answerable struct {
	oracle.Finding
	reader report.Reader
}

// explained is a finding line by line.
func explained(list []answerable, id string) *record.Table {
	t := &record.Table{Columns: []string{"wirecheck"}}
	text := "There is no finding " + id + ". SHOW WIRECHECK lists those that there are."
	for _, f := range list {
		if strings.EqualFold(f.ID, id) {
			text = report.Explain(f.Finding, f.reader)
		}
	}
	for line := range strings.Lines(text) {
		t.Rows = append(t.Rows, []string{strings.TrimRight(line, "\n")})
	}
	return t
}

// like is SQL's LIKE, whatever the case.
func like(pattern, text string) bool {
	expression := strings.NewReplacer("%", ".*", "_", ".").Replace(regexp.QuoteMeta(pattern))
	ok, err := regexp.MatchString("(?is)^"+expression+"$", text)
	return ok && err == nil
}

package live

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/fleet/stream"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/proxy/record"
)

// listening is a checker with sessions 1 and 2, to which notices come.
func listening(t *testing.T) *Checker {
	t.Helper()
	l, err := New(Options{Now: time.Unix(1000, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for session := uint64(1); session <= 2; session++ {
		l.Take(&history.Event{Kind: history.EventSession, Session: session, Engine: "postgres", User: "app"})
	}
	return l
}

// fleetFinding is a lost update between transaction 5 of this proxy's session and one of another proxy, as the judge of all numbers them.
func fleetFinding() oracle.Finding {
	row := history.Row{Table: "public.t", Key: "1"}
	x := func(label, proxy string, session, number uint64) oracle.Transaction {
		return oracle.Transaction{Label: label, ID: number<<20 + session, Proxy: proxy, Number: number, Session: session, Engine: "postgres", User: "app", Outcome: history.OutcomeCommitted,
			Statements: []oracle.Statement{{N: 1, SQL: "SELECT v FROM t WHERE id = 1", Verb: "select", To: 1}, {N: 2, SQL: "UPDATE t SET v = 2 WHERE id = 1", Verb: "update", To: 2}}}
	}
	f := oracle.Finding{Oracle: "isolation", Kind: oracle.KindAnomaly, Class: "G-single", Name: "lost update", Session: 8, Seen: 1, Tables: []string{"public.t"},
		Transactions: []oracle.Transaction{x("T1", "mine", 7, 5), x("T2", "theirs", 8, 6)},
		Edges: []oracle.Edge{{From: 0, To: 1, Kind: oracle.EdgeRW, Row: row, FromStatement: 1, ToStatement: 2, FromValues: []oracle.Value{{Column: "v", Text: "1"}}},
			{From: 1, To: 0, Kind: oracle.EdgeWW, Row: row, FromStatement: 2, ToStatement: 2}}}
	f.ID = f.Fingerprint()
	return f
}

func message(t *testing.T, f oracle.Finding, sessions map[uint64]uint64) []byte {
	t.Helper()
	text, err := json.Marshal(Notice{f, sessions})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// hears gives a message to the checker.
func (l *Checker) hears(t *testing.T, data []byte, want stream.Heard) {
	t.Helper()
	if got, err := l.Hear(data); err != nil || got != want {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
}

// TestNotice: a session hears of its part in a finding between proxies once, as it hears of others: the session whose number the finding gives, not the
// one with the same number here. One that has ended is counted.
func TestNotice(t *testing.T) {
	l, f := listening(t), fleetFinding()
	l.hears(t, message(t, f, map[uint64]uint64{7: 2}), stream.Heard{Told: 1})
	w := l.due(2)
	if len(w) != 1 || w[0].SQLState != "01WC2" || w[0].Code != 51002 || w[0].Finding != f.ID ||
		!strings.HasPrefix(w[0].Message, "wirecheck: lost update: your UPDATE of t 1 overwrote a change by session 8 that it had not seen") {
		t.Fatalf("%+v", w)
	}
	l.hears(t, message(t, f, map[uint64]uint64{7: 2}), stream.Heard{Told: 1}) // the answer was lost, or another collector says it
	other := fleetFinding()
	other.Seen, other.Transactions[0].Number = 2, 9
	l.hears(t, message(t, other, map[uint64]uint64{7: 2}), stream.Heard{Told: 1})
	if w := l.due(2); len(w) != 1 || !strings.Contains(w[0].Message, f.ID+" again, 2nd time: ") {
		t.Errorf("another occurrence: %+v", w)
	}
	l.Take(&history.Event{Kind: history.EventClose, Session: 2})
	l.hears(t, message(t, other, map[uint64]uint64{7: 2, 8: 3}), stream.Heard{Ended: 2})
	if s := l.Status(); s.Heard != (stream.Heard{Told: 3, Ended: 2}) || s.NotHeard != 0 || len(l.due(1)) > 0 {
		t.Errorf("%+v, %d left out", s.Heard, s.NotHeard)
	}
	// Session 1 may ask for it. It takes no part: nobody is "you".
	table := l.answers(1, record.Question{Explain: true, ID: strings.ToLower(f.ID)})
	if text := fmt.Sprint(table.Rows); !strings.Contains(text, "Proof (") || strings.Contains(text, "you") || !strings.Contains(text, "(proxy theirs, ") {
		t.Errorf("%s", text)
	}
	if table := l.answers(1, record.Question{}); len(table.Rows) != 1 || table.Rows[0][0] != f.ID || table.Rows[0][3] != "2" {
		t.Errorf("%+v", table)
	}
}

// TestNoticeKnown: what the proxy itself told a session of a transaction it does not hear again.
func TestNoticeKnown(t *testing.T) {
	l, f := listening(t), fleetFinding()
	own := fleetFinding()
	for i := range own.Transactions {
		x := &own.Transactions[i]
		x.Session, x.ID, x.Proxy, x.Number = uint64(2-i), x.Number, "", 0
	}
	own.Session = 1
	l.audience.found(own)
	if len(l.due(1)) != 1 || len(l.due(2)) != 1 {
		t.Fatal("its own finding is not told")
	}
	l.hears(t, message(t, f, map[uint64]uint64{7: 2}), stream.Heard{Told: 1})
	if w := l.due(2); len(w) > 0 {
		t.Errorf("it is told again: %+v", w)
	}
	l.hears(t, message(t, f, map[uint64]uint64{8: 2}), stream.Heard{Told: 1}) // another transaction of the session
	if w := l.due(2); len(w) != 1 {
		t.Errorf("what is new is not told: %+v", w)
	}
}

// TestNoticeWrong: whatever comes, nothing breaks; what is no notice is counted, and no session hears of it.
func TestNoticeWrong(t *testing.T) {
	l := listening(t)
	good := func(change func(f *oracle.Finding)) []byte {
		f := fleetFinding()
		change(&f)
		return message(t, f, map[uint64]uint64{7: 2})
	}
	wrong := map[string][]byte{
		"nothing": nil, "null": []byte("null"), "an array": []byte("[]"), "cut": good(func(*oracle.Finding) {})[:200],
		"its id":           good(func(f *oracle.Finding) { f.ID = "WC-\x00'); DROP" }),
		"no cycle":         good(func(f *oracle.Finding) { f.Edges = nil }),
		"no transactions":  good(func(f *oracle.Finding) { f.Transactions = nil }),
		"a stale read":     good(func(f *oracle.Finding) { f.Edges[0].Kind = oracle.EdgeWW }),
		"an edge's end":    good(func(f *oracle.Finding) { f.Edges[1].To = 2 }),
		"an edge's begin":  good(func(f *oracle.Finding) { f.Edges[1].From = -1 }),
		"a difference":     good(func(f *oracle.Finding) { f.Difference = &oracle.Difference{} }),
		"many edges":       good(func(f *oracle.Finding) { f.Edges = slices.Repeat(f.Edges, 101) }),
		"many statements":  good(func(f *oracle.Finding) { f.Transactions[0].Statements = make([]oracle.Statement, 103) }),
		"its length":       good(func(f *oracle.Finding) { f.Transactions[0].Statements[0].SQL = strings.Repeat("x", noticeBytes) }),
		"a session":        message(t, fleetFinding(), map[uint64]uint64{9: 2}),
		"a session's name": []byte(`{"finding":{},"sessions":{"x":1}}`),
	}
	for what, data := range wrong {
		if heard, err := l.Hear(data); err == nil || heard != (stream.Heard{}) {
			t.Errorf("%s is wrong, and is taken: %+v", what, heard)
		}
	}
	if s := l.Status(); s.NotHeard != uint64(len(wrong)) || len(l.due(2)) > 0 {
		t.Errorf("%d are counted, want %d", s.NotHeard, len(wrong))
	}
	// Any byte may be another one.
	whole, taken := good(func(*oracle.Finding) {}), 0
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		data := slices.Clone(whole)
		for range 1 + rnd.IntN(3) {
			data[rnd.IntN(len(data))] = byte(rnd.IntN(256))
		}
		if _, err := l.Hear(data); err == nil {
			taken++
		}
		for _, w := range l.due(2) {
			if text := w.Message + w.Schema + w.Table + w.Finding + w.SQLState; strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q", text)
			}
		}
	}
	if taken < 100 || taken > 2900 {
		t.Errorf("%d of 3000 were taken: the test shows little", taken)
	}
	if n := len(l.notices.list); n > noticesAtMost || l.notices.bytes > noticesInBytes {
		t.Errorf("%d notices are kept, of %d bytes", n, l.notices.bytes)
	}
}

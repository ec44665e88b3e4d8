package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/proxy/record"
)

// TestAudience: both parties hear of a finding, each at its own next answer; again shortly, and not without end.
func TestAudience(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	a := newAudience(&Options{Clock: func() time.Time { return now }})
	for session := uint64(1); session <= 3; session++ {
		a.event(&history.Event{Kind: history.EventSession, Session: session, User: "app"})
	}
	f := oracle.Finding{ID: "WC-a75b12", Class: "G-single", Name: "lost update", Session: 2, Transactions: []oracle.Transaction{{Session: 1}, {Session: 2}},
		Edges: []oracle.Edge{{From: 0, To: 1, Kind: oracle.EdgeRW, Row: history.Row{Table: "t"}}, {From: 1, To: 0, Kind: oracle.EdgeWW, Row: history.Row{Table: "t"}}}}
	find := func() { f.Seen++; a.found(f) }
	short := func(w []record.Warning) int {
		n := 0
		for i := range w {
			if strings.Contains(w[i].Message, "WC-a75b12 again, ") && w[i].Detail == "" {
				n++
			}
		}
		return n
	}
	find()
	if two, one, three := a.due(2), a.due(1), a.due(3); len(two) != 1 || len(one) != 1 || len(three) != 0 || short(two)+short(one) != 0 || one[0].Detail == "" {
		t.Fatalf("got %v, %v, %v", two, one, three)
	}
	if w := a.due(2); len(w) != 0 {
		t.Errorf("twice: %v", w)
	}
	for range 100 {
		find()
	}
	if w := a.due(1); len(w) != mostOfOne-1 || short(w) != len(w) {
		t.Errorf("%d warnings, %d short ones", len(w), short(w))
	}
	now = now.Add(period)
	find()
	if w := a.due(1); len(w) != 1 || !strings.Contains(w[0].Message, "again, 102nd time") {
		t.Errorf("later: %v", w)
	}
	// Many different ones, too, are too many: variants of one group, and groups.
	other := func(i int, name, table string) {
		f.ID, f.Name = fmt.Sprintf("WC-%06d", i), name
		for k := range f.Edges {
			f.Edges[k].Row.Table = table
		}
		find()
	}
	for i := range 100 {
		other(i, "lost update", "t")
	}
	w := a.due(1)
	for i := range w {
		if w[i].Hint != "" || !strings.Contains(w[i].Message, "a variant of WC-a75b12: lost update") || !strings.HasPrefix(w[i].Detail, "1. ") || !strings.HasSuffix(w[i].Detail, "\nProof: SELECT wirecheck.explain('"+w[i].Finding+"')") {
			t.Errorf("a variant: %+v", w[i])
		}
	}
	if len(w) != mostOfOne-1 {
		t.Errorf("%d warnings of variants", len(w))
	}
	other(100, "read skew", "t") // the same statements, another name: another group
	if w := a.due(1); len(w) != 1 || strings.Contains(w[0].Message, "variant") {
		t.Errorf("another name: %v", w)
	}
	for i := range 100 {
		other(200+i, "lost update", fmt.Sprint("t", i))
	}
	if w := a.due(1); len(w) != mostOfAll-mostOfOne-1 || strings.Contains(w[0].Message, "variant") {
		t.Errorf("%d warnings", len(w))
	}
	// A session that joins late hears it whole; one that has ended keeps nothing.
	a.event(&history.Event{Kind: history.EventClose, Session: 1})
	a.event(&history.Event{Kind: history.EventSession, Session: 1, User: "app"})
	f.ID = "WC-a75b12"
	find()
	if w := a.due(1); len(w) != 1 || w[0].Detail == "" {
		t.Errorf("a new session: %v", w)
	}
}

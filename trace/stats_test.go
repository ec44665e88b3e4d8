package trace

import (
	"testing"

	"wirecheck/answer"
)

// TestStatsConcurrency: one session does one thing at a time, whatever the clocks of its statements say. The near miss are two sessions.
func TestStatsConcurrency(t *testing.T) {
	for _, tt := range []struct {
		name             string
		sessions         []uint64 // of transactions of which each begins before the last one's end
		most, statements int
	}{
		{"one session", []uint64{1, 1, 1, 1}, 1, 1},
		{"two sessions", []uint64{1, 2, 1, 2}, 2, 2},
		{"a session that comes back", []uint64{1, 2, 2, 2, 2}, 2, 2},
	} {
		s := NewStats()
		at := int64(1000)
		for _, session := range tt.sessions {
			s.Add(&Record{Kind: KindStatement, Session: session, Statement: &Statement{SQL: "BEGIN", Start: at, End: at + 1, Before: answer.Idle, After: answer.Open}})
			s.Add(&Record{Kind: KindStatement, Session: session, Statement: &Statement{SQL: "COMMIT", Start: at + 2, End: at + 100, Before: answer.Open, After: answer.Idle}})
			at += 10
		}
		s.Finish()
		if s.Transactions.Most != tt.most || s.MostStatements != tt.statements || s.Transactions.Ended != len(tt.sessions) {
			t.Errorf("%s: %d transactions and %d statements at the same time, want %d and %d; %d ended", tt.name, s.Transactions.Most, s.MostStatements, tt.most, tt.statements, s.Transactions.Ended)
		}
	}
}

package troc

import (
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// TestFollowed: a definition that waited is followed only if nobody else began meanwhile: such a statement may have run before it or after it, whichever
// answer came first.
func TestFollowed(t *testing.T) {
	step := func(session int, sql string, sent, done int, before, after answer.State) schedule.Step {
		return schedule.Step{Session: session, Statement: statement.Statement{Text: sql}, Sent: sent, Done: done, Before: before, After: after}
	}
	add := step(1, "ALTER TABLE t ADD COLUMN c INT DEFAULT 5", 3, 0, answer.Idle, answer.Idle)
	add.Waited = true
	for _, test := range []struct {
		name      string
		read, def int // when the read and the definition were done
		want      bool
	}{
		{"the read's answer came first", 7, 8, false},
		{"the definition was done when the read was sent", 8, 5, true},
	} {
		def := add
		def.Done = test.def
		c := &frame{s: &schedule.Schedule{Steps: []schedule.Step{step(0, "SELECT * FROM t", 1, 2, answer.Idle, answer.Open), def,
			step(0, "COMMIT", 4, 4, answer.Open, answer.Idle), step(0, "SELECT * FROM t", 6, test.read, answer.Idle, answer.Idle)}}}
		c.txs = []schedule.Transaction{{Session: 0, Begin: 1, End: 4}, {Session: 1, Begin: 3, End: test.def}, {Session: 0, Begin: 6, End: test.read}}
		if got := c.followed(1); got != test.want {
			t.Errorf("%s: followed is %v, want %v", test.name, got, test.want)
		}
	}
}

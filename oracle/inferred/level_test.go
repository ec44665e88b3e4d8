package inferred

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/oracle/level"
)

func stateOf(r Result, name string) level.State {
	i := slices.IndexFunc(r.Levels, func(v level.Verdict) bool { return v.Level == name })
	return r.Levels[i].State
}

// TestLevels says the weakest levels that histories break and the strongest that they satisfy, each with a near miss.
func TestLevels(t *testing.T) {
	for _, tt := range []struct{ name, text, broken, satisfied string }{
		{"serial", "seq\n1 a x 1\n2 r x 1", "", "strict serializable"},
		{"a stale read", "seq\n1 a x 1\n2 a x 2, r x 1 2\n3 r x 1", "strong snapshot isolation", "strong session serializable"},
		{"a stale read of the own session", "seq\n1 a x 1\n2 a x 2, r x 1 2\n2 r x 1", "causal", "PL-3"},
		{"write skew", "1 a x 1, r y\n2 a y 1, r x\n3 r x 1, r y 1", "PL-2.99; PL-3U", "strong snapshot isolation"},
		{"no write skew", "1 a x 1, r y\n2 a y 1, r x 1\n3 r x 1, r y 1", "", "strict serializable"},
		{"long fork", "1 a x 1\n2 a y 1\n3 r x 1, r y\n4 r y 1, r x", "PL-2.99; prefix consistency; snapshot isolation", "parallel snapshot isolation; PL-3U"},
		{"fractured read", "1 a x 1, a y 1\n2 r y, r x 1", "read atomic; PL-2.99", "cursor stability; monotonic atomic view"},
		{"a version of another one behind an own write", "1 w x 1\n2 r x, w x 2, r x = 1\n3 r x = 2", "cursor stability; read atomic", "monotonic atomic view"},
		{"an own version behind an own write", "1 w x 1\n2 r x, w x 2, r x = 2\n3 r x = 2", "", "strict serializable"},
		{"fractured read, of an own append", "1 a x 1, a y 1\n2 r y, a x 2, r x 1 2", "read atomic; PL-2.99", "cursor stability; monotonic atomic view"},
		{"a transaction vanishes behind an own append", "1 a x 1, a y 1\n2 a x 2, r x 1 2, r y", "read committed with monotonic reads", "cursor stability"},
		{"a whole read, of an own append", "1 a x 1, a y 1\n2 r y 1, a x 2, r x 1 2", "", "strict serializable"},
		{"an own append that is not read", "1 a x 1, a y 1\n2 r y, a x 2\n3 r x 1 2", "PL-2.99; parallel snapshot isolation; snapshot isolation; PL-3U", "update atomic; prefix consistency"},
		{"a transaction vanishes", "1 a x 1, a y 1\n2 r x 1, r y", "read committed with monotonic reads", "cursor stability"},
		{"lost update of lists", "1 a x 1\n2 r x 1, a x 2\n3 r x 1, a x 3\n4 r x 1 2 3", "cursor stability", "prefix consistency"},
		{"lost update of registers", "1 w x 1\n2 r x = 1, w x 2\n3 r x = 1, w x 3", "cursor stability", "prefix consistency"},
		{"circular", "1 a x 1, r y 1\n2 a y 1, r x 1", "PL-2", "PL-1"},
		{"dirty write", "1 a x 1, a y 1\n2 a x 2, a y 2\n3 r x 1 2, r y 2 1", "PL-1", ""},
		{"aborted read", "1 ! a x 1\n2 r x 1", "PL-2", ""},
		{"a value of nobody", "1 a x 1\n2 r x 1 7", "PL-2", ""},
		{"registers in unknown order, with a serial order", "1 w x 1\n2 w x 2\n3 r x = 1, w y 1\n4 r y = 1, r x = 2\n5 r x = 1", "", "strict serializable"},
	} {
		r := Check(parse(t, tt.text), Options{Levels: true})
		broken, satisfied := strings.Join(level.Weakest(r.Levels), "; "), strings.Join(level.Strongest(r.Levels), "; ")
		if broken != tt.broken || satisfied != tt.satisfied {
			t.Errorf("%s: broken %q, satisfied %q, want %q and %q (undecided %q, unsure %q)\n%s", tt.name, broken, satisfied, tt.broken, tt.satisfied, r.Undecided, r.Unsure, tt.text)
		}
	}
}

// TestLevelsOfLikeIDs: a source in which transactions share a number is judged as one in which they do not.
func TestLevelsOfLikeIDs(t *testing.T) {
	h := parse(t, "1 a x 1, r y\n2 a y 1, r x\n3 r x 1, r y 1")
	for i := range h.Transactions {
		h.Transactions[i].ID = 7
	}
	if r := Check(h, Options{Levels: true}); stateOf(r, "PL-3") != level.Broken || stateOf(r, "snapshot isolation") != level.Satisfied {
		t.Errorf("got %v", r.Levels)
	}
}

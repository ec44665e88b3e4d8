package hunt

import (
	"encoding/json"
	"testing"
)

// TestCounts: what was counted since a moment is what brings the counts of that moment to those of now.
func TestCounts(t *testing.T) {
	s := State{Engine: "e", Seed: 3}
	s.complete()
	s.Cases, s.Findings, s.Seen["a"], s.Spent["tlp"], s.Scores.of("l", "tlp").Cases = 3, 1, 1, 5, 3
	before := s.clone()
	s.Cases++
	s.Seen["b"]++
	s.Scores.of("m", "wss").Flaky++
	added := s.since(&before)
	if added.Cases != 1 || added.Findings != 0 || len(added.Seen) != 1 || len(added.Scores) != 1 || len(added.Spent) != 0 {
		t.Errorf("added %+v", added)
	}
	before.add(added, 1)
	got, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(s)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s\n%s, error %v", got, want, err)
	}
}

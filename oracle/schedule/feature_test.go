package schedule

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
)

// TestFeatures: who waited for whom, what was refused, which dependencies there were; and near misses.
func TestFeatures(t *testing.T) {
	s := script(t, "mariadb", "read committed",
		"s1 ->o: BEGIN", "s2 ->o: BEGIN", "s1 o>o: SELECT * FROM t", "s2 o>o: UPDATE t SET a = 1", "s2 o>-: COMMIT", "s1 o>o: UPDATE t SET a = 2 WHERE a IN (SELECT 1)",
		"s1 o>-: COMMIT", "s3 ->-: DELETE FROM u", "s3 ->-: DELETE FROM t")
	for i := range s.Steps {
		s.Steps[i].Answer.Affected = 1
	}
	want := []string{
		"read committed: cycle: rw(select>update) ww(update>update-query)", "read committed: edge: rw(select>update) c-c", "read committed: edge: ww(update>update-query) c-c",
	}
	if diff := cmp.Diff(want, s.Features()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	s.Steps[3].Answer.Affected = 0                                                                                 // it changed nothing: no dependency
	if diff := cmp.Diff([]string{"read committed: edge: rw(update>update-query) c-c"}, s.Features()); diff != "" { // it only read
		t.Errorf("an update of no rows: (-want +got)\n%s", diff)
	}
	wait := &s.Steps[5]
	s.Steps[3].Answer.Affected = 1
	wait.Waited, wait.For, wait.Sent = true, []int{1}, s.Steps[3].Done+1
	if got := s.Features(); !slices.Contains(got, "read committed: wait: update-query for update c, done") {
		t.Errorf("a wait: %q", got)
	}
	wait.Reason, wait.Answer.Err = answer.ReasonDeadlock, &answer.Error{Code: "1213"}
	got := s.Features()
	for _, want := range []string{"read committed: wait: update-query for update c, deadlock", "read committed: refused: update-query deadlock 1213"} {
		if !slices.Contains(got, want) {
			t.Errorf("a deadlock: no %q in %q", want, got)
		}
	}
	if slices.ContainsFunc(got, func(f string) bool { return strings.Contains(f, "cycle") }) {
		t.Errorf("a statement that failed has dependencies: %q", got)
	}
}

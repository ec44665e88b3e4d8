package wss

import (
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/schedule/scheduletest"
)

// TestWholeCausesWithinWith: an INSERT within WITH is no INSERT of the statement, which may be judged on whole tables all the same.
func TestWholeCausesWithinWith(t *testing.T) {
	st := scheduletest.One(t, "postgres", "WITH w AS (INSERT INTO t VALUES (9) RETURNING a) UPDATE u SET a = 1 WHERE a IN (SELECT a FROM w)")
	unread := false
	for _, u := range st.Tables {
		unread = unread || u.Name == "t" && !u.Read
	}
	if st.Insert != nil || !unread {
		t.Fatalf("%+v", st)
	}
	s := &schedule.Schedule{
		Product: "postgres", Level: "read committed", Sessions: []schedule.Session{{Name: "s1"}}, Setup: []string{"CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)"},
		Steps: []schedule.Step{{Name: "q", Statement: st, Sent: 1, Done: 2}},
	}
	columns := []answer.Column{{Name: "a"}}
	m := &model{scene: newScene(s, s.Transactions(), []answer.Table{{Name: "t", Columns: columns}, {Name: "u", Columns: columns}})}
	if got := m.wholeCauses(store{}, &act{step: 0, whole: true}); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

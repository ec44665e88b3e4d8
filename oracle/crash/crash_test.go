package crash

import (
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

func TestCheck(t *testing.T) {
	step := func(reason answer.Reason, effect answer.Effect) schedule.Step {
		return schedule.Step{Name: "a", Statement: statement.Statement{Text: "SELECT 1"}, Reason: reason, Effect: effect, Answer: answer.Result{Err: &answer.Error{Code: "XX000", Message: "oops"}}}
	}
	for _, test := range []struct {
		name    string
		s       schedule.Schedule
		want    string // the finding's name; empty: none
		unknown bool
	}{
		{"internal error", schedule.Schedule{Steps: []schedule.Step{step(answer.ReasonInternal, answer.EffectFailed)}}, oracle.NameInternal, false},
		{"an error of the statement's own", schedule.Schedule{Steps: []schedule.Step{step(answer.ReasonOther, answer.EffectFailed)}}, "", false},
		{"crash", schedule.Schedule{Crashed: true, Trouble: "EOF", Steps: []schedule.Step{step(answer.ReasonServer, answer.EffectGone)}}, oracle.NameCrash, false},
		{"a connection that was killed on purpose", schedule.Schedule{Steps: []schedule.Step{step(answer.ReasonKilled, answer.EffectGone)}}, "", false},
		{"hang", schedule.Schedule{Hung: true, Trouble: "the case took more than 1m0s: s1 is still in a"}, oracle.NameHang, false},
		{"a server that answers nobody", schedule.Schedule{Hung: true, Crashed: true, Trouble: "deadline exceeded"}, oracle.NameHang, false},
		{"stood still", schedule.Schedule{Trouble: "the case took more than 1m0s"}, "", true},
	} {
		test.s.Sessions = []schedule.Session{{Name: "s1"}}
		v := Check(&test.s)
		got := ""
		if len(v.Findings) == 1 {
			got = v.Findings[0].Name
		}
		if len(v.Findings) > 1 || got != test.want || (v.Unknown != "") != test.unknown {
			t.Errorf("%s: found %q (%d findings), unknown %q; want %q, unknown %v", test.name, got, len(v.Findings), v.Unknown, test.want, test.unknown)
		}
	}
}

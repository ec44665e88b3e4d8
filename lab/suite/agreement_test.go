package suite

import (
	"testing"

	"wirecheck/anomaly"
	"wirecheck/answer"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/live"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

func TestAgreement(t *testing.T) {
	find := func(class oracle.Class, name string) []oracle.Finding {
		return []oracle.Finding{{Class: class, Name: name}}
	}
	tests := []struct {
		outcome    string
		through    bool
		findings   []oracle.Finding
		predicates int
		want       string
	}{
		{"P4", true, find(anomaly.GSingle, anomaly.LostUpdate), 0, agrees},
		{"P4", true, find(anomaly.GSingle, anomaly.ReadSkew), 0, disagrees},
		{"P4", true, nil, 3, disagrees},
		{"P4", false, nil, 0, agrees},
		{"P4", false, find(anomaly.GSingle, anomaly.LostUpdate), 0, disagrees},
		{"OTV", false, find(anomaly.GSingle, anomaly.ReadSkew), 0, agrees},
		{"OTV", true, find(anomaly.GSingle, anomaly.Vanishes), 0, agrees},
		{"G1c", false, find(anomaly.G2Item, anomaly.WriteSkew), 0, agrees},
		{"G1c", true, find(anomaly.G2Item, anomaly.WriteSkew), 0, disagrees},
		{"G2", true, nil, 2, notJudged},
		{"G2", true, nil, 0, disagrees}, // the oracle does not say that it left something out
		{"G2", false, nil, 0, agrees},
		{"G2", false, find(anomaly.G2Item, anomaly.WriteSkew), 2, disagrees},
		{"PMP-write", true, find(anomaly.GSingle, anomaly.ReadWriteSkew), 1, agrees},
		{"G2", true, find(anomaly.G2, anomaly.WriteSkew), 0, agrees},
		{"PMP", true, find(anomaly.GSingle, anomaly.Phantom), 0, agrees},
		{"somebody's own", true, nil, 0, ""},
	}
	for _, test := range tests {
		d := &panel.Judgement{Judged: true, Isolation: live.Result{Findings: test.findings, Coverage: isolation.Coverage{Exact: 1, Unread: map[string]int{"": test.predicates}}}}
		if got, why := agreement(test.outcome, test.through, d); got != test.want {
			t.Errorf("%s, let through %v, found %v: %s (%s), want %s", test.outcome, test.through, test.findings, got, why, test.want)
		}
	}
}

func TestPrevention(t *testing.T) {
	ran, waits := lab.Event{Kind: lab.Ran}, lab.Event{Kind: lab.Waits}
	failed := func(r answer.Reason) lab.Event { return lab.Event{Kind: lab.Ran, Outcome: answer.Outcome{Reason: r}} }
	tests := []struct {
		events []lab.Event
		want   string
	}{
		{[]lab.Event{ran, ran}, "snapshot"},
		{[]lab.Event{ran, waits, ran}, "blocked"},
		{[]lab.Event{waits, failed(answer.ReasonDeadlock), ran}, "aborted (deadlock)"},
		{[]lab.Event{ran, failed(answer.ReasonSerialization), failed(answer.ReasonFailed)}, "aborted (serialization failure)"},
		{[]lab.Event{waits, failed(answer.ReasonOther)}, "blocked"}, // a duplicate key, say, is the statement's own fault
	}
	for _, test := range tests {
		if got := prevention(test.events); got != test.want {
			t.Errorf("%v: %s, want %s", test.events, got, test.want)
		}
	}
}

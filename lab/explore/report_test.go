package explore

import (
	"strings"
	"testing"

	"wirecheck/lab/replay"
	"wirecheck/oracle"
)

// TestHTML: the page of a replay has what was found in the recorded order and in other orders, each with what shows it again, and all that
// the text says.
func TestHTML(t *testing.T) {
	found := func(id, name string) oracle.Finding {
		return oracle.Finding{ID: id, Class: "G-single", Name: name, Kind: oracle.KindAnomaly}
	}
	r := Report{
		Trace: "shop.wct", Engine: "postgres", Replay: &replay.Result{Deadlocks: []replay.Deadlock{{Step: 3, Session: 2, SQL: "UPDATE <b>"}}},
		Findings: []oracle.Finding{found("WC-00000a", "read skew")},
		Explored: &Explored{Anomalies: []*WrongRun{
			{Found: []string{"lost update"}, Sessions: []uint64{1, 2}, Kept: "found/1.spec", Spec: "session s1", findings: []oracle.Finding{found("WC-00000b", "lost update")}},
			{Found: []string{"not serializable"}, Sessions: []uint64{3, 4}, Spec: "session s3"}, // found by values: there is no cycle to show
		}},
	}
	var b strings.Builder
	if err := r.HTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"found: 1 (violations: 0, anomalies: 1); in other orders: 1", `id="WC-00000a"`, `id="WC-00000b"`, "another order of sessions 1 2", "wirecheck run found/1.spec --engine postgres", "session s1",
		"ANOMALY: NOT SERIALIZABLE", "UPDATE &lt;b&gt;",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

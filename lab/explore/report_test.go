package explore

import (
	"strings"
	"testing"
	"time"

	"wirecheck/lab/replay"
	"wirecheck/live"
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

// TestLatencyLines: the screen has the few shapes that differ most, the page all of them, and both say when the replay's times have those of the proxy in them.
func TestLatencyLines(t *testing.T) {
	times := func(p50, p99 time.Duration) replay.Times { return replay.Times{P50: p50, P99: p99} }
	r := Report{Replay: &replay.Result{}}
	text := func() string {
		var b strings.Builder
		if err := r.Text(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := text(); strings.Contains(got, "latency") {
		t.Errorf("a trace without durations: %s", got)
	}
	for range onScreen + 2 {
		r.Replay.Latencies = append(r.Replay.Latencies, replay.Latency{Statement: "select ? from t", Count: 7, Recorded: times(1234567, 98765432), Replayed: times(time.Second, 2*time.Second)})
	}
	line := "  p50 1.2ms -> 1s  p99 99ms -> 2s  of 7  select ? from t\n"
	if got := text(); strings.Count(got, line) != onScreen || !strings.Contains(got, "and 2 more (all: --format html, or --out)") || !strings.Contains(got, "latency, trace -> replay, most different first:") {
		t.Errorf("got\n%s", got)
	}
	if got := r.whole(); strings.Count(got, line) != onScreen+2 {
		t.Errorf("the whole text is\n%s", got)
	}
	r.judged = &live.Result{}
	if got := text(); !strings.Contains(got, "(in the replay through the proxy that watches; without: --oracle none)") {
		t.Errorf("through a proxy: got\n%s", got)
	}
}

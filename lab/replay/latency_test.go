package replay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/trace"
)

// TestTimes: the median and the 99th of a hundred are right to 3%, whatever their size is.
func TestTimes(t *testing.T) {
	for _, unit := range []time.Duration{1, 37 * time.Microsecond, time.Second} {
		s := spread{}
		for n := range 100 {
			s.add(time.Duration(100-n) * unit)
		}
		got := s.times()
		near := func(got, want time.Duration) bool { return max(got-want, want-got)*100 <= want*4 }
		if !near(got.P50, 50*unit) || !near(got.P99, 99*unit) {
			t.Errorf("1 to 100 times %v: got %+v", unit, got)
		}
	}
	s := spread{}
	s.add(0)
	if got := s.times(); got.P50 != 1 || got.P99 != 1 {
		t.Errorf("a duration of nothing: got %+v", got)
	}
}

// TestLatencies: shapes come by how much they differ. What is far shorter than a millisecond does not come first, and what was refused in the trace
// only, or of which the trace tells no duration, is not compared.
func TestLatencies(t *testing.T) {
	step := func(shape string, took, lasted time.Duration) *Step {
		return &Step{Statement: &trace.Statement{}, shape: shape, took: took, lasted: lasted}
	}
	all := latencies{}
	for range 3 {
		all.add(step("tiny", time.Microsecond, 100*time.Microsecond))
		all.add(step("faster", 90*time.Millisecond, 30*time.Millisecond))
		all.add(step("same", time.Second, time.Second))
		all.add(step("unknown", 0, time.Second))
		refused := step("refused", time.Millisecond, time.Second)
		refused.Answer.Err = &answer.Error{}
		all.add(refused)
	}
	all.add(step("same", time.Second, 9*time.Second)) // its 99th of a hundred
	var got []string
	for _, l := range all.list(9) {
		got = append(got, fmt.Sprint(l.Statement, " ", l.Count))
	}
	if want := []string{"same 4", "faster 3", "tiny 3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := all.list(1); len(got) != 1 {
		t.Errorf("of at most one: %v", got)
	}
}

// TestLatenciesBounded: more shapes than are kept apart are counted together.
func TestLatenciesBounded(t *testing.T) {
	all := latencies{}
	for n := range mostLatencies + 5 {
		all.add(&Step{Statement: &trace.Statement{}, shape: fmt.Sprint(n), took: 1, lasted: 1})
	}
	if d := all[otherShapes]; len(all) != mostLatencies+1 || d.replayed.count() != 5 {
		t.Errorf("got %d shapes, and %+v of the others", len(all), d)
	}
}

// TestRunLatencies replays statements that take longer than the trace says: those that differ in values are of one shape.
func TestRunLatencies(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		sleep := "SELECT pg_sleep(%s)"
		if p.config.Backend.Protocol == engine.ProtocolMySQL {
			sleep = "SELECT SLEEP(%s)"
		}
		r := p.run([]said{
			{session: 1, sql: "SELECT 1", start: 1, end: 2}, {session: 1, sql: fmt.Sprintf(sleep, "0.05"), start: 3, end: 4},
			{session: 1, sql: fmt.Sprintf(sleep, "0.06") + " -- again", start: 5, end: 6}, {session: 1, sql: "SELECT 1 FROM nowhere", start: 7, end: 8},
		})
		if len(r.Latencies) != 2 {
			t.Fatalf("got %+v, want two shapes", r.Latencies)
		}
		first := r.Latencies[0]
		if first.Count != 2 || first.Recorded.P50 > 2*time.Millisecond || first.Replayed.P50 < 45*time.Millisecond || first.Replayed.P99 < 55*time.Millisecond {
			t.Errorf("got %+v, want the two that sleep first", first)
		}
	})
}

package record

import (
	"testing"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// TestShares: what one session keeps leaves room for the others, and comes back when it ends.
func TestShares(t *testing.T) {
	for name, make := range map[string]func(*Recorder) Share{"texts": (*Recorder).Texts, "messages": (*Recorder).Messages} {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder("r", nil)
			b := make(r).kind
			piece := b.one / 16
			fill := func() (s Share) {
				for s = make(r); s.Takes(piece); s.Add(piece) {
				}
				return s
			}
			var greedy []Share
			kept := 0
			for range b.all/b.one + 2 {
				s := fill()
				greedy, kept = append(greedy, s), kept+s.Own()
			}
			if greedy[0].Own() != b.one || kept > b.all+len(greedy)*b.few || kept < b.all {
				t.Errorf("greedy sessions keep %d bytes, the first one %d", kept, greedy[0].Own())
			}
			small := make(r)
			if !small.Takes(b.few) || small.Takes(b.few+piece) {
				t.Error("beside them, a session may keep what is little, and no more")
			}
			greedy[0].Forget()
			if !small.Takes(piece) || small.Takes(b.one+1) {
				t.Error("when one of them has ended, another one may keep what one session may, and no more")
			}
			for i := range greedy[1:] {
				greedy[i+1].Forget()
			}
			if left := small.all.Load(); left != 0 {
				t.Errorf("%d bytes are kept when all have ended", left)
			}
		})
	}
	var alone Share
	if !alone.Takes(texts.one) || alone.Takes(texts.one+1) {
		t.Error("without others the bound of a session remains")
	}
}

// TestFactsAreShared: sessions whose answers have many rows, or whose statements wait for a log, keep so many of them together. What a session
// drops makes the coverage approximate, a session with few rows keeps them, and all are forgotten with the answer or the session.
func TestFactsAreShared(t *testing.T) {
	const sessions, rows = 40, 9000
	seen := map[history.Coverage]int{}
	rec := NewRecorder("r", func(ev *history.Event) []Warning {
		if ev.Kind == history.EventStmt && ev.Verb == "select" {
			seen[ev.Coverage]++
			if (ev.Coverage == history.CoverageExact) != (len(ev.Accesses)%rows == 0 || len(ev.Accesses) == 10) {
				t.Errorf("%s with %d rows", ev.Coverage, len(ev.Accesses))
			}
		}
		return nil
	})
	row := []history.Access{{Op: history.OpRead, Row: history.Row{Table: "t", Key: "1"}, Version: "1"}}
	read := func(trk *Tracker, n int) *Running {
		r := trk.Answer(trk.Sending(plan("select a")))
		for range n {
			told(t, r, row...)
		}
		return r
	}
	var trackers []*Tracker
	var running []*Running
	for range sessions {
		trk := NewTracker(rec, history.Event{Engine: "mariadb"}, Limits{})
		trackers, running = append(trackers, trk), append(running, read(trk, rows))
	}
	kept := int(rec.facts.Load())
	if kept > facts.all || kept < facts.all-rows*accessSize {
		t.Errorf("%d bytes are kept, of at most %d", kept, facts.all)
	}
	few := NewTracker(rec, history.Event{Engine: "mariadb"}, Limits{})
	few.Done(read(few, 10), Result{})
	if seen[history.CoverageExact] != 1 {
		t.Error("a session with ten rows does not keep them")
	}
	for i, trk := range trackers[1:] {
		trk.Done(running[i+1], Result{})
		trk.Status(false)
	}
	trackers[0].Close() // in the middle of its answer
	if left := rec.facts.Load(); left != 0 {
		t.Errorf("%d bytes are kept when nothing runs", left)
	}
	if exact := (facts.all/accessSize)/rows - 1; seen[history.CoverageExact] < exact || seen[history.CoverageApproximate] < sessions-exact-3 {
		t.Errorf("%v, of %d answers of which some %d have room", seen, sessions, exact)
	}

	held := plan("update a")
	held.Log = true
	clear(seen)
	for _, trk := range trackers[1:] {
		for _, p := range []*rewrite.Plan{plan("begin"), held} {
			trk.Done(trk.Answer(trk.Sending(p)), Result{})
			trk.Status(true)
		}
		trk.Done(read(trk, rows), Result{})
		trk.Status(true)
	}
	if kept := int(rec.facts.Load()); kept > facts.all+rows*accessSize {
		t.Errorf("%d bytes wait for a log, of at most %d", kept, facts.all)
	}
	for _, trk := range trackers[1:] {
		trk.Close()
	}
	if exact := facts.all / accessSize / rows; seen[history.CoverageExact] < exact || seen[history.CoverageExact] > exact+1 {
		t.Errorf("%v, of transactions that wait for a log of which %d have room", seen, exact)
	}
	if left := rec.facts.Load(); left != 0 {
		t.Errorf("%d bytes are kept when all have ended", left)
	}
}

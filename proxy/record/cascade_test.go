package record

import (
	"testing"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// TestTrackerCascades: what foreign keys delete is told when the session's next snapshot shows that it is certain, of a statement that was not undone.
func TestTrackerCascades(t *testing.T) {
	seen, _ := history.ParseSnapshot("5:7:5")
	deletes := func(s *story, sql string, rows int) *Running {
		r := s.trk.Answer(s.trk.Sending(plan(sql)))
		for range rows {
			r.decoded++
			r.keep(rewrite.Cascaded{Snapshot: seen, Own: 7, Accesses: []history.Access{{Op: history.OpDelete, Version: "old"}}})
		}
		return r
	}
	const begun, alone = "t1 begin read committed", "t1 begin read committed implicit"
	for _, c := range []struct {
		name string
		play func(*story)
		want []string
	}{
		{"in autocommit", func(s *story) {
			s.trk.Done(deletes(s, "update a", 2), Result{})
			s.trk.Status(false)
			s.trk.Settle("5:8:5")
		}, []string{alone, "t1.1 update a", "t1 committed pending", "t1.1 update a delete:old delete:old"}},
		{"another transaction ended", func(s *story) {
			s.trk.Done(deletes(s, "update a", 1), Result{})
			s.trk.Status(false)
			s.trk.Settle("8:8:")
		}, []string{alone, "t1.1 update a", "t1 committed pending", "t1.1 update a [approximate]"}},
		{"no snapshot came", func(s *story) {
			s.trk.Done(deletes(s, "update a", 1), Result{})
			s.trk.Status(false)
			s.trk.Close()
		}, []string{alone, "t1.1 update a", "t1 committed pending", "t1.1 update a [approximate]", "close"}},
		{"no rows", func(s *story) {
			s.trk.Done(deletes(s, "update a", 0), Result{})
			s.trk.Status(false)
		}, []string{alone, "t1.1 update a", "t1 committed"}},
		{"more rows than are kept", func(s *story) {
			s.trk.Done(deletes(s, "update a", 3), Result{})
			s.trk.Status(false)
		}, []string{alone, "t1.1 update a [approximate]", "t1 committed"}},
		{"refused", func(s *story) {
			s.trk.Done(deletes(s, "update a", 1), refused)
			s.trk.Status(false)
		}, []string{alone, "t1.1 update a error E", "t1 aborted"}},
		{"two of one implicit transaction", func(s *story) {
			a, b := deletes(s, "update a", 1), deletes(s, "update b", 1)
			s.trk.Done(a, Result{})
			s.trk.Done(b, Result{})
			s.trk.Status(false)
			s.trk.Settle("5:8:5")
		}, []string{alone, "t1.1 update a", "t1.2 update b", "t1.2 update b [approximate]", "t1 committed pending", "t1.1 update a delete:old"}},
		{"in a transaction", func(s *story) {
			s.do("begin", "T", Result{})
			s.trk.Done(deletes(s, "update a", 1), Result{})
			s.trk.Status(true)
			s.trk.Settle("5:7:5")
			s.do("commit", "I", Result{Tag: "COMMIT"})
		}, []string{begun, "t1.1 update a", "t1.1 update a delete:old", "t1 committed"}},
		{"ended before the snapshot", func(s *story) {
			s.do("begin", "T", Result{})
			s.trk.Done(deletes(s, "update a", 1), Result{})
			s.do("commit", "I", Result{Tag: "COMMIT"})
			s.trk.Settle("5:8:5")
		}, []string{begun, "t1.1 update a", "t1.1 update a [approximate]", "t1 committed"}},
		{"undone before the snapshot", func(s *story) {
			s.do("begin", "T", Result{})
			s.do("savepoint a", "T", Result{})
			s.trk.Done(deletes(s, "update a", 1), Result{})
			s.do("rollback a", "T", Result{})
			s.trk.Settle("5:8:5")
			s.do("commit", "I", Result{Tag: "COMMIT"})
		}, []string{begun, "t1.2 update a", "t1.2 update a [approximate]", "t1.3 rollback a [] undoes 2", "t1 committed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t, "postgres")
			c.play(s)
			s.want(c.want...)
		})
	}
}

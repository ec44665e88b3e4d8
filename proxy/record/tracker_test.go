package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
)

// story drives a Tracker with one line per statement and prints the events, so that a test reads as what happened.
type story struct {
	t   *testing.T
	rec *Recorder
	trk *Tracker
	out []string
}

func newStory(t *testing.T, engine string) *story {
	s := &story{t: t}
	s.rec = NewRecorder("r", func(ev *history.Event) []Warning {
		s.out = append(s.out, line(ev))
		if ev.Kind == history.EventEnd {
			return []Warning{{Message: fmt.Sprintf("end of t%d", ev.Txn)}}
		}
		return nil
	})
	s.trk = NewTracker(s.rec, history.Event{Engine: engine}, Limits{Accesses: 2})
	s.trk.SetLevel("read committed")
	s.out = nil
	return s
}

func line(ev *history.Event) string {
	switch ev.Kind {
	case history.EventBegin:
		mode := ""
		if ev.Implicit {
			mode = " implicit"
		}
		return fmt.Sprintf("t%d begin %s%s", ev.Txn, ev.Level, mode)
	case history.EventStmt:
		var b strings.Builder
		fmt.Fprintf(&b, "t%d.%d %s", ev.Txn, ev.N, ev.SQL)
		for _, a := range ev.Accesses {
			fmt.Fprintf(&b, " %s:%s", a.Op, a.Version)
		}
		if ev.Coverage != history.CoverageExact {
			fmt.Fprintf(&b, " [%s]", ev.Coverage)
		}
		if ev.UndoesFrom > 0 {
			fmt.Fprintf(&b, " undoes %d", ev.UndoesFrom)
		}
		if ev.Error != nil {
			fmt.Fprintf(&b, " error %s", ev.Error.Code)
		}
		return b.String()
	case history.EventEnd:
		pending := ""
		if ev.Pending {
			pending = " pending"
		}
		return fmt.Sprintf("t%d %s%s", ev.Txn, ev.Outcome, pending)
	}
	return string(ev.Kind)
}

func plan(sql string) *rewrite.Plan {
	p := &rewrite.Plan{Text: sql, Verb: strings.Fields(sql)[0]}
	word := strings.Fields(sql)
	switch p.Verb {
	case "select", "update", "insert":
		p.Coverage = history.CoverageExact
	case "begin":
		p.Control = statement.Control{Verb: statement.ControlBegin}
		if len(word) > 1 {
			p.Control.Level = strings.Join(word[1:], " ")
		}
	case "commit":
		p.Control = statement.Control{Verb: statement.ControlCommit, Chain: len(word) > 1}
	case "rollback":
		p.Control = statement.Control{Verb: statement.ControlRollback}
		if len(word) > 1 {
			p.Control = statement.Control{Verb: statement.ControlRollbackTo, Name: word[1]}
		}
	case "savepoint":
		p.Control = statement.Control{Verb: statement.ControlSavepoint, Name: word[1]}
	case "next":
		p.Control = statement.Control{Verb: statement.ControlLevel, Scope: statement.ScopeNext, Level: strings.Join(word[1:], " ")}
	case "alter":
		p.Control = statement.Control{Ends: true}
		p.Coverage = history.CoverageOpaque
	}
	return p
}

// do runs one statement to its end; status 'I' or 'T' follows, or none.
func (s *story) do(sql string, status string, res Result, acc ...history.Access) []Warning {
	tk := s.trk.Sending(plan(sql))
	r := s.trk.Answer(tk)
	told(s.t, r, acc...)
	w := s.trk.Done(r, res)
	switch status {
	case "I":
		w = append(w, s.trk.Status(false)...)
	case "T":
		w = append(w, s.trk.Status(true)...)
	}
	return w
}

// told gives r what a row of its answer tells.
func told(t *testing.T, r *Running, acc ...history.Access) {
	t.Helper()
	p := &rewrite.Plan{Decode: func(list []history.Access, _ [][]byte) ([]history.Access, error) { return append(list, acc...), nil }}
	if err := r.Decode(p, nil); err != nil {
		t.Fatal(err)
	}
}

func (s *story) want(lines ...string) {
	s.t.Helper()
	if diff := cmp.Diff(lines, s.out); diff != "" {
		s.t.Errorf("events (-want +got):\n%s", diff)
	}
}

var (
	refused = Result{Err: &answer.Error{Code: "E"}}
	aborted = Result{Err: &answer.Error{Code: "E", Aborted: true}}
)

func TestTrackerExplicitTransaction(t *testing.T) {
	s := newStory(t, "postgres")
	s.do("begin repeatable read", "T", Result{})
	s.do("set x", "T", Result{})
	s.do("select a", "T", Result{}, history.Access{Op: history.OpRead, Version: "1"})
	w := s.do("commit", "I", Result{Tag: "COMMIT"})
	s.want("t1 begin repeatable read", "t1.2 select a read:1", "t1 committed")
	if len(w) != 1 {
		t.Errorf("warnings at COMMIT: got %v, want one", w)
	}
}

func TestTrackerEmptyTransactionLeavesNothing(t *testing.T) {
	s := newStory(t, "postgres")
	s.do("begin", "T", Result{})
	s.do("set x", "T", Result{})
	s.do("commit", "I", Result{Tag: "COMMIT"})
	s.do("set y", "I", Result{})
	s.want()
}

func TestTrackerAutocommit(t *testing.T) {
	s := newStory(t, "postgres")
	s.do("update a", "I", Result{})
	s.do("update b", "I", refused)
	s.want("t1 begin read committed implicit", "t1.1 update a", "t1 committed",
		"t2 begin read committed implicit", "t2.1 update b error E", "t2 aborted")
}

func TestTrackerCommitOfFailedTransactionAborts(t *testing.T) {
	s := newStory(t, "postgres")
	s.do("begin", "T", Result{})
	s.do("update a", "T", refused)
	s.do("commit", "I", Result{Tag: "ROLLBACK"})
	s.want("t1 begin read committed", "t1.1 update a error E", "t1 aborted")
}

func TestTrackerRefusedCommit(t *testing.T) {
	for _, tc := range []struct {
		engine string
		res    Result
		want   string
	}{
		{"postgres", refused, "t1 aborted"},
		{"mariadb", refused, "t1 unknown"},
		{"mariadb", aborted, "t1 aborted"},
	} {
		s := newStory(t, tc.engine)
		s.do("begin", "T", Result{})
		s.do("update a", "T", Result{})
		s.do("commit", "I", tc.res)
		s.want("t1 begin read committed", "t1.1 update a", tc.want)
	}
}

func TestTrackerPipelineTwoTransactions(t *testing.T) {
	s := newStory(t, "postgres")
	a, b := s.trk.Sending(plan("update a")), s.trk.Sending(plan("update b"))
	s.trk.Done(s.trk.Answer(a), Result{})
	s.trk.Status(false)
	s.trk.Done(s.trk.Answer(b), Result{})
	s.trk.Status(false)
	s.want("t1 begin read committed implicit", "t1.1 update a", "t1 committed",
		"t2 begin read committed implicit", "t2.1 update b", "t2 committed")
}

func TestTrackerPipelineSharesImplicitTransaction(t *testing.T) {
	s := newStory(t, "postgres")
	a, b, c := s.trk.Sending(plan("update a")), s.trk.Sending(plan("update b")), s.trk.Sending(plan("update c"))
	s.trk.Done(s.trk.Answer(a), Result{})
	s.trk.Done(s.trk.Answer(b), refused)
	s.trk.Drop(c)
	s.trk.Status(false)
	s.want("t1 begin read committed implicit", "t1.1 update a", "t1.2 update b error E", "t1 aborted")
}

func TestTrackerSavepoints(t *testing.T) {
	s := newStory(t, "postgres")
	s.do("begin", "T", Result{})
	s.do("update a", "T", Result{})
	s.do("savepoint s", "T", Result{})
	s.do("update b", "T", Result{})
	s.do("rollback s", "T", Result{})
	s.do("update c", "T", Result{})
	s.do("rollback missing", "T", refused)
	s.do("commit", "I", Result{Tag: "COMMIT"})
	s.want("t1 begin read committed", "t1.1 update a", "t1.2 savepoint s []", "t1.3 update b", "t1.4 rollback s [] undoes 3",
		"t1.5 update c", "t1.6 rollback missing [] error E", "t1 committed")
}

func TestTrackerChainKeepsLevel(t *testing.T) {
	s := newStory(t, "postgres")
	s.do("begin serializable", "T", Result{})
	s.do("update a", "T", Result{})
	s.do("commit chain", "T", Result{Tag: "COMMIT"})
	s.do("update b", "T", Result{})
	s.do("rollback", "I", Result{Tag: "ROLLBACK"})
	s.want("t1 begin serializable", "t1.1 update a", "t1 committed", "t2 begin serializable", "t2.1 update b", "t2 aborted")
}

func TestTrackerNextLevelHoldsOnce(t *testing.T) {
	s := newStory(t, "mariadb")
	s.do("next serializable", "I", Result{})
	s.do("update a", "I", Result{})
	s.do("update b", "I", Result{})
	s.want("t1 begin serializable implicit", "t1.1 update a", "t1 committed",
		"t2 begin read committed implicit", "t2.1 update b", "t2 committed")
}

func TestTrackerImplicitCommitOfMySQL(t *testing.T) {
	s := newStory(t, "mariadb")
	s.do("begin", "T", Result{})
	s.do("update a", "T", Result{})
	s.do("alter t", "I", Result{})
	s.want("t1 begin read committed", "t1.1 update a", "t1 committed",
		"t2 begin read committed implicit", "t2.1 alter t [opaque]", "t2 committed")
}

func TestTrackerRefusedImplicitCommit(t *testing.T) {
	for status, want := range map[string][]string{
		"I": {"t1 begin read committed", "t1.1 update a", "t1.2 alter t [opaque] error E", "t1 committed"},
		"T": {"t1 begin read committed", "t1.1 update a", "t1.2 alter t [opaque] error E"},
	} {
		s := newStory(t, "mariadb")
		s.do("begin", "T", Result{})
		s.do("update a", "T", Result{})
		s.do("alter t", status, refused)
		s.want(want...)
	}
}

func TestTrackerAutocommitOff(t *testing.T) {
	s := newStory(t, "mariadb")
	s.do("update a", "T", Result{})
	s.do("update b", "T", Result{})
	s.do("commit", "I", Result{})
	s.want("t1 begin read committed implicit", "t1.1 update a", "t1.2 update b", "t1 committed")
}

func TestTrackerAbortingError(t *testing.T) {
	s := newStory(t, "mariadb")
	s.do("begin", "T", Result{})
	s.do("update a", "T", Result{})
	s.do("update b", "I", aborted)
	s.do("update c", "I", Result{})
	s.want("t1 begin read committed", "t1.1 update a", "t1.2 update b error E", "t1 aborted",
		"t2 begin read committed implicit", "t2.1 update c", "t2 committed")
}

// logging makes a plan whose writes come with the log.
func (s *story) logging(sql, status string) string { return s.loggingOf(sql, status, Result{}) }

func (s *story) loggingOf(sql, status string, res Result) string {
	p := plan(sql)
	p.Log, p.Stamp = true, true
	tk := s.trk.Sending(p)
	stamp := s.trk.Stamp(tk)
	s.trk.Done(s.trk.Answer(tk), res)
	s.trk.Status(status == "T")
	return stamp
}

// TestTrackerInsertsOrUpdates: ON DUPLICATE KEY UPDATE of which the log tells nothing is seen exactly if it inserted all its rows.
func TestTrackerInsertsOrUpdates(t *testing.T) {
	for _, tt := range []struct {
		rows    int
		changed uint64
		exact   bool
	}{{1, 1, true}, {1, 0, true}, {1, 2, false}, {3, 3, true}, {3, 1, false}, {3, 4, false}} {
		for _, status := range []string{"I", "T"} {
			s := newStory(t, "mariadb")
			if status == "T" {
				s.do("begin", status, Result{})
			}
			p := plan("insert a")
			p.Log, p.Stamp, p.Rows = true, true, tt.rows
			s.trk.Done(s.trk.Answer(s.trk.Sending(p)), Result{Changed: tt.changed})
			s.trk.Status(status == "T")
			s.trk.Logged(nil, false)
			if last := s.out[len(s.out)-1]; strings.Contains(last, "[approximate]") == tt.exact {
				t.Errorf("%+v, status %s: %s", tt, status, last)
			}
		}
	}
}

// TestTrackerCountsRows: an INSERT IGNORE of two rows passed over none if it changed two, and a REPLACE replaced none; with less, and with more, nobody
// knows which.
func TestTrackerCountsRows(t *testing.T) {
	for changed, seen := range []string{"[approximate]", "[approximate]", "exact", "[approximate]"} {
		s := newStory(t, "mariadb")
		p := plan("insert a")
		p.Coverage, p.WithRows, p.Rows = history.CoverageApproximate, history.CoverageExact, 2
		s.trk.Done(s.trk.Answer(s.trk.Sending(p)), Result{Changed: uint64(changed)})
		if last := s.out[len(s.out)-1]; strings.Contains(last, "[approximate]") != (seen != "exact") {
			t.Errorf("%d rows: %s, want %s", changed, last, seen)
		}
	}
}

func TestTrackerLogBeforeCommit(t *testing.T) {
	s := newStory(t, "mariadb")
	s.do("begin", "T", Result{})
	stamp := s.logging("update a", "T")
	s.do("select b", "T", Result{})
	if !s.trk.PendingLog() {
		t.Fatal("no log pending after a statement that logs")
	}
	s.trk.Logged(map[string][]history.Access{stamp: {{Op: history.OpUpdate, Version: "v"}}, "T9.9.r": {{}}}, false)
	s.do("commit", "I", Result{})
	s.want("t1 begin read committed", "t1.1 update a update:v", "t1.2 select b", "t1 committed")
	if s.trk.PendingLog() {
		t.Error("log still pending at the end")
	}
}

func TestTrackerLogAfterAutocommit(t *testing.T) {
	s := newStory(t, "mariadb")
	stamp := s.logging("update a", "I")
	s.trk.Logged(map[string][]history.Access{stamp: {{Op: history.OpUpdate, Version: "v"}}}, false)
	s.want("t1 begin read committed implicit", "t1.1 update a", "t1 committed pending", "t1.1 update a update:v")
}

// TestTrackerLogKeepsFirstForm: what the log tells of a statement in autocommit is in its late form alone: a sink may still hold the first one's lists, in which the
// condition's answer is not known to be whole. In a transaction the log comes before, and the one form has it.
func TestTrackerLogKeepsFirstForm(t *testing.T) {
	for status, want := range map[string][]bool{"I": {false, true}, "T": {true}} {
		var events []history.Event
		rec := NewRecorder("test", func(ev *history.Event) []Warning {
			if ev.Kind == history.EventStmt && len(ev.Reads) > 0 {
				events = append(events, *ev)
			}
			return nil
		})
		trk := NewTracker(rec, history.Event{Engine: "mariadb"}, Limits{})
		if status == "T" {
			trk.Done(trk.Answer(trk.Sending(plan("begin"))), Result{})
			trk.Status(true)
		}
		p := plan("update a")
		p.Log, p.Stamp, p.Predicate = true, true, true
		p.Asks = []rewrite.Ask{{Table: "d.t", Current: true, Where: condition.Always}}
		trk.Done(trk.Answer(trk.Sending(p)), Result{})
		trk.Status(status == "T")
		trk.Logged(nil, false)
		var got []bool
		for _, ev := range events {
			got = append(got, ev.Reads[0].Whole)
		}
		if !slices.Equal(got, want) {
			t.Errorf("status %s: whole %v, want %v", status, got, want)
		}
	}
}

// TestTrackerPinnedLogged: an UPDATE that names its row by the key, and found none, tells that its condition did not hold; one that found the row tells
// nothing, and of one whose log is to come it is not known.
func TestTrackerPinnedLogged(t *testing.T) {
	for _, tt := range []struct{ none, want bool }{{true, true}, {false, false}} {
		var reads []history.PredicateRead
		trk := NewTracker(NewRecorder("test", func(ev *history.Event) []Warning {
			reads = append(reads, ev.Reads...)
			return nil
		}), history.Event{Engine: "mariadb"}, Limits{})
		p := plan("update a")
		p.Log, p.Stamp = true, true
		p.Asks = []rewrite.Ask{{Table: "d.t", Current: true, Pinned: true, Where: condition.Always}}
		trk.Done(trk.Answer(trk.Sending(p)), Result{None: tt.none})
		if got := len(reads) == 1 && reads[0].Whole; got != tt.want || len(reads) > 1 {
			t.Errorf("none %v: %+v", tt.none, reads)
		}
	}
}

// TestTrackerLogTellsNothing: a statement that changed rows is not seen exactly if the log tells nothing of it; one that changed none is.
func TestTrackerLogTellsNothing(t *testing.T) {
	for _, changed := range []uint64{1, 0} {
		for _, status := range []string{"I", "T"} {
			s := newStory(t, "mariadb")
			if status == "T" {
				s.do("begin", status, Result{})
			}
			s.loggingOf("update a", status, Result{Changed: changed})
			s.trk.Logged(nil, false)
			if last := s.out[len(s.out)-1]; strings.Contains(last, "[approximate]") != (changed > 0) {
				t.Errorf("rows changed: %v, status %s: %s", changed, status, last)
			}
		}
	}
}

func TestTrackerLostLogIsSaid(t *testing.T) {
	s := newStory(t, "mariadb")
	s.do("begin", "T", Result{})
	s.logging("update a", "T")
	s.do("commit", "I", Result{})
	s.want("t1 begin read committed", "t1.1 update a [approximate]", "t1 committed")
}

func TestTrackerLostLogOfSelectIsSaid(t *testing.T) {
	s := newStory(t, "mariadb")
	s.do("begin", "T", Result{})
	s.logging("select a", "T")
	s.do("select b", "T", Result{})
	s.do("commit", "I", Result{})
	s.want("t1 begin read committed", "t1.1 select a [approximate]", "t1.2 select b", "t1 committed")
}

// TestTrackerHoldsNotAll: the log of a long transaction is never fetched, since every statement asks what the one before left behind.
func TestTrackerHoldsNotAll(t *testing.T) {
	events := 0
	trk := NewTracker(NewRecorder("r", func(*history.Event) []Warning { events++; return nil }), history.Event{Engine: "mysql"}, Limits{})
	run := func(p *rewrite.Plan) { trk.Done(trk.Answer(trk.Sending(p)), Result{}); trk.Status(true) }
	run(plan("begin"))
	update := plan("update a")
	update.Log = true
	run(update)
	for range 3 * heldMax {
		run(plan("select 1"))
		if trk.Held() > heldMax {
			t.Fatalf("%d statements are held", trk.Held())
		}
	}
	if events < heldMax {
		t.Errorf("%d events after %d statements", events, 3*heldMax)
	}
	run(update)
	const length = 64 << 10
	long, n := plan("select '"+strings.Repeat("x", length)+"'"), 0
	for ; trk.Held() > 0; n++ {
		run(long)
	}
	if most := heldMax/(length/heldText) + 1; n > most {
		t.Errorf("%d statements of %d bytes were held, want at most %d", n, length, most)
	}
}

func TestTrackerTooManyFacts(t *testing.T) {
	s := newStory(t, "postgres")
	three := []history.Access{{Op: history.OpRead, Version: "1"}, {Op: history.OpRead, Version: "2"}, {Op: history.OpRead, Version: "3"}}
	s.do("select a", "I", Result{}, three...)
	s.do("select b", "I", Result{}, three[:2]...)
	s.want("t1 begin read committed implicit", "t1.1 select a read:1 read:2 [approximate]", "t1 committed",
		"t2 begin read committed implicit", "t2.1 select b read:1 read:2", "t2 committed")
}

func TestTrackerCoverageThatNeedsRows(t *testing.T) {
	s := newStory(t, "postgres")
	for _, rows := range []bool{true, false} {
		p := plan("select a")
		p.Coverage, p.Why, p.WithRows = history.CoverageApproximate, "an answer without rows tells nothing", history.CoverageExact
		r := s.trk.Answer(s.trk.Sending(p))
		if rows {
			told(t, r)
		}
		s.trk.Done(r, Result{})
		s.trk.Status(false)
	}
	s.want("t1 begin read committed implicit", "t1.1 select a", "t1 committed",
		"t2 begin read committed implicit", "t2.1 select a [approximate]", "t2 committed")
}

// TestTrackerMet: of an INSERT of several rows, what each met is known if the images of those that it inserted tell which ones these are.
func TestTrackerMet(t *testing.T) {
	for _, tt := range []struct {
		images []string // of the rows that were inserted
		want   string
	}{
		{nil, "k = 1, k = 2"},
		{[]string{`"k" "1"`}, "k = 2"},
		{[]string{`"k" "2"`, `"k" "1"`}, ""},
		{[]string{`"n" "1"`}, "[approximate]"},
		{[]string{""}, "[approximate]"},
	} {
		s := newStory(t, "postgres")
		p := plan("insert a")
		p.Coverage, p.Why, p.WithRows, p.Rows, p.Met = history.CoverageApproximate, "it does not tell", history.CoverageExact, 9, true
		for _, k := range []string{"=1", "=2"} {
			p.Asks = append(p.Asks, rewrite.Ask{Table: "a", Met: true, Pinned: true, Current: true, Where: condition.Open("=", condition.Number, "k", &k)})
		}
		wanted := 0
		s.trk.Wants(func(*rewrite.Ask) { wanted++ })
		r := s.trk.Answer(s.trk.Sending(p))
		for _, image := range tt.images {
			told(t, r, history.Access{Op: history.OpInsert, Row: history.Row{Table: "a"}, Version: "1", Image: image})
		}
		var got []string
		s.trk.rec.sink = func(ev *history.Event) []Warning {
			for _, read := range ev.Reads {
				c, _ := condition.Parse(read.Where)
				got = append(got, c.Words())
			}
			if ev.Coverage == history.CoverageApproximate {
				got = append(got, "[approximate]")
			}
			return nil
		}
		s.trk.Done(r, Result{})
		if list := strings.Join(got, ", "); list != tt.want || tt.want == "[approximate]" && wanted != 2 {
			t.Errorf("inserted %q: asked for %q, want %q; %d images wanted", tt.images, list, tt.want, wanted)
		}
	}
}

func TestTrackerTokensComeFromWrites(t *testing.T) {
	var got []string
	rec := NewRecorder("r", func(ev *history.Event) []Warning {
		got = append(got, ev.Tokens...)
		for _, a := range ev.Accesses {
			if a.Op.Writes() && a.Writer != "" {
				t.Errorf("a write names its own transaction: %+v", a)
			}
		}
		return nil
	})
	s := &story{t: t, rec: rec, trk: NewTracker(rec, history.Event{Engine: "postgres"}, Limits{})}
	s.do("update a", "I", Result{},
		history.Access{Op: history.OpUpdate, Version: "1", Writer: "x7"}, history.Access{Op: history.OpUpdate, Version: "2", Writer: "x7"},
		history.Access{Op: history.OpRead, Version: "3", Writer: "x6"})
	if diff := cmp.Diff([]string{"x7"}, got); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestTrackerClose(t *testing.T) {
	for _, tc := range []struct {
		name   string
		flying string
		want   string
	}{
		{"idle in transaction", "", "t1 aborted"},
		{"during a read", "select b", "t1 aborted"},
		{"during COMMIT", "commit", "t1 unknown"},
	} {
		s := newStory(t, "postgres")
		s.do("begin", "T", Result{})
		s.do("update a", "T", Result{})
		if tc.flying != "" {
			s.trk.Sending(plan(tc.flying))
		}
		s.trk.Close()
		s.want("t1 begin read committed", "t1.1 update a", tc.want, "close")
	}
}

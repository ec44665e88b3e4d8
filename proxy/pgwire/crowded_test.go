package pgwire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/pgwire"
	"wirecheck/proxy/record"
	"wirecheck/proxy/record/recordtest"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// TestLongMessagesOfMany: while other sessions hold as many long messages as all may, a long text, parameter, row or error is not held. The answers are the
// server's all the same, what is short is seen as always, and when the others have ended, so is what is long. The same holds while many long texts are planned.
func TestLongMessagesOfMany(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'x')")
	ev := &events{}
	recorder := record.NewRecorder("test", ev.sink)
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, pgwire.NewObserver(pgwire.ObserverConfig{Rewriter: postgres.New(rewrite.CaptureAuto), Recorder: recorder}))
	long := strings.Repeat("y", 200_000)
	session := []string{
		"Q SELECT id FROM t", "Q SELECT id FROM t WHERE v <> '" + long + "'", "Q SELECT repeat('z', 300000), v FROM t", "Q SELECT '" + long + "'::int FROM t",
		"P |SELECT v FROM t WHERE v <> '" + long + "'", "B", "E", "S", "P s|SELECT v, id FROM t WHERE v <> $1", "S", "B  s||" + long + "|0,1", "D P", "E", "S", "B  s||x", "E", "S", "B  s||z|1", "E", "S",
	}
	play := func(w *wire) (out []string) {
		for _, step := range session {
			out = append(out, w.step(step)...)
		}
		return out
	}
	want := play(dialWire(t, srv.Address(), db.User, db.Name))
	seen := func() (exact, opaque int) {
		for _, e := range ev.all() {
			switch {
			case e.Kind != history.EventStmt:
			case e.Coverage == history.CoverageExact:
				exact++
			case e.Coverage == history.CoverageOpaque:
				opaque++
			}
		}
		return exact, opaque
	}
	check := func(exact, opaque int) {
		t.Helper()
		exactBefore, opaqueBefore := seen()
		w := dialWire(t, r.addr.String(), db.User, db.Name)
		if diff := cmp.Diff(want, play(w)); diff != "" {
			t.Errorf("directly (-), through the proxy (+):\n%s", diff)
		}
		w.step("X")
		if gotExact, gotOpaque := seen(); gotExact-exactBefore != exact || gotOpaque-opaqueBefore != opaque {
			t.Errorf("%d statements were seen exactly, %d were opaque, want %d and %d", gotExact-exactBefore, gotOpaque-opaqueBefore, exact, opaque)
		}
	}
	check(8, 0)
	end := recordtest.Fill(recorder)
	check(5, 3) // texts; of a row and of parameters, what was added is read all the same
	end()
	check(8, 0)
	end = recordtest.Occupy(recorder.Lanes())
	check(5, 3)
	end()
	check(8, 0)
	r.stop()
	if kept := recorder.Kept(); kept != 0 {
		t.Errorf("sessions that have ended still keep messages of %d bytes", kept)
	}
}

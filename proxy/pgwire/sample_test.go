package pgwire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/oracle/isolation"
	"wirecheck/proxy"
)

// sampling gives a configuration that observes the first sessions as wanted: "ox" the first one and not the second.
func sampling(t *testing.T, srv *testserver.Server, want string) proxy.Config {
	t.Helper()
	c := proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe, Sample: 0.5}
	for c.Seed = range uint64(100_000) {
		got := ""
		for i := range want {
			got += map[bool]string{true: "o", false: "x"}[(&proxy.Session{ID: uint64(i + 1), Config: &c}).Observed()]
		}
		if got == want {
			return c
		}
	}
	t.Fatalf("no seed for %s", want)
	return c
}

// TestSample opens sessions of which some are observed: these are in the history, and all get the server's answers.
func TestSample(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	ev := &events{}
	const want = "oxxoxo"
	r := start(t, sampling(t, srv, want), observer(ev))
	for i := range want {
		w := dialWire(t, r.addr.String(), db.User, db.Name)
		if got := strings.Join(w.step(fmt.Sprintf("Q SELECT %d AS session FROM t", i)), " "); !strings.Contains(got, "SELECT 1") {
			t.Errorf("session %d: %s", i, got)
		}
	}
	r.stop()
	var seen []string
	for _, e := range ev.all() {
		if e.Kind == history.EventStmt {
			seen = append(seen, e.SQL)
		}
	}
	if d := cmp.Diff([]string{"SELECT 0 AS session FROM t", "SELECT 3 AS session FROM t", "SELECT 5 AS session FROM t"}, seen); d != "" {
		t.Errorf("statements in the history (-want +got):\n%s", d)
	}
}

// TestSampleSchema lets sessions that are not observed change the schema: a session that is observed gets the server's answers.
func TestSampleSchema(t *testing.T) {
	srv := testserver.Postgres(t)
	setup := []string{"CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')"}
	steps := []string{"1 Q SELECT v FROM t"}
	for _, change := range []string{
		"ALTER TABLE t RENAME k TO kk", "BEGIN; ALTER TABLE t RENAME kk TO k; COMMIT", "DO 'BEGIN ALTER TABLE t RENAME k TO kk; END'",
		"ALTER TABLE t DROP COLUMN kk", "ALTER TABLE t ADD COLUMN k int PRIMARY KEY DEFAULT 1",
	} {
		steps = append(steps, "2 Q "+change, "1 Q BEGIN", "1 Q SELECT v FROM t", "1 Q UPDATE t SET v = v", "1 Q COMMIT")
	}
	steps = append(steps, "2 Q BEGIN", "2 Q ALTER TABLE t RENAME k TO kk", "2 Q COMMIT", "1 Q BEGIN", "1 Q SELECT v FROM t", "1 Q COMMIT")
	play := func(addr, database string) (out []string) {
		on := map[string]*wire{}
		for _, who := range []string{"1", "2"} {
			on[who] = dialWire(t, addr, testserver.AppTrust, database)
		}
		for _, step := range steps {
			who, step, _ := strings.Cut(step, " ")
			out = append(append(out, step), on[who].step(step)...)
		}
		return out
	}
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(srv.Address(), direct.Name)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, setup...)
	ev := &events{}
	r := start(t, sampling(t, srv, "ox"), observer(ev))
	if d := cmp.Diff(want, play(r.addr.String(), db.Name)); d != "" {
		t.Errorf("-direct +proxy:\n%s", d)
	}
	r.stop()
	exact := 0
	for _, e := range ev.all() {
		if e.Coverage == history.CoverageExact {
			exact++
		}
	}
	if exact < 10 {
		t.Errorf("%d exact statements, want 10", exact)
	}
}

// judge gives what the oracle finds in the events.
func judge(ev *events) []string {
	c := isolation.New(isolation.Options{})
	for _, e := range ev.all() {
		c.Add(&e)
	}
	var out []string
	for _, f := range c.Summary() {
		out = append(out, f.Title())
	}
	return out
}

// TestSampleIsSound lets sessions, of which half are observed, write the same rows at random, in transactions that lock first: no
// interleaving of them is an anomaly, whatever the others wrote in between.
func TestSampleIsSound(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t SELECT i, 0 FROM generate_series(1, 3) i")
	ev := &events{}
	const want = "oxoxox"
	r := start(t, sampling(t, srv, want), observer(ev))
	var all sync.WaitGroup
	for i := range want {
		w := dialWire(t, r.addr.String(), db.User, db.Name)
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		all.Go(func() {
			for range 40 {
				for _, step := range []string{
					// A statement that waited reads what was committed meanwhile of the row that it waited for, and misses inserted rows: so the first reads one row.
					"BEGIN", "SELECT v FROM t WHERE k = 1 FOR UPDATE", "SELECT v FROM t ORDER BY k FOR UPDATE", fmt.Sprintf("UPDATE t SET v = v + 1 WHERE k = %d", 1+rnd.IntN(3)),
					fmt.Sprintf("DELETE FROM t WHERE k = %d", 2+rnd.IntN(2)), "SELECT k, v FROM t",
					fmt.Sprintf("INSERT INTO t VALUES (%d, %d) ON CONFLICT (k) DO UPDATE SET v = t.v + 1", 2+rnd.IntN(2), rnd.IntN(9)), []string{"COMMIT", "ROLLBACK"}[rnd.IntN(2)],
				} {
					w.step("Q " + step)
				}
			}
		})
	}
	all.Wait()
	r.stop()
	if found := judge(ev); len(found) > 0 {
		t.Errorf("found %q", found)
	}
}

// TestSampleFinds loses an update between two observed sessions, with a write of another session between: it is found. That the
// other session's update is lost is not.
func TestSampleFinds(t *testing.T) {
	srv := testserver.Postgres(t)
	for _, c := range []struct {
		sessions string
		want     bool
	}{{"oox", true}, {"oxx", false}, {"xox", false}} {
		db := srv.Database(t).As(testserver.AppTrust)
		db.Exec(t, "CREATE TABLE t (k int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 0)")
		ev := &events{}
		r := start(t, sampling(t, srv, c.sessions), observer(ev))
		on := map[string]*wire{}
		for i := range c.sessions {
			on[fmt.Sprint(i+1)] = dialWire(t, r.addr.String(), db.User, db.Name)
		}
		for _, step := range []string{"1 BEGIN", "2 BEGIN", "1 SELECT v FROM t WHERE k = 1", "2 SELECT v FROM t WHERE k = 1", "3 UPDATE t SET v = 7 WHERE k = 1",
			"1 UPDATE t SET v = 1 WHERE k = 1", "1 COMMIT", "3 UPDATE t SET v = 8 WHERE k = 1", "2 UPDATE t SET v = 2 WHERE k = 1", "2 COMMIT"} {
			who, sql, _ := strings.Cut(step, " ")
			on[who].step("Q " + sql)
		}
		r.stop()
		found := judge(ev)
		if got := len(found) > 0; got != c.want {
			t.Errorf("%s: found %q, want something: %v", c.sessions, found, c.want)
		}
	}
}

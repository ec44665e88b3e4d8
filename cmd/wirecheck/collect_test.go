package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/stream"
	"wirecheck/internal/shop"
	"wirecheck/oracle"
)

// fleetOf is a NATS server with the publishers of a test's proxies.
type fleetOf struct {
	bus   *bus.Bus
	where string
	name  string
	list  []*stream.Publisher
}

func newFleet(t *testing.T) *fleetOf {
	t.Helper()
	f := &fleetOf{where: bus.Embedded + t.TempDir() + "/fleet", name: stream.DefaultFleet}
	var err error
	if f.bus, err = bus.Open(t.Context(), f.where, bus.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.bus.Close)
	return f
}

// publisher makes one for the next proxy.
func (f *fleetOf) publisher(t *testing.T, run string) *stream.Publisher {
	t.Helper()
	p, err := stream.NewPublisher(f.bus, stream.Options{Fleet: f.name, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	f.list = append(f.list, p)
	return p
}

// published waits until all is published.
func (f *fleetOf) published(t *testing.T) {
	t.Helper()
	for _, p := range f.list {
		if n := p.Close(patience); n > 0 {
			t.Fatalf("%d events were not published", n)
		}
	}
	f.list = nil
}

// collected is what wirecheck collect finds in what was published.
func (f *fleetOf) collected(t *testing.T) []oracle.Finding {
	t.Helper()
	out, said, status := command(t, "collect", "--from", f.where, "--fleet", f.name, "--until-end", "--format", "json")
	got := found(t, out)
	want := exitClean // and not exitUnknown: something was seen
	if len(got) > 0 {
		want = exitFound
	}
	if status != want {
		t.Errorf("exit status %d, want %d\n%s", status, want, said)
	}
	if strings.Contains(said, `"run":`) {
		t.Errorf("something is missing:\n%s", said)
	}
	return got
}

// found are the findings in JSON.
func found(t *testing.T, out string) []oracle.Finding {
	t.Helper()
	var got struct{ Findings []oracle.Finding }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return got.Findings
}

// ids are the findings by id and title, sorted.
func ids(findings []oracle.Finding) []string {
	list := []string{}
	for i := range findings {
		list = append(list, findings[i].ID+" "+findings[i].Title())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// spreadOut plays each interleaving at the levels twice: through one proxy, and with each client at a proxy of its own. What the one proxy reports, judged
// reports of the three, with the same ids; and nothing else. What a condition could see is settled by one recorder's ticks, so anomalies by conditions are
// missed between proxies. said is shown where the two differ.
func spreadOut(t *testing.T, levels map[string][]string, judged func(t *testing.T, f *fleetOf) (found []oracle.Finding, said string)) {
	for _, engine := range []string{"postgres", "mariadb"} {
		w := newWorld(t, engine, "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
		w.clock = time.Now
		for _, level := range levels[engine] {
			for _, in := range interleavings {
				t.Run(engine+"/"+strings.ToLower(level)+"/"+in.name, func(t *testing.T) {
					w.publish = nil
					_, one := in.judge(t, w, level)
					f := newFleet(t)
					w.publish = func() *stream.Publisher { return f.publisher(t, fmt.Sprintf("run%d", len(f.list))) }
					s := in.spread(t, w, level, 3)
					f.published(t)
					want := ids(one.findings)
					if in.conditions {
						want = []string{}
					}
					got, said := judged(t, f)
					if diff := cmp.Diff(want, ids(got)); diff != "" {
						t.Errorf("three proxies (-one +three):\n%s\n%s\n%s", diff, strings.Join(s.told, "\n"), said)
					}
				})
			}
		}
	}
}

// TestCollectAnomalies: one collector reports of three proxies what one proxy reports. TestCollectParts has the other levels.
func TestCollectAnomalies(t *testing.T) {
	t.Parallel()
	spreadOut(t, map[string][]string{"postgres": {"REPEATABLE READ", "SERIALIZABLE"}, "mariadb": {"READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE"}}, func(t *testing.T, f *fleetOf) ([]oracle.Finding, string) {
		return f.collected(t), ""
	})
}

// lostUpdates gives a world whose proxies publish, each under a name of its own, their fleet, and the interleaving of a lost update.
func lostUpdates(t *testing.T, name string) (*world, *fleetOf, interleaving) {
	w := newWorld(t, "mariadb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
	w.clock = time.Now
	f := newFleet(t)
	runs := 0
	w.publish = func() *stream.Publisher {
		runs++
		return f.publisher(t, fmt.Sprintf("%s%d", name, runs))
	}
	return w, f, interleavings[slices.IndexFunc(interleavings, func(in interleaving) bool { return in.name == "P4" })]
}

// TestCollectAgain: a second collector has the findings of the first one in its list, and does not count them once more. What is new it counts.
func TestCollectAgain(t *testing.T) {
	t.Parallel()
	w, f, lost := lostUpdates(t, "again")
	for i, want := range []int{1, 1, 2, 2} {
		if i%2 == 0 {
			lost.spread(t, w, "REPEATABLE READ", 2)
			f.published(t)
		}
		got := f.collected(t)
		if len(got) != 1 || got[0].Title() != "lost update" || got[0].Seen != want {
			t.Fatalf("collector %d: %v, want one lost update, seen %d times", i+1, ids(got), want)
		}
	}
}

// TestCollectKilled: a collector is killed as soon as it has told a finding. The next one has it in its list once, and counts it once; and finds what came
// meanwhile.
func TestCollectKilled(t *testing.T) {
	t.Parallel()
	w, f, lost := lostUpdates(t, "killed")
	for want := 1; want <= 3; want++ {
		told := filepath.Join(t.TempDir(), "told")
		p := startProgram(t, "collect", "--from", f.where, "--stream", told)
		p.until(t, "it collects", func() bool { return strings.Contains(p.stderr.String(), "collecting") })
		lost.spread(t, w, "REPEATABLE READ", 2)
		f.published(t)
		if want == 1 {
			p.until(t, "it tells the finding", func() bool { text, err := os.ReadFile(told); return err == nil && bytes.HasSuffix(text, []byte("\n")) })
		}
		p.kill(t)
		if text, err := os.ReadFile(told); want > 1 && (err != nil || len(text) > 0) {
			t.Errorf("what is in the list is told again: %s %v", text, err)
		}
		if got := f.collected(t); len(got) != 1 || got[0].Seen != want {
			t.Fatalf("%v, want one finding, seen %d times", got, want)
		}
	}
}

// spread plays the interleaving with each client at one of several proxies.
func (in interleaving) spread(t *testing.T, w *world, level string, proxies int) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.run(t, "DELETE FROM test")
	var list []*through
	var targets []shop.Target
	for range proxies {
		th := w.observe(t)
		list, targets = append(list, th), append(targets, th.target)
	}
	first, err := targets[0].Connect(ctx, shop.Driver) // of rows from before the proxies, PostgreSQL does not tell their place
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := first.Do(ctx, "INSERT INTO test (id, value) VALUES (1, 10), (2, 20)"); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, ctx, w.admin, targets[0], level)
	s.spread = targets
	s.play(ctx, lines(in.steps))
	s.close()
	first.Close()
	for _, th := range list {
		if err := th.end(); err != nil {
			t.Error(err)
		}
	}
	return s
}

// TestCollectQuiet: pgbench at SERIALIZABLE through three proxies at once has no anomaly.
func TestCollectQuiet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "postgres")
	w.clock = time.Now
	tool(t, pgEnv(w.direct), "pgbench", "-i", "-q", "-s", "1")
	f := newFleet(t)
	w.publish = func() *stream.Publisher { return f.publisher(t, fmt.Sprintf("quiet%d", len(f.list))) }
	var list []*through
	for range 3 {
		list = append(list, w.observe(t))
	}
	var all sync.WaitGroup
	for _, th := range list {
		all.Go(func() {
			env := append(pgEnv(th.target), `PGOPTIONS=-c default_transaction_isolation=serializable`)
			tool(t, env, "pgbench", "-n", "-c", "2", "-t", "50", "--max-tries=100000")
		})
	}
	all.Wait()
	for _, th := range list {
		if err := th.end(); err != nil {
			t.Error(err)
		}
	}
	f.published(t)
	if got := f.collected(t); len(got) > 0 {
		t.Errorf("a correct load has findings: %v", ids(got))
	}
}

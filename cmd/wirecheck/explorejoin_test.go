package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/fleet/bus"
)

// foundBy is what explore prints of a search that does not depend on who ran it.
type foundBy struct {
	Strategy  string
	Seed      uint64
	Runs      int
	Schedules int
	Exhausted bool
	Failed    *struct {
		Run, Exit, Switches int
		Why                 string
		Switches_at_first   int
		Runs_for_smaller    int
		Failed_again        bool
	}
	Result struct {
		Findings []struct{ Name string }
	}
}

func (r *raceTest) found(t *testing.T, text string) (f foundBy) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return f
}

// TestExploreJoin: three processes share the runs of explore, each with a database of its own, and one is killed in the middle: the others print what one
// by itself finds, for a race and for a test that has none, for schedules that are drawn and for all of them.
func TestExploreJoin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		engine, which string
		args          []string
		want          exitStatus
	}{
		{"postgres", "racy", []string{"--seed", "94", "--shrink-runs", "3"}, exitFound},
		{"mariadb", "racy", []string{"--strategy", "all"}, exitFound},
		{"postgres", "fixed", []string{"--strategy", "all", "--runs", "60"}, exitClean},
		{"mariadb", "fixed", []string{"--strategy", "pct", "--seed", "5", "--runs", "9"}, exitClean},
	} {
		t.Run(tt.engine+" "+tt.which+" "+strings.Join(tt.args, " "), func(t *testing.T) {
			by := newRace(t, tt.engine)
			common := append(tt.args, "--think", thinking, "--format", "json")
			out, said, status := by.explore(t, tt.which, common...)
			if status != tt.want {
				t.Fatalf("by itself: exit status %d\n%s%s", status, out, said)
			}
			want := by.found(t, out)
			where := bus.Embedded + filepath.Join(t.TempDir(), "fleet")
			b := connect(t, where)
			var all []*program
			var races []*raceTest
			script := filepath.Join(t.TempDir(), "test.sh")
			if err := os.WriteFile(script, []byte("exec sh \"$RACE\" \"$1\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				r := newRace(t, tt.engine)
				args := slices.Concat([]string{"explore", "--limit", patient, "--upstream", r.database.URL(), "--save-schedule", r.file("s"), "--join", where, "--lease", "2s"},
					r.args, common, []string{"--", "sh", script, tt.which})
				races = append(races, r)
				all = append(all, startProgramWith(t, []string{"RACE=" + r.file("race.sh")}, args...))
			}
			all[0].until(t, "a run", func() bool { done, under := doneBy(t, b, "explore-default"); return done+under >= 1 })
			if err := all[0].cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-all[0].ended
			for i, p := range all[1:] {
				if status := p.wait(t); status != int(tt.want) {
					t.Fatalf("exit status %d\n%s%s", status, p.stdout.String(), p.stderr.String())
				}
				if diff := cmp.Diff(want, by.found(t, p.stdout.String())); diff != "" {
					t.Errorf("found something else (-one +several):\n%s", diff)
				}
				if _, err := os.Stat(races[i+1].file("s")); (err == nil) != (tt.want == exitFound) {
					t.Errorf("the schedule: %v", err)
				}
			}
			other := append([]string{"--join", where, "--runs", "7"}, common[len(tt.args):]...)
			if _, said, status := by.explore(t, tt.which, other...); status != exitFailed || !strings.Contains(said, `and this process "7"`) {
				t.Errorf("other settings: exit status %d\n%s", status, said)
			}
			if _, said, status := by.explore(t, tt.which, append([]string{"--join", where}, common...)...); status != exitFailed || !strings.Contains(said, "the fleet's command is sh ") {
				t.Errorf("another command: exit status %d\n%s", status, said)
			}
		})
	}
}

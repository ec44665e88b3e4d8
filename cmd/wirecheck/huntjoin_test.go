package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/hunt"
)

// huntCases is how many cases a fleet's hunt has: on PostgreSQL so many that a hunter's server can be hit long before their end.
func huntCases(engine string) int {
	if engine == "postgres" {
		return 160
	}
	return 40
}

// huntFleet is a hunt of a fleet that finds known bugs of MariaDB, or none of PostgreSQL, of which none is known.
func huntFleet(engine, where string) []string {
	args := slices.Clone(fruitful)
	if engine == "postgres" {
		args = []string{"--engine", "postgres", "--oracle", "crash,wss", "--seed", "3", "--limit", "6s"}
	}
	return append(args, "--cases", fmt.Sprint(huntCases(engine)), "--group", "4", "--join", where, "--lease", "2s")
}

// crashServer kills a process of the hunter's server while the hunter itself stands still, so that its cases do not end in the meantime.
func crashServer(t *testing.T, h *hunting, cases int) {
	t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if s := h.state(t); s.Next > cases*3/4 {
		t.Fatalf("%d of %d cases are done already", s.Next, cases)
	}
	h.signal(t, syscall.SIGKILL, idle)
	if err := h.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// tree lists the files of a folder, with the content of those that say what a bug is.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Dir(path) == dir {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestHuntJoin: three hunters share a hunt, and one is killed (the one with the server): all cases count once, each bug is kept once, and the folders
// are the same. Another hunter's settings are refused. PostgreSQL has no known bug: there, a process of one hunter's server is killed.
func TestHuntJoin(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"mariadb", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			where := "embedded:" + filepath.Join(dir, "fleet")
			var hunters []*hunting
			for _, name := range []string{"a", "b", "c"} {
				hunters = append(hunters, startHunt(t, filepath.Join(dir, name), huntFleet(engine, where)...))
			}
			cases := huntCases(engine)
			some := func(s *hunt.State) bool { return s.Next >= 3 }
			hunters[0].until(t, "some cases", some)
			if engine == "postgres" {
				hunters[1].until(t, "some cases", some)
				crashServer(t, hunters[1], cases)
			}
			if err := hunters[0].cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-hunters[0].ended
			want, least := exitFound, cases
			if engine == "postgres" {
				want, least = exitClean, cases-1 // the case in which the server crashed may not have come to its end
			}
			for _, h := range hunters[1:] {
				status, s := h.wait(t)
				h.clean(t)
				if s == nil {
					t.Fatalf("exit status %d, no state\n%s", status, h.stderr.String())
				}
				if status != int(want) || s.Cases < least || s.Next != cases {
					t.Errorf("exit status %d, want %d; %d cases, next %d\n%s", status, want, s.Cases, s.Next, h.stderr.String())
				}
			}
			sameFindings(t, engine, where, hunters[1].out, hunters[2].out)
			if _, said, status := command(t, "hunt", "--join", where, "--cases", fmt.Sprint(cases+1), "--out", filepath.Join(dir, "d")); status != exitFailed ||
				!strings.Contains(said, fmt.Sprintf(`the fleet has --cases "%d", and this process "%d"`, cases, cases+1)) {
				t.Errorf("other settings: exit status %d, said %q", status, said)
			}
		})
	}
}

// sameFindings compares what two hunters of a fleet have kept, and what the fleet's status says of it.
func sameFindings(t *testing.T, engine, where, one, other string) {
	t.Helper()
	b, c := folders(t, one), folders(t, other)
	if list := signatures(b); (len(list) == 0) != (engine == "postgres") || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("bugs: %v", list)
	}
	if diff := cmp.Diff(signatures(b), signatures(c)); diff != "" {
		t.Errorf("other bugs:\n%s", diff)
	}
	files := tree(t, one)
	if diff := cmp.Diff(files, tree(t, other)); diff != "" {
		t.Errorf("other folders:\n%s", diff)
	}
	if engine == "postgres" {
		if _, once := files["/flaky/crash-001/finding.json"]; !once {
			t.Errorf("the crash is not kept: %v", slices.Sorted(maps.Keys(files)))
		}
		if _, twice := files["/flaky/crash-002/finding.json"]; twice {
			t.Error("the crash is kept twice")
		}
	}
	var s hunt.Status
	out, said, status := command(t, "hunt", "status", where, "--format", "json")
	if err := json.Unmarshal([]byte(out), &s); err != nil || status != exitClean || s.Counts.Next != huntCases(engine) || len(s.Bugs) != len(b) || len(s.Hunters) < 3 || len(s.Groups) != 0 {
		t.Errorf("exit status %d, error %v, said %q\n%s", status, err, said, out)
	}
	out, _, _ = command(t, "hunt", "status", where)
	for line := range strings.Lines(out) {
		if len(line) > 81 {
			t.Errorf("wider than a terminal: %q", line)
		}
	}
}

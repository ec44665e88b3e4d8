package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/hunt"
)

// huntFleet is a hunt of a fleet that finds known bugs of MariaDB.
func huntFleet(where string) []string {
	return append(slices.Clone(fruitful), "--cases", "60", "--group", "4", "--join", where, "--lease", "2s")
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
// are the same. Another hunter's settings are refused.
func TestHuntJoin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	where := "embedded:" + filepath.Join(dir, "fleet")
	var hunters []*hunting
	for _, name := range []string{"a", "b", "c"} {
		h := startHunt(t, filepath.Join(dir, name), huntFleet(where)...)
		hunters = append(hunters, h)
	}
	hunters[0].until(t, "some cases", func(s *hunt.State) bool { return s.Next >= 3 })
	if err := hunters[0].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-hunters[0].ended
	for _, h := range hunters[1:] {
		status, s := h.wait(t)
		h.clean(t)
		if s == nil {
			t.Fatalf("exit status %d, no state\n%s", status, h.stderr.String())
		}
		if status != int(exitFound) || s.Cases != 60 || s.Next != 60 {
			t.Errorf("exit status %d, %d cases, next %d\n%s", status, s.Cases, s.Next, h.stderr.String())
		}
	}
	if _, said, status := command(t, "hunt", "--join", where, "--cases", "61", "--out", filepath.Join(dir, "d")); status != exitFailed ||
		!strings.Contains(said, `the fleet has --cases "60", and this hunter "61"`) {
		t.Errorf("other settings: exit status %d, said %q", status, said)
	}
	b, c := folders(t, hunters[1].out), folders(t, hunters[2].out)
	if list := signatures(b); len(list) == 0 || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("bugs: %v", list)
	}
	if diff := cmp.Diff(signatures(b), signatures(c)); diff != "" {
		t.Errorf("other bugs:\n%s", diff)
	}
	if diff := cmp.Diff(tree(t, hunters[1].out), tree(t, hunters[2].out)); diff != "" {
		t.Errorf("other folders:\n%s", diff)
	}
	var s hunt.Status
	out, said, status := command(t, "hunt", "status", where, "--format", "json")
	if err := json.Unmarshal([]byte(out), &s); err != nil || status != exitClean || s.Counts.Cases != 60 || len(s.Bugs) != len(b) || len(s.Hunters) < 3 || len(s.Groups) != 0 {
		t.Errorf("exit status %d, error %v, said %q\n%s", status, err, said, out)
	}
	out, _, _ = command(t, "hunt", "status", where)
	for line := range strings.Lines(out) {
		if len(line) > 81 {
			t.Errorf("wider than a terminal: %q", line)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/work"
	"wirecheck/lab/hunt"
)

// TestHuntAbsent: the network to the fleet's server is down when a hunter finds something and when it is asked to end: it ends, says where that is, and
// enters it when it joins again.
func TestHuntAbsent(t *testing.T) {
	t.Parallel()
	b := connect(t, bus.Embedded+filepath.Join(t.TempDir(), "fleet"))
	network, way := newBreakable(t, b.URL())
	out := filepath.Join(t.TempDir(), "found")
	args := append(slices.Clone(fruitful), "--group", "20", "--lease", "2s", "--join")
	h := startHunt(t, out, append(slices.Clone(args), way)...)
	h.program.until(t, "a case that is counted", func() bool {
		f, err := work.Look(t.Context(), b, "hunt-default")
		if err != nil {
			return false
		}
		_, under, err := f.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(under) > 0 && under[0].Noted != nil
	})
	goOn := network.hold()
	defer goOn()
	h.program.until(t, "something unsent", func() bool {
		list, err := filepath.Glob(filepath.Join(out, "unsent", "*", "finding.json"))
		return err == nil && len(list) > 0
	})
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	status, _ := h.wait(t)
	h.clean(t)
	if status != int(exitFound) || !strings.Contains(h.stderr.String(), "join again with the same --out") {
		t.Errorf("exit status %d, said %s", status, h.stderr.String())
	}
	unsent, err := filepath.Glob(filepath.Join(out, "unsent", "tlp-*"))
	if err != nil || len(unsent) == 0 {
		t.Fatalf("unsent: %v, %v", unsent, err)
	}
	h = startHunt(t, out, append(slices.Clone(args), b.URL())...)
	status, state := h.wait(t)
	if status != int(exitFound) || state == nil || state.Cases != 20 {
		t.Errorf("joined again: exit status %d, %+v, said %s", status, state, h.stderr.String())
	}
	if _, err := os.Lstat(filepath.Join(out, "unsent")); !os.IsNotExist(err) {
		t.Errorf("unsent is still there: %v", err)
	}
	f, err := work.Look(t.Context(), b, "hunt-default")
	if err != nil {
		t.Fatal(err)
	}
	known, err := hunt.ReadStatus(t.Context(), f)
	if err != nil || len(known.Bugs) == 0 || len(known.Bugs) != len(folders(t, out)) {
		t.Errorf("the fleet knows %d bugs, the folder has %d, error %v", len(known.Bugs), len(folders(t, out)), err)
	}
}

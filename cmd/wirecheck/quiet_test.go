package main

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestQuietCases executes cases in which an oracle once called a bug what is none: none of them may find anything.
func TestQuietCases(t *testing.T) {
	for _, path := range glob(t, "../../testdata/quiet/*.spec") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(engines(), func(name string) bool { return strings.Contains(string(text), "#wirecheck: engine: "+name) })
		if i < 0 {
			continue // another engine's; each of them is among the usual two
		}
		var out bytes.Buffer
		cmd := newRootCommand(&out, t.Output())
		cmd.SetArgs([]string{"run", path, "--oracle", "wss,troc,txcheck,radar,tlp,norec,dqe", "--log-level", "error"})
		if err := cmd.ExecuteContext(t.Context()); err != nil && !errors.Is(err, exitUnknown) {
			t.Errorf("%s: %v\n%s", path, err, out.String())
		}
	}
}

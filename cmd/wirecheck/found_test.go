package main

import (
	"errors"
	"strings"
	"testing"
)

// TestFoundCases executes the bugs that hunts found (docs/lab/hunts.md), reduced: the oracles find them where the servers have them, and nothing
// where they do not.
func TestFoundCases(t *testing.T) {
	onEngines(t, "../../testdata/found/*.spec", func(path, name string) {
		out, err := runCase(t, path, "--engine", name)
		if err != nil && !errors.Is(err, exitFound) || !strings.Contains(out, "not as expected: 0,") {
			t.Errorf("%s on %s: %v\n%s", path, name, err, out)
		}
	})
}

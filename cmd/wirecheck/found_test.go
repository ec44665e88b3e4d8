package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestFoundCases executes the bugs that hunts found (docs/HUNTS.md), reduced: the oracles find them where the servers have them, and nothing
// where they do not.
func TestFoundCases(t *testing.T) {
	for _, path := range glob(t, "../../testdata/found/*.spec") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, products, _ := strings.Cut(string(text), "#wirecheck: engine: ")
		products, _, _ = strings.Cut(products, "\n")
		for _, name := range engines() {
			product, _, _ := strings.Cut(name, ":")
			if !strings.Contains(products, product) {
				continue
			}
			var out bytes.Buffer
			cmd := newRootCommand(&out, t.Output())
			cmd.SetArgs([]string{"run", path, "--engine", name, "--log-level", "error"})
			err := cmd.ExecuteContext(t.Context())
			if err != nil && !errors.Is(err, exitFound) || !strings.Contains(out.String(), "not as expected: 0,") {
				t.Errorf("%s on %s: %v\n%s", path, name, err, out.String())
			}
		}
	}
}

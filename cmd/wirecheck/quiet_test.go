package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestQuietCases executes cases in which an oracle once called a bug what is none: none of them may find anything.
func TestQuietCases(t *testing.T) {
	onEngines(t, "../../testdata/quiet/*.spec", func(path, name string) {
		if out, err := runCase(t, path, "--engine", name, "--oracle", "wss,troc,txcheck,radar,tlp,norec,dqe"); err != nil && !errors.Is(err, exitUnknown) {
			t.Errorf("%s on %s: %v\n%s", path, name, err, out)
		}
	})
}

// onEngines goes through the scenarios, and for each through the engines at hand of the products that it names.
func onEngines(t *testing.T, pattern string, each func(path, name string)) {
	t.Helper()
	for _, path := range glob(t, pattern) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, products, _ := strings.Cut(string(text), "#wirecheck: engine: ")
		products, _, _ = strings.Cut(products, "\n")
		for _, name := range testserver.Engines() {
			if product, _, _ := strings.Cut(name, ":"); strings.Contains(products, product) {
				each(path, name)
			}
		}
	}
}

// runCase is wirecheck run, and gives what it prints.
func runCase(t *testing.T, path string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRootCommand(&out, t.Output())
	cmd.SetArgs(append([]string{"run", path, "--log-level", "error"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// list asks go for all packages of the module and what they depend on.
func list(t *testing.T) []Package {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps", "wirecheck/...")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, said.String())
	}
	var packages []Package
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestRules(t *testing.T) {
	packages := list(t)
	for _, broken := range Check("wirecheck", Rules(), packages) {
		t.Error(broken)
	}
	// A rule about a package that is not there (any more) guards nothing, except where the package is yet to come.
	known := map[string]bool{"scheduler": true, "lab": true, "report": true}
	for _, r := range Rules() {
		for _, folder := range append(append([]string{}, r.Of...), r.Except...) {
			found := known[folder]
			for _, p := range packages {
				found = found || covers("wirecheck", []string{folder}, p.ImportPath)
			}
			if !found {
				t.Errorf("a rule speaks of %s, which does not exist", folder)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	packages := []Package{
		{ImportPath: "fmt", Standard: true},
		{ImportPath: "time", Standard: true},
		{ImportPath: "example.com/x"},
		{ImportPath: "m/a", Imports: []string{"fmt"}, Deps: []string{"fmt", "time"}},
		{ImportPath: "m/a/sub", Imports: []string{"fmt", "example.com/x"}, Deps: []string{"fmt", "time", "example.com/x"}},
		{ImportPath: "m/ab", Imports: []string{"m/a"}, Deps: []string{"m/a", "fmt", "time"}},
		{ImportPath: "m/c", Imports: []string{"m/ab"}, Deps: []string{"m/ab", "m/a", "fmt", "time"}},
		{ImportPath: "m/d", Imports: []string{"time"}, Deps: []string{"time"}},
	}
	tests := []struct {
		name string
		rule Rule
		want []string
	}{
		{"standard library only", Rule{Of: []string{"a"}, StandardOnly: true}, []string{"m/a/sub imports example.com/x"}},
		{"never, also by way of others", Rule{Of: []string{"c", "ab"}, Never: []string{"a"}}, []string{"m/ab imports m/a", "m/c imports m/a"}},
		{"a name that only begins alike", Rule{Of: []string{"c"}, Never: []string{"b", "a/s", "ab/x"}}, nil},
		{"direct, not by way of others", Rule{Of: []string{""}, Direct: []string{"time"}}, []string{"m/d imports time"}},
		{"exception", Rule{Of: []string{""}, Except: []string{"c", "d"}, Never: []string{"a"}, Direct: []string{"time"}}, []string{"m/ab imports m/a"}},
	}
	for _, test := range tests {
		test.rule.Why = "because"
		var got []string
		for _, line := range Check("m", []Rule{test.rule}, packages) {
			line, why, _ := strings.Cut(line, ": ")
			if why != "because" {
				t.Errorf("%s: the reason is %q", test.name, why)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestNoClock looks for calls of the clock where package time is used for its calendar.
func TestNoClock(t *testing.T) {
	files, err := filepath.Glob("../../rewrite/postgres/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|Sleep|Tick|NewTimer|NewTicker)\b`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := clock.Find(text); m != nil {
			t.Errorf("%s calls %s: no clock in the core", file, m)
		}
	}
}

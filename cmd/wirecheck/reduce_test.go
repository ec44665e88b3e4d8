package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wirecheck/lab/scenario"
)

// watchful is an output that tells of each word that somebody waits for.
type watchful struct {
	bytes.Buffer
	word string
	seen func()
}

func (w *watchful) Write(p []byte) (int, error) {
	if w.word != "" && strings.Contains(string(p), w.word) {
		w.seen()
	}
	return w.Buffer.Write(p)
}

// reduceCommand executes wirecheck reduce.
func reduceCommand(t *testing.T, ctx context.Context, stderr *watchful, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newRootCommand(&out, stderr)
	cmd.SetArgs(append([]string{"reduce", "--log-level", "error", "--no-progress"}, args...))
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// TestReduceCommand: a case becomes small and still shows it; the budget and an interruption keep the best so far; where nothing is found, that is said.
func TestReduceCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := "../../testdata/reduce/torn.spec"
	base := []string{path, "--engine", "mariadb", "--oracle", "troc", "--level", "read committed"}
	var stderr watchful
	out, err := reduceCommand(t, t.Context(), &stderr, append(base, "--budget", "8,5m")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if n := len(parsedSpec(t, out).Permutations[0].Steps); n > 8 || !strings.Contains(stderr.String(), "the budget is used up (8,5m0s)") {
		t.Errorf("%d steps\n%s", n, stderr.String())
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr = watchful{word: "keeping: troc", seen: cancel}
	file := filepath.Join(dir, "new", "small.spec")
	if out, err = reduceCommand(t, ctx, &stderr, append(base, "--out", file)...); err != nil || out != "" {
		t.Fatalf("%v, stdout %q\n%s", err, out, stderr.String())
	}
	text, err := os.ReadFile(file)
	if err != nil || len(parsedSpec(t, string(text)).Permutations[0].Steps) != 8 || !strings.Contains(stderr.String(), "interrupted; this is the best so far") {
		t.Errorf("%v\n%s\n%s", err, text, stderr.String())
	}

	stderr = watchful{}
	if _, err = reduceCommand(t, t.Context(), &stderr, append(base, "--level", "serializable")...); !errors.Is(err, exitUnknown) || !strings.Contains(stderr.String(), "nothing is found") {
		t.Errorf("nothing to keep: %v\n%s", err, stderr.String())
	}
}

// TestReduceCommandRefuses: what cannot be done is said before a server is started.
func TestReduceCommandRefuses(t *testing.T) {
	path := "../../testdata/reduce/torn.spec"
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{path, "--engine", "mariadb", "--budget", "soon"}, `"soon" is neither a number of candidates (2000) nor a time (10m)`},
		{[]string{path, "--engine", "mariadb", "--budget", "-3"}, `"-3" is neither`},
		{[]string{path, "--engine", "mariadb", "--permutation", "2"}, "there is no permutation 2"},
		{[]string{path, "--oracle", "troc"}, "the case names no engine: give --engine"},
		{[]string{path, "--engine", "mariadb", "--oracle", "trok"}, `unknown oracle "trok"`},
		{[]string{path + "x", "--engine", "mariadb"}, "torn.specx"},
	} {
		var stderr watchful
		if _, err := reduceCommand(t, t.Context(), &stderr, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q", test.args, err, test.want)
		}
	}
}

func TestBudget(t *testing.T) {
	for text, want := range map[string]budget{"500": {tries: 500}, "10m": {time: 10 * time.Minute}, "500,90s": {500, 90 * time.Second}} {
		var got budget
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s: %+v, error %v", text, got, err)
		}
	}
}

func parsedSpec(t *testing.T, text string) *scenario.Spec {
	t.Helper()
	spec, err := scenario.Parse("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/history"
)

const lostUpdate = `s1 session postgres "15.4"
s2 session postgres "15.4"
s1 t1 begin "read committed"
s2 t2 begin "read committed"
t1 r public.stock.1@0 -- SELECT n FROM stock WHERE id = 1
t2 r public.stock.1@0 -- SELECT n FROM stock WHERE id = 1
t1 w public.stock.1 0>1 -- UPDATE stock SET n = 8 WHERE id = 1
t1 commit
t2 w public.stock.1 1>2 -- UPDATE stock SET n = 8 WHERE id = 1
t2 commit
`

// writeHistory writes a history in text form as a file.
func writeHistory(t *testing.T, text string) string {
	t.Helper()
	events, err := history.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "h.jsonl")
	w, err := history.Create(path, history.Header{Engine: "postgres", Run: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := w.Write(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// garbageRead is a read of a version that names a writer which did not write it.
const garbageRead = `s1 session mariadb "10.11"
s2 session mariadb "10.11"
s1 t1 begin "read committed" tokens T1
s2 t2 begin "read committed"
t1 w x 0>1
t1 commit
t2 r x@7!T1
t2 commit
`

// mixedStale is a stale read beside a transaction at another level.
const mixedStale = `s1 session postgres "15"
s2 session postgres "15"
s1 t1 begin "serializable"
s2 t2 begin "OTHER"
t1 r x@0
t2 w x 0>1
t2 commit
t1 r x@1
t1 commit
`

// runCheck executes the check command under a root like the program's.
func runCheck(t *testing.T, args ...string) (exitStatus, string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRootCommand(&stdout, &stderr)
	if c, _, err := root.Find([]string{"check"}); err != nil || c.Name() != "check" {
		root.AddCommand(newCheckCommand())
	}
	root.SetArgs(append([]string{"check"}, args...))
	status := execute(context.Background(), root, &stderr)
	return status, stdout.String(), stderr.String()
}

func TestCheckStatus(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := writeHistory(t, lostUpdate)
	data, err := os.ReadFile(cut)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, data[:len(data)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	clean := strings.Replace(lostUpdate, "t2 r public.stock.1@0", "t2 lock public.stock.2@0", 1)
	opaque := "s1 session postgres \"15.4\"\ns1 t1 begin\nt1 stmt opaque\nt1 commit\n"
	for _, tt := range []struct {
		name           string
		args           []string
		status         exitStatus
		stdout, stderr string // substrings
	}{
		{"found", []string{writeHistory(t, lostUpdate)}, exitFound, "ANOMALY: LOST UPDATE  WC-", ""},
		{"coverage", []string{writeHistory(t, lostUpdate)}, exitFound, "found: 1 (violations: 0, anomalies: 1)\ncoverage: 4 exact, 0 approximate, 0 opaque\n", ""},
		{"level", []string{"--level", "repeatable-read", writeHistory(t, lostUpdate)}, exitFound, "VIOLATION: LOST UPDATE", ""},
		{"levels", []string{writeHistory(t, lostUpdate)}, exitFound, "weakest level broken: cursor stability\n  lost update (G-single): 2 -rw-> 1 -ww-> 2\nstrongest level satisfied: prefix consistency", ""},
		{"level of the literature, broken", []string{"--level", "snapshot_isolation", writeHistory(t, lostUpdate)}, exitFound, "snapshot isolation: broken, by G-single", ""},
		{"level of the literature, satisfied", []string{"--level", "prefix", writeHistory(t, lostUpdate)}, exitClean, "prefix consistency: satisfied; an order of 4 points proves it", ""},
		{"level of the literature, not all seen", []string{"--level", "causal", writeHistory(t, lostUpdate+"s1 t3 begin\nt3 stmt opaque\nt3 commit\n")}, exitUnknown, "causal: satisfied", ""},
		{"garbage read", []string{writeHistory(t, garbageRead)}, exitFound, "VIOLATION: GARBAGE READ", ""},
		{"a read of nobody's version", []string{writeHistory(t, strings.ReplaceAll(garbageRead, "!T1", "!T9"))}, exitClean, "1 read of unknown writers", ""},
		{"each at its own level, broken", []string{"--level", "mixed", writeHistory(t, strings.ReplaceAll(mixedStale, "OTHER", "read committed"))}, exitFound, "mixed: broken, by G-single: 2 -wr-> 1 -rw-> 2", ""},
		{"each at its own level, satisfied", []string{"--level", "mixed", writeHistory(t, strings.NewReplacer("OTHER", "serializable", "serializable", "read committed").Replace(mixedStale))}, exitClean, "mixed: satisfied", ""},
		{"each at its own level, not asked", []string{writeHistory(t, strings.ReplaceAll(mixedStale, "OTHER", "read committed"))}, exitFound, "each transaction at its own level: broken, by ", ""},
		{"both kinds of level", []string{"--level", "serializable", writeHistory(t, lostUpdate)}, exitFound, "PL-3: broken, by", ""},
		{"clean", []string{writeHistory(t, clean)}, exitClean, "nothing found\ncoverage: 4 exact", ""},
		{"opaque", []string{writeHistory(t, opaque)}, exitUnknown, "undecided: of 1 statement wirecheck saw none exactly\ncoverage: 0 exact, 0 approximate, 1 opaque\nweakest level broken: none\nstrongest level satisfied: unknown\n", ""},
		{"cut off", []string{cut}, exitUnknown, "1 transaction not ended", "the last line is cut off and was left out"},
		{"no file", []string{filepath.Join(t.TempDir(), "none")}, exitFailed, "", "no such file"},
		{"no history", []string{bad}, exitFailed, "", "bad:1: this is not a wirecheck history"},
		{"wrong level", []string{"--level", "chaos", bad}, exitFailed, "", `unknown level "chaos"`},
		{"wrong input", []string{"--input", "knossos", bad}, exitFailed, "", `unknown input "knossos"`},
		{"no argument", nil, exitFailed, "", "expected: wirecheck check HISTORY... [flags]; got no argument"},
	} {
		status, stdout, stderr := runCheck(t, tt.args...)
		if status != tt.status || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s: status %d, want %d; stdout:\n%s\nstderr:\n%s", tt.name, status, tt.status, stdout, stderr)
		}
	}
}

// TestCheckStale: a read of a version that was replaced thousands of transactions ago is found, from a file and from a pipe.
func TestCheckStale(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("s1 session postgres \"15.4\"\ns1 t1 begin \"serializable\"\nt1 w x 0>1, w y 0>1\nt1 commit\n")
	last := 10_002
	for i := 2; i < last; i++ {
		fmt.Fprintf(&b, "s1 t%d begin\nt%d w z%d >1\nt%d commit\n", i, i, i, i)
	}
	for version, want := range map[string]exitStatus{"0": exitFound, "1": exitClean} {
		path := writeHistory(t, b.String()+fmt.Sprintf("s1 t%d begin \"serializable\"\nt%d r y@1 x@%s\nt%d commit\n", last, last, version, last))
		if status, stdout, stderr := runCheck(t, path); status != want {
			t.Errorf("version %s: status %d, want %d\n%s%s", version, status, want, stdout, stderr)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		root := newRootCommand(&stdout, &stderr)
		root.SetIn(bytes.NewBuffer(data))
		root.SetArgs([]string{"check", "-"})
		if status := execute(context.Background(), root, &stderr); status != want {
			t.Errorf("version %s from a pipe: status %d, want %d\n%s%s", version, status, want, &stdout, &stderr)
		}
	}
}

func TestCheckFormats(t *testing.T) {
	path := writeHistory(t, lostUpdate)
	for format, want := range map[string]string{"json": `"class": "G-single"`, "junit": `<testsuite name="wirecheck `, "sarif": `"version": "2.1.0"`, "markdown": "## wirecheck: 1 found", "html": "<!doctype html>"} {
		status, stdout, stderr := runCheck(t, "--format", format, path)
		if status != exitFound || !strings.Contains(stdout, want) {
			t.Errorf("%s: status %d, stdout:\n%s\nstderr:\n%s", format, status, stdout, stderr)
		}
		if (format == "json" || format == "sarif") && !json.Valid([]byte(stdout)) {
			t.Errorf("%s: not JSON:\n%s", format, stdout)
		}
	}
}

// TestExplain shows the finding that a warning names, and says what there is where it is not there.
func TestExplain(t *testing.T) {
	path := writeHistory(t, lostUpdate)
	var result struct{ Findings []struct{ ID string } }
	_, out, _ := runCheck(t, "--format", "json", path)
	if err := json.Unmarshal([]byte(out), &result); err != nil || len(result.Findings) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	id := result.Findings[0].ID
	for _, tt := range []struct {
		args   []string
		status exitStatus
		want   string
	}{
		{[]string{id, path}, exitClean, "Proof (P4, G-single: a cycle of rw ww):"},
		{[]string{strings.ToLower(id), path, "--format", "json"}, exitClean, `"id": "` + id + `"`},
		{[]string{id, path, "--format", "markdown"}, exitClean, "1 found"},
		{[]string{id, path, "--format", "html"}, exitClean, "wirecheck explain " + id + " " + path},
		{[]string{id, path, "--format", "svg"}, exitClean, "</svg>"},
		{[]string{id, path, "--format", "matrix"}, exitFailed, "use text, json, junit, sarif, markdown, html, svg or scenario"},
		{[]string{"WC-000000", path}, exitFailed, "there is no finding WC-000000 in it; it has " + id},
		{[]string{id, writeHistory(t, "s1 session postgres \"15.4\"\n")}, exitFailed, "there is no finding in it"},
		{[]string{id, "/no/such/file"}, exitFailed, "/no/such/file"},
		{[]string{id, path, "--format", "mtrix"}, exitFailed, "unknown format"},
		{nil, exitFailed, "arg"},
	} {
		out, said, status := command(t, append([]string{"explain"}, tt.args...)...)
		if status != tt.status || !strings.Contains(out+said, tt.want) {
			t.Errorf("%v: exit status %d, want %d and %q\n%s%s", tt.args, status, tt.status, tt.want, out, said)
		}
	}
}

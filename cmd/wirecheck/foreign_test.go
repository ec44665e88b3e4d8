package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// jepsenHistories are histories with the exit statuses of check and of check --jepsen.
var jepsenHistories = []struct {
	name, text    string
	plain, jepsen exitStatus
	class         string
}{
	{"valid.edn", `{:type :invoke :process 0 :value [[:append 5 1]]} {:type :ok :process 0 :value [[:append 5 1]]}
{:type :invoke :process 1 :value [[:r 5 nil]]} {:type :ok :process 1 :value [[:r 5 [1]]]}`, exitClean, exitClean, ""},
	{"stale.edn", `{:type :invoke :process 0 :value [[:append 5 1]]} {:type :ok :process 0 :value [[:append 5 1]]}
{:type :invoke :process 1 :value [[:r 5 nil]]} {:type :ok :process 1 :value [[:r 5 nil]]}`, exitClean, exitFound, "G-single-realtime"},
	{"skew.json", `[{"type":"ok","process":0,"value":[["append","x",1],["r","y",null]]},{"type":"ok","process":1,"value":[["append","y",1],["r","x",[]]]}]`, exitFound, exitFound, "G2-item"},
	{"nothing.edn", `{:type :ok :process 0 :value [[:w 5 1]]}`, exitUnknown, jepsenUnknown, ""},
	{"lost.txt", "w(0,1,1,1)\nr(0,1,1,2)\nw(0,2,1,2)\nr(0,1,2,3)\nw(0,3,2,3)\n", exitFound, exitFound, "lost-update"},
	{"cross.txt", "w(0,1,1,1)\nw(1,1,1,1)\nw(0,2,2,2)\nw(1,2,2,2)\nr(0,1,3,3)\nr(1,2,3,3)\n", exitFound, exitFound, "PL-3-cycle-exists"},
	{"broken.edn", `{:type :ok :process`, exitFailed, jepsenCrash, ""},
	{"garbage.edn", `{:type :ok :process 0 :value [[:append 5 1]]} {:type :ok :process 1 :value [[:r 5 [7 1]]]}`, exitClean, exitFound, "garbage-read"},
	{"register.edn", `{:type :ok :process 0 :value [[:w 5 1]]} {:type :ok :process 1 :value [[:r 5 7]]} {:type :ok :process 2 :value [[:r 5 1]]}`, exitClean, exitFound, "garbage-read"},
	{"unheard.edn", `{:type :info :process 0 :value [[:w 5 7]]} {:type :ok :process 1 :value [[:r 5 nil]]} {:type :ok :process 2 :value [[:r 5 7]]}`, exitClean, exitClean, ""}, // near miss: somebody may have written it
	{"empty", "", exitFailed, jepsenUnknown, ""},
	{"list", "[ ]\n", exitFailed, jepsenUnknown, ""},
	{"native", `{"wirecheck":"history","version":1}`, exitUnknown, jepsenCrash, ""},
}

func TestCheckForeign(t *testing.T) {
	for _, tt := range jepsenHistories {
		path := filepath.Join(t.TempDir(), tt.name)
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if got := run(t.Context(), []string{"check", path}, &out, &errs); got != tt.plain {
			t.Errorf("%s: exit status %d, want %d\n%s%s", tt.name, got, tt.plain, out.String(), errs.String())
		}
		out.Reset()
		if got := run(t.Context(), []string{"check", "--jepsen", "--format", "json", path}, &out, &errs); got != tt.jepsen {
			t.Errorf("%s --jepsen: exit status %d, want %d\n%s%s", tt.name, got, tt.jepsen, out.String(), errs.String())
		}
		var result struct {
			Findings []struct{ Kind, Class string }
		}
		if tt.jepsen == jepsenCrash {
			continue
		}
		if err := json.Unmarshal(out.Bytes(), &result); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if found := len(result.Findings) > 0; found != (tt.class != "") || found && result.Findings[len(result.Findings)-1].Class != tt.class && result.Findings[0].Class != tt.class {
			t.Errorf("%s: found %v, want %q", tt.name, result.Findings, tt.class)
		}
		if got := run(t.Context(), []string{"check", "--jepsen", "--level", "read uncommitted", path}, &out, &errs); got == exitFound {
			t.Errorf("%s: invalid at read uncommitted", tt.name)
		}
	}
	for _, args := range [][]string{{"--input", "nope"}, {"--level", "nope"}} {
		var out, errs bytes.Buffer
		if got := run(t.Context(), append([]string{"check", "--jepsen", "x"}, args...), &out, &errs); got != jepsenUsage || errs.Len() == 0 {
			t.Errorf("%v: exit status %d, %q", args, got, errs.String())
		}
	}
}

// TestJepsenLevel judges by levels of SQL where no order of the versions fits some of them: no dependency breaks them, and they are not valid.
func TestJepsenLevel(t *testing.T) {
	for _, tt := range []struct {
		text, level string
		want        exitStatus
	}{
		{"w(0,1,1,1)\nw(1,1,1,1)\nw(0,2,2,2)\nw(1,2,2,2)\nr(0,1,3,3)\nr(1,2,3,3)\n", "read committed", exitClean},
		{"w(0,1,1,1)\nw(1,1,1,1)\nw(0,2,2,2)\nw(1,2,2,2)\nr(0,1,3,3)\nr(1,2,3,3)\n", "repeatable read", exitFound},
		{"w(0,1,1,1)\nw(1,1,1,1)\nw(0,2,2,2)\nw(1,2,2,2)\nr(0,1,3,3)\nr(1,2,3,3)\n", "snapshot", exitFound},
		{"w(0,1,1,1)\nw(1,1,1,1)\nw(0,2,2,2)\nw(1,2,2,2)\nr(0,2,3,3)\nr(1,2,3,3)\n", "snapshot", exitClean},
		{"w(0,1,1,1)\nw(1,1,1,1)\nr(0,1,2,2)\nr(1,1,2,2)\nw(0,2,2,2)\nr(0,1,3,3)\nr(1,1,3,3)\nw(1,2,3,3)\n", "snapshot", exitClean}, // write skew
		{"w(0,1,1,1)\nw(1,1,1,1)\nr(0,1,2,2)\nr(1,1,2,2)\nw(0,2,2,2)\nr(0,1,3,3)\nr(1,1,3,3)\nw(1,2,3,3)\n", "repeatable read", exitFound},
		{"w(0,1,1,1)\nw(1,1,2,2)\n", "snapshot", jepsenUnknown},
	} {
		path := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"text", "junit"} { // whether or not it shows levels
			var out, errs bytes.Buffer
			if got := run(t.Context(), []string{"check", "--jepsen", "--format", format, "--level", tt.level, path}, &out, &errs); got != tt.want {
				t.Errorf("%s as %s: exit status %d, want %d\n%s\n%s%s", tt.level, format, got, tt.want, tt.text, out.String(), errs.String())
			}
		}
	}
}

// TestEmptyFile judges a file with nothing in it: unknown, whatever other checker's format it is said to have. A history of wirecheck's own has a header.
func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(path, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, input := range inputs {
		plain := exitUnknown
		if input == inputAuto || input == inputNative {
			plain = exitFailed
		}
		var out, errs bytes.Buffer
		if got := run(t.Context(), []string{"check", "--input", input, path}, &out, &errs); got != plain {
			t.Errorf("%s: exit status %d, want %d\n%s%s", input, got, plain, out.String(), errs.String())
		}
		if got := run(t.Context(), []string{"check", "--jepsen", "--input", input, path}, &out, &errs); got != jepsenUnknown {
			t.Errorf("%s --jepsen: exit status %d, want %d\n%s%s", input, got, jepsenUnknown, out.String(), errs.String())
		}
	}
}

// TestForeignLevels asks whether foreign histories satisfy levels of the literature.
func TestForeignLevels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, level   string
		plain, jepsen exitStatus
		says          string
	}{
		{jepsenHistories[2].text, "causal", exitClean, exitClean, "strongest level satisfied: strong snapshot isolation\ncausal: satisfied"},
		{jepsenHistories[2].text, "PL-3U", exitFound, exitFound, "PL-3U: broken, by write skew (G2-item): 0 -rw-> 1 -rw-> 0"},
		{jepsenHistories[1].text, "strong SI", exitFound, exitFound, "weakest level broken: strong snapshot isolation"},
		{jepsenHistories[1].text, "strong session SI", exitClean, exitClean, "strong session snapshot isolation: satisfied"},
		{jepsenHistories[4].text, "prefix consistency", exitClean, exitClean, "strongest level satisfied: prefix consistency"}, // though the order of its versions is not known
		{jepsenHistories[4].text, "SI", exitFound, exitFound, "snapshot isolation: broken, by lost-update"},
		{jepsenHistories[3].text, "causal", exitUnknown, jepsenUnknown, "strongest level satisfied: unknown"},
	} {
		path := filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, jepsen := range []bool{false, true} {
			args, want := []string{"check", "--level", tt.level, path}, tt.plain
			if jepsen {
				args, want = append(args, "--jepsen"), tt.jepsen
			}
			var out, errs bytes.Buffer
			if got := run(t.Context(), args, &out, &errs); got != want || !strings.Contains(out.String(), tt.says) {
				t.Errorf("%v: exit status %d, want %d and %q\n%s%s", args, got, want, tt.says, out.String(), errs.String())
			}
		}
	}
}

// TestConvert converts histories into the native form and back, and judges what comes out.
func TestConvert(t *testing.T) {
	const lost = "w(0,1,1,1)\nr(0,1,1,2)\nw(0,2,1,2)\nr(0,1,2,3)\nw(0,3,2,3)\n"
	path := filepath.Join(t.TempDir(), "lost.txt")
	if err := os.WriteFile(path, []byte(lost), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range inputs[1:] {
		var out, errs bytes.Buffer
		got := run(t.Context(), []string{"convert", "--to", to, path}, &out, &errs)
		if to == "timekiller" {
			result := filepath.Join(t.TempDir(), "result")
			for range 2 { // the second one is not kept from it by a file of the first
				if status := run(t.Context(), []string{"convert", "--to", to, "--output", result, path}, &out, &errs); status != exitFailed || strings.Contains(errs.String(), "exists") {
					t.Errorf("exit status %d, %s", status, errs.String())
				}
			}
			if got != exitFailed || !strings.Contains(errs.String(), "times of start and commit") {
				t.Errorf("%s: exit status %d, %s", to, got, errs.String())
			}
			continue
		}
		if got != exitClean {
			t.Errorf("%s: exit status %d, %s", to, got, errs.String())
			continue
		}
		result := filepath.Join(t.TempDir(), "result")
		if err := os.WriteFile(result, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var back bytes.Buffer
		if got := run(t.Context(), []string{"convert", "--to", "plume", result}, &back, &errs); got != exitClean || strings.Count(back.String(), "\n") != strings.Count(lost, "\n") {
			t.Errorf("%s and back: exit status %d, %s\n%s", to, got, errs.String(), back.String())
		}
		if err := os.WriteFile(result+".txt", back.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if got := run(t.Context(), []string{"check", result + ".txt"}, &out, &errs); got != exitFound {
			t.Errorf("%s and back: check ends with %d\n%s", to, got, out.String())
		}
	}
}

// TestForeignForms prints a finding of every class in every form.
func TestForeignForms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.edn")
	text := ""
	for i, values := range []string{
		"[:append %a 1] [:append %b 1]", "[:append %a 2] [:append %b 2]", "[:r %a [1 2]] [:r %b [2 1]]", // G0
		"[:append %c 1] [:r %d [1]]", "[:append %d 1] [:r %c [1]]", // G1c
		"[:append %e 1] [:append %f 1]", "[:r %e [1]] [:r %f nil]", // G-single
		"[:append %g 1] [:r %h nil]", "[:append %h 1] [:r %g nil]", // G2-item
		"[:append %i 1]", "[:r %i [1]] [:r %j nil]", "[:append %j 1]", "[:r %j [1]] [:r %i nil]", // G-nonadjacent
		"[:append %k 1] [:append %k 2]", "[:r %k [1]]", // G1b
		"[:append %l 1] [:r %l nil]", "[:r %m [1]] [:append %m 1]", // internal, future-read
		"[:append %n 1]", "[:append %n 2]", "[:r %n [1 2 1]]", "[:r %n [2]]", // duplicate-elements, incompatible-order
		"[:append %o 1] [:append %o 2]", "[:r %o [2 1]]", // cyclic-versions
		"[:append %p 1]", "[:r %p [1 7]]", "[:r %p [1]]", // garbage-read
		"[:append %q 1]", "[:r %q [1]] [:append %q 2]", "[:r %q [1]] [:append %q 3]", // lost-update
		"[:append %r 1]!", "[:append %r 2]", "[:r %r [1 2]]", // G1a, dirty-update
	} {
		kind := ":ok"
		if strings.HasSuffix(values, "!") {
			values, kind = strings.TrimSuffix(values, "!"), ":fail"
		}
		text += fmt.Sprintf("{:type %s :process %d :value [%s]}\n", kind, i, strings.ReplaceAll(values, "%", ":"))
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range formats {
		var out, errs bytes.Buffer
		if got := run(t.Context(), []string{"check", "--format", format, path}, &out, &errs); got != exitFound && errs.Len() == 0 {
			t.Errorf("%s: exit status %d", format, got)
		}
		if format != "json" {
			continue
		}
		for _, class := range []string{"G0", "G1a", "G1b", "G1c", "G-single", "G-nonadjacent", "G2-item", "internal", "future-read", "duplicate-elements", "incompatible-order", "cyclic-versions",
			"garbage-read", "lost-update", "dirty-update"} {
			if !strings.Contains(out.String(), `"class": "`+class+`"`) {
				t.Errorf("%s is not among the findings", class)
			}
		}
	}
}

// TestConvertBinary writes a recorded history in the binary form and back: nothing is lost, and check says the same.
func TestConvertBinary(t *testing.T) {
	path := writeHistory(t, lostUpdate)
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(t.TempDir(), "packed")
	var out, errs bytes.Buffer
	if got := run(t.Context(), []string{"convert", "--to", "binary", "--output", packed, path}, &out, &errs); got != exitClean {
		t.Fatalf("exit status %d, %s", got, errs.String())
	}
	if got := run(t.Context(), []string{"convert", "--to", "native", packed}, &out, &errs); got != exitClean || out.String() != string(want) {
		t.Errorf("exit status %d, %s\n%s", got, errs.String(), out.String())
	}
	out.Reset()
	traced := observedTrace(t, eventsOf(t, lostUpdate))
	if got := run(t.Context(), []string{"convert", "--to", "native", traced}, &out, &errs); got != exitClean || strings.SplitAfterN(out.String(), "\n", 2)[1] != strings.SplitAfterN(string(want), "\n", 2)[1] {
		t.Errorf("a trace: exit status %d, %s\n%s", got, errs.String(), out.String())
	}
	if got := run(t.Context(), []string{"convert", "--to", "elle", traced}, &out, &errs); got != exitClean {
		t.Errorf("a trace as keys and values: exit status %d, %s", got, errs.String())
	}
	var first, second bytes.Buffer
	a, b := run(t.Context(), []string{"check", path}, &first, &errs), run(t.Context(), []string{"check", packed}, &second, &errs)
	if a != exitFound || b != exitFound || first.String() != strings.ReplaceAll(second.String(), packed, path) {
		t.Errorf("check says %d and %d of the two forms:\n%s%s", a, b, first.String(), second.String())
	}
	if got := run(t.Context(), []string{"convert", "--to", "binary", "--input", "plume", path}, &out, &errs); got != exitFailed {
		t.Errorf("another checker's history in the binary form: exit status %d", got)
	}
}

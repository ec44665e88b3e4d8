package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"wirecheck/internal/natsserver"
	"wirecheck/internal/testserver"
)

func TestMain(m *testing.M) {
	natsserver.Main()
	if os.Getenv(asProgram) != "" {
		main()
	}
	testserver.Main(m)
}

// TestExitStatus runs a command that ends in each of the possible ways.
func TestExitStatus(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name   string
		ctx    context.Context
		err    error
		status exitStatus
		said   string
	}{
		{"nothing found", t.Context(), nil, exitClean, ""},
		{"something found", t.Context(), exitFound, exitFound, ""},
		{"not decided", t.Context(), fmt.Errorf("wrapped: %w", exitUnknown), exitUnknown, ""},
		{"could not work", t.Context(), errors.New("no such file"), exitFailed, "wirecheck: no such file\n"},
		{"interrupted", interrupted, fmt.Errorf("read: %w", context.Canceled), exitFailed, "wirecheck: interrupted\n"},
		{"something else broke as the signal came", interrupted, errors.New("disk full"), exitFailed, "wirecheck: disk full\n"},
		{"an inner context ended", t.Context(), context.Canceled, exitFailed, "wirecheck: context canceled\n"},
	}
	for _, test := range tests {
		var said bytes.Buffer
		cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return test.err }}
		cmd.SetArgs(nil)
		status := execute(test.ctx, cmd, &said)
		if status != test.status || said.String() != test.said {
			t.Errorf("%s: exit status %d, said %q; want %d and %q", test.name, status, said.String(), test.status, test.said)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"versoin"}, "Did you mean this?\n\tversion"},
		{[]string{"version", "--colour"}, "unknown flag: --colour (see: wirecheck version --help)"},
		{[]string{"version", "extra"}, `expected: wirecheck version [flags]; got ["extra"]`},
		{[]string{"version", "--format", "xml"}, `unknown format "xml"`},
		{[]string{"version", "--format", "sarif"}, "this command gives no sarif: use text or json"},
		{[]string{"version", "--log-level", "loud"}, `unknown log level "loud"`},
		{[]string{"instrument", "ad"}, "unknown command \"ad\" for \"wirecheck instrument\"\n\nDid you mean this?\n\tadd\n"},
		{[]string{"engines", "lst"}, "Did you mean this?\n\tlist\n"},
		{[]string{"version", "--fromat", "json"}, "unknown flag: --fromat (see: wirecheck version --help)\n\nDid you mean this?\n\t--format\n"},
		{[]string{"check", "--format", "jsn", "x"}, "Did you mean this?\n\t--format json\n"},
		{[]string{"version", "--log-level", "wran"}, "Did you mean this?\n\t--log-level warn\n"},
		{[]string{"hunt", "--engine", "postgrse", "--cases", "1", "--seed", "1"}, "Did you mean this?\n\t--engine postgres\n"},
		{[]string{"hunt", "--engine", "postgres", "--oracle", "wss,trok"}, "Did you mean this?\n\t--oracle troc\n"},
		{[]string{"check", "--level", "serialisable", "x"}, "Did you mean this?\n\t--level serializable\n"},
		{[]string{"man"}, "expected: wirecheck man FOLDER [flags]; got no argument"},
	}
	for _, test := range tests {
		out, said, status := command(t, test.args...)
		if status != exitFailed || out != "" || !strings.HasPrefix(said, "wirecheck: ") || !strings.Contains(said, test.want) {
			t.Errorf("%v: exit status %d, printed %q, said %q; want %q", test.args, status, out, said, test.want)
		}
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Example == "" && cmd.Name() != "help" && cmd.Name() != "completion" {
			t.Errorf("%s: has no description or no example", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Long, "\n") {
			if len(line) > 80 {
				t.Errorf("%s: a line of the help is %d characters long", cmd.CommandPath(), len(line))
			}
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			if len(line) > 120 {
				t.Errorf("%s: a line of the examples is %d characters long", cmd.CommandPath(), len(line))
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	var b bytes.Buffer
	walk(newRootCommand(&b, &b))
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, said, status := command(t, "completion", shell); status != exitClean || !strings.Contains(out, "wirecheck") {
			t.Errorf("%s: exit status %d, said %q", shell, status, said)
		}
	}
	for typed, want := range map[string]string{
		"run --engine ": "mariadb\n", "run --engine postgres,my": "postgres,mysql\n", "hunt --oracle ": "troc\n", "run --level ": "repeatable-read\n",
		"check --format ": "sarif\n", "version --format ": "text\njson\n:4\n", "proxy --mode ": "control\n", "explore --unit ": "request\n", "check --log-level ": "warn\n",
	} {
		if out, _, _ := command(t, append([]string{"__complete"}, strings.Split(typed, " ")...)...); !strings.Contains(out, want) {
			t.Errorf("completion of %q: %q lacks %q", typed, out, want)
		}
	}
	out, _, _ := command(t, "__complete", "instrument", "")
	for _, want := range []string{"add", "remove", "status"} {
		if !strings.Contains(out, want+"\t") {
			t.Errorf("completion of instrument lacks %s: %q", want, out)
		}
	}
}

// TestNothingIsMeant: a word that is like no known one gets no advice, nor does an error that is not about the word.
func TestNothingIsMeant(t *testing.T) {
	for _, args := range [][]string{
		{"version", "--colour"}, {"version", "--format", "spreadsheet"}, {"hunt", "--engine", "oracle", "--cases", "1", "--seed", "1"}, {"instrument", "erase"},
		{"check", "--level", "serializable", "/no/such/file"},
	} {
		if _, said, status := command(t, args...); status != exitFailed || strings.Contains(said, "Did you mean") {
			t.Errorf("%v: exit status %d, said %q", args, status, said)
		}
	}
}

// TestHelpShowsWhatIsTaken: the help of a command shows no common flag and no format that the command refuses or has no use for.
func TestHelpShowsWhatIsTaken(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if takes, ok := commandTakes[path]; ok && path != "" {
			help, said, status := command(t, append(strings.Fields(path), "--help")...)
			if status != exitClean {
				t.Fatalf("%s: exit status %d: %s", path, status, said)
			}
			_, common, _ := strings.Cut(help, "Global Flags:")
			for flag, want := range map[string]bool{"--format ": len(takes.formats) > 1, "--seed ": takes.seed, "--no-progress ": takes.progress, "--log-level ": true} {
				if strings.Contains(common, flag) != want {
					t.Errorf("%s --help: %s is shown: %v\n%s", path, flag, !want, common)
				}
			}
			if help, want := strings.Join(strings.Fields(common), " "), strings.Join(takes.formats, ", ")+" (default"; len(takes.formats) > 1 && !strings.Contains(help, want) {
				t.Errorf("%s --help lacks %q\n%s", path, want, help)
			}
		} else if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Name() != "help" && cmd.Name() != "__complete" && cmd.Parent().Name() != "completion" {
			t.Errorf("%s has no row in commandTakes", path)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(io.Discard, io.Discard))
}

func TestManualPages(t *testing.T) {
	dir := t.TempDir()
	if out, said, status := command(t, "man", dir); status != exitClean || out+said != "" {
		t.Fatalf("exit status %d: %s%s", status, out, said)
	}
	page, err := os.ReadFile(filepath.Join(dir, "wirecheck-run.1"))
	if err != nil || !strings.Contains(string(page), "isolationtester") {
		t.Errorf("%v: %.200s", err, page)
	}
	if _, err := os.Stat(filepath.Join(dir, "wirecheck-man.1")); err == nil {
		t.Error("a hidden command has a page")
	}
}

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := readVersion(info, true).String(); !strings.HasPrefix(got, "wirecheck v1.2.3 abc of 2026-01-02T03:04:05Z (modified), go1.") {
		t.Errorf("version: got %q", got)
	}
	if got := readVersion(nil, false).String(); !strings.HasPrefix(got, "wirecheck (devel), go1.") {
		t.Errorf("version of an unknown build: got %q", got)
	}
	out, _, status := command(t, "version", "--format", "json")
	var v versionInfo
	if err := json.Unmarshal([]byte(out), &v); err != nil || status != exitClean || v.Version == "" || v.Go == "" {
		t.Errorf("version --format json: %v, exit status %d, %q", err, status, out)
	}
}

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var updateDocs = flag.Bool("update-docs", false, "write the documents that are made from the program")

// madeFromProgram compares a document with what the program makes of it; -update-docs writes it.
func madeFromProgram(t *testing.T, path, want string) {
	t.Helper()
	if *updateDocs {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the program makes (-program +document; make docs writes it):\n%s", path, diff)
	}
}

// TestCommandLineDocument: docs/reference/command-line.md is what the commands say of themselves.
func TestCommandLineDocument(t *testing.T) {
	root := newRootCommand(io.Discard, io.Discard)
	var b strings.Builder
	b.WriteString("# Command line\n\n<!-- make docs writes this page; its texts are in cmd/wirecheck -->\n\n")
	fmt.Fprintf(&b, "Results go to stdout, logs and progress to stderr.\n\n")
	b.WriteString("| command | what it does |\n|---|---|\n")
	commands := documented(root)
	for _, cmd := range commands[1:] {
		path := cmd.CommandPath()
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", strings.TrimPrefix(path, "wirecheck "), strings.ReplaceAll(path, " ", "-"), cmd.Short)
	}
	for _, cmd := range commands {
		writeCommand(&b, cmd)
	}
	madeFromProgram(t, "../../docs/reference/command-line.md", b.String())
}

// documented lists a command and those below it.
func documented(cmd *cobra.Command) []*cobra.Command {
	commands := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" && !sub.Hidden {
			commands = append(commands, documented(sub)...)
		}
	}
	return commands
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "```text\n%s\n```\n\n", text)
	if cmd.Runnable() {
		fmt.Fprintf(b, "Usage: `%s`\n\n", cmd.UseLine())
	}
	fmt.Fprintf(b, "```text\n%s\n```\n", cmd.Example)
	rows := 0
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		if rows++; rows == 1 {
			b.WriteString("\n| flag | value | meaning |\n|---|---|---|\n")
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(b, "| %s | %s | %s%s |\n", name, strings.ReplaceAll(value, "|", `\|`), strings.ReplaceAll(usage, "|", `\|`), defaultOf(f))
	})
}

// defaultOf tells a flag's default, where it has one and its text does not tell it.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return ""
	}
	if strings.Contains(f.Usage, "(default") {
		return ""
	}
	return fmt.Sprintf(" (default %s)", strings.Trim(f.DefValue, "[]"))
}

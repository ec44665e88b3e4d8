package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/postgres"
)

// TestDocuments executes the commands of README, docs/start and docs/how-to as a reader types them, against private
// servers, and compares what the terminal shows with the document.
func TestDocuments(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"../../README.md", "../../docs/start/*.md", "../../docs/how-to/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files: %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			t.Parallel()
			newDocReader(t, file).follow(readBlocks(t, file))
		})
	}
}

// docSetup names a document whose blocks are run first.
var docSetup = regexp.MustCompile(`(?m)^<!-- setup: (.+) -->$`)

// readBlocks finds the blocks of a document, behind those of its setup.
func readBlocks(t *testing.T, file string) []docBlock {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var first []docBlock
	if m := docSetup.FindSubmatch(text); m != nil {
		first = readBlocks(t, filepath.Join("../..", string(m[1])))
	}
	blocks, err := docBlocks(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return append(first, blocks...)
}

// docReader does what a document tells its reader to do.
type docReader struct {
	t         *testing.T
	file      string
	dir       string
	env       []string
	terminals map[string]*docTerminal
	ports     map[string]string // what a document calls a port -> a port that is free here
	servers   map[string]bool   // products whose server is started
}

func newDocReader(t *testing.T, file string) *docReader {
	dir, bin := t.TempDir(), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asProgram, self)
	if err := os.WriteFile(filepath.Join(bin, "wirecheck"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "testdata"), filepath.Join(dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	return &docReader{
		t: t, file: file, dir: dir, terminals: map[string]*docTerminal{}, ports: map[string]string{}, servers: map[string]bool{},
		env: []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "PS1=$ ", "PS2=> ", "TERM=dumb", "LANG=C.UTF-8",
			"PAGER=cat", "HISTFILE=/dev/null", "PGUSER=postgres", "NO_COLOR=1"},
	}
}

// follow runs the blocks in their order and says how many there were.
func (r *docReader) follow(blocks []docBlock) {
	for _, b := range blocks { // servers first: terminals know their passwords
		if b.notRun == "" {
			r.here(strings.Join(b.lines, "\n"))
		}
	}
	run, left := 0, 0
	for i, b := range blocks {
		if b.file != "" {
			content := r.here(strings.Join(b.lines, "\n") + "\n")
			if err := os.WriteFile(filepath.Join(r.dir, b.file), []byte(content), 0o644); err != nil {
				r.t.Fatal(err)
			}
			continue
		}
		if b.language != "console" && b.language != "sh" {
			for j, line := range b.lines {
				if strings.HasPrefix(line, "$ ") {
					r.t.Errorf("%s:%d: a command in a block of %s is not run", r.file, b.line+j, b.language)
				}
			}
			continue
		}
		steps, err := b.steps()
		if err != nil {
			r.t.Fatalf("%s: %v", r.file, err)
		}
		if b.notRun != "" {
			left += len(steps)
			r.t.Logf("%s:%d: not run: %s", r.file, b.line, b.notRun)
			continue
		}
		for j, step := range steps {
			r.step(b, step, r.promptAfter(blocks, i, steps[j+1:]))
		}
		run += len(steps)
	}
	r.t.Logf("%s: %d inputs run, %d not run", r.file, run, left)
}

// promptAfter is the prompt that the terminal of blocks[i] shows when the input before the rest of that block is done:
// that of its next input. It is empty if Ctrl-C comes next, or nothing in a terminal that has a name.
func (r *docReader) promptAfter(blocks []docBlock, i int, rest []docStep) string {
	for _, b := range blocks[i+1:] {
		if len(rest) > 0 {
			break
		}
		if b.terminal == blocks[i].terminal && b.notRun == "" && b.file == "" && (b.language == "console" || b.language == "sh") {
			steps, err := b.steps()
			if err != nil {
				r.t.Fatalf("%s: %v", r.file, err)
			}
			rest = steps
		}
	}
	switch {
	case len(rest) > 0:
		return rest[0].prompt
	case blocks[i].terminal != "": // a proxy may run on
		return ""
	}
	return "$ "
}

// step types one input and waits until its output is there and the next prompt.
func (r *docReader) step(b docBlock, s docStep, next string) {
	r.t.Helper()
	terminal := r.terminal(b.terminal)
	input := r.here(s.input)
	if err := terminal.send(input); err != nil {
		r.t.Fatalf("%s:%d: %v", r.file, s.line, err)
	}
	var output string
	screen, done := terminal.await(input, func(screen string) bool {
		var prompted bool
		output, prompted = strings.CutSuffix(screen, next)
		if next == "" { // what runs in the terminal goes on, or it ends and the shell prompts
			output = strings.TrimSuffix(screen, "$ ")
			return s.matches(output)
		}
		return prompted && (output == "" || strings.HasSuffix(output, "\n") || s.input == interrupt)
	})
	switch {
	case !done && next == "":
		r.t.Fatalf("%s:%d: %q: the terminal shows\n%s\nand the document\n%s", r.file, s.line, s.input, screen, strings.Join(s.output, "\n"))
	case !done:
		r.t.Fatalf("%s:%d: %q: no prompt %q; the terminal shows\n%s", r.file, s.line, s.input, next, screen)
	case b.sample == "" && !s.matches(output):
		r.t.Errorf("%s:%d: %q: the terminal shows\n%s\nand the document\n%s", r.file, s.line, s.input, output, strings.Join(s.output, "\n"))
	}
	if b.language == "sh" {
		r.succeeded(terminal, s)
	}
}

// succeeded fails the test if the last command did not succeed.
func (r *docReader) succeeded(terminal *docTerminal, s docStep) {
	if err := terminal.send("echo $?"); err != nil {
		r.t.Fatalf("%s:%d: %v", r.file, s.line, err)
	}
	status, ok := terminal.await("", func(screen string) bool { return strings.HasSuffix(screen, "$ ") })
	if !ok || !strings.HasPrefix(status, "0\n") {
		r.t.Errorf("%s:%d: %q: exit status %s", r.file, s.line, s.input, strings.TrimSuffix(status, "\n$ "))
	}
}

// terminal gives the terminal of this name, and opens it when it is first named.
func (r *docReader) terminal(name string) *docTerminal {
	if d, ok := r.terminals[name]; ok {
		return d
	}
	d := openTerminal(r.t, r.dir, r.env)
	if screen, ok := d.await("", func(screen string) bool { return strings.HasSuffix(screen, "$ ") }); !ok {
		r.t.Fatalf("a new terminal shows %q", screen)
	}
	r.terminals[name] = d
	return d
}

// docPorts are the ports that documents name: servers', which are started when a document first names them, and the
// proxy's.
var docPorts = regexp.MustCompile(`\b(5432|6432|3306|6033|9090)\b`)

// here puts ports of this machine into a text of a document.
func (r *docReader) here(text string) string {
	return docPorts.ReplaceAllStringFunc(text, func(port string) string {
		if _, ok := r.ports[port]; !ok {
			switch port {
			case "5432":
				r.ports[port] = r.server(postgres.Start(r.t.Context(), engine.Options{}))
				r.env = append(r.env, "PGHOST=127.0.0.1", "PGPORT="+r.ports[port])
			case "3306":
				r.ports[port] = r.server(mariadb.Start(r.t.Context(), engine.Options{}))
			default:
				r.ports[port] = fmt.Sprint(unused(r.t))
			}
		}
		return r.ports[port]
	})
}

// unused gives a port that nobody listens on. It is none of those that Linux gives to whoever asks for any (from 32768 on), so nobody gets it
// by chance until the proxy of the document listens there.
func unused(t *testing.T) int {
	for {
		port := 10000 + rand.IntN(20000)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		return port
	}
}

// server gives the port of a private server that has been started. Its password is in the environment of all terminals
// that are opened from now on.
func (r *docReader) server(s *engine.Server, err error) string {
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	})
	if len(r.terminals) > 0 {
		r.t.Fatalf("%s: a terminal was open before its server was started", r.file)
	}
	r.env = append(r.env, "PGPASSWORD="+s.Password, "MYSQL_PWD="+s.Password, "WIRECHECK_PASSWORD="+s.Password)
	return fmt.Sprint(s.Port)
}

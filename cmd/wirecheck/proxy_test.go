package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wirecheck/internal/shop"
	"wirecheck/oracle"
)

// asProgram makes the test binary run as wirecheck itself, so that signals, files and the exit status can be tested on a
// process of its own.
const asProgram = "WIRECHECK_TEST_PROGRAM"

// patience bounds what must come: no machine is so busy that it takes longer.
const patience = 3 * time.Minute

// program is wirecheck as a process.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr transcript
	ended          chan struct{} // closed when the process has ended and all of its output is there
	err            error         // of its end; valid then
}

// transcript is what a process has written so far.
type transcript struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *transcript) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *transcript) String() string { return string(o.Bytes()) }

// Bytes gives a copy.
func (o *transcript) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text.Bytes())
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	return startProgramWith(t, nil, args...)
}

// startProgramWith is startProgram with more in its environment.
func startProgramWith(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	return startCommand(t, cmd)
}

func startCommand(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{cmd: cmd, ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(func() { p.cmd.Process.Kill(); <-p.ended }) // fails where the test has ended it, as it should
	return p
}

// until waits for what a file or the process says, which no event tells.
func (p *program) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-p.ended:
			if !is() {
				t.Fatalf("the program ended before %s: %v\n%s", what, p.err, p.stderr.String())
			}
		case <-limit:
			t.Fatalf("it does not come: %s\n%s", what, p.stderr.String())
		}
	}
}

// wait waits for the program's own end and gives its exit status.
func (p *program) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("wirecheck does not end\n%s", p.stderr.String())
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		t.Fatal(p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// kill is kill -9.
func (p *program) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
}

// end asks the program to end and gives its exit status.
func (p *program) end(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

// anyPort is where a proxy of a test listens: the system chooses the port, so that nobody else has it.
const anyPort = "127.0.0.1:0"

// port waits until the program listens for clients of the protocol, and gives the port. log gives what it has logged so far; nil: stderr.
func (p *program) port(t *testing.T, protocol string, log func() string) (port int) {
	t.Helper()
	if log == nil {
		log = p.stderr.String
	}
	p.until(t, "it listens for "+protocol, func() bool {
		for line := range strings.Lines(log()) {
			var entry struct{ Message, Protocol, Address string }
			if json.Unmarshal([]byte(line), &entry) != nil || entry.Message != "listening" || entry.Protocol != protocol {
				continue
			}
			address, err := net.ResolveTCPAddr("tcp", entry.Address)
			if err != nil {
				t.Fatal(err)
			}
			port = address.Port
		}
		return port != 0
	})
	return port
}

// TestProxyProgram runs the program as people do: both protocols in one process, a lost update on each, SIGTERM.
func TestProxyProgram(t *testing.T) {
	dir := t.TempDir()
	pg := newWorld(t, "postgres", shop.Setup...)
	my := newWorld(t, "mariadb", shop.Setup...)
	file := func(name string) string { return filepath.Join(dir, name) }
	p := startProgram(t, "proxy",
		"--listen", "postgres://"+anyPort, "--upstream", fmt.Sprintf("postgres://127.0.0.1:%d", pg.direct.Port),
		"--listen", "mysql://"+anyPort, "--upstream", fmt.Sprintf("mariadb://127.0.0.1:%d", my.direct.Port),
		"--record", file("history.jsonl"), "--report", file("report.txt"), "--stream", file("findings.jsonl"), "--format", "json")
	pgPort, myPort := p.port(t, "postgres", nil), p.port(t, "mysql", nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, side := range []struct {
		target shop.Target
		port   int
		code   string
	}{{pg.direct, pgPort, "01WC2"}, {my.direct, myPort, "51002"}} {
		side.target.Port = side.port
		heard, err := shop.Play(ctx, side.target, shop.Scenes(side.target.Engine)[1], &bytes.Buffer{})
		if err != nil {
			t.Fatalf("%v\n%s", err, p.stderr.String())
		}
		said := strings.Join(heard["customer B"], "\n")
		if !strings.Contains(said, "lost update") {
			t.Errorf("%s: the terminal printed %q, want a warning of the lost update", side.target.Engine, said)
		}
		if side.target.Engine != "postgres" && !strings.Contains(said, side.code) {
			t.Errorf("%s: the warning has no code %s: %q", side.target.Engine, side.code, said)
		}
	}
	if status := p.end(t); status != int(exitFound) {
		t.Errorf("exit status %d, want %d\n%s", status, exitFound, p.stderr.String())
	}
	var out struct{ Findings []oracle.Finding }
	if err := json.Unmarshal(p.stdout.Bytes(), &out); err != nil {
		t.Fatalf("stdout is no JSON: %v\n%s", err, p.stdout.String())
	}
	if len(out.Findings) != 2 {
		t.Errorf("%d findings on stdout, want 2", len(out.Findings))
	}
	for _, name := range []string{"history.jsonl", "report.txt", "findings.jsonl"} {
		info, err := os.Stat(file(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 || info.Size() == 0 {
			t.Errorf("%s: mode %v and %d bytes, want 0600 and something in it", name, info.Mode().Perm(), info.Size())
		}
	}
	stream, err := os.ReadFile(file("findings.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(stream, []byte("\n")); lines != 2 {
		t.Errorf("%d lines in the stream of findings, want 2", lines)
	}
	again, _ := judgeFile(t, file("history.jsonl"))
	if len(again) != 2 || again[0].ID != out.Findings[0].ID || again[1].ID != out.Findings[1].ID {
		t.Errorf("the recorded history gives %d findings, want the same two", len(again))
	}
	for _, secret := range []string{pg.direct.Password, my.direct.Password} {
		if strings.Contains(p.stderr.String(), secret) {
			t.Error("a password is in the log")
		}
	}
}

// TestProxyProgramQuiet is the near miss: the same clients one after the other.
func TestProxyProgramQuiet(t *testing.T) {
	w := newWorld(t, "postgres", shop.Setup...)
	p, port := front(t, "postgres", fmt.Sprintf("postgres://127.0.0.1:%d", w.direct.Port))
	scene := shop.Scenes("postgres")[1]
	first, second := scene, scene
	first.Steps, second.Steps = nil, nil
	for _, s := range scene.Steps {
		if s.Who == "customer A" {
			first.Steps = append(first.Steps, s)
		} else {
			second.Steps = append(second.Steps, s)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	target := w.direct
	target.Port = port
	for _, s := range []shop.Scene{first, second} {
		if _, err := shop.Play(ctx, target, s, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
	}
	if status := p.end(t); status != int(exitClean) {
		t.Errorf("exit status %d, want 0\n%s%s", status, p.stdout.String(), p.stderr.String())
	}
	if !strings.HasPrefix(p.stdout.String(), "nothing found\ncoverage: 4 exact, 0 approximate, 0 opaque") {
		t.Errorf("stdout:\n%s", p.stdout.String())
	}
}

// TestProxyRefuses has the mistakes that people make on the command line.
func TestProxyRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	there := filepath.Join(t.TempDir(), "there.jsonl")
	if err := os.WriteFile(there, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"nothing", "listeners: there are none: say --listen and --upstream", nil},
		{"listener without upstream", "listeners[0].upstream: it is missing", []string{"--listen", "postgres://127.0.0.1:0"}},
		{"other protocol", "no listener for upstream", []string{"--listen", "postgres://127.0.0.1:0", "--upstream", "mysql://127.0.0.1:1"}},
		{"no protocol", "\"127.0.0.1:0\" has no protocol in front: write postgres://127.0.0.1:0 or mysql://127.0.0.1:0", []string{"--listen", "127.0.0.1:0", "--upstream", "mysql://127.0.0.1:1"}},
		{"no protocol, and a password", "no listener for upstream (no URL)", []string{"--listen", "mysql://127.0.0.1:0", "--upstream", "me:secret@127.0.0.1:1"}},
		{"port taken", "address already in use", []string{"--listen", "postgres://" + taken.Addr().String(), "--upstream", "postgres://127.0.0.1:1"}},
		{"unknown mode", `"watch" is not one of`, []string{"--listen", "postgres://127.0.0.1:0", "--upstream", "postgres://127.0.0.1:1", "--mode", "watch"}},
		{"history there", "it is never written over", []string{"--listen", "postgres://127.0.0.1:0", "--upstream", "postgres://127.0.0.1:1", "--record", there}},
		{"no such configuration", "read configuration", []string{"--config", there + ".yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := run(t.Context(), append([]string{"proxy"}, tc.args...), &stdout, &stderr)
			if status != exitFailed || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("status %d, stderr %q, want status 2 and %q", status, stderr.String(), tc.want)
			}
		})
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "precious" {
		t.Errorf("a file that was there is %q now, %v", text, err)
	}
}

// TestDemo runs the demo as it is shown. It checks itself whether it found what it promises.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(t.Context(), []string{"demo", "--engine", engine}, &stdout, &stderr); status != exitClean {
				t.Fatalf("exit status %d\n%s%s", status, stdout.String(), stderr.String())
			}
			for _, want := range []string{"WRITE SKEW", "LOST UPDATE", "READ SKEW", "coverage: ", "The servers are removed."} {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("the demo does not say %q:\n%s", want, stdout.String())
				}
			}
		})
	}
}

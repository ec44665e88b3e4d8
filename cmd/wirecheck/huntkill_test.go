package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/hunt"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
)

// hunting is a hunt as a process of its own, with its own folder for temporary files.
type hunting struct {
	*program
	temp, out string
}

// startHunt starts one; out is the folder for what is found.
func startHunt(t *testing.T, out string, args ...string) *hunting {
	t.Helper()
	temp, err := os.MkdirTemp("", "wirecheck-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(temp, 0o755); err != nil { // servers run as somebody else
		t.Fatal(err)
	}
	args = append([]string{"hunt", "--out", out, "--format", "json", "--log-level", "warn"}, args...)
	h := &hunting{program: startProgramWith(t, []string{"TMPDIR=" + temp}, args...), temp: temp, out: out}
	t.Cleanup(func() { os.RemoveAll(temp) }) // what is in it was looked at
	return h
}

// state reads what the hunt has saved; nil if that is nothing yet.
func (h *hunting) state(t *testing.T) *hunt.State {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.out, hunt.StateFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	s := &hunt.State{}
	if err := errors.Join(err, json.Unmarshal(text, s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// until waits until the state is as it should be.
func (h *hunting) until(t *testing.T, what string, holds func(s *hunt.State) bool) {
	t.Helper()
	h.program.until(t, what, func() bool {
		s := h.state(t)
		return s != nil && holds(s)
	})
}

// wait waits for the hunt's own end and gives its exit status and result.
func (h *hunting) wait(t *testing.T) (int, *hunt.State) {
	t.Helper()
	return h.program.wait(t), h.state(t)
}

// clean fails the test if something of the hunt is left: processes, or files for its time only.
func (h *hunting) clean(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(h.temp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if pids := h.processes(t); len(pids) > 0 {
		t.Errorf("processes %v still work in %s", pids, h.temp)
	}
}

// processes are those that work in the hunt's folder: servers, and what they started.
func (h *hunting) processes(t *testing.T) (pids []int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && strings.HasPrefix(dir, h.temp+"/") {
			pid, err := strconv.Atoi(strings.Split(link, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to all processes of the hunt's server for which which holds, by their command lines.
func (h *hunting) signal(t *testing.T, s syscall.Signal, which func(command string) bool) {
	t.Helper()
	n := 0
	for _, pid := range h.processes(t) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !which(strings.ReplaceAll(string(line), "\x00", " ")) {
			continue // it has ended meanwhile
		}
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		n++
	}
	if n == 0 {
		t.Fatal("no such process")
	}
}

// folders checks that everything that was kept is whole, and gives the bugs.
func folders(t *testing.T, out string) (bugs []*hunt.Bug) {
	t.Helper()
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "flaky" || e.Name() == "broken" {
			continue
		}
		for _, name := range []string{"case.spec", "original.spec", "report.md", "reproduce.sh", "history.jsonl", "finding.json"} {
			text, err := os.ReadFile(filepath.Join(out, e.Name(), name))
			if err != nil || len(text) == 0 {
				t.Errorf("%s: %s: %d bytes, error %v", e.Name(), name, len(text), err)
				continue
			}
			switch {
			case strings.HasSuffix(name, ".spec"):
				if _, err := scenario.Parse(name, text); err != nil {
					t.Errorf("%s: %v", e.Name(), err)
				}
			case name == "finding.json":
				b := &hunt.Bug{}
				if err := json.Unmarshal(text, b); err != nil {
					t.Errorf("%s: %v", e.Name(), err)
				}
				bugs = append(bugs, b)
			}
		}
	}
	return bugs
}

func signatures(bugs []*hunt.Bug) (list []string) {
	for _, b := range bugs {
		list = append(list, b.Signature)
	}
	slices.Sort(list)
	return list
}

// fruitful are the flags of a hunt that finds known bugs of MariaDB in its first cases, on one connection: so it does the same each
// time.
var fruitful = []string{"--engine", "mariadb", "--oracle", "tlp", "--level", "read committed", "--seed", "5", "--cases", "20", "--tries", "40",
	"--queries", "60", "--steer=false", "--reduction", "0"}

// TestHuntKilled kills a hunt again and again, and goes on with it: what was found is there as a whole or not at all, and the end is
// that of a hunt that nobody killed.
func TestHuntKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := startHunt(t, filepath.Join(dir, "whole"), fruitful...)
	status, want := whole.wait(t)
	if status != int(exitFound) || want.Findings == 0 {
		t.Fatalf("exit status %d, %d findings: the test needs some\n%s", status, want.Findings, whole.stderr.String())
	}
	whole.clean(t)
	out := filepath.Join(dir, "killed")
	args := fruitful
	for _, at := range []int{3, 9} {
		h := startHunt(t, out, args...)
		h.until(t, fmt.Sprintf("case %d", at), func(s *hunt.State) bool { return s.Next >= at })
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-h.ended
		folders(t, out)
		args = append(slices.Clone(fruitful), "--resume")
	}
	half := filepath.Join(out, ".writing-123")
	if err := os.Mkdir(half, 0o700); err != nil { // what a kill in the middle of writing leaves
		t.Fatal(err)
	}
	h := startHunt(t, out, args...)
	status, got := h.wait(t)
	if status != int(exitFound) {
		t.Fatalf("exit status %d\n%s", status, h.stderr.String())
	}
	h.clean(t)
	if _, err := os.Lstat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", half, err)
	}
	want.Elapsed, got.Elapsed, want.Spent, got.Spent = 0, 0, nil, nil // what goes by the clock
	want.Fresh, got.Fresh = 0, 0                                      // the steering is written less often
	wantText, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	gotText, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(wantText), string(gotText)); diff != "" {
		t.Errorf("another end than without kills (-whole +killed):\n%s", diff)
	}
	if diff := cmp.Diff(signatures(folders(t, whole.out)), signatures(folders(t, out))); diff != "" {
		t.Errorf("other bugs than without kills (-whole +killed):\n%s", diff)
	}
}

// TestHuntInterrupted asks a hunt to end at several moments: it does, with everything written and nothing left behind.
func TestHuntInterrupted(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 4} { // 0: while the server starts
		out := filepath.Join(t.TempDir(), "found")
		h := startHunt(t, out, append(slices.Clone(fruitful), "--cases", "100000")...)
		if at > 0 {
			h.until(t, fmt.Sprintf("case %d", at), func(s *hunt.State) bool { return s.Next >= at })
		} else { // a signal that comes before the program asks for signals is lost where they are ignored, as in a shell's background
			h.program.until(t, "a server's process", func() bool { return len(h.processes(t)) > 0 })
		}
		if err := h.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		status, s := h.wait(t)
		h.clean(t)
		if at == 0 {
			continue
		}
		if status != int(exitClean) && status != int(exitFound) || s.Next < at {
			t.Errorf("exit status %d, next case %d\n%s", status, s.Next, h.stderr.String())
		}
		var said hunt.State
		if err := json.Unmarshal(h.stdout.Bytes(), &said); err != nil || said.Next != s.Next {
			t.Errorf("printed %s, error %v", h.stdout.String(), err)
		}
		if bugs := folders(t, out); len(bugs) == 0 != (status == int(exitClean)) {
			t.Errorf("%d bugs, exit status %d", len(bugs), status)
		}
	}
}

// TestHuntDisk fills the disk of what is found: it is printed in the end, and --resume finds it again when there is room.
func TestHuntDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "none", disk).CombinedOutput(); err != nil {
		t.Skipf("no disk can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v: %s", err, out)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 236<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(disk, "found")
	h := startHunt(t, out, fruitful...)
	status, s := h.wait(t)
	h.clean(t)
	if status != int(exitFailed) || !strings.Contains(h.stderr.String(), "no space left on device") || !strings.Contains(h.stdout.String(), "/case.spec\n") {
		t.Fatalf("exit status %d, said %q, printed %q", status, h.stderr.String(), h.stdout.String())
	}
	if s != nil && s.Findings > 0 {
		t.Errorf("the state says that %d findings are kept", s.Findings)
	}
	folders(t, out)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(fruitful)
	if s != nil {
		args = append(args, "--resume")
	}
	h = startHunt(t, out, args...)
	if status, s = h.wait(t); status != int(exitFound) || len(folders(t, out)) == 0 {
		t.Errorf("with room: exit status %d\n%s", status, h.stderr.String())
	}
}

// idle is a process of PostgreSQL that serves a connection of the case, not the watcher's or the one that reads tables.
func idle(line string) bool { return strings.Contains(line, "idle") }

// TestHuntServer lets servers die and stand still under a hunt: it starts another one and goes on. What happened is kept, apart if
// it does not happen again.
func TestHuntServer(t *testing.T) {
	t.Parallel()
	any := func(string) bool { return true }
	tests := []struct {
		name   string
		engine string
		signal syscall.Signal
		which  func(command string) bool
		kept   string
	}{
		{"killed", "mariadb", syscall.SIGKILL, any, "crash"},
		{"a process of it killed", "postgres", syscall.SIGKILL, idle, "crash"},
		{"stands still", "mariadb", syscall.SIGSTOP, any, "hang"},
		{"processes of it stand still", "postgres", syscall.SIGSTOP, idle, "hang"},
	}
	for _, test := range tests {
		t.Run(test.engine+" "+test.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "found")
			h := startHunt(t, out, "--engine", test.engine, "--oracle", "crash,wss", "--cases", "100000", "--seed", "3", "--limit", "6s")
			h.until(t, "the first cases", func(s *hunt.State) bool { return s.Next >= 3 })
			h.signal(t, test.signal, test.which)
			before := h.state(t).Next
			h.until(t, "the server to be started again", func(s *hunt.State) bool { return s.Crashes > 0 && s.Next >= before+5 })
			if err := h.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			status, s := h.wait(t)
			h.clean(t)
			bugs, want := folders(t, out), exitClean
			if len(bugs) > 0 { // the server has bugs of its own, such as MDEV-30835
				want = exitFound
			}
			if status != int(want) || slices.ContainsFunc(bugs, func(b *hunt.Bug) bool { return b.Finding.Class == oracle.Crash }) || s.Crashes != 1 || s.Flaky != 1 {
				t.Errorf("exit status %d, %d crashes, %d flaky\n%s\n%s", status, s.Crashes, s.Flaky, h.stdout.String(), h.stderr.String())
				for _, b := range bugs {
					t.Logf("found: %+v", b)
				}
			}
			text, err := os.ReadFile(filepath.Join(out, "flaky", "crash-001", "finding.json"))
			if err != nil || !strings.Contains(string(text), fmt.Sprintf(`"name": %q`, test.kept)) {
				t.Errorf("kept %s, error %v; want a %s", text, err, test.kept)
			}
		})
	}
}

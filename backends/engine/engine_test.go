package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func folder(t *testing.T) *Folder {
	t.Helper()
	f, err := NewFolder("test", Account{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// script is a program that stands for a server: it does what a shell script says.
func script(text func(port int) string) Program {
	return Program{
		Engine: "test", Path: "/bin/sh", Stop: syscall.SIGTERM, PortTaken: "port is taken",
		Args:  func(_ *Folder, port int) []string { return []string{"-c", text(port)} },
		Ready: func(context.Context, *Server) error { return nil },
	}
}

func TestLaunchTriesAnotherPort(t *testing.T) {
	starts := 0
	p := script(func(int) string {
		if starts++; starts < 3 {
			return "echo the port is taken >&2; exit 1"
		}
		return "exec sleep 1000"
	})
	p.Ready = func(_ context.Context, s *Server) error {
		if starts < 3 {
			return errors.New("not yet")
		}
		return nil
	}
	s, err := launch(t.Context(), folder(t), &Server{}, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || starts != 3 {
		t.Errorf("got %d starts, %v; want 3", starts, err)
	}
}

// TestLaunchFindsPortTaken: a server may say in a log of its own that it could not bind its port.
func TestLaunchFindsPortTaken(t *testing.T) {
	starts := 0
	p := script(func(port int) string {
		if starts++; starts > 1 {
			return "exec sleep 1000"
		}
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return "echo ending log output to stderr; exit 1"
	})
	p.Ready = func(context.Context, *Server) error {
		if starts == 1 {
			return errors.New("not yet")
		}
		return nil
	}
	s, err := launch(t.Context(), folder(t), &Server{}, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || starts != 2 {
		t.Errorf("got %d starts, %v; want 2", starts, err)
	}
}

func TestLaunchGivesUp(t *testing.T) {
	tests := []struct {
		name, script string
		want         []string
		starts       int
	}{
		{"every port is taken", "echo the port is taken >&2; exit 1", []string{"port taken by another process"}, startAttempts},
		{"another failure", "echo disk full; exit 7", []string{"exit status 7", "disk full"}, 1},
		{"long log", "yes x | head -100000; echo last words; exit 1", []string{"last words", "..."}, 1},
	}
	for _, test := range tests {
		f := folder(t)
		starts := 0
		p := script(func(int) string { starts++; return test.script })
		p.Ready = func(context.Context, *Server) error { return errors.New("not yet") }
		_, err := launch(t.Context(), f, &Server{}, p)
		if err == nil {
			t.Errorf("%s: it started", test.name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", test.name, want, err)
			}
		}
		if starts != test.starts || len(err.Error()) > 2*logTail {
			t.Errorf("%s: %d starts, message of %d bytes", test.name, starts, len(err.Error()))
		}
		if _, err := os.Stat(f.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder is still there: %v", test.name, err)
		}
	}
}

// TestRemoveEndsProcesses: what a server leaves running in its folder ends with it.
func TestRemoveEndsProcesses(t *testing.T) {
	f := folder(t)
	p := script(func(int) string { return "sleep 1000 & echo $! > ../child; exec sleep 1000" })
	p.Ready = func(context.Context, *Server) error {
		_, err := os.Stat(f.Join("child"))
		return err
	}
	s, err := launch(t.Context(), f, &Server{}, p)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := processesIn(f.Path)
	if err != nil || len(pids) != 2 {
		t.Errorf("got processes %v, %v; want two", pids, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err == nil && !zombie(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// TestKillEndsProcesses: a process of the server that stands still would keep its client waiting for ever.
func TestKillEndsProcesses(t *testing.T) {
	f := folder(t)
	p := script(func(int) string { return "setsid sleep 1000 & echo $! > ../child; exec sleep 1000" })
	p.Ready = func(context.Context, *Server) error {
		pids, err := processesIn(f.Path)
		if len(pids) != 2 {
			return fmt.Errorf("processes %v, %v", pids, err)
		}
		return nil
	}
	s, err := launch(t.Context(), f, &Server{}, p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pids, err := processesIn(f.Path)
	if err != nil || len(pids) != 2 {
		t.Fatalf("got processes %v, %v; want two", pids, err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Kill(); err != nil {
		t.Error(err)
	}
	if pids, err := processesIn(f.Path); err != nil || len(pids) > 0 {
		t.Errorf("processes %v are still there, %v", pids, err)
	}
}

// zombie reports whether a process has ended and only waits for whoever adopted it.
func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestSweep(t *testing.T) {
	temp := t.TempDir()
	mkdir := func(name string, lock bool) string {
		path := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(path, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		if lock {
			if err := os.WriteFile(filepath.Join(path, "lock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	abandoned, halfRemoved := mkdir(folderPrefix+"a-1", true), mkdir(folderPrefix+"a-2", false)
	inUse, inMaking, other, target := mkdir(folderPrefix+"a-3", true), mkdir(unlockedPrefix+"a-4", false), mkdir("wirecheck", false), mkdir("target", false)
	if err := os.Symlink(target, filepath.Join(temp, folderPrefix+"a-5")); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(filepath.Join(inUse, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(temp); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{abandoned: false, halfRemoved: false, inUse: true, inMaking: true, other: true, target + "/data": true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: got %v, want there: %v", path, err, want)
		}
	}
}

// TestTempDirs checks that servers' files are in memory where there is room, and that TMPDIR overrules it.
func TestTempDirs(t *testing.T) {
	dir := t.TempDir()
	if got := withRoom([]string{"/no/such", "/proc", dir}); got != dir {
		t.Errorf("got %s, want the last one: no other is in memory", got)
	}
	if room := roomInMemory(memory); room >= roomForServers {
		if got := withRoom([]string{memory, dir}); got != memory {
			t.Errorf("got %s, want %s with %d bytes of room", got, memory, room)
		}
	} else if got := withRoom([]string{memory, dir}); got != dir {
		t.Errorf("got %s, want %s: %s has %d bytes of room", got, dir, memory, room)
	}
	t.Setenv("TMPDIR", dir)
	if got := (Account{}).tempDirs(); !slices.Equal(got, []string{dir}) {
		t.Errorf("got %v, want TMPDIR, %s", got, dir)
	}
}

func TestSearchable(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "closed", "open")
	if err := os.MkdirAll(closed, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(closed), 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{"/": true, "/usr/bin": true, closed: false, "/no/such": false} {
		if got := searchable(dir); got != want {
			t.Errorf("%s: got %v, want %v", dir, got, want)
		}
	}
}

// TestRenameLabs: a report's texts have no names of lab databases. Near misses: other names that begin so.
func TestRenameLabs(t *testing.T) {
	for text, want := range map[string]string{
		"fails (`wirecheck_lab_1e41a40d_1`.`u`)": "fails (`x`.`u`)",
		"wirecheck_lab_1e41a40d_12.t":            "x.t",
		"wirecheck_lab_of_mine.t":                "wirecheck_lab_of_mine.t",
		"wirecheck_lab_1e41a40d_1x":              "wirecheck_lab_1e41a40d_1x",
	} {
		if got := RenameLabs(text, "x"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStalledPipes: pipes that nobody reads stop neither the sessions nor the end of the process.
func TestStalledPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := func(name string) string {
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "proxy", "--mode", "observe", "--listen", "postgres://127.0.0.1:0", "--upstream", "postgres://127.0.0.1:1",
		"--report", pipe("report"), "--stream", pipe("stream"))
	cmd.Env = append(os.Environ(), asProgram+"=1")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdoutPipe(); err != nil { // nobody reads it
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended where the test has succeeded
	lines := bufio.NewReaderSize(log, 512)
	var first struct{ Address string }
	for first.Address == "" {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		_ = json.Unmarshal(line, &first)
	}
	const sessions = 600 // their log takes three times what the pipe holds
	for range sessions {
		conn, err := net.Dial("tcp", first.Address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(conn); len(said) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("%q, %v", said, err)
		}
		conn.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	state, err := cmd.Process.Wait()
	if err != nil || state.ExitCode() != int(exitFailed) {
		t.Errorf("%v, %v, want exit status %d: the report could not be written", state, err, exitFailed)
	}
}

// TestReadPipes: the near miss. Who reads a pipe late gets all of it.
func TestReadPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stream")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCommon(io.Discard, io.Discard)
	w, err := (&outputs{}).open(c, path, "stream")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 99) + "\n"
	for range 10_000 {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
	}
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(r)
		read <- b
	}()
	if err := w.Close(flushPatience); err != nil {
		t.Error(err)
	}
	if got := string(<-read); got != strings.Repeat(line, 10_000) || w.Dropped() != 0 {
		t.Errorf("%d bytes, dropped %d", len(got), w.Dropped())
	}
}

// TestSignalEndsWaiting: a command that does not look at its context ends after a signal, too.
func TestSignalEndsWaiting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, "check", path)
	w, err := os.OpenFile(path, os.O_WRONLY, 0) // waits until the program reads
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if status := p.end(t); status != int(exitFailed) || !strings.Contains(p.stderr.String(), "interrupted") {
		t.Errorf("exit status %d: %s", status, p.stderr.String())
	}
}

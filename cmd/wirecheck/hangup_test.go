package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestHangup: a proxy whose terminal is closed ends, as any program of a terminal does. With its output elsewhere, SIGHUP reloads
// (TestSignals).
func TestHangup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	master, slave, err := openPTY()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "proxy", "--listen", "postgres://"+anyPort, "--upstream", "postgres://127.0.0.1:1")
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(os.Environ(), asProgram+"=1"), slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	slave.Close()
	var said bytes.Buffer
	for !strings.Contains(said.String(), "listening") {
		b := make([]byte, 4096)
		n, err := master.Read(b)
		if err != nil {
			t.Fatalf("%v: said %q", err, said.String())
		}
		said.Write(b[:n])
	}
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // else the test's own limit ends it
	if code := cmd.ProcessState.ExitCode(); code != int(exitUnknown) && code != int(exitFailed) {
		t.Errorf("exit status %d", code)
	}
}

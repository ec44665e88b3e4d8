package main

import (
	"net"
	"path/filepath"
	"testing"
)

// TestSystemd: a proxy that systemd has started (Type=notify) says when it listens, and when it ends.
func TestSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	told := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		if n, err := socket.Read(b); err != nil || string(b[:n]) != want {
			t.Fatalf("systemd is told %q, %v; want %q", b[:n], err, want)
		}
	}
	args := []string{"proxy", "--listen", "postgres://" + anyPort, "--upstream", "postgres://127.0.0.1:1"}
	p := startProgramWith(t, []string{"NOTIFY_SOCKET=" + path}, args...)
	told("READY=1")
	p.port(t, "postgres", nil)
	if status := p.end(t); status != int(exitUnknown) {
		t.Errorf("exit status %d\n%s", status, p.stderr.String())
	}
	told("STOPPING=1")

	refused := startProgramWith(t, []string{"NOTIFY_SOCKET=" + path}, append(args, "--mode", "pas")...) // it never listens, so it is never ready
	if status := refused.wait(t); status != int(exitFailed) {
		t.Errorf("exit status %d\n%s", status, refused.stderr.String())
	}
	alone := startProgramWith(t, []string{"NOTIFY_SOCKET=/no/such/socket"}, args...) // a service manager that is gone does no harm
	alone.port(t, "postgres", nil)
	alone.end(t)
	if _, err := socket.WriteToUnix([]byte("nothing else"), socket.LocalAddr().(*net.UnixAddr)); err != nil {
		t.Fatal(err)
	}
	told("nothing else")
}

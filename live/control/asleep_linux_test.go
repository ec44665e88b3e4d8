package control

import (
	"bufio"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// start runs a shell command that reads a line and answers it, and waits until it has begun.
func start(t *testing.T, script string) (pid int, say func(string) string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "echo ready; "+script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the script with its children, if it reads
		if !strings.Contains(script, "read") {
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	read := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	read()
	return cmd.Process.Pid, func(line string) string {
		if _, err := in.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		return read()
	}
}

// becomes waits until Asleep says that.
func becomes(t *testing.T, pid int, want bool) {
	t.Helper()
	for t.Context().Err() == nil {
		asleep, err := Asleep(pid)
		if err != nil {
			t.Skip(err) // the kernel does not show it
		}
		if asleep == want {
			return
		}
		runtime.Gosched()
	}
}

// TestAsleep: a process that reads sleeps, one that computes does not, and no process sleeps whose child computes.
func TestAsleep(t *testing.T) {
	pid, say := start(t, "while read line; do echo $line; done")
	becomes(t, pid, true)
	if got := say("one"); got != "one\n" {
		t.Errorf("it said %q", got)
	}
	becomes(t, pid, true)
	for _, script := range []string{"while :; do :; done", "(while :; do :; done) & read line; kill $!", "sh -c 'while :; do :; done' & read line; kill $!"} {
		pid, _ := start(t, script)
		becomes(t, pid, false)
		for range 20 {
			if asleep, err := Asleep(pid); err != nil || asleep {
				t.Errorf("%s: asleep %v, %v", script, asleep, err)
				break
			}
		}
	}
}

// TestTraffic: a session owes the gate what it has sent, until it is answered or over. COM_STMT_CLOSE has no answer.
func TestTraffic(t *testing.T) {
	var tr traffic
	now := time.Now()
	l := line{&tr, 1}
	for _, tt := range []struct {
		do   func()
		owes bool
	}{
		{func() { tr.note(1, true, now) }, true}, // it has connected
		{func() { l.ToClient([]byte("hello"), now) }, false},
		{func() { l.FromClient([]byte{5, 0, 0, 0, 0x19, 1, 0, 0, 0}, now) }, false},
		{func() { l.FromClient([]byte{5, 0, 0, 0, 0x17, 1, 0, 0, 0}, now) }, true},
		{func() { l.FromServer(now) }, true},
		{func() { l.ToClient([]byte("ok"), now) }, false},
		{func() { l.FromClient([]byte{1, 0, 0, 0, 1}, now) }, true},
		{func() { l.Closed(now) }, false},
	} {
		if tt.do(); tr.owed[1] != tt.owes {
			t.Errorf("after %d messages: owes %v", tr.moves, tr.owed[1])
		}
	}
	if len(tr.owed) != 0 {
		t.Errorf("a session that is over is remembered: %v", tr.owed)
	}
}

// TestAsleepBusy: on a machine whose processors others use up, a process that sleeps is seen to sleep all the same.
func TestAsleepBusy(t *testing.T) {
	pid, _ := start(t, "read line")
	for range 8 * runtime.NumCPU() {
		start(t, "while :; do :; done")
	}
	const tries = 40
	seen := 0
	for range tries {
		asleep, err := Asleep(pid)
		if err != nil {
			t.Skip(err)
		}
		if asleep {
			seen++
		}
		rest(stillPause)
	}
	if seen < tries/2 {
		t.Errorf("it is seen to sleep %d times of %d", seen, tries)
	}
}

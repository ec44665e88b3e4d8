package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server in a process of its own that listens on a port of loopback.
type process struct {
	cmd  *exec.Cmd
	port int
	log  *bytes.Buffer
	done chan error
}

// startProcess starts cmd and waits until it takes connections.
func startProcess(cmd *exec.Cmd, port int) (*process, error) {
	p := &process{cmd: cmd, port: port, log: &bytes.Buffer{}, done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() { p.done <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
			return p, nil
		}
		select {
		case err := <-p.done:
			return nil, fmt.Errorf("%s ended at once: %v: %s", cmd.Path, err, p.log)
		case <-ctx.Done():
			cmd.Process.Kill()
			return nil, fmt.Errorf("%s does not listen: %s", cmd.Path, p.log)
		case <-time.After(5 * time.Millisecond): // between two tries to connect: nothing tells that a port is open
		}
	}
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(15 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s had to be killed: it did not end on SIGTERM within 15 s: %s", p.cmd.Path, p.log)
	}
}

// peak is the process's largest resident set so far, in MiB (proc(5), VmHWM).
func (p *process) peak() (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("no VmHWM in the status of process %d", p.cmd.Process.Pid)
}

// forgetPeak has peak begin again (proc(5), clear_refs).
func (p *process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// startProxy runs wirecheck in front of the server at upstream.
func startProxy(o options, scheme, upstream, mode string, args ...string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	protocol := scheme
	if scheme == "mariadb" {
		protocol = "mysql"
	}
	args = append([]string{"proxy", "--mode", mode, "--log-level", "warn",
		"--listen", fmt.Sprintf("%s://127.0.0.1:%d", protocol, port), "--upstream", scheme + "://" + upstream}, args...)
	return startProcess(exec.Command(o.wirecheck, args...), port)
}

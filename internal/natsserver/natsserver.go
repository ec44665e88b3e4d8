// Package natsserver runs a NATS server in a process of its own: one for tests and benchmarks, that can be killed. It is nats-server as its own
// command runs it, built into whatever program calls Main.
package natsserver

import (
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/nats-io/nats-server/v2/server"
)

// marker in the environment makes a program that calls Main first a NATS server.
const marker = "WIRECHECK_NATS_SERVER"

// Main is nats-server with the program's arguments, and does not return, if the process was started as one; otherwise it does nothing.
func Main() {
	if os.Getenv(marker) == "" {
		return
	}
	o, err := server.ConfigureOptions(flag.NewFlagSet("nats-server", flag.ExitOnError), os.Args[1:], nil, nil, nil)
	var s *server.Server
	if err == nil {
		s, err = server.NewServer(o)
	}
	if err == nil {
		s.ConfigureLogger()
		err = server.Run(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats-server:", err)
		os.Exit(1)
	}
	s.WaitForShutdown()
	os.Exit(0)
}

// Command is this program as a NATS server with JetStream on a port of loopback, its store in a folder. More of nats-server's flags may follow.
func Command(port int, dir string, more ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"-a", "127.0.0.1", "-p", fmt.Sprint(port), "-js", "-sd", dir}, more...)...)
	cmd.Env = append(os.Environ(), marker+"=1")
	return cmd, nil
}

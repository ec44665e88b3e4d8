package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/postgres"
)

// benchMemory sends a result of one gibibyte through the proxy and prints the process's largest resident set.
func benchMemory(ctx context.Context, o options) (err error) {
	for _, half := range []struct {
		scheme string
		start  func(context.Context, engine.Options) (*engine.Server, error)
		client func(s *engine.Server, port int) *exec.Cmd
	}{
		{"postgres", postgres.Start, func(s *engine.Server, port int) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "psql", "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-U", s.User, "-d", "postgres", "-v", "FETCH_COUNT=100",
				"-c", "COPY (SELECT repeat('x', 1048575) FROM generate_series(1, 1024)) TO STDOUT")
			cmd.Env = append(os.Environ(), "PGPASSWORD="+s.Password)
			return cmd
		}},
		{"mariadb", mariadb.Start, func(s *engine.Server, port int) *exec.Cmd {
			cmd := exec.CommandContext(ctx, "mariadb", "--no-defaults", "--quick", "-N", "-B", "-h", "127.0.0.1", "-P", strconv.Itoa(port), "-u", s.User,
				"-e", "SELECT REPEAT('x', 1048575) FROM mysql.seq_1_to_1024")
			cmd.Env = append(os.Environ(), "MYSQL_PWD="+s.Password)
			return cmd
		}},
	} {
		if err := memoryHalf(o, half.scheme, func() (*engine.Server, error) { return half.start(ctx, engine.Options{}) }, half.client); err != nil {
			return err
		}
	}
	return nil
}

func memoryHalf(o options, scheme string, start func() (*engine.Server, error), client func(*engine.Server, int) *exec.Cmd) (err error) {
	s, err := start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, mode := range []string{"pass", "observe"} {
		p, err := startProxy(o, scheme, s.Address(), mode)
		if err != nil {
			return err
		}
		cmd := client(s, p.port)
		var counted counter
		cmd.Stdout = &counted
		began := time.Now()
		runErr := cmd.Run()
		peak, peakErr := p.peak()
		if err := errors.Join(runErr, peakErr, p.stop()); err != nil {
			return fmt.Errorf("%s %s: %w", scheme, mode, err)
		}
		fmt.Printf("%s, %s: a result of %.2f GiB in %.1f s, largest resident set %.0f MiB\n", scheme, mode, float64(counted)/(1<<30), time.Since(began).Seconds(), peak)
	}
	return nil
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

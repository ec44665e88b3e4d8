package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
)

func benchPostgres(ctx context.Context, o options) (err error) {
	s, err := postgres.Start(ctx, engine.Options{Settings: map[string]string{"max_connections": "300"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("PostgreSQL %s, pgbench scale 2\n", s.Version)
	pgbench, err := preparePgbench(ctx, o, s)
	if err != nil {
		return err
	}
	pgbouncer := func() (*process, error) { return startPgbouncer(s) }
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		fmt.Println("pgbouncer is not installed (apt-get install -y pgbouncer): that comparison is left out")
		pgbouncer = nil
	}
	return compare(ctx, o, "postgres", s, pgbouncer, []workload{
		{name: "select-only, prepared", run: pgbench("-S", "-M", "prepared")},
		{name: "select-only, simple", run: pgbench("-S", "-M", "simple")},
		{name: "tpcb-like, simple", run: pgbench("-M", "simple"), targets: withoutForwarder},
		{name: "tpcb-like, prepared", run: pgbench("-M", "prepared"), targets: withoutForwarder},
	})
}

// preparePgbench fills the tables, and gives what makes loads.
func preparePgbench(ctx context.Context, o options, s *engine.Server) (func(args ...string) load, error) {
	env := append(os.Environ(), "PGUSER="+s.User, "PGPASSWORD="+s.Password, "PGDATABASE=postgres", "PGHOST=127.0.0.1", "PGSSLMODE=disable")
	pgbench := func(ctx context.Context, port int, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, "pgbench", args...)
		cmd.Env = append(env[:len(env):len(env)], fmt.Sprintf("PGPORT=%d", port))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("pgbench %v: %w: %s", args, err, stderr.String())
		}
		return out, nil
	}
	if _, err := pgbench(ctx, s.Port, "-i", "-s", "2", "-q"); err != nil {
		return nil, err
	}
	return func(args ...string) load {
		return func(ctx context.Context, port, clients int) (f figures, err error) {
			dir, err := os.MkdirTemp("", "wirecheck-pgbench-")
			if err != nil {
				return f, err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			out, err := pgbench(ctx, port, append([]string{"-n", "-c", strconv.Itoa(clients), "-j", "1", "-T", strconv.Itoa(max(1, int(o.length.Seconds()))),
				"-l", "--sampling-rate", "0.1", "--log-prefix", filepath.Join(dir, "log")}, args...)...)
			if err != nil {
				return f, err
			}
			if f.rate, err = number(out, `tps = ([0-9.]+) \(without`); err == nil {
				f.n, err = number(out, `transactions actually processed: ([0-9]+)`)
			}
			if err == nil {
				f.p50, f.p99, err = pgbenchLatency(dir)
			}
			return f, err
		}
	}, nil
}

// pgbenchLatency reads the log of transactions that pgbench has written: the median and the 99th percentile, in ms.
func pgbenchLatency(dir string) (p50, p99 float64, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "log*"))
	var all []latency
	for _, file := range files {
		data, e := os.ReadFile(file)
		err = errors.Join(err, e)
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) > 2 {
				us, e := strconv.ParseFloat(fields[2], 64)
				err = errors.Join(err, e)
				all = append(all, latency{us / 1000, 1})
			}
		}
	}
	p50, p99 = percentiles(all)
	return p50, p99, err
}

func number(out []byte, pattern string) (float64, error) {
	m := regexp.MustCompile(pattern).FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no %q in the output:\n%s", pattern, out)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// startPgbouncer runs pgbouncer in session mode, which like wirecheck keeps one server connection a client.
func startPgbouncer(s *engine.Server) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	account, err := engine.AccountFor("postgres", "nobody")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "wirecheck-pgbouncer-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // pgbouncer reads its files at the start only
	config := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = session
max_client_conn = 100
default_pool_size = 100
ignore_startup_parameters = extra_float_digits
`, s.Port, s.User, s.Password, port)
	path := filepath.Join(dir, "pgbouncer.ini")
	for _, err := range []error{os.WriteFile(path, []byte(config), 0o600), account.Own(dir), account.Own(path)} {
		if err != nil {
			return nil, err
		}
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		return nil, err
	}
	return startProcess(account.Command(dir, program, path), port)
}

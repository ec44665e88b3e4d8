package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
		return func(ctx context.Context, port, clients int) (rate, n float64, err error) {
			all := append(slices.Clone(args), "-n", "-c", strconv.Itoa(clients), "-j", "1", "-T", strconv.Itoa(max(1, int(o.length.Seconds()))))
			out, err := pgbench(ctx, port, all...)
			if err != nil {
				return 0, 0, err
			}
			rate, err = number(out, `tps = ([0-9.]+) \(without`)
			if err == nil {
				n, err = number(out, `transactions actually processed: ([0-9]+)`)
			}
			return rate, n, err
		}
	}, nil
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

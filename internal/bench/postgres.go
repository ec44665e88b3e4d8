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

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
)

var ratios = [][2]string{
	{"forward", "direct"}, {"pgbouncer", "direct"}, {"pass", "direct"}, {"pass", "forward"}, {"pass", "pgbouncer"}, {"observe", "pass"},
}

func benchPostgres(ctx context.Context, o options) (err error) {
	s, err := postgres.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("PostgreSQL %s, pgbench scale 2\n", s.Version)
	tool := pgTool(s)
	if _, err := tool(ctx, s.Port, "-i", "-s", "2", "-q"); err != nil {
		return err
	}
	targets := []target{{"direct", s.Port}}
	add := func(name string, p *process, e error) error {
		if e != nil {
			return e
		}
		targets = append(targets, target{name, p.port})
		return nil
	}
	var running []*process
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.stop())
		}
	}()
	start := func(name string, p *process, e error) error {
		if e == nil {
			running = append(running, p)
		}
		return add(name, p, e)
	}
	p, e := startForwarder(s.Address())
	if err := start("forward", p, e); err != nil {
		return err
	}
	if _, e := exec.LookPath("pgbouncer"); e != nil {
		fmt.Println("pgbouncer is not installed (apt-get install -y pgbouncer): that comparison is left out")
	} else {
		p, e := startPgbouncer(s)
		if err := start("pgbouncer", p, e); err != nil {
			return err
		}
	}
	for _, mode := range []string{"pass", "observe"} {
		p, e := startProxy(o, "postgres", s.Address(), mode)
		if err := start(mode, p, e); err != nil {
			return err
		}
	}
	pgbench := func(args ...string) func(context.Context, int, int) (float64, error) { return pgLoad(o, tool, args...) }
	for _, w := range []workload{
		{name: "select-only, prepared", run: pgbench("-S", "-M", "prepared")},
		{name: "select-only, simple", run: pgbench("-S", "-M", "simple")},
		{name: "tpcb-like, simple", run: pgbench("-M", "simple"), targets: []string{"direct", "pass", "observe"}},
		{name: "tpcb-like, prepared", run: pgbench("-M", "prepared"), targets: []string{"direct", "pass", "observe"}},
	} {
		for _, clients := range []int{1, 8} {
			if err := measure(ctx, o, w, clients, targets, ratios); err != nil {
				return err
			}
		}
	}
	fmt.Println()
	return nil
}

// pgLoad makes a load of pgbench.
func pgLoad(o options, tool func(ctx context.Context, port int, args ...string) ([]byte, error), args ...string) func(context.Context, int, int) (float64, error) {
	return func(ctx context.Context, port, clients int) (float64, error) {
		c := strconv.Itoa(clients)
		all := append(slices.Clone(args), "-n", "-c", c, "-j", "1", "-T", strconv.Itoa(max(1, int(o.length.Seconds()))))
		out, err := tool(ctx, port, all...)
		if err != nil {
			return 0, err
		}
		return number(out, `tps = ([0-9.]+) \(without`)
	}
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
default_pool_size = 50
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

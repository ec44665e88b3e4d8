package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
)

const sysbenchTables, sysbenchRows = "2", "10000"

func benchMariaDB(ctx context.Context, o options) (err error) {
	s, err := mariadb.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if _, err := exec.LookPath("sysbench"); err != nil {
		return fmt.Errorf("sysbench is missing: install it with apt-get install -y sysbench: %w", err)
	}
	fmt.Printf("MariaDB %s, sysbench, %s tables of %s rows, instrumented for observe\n", s.Version, sysbenchTables, sysbenchRows)
	sysbench := func(ctx context.Context, port int, script string, args ...string) ([]byte, error) {
		args = append([]string{script, "--db-driver=mysql", "--mysql-host=127.0.0.1", "--mysql-port=" + strconv.Itoa(port), "--mysql-user=" + s.User,
			"--mysql-password=" + s.Password, "--mysql-db=sbtest", "--mysql-ssl=off", "--tables=" + sysbenchTables, "--table-size=" + sysbenchRows, "--rand-type=uniform"}, args...)
		out, err := exec.CommandContext(ctx, "sysbench", args...).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("sysbench %s: %w: %s", script, err, out)
		}
		return out, nil
	}
	admin := exec.CommandContext(ctx, "mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", strconv.Itoa(s.Port), "-u", s.User, "-e", "CREATE DATABASE sbtest")
	admin.Env = append(admin.Environ(), "MYSQL_PWD="+s.Password)
	if out, err := admin.CombinedOutput(); err != nil {
		return fmt.Errorf("create the database: %w: %s", err, out)
	}
	if _, err := sysbench(ctx, s.Port, "oltp_common", "prepare"); err != nil {
		if _, err = sysbench(ctx, s.Port, "oltp_read_write", "prepare"); err != nil {
			return err
		}
	}
	url := fmt.Sprintf("mariadb://%s:%s@127.0.0.1:%d/sbtest", s.User, s.Password, s.Port)
	if out, err := exec.CommandContext(ctx, o.wirecheck, "instrument", "add", url, "--no-progress").CombinedOutput(); err != nil {
		return fmt.Errorf("instrument: %w: %s", err, out)
	}
	targets := []target{{"direct", s.Port}}
	var running []*process
	defer func() {
		for _, p := range running {
			err = errors.Join(err, p.stop())
		}
	}()
	start := func(name string, p *process, e error) error {
		if e != nil {
			return e
		}
		running = append(running, p)
		targets = append(targets, target{name, p.port})
		return nil
	}
	p, e := startForwarder(s.Address())
	if err := start("forward", p, e); err != nil {
		return err
	}
	for _, mode := range []string{"pass", "observe"} {
		p, e := startProxy(o, "mariadb", s.Address(), mode)
		if err := start(mode, p, e); err != nil {
			return err
		}
	}
	load := func(script, pattern string, args ...string) func(context.Context, int, int) (float64, error) {
		return func(ctx context.Context, port, clients int) (float64, error) {
			out, err := sysbench(ctx, port, script, append(args, "--threads="+strconv.Itoa(clients), "--time="+strconv.Itoa(max(1, int(o.length.Seconds()))), "run")...)
			if err != nil {
				return 0, err
			}
			return number(out, pattern)
		}
	}
	const transactions = `transactions:\s+[0-9]+\s+\(([0-9.]+) per sec`
	for _, w := range []workload{
		{name: "point select, prepared", run: load("oltp_point_select", transactions)},
		{name: "point select, text", run: load("oltp_point_select", transactions, "--db-ps-mode=disable")},
		{name: "read-write, prepared", run: load("oltp_read_write", transactions), targets: []string{"direct", "pass", "observe"}},
		{name: "read-write, text", run: load("oltp_read_write", transactions, "--db-ps-mode=disable"), targets: []string{"direct", "pass", "observe"}},
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

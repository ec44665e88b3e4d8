package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
)

const sysbenchTables, sysbenchRows = "2", "10000"

// transactions is where sysbench tells the throughput.
const transactions = `transactions:\s+[0-9]+\s+\(([0-9.]+) per sec`

// sysbench makes a load of a script of sysbench.
type sysbench func(script string, args ...string) load

func benchMariaDB(ctx context.Context, o options) error {
	return sysbenchWorkloads(ctx, o, func(load sysbench) []workload {
		return []workload{
			{name: "point select, prepared", run: load("oltp_point_select")},
			{name: "point select, text", run: load("oltp_point_select", "--db-ps-mode=disable")},
			{name: "read-write, prepared", run: load("oltp_read_write"), targets: withoutForwarder},
			{name: "read-write, text", run: load("oltp_read_write", "--db-ps-mode=disable"), targets: withoutForwarder},
		}
	})
}

// benchMariaDBSingle measures the queries of sysbench's read-write mix by themselves: reads as autocommit statements, a
// write with its BEGIN and COMMIT.
func benchMariaDBSingle(ctx context.Context, o options) error {
	all := []string{"point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges", "index_updates", "non_index_updates", "delete_inserts"}
	return sysbenchWorkloads(ctx, o, func(load sysbench) (list []workload) {
		for _, mode := range []struct{ name, arg string }{{"prepared", "--db-ps-mode=auto"}, {"text", "--db-ps-mode=disable"}} {
			for i, one := range all {
				args := []string{mode.arg}
				for _, other := range all {
					n := "0"
					if other == one {
						n = "1"
					}
					args = append(args, "--"+other+"="+n)
				}
				if i < 5 {
					args = append(args, "--skip-trx=on")
				}
				list = append(list, workload{name: one + ", " + mode.name, run: load("oltp_read_write", args...), targets: withoutForwarder})
			}
		}
		return list
	})
}

// sysbenchWorkloads runs workloads against a private server.
func sysbenchWorkloads(ctx context.Context, o options, workloads func(sysbench) []workload) (err error) {
	s, err := mariadb.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("MariaDB %s, sysbench, %s tables of %s rows, instrumented for observe\n", s.Version, sysbenchTables, sysbenchRows)
	load, err := prepareSysbench(ctx, o, s)
	if err != nil {
		return err
	}
	return compare(ctx, o, "mariadb", s, nil, workloads(load))
}

// prepareSysbench fills the tables, gives them the hidden columns, and gives what makes loads.
func prepareSysbench(ctx context.Context, o options, s *engine.Server) (sysbench, error) {
	if _, err := exec.LookPath("sysbench"); err != nil {
		return nil, fmt.Errorf("sysbench is missing: install it with apt-get install -y sysbench: %w", err)
	}
	run := func(ctx context.Context, port int, script string, args ...string) ([]byte, error) {
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
		return nil, fmt.Errorf("create the database: %w: %s", err, out)
	}
	if _, err := run(ctx, s.Port, "oltp_common", "prepare"); err != nil {
		if _, err = run(ctx, s.Port, "oltp_read_write", "prepare"); err != nil {
			return nil, err
		}
	}
	url := fmt.Sprintf("mariadb://%s:%s@127.0.0.1:%d/sbtest", s.User, s.Password, s.Port)
	if out, err := exec.CommandContext(ctx, o.wirecheck, "instrument", "add", url, "--no-progress").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("instrument: %w: %s", err, out)
	}
	return func(script string, args ...string) load {
		return func(ctx context.Context, port, clients int) (f figures, err error) {
			all := append([]string{"--histogram=on", "--threads=" + strconv.Itoa(clients), "--time=" + strconv.Itoa(max(1, int(o.length.Seconds()))), "run"}, args...)
			out, err := run(ctx, port, script, all...)
			if err != nil {
				return f, err
			}
			if f.rate, err = number(out, transactions); err == nil {
				f.n, err = number(out, `transactions:\s+([0-9]+) `)
			}
			f.p50, f.p99 = sysbenchLatency(out)
			return f, err
		}
	}, nil
}

// sysbenchLatency reads the histogram of sysbench: the median and the 99th percentile, in ms.
func sysbenchLatency(out []byte) (p50, p99 float64) {
	var all []latency
	for _, m := range regexp.MustCompile(`(?m)^\s*([0-9.]+) \|.*?([0-9]+)$`).FindAllSubmatch(out, -1) {
		ms, _ := strconv.ParseFloat(string(m[1]), 64) // the pattern lets only numbers through
		n, _ := strconv.Atoi(string(m[2]))
		all = append(all, latency{ms, n})
	}
	return percentiles(all)
}

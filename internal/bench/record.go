package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/postgres"
)

// benchRecord measures what recording a trace costs: a proxy that observes against one that observes and records. Both stand in front of
// the same server, and which of them goes first changes from round to round. Beside the throughput it prints the processor time that a
// transaction took of client, proxy and server together, since on a machine that others use, too, the throughput is theirs as well.
func benchRecord(ctx context.Context, o options) error {
	if err := recordPostgres(ctx, o); err != nil {
		return err
	}
	return recordMariaDB(ctx, o)
}

func recordPostgres(ctx context.Context, o options) (err error) {
	s, err := postgres.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("recording: PostgreSQL %s, pgbench scale 2\n", s.Version)
	load, err := preparePgbench(ctx, o, s)
	if err != nil {
		return err
	}
	return recordPairs(ctx, o, "postgres", s, []workload{
		{name: "select-only, prepared", run: load("-S", "-M", "prepared")},
		{name: "tpcb-like, simple", run: load("-M", "simple")},
		{name: "tpcb-like, prepared", run: load("-M", "prepared")},
	})
}

func recordMariaDB(ctx context.Context, o options) (err error) {
	s, err := mariadb.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("recording: MariaDB %s, sysbench, %s tables of %s rows\n", s.Version, sysbenchTables, sysbenchRows)
	load, err := prepareSysbench(ctx, o, s)
	if err != nil {
		return err
	}
	return recordPairs(ctx, o, "mariadb", s, []workload{
		{name: "read-write, prepared", run: load("oltp_read_write")},
		{name: "read-write, text", run: load("oltp_read_write", "--db-ps-mode=disable")},
	})
}

// recordPairs measures the workloads through both proxies.
func recordPairs(ctx context.Context, o options, scheme string, s *engine.Server, workloads []workload) (err error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "bench.wct")
	var both [2]*process
	for i, args := range [][]string{nil, {"--record", path}} {
		if both[i], err = startProxy(o, scheme, s.Address(), "observe", args...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, both[i].stop()) }()
	}
	for _, w := range workloads {
		for _, clients := range []int{1, 8} {
			if err := recordPair(ctx, o, w, clients, s, both, path); err != nil {
				return err
			}
		}
	}
	fmt.Println()
	return nil
}

func recordPair(ctx context.Context, o options, w workload, clients int, s *engine.Server, both [2]*process, path string) error {
	var rates, spent, all [2][]float64
	size := fileSize(path)
	done := 0.0
	for round := range o.rounds {
		for turn := range both {
			i := (round + turn) % 2
			before, err := processorTimes(both[i].cmd.Process.Pid, s.PID())
			if err != nil {
				return err
			}
			f, err := w.run(ctx, both[i].port, clients)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			after, err := processorTimes(both[i].cmd.Process.Pid, s.PID())
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], f.rate)
			spent[i] = append(spent[i], float64((after.proxy-before.proxy).Microseconds())/f.n)
			all[i] = append(all[i], float64((after.all-before.all).Microseconds())/f.n)
			if i == 1 {
				done += f.n
			}
		}
	}
	fmt.Printf("%s, %d client(s); load of the machine %s\n", w.name, clients, loadAverage())
	fmt.Printf("    throughput      %6.0f and recorded %6.0f /s: %s\n", median(rates[0]), median(rates[1]), spread(quotients(rates[1], rates[0])))
	fmt.Printf("    processor time  %6.0f and recorded %6.0f us a transaction: %s; of the proxy %.0f and %.0f us\n",
		median(all[0]), median(all[1]), spread(quotients(all[0], all[1])), median(spent[0]), median(spent[1]))
	fmt.Printf("    trace           %.0f bytes a transaction\n", float64(fileSize(path)-size)/done)
	return nil
}

// spread is the median of the rounds' ratios, and the least and the greatest.
func spread(ratios []float64) string {
	return fmt.Sprintf("%.2f  [%.2f .. %.2f]", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(data))[0]
}

// spentTimes are processor times.
type spentTimes struct{ proxy, all time.Duration }

// processorTimes gives what the proxy has used, and with it the server and this program's own children that have ended: the clients.
func processorTimes(proxy, server int) (t spentTimes, err error) {
	if t.proxy, err = processorTime(proxy); err != nil {
		return t, err
	}
	t.all, err = processorTime(server)
	var clients syscall.Rusage
	err = errors.Join(err, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &clients))
	t.all += t.proxy + time.Duration(clients.Utime.Nano()+clients.Stime.Nano())
	return t, err
}

// processorTime is what a process and its children that have ended have used, in the kernel's ticks of 10 ms (proc(5), stat).
func processorTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ") // behind the name, which may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(fields))
	}
	var ticks int64
	for _, f := range fields[11:15] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read /proc/%d/stat: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

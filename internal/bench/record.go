package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/postgres"
)

// benchRecord measures what recording a capture costs: a proxy that observes against one that observes and records. Both stand in front of
// the same server, and which of them goes first changes from round to round.
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
	tool := pgTool(s)
	if _, err := tool(ctx, s.Port, "-i", "-s", "2", "-q"); err != nil {
		return err
	}
	load := func(args ...string) func(context.Context, int, int) (float64, error) { return pgLoad(o, tool, args...) }
	return recordPairs(ctx, o, "postgres", s.Address(), []workload{
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
	return recordPairs(ctx, o, "mariadb", s.Address(), []workload{
		{name: "read-write, prepared", run: load("oltp_read_write")},
		{name: "read-write, text", run: load("oltp_read_write", "--db-ps-mode=disable")},
	})
}

// recordPairs measures the workloads through both proxies.
func recordPairs(ctx context.Context, o options, scheme, upstream string, workloads []workload) (err error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	capture := filepath.Join(dir, "bench.wct")
	var both [2]*process
	for i, args := range [][]string{nil, {"--record", capture}} {
		if both[i], err = startProxy(o, scheme, upstream, "observe", args...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, both[i].stop()) }()
	}
	for _, w := range workloads {
		for _, clients := range []int{1, 8} {
			if err := recordPair(ctx, o, w, clients, both, capture); err != nil {
				return err
			}
		}
	}
	fmt.Println()
	return nil
}

func recordPair(ctx context.Context, o options, w workload, clients int, both [2]*process, capture string) error {
	var rates, spent [2][]float64
	size := fileSize(capture)
	done := 0.0
	for round := range o.rounds {
		for turn := range both {
			i := (round + turn) % 2
			before, err := both[i].cpu()
			if err != nil {
				return err
			}
			began := time.Now()
			rate, err := w.run(ctx, both[i].port, clients)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			after, err := both[i].cpu()
			if err != nil {
				return err
			}
			n := rate * time.Since(began).Seconds()
			rates[i] = append(rates[i], rate)
			spent[i] = append(spent[i], float64((after-before).Microseconds())/n)
			if i == 1 {
				done += n
			}
		}
	}
	var ratios []float64
	for i := range rates[0] {
		ratios = append(ratios, rates[1][i]/rates[0][i])
	}
	lo, hi := ratios[0], ratios[0]
	for _, r := range ratios {
		lo, hi = min(lo, r), max(hi, r)
	}
	fmt.Printf("%-24s %d client(s): observe %.0f/s, observe and record %.0f/s: ratio %.2f  [%.2f .. %.2f]; the proxy's processor time %.0f and %.0f us a transaction; %.0f bytes of capture each; load %s\n",
		w.name, clients, median(rates[0]), median(rates[1]), median(ratios), lo, hi, median(spent[0]), median(spent[1]), float64(fileSize(capture)-size)/done, loadAverage())
	return nil
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

// cpu is the processor time that the process has used, in the kernel's ticks of 10 ms (proc(5), stat).
func (p *process) cpu() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ") // behind the name, which may hold anything
	var user, system int64
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", p.cmd.Process.Pid, len(fields))
	}
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// pgTool gives what runs pgbench against a port.
func pgTool(s *engine.Server) func(ctx context.Context, port int, args ...string) ([]byte, error) {
	env := append(os.Environ(), "PGUSER="+s.User, "PGPASSWORD="+s.Password, "PGDATABASE=postgres", "PGHOST=127.0.0.1", "PGSSLMODE=disable")
	return func(ctx context.Context, port int, args ...string) ([]byte, error) {
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
}

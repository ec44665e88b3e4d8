package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mariadb"
	"wirecheck/backends/postgres"
)

// pair is two proxies in mode observe with other flags. Both stand in front of the same server, and which of them goes first changes from round to
// round. Beside the throughput, the processor time is printed that a transaction took of client, proxy and server together, since on a machine
// that others use, too, the throughput is theirs as well.
type pair struct {
	without, with string
	flags         [2][]string
	trace, page   string // what the second one writes or serves; empty: nothing
	script        string // one more load of pgbench; empty: none
}

// benchRecord measures what recording a trace costs.
func benchRecord(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "bench.wct")
	return benchPair(ctx, o, pair{without: "not recorded", with: "recorded", trace: path, flags: [2][]string{nil, {"--record", path}}})
}

// benchPage measures what the live page and the metrics cost, which are fetched each second.
func benchPage(ctx context.Context, o options) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	return benchPair(ctx, o, pair{without: "without --http", with: "with it", page: "http://" + at, flags: [2][]string{nil, {"--http", at}}})
}

// benchValues measures what the values in findings cost.
func benchValues(ctx context.Context, o options) error {
	return benchPair(ctx, o, pair{without: "--values off", with: "with values", flags: [2][]string{{"--values", "off"}, nil}})
}

// searches is a load of pgbench that searches ranges and counts, and changes what others search.
const searches = `\set a random(1, 199900)
\set b random(1, 20)
\set c :a + 20
\set d :a + :b
BEGIN;
SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN :a AND :c AND abalance > 0;
SELECT aid, abalance FROM pgbench_accounts WHERE aid >= :a AND aid < :c ORDER BY aid;
SELECT count(*) FROM pgbench_tellers WHERE bid = 1 AND tbalance < 0;
UPDATE pgbench_accounts SET abalance = abalance + :b WHERE aid = :d;
UPDATE pgbench_tellers SET tbalance = tbalance - :b WHERE tid = :b;
COMMIT;
`

// benchPredicates measures what it costs to judge what statements asked.
func benchPredicates(ctx context.Context, o options) error {
	return benchPair(ctx, o, pair{without: "--predicates off", with: "with predicates", script: searches, flags: [2][]string{{"--predicates", "off"}, nil}})
}

func benchPair(ctx context.Context, o options, p pair) error {
	if err := pairPostgres(ctx, o, p); err != nil {
		return err
	}
	return pairMariaDB(ctx, o, p)
}

func pairPostgres(ctx context.Context, o options, p pair) (err error) {
	s, err := postgres.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("%s and %s: PostgreSQL %s, pgbench scale 2\n", p.without, p.with, s.Version)
	load, err := preparePgbench(ctx, o, s)
	if err != nil {
		return err
	}
	workloads := []workload{
		{name: "select-only, prepared", run: load("-S", "-M", "prepared")},
		{name: "tpcb-like, simple", run: load("-M", "simple")},
		{name: "tpcb-like, prepared", run: load("-M", "prepared")},
	}
	if p.script != "" {
		dir, err := os.MkdirTemp("", "wirecheck-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "script.sql")
		if err := os.WriteFile(path, []byte(p.script), 0o600); err != nil {
			return err
		}
		for _, mode := range []string{"simple", "prepared"} {
			workloads = append(workloads, workload{name: "ranges and counts, " + mode, run: load("-f", path, "-M", mode)})
		}
	}
	return p.run(ctx, o, "postgres", s, workloads)
}

func pairMariaDB(ctx context.Context, o options, p pair) (err error) {
	s, err := mariadb.Start(ctx, engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fmt.Printf("%s and %s: MariaDB %s, sysbench, %s tables of %s rows\n", p.without, p.with, s.Version, sysbenchTables, sysbenchRows)
	load, err := prepareSysbench(ctx, o, s)
	if err != nil {
		return err
	}
	return p.run(ctx, o, "mariadb", s, []workload{
		{name: "read-write, prepared", run: load("oltp_read_write")},
		{name: "read-write, text", run: load("oltp_read_write", "--db-ps-mode=disable")},
	})
}

// run measures the workloads through both proxies.
func (p pair) run(ctx context.Context, o options, scheme string, s *engine.Server, workloads []workload) (err error) {
	var both [2]*process
	for i, args := range p.flags {
		if both[i], err = startProxy(o, scheme, s.Address(), "observe", args...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, both[i].stop()) }()
	}
	if p.page != "" {
		ctx, stop := context.WithCancel(ctx)
		var look sync.WaitGroup
		look.Go(func() { p.look(ctx) })
		defer look.Wait()
		defer stop()
	}
	for _, w := range workloads {
		if wanted, err := regexp.MatchString(o.match, w.name); err != nil {
			return err
		} else if !wanted {
			continue
		}
		for _, clients := range []int{1, 8} {
			if err := p.measure(ctx, o, w, clients, s, both); err != nil {
				return err
			}
		}
	}
	fmt.Println()
	return nil
}

// look fetches the metrics and the page each second.
func (p pair) look(ctx context.Context) {
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			for _, path := range []string{"/metrics", "/"} {
				_ = saveProfile(ctx, p.page+path, os.DevNull)
			}
		}
	}
}

// measure measures one workload.
func (p pair) measure(ctx context.Context, o options, w workload, clients int, s *engine.Server, both [2]*process) error {
	var rates, spent, all [2][]float64
	size := fileSize(p.trace)
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
	fmt.Printf("    throughput      %6.0f, %s %6.0f /s: %s\n", median(rates[0]), p.with, median(rates[1]), spread(quotients(rates[1], rates[0])))
	fmt.Printf("    processor time  %6.0f, %s %6.0f us a transaction: %s; of the proxy %.0f and %.0f us: %s\n",
		median(all[0]), p.with, median(all[1]), spread(quotients(all[0], all[1])), median(spent[0]), median(spent[1]), spread(quotients(spent[0], spent[1])))
	if p.trace != "" {
		fmt.Printf("    trace           %.0f bytes a transaction\n", float64(fileSize(p.trace)-size)/done)
	}
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

// processorTimes gives what the proxy has used (0: there is none), and with it the server and this program's own children that have ended: the clients.
// Of the server's children, those that run count, too: which of them have ended by now is chance.
func processorTimes(proxy, server int) (t spentTimes, err error) {
	if proxy != 0 {
		if t.proxy, err = processorTime(proxy); err != nil {
			return t, err
		}
	}
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", server, server))
	for _, pid := range strings.Fields(string(list)) {
		if n, e := strconv.Atoi(pid); e == nil {
			one, _ := processorTime(n) // it may have ended; then it counts as the server's
			t.all += one
		}
	}
	own, e := processorTime(server)
	clients, e2 := processorTimeOfEnded()
	t.all += own + t.proxy + clients
	return t, errors.Join(err, e, e2)
}

// processorTimeOfEnded is what this program's children have used that have ended, with theirs.
func processorTimeOfEnded() (time.Duration, error) {
	var r syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err
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

// Command bench measures what wirecheck costs, on private servers that it starts and ends: throughput through the
// proxy against a direct connection, a bare TCP forwarder and pgbouncer, the proxy's memory while a gibibyte passes,
// and how soon a blocked statement is known to be blocked.
//
// The machine may be shared and noisy, so nothing is compared across time: every round runs each target once, one
// after the other, and what is printed are ratios of medians, with the smallest and largest ratio of a single round.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"wirecheck/internal/natsserver"
)

type options struct {
	wirecheck string
	length    time.Duration
	rounds    int
	only      string
	match     string // regular expression: the workloads to run
	targets   string // comma-separated; empty: all
	profiles  string // folder for profiles of the proxy: processor time of workloads, heap under attack; empty: none
	// transactions are how many the part replay records
	transactions int
	base         string // another build of the program, whose mode pass and start are measured too
}

func main() {
	natsserver.Main()
	if len(os.Args) == 4 && os.Args[1] == "forward" {
		exit(forward(os.Args[2], os.Args[3]))
	}
	var o options
	flag.StringVar(&o.wirecheck, "wirecheck", "bin/wirecheck", "the program to measure")
	flag.DurationVar(&o.length, "length", 4*time.Second, "length of one run")
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each target")
	flag.StringVar(&o.only, "only", "", "comma-separated parts to run: postgres, mariadb, mariadb-single (each query of the mix by itself; not among the default), record, publish, start, http, values, predicates, memory, idle, waits, hunters, hostile (for -length; not among the default), replay (minutes; not among the default)")
	flag.IntVar(&o.transactions, "transactions", 100_000, "with -only replay: how many transactions to record and replay")
	flag.StringVar(&o.match, "match", "", "run only the workloads whose name with its clients, as printed, matches this regular expression")
	flag.StringVar(&o.targets, "targets", "", "comma-separated ways to the server to measure, as printed; empty: all")
	flag.StringVar(&o.profiles, "profiles", "", "a folder for profiles of the proxy: processor time while it observes a workload, the heap while hostile clients attack")
	flag.StringVar(&o.base, "base", "", "another build of the program: its mode pass and its start are measured beside, as base")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, o options) error {
	fmt.Printf("machine: %d cores, %s, %s, kernel %s\n", runtime.NumCPU(), cpuModel(), runtime.Version(), kernel())
	fmt.Printf("each figure: median of %d alternated runs of %s; in brackets the smallest and largest ratio of one round\n\n", o.rounds, o.length)
	wanted := func(part string) bool {
		return o.only == "" && part != "mariadb-single" && part != "hostile" && part != "replay" || strings.Contains(","+o.only+",", ","+part+",")
	}
	for _, part := range []struct {
		name string
		run  func(context.Context, options) error
	}{{"postgres", benchPostgres}, {"mariadb", benchMariaDB}, {"mariadb-single", benchMariaDBSingle}, {"record", benchRecord}, {"publish", benchPublish}, {"start", benchStart}, {"http", benchPage}, {"values", benchValues}, {"predicates", benchPredicates}, {"memory", benchMemory}, {"idle", benchIdle}, {"waits", benchWaits}, {"hunters", benchHunters}, {"hostile", benchHostile}, {"replay", benchReplay}} {
		if !wanted(part.name) {
			continue
		}
		if err := part.run(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for _, line := range strings.Split(string(data), "\n") {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), ":"))
		}
	}
	return "unknown processor"
}

func kernel() string {
	out, err := exec.Command("uname", "-r").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

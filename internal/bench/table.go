package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"wirecheck/backends/engine"
)

// target is one way to the server.
type target struct {
	name   string
	port   int
	pid    int // of what stands in front of the server; 0: nothing does
	server int // its process
	page   int // where it gives profiles; 0: nowhere
}

// load runs clients against a port.
type load func(ctx context.Context, port, clients int) (figures, error)

// figures are what a run of a load gave.
type figures struct {
	rate     float64 // transactions a second
	n        float64 // transactions
	p50, p99 float64 // of their latency, in ms
	cpu      float64 // us of processor time a transaction of what stands in front of the server
	all      float64 // the same of client, server and what stands between them
}

// workload is a load with a name.
type workload struct {
	name    string
	run     load
	targets []string // of those that there are; nil: all
}

// ratios are those that are printed, of the targets that there are.
var ratios = [][2]string{
	{"forward", "direct"}, {"pgbouncer", "direct"}, {"pass", "direct"}, {"pass", "forward"}, {"pass", "pgbouncer"}, {"pass", "base"}, {"observe", "pass"}, {"observe", "base-observe"}, {"sample", "pass"},
}

// withoutForwarder are the targets of workloads whose answers are not only small.
var withoutForwarder = []string{"direct", "pgbouncer", "pass", "observe", "base-observe", "sample"}

// compare runs workloads against a server, and against what stands in front of it: a forwarder, another proxy (nil: none) and wirecheck.
func compare(ctx context.Context, o options, scheme string, s *engine.Server, other func() (*process, error), workloads []workload) (err error) {
	targets := []target{{name: "direct", port: s.Port, server: s.PID()}}
	page := 0
	var profiled []string
	if o.profiles != "" {
		if page, err = freePort(); err != nil {
			return err
		}
		profiled = []string{"--http", fmt.Sprintf("127.0.0.1:%d", page)}
	}
	proxy := func(program, mode string, args ...string) func() (*process, error) {
		if program == "" {
			return nil
		}
		with := o
		with.wirecheck = program
		return func() (*process, error) { return startProxy(with, scheme, s.Address(), mode, args...) }
	}
	for _, front := range []struct {
		name  string
		start func() (*process, error)
	}{
		{"forward", func() (*process, error) { return startForwarder(s.Address()) }},
		{"pgbouncer", other},
		{"base", proxy(o.base, "pass")},
		{"pass", proxy(o.wirecheck, "pass")},
		{"base-observe", proxy(o.base, "observe")},
		{"observe", proxy(o.wirecheck, "observe", profiled...)},
		{"sample", proxy(o.wirecheck, "observe", "--sample", "0.05")},
	} {
		if front.start == nil {
			continue
		}
		p, e := front.start()
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		t := target{name: front.name, port: p.port, pid: p.cmd.Process.Pid, server: s.PID()}
		if t.name == "observe" {
			t.page = page
		}
		targets = append(targets, t)
	}
	for _, w := range workloads {
		for _, clients := range []int{1, 8, 64} {
			if err := measure(ctx, o, w, clients, targets); err != nil {
				return err
			}
		}
	}
	fmt.Println()
	return nil
}

// measure runs a workload's rounds and prints its line of ratios.
func measure(ctx context.Context, o options, w workload, clients int, targets []target) error {
	name := fmt.Sprintf("%-24s %d client(s)", w.name, clients)
	if wanted, err := regexp.MatchString(o.match, name); err != nil {
		return fmt.Errorf("-match: %w", err)
	} else if !wanted {
		return nil
	}
	results := map[string][]figures{}
	var used []target
	for _, t := range targets {
		if (w.targets == nil || slices.Contains(w.targets, t.name)) && (o.targets == "" || slices.Contains(strings.Split(o.targets, ","), t.name)) {
			used = append(used, t)
		}
	}
	for range o.rounds {
		for _, t := range used {
			v, err := t.measure(ctx, o, w, clients)
			if err != nil {
				return fmt.Errorf("%s against %s: %w", w.name, t.name, err)
			}
			results[t.name] = append(results[t.name], v)
		}
	}
	column := func(name string, figure func(figures) float64) (list []float64) {
		for _, v := range results[name] {
			list = append(list, figure(v))
		}
		return list
	}
	rate := func(name string) []float64 { return column(name, func(f figures) float64 { return f.rate }) }
	var parts []string
	for _, t := range used {
		parts = append(parts, fmt.Sprintf("%s %.0f/s", t.name, median(rate(t.name))))
	}
	fmt.Printf("%s: %s\n", name, strings.Join(parts, ", "))
	for _, r := range ratios {
		a, b := rate(r[0]), rate(r[1])
		if a == nil || b == nil {
			continue
		}
		rounds := quotients(a, b)
		fmt.Printf("    %-8s / %-10s %.2f  [%.2f .. %.2f]\n", r[0], r[1], median(a)/median(b), slices.Min(rounds), slices.Max(rounds))
	}
	for _, t := range used {
		fmt.Printf("    %-12s p50 %.2f ms, p99 %.2f ms; processor time %.1f us a transaction, %.1f with client and server\n", t.name,
			median(column(t.name, func(f figures) float64 { return f.p50 })), median(column(t.name, func(f figures) float64 { return f.p99 })),
			median(column(t.name, func(f figures) float64 { return f.cpu })), median(column(t.name, func(f figures) float64 { return f.all })))
	}
	return nil
}

// measure runs a load against a target, and takes profiles of its processor time and its allocations meanwhile if it gives one.
func (t target) measure(ctx context.Context, o options, w workload, clients int) (f figures, err error) {
	if t.page != 0 {
		var g errgroup.Group
		for _, kind := range []string{"profile", "allocs"} {
			url := fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/%s?seconds=%d", t.page, kind, max(1, int(o.length.Seconds())))
			g.Go(func() error {
				return saveProfile(ctx, url, filepath.Join(o.profiles, fmt.Sprintf("%s, %d.%s", w.name, clients, kind)))
			})
		}
		defer func() { err = errors.Join(err, g.Wait()) }()
	}
	before, err := processorTimes(t.pid, t.server)
	if err == nil {
		f, err = w.run(ctx, t.port, clients)
	}
	if err != nil {
		return f, err
	}
	after, err := processorTimes(t.pid, t.server)
	f.cpu = float64((after.proxy - before.proxy).Microseconds()) / f.n
	f.all = float64((after.all - before.all).Microseconds()) / f.n
	return f, err
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// quotients divides the rounds' figures.
func quotients(a, b []float64) []float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = a[i] / b[i]
	}
	return list
}

// latency is how often a transaction took so many ms.
type latency struct {
	ms float64
	n  int
}

// percentiles gives the median and the 99th percentile of latencies.
func percentiles(all []latency) (p50, p99 float64) {
	slices.SortFunc(all, func(a, b latency) int { return cmp.Compare(a.ms, b.ms) })
	total, seen := 0, 0
	for _, l := range all {
		total += l.n
	}
	for _, l := range all {
		if 2*seen < total {
			p50 = l.ms
		}
		if 100*seen < 99*total {
			p99 = l.ms
		}
		seen += l.n
	}
	return p50, p99
}

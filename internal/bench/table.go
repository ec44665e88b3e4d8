package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/backends/engine"
)

// target is one way to the server.
type target struct {
	name string
	port int
}

// load runs clients against a port. It gives the throughput, and how many transactions there were.
type load func(ctx context.Context, port, clients int) (rate, n float64, err error)

// workload is a load with a name.
type workload struct {
	name    string
	run     load
	targets []string // of those that there are; nil: all
}

// ratios are those that are printed, of the targets that there are.
var ratios = [][2]string{
	{"forward", "direct"}, {"pgbouncer", "direct"}, {"pass", "direct"}, {"pass", "forward"}, {"pass", "pgbouncer"}, {"pass", "base"}, {"observe", "pass"},
}

// withoutForwarder are the targets of workloads whose answers are not only small.
var withoutForwarder = []string{"direct", "pgbouncer", "pass", "observe"}

// compare runs workloads against a server, and against what stands in front of it: a forwarder, another proxy (nil: none) and wirecheck.
func compare(ctx context.Context, o options, scheme string, s *engine.Server, other func() (*process, error), workloads []workload) (err error) {
	targets := []target{{"direct", s.Port}}
	var base func() (*process, error)
	if o.base != "" {
		other := o
		other.wirecheck = o.base
		base = func() (*process, error) { return startProxy(other, scheme, s.Address(), "pass") }
	}
	for _, front := range []struct {
		name  string
		start func() (*process, error)
	}{
		{"forward", func() (*process, error) { return startForwarder(s.Address()) }},
		{"pgbouncer", other},
		{"base", base},
		{"pass", func() (*process, error) { return startProxy(o, scheme, s.Address(), "pass") }},
		{"observe", func() (*process, error) { return startProxy(o, scheme, s.Address(), "observe") }},
	} {
		if front.start == nil {
			continue
		}
		p, e := front.start()
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, p.stop()) }()
		targets = append(targets, target{front.name, p.port})
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
	results := map[string][]float64{}
	var used []target
	for _, t := range targets {
		if (w.targets == nil || slices.Contains(w.targets, t.name)) && (o.targets == "" || slices.Contains(strings.Split(o.targets, ","), t.name)) {
			used = append(used, t)
		}
	}
	for range o.rounds {
		for _, t := range used {
			v, _, err := w.run(ctx, t.port, clients)
			if err != nil {
				return fmt.Errorf("%s against %s: %w", w.name, t.name, err)
			}
			results[t.name] = append(results[t.name], v)
		}
	}
	var parts []string
	for _, t := range used {
		parts = append(parts, fmt.Sprintf("%s %.0f/s", t.name, median(results[t.name])))
	}
	fmt.Printf("%s: %s\n", name, strings.Join(parts, ", "))
	for _, r := range ratios {
		a, b := results[r[0]], results[r[1]]
		if a == nil || b == nil {
			continue
		}
		rounds := quotients(a, b)
		fmt.Printf("    %-8s / %-10s %.2f  [%.2f .. %.2f]\n", r[0], r[1], median(a)/median(b), slices.Min(rounds), slices.Max(rounds))
	}
	return nil
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

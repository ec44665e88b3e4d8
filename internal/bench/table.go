package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// target is one way to the server.
type target struct {
	name string
	port int
}

// workload runs a load against a port and gives its throughput.
type workload struct {
	name    string
	run     func(ctx context.Context, port, clients int) (float64, error)
	targets []string // of those that there are; nil: all
}

// measure runs a workload's rounds and prints its line of ratios.
func measure(ctx context.Context, o options, w workload, clients int, targets []target, ratios [][2]string) error {
	name := fmt.Sprintf("%-24s %d client(s)", w.name, clients)
	if wanted, err := regexp.MatchString(o.match, name); err != nil {
		return fmt.Errorf("-match: %w", err)
	} else if !wanted {
		return nil
	}
	results := map[string][]float64{}
	var used []target
	for _, t := range targets {
		if w.targets == nil || slices.Contains(w.targets, t.name) {
			used = append(used, t)
		}
	}
	for range o.rounds {
		for _, t := range used {
			v, err := w.run(ctx, t.port, clients)
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
		lo, hi := a[0]/b[0], a[0]/b[0]
		for i := range a {
			lo, hi = min(lo, a[i]/b[i]), max(hi, a[i]/b[i])
		}
		fmt.Printf("    %-8s / %-10s %.2f  [%.2f .. %.2f]\n", r[0], r[1], median(a)/median(b), lo, hi)
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

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// starts is how often each program is started.
const starts = 40

// benchStart measures how long it takes until the proxy listens, from the start of its process, and what processor time it has used then. The programs
// take turns.
func benchStart(ctx context.Context, o options) error {
	programs := []string{o.wirecheck}
	if o.base != "" {
		programs = append(programs, o.base)
	}
	times, spent := make([][]float64, len(programs)), make([][]float64, len(programs))
	for round := range starts {
		for turn := range programs {
			i := (round + turn) % len(programs)
			with := o
			with.wirecheck = programs[i]
			began := time.Now()
			p, err := startProxy(with, "postgres", "127.0.0.1:1", "observe") // it connects for a client only
			if err != nil {
				return err
			}
			times[i] = append(times[i], float64(time.Since(began).Microseconds())/1000)
			if err := p.stop(); err != nil {
				return err
			}
			// The end of a process without clients costs next to nothing.
			spent[i] = append(spent[i], float64((p.cmd.ProcessState.UserTime()+p.cmd.ProcessState.SystemTime()).Microseconds())/1000)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	for i, program := range programs {
		fmt.Printf("start of %s: listens after %.1f ms [%.1f .. %.1f], median of %d; processor time %.1f ms [%.1f .. %.1f]\n", program,
			median(times[i]), slices.Min(times[i]), slices.Max(times[i]), starts, median(spent[i]), slices.Min(spent[i]), slices.Max(spent[i]))
	}
	if len(programs) == 2 {
		fmt.Printf("    ratio to %s: %s; processor time %s\n", o.base, spread(quotients(times[0], times[1])), spread(quotients(spent[0], spent[1])))
	}
	return nil
}

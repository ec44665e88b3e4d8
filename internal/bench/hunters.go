package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// mostHunters is how many hunters share a hunt at most.
const mostHunters = 3

// benchHunters measures the cases per second of one, two and three hunters that share a hunt, each with a server of its own, and how much of the
// processors they and their servers use: more hunters than that allows cannot be faster. The time has the start and the end of the servers in it.
func benchHunters(ctx context.Context, o options) error {
	for _, engine := range []string{"postgres", "mariadb"} {
		rates, used := make([][]float64, mostHunters), make([][]float64, mostHunters)
		for range o.rounds {
			for n := range rates {
				rate, cores, err := hunters(ctx, o, engine, n+1)
				if err != nil {
					return err
				}
				rates[n], used[n] = append(rates[n], rate), append(used[n], cores)
			}
		}
		for n, list := range rates {
			var ratios []float64
			for i, rate := range list {
				ratios = append(ratios, rate/rates[0][i])
			}
			fmt.Printf("%s, %d hunter(s): %.1f cases/s; as often as one: %s; %.1f of %d cores; load of the machine %s\n",
				engine, n+1, median(list), spread(ratios), median(used[n]), runtime.NumCPU(), loadAverage())
		}
	}
	return nil
}

// hunters has n hunters hunt together for four times the length of a run, and gives their cases per second, and the processor time in a second.
func hunters(ctx context.Context, o options, engine string, n int) (rate, cores float64, err error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	before, err := processorTimeOfEnded()
	if err != nil {
		return 0, 0, err
	}
	var list []*exec.Cmd
	for i := range n {
		hunt := exec.CommandContext(ctx, o.wirecheck, "hunt", "--engine", engine, "--oracle", "wss,txcheck", "--steer=false", "--seed", "7", "--log-level", "error",
			"--format", "json", "--duration", (4 * o.length).String(), "--join", "embedded:"+filepath.Join(dir, "fleet"), "--out", filepath.Join(dir, fmt.Sprint(i)))
		if err := hunt.Start(); err != nil {
			return 0, 0, err
		}
		list = append(list, hunt)
	}
	for _, hunt := range list {
		if err := hunt.Wait(); hunt.ProcessState == nil || hunt.ProcessState.ExitCode() > 1 { // 1: it found something
			return 0, 0, fmt.Errorf("hunt: %w", err)
		}
	}
	passed := time.Since(began)
	after, err := processorTimeOfEnded()
	if err != nil {
		return 0, 0, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "0", "state.json"))
	var state struct{ Cases int }
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	return float64(state.Cases) / passed.Seconds(), (after - before).Seconds() / passed.Seconds(), err
}

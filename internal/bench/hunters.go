package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// mostHunters is how many hunters share a hunt at most.
const mostHunters = 3

// benchHunters measures the cases per second of one, two and three hunters that share a hunt, each with a server of its own. The time has
// the start and the end of the servers in it.
func benchHunters(ctx context.Context, o options) error {
	for _, engine := range []string{"postgres", "mariadb"} {
		rates := make([][]float64, mostHunters)
		for range o.rounds {
			for n := range rates {
				rate, err := hunters(ctx, o, engine, n+1)
				if err != nil {
					return err
				}
				rates[n] = append(rates[n], rate)
			}
		}
		for n, list := range rates {
			var ratios []float64
			for i, rate := range list {
				ratios = append(ratios, rate/rates[0][i])
			}
			slices.Sort(list)
			slices.Sort(ratios)
			fmt.Printf("%s, %d hunter(s): %.1f cases/s; as often as one: %.2f  [%.2f .. %.2f]\n", engine, n+1, list[len(list)/2], ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
		}
	}
	return nil
}

// hunters has n hunters hunt together for four times the length of a run, and gives their cases per second.
func hunters(ctx context.Context, o options, engine string, n int) (float64, error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	var list []*exec.Cmd
	for i := range n {
		hunt := exec.CommandContext(ctx, o.wirecheck, "hunt", "--engine", engine, "--oracle", "wss,txcheck", "--steer=false", "--seed", "7", "--log-level", "error",
			"--format", "json", "--duration", (4 * o.length).String(), "--join", "embedded:"+filepath.Join(dir, "fleet"), "--out", filepath.Join(dir, fmt.Sprint(i)))
		if err := hunt.Start(); err != nil {
			return 0, err
		}
		list = append(list, hunt)
	}
	for _, hunt := range list {
		if err := hunt.Wait(); hunt.ProcessState == nil || hunt.ProcessState.ExitCode() > 1 { // 1: it found something
			return 0, fmt.Errorf("hunt: %w", err)
		}
	}
	passed := time.Since(began)
	text, err := os.ReadFile(filepath.Join(dir, "0", "state.json"))
	var state struct{ Cases int }
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	return float64(state.Cases) / passed.Seconds(), err
}

// Command oracles measures how many generated cases a second wirecheck hunt executes and each oracle decides: two transactions of
// up to five statements, twenty cases on each generated database, everything included; and how many queries a second the oracles of
// single queries ask in two ways, half of their cases being lists of two hundred queries. It runs the program as people do.
//
//	go run ./internal/bench/oracles [-wirecheck bin/wirecheck] [-cases N] [-rounds N] [-engines postgres,mariadb] [-oracles wss,radar]
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// targets are the cases a second to reach, on two cores.
var targets = map[string]int{"wss": 60, "troc": 25, "txcheck": 25}

// queryTargets are the queries a second to reach.
var queryTargets = map[string]int{"radar": 300}

func main() {
	program := flag.String("wirecheck", "bin/wirecheck", "the program")
	cases := flag.Int("cases", 300, "cases in each round")
	rounds := flag.Int("rounds", 3, "rounds, the oracles in turn; the median counts")
	engines := flag.String("engines", "postgres,mariadb", "products")
	oracles := flag.String("oracles", "crash,wss,troc,txcheck,radar,tlp,norec,dqe", "oracles; crash is the cost of the cases alone")
	flag.Parse()
	if err := run(*program, *cases, *rounds, strings.Split(*engines, ","), strings.Split(*oracles, ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// result is the part of hunt's JSON that is looked at.
type result struct {
	Elapsed  int64 `json:"elapsed_ns"`
	Cases    int   `json:"cases"`
	Unknown  int   `json:"unknown"`
	Findings int   `json:"findings"`
	// Scores are by level and oracle.
	Scores map[string]map[string]struct {
		Compared int `json:"compared"`
	} `json:"scores"`
}

// compared is how many queries an oracle asked in two ways.
func (r *result) compared(oracle string) (n int) {
	for _, level := range r.Scores {
		n += level[oracle].Compared
	}
	return n
}

func run(program string, cases, rounds int, engines, oracles []string) error {
	fmt.Printf("two transactions of up to five statements, %d rounds of %d cases, seeds 1 to %d\n", rounds, cases, rounds)
	for _, engine := range engines {
		rates, queries, unknown, findings := map[string][]float64{}, map[string][]float64{}, map[string]int{}, map[string]int{}
		for round := range rounds {
			for _, name := range oracles {
				r, err := hunt(program, engine, name, cases, round+1)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", engine, name, err)
				}
				rates[name] = append(rates[name], float64(r.Cases)/(float64(r.Elapsed)/1e9))
				if n := r.compared(name); n > 0 {
					queries[name] = append(queries[name], float64(n)/(float64(r.Elapsed)/1e9))
				}
				unknown[name], findings[name] = unknown[name]+r.Unknown, findings[name]+r.Findings
			}
		}
		for _, name := range oracles {
			list := rates[name]
			slices.Sort(list)
			target := ""
			if n := targets[name]; n > 0 {
				target = fmt.Sprintf("  to reach: %d", n)
			}
			total := float64(cases * rounds)
			fmt.Printf("%-10s %-8s %5.1f cases/s [%.1f .. %.1f]  decided: %.0f%%  findings: %d%s\n", engine, name, list[len(list)/2], list[0], list[len(list)-1],
				100-100*float64(unknown[name])/total, findings[name], target)
			if list := queries[name]; len(list) > 0 {
				slices.Sort(list)
				target := ""
				if n := queryTargets[name]; n > 0 {
					target = fmt.Sprintf("  to reach: %d", n)
				}
				fmt.Printf("%-10s %-8s %5.0f queries/s [%.0f .. %.0f]%s\n", engine, name, list[len(list)/2], list[0], list[len(list)-1], target)
			}
		}
	}
	return nil
}

// hunt runs the program once.
func hunt(program, engine, oracle string, cases, seed int) (r result, err error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cmd := exec.Command(program, "hunt", "--engine", engine, "--oracle", oracle, "--cases", strconv.Itoa(cases), "--seed", strconv.Itoa(seed), "--transactions", "2",
		"--tries", "1", "--out", filepath.Join(dir, "found"), "--format", "json", "--log-level", "error")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: something was found
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

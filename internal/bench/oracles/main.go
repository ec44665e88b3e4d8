// Command oracles measures how many generated cases a second wirecheck hunt executes and each oracle decides: two transactions of
// up to five statements, twenty cases on each generated database, everything included; what share that is of the cases alone; and how many queries a second the oracles of
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

// Goals, on two cores: shares of what the cases alone run at in the same round (plain), and cases or queries a second by product.
var (
	shares  = map[string]float64{"wss": 0.6, "troc": 0.45, "txcheck": 0.35}
	queries = map[string]map[string]int{"radar": {"postgres": 2000, "mariadb": 2000, "sqlite": 4800}}
	rates   = map[string]map[string]int{standard: {"postgres": 10, "tidb": 10}}
)

const (
	plain    = "crash"   // costs what its cases cost
	standard = "default" // hunt without --oracle
)

func main() {
	program := flag.String("wirecheck", "bin/wirecheck", "the program")
	cases := flag.Int("cases", 300, "cases in each round")
	rounds := flag.Int("rounds", 3, "rounds, the oracles in turn; the median counts")
	engines := flag.String("engines", "postgres,mariadb", "products")
	oracles := flag.String("oracles", "crash,wss,troc,txcheck,radar,tlp,norec,dqe,default", "oracles; crash is the cost of the cases alone, default a hunt that names none")
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

// series are the figures of an oracle, one a round.
type series struct {
	cases, share, queries []float64
	unknown, findings     int
}

// line is the median of figures, and their least and greatest.
func line(format string, list []float64) string {
	slices.Sort(list)
	return fmt.Sprintf(strings.ReplaceAll("% [% .. %]", "%", format), list[len(list)/2], list[0], list[len(list)-1])
}

func run(program string, cases, rounds int, engines, oracles []string) error {
	fmt.Printf("two transactions of up to five statements, %d rounds of %d cases, seeds 1 to %d\n", rounds, cases, rounds)
	for _, engine := range engines {
		all := map[string]*series{}
		for round := range rounds {
			alone := 0.0
			for _, name := range oracles {
				r, err := hunt(program, engine, name, cases, round+1)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", engine, name, err)
				}
				one, seconds := all[name], float64(r.Elapsed)/1e9
				if one == nil {
					one = &series{}
					all[name] = one
				}
				rate := float64(r.Cases) / seconds
				if one.cases = append(one.cases, rate); name == plain {
					alone = rate
				} else if alone > 0 {
					one.share = append(one.share, rate/alone)
				}
				if n := r.compared(name); n > 0 {
					one.queries = append(one.queries, float64(n)/seconds)
				}
				one.unknown, one.findings = one.unknown+r.Unknown, one.findings+r.Findings
			}
		}
		for _, name := range oracles {
			all[name].print(engine, name, cases*rounds)
		}
	}
	return nil
}

// print prints the figures of an oracle on a product.
func (one *series) print(engine, name string, total int) {
	goal := func(text string, reach any) string {
		if reach == 0 || reach == 0.0 {
			return text
		}
		return fmt.Sprintf("%s (goal %v)", text, reach)
	}
	product, _, _ := strings.Cut(engine, ":")
	fmt.Printf("%-10s %-8s %s  decided: %.1f%%  findings: %d", engine, name, goal(line("%.1f", one.cases)+" cases/s", rates[name][product]),
		100-100*float64(one.unknown)/float64(total), one.findings)
	if len(one.share) > 0 && shares[name] > 0 {
		fmt.Print("  of the cases alone: ", goal(line("%.2f", one.share), shares[name]))
	}
	if len(one.queries) > 0 {
		fmt.Print("  ", goal(line("%.0f", one.queries)+" queries/s", queries[name][product]))
	}
	fmt.Println()
}

// hunt runs the program once.
func hunt(program, engine, oracle string, cases, seed int) (r result, err error) {
	dir, err := os.MkdirTemp("", "wirecheck-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"hunt", "--engine", engine, "--cases", strconv.Itoa(cases), "--seed", strconv.Itoa(seed), "--transactions", "2",
		"--tries", "1", "--out", filepath.Join(dir, "found"), "--format", "json", "--log-level", "error"}
	if oracle != standard {
		args = append(args, "--oracle", oracle)
	}
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: something was found
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

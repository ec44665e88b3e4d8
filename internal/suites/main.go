// Command suites runs the test suites of client libraries and frameworks against private servers: directly, through the proxy in mode pass,
// and through the proxy in mode observe, where new tables of the MySQL family get the hidden columns. It prints what passed and
// failed in each mode, and the tests whose outcome differs from the direct run's.
//
// A suite comes from where its source can be had: the Go module proxy, PyPI or Debian. One that cannot be had is printed with the reason.
// A test that differs is run once more in all modes, alone with the others that differ, as many tests of clients depend on time.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	var o options
	match := flag.String("match", "", "run only the suites whose name matches this regular expression")
	flag.StringVar(&o.folder, "dir", filepath.Join(os.TempDir(), "wirecheck-suites"), "folder for sources and output; it stays, so that a later run downloads nothing")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "time limit of one suite in one mode")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if o.match, err = regexp.Compile(*match); err == nil {
		err = run(ctx, o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

type options struct {
	folder string
	limit  time.Duration
	match  *regexp.Regexp
}

// outcomes are a suite's tests with what came of each: passed, failed or skipped.
type outcomes map[string]string

const (
	passed  = "passed"
	failed  = "failed"
	skipped = "skipped"
)

// modes are how a suite reaches the server.
var modes = []string{"direct", "pass", "observe"}

// suite is the tests of one client.
type suite struct {
	name   string
	engine string
	// settings are of the server.
	settings map[string]string
	// get fetches the sources into a folder, or says why it cannot.
	get func(ctx context.Context, folder string) error
	// run runs the tests against a server, or only those whose names are given.
	run func(ctx context.Context, folder string, at place, only []string) (outcomes, error)
}

func run(ctx context.Context, o options, out io.Writer) error {
	fmt.Fprintf(out, "%s, %d cores, %s\n\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version())
	fmt.Fprintln(out, "| suite | mode | passed | failed | skipped | time |")
	fmt.Fprintln(out, "|---|---|---:|---:|---:|---:|")
	var notes []string
	for _, s := range all() {
		if !o.match.MatchString(s.name) {
			continue
		}
		note, err := s.compare(ctx, o, out)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		notes = append(notes, note...)
	}
	fmt.Fprintln(out)
	for _, n := range notes {
		fmt.Fprintln(out, "-", n)
	}
	return nil
}

// compare runs the suite in all modes and gives what is to be said of it.
func (s suite) compare(ctx context.Context, o options, out io.Writer) (notes []string, err error) {
	folder := filepath.Join(o.folder, strings.ReplaceAll(s.name, "/", "_"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := s.get(ctx, folder); err != nil {
		fmt.Fprintf(out, "| %s | not had | | | | |\n", s.name)
		return []string{fmt.Sprintf("%s was not had: %v", s.name, err)}, nil
	}
	results := map[string]outcomes{}
	for _, mode := range modes {
		from := time.Now()
		if results[mode], err = s.in(ctx, o, folder, mode, nil); err != nil {
			fmt.Fprintf(out, "| %s | %s, not had | | | | |\n", s.name, mode)
			return append(notes, fmt.Sprintf("%s did not run in mode %s: %v", s.name, mode, err)), ctx.Err()
		}
		r := results[mode]
		fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %.0f s |\n", s.name, mode, r.count(passed), r.count(failed), r.count(skipped), time.Since(from).Seconds())
	}
	suspects := different(results)
	if len(suspects) == 0 {
		return nil, nil
	}
	for _, mode := range modes {
		again, err := s.in(ctx, o, folder, mode, suspects)
		if err != nil {
			return append(notes, fmt.Sprintf("%s: the %d tests that differ did not run alone: %v", s.name, len(suspects), err)), ctx.Err()
		}
		for _, test := range suspects {
			if again[test] != "" {
				results[mode][test] = again[test]
			}
		}
	}
	still := different(results)
	if n := len(suspects) - len(still); n > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d tests that differed did not when they ran once more", s.name, n))
	}
	for _, test := range still {
		note := fmt.Sprintf("%s: `%s`:", s.name, test)
		for _, mode := range modes {
			note += fmt.Sprintf(" %s %s,", mode, results[mode].of(test))
		}
		notes = append(notes, strings.TrimSuffix(note, ","))
	}
	return notes, nil
}

// in runs tests against a fresh server in a mode.
func (s suite) in(ctx context.Context, o options, folder, mode string, only []string) (_ outcomes, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	at, stop, err := open(ctx, s.engine, mode, s.settings)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := stop(); err == nil {
			err = e
		}
	}()
	at.mode = mode
	return s.run(ctx, folder, at, only)
}

// different are the tests whose outcome is not the same in all modes.
func different(results map[string]outcomes) (tests []string) {
	names := map[string]bool{}
	for _, r := range results {
		for test := range r {
			names[test] = true
		}
	}
	for _, test := range slices.Sorted(maps.Keys(names)) {
		for _, mode := range modes[1:] {
			if results[mode].of(test) != results[modes[0]].of(test) {
				tests = append(tests, test)
				break
			}
		}
	}
	return tests
}

func (o outcomes) of(test string) string {
	return cmp.Or(o[test], "not run")
}

func (o outcomes) count(what string) (n int) {
	for _, outcome := range o {
		if outcome == what {
			n++
		}
	}
	return n
}

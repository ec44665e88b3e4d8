package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"wirecheck/configs"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
)

// exitStatus is the error by which a command says how the process ends after it has said all there is to say.
type exitStatus int

// The exit statuses; scripts rely on them.
const (
	exitClean   exitStatus = 0 // nothing found
	exitFound   exitStatus = 1 // something found
	exitFailed  exitStatus = 2 // wirecheck could not do its work
	exitUnknown exitStatus = 3 // could not decide
)

// Error makes exitStatus an error.
func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// leastFlag is the flag --min-coverage.
func leastFlag(flags *pflag.FlagSet, least *float64) {
	flags.Float64Var(least, "min-coverage", configs.DefaultMinCoverage, "share of the statements that must be seen exactly, as in 0.95; below it the exit status is 3 where nothing is found")
}

// judged makes the result of a judgement, with the reason if it could not be decided whether there is more. missing says what was not there to
// be judged.
func judged(findings []oracle.Finding, seen isolation.Coverage, unit string, least float64, missing string) report.Result {
	r := report.Result{Findings: findings, Coverage: seen, Undecided: cmp.Or(seen.Undecided(least), missing)}
	if r.Undecided == "" && unit == unitRequest && seen.Requests == 0 {
		r.Undecided = "no requests could be told apart"
	}
	return r
}

// status is the exit status of a result: what is only possible counts as nothing found.
func status(r report.Result) error {
	return concluded(nil, slices.ContainsFunc(r.Findings, func(f oracle.Finding) bool { return f.Kind != oracle.KindUnknown }), r.Undecided)
}

// concluded is the exit status of a command that has written its report. err is what went wrong behind that.
func concluded(err error, found bool, undecided string) error {
	switch {
	case err != nil:
		return err
	case found:
		return exitFound
	case undecided != "":
		return exitUnknown
	}
	return nil
}

// checkLeast refuses what is no share.
func checkLeast(least float64) error {
	if err := configs.CheckShare(least); err != nil {
		return fmt.Errorf("--min-coverage %w", err)
	}
	return nil
}

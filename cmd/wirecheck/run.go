package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/lab/suite"
)

func newRunCommand(c *common) *cobra.Command {
	f := suite.Options{Stdout: c.stdout, Stderr: c.stderr, Progress: c.progressOf, Choose: c.chooseSeed}
	var permutations string
	var invariants []string
	cmd := &cobra.Command{
		Use:   "run SCENARIO...",
		Short: "Execute scenarios of several sessions and judge what happened",
		Long: `run executes scenarios on a real server and always does the same. It submits the
steps one by one in the order of each permutation and asks the server's lock
views who waits for whom. It prints the schedule as it happened, what each step
returned, the final tables, and what the oracles found.

SCENARIO is a file in the format of PostgreSQL's isolationtester, for any
engine. Lines that begin with #wirecheck: add what that format cannot say
(docs/reference/scenario-format.md). A file whose name ends in .sql is a
database and queries of it, as one session, for radar, tlp, norec and dqe.

ENGINE is a name (postgres, mariadb, ...), which starts a private server, or the
URL of a server on which the user may create databases. run works in a database
of its own and drops it at the end.

--quiet shows only the first permutation that found something, and numbers the
others: "found in permutations 5, 6, 7 of 14".

--format matrix prints a table of marks for each engine: which outcomes each
level lets through or prevents. --format markdown has all words, and whether the
isolation oracle agrees (docs/lab/hermitage.md).

--invariant is a query that must give no rows behind each permutation, or, with
same: in front of it, the same rows before the first step and behind the last.
run prints the shortest permutation that breaks it, and whether the sessions,
one after the other, break it as well.

Nothing in the result differs from run to run. --update stores it beside the
scenario as NAME.ENGINE.out. From then on, run fails if the same flags give
another result.

Exit status: 0 as expected, or nothing found where nothing is expected; 1
something found that is not expected, or another result than the stored one; 2
wirecheck could not do its work; 3 wirecheck could not decide: no statement was
seen exactly, say, or a step failed by a mistake (syntax, an unknown table) that
neither a condition failed(STEP) nor the stored result has.`,
		Example: `  wirecheck run write-skew.spec --engine postgres --level "repeatable read"
  wirecheck run testdata/hermitage/*.spec --engine mariadb --permutations all
  wirecheck run testdata/hermitage/*.spec --engine postgres,mariadb --level all --format matrix
  wirecheck run deadlock.spec --engine postgres://postgres@127.0.0.1:5432 --format isolationtester`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("permutations") {
				mode, err := scenario.ParsePermutations(permutations)
				if err != nil {
					return err
				}
				f.Mode = mode
			}
			var err error
			if f.Invariants, err = lab.ParseInvariants(invariants); err != nil {
				return err
			}
			if len(invariants) > 0 && (c.format == "isolationtester" || c.format == "matrix" || c.format == "markdown") {
				return fmt.Errorf("--invariant is not for --format %s: use text, json, junit or html", c.format)
			}
			if f.Quiet && c.format != "text" {
				return errors.New("--quiet is for --format text")
			}
			f.Color = terminal(c.stdout) && colorful()
			return runScenarios(cmd.Context(), c, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.Engines, "engine", nil, "where to execute: names (private servers) or URLs (default: what the scenario names, else postgres)")
	flags.StringSliceVar(&f.Levels, "level", nil, "isolation levels, as in 'repeatable read', or all (default: what the scenario names, else the product's default)")
	flags.StringVar(&f.Oracles, "oracle", "", "oracles that judge: "+panel.OracleNames()+", all, none (default: what the scenario names, else isolation)")
	invariantFlag(flags, &invariants, "each permutation")
	ordersFlag(flags, c)
	flags.StringVar(&f.Out, "out", "", "folder for a scenario of each permutation with a finding (default: none)")
	flags.StringVar(&permutations, "permutations", "listed", "which orders: listed, all, random:N, pct:N,D")
	flags.BoolVarP(&f.Quiet, "quiet", "q", false, "show only the first permutation that found something, and number the others")
	flags.DurationVar(&f.Limit, "limit", time.Minute, "how long one permutation may take, with all its oracles five times as long; a longer one is unknown")
	flags.BoolVar(&f.Update, "update", false, "store the result beside the scenario")
	return cmd
}

// runScenarios executes the files, engine by engine.
func runScenarios(ctx context.Context, c *common, o suite.Options, paths []string) error {
	o.Format, o.Judging = c.format, c.judging()
	specs, err := suite.Read(paths, o)
	if err != nil {
		return err
	}
	found, err := suite.Run(ctx, specs, o)
	switch {
	case err != nil:
		return err
	case found.Failed:
		return exitFailed
	case found.Found:
		return exitFound
	case found.Unknown:
		return exitUnknown
	}
	return nil
}

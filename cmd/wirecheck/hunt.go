package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/backends"
	"wirecheck/lab"
	"wirecheck/lab/generate"
	"wirecheck/lab/hunt"
	"wirecheck/lab/panel"
)

func newHuntCommand(c *common) *cobra.Command {
	o := &hunt.Options{Limits: generate.DefaultLimits(), Choose: c.chooseSeed, Rescue: c.stdout}
	var oracles string
	var invariants []string
	var fleet fleetFlags
	cmd := &cobra.Command{
		Use:   "hunt --engine ENGINE",
		Short: "Find bugs of a DBMS with random databases and transactions",
		Long: `hunt makes random databases and transactions, executes them in random orders,
and lets the oracles judge. It executes each finding three times more, reduces
it to the smallest case, and keeps one folder for each distinct bug:

  case.spec       the smallest case
  original.spec   the case as hunt generated it
  report.md       a report for an issue tracker
  reproduce.sql   a script for psql, mariadb or mysql, in one terminal or two
  case.test       for mysqltest, or case.isolation.spec, or case_test.go
  reproduce.sh    one command that shows the bug again
  history.jsonl   what the smallest case read and wrote, for "wirecheck check"

--format html prints a page that is an index of the folder.

The folder flaky/ keeps findings that did not repeat. The folder broken/ keeps
cases that no oracle could judge.

Some cases are lists of queries for radar, tlp, norec and dqe: every fifth case
and the first of each database, or every second one if no other oracle judges.

--also tries each bug's smallest case on other engines, with the oracle that
found it, and prints one table of who shows it.

--invariant is a query that must give no rows behind each case or, with same: in
front of it, the same rows before and behind it. Tables are named t1, t2, ...;
cases whose database the query is not for are counted. hunt makes the smallest
case that breaks it, unless a serial order of its sessions does so, too.

If a private server crashes or hangs, hunt reports that and starts a new one.
Ctrl-C ends the hunt and loses nothing. --resume continues it, also after a
kill.

--join shares the cases with all hunters that name the same server and the same
--fleet; "wirecheck hunt status" shows them. The first one's settings count for
all, --cases and --duration are those of all together, and each one's folder has
what all have found. A hunter may be killed: another one goes on with its cases.

Exit status: 0 nothing found; 1 something found; 2 wirecheck could not do its
work, or not all of it: an error counts more than bugs; 3 nothing found, but
that means nothing: no case was executed, no oracle could judge most of them, or
the server refused most statements.`,
		Example: `  wirecheck hunt --engine mariadb --duration 10m --out found/
  wirecheck hunt --engine tidb:2023-01 --oracle wss,troc --duration 8h --out found/ --seed 42
  wirecheck hunt --join nats://10.0.0.5:4222 --engine postgres --duration 48h --out found/`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Judging.Invariants, err = lab.ParseInvariants(invariants); err != nil {
				return err
			}
			if len(invariants) > 0 && fleet.join != "" {
				return errors.New("--invariant is for one hunter: a fleet (--join) does not share what it has to say")
			}
			return runHuntCommand(cmd, c, o, &oracles, &fleet)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Engine, "engine", "", "where to hunt: a name (private server) or a URL")
	flags.StringVar(&oracles, "oracle", "all", "oracles that judge: "+panel.OracleNames()+", all")
	flags.StringSliceVar(&o.Levels, "level", []string{"all"}, "isolation levels, one after the other")
	flags.DurationVar(&o.Duration, "duration", 0, "how long to hunt; 0: until --cases or Ctrl-C")
	flags.IntVar(&o.Cases, "cases", 0, "how many cases; 0: until --duration or Ctrl-C")
	flags.StringVar(&o.Out, "out", "found", "folder for the findings")
	flags.BoolVar(&o.Resume, "resume", false, "continue the hunt whose results are in --out")
	flags.StringVar(&o.Known, "known", "", "file with one signature a line: hunt counts these bugs and does not keep them")
	flags.StringSliceVar(&o.Also, "also", nil, "other engines on which each bug's smallest case is tried at once")
	flags.DurationVar(&o.Limit, "limit", time.Minute, "how long one case may take; a longer one is unknown")
	ordersFlag(flags, c)
	flags.IntVar(&o.Group, "group", 20, "cases for each database")
	flags.BoolVar(&o.Steer, "steer", true, "choose cases that do what no case has done yet")
	flags.IntVar(&o.Queries, "queries", 200, "queries in a case that is a list of queries; 0: no such cases")
	flags.DurationVar(&o.Reduction, "reduction", time.Minute, "how long the reduction of one finding may take; 0: no limit")
	flags.IntVar(&o.Tries, "tries", 1500, "how many candidates a reduction may try")
	flags.IntVar(&o.Limits.Tables, "tables", o.Limits.Tables, "at most this many tables in a database")
	flags.IntVar(&o.Limits.Columns, "columns", o.Limits.Columns, "at most this many columns in a table")
	flags.IntVar(&o.Limits.Rows, "rows", o.Limits.Rows, "at most this many rows in a table")
	flags.IntVar(&o.Limits.Transactions, "transactions", o.Limits.Transactions, "at most this many transactions in a case")
	flags.IntVar(&o.Limits.Statements, "statements", o.Limits.Statements, "at most this many statements in a transaction")
	flags.IntVar(&o.Limits.Definitions, "definitions", 25, "share of databases, in percent, on which sessions change definitions (not on TiDB) and settings and lose their connections, too")
	flags.BoolVar(&o.Limits.Faults, "faults", false, "end some connections in the middle of transactions: killed, or cut")
	flags.StringSliceVar(&o.Limits.Exclude, "exclude", nil, "features to leave out (docs/reference/generation.md)")
	invariantFlag(flags, &invariants, "each case")
	flags.StringSliceVar(&o.Limits.Include, "include", nil, "features that hunt generates on demand only")
	fleet.flags(flags)
	cmd.AddCommand(newHuntStatusCommand(c))
	return cmd
}

func runHuntCommand(cmd *cobra.Command, c *common, o *hunt.Options, oracles *string, f *fleetFlags) (err error) {
	ctx := cmd.Context()
	if f.join != "" {
		b, err := joinFleet(ctx, c, cmd, f, o)
		if err != nil {
			return err
		}
		defer b.Close()
	}
	if o.Engine == "" {
		return errors.New("hunt needs --engine: a name such as mariadb, which starts a private server, or a URL")
	}
	if o.Selection, err = panel.Select(*oracles); err != nil {
		return err
	}
	for _, name := range o.Also {
		if strings.Contains(name, "://") {
			continue
		}
		if _, err := backends.ByName(name); err != nil {
			return fmt.Errorf("--also: %w", err)
		}
	}
	judging := c.judging()
	judging.Invariants = o.Judging.Invariants
	o.Judging = judging
	o.Progress = func(line func() string) {
		if c.progress() {
			c.progressf("%s", line())
		}
	}
	report, err := hunt.Run(ctx, *o)
	c.clearProgress()
	if report == nil {
		return err
	}
	err = errors.Join(err, c.form(report)(c.stdout))
	switch {
	case err != nil: // what was found beside it is in the report
		return err
	case len(report.Bugs) > 0, report.Broke():
		return exitFound
	case report.Broken > 0:
		return fmt.Errorf("nothing was found, but %d cases could not be judged: %s", report.Broken, filepath.Join(o.Out, "broken"))
	case report.Undecided() != "":
		return exitUnknown
	}
	return nil
}

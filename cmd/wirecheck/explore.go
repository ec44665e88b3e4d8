package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/fleet/work"
	"wirecheck/lab"
	"wirecheck/live/control"
	"wirecheck/scheduler"
	"wirecheck/scheduler/search"
)

const exploreLong = `explore runs a concurrent test of your own again and again, and decides each
time which of the test's sessions goes next. So it finds a race that you would
meet once in a thousand runs. The test need not know of it.

Each run begins with a fresh state. On PostgreSQL, explore gives each run a copy
of the database that --upstream names (CREATE DATABASE ... TEMPLATE), and drops
it behind the run; nobody else may be connected to the database meanwhile. With
--reset, explore executes a command before each run instead, and the test works
in the database itself. The command gets the address of the server itself in the
same variables. MariaDB and MySQL need --reset; use --reset true if the test
makes its own state.

explore stops at the first run in which the command fails, the oracle finds
something (see --baseline), or an --invariant is broken: a query that must give
no rows behind the run or, with same: in front of it, the same rows as before.
Then it looks for a schedule that fails in the same way with as few switches of
session as possible, prints it, and saves it in a file. wirecheck explore
--schedule FILE runs that schedule again.

--strategy says how schedules are chosen:
  random     each session that could go has the same chance (default)
  pct[:D]    by priorities, which finds rare orders sooner (D: depth, 3)
  all        all of them, those with few switches first
The same --seed chooses the same schedules.

The command gets the proxy's address as with wirecheck ci. explore decides when
all processes of the command sleep: then each session has sent its statement.
Where they run elsewhere (a server in a container) explore cannot see that: use
--think and --sessions. Then it waits so long for a client that sends nothing.

--join shares the runs with all processes that name the same server and the same
--fleet. Each one needs the command and a test database of its own, with the
same rows. All print what one process would have found. The first one's settings
count for all. A process may be killed: another one goes on with its run.

Exit status: that of the command, if it failed; else 0 nothing found, 1
something found, 2 wirecheck could not do its work, 3 there was nothing to
explore (no statement came, or only one session at a time had one), or wirecheck
saw too little to tell.`

// exploreFlags are the flags of explore.
type exploreFlags struct {
	suiteFlags
	runs, shrink                           int
	strategy, reset, schedule, save, locks string
	limit, think                           time.Duration
	sessions                               int
	fleet                                  fleetFlags
	texts                                  []string // of the invariants
	invariants                             []lab.Invariant
}

// exploreSettings are the flags of explore that all processes of a fleet have in common.
var exploreSettings = []string{"seed", "runs", "strategy", "shrink-runs", "limit", "think", "sessions", "invariant", "unit", "unit-gap", "request-tag", "min-coverage"}

func newExploreCommand(c *common) *cobra.Command {
	var f exploreFlags
	cmd := &cobra.Command{
		Use:   "explore [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a concurrent test under many schedules until it fails",
		Long:  exploreLong,
		Example: `  wirecheck explore --upstream postgres://app@127.0.0.1:5432/test -- npm test
  wirecheck explore --upstream mysql://root@127.0.0.1:3306/test --reset 'npm run db:reset' --strategy all -- npm test
  wirecheck explore --upstream postgres://app@127.0.0.1:5432/test --schedule wirecheck.schedule -- npm test`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runExplore(cmd.Context(), c, cmd, &f, args) },
	}
	flags := cmd.Flags()
	f.suiteFlags.flags(flags)
	flags.IntVar(&f.runs, "runs", 100, "runs at most")
	flags.StringVar(&f.strategy, "strategy", "random", "how schedules are chosen: random, pct, pct:DEPTH, all")
	flags.StringVar(&f.reset, "reset", "", "shell command that brings the database back to its first state, before each run")
	flags.StringVar(&f.schedule, "schedule", "", "run this schedule, which explore has saved, and no other")
	flags.StringVar(&f.save, "save-schedule", "wirecheck.schedule", "file for the schedule that fails")
	flags.IntVar(&f.shrink, "shrink-runs", 30, "runs at most that look for a smaller schedule")
	flags.StringVar(&f.locks, "locks", "", "URL of the server, with a user who may see its locks (default: --upstream)")
	flags.DurationVar(&f.limit, "limit", time.Minute, "how long a run may take; then the command has failed")
	flags.DurationVar(&f.think, "think", 0, "wait so long for a client that sends nothing, wherever it runs; 0: until the command's processes sleep")
	f.fleet.flags(flags)
	invariantFlag(flags, &f.texts, "each run")
	flags.IntVar(&f.sessions, "sessions", 0, "with --think: clients that the first decision waits for (default 2)")
	return cmd
}

// check says what is wrong with the flags.
func (f *exploreFlags) check() (err error) {
	if f.invariants, err = lab.ParseInvariants(f.texts); err != nil {
		return err
	}
	word, _, _ := strings.Cut(f.strategy, ":")
	switch {
	case len(f.upstream) > 1:
		return errors.New("explore schedules the clients of one server: give --upstream once")
	case f.strategy != "all" && word != "random" && word != "pct":
		return fmt.Errorf("unknown strategy %q: known are random, pct, pct:DEPTH, all", f.strategy)
	case f.runs < 1:
		return fmt.Errorf("--runs %d: at least 1", f.runs)
	case f.sessions > 0 && f.think == 0:
		return errors.New("--sessions needs --think: without it explore sees by itself how many clients have a statement")
	}
	f.sessions = cmp.Or(f.sessions, 2)
	if f.strategy == "all" {
		return nil
	}
	_, err = control.Strategy(f.strategy, control.UsualSteps, func(int) int { return 0 })
	return err
}

// explored is what explore has to tell.
type explored struct {
	strategy        string // for people
	seed            uint64 // 0: the strategy draws nothing
	runs, schedules int    // schedules: different ones
	exhausted       bool   // there are no others
	nothing         string // why there was nothing to explore; empty: there was something
	failed          *outcome
	number          int    // of the run that failed
	from            int    // switches of its schedule
	smaller         int    // runs that looked for a smaller one
	again           bool   // the smallest one failed a second time
	file            string // where it is saved
	last            *outcome
	least           *outcome // the run of which wirecheck saw least: what is said of all runs must hold for it, too
}

// ran takes over a run.
func (e *explored) ran(o *outcome) {
	e.last = o
	if e.least == nil || o.lessSeen(e.least) {
		e.least = o
	}
}

// lessSeen reports whether less was seen of a run than of another one.
func (o *outcome) lessSeen(other *outcome) bool {
	if (o.result.Undecided == "") != (other.result.Undecided == "") {
		return o.result.Undecided != ""
	}
	return o.seen.Exact*other.seen.Statements() < other.seen.Exact*o.seen.Statements()
}

func runExplore(ctx context.Context, c *common, cmd *cobra.Command, f *exploreFlags, args []string) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	databases, err := f.databases(args)
	if err != nil {
		return err
	}
	var listed scheduler.Strategy
	if f.schedule != "" {
		if _, err := os.Stat(f.schedule); err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
		if listed, err = control.Strategy(f.schedule, 0, nil); err != nil {
			return err
		}
	}
	var fleet *work.Fleet
	if f.fleet.join != "" {
		if listed != nil {
			return errors.New("--schedule runs one schedule, which cannot be shared: leave out --join")
		}
		b, joined, err := f.fleet.with(ctx, c, cmd, exploreSettings)
		if err != nil {
			return err
		}
		if f.invariants, err = lab.ParseInvariants(f.texts); err != nil { // the fleet's
			b.Close()
			return err
		}
		defer b.Close()
		fleet = joined
	}
	x, err := newExplorer(ctx, c, cmd, f, databases[0], args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close(ctx)) }()
	e := &explored{strategy: f.strategy}
	if listed != nil {
		e.strategy = "the schedule of " + f.schedule
		err = x.repeat(ctx, e, listed)
	} else {
		err = x.search(ctx, e, fleet)
	}
	c.clearProgress()
	if err != nil {
		return err
	}
	if err := e.write(c); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return e.status()
}

// status is the exit status.
func (e *explored) status() error {
	switch {
	case e.failed != nil && e.failed.exit != 0:
		return exitStatus(e.failed.exit)
	case e.failed != nil:
		return exitFound
	case e.nothing != "":
		return exitUnknown
	}
	return status(e.least.result)
}

// repeat runs one schedule.
func (x *explorer) repeat(ctx context.Context, e *explored, listed scheduler.Strategy) error {
	o, err := x.run(ctx, search.NewRun(listed), e.strategy)
	if err != nil {
		return err
	}
	e.runs, e.schedules, e.number = 1, 1, 1
	e.ran(o)
	if o.fails() {
		e.failed, e.from, e.again = o, search.Switches(o.run.Order()), true
	}
	if len(o.run.Decisions) == 0 {
		e.nothing = nothingCame
	}
	return nil
}

// nothingCame is why a command without statements cannot be explored.
const nothingCame = "no statement of the command came through the proxy: does it connect to DATABASE_URL? --env gives it other variables"

// alike is how many runs in which no session had a choice prove that there is none.
const alike = 3

// save keeps the schedule that fails.
func (x *explorer) save(e *explored) error {
	if err := os.WriteFile(x.f.save, []byte(e.failed.schedule), 0o600); err != nil {
		return fmt.Errorf("save the schedule: %w", err)
	}
	e.file = x.f.save
	return nil
}

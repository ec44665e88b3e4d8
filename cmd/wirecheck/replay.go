package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wirecheck/configs"
	"wirecheck/lab"
	"wirecheck/lab/explore"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
)

// replayFlags are the flags of wirecheck replay that are read as words.
type replayFlags struct {
	order, until, interleavings string
	unit                        unitFlags
	failDiverged                bool
}

func newReplayCommand(c *common) *cobra.Command {
	o := explore.Options{Choose: c.chooseSeed, Progress: c.progressOf}
	var f replayFlags
	var origin originFlags
	var invariants, whatIf []string
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "Execute a trace again and find what could have gone wrong",
		Long: `replay executes a trace again, with one connection for each session, and keeps
the recorded order where sessions wait for each other's locks. It reports the
answers that differ from the trace, and what the oracles find. A trace comes
from "wirecheck proxy --record" or from "wirecheck trace import".

With --interleavings, replay also takes transactions that stand close to each
other in the trace and runs them in other orders, each from the same state. It
prints the shortest scenario that goes wrong.

--what-if replays the trace as it was, twice, and once more in each variant: at
another level, with another setting, on another server. It compares what is
refused, waits, or is answered otherwise, and says of each refusal whether an
update would have been lost without it.

--invariant is a query that must give no rows or, with same: in front of it, the
same rows before and after. It is looked at before and behind the replay, and
before and behind each interleaving.

ENGINE is a name (postgres, mariadb, ...), which starts a private server, or the
URL of a server on which the user may create databases. replay works in a
database of its own and drops it at the end. It begins with the rows of a dump
(--snapshot) or of another database, which it copies (--template). Only with
--in-place does it work in a database of yours, and change its rows for good:
for clones that nobody needs. Then --reset brings the rows back before each
replay; without it, replay executes the recorded order and nothing else.

--order says what a statement waits for besides its own session:
  commit    its place among the commits of the trace; statements that
            overlapped in the trace go one at a time, too
  object    the same, among statements that use the same tables and of which one
            writes; all others run at once
  session   its session's last statement and the think time (--speed)
  off       the clock (--speed)
If the recorded order and the server's locks contradict each other, replay
follows the locks and reports it.

Exit status: 0 nothing found; 1 something found; 2 wirecheck could not do its
work; 3 nothing found, but that means nothing: the database lacks what most
statements need (--snapshot), most answers differ, wirecheck saw none exactly or
fewer than --min-coverage asks for, or you interrupted it. Ctrl-C and SIGTERM
print what is known by then.`,
		Example: `  wirecheck trace import postgresql-*.csv -o shop.wct
  wirecheck replay shop.wct --snapshot dump.sql --engine postgres
  wirecheck replay shop.wct --snapshot dump.sql --engine postgres --interleavings random:200 --window 20
  wirecheck replay shop.wct --snapshot dump.sql --what-if setting=innodb_snapshot_isolation=ON
  wirecheck replay shop.wct --engine mariadb --order off --speed 2 --only user=app --until +10m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Invariants, err = lab.ParseInvariants(invariants); err != nil {
				return err
			}
			if err := errors.Join(f.read(&o), origin.read(&o)); err != nil {
				return err
			}
			if len(whatIf) > 0 {
				return runWhatIf(cmd.Context(), c, o, args[0], whatIf)
			}
			return runReplay(cmd.Context(), c, o, args[0], f.failDiverged)
		},
	}
	flags := cmd.Flags()
	origin.flags(flags, &o)
	flags.StringVar(&f.order, "order", "commit", "what a statement waits for: commit, object, session, off")
	flags.Float64Var(&o.Speed, "speed", 0, "speed of the trace's clock: 1 as recorded, 2 twice as fast, 0 no clock")
	flags.StringSliceVar(&o.Only, "only", nil, "only these sessions: session=N, user=PATTERN, application=PATTERN; several of one kind are alternatives")
	flags.StringVar(&f.until, "until", "", "leave out what began at this time or later: "+timeForms)
	flags.StringVar(&o.Oracles, "oracle", panel.IsolationName, "oracles that judge: "+panel.OracleNames()+", all, none")
	ordersFlag(flags, c)
	flags.StringVar(&f.interleavings, "interleavings", "", "also run transactions in other orders: random:N, pct:N,D, all")
	flags.IntVar(&o.Window, "window", 20, "combine transactions with fewer than this many others between them")
	flags.IntVar(&o.Groups, "groups", 200, "run at most this many combinations of transactions")
	f.unit.flag(flags)
	flags.StringArrayVar(&whatIf, "what-if", nil, "replay it as it was and also so: level=LEVEL, setting=NAME=VALUE, engine=ENGINE, several with commas between; repeatable")
	leastFlag(flags, &o.MinCoverage)
	invariantFlag(flags, &invariants, "the replay and each interleaving")
	flags.StringVar(&o.Out, "out", "", "folder for the scenarios that show the findings (default: replay prints them)")
	flags.StringVar(&o.Tables, "tables", "", "write the final tables of the replay to this file, rows in canonical order")
	flags.StringVar(&o.Compare, "compare", "", "compare the final tables with this dump of the database after the last statement")
	flags.BoolVar(&f.failDiverged, "fail-on-divergence", false, "exit with status 1 if an answer differs from the trace's")
	return cmd
}

// read checks the flags and reads those that are words.
func (f *replayFlags) read(o *explore.Options) (err error) {
	if o.Order, err = replay.ParseOrder(f.order); err != nil {
		return err
	}
	if _, err := panel.Select(o.Oracles); err != nil {
		return err
	}
	if err := errors.Join(f.unit.check(), checkLeast(o.MinCoverage)); err != nil {
		return err
	}
	o.Requests, o.Auto = f.unit.unit == unitRequest, f.unit.unit == configs.Units[0]
	if o.Speed < 0 {
		return fmt.Errorf("speed %v: expected 0 or more", o.Speed)
	}
	if o.Window < 2 {
		return fmt.Errorf("window %d: expected at least 2 transactions", o.Window)
	}
	if f.until != "" {
		o.Until = func(first int64) (int64, error) {
			at, err := parseMoment(f.until, first)
			if err != nil {
				return 0, fmt.Errorf("--until: %w", err)
			}
			return at, nil
		}
	}
	if f.interleavings == "" || f.interleavings == "recorded" {
		return nil
	}
	text := f.interleavings
	if kind, n, ok := strings.Cut(text, ":"); ok && kind == "pct" && !strings.Contains(n, ",") {
		text += ",3"
	}
	if o.Mode, err = scenario.ParsePermutations(text); err != nil || o.Mode.Kind == scenario.KindListed {
		return fmt.Errorf("interleavings %q: expected recorded, random:N, pct:N,D or all", f.interleavings)
	}
	return nil
}

func runReplay(ctx context.Context, c *common, o explore.Options, path string, failDiverged bool) error {
	o.Judging = c.judging()
	printed := false // what the recorded order brought, as soon as it is known
	if c.format == "text" {
		o.Replayed = func(r *explore.Report) error {
			c.clearProgress()
			printed = true
			return c.people(r.Replayed)
		}
	}
	o.Found = func(w *explore.WrongRun) {
		c.log.Info().Uints64("sessions", w.Sessions).Strs("tables", w.Tables).Msg("found " + strings.Join(w.Found, ", "))
	}
	r, err := explore.Run(ctx, path, o)
	c.clearProgress()
	if r == nil {
		return err
	}
	write := c.form(r)
	if printed {
		write = r.Others
	}
	if e := c.people(write); e != nil {
		return fmt.Errorf("write the report: %w", e)
	}
	return concluded(err, r.Found() || failDiverged && r.Diverged(), r.Undecided) // err is of what had to be taken away behind the replay
}

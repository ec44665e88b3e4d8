package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/configs"
	"wirecheck/lab"
	"wirecheck/lab/explore"
)

func newAdviseCommand(c *common) *cobra.Command {
	o := explore.Options{Choose: c.chooseSeed, Progress: c.progressOf}
	var unit unitFlags
	var fleet fleetFlags
	var origin originFlags
	var invariants []string
	var budget time.Duration
	cmd := &cobra.Command{
		Use:   "advise TRACE",
		Short: "Say which isolation level or remedy each kind of transaction needs",
		Long: `advise executes a trace again, and then transactions of it at the same time that
use the same tables, at each isolation level of the product. It looks at kinds
of transactions (shapes: the statements without their values), each with each
and with itself. The trace needs no concurrency: what came one after the other
is made concurrent, from the state that the trace had then. Values that the
application computed from what it read are computed again.

For each shape, advise prints with which others something goes wrong and the
weakest level at which nothing does. For each such pair it prints in how many
interleavings something goes wrong at each level, how many the server refuses,
and remedies. A remedy is "proven" if advise has executed the pair with it in
every interleaving that can differ, and nothing went wrong.

advise has executed what it shows three times. It is "possible" where the
application read something else than in the trace, so that its own checks might
have prevented it.

--join shares the trials with all processes that name the same server and the
same --fleet. Each one needs the trace, the snapshot and a server of its own,
and prints the advice that one process would have given. The first one's
settings count for all. A process may be killed: another one goes on with its
trial.

Exit status: 0 nothing goes wrong at the application's levels; 1 something does;
2 wirecheck could not do its work; 3 wirecheck could not decide.`,
		Example: `  wirecheck advise shop.wct --snapshot dump.sql
  wirecheck advise shop.wct --snapshot dump.sql --unit request --out advice
  wirecheck advise shop.wct --snapshot dump.sql --budget 2m --format json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(unit.check(), origin.read(&o)); err != nil {
				return err
			}
			if budget <= 0 {
				return fmt.Errorf("--budget %v: more than 0", budget)
			}
			if fleet.join != "" {
				b, f, err := fleet.with(cmd.Context(), c, cmd, adviseSettings)
				if err != nil {
					return err
				}
				defer b.Close()
				o.Fleet = f
			}
			var err error
			if o.Invariants, err = lab.ParseInvariants(invariants); err != nil {
				return err
			}
			o.Requests, o.Auto, o.Judging = unit.unit == unitRequest, unit.unit == configs.Units[0], c.judging()
			a, err := explore.Advise(cmd.Context(), args[0], o, budget)
			c.clearProgress()
			if a == nil {
				return err
			}
			write := adviceForm(c, a)
			if e := c.people(write); e != nil {
				return fmt.Errorf("write the advice: %w", e)
			}
			return concluded(err, a.Found(), a.Undecided)
		},
	}
	flags := cmd.Flags()
	origin.flags(flags, &o)
	flags.DurationVar(&budget, "budget", 10*time.Minute, "how long advise may take; it prints what it has not tried")
	unit.flag(flags)
	fleet.flags(flags)
	invariantFlag(flags, &invariants, "each interleaving")
	flags.StringVar(&o.Out, "out", "", "folder for the scenarios that show what goes wrong, and the whole report")
	return cmd
}

// adviceForm writes an advice as the user asks for it.
func adviceForm(c *common, a *explore.Advice) func(io.Writer) error {
	if c.format == "markdown" {
		return a.Markdown
	}
	return c.form(a)
}

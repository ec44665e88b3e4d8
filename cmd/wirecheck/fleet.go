package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wirecheck/fleet/bus"
	"wirecheck/fleet/work"
	"wirecheck/lab/hunt"
)

// fleetFlags say with whom a command shares its work.
type fleetFlags struct {
	join, name string
	lease      time.Duration
}

func (f *fleetFlags) flags(set *pflag.FlagSet) {
	set.StringVar(&f.join, "join", "", "share the work with a fleet: nats://HOST:PORT, or embedded:DIR for processes of one machine")
	set.StringVar(&f.name, "fleet", "default", "name of the fleet, where one server has several")
	set.DurationVar(&f.lease, "lease", work.Lease, "how long a process of the fleet may be silent before another one takes its work")
}

// open connects to the fleet. The kind of work keeps fleets of one name apart.
func (f *fleetFlags) open(ctx context.Context, c *common, kind string) (*bus.Bus, *work.Fleet, error) {
	if err := errors.Join(bus.Check(f.join), work.CheckName(f.name)); err != nil {
		return nil, nil, err
	}
	if f.lease < time.Second {
		return nil, nil, fmt.Errorf("lease %v: expected at least 1s", f.lease)
	}
	b, err := bus.Open(ctx, f.join, bus.Options{Name: kind, Changed: func(lost error) {
		if lost != nil && ctx.Err() == nil {
			c.log.Warn().Err(lost).Msg("the connection to the fleet is lost; it is tried again")
		}
	}})
	if err != nil {
		return nil, nil, err
	}
	fleet, err := work.Join(ctx, b, kind+"-"+f.name, f.lease)
	if err != nil {
		b.Close()
		return nil, nil, err
	}
	return b, fleet, nil
}

// fleetSettings are the flags of a hunt that all hunters of a fleet have in common.
var fleetSettings = []string{"seed", "oracle", "level", "duration", "cases", "limit", "orders", "group", "steer", "queries", "definitions", "reduction", "tries",
	"tables", "columns", "rows", "transactions", "statements", "faults", "exclude", "include"}

// settle gives the flags the values that the fleet's first process has. One that says another value is an error.
func settle(ctx context.Context, f *work.Fleet, set *pflag.FlagSet, names []string) error {
	mine := map[string]string{}
	for _, name := range names {
		mine[name] = settingOf(set.Lookup(name))
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	if text, err = f.Settle(ctx, "settings", text); err != nil {
		return err
	}
	first := map[string]string{}
	if err := json.Unmarshal(text, &first); err != nil {
		return fmt.Errorf("read the fleet's settings: %w", err)
	}
	var errs []error
	for _, name := range names {
		flag := set.Lookup(name)
		value, known := first[name]
		switch {
		case !known || value == mine[name]:
		case flag.Changed:
			errs = append(errs, fmt.Errorf("the fleet has --%s %q, and this process %q: leave it out, or name another --fleet", name, value, mine[name]))
		default:
			errs = append(errs, set.Set(name, value))
		}
	}
	return errors.Join(errs...)
}

// settingOf is a flag's value as it can be set.
func settingOf(flag *pflag.Flag) string {
	list, is := flag.Value.(pflag.SliceValue)
	if !is {
		return flag.Value.String()
	}
	var text strings.Builder
	w := csv.NewWriter(&text)
	_ = w.Write(list.GetSlice()) // a builder takes all
	w.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

// adviseSettings are the flags of an advice that all processes of a fleet have in common.
var adviseSettings = []string{"seed", "infer-schema", "database", "session-sql", "invariant", "budget", "unit", "unit-gap", "limit"}

// with makes a command one of a fleet that does the same with the same settings. The caller closes the bus.
func (f *fleetFlags) with(ctx context.Context, c *common, cmd *cobra.Command, settings []string) (*bus.Bus, *work.Fleet, error) {
	b, fleet, err := f.open(ctx, c, cmd.Name())
	if err != nil {
		return nil, nil, err
	}
	c.chooseSeed() // which counts for the first one
	if err := settle(ctx, fleet, cmd.Flags(), settings); err != nil {
		b.Close()
		return nil, nil, err
	}
	return b, fleet, nil
}

// joinFleet makes a hunt one of a fleet. The caller closes the bus.
func joinFleet(ctx context.Context, c *common, cmd *cobra.Command, f *fleetFlags, o *hunt.Options) (*bus.Bus, error) {
	if o.Resume {
		return nil, errors.New("--join goes on with the fleet's hunt by itself: leave out --resume")
	}
	b, fleet, err := f.open(ctx, c, "hunt")
	if err != nil {
		return nil, err
	}
	o.Fleet = fleet
	if o.Engine == "" {
		o.Engine, err = hunt.FleetEngine(ctx, fleet)
	}
	if err == nil && o.Engine == "" {
		err = errors.New("the first hunter of a fleet needs --engine")
	}
	c.chooseSeed() // which counts for the first one
	if err == nil {
		err = settle(ctx, fleet, cmd.Flags(), fleetSettings)
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func newHuntStatusCommand(c *common) *cobra.Command {
	f := fleetFlags{lease: work.Lease}
	cmd := &cobra.Command{
		Use:   "status WHERE",
		Short: "Show how far a fleet of hunters has come",
		Long: `status shows what the hunters of "wirecheck hunt --join WHERE" have done: cases,
the cases per second of those that work, the bugs, and each hunter with its last
sign of life.`,
		Example: "  wirecheck hunt status nats://127.0.0.1:4222\n  wirecheck hunt status embedded:fleet/ --format json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := errors.Join(bus.Check(args[0]), work.CheckName(f.name)); err != nil {
				return err
			}
			if dir, is := strings.CutPrefix(args[0], bus.Embedded); is {
				if _, err := os.Stat(dir); err != nil {
					return fmt.Errorf("look for a fleet: %w", err)
				}
			}
			b, err := bus.Open(cmd.Context(), args[0], bus.Options{Name: "status"})
			if err != nil {
				return err
			}
			defer b.Close()
			fleet, err := work.Look(cmd.Context(), b, "hunt-"+f.name)
			if err != nil {
				return err
			}
			s, err := hunt.ReadStatus(cmd.Context(), fleet)
			if err != nil {
				return fmt.Errorf("read the fleet's state: %w", err)
			}
			if c.format == "json" {
				return s.JSON(c.stdout)
			}
			return s.Text(c.stdout)
		},
	}
	cmd.Flags().StringVar(&f.name, "fleet", "default", "name of the fleet")
	return cmd
}

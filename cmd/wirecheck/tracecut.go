package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"wirecheck/product"
	"wirecheck/statement"
	dialect "wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

func newTraceCutCommand(c *common) *cobra.Command {
	var o trace.ReadOptions
	var cut trace.Cut
	var from, to, output string
	var sessions []uint
	cmd := &cobra.Command{
		Use:   "cut FILE -o FILE",
		Short: "Write a part of a trace to a new file",
		Long: `cut keeps the statements that began within the times, and those of the sessions,
that you name. With --tables it keeps the statements on these tables, the
statements that name no table (BEGIN, COMMIT, SET) of the sessions that use
them, and every statement whose tables are not known. Sessions keep their
numbers.

cut leaves out the row versions that a proxy recorded: "wirecheck check" needs
the whole trace.`,
		Example: `  wirecheck trace cut shop.wct --from 09:31:14 --to 09:31:15 -o part.wct
  wirecheck trace cut shop.wct --session 4,5 -o two.wct
  wirecheck trace cut shop.wct --tables 'coupon,shop.order*' -o coupons.wct`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needOutput(output); err != nil {
				return err
			}
			if from == "" && to == "" && len(sessions) == 0 && len(cut.Tables) == 0 {
				return errors.New("nothing to cut: say --from, --to, --session or --tables")
			}
			var err error
			if cut.From, cut.To, err = window(args[0], from, to); err != nil {
				return err
			}
			cut.Sessions, cut.Touches = sessionSet(sessions), newTableFinder().find
			return cutTrace(cmd.Context(), c, args[0], output, o, cut)
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "leave out what began before this time: "+timeForms)
	f.StringVar(&to, "to", "", "leave out what began at this time or later")
	f.UintSliceVar(&sessions, "session", nil, "keep these sessions")
	f.StringSliceVar(&cut.Tables, "tables", nil, "keep statements on these tables: patterns, as in 'account,shop.order*'")
	outputFlag(cmd, &output)
	damagedFlag(cmd, &o)
	return cmd
}

func cutTrace(ctx context.Context, c *common, path, output string, o trace.ReadOptions, cut trace.Cut) error {
	k := trace.NewCutter(cut)
	if len(cut.Tables) > 0 {
		err := readTrace(ctx, c, path, o, false, func(r *trace.Record) error {
			k.Look(r)
			return nil
		})
		if err != nil {
			return err
		}
		k.Rewind()
	}
	err := copyTrace(path, output, o, func(h *trace.Header) { h.Observed = false }, func(w *trace.Writer) error {
		return readTrace(ctx, c, path, o, false, func(r *trace.Record) error { return k.Keep(r, w.Write) })
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "statements kept: %d\n", k.Kept)
	if k.Unknown > 0 {
		fmt.Fprintf(c.stdout, "of these, kept because it is not known which tables they touch: %d\n", k.Unknown)
	}
	if k.Midway > 0 {
		fmt.Fprintf(c.stdout, "sessions that begin in the middle of a transaction: %d\n", k.Midway)
	}
	if k.Events > 0 {
		fmt.Fprintf(c.stdout, "left out, since a part of a history cannot be judged: what a proxy saw of row versions (%d events)\n", k.Events)
	}
	if k.Kept == 0 {
		fmt.Fprintln(c.stderr, "wirecheck: nothing was kept")
		return exitUnknown
	}
	return nil
}

// tableFinder asks the parsers which tables statements name. Production sends the same texts again and again.
type tableFinder struct {
	known map[[2]string]foundTables
}

type foundTables struct {
	names []string
	known bool
}

// maxFound bounds the texts that are remembered.
const maxFound = 10_000

func newTableFinder() *tableFinder { return &tableFinder{known: map[[2]string]foundTables{}} }

func (t *tableFinder) find(engine, sql string) ([]string, bool) {
	key := [2]string{engine, sql}
	if f, ok := t.known[key]; ok {
		return f.names, f.known
	}
	read := postgres.Touches
	if lex.Of(product.Of(engine).Dialect) == lex.MySQL {
		read = dialect.New(dialect.Flavor(engine)).Touches
	}
	f := foundTables{known: true}
	for _, touch := range read(sql, func(string) bool { return true }) {
		f.known = f.known && touch.Kind != statement.TouchOpaque && touch.Kind != statement.TouchUnknown
		for _, names := range [][]string{touch.Reads, touch.Writes, touch.Plain} {
			f.names = append(f.names, names...)
		}
	}
	slices.Sort(f.names)
	f.names = slices.Compact(f.names)
	if len(t.known) < maxFound {
		t.known[key] = f
	}
	return f.names, f.known
}

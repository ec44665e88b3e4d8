package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/trace"
)

func newTraceCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Import server logs; show, count, cut, redact and export traces",
		Long: `A trace is what happened at a server: which session sent which statement when,
and what the server answered, as far as the source shows it. A trace file
(.wct) holds a trace. "import" makes one from a log of PostgreSQL, MySQL or
MariaDB, or from a packet capture. The other commands read trace files.

Trace files can hold personal data. Only their owner can read them; "redact"
replaces all values.`,
		Example: `  wirecheck trace import postgresql-*.csv -o shop.wct
  wirecheck trace stats shop.wct
  wirecheck trace show shop.wct --session 4
  wirecheck trace cut shop.wct --from +10s --to +20s -o part.wct
  wirecheck trace redact shop.wct -o redacted.wct
  wirecheck trace export shop.wct --out shop`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTraceImportCommand(c), newTraceShowCommand(c), newTraceStatsCommand(c), newTraceCutCommand(c), newTraceRedactCommand(c),
		newTraceExportCommand(c))
	return cmd
}

// readTrace gives the records of a trace file to a function, sorted if asked for, and says on stderr what is missing of it.
func readTrace(ctx context.Context, c *common, path string, o trace.ReadOptions, sorted bool, each func(*trace.Record) error) (err error) {
	r, err := trace.Open(path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.Wrap(func(in io.Reader) io.Reader { return interruptible{ctx, in} })
	if sorted && !r.Header().Sorted {
		if err := trace.Sort(r, "", each); err != nil {
			return err
		}
	} else {
		var rec trace.Record
		for {
			if err := r.Next(&rec); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
			if err := each(&rec); err != nil {
				return err
			}
		}
	}
	if r.Warning() != "" {
		fmt.Fprintln(c.stderr, "wirecheck: warning:", r.Warning())
	}
	return nil
}

// interruptible is a reader that ends with a context.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

// Read reads unless the context has ended.
func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// copyTrace writes a trace file that is made from another one.
func copyTrace(from, to string, o trace.ReadOptions, change func(*trace.Header), fill func(*trace.Writer) error) (err error) {
	r, err := trace.Open(from, o)
	if err != nil {
		return err
	}
	h := r.Header()
	if err := r.Close(); err != nil {
		return err
	}
	h.Run, h.Part, h.Carried = "", 0, 0 // of all parts one is made
	if change != nil {
		change(&h)
	}
	return writeTrace(to, h, fill)
}

// writeTrace writes a trace file. If it fails there is none.
func writeTrace(path string, h trace.Header, fill func(*trace.Writer) error) error {
	w, err := trace.Create(path, h)
	if err != nil {
		return err
	}
	err = fill(w)
	err = errors.Join(err, w.Close())
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// outputFlag adds --output, which must be given.
func outputFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVarP(to, "output", "o", "", "the trace file to write; it must not exist")
}

func needOutput(path string) error {
	if path == "" {
		return errors.New("no trace file to write to: name it with -o")
	}
	return nil
}

// damagedFlag adds --skip-damaged.
func damagedFlag(cmd *cobra.Command, o *trace.ReadOptions) {
	cmd.Flags().BoolVar(&o.SkipDamaged, "skip-damaged", false, "continue after a block whose checksum is wrong")
}

// timeForms are how people write times.
const timeForms = `"2026-11-20 09:31:14.5" (UTC), "2026-11-20T10:31:14+01:00", "09:31:14" (UTC, on the trace's first day), "+90s" (since its beginning)`

// parseMoment reads a time; first is when the trace begins.
func parseMoment(s string, first int64) (int64, error) {
	if d, ok := strings.CutPrefix(s, "+"); ok {
		after, err := time.ParseDuration(d)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration, as in +1m30s", s)
		}
		return first + int64(after), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			return t.UnixNano(), nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			day := time.Unix(0, first).UTC().Truncate(24 * time.Hour)
			return day.Add(t.Sub(t.Truncate(24 * time.Hour))).UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("%q is no time: write %s", s, timeForms)
}

// window reads --from and --to.
func window(path, from, to string) (int64, int64, error) {
	if from == "" && to == "" {
		return 0, 0, nil
	}
	first, err := firstMoment(path)
	if err != nil {
		return 0, 0, err
	}
	var at [2]int64
	for i, s := range []string{from, to} {
		if s == "" {
			continue
		}
		if at[i], err = parseMoment(s, first); err != nil {
			return 0, 0, err
		}
	}
	if at[0] != 0 && at[1] != 0 && at[1] <= at[0] {
		return 0, 0, fmt.Errorf("--to %q is not later than --from %q", to, from)
	}
	return at[0], at[1], nil
}

// firstMoment gives the time of the first record that has one.
func firstMoment(path string) (at int64, err error) {
	r, err := trace.Open(path, trace.ReadOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var rec trace.Record
	for {
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			return 0, nil
		} else if err != nil {
			return 0, err
		}
		if at := rec.At(); at != 0 {
			return at, nil
		}
	}
}

// sessionSet makes a set of the numbers of --session.
func sessionSet(numbers []uint) map[uint64]bool {
	set := map[uint64]bool{}
	for _, n := range numbers {
		set[uint64(n)] = true
	}
	return set
}

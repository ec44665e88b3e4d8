package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wirecheck/report/page"
	"wirecheck/trace"
)

func newTraceShowCommand(c *common) *cobra.Command {
	var o trace.ReadOptions
	var from, to string
	var sessions []uint
	var asRecorded, failed, history bool
	text := trace.TextOptions{}
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Print the statements of a trace",
		Long: `show prints one line for each statement, in the order of their starts: the time
(UTC), the session, the status of the transaction before the statement (I none,
T open, E failed, ? not known), the statement with its parameters, and its
result. The result is rows, a number of affected rows, an error, or ? if the
source does not contain it.

--format json prints one object for each record, --format html a page with a
column for each session.`,
		Example: `  wirecheck trace show shop.wct --session 4 --session 5
  wirecheck trace show shop.wct --from 09:31:14 --to 09:31:15 --rows 10
  wirecheck trace show shop.wct --failed`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			begin, end, err := window(args[0], from, to)
			if err != nil {
				return err
			}
			only := sessionSet(sessions)
			out := bufio.NewWriter(c.stdout)
			var line []byte
			lanes := page.Trace{Title: args[0]}
			err = readTrace(cmd.Context(), c, args[0], o, !asRecorded, func(r *trace.Record) (err error) {
				if at := r.At(); begin != 0 && at < begin || end != 0 && at >= end || len(only) > 0 && !only[r.Session] {
					return nil
				}
				if r.Kind == trace.KindHistory && !history && c.format != "json" {
					return nil
				}
				if failed && (r.Statement == nil || r.Statement.Error == nil) {
					return nil
				}
				switch c.format {
				case "json":
					line, err = json.Marshal(r)
					line = append(line, '\n')
				case formatHTML:
					addMoment(&lanes, r, text)
					return nil
				default:
					line = trace.AppendText(line[:0], r, text)
				}
				if err == nil {
					_, err = out.Write(line)
				}
				return err
			})
			if err != nil {
				return err
			}
			if c.format == formatHTML {
				err = page.WriteTrace(out, &lanes)
			}
			if err := errors.Join(err, out.Flush()); err != nil {
				return fmt.Errorf("write statements: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "leave out what began before this time: "+timeForms)
	f.StringVar(&to, "to", "", "leave out what began at this time or later")
	f.UintSliceVar(&sessions, "session", nil, "only these sessions")
	f.BoolVar(&failed, "failed", false, "only statements that failed")
	f.BoolVar(&history, "history", false, "also print the row versions that a proxy in mode observe recorded (--format json always does)")
	f.BoolVar(&asRecorded, "as-recorded", false, "print in the order of the file, mostly that of ends, without sorting")
	f.BoolVar(&text.Date, "date", false, "print the day with the time")
	f.IntVar(&text.Rows, "rows", 3, "rows of each result to print")
	f.IntVar(&text.SQL, "length", 0, "cut texts to this many characters; 0: do not cut")
	damagedFlag(cmd, &o)
	return cmd
}

// addMoment adds a record's line to a page of the trace.
func addMoment(lanes *page.Trace, r *trace.Record, o trace.TextOptions) {
	line := strings.TrimSpace(string(trace.AppendText(nil, r, o)))
	at, rest, _ := strings.Cut(line, " s")
	_, rest, _ = strings.Cut(rest, " ")
	lanes.Add(at, r.Session, strings.TrimPrefix(strings.TrimSpace(rest), "- "), r.Statement != nil && r.Statement.Error != nil)
}

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/history/prose"
	"wirecheck/report"
	"wirecheck/trace"
)

func newTraceStatsCommand(c *common) *cobra.Command {
	var o trace.ReadOptions
	cmd := &cobra.Command{
		Use:   "stats FILE",
		Short: "Count what a trace contains",
		Long: `stats counts sessions, transactions, statements by kind, errors and durations,
and shows how many transactions overlapped. Medians and percentiles are exact
within 4%.`,
		Example: `  wirecheck trace stats shop.wct
  wirecheck trace stats --format json shop.wct`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := trace.NewStats()
			err := readTrace(cmd.Context(), c, args[0], o, true, func(r *trace.Record) error {
				s.Add(r)
				return nil
			})
			if err != nil {
				return err
			}
			s.Finish()
			if c.format == "json" {
				return report.Indented(c.stdout, s)
			}
			return printStats(c.stdout, s)
		},
	}
	damagedFlag(cmd, &o)
	return cmd
}

// maxShown is how many of a list's lines are printed.
const maxShown = 12

func printStats(out io.Writer, s *trace.Stats) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	day := func(at int64) string { return time.Unix(0, at).UTC().Format("2006-01-02 15:04:05.000") }
	if s.First != 0 {
		fmt.Fprintf(w, "%s to %s UTC (%s)\n", day(s.First), day(s.Last), trace.Took(s.Last-s.First))
	}
	fmt.Fprintf(w, "sessions: %d, joined after their beginning: %d, encrypted: %d\n", s.Sessions, s.Joined, s.Encrypted)
	t := s.Transactions
	fmt.Fprintf(w, "transactions: %d, autocommit statements: %d", t.Begun, t.Autocommit)
	if t.Unknown > 0 {
		fmt.Fprintf(w, ", statements of which it is not known: %d", t.Unknown)
	}
	fmt.Fprintf(w, "\nstatements: %d, failed: %d, without text: %d, without parameters: %d, lock waits: %d\n", s.Statements, s.Failed, s.Lost, s.NoParams, s.Waits)
	if s.Events > 0 {
		fmt.Fprintf(w, "events of the history (wirecheck check judges them): %d\n", s.Events)
	}
	if s.Notes > 0 {
		fmt.Fprintf(w, "notes of what is missing (trace show prints them): %d\n", s.Notes)
	}
	fmt.Fprintf(w, "at the same time: %d transactions at most, %d of %d began while another one was open; %d statements at most\n", t.Most, t.Overlapped, t.Begun, s.MostStatements)
	fmt.Fprintf(w, "\nkind\tstatements\tfailed\tmedian\tp99\tmax\ttotal\n")
	for i, k := range s.Kinds {
		if i == maxShown {
			fmt.Fprintf(w, "and %d more\n", len(s.Kinds)-i)
			break
		}
		fmt.Fprintf(w, "%s\t%d\t%d", k.Kind, k.N, k.Failed)
		if k.Timed > 0 {
			fmt.Fprintf(w, "\t%s\t%s\t%s\t%s", trace.Took(k.Median), trace.Took(k.P99), trace.Took(k.Max), trace.Took(k.Total))
		}
		fmt.Fprintln(w)
	}
	if len(s.Errors) > 0 {
		fmt.Fprintf(w, "\nerror\tstatements\tthe first one's message\n")
	}
	for i, e := range s.Errors {
		if i == maxShown {
			fmt.Fprintf(w, "and %d more\n", len(s.Errors)-i)
			break
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", e.Code, e.N, prose.Line(e.Message, 0))
	}
	fmt.Fprintf(w, "\nsessions by\n")
	for i, n := range s.By {
		if i > 2*maxShown {
			fmt.Fprintf(w, "and %d more\n", len(s.By)-i)
			break
		}
		fmt.Fprintf(w, "%s\t%s\t%d\n", n.What, n.Name, n.N)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write statistics: %w", err)
	}
	return nil
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
	"wirecheck/report/page"
)

// newExplainCommand makes "wirecheck explain".
func newExplainCommand(c *common) *cobra.Command {
	var strict bool
	var unit unitFlags
	cmd := &cobra.Command{
		Use:   "explain ID [FILE]",
		Short: "Show one finding of a recorded history, with its proof",
		Long: `explain judges what "wirecheck proxy --record" wrote, as check does, and prints
the finding with that id: what happened, the level, the remedies and the proof.
A warning has the id in parentheses: (WC-a75b12). Without FILE it reads standard
input.

Exit status: 0 the finding is shown; 2 it is not there, or wirecheck could not
do its work.`,
		Example: `  wirecheck explain WC-a75b12 shop.wct
  wirecheck explain WC-a75b12 shop.jsonl --format markdown
  wirecheck explain WC-a75b12 shop.jsonl --format svg > lost-update.svg`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unit.check(); err != nil {
				return err
			}
			path := "-"
			if len(args) == 2 {
				path = args[1]
			}
			in, name, _, done, err := openHistory(cmd, path, inputNative)
			if err != nil {
				return err
			}
			defer done()
			k, _, err := judge(cmd, in, path, name, isolation.Options{Strict: strict, Transactions: unit.unit == unitTransaction, Possible: true})
			if err != nil {
				return err
			}
			found := k.Summary()
			ids := make([]string, len(found))
			for i := range found {
				if ids[i] = found[i].ID; strings.EqualFold(ids[i], args[0]) {
					r := report.Result{Source: path, Findings: []oracle.Finding{found[i]}}
					switch c.format {
					case "text":
						return report.Text(c.stdout, r.Findings)
					case formatSVG:
						return page.Picture(c.stdout, found[i])
					}
					return writeFindings(c.stdout, r, c.format, path)
				}
			}
			if len(ids) == 0 {
				return fmt.Errorf("%s: there is no finding in it", path)
			}
			slices.Sort(ids)
			return fmt.Errorf("%s: there is no finding %s in it; it has %s", path, args[0], strings.Join(ids, ", "))
		},
	}
	unit.flags(cmd.Flags())
	cmd.Flags().BoolVar(&strict, "strict", false, "also show cycles that only session order or real time forbids")
	return cmd
}

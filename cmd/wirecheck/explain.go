package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/lab/explore"
	"wirecheck/offline"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/report"
	"wirecheck/report/page"
)

// newExplainCommand makes "wirecheck explain".
func newExplainCommand(c *common) *cobra.Command {
	var strict bool
	var unit unitFlags
	o := explore.Options{Limit: time.Minute, Choose: c.chooseSeed, Progress: c.progressOf}
	cmd := &cobra.Command{
		Use:   "explain ID [FILE]",
		Short: "Show one finding of a recorded history, with its proof",
		Long: `explain judges what "wirecheck proxy --record" wrote, as check does, and prints
the finding with that id: what happened, the level, the remedies and the proof.
A warning has the id in parentheses: (WC-a75b12). Without FILE it reads standard
input.

--format scenario makes a scenario of the finding's transactions, which
"wirecheck run" executes. FILE is a trace (.wct) then, and --snapshot a dump of
the database from before the recording. wirecheck executes the trace on a
private server up to the finding, for the state in which its transactions began,
and prints the scenario only if it shows the anomaly there.

Exit status: 0 the finding is shown; 2 it is not there, or wirecheck could not
do its work.`,
		Example: `  wirecheck explain WC-a75b12 shop.wct
  wirecheck explain WC-a75b12 shop.jsonl --format markdown
  wirecheck explain WC-a75b12 shop.jsonl --format svg > lost-update.svg
  wirecheck explain WC-a75b12 shop.wct --snapshot before.sql --format scenario > again.spec
  wirecheck run again.spec`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unit.check(); err != nil {
				return err
			}
			path := "-"
			if len(args) == 2 {
				path = args[1]
			}
			if c.format == formatScenario && !isTraceFile(path) {
				return fmt.Errorf("%s is not a trace, and a scenario can only be made of one: wirecheck proxy --record NAME.wct", path)
			}
			in, name, _, done, err := openHistory(cmd, path, inputNative)
			if err != nil {
				return err
			}
			defer done()
			j, err := judge(cmd, []offline.Input{{In: in, Path: path, Name: name}}, isolation.Options{Strict: strict, Transactions: unit.unit == unitTransaction, Possible: true}, false, nil)
			if err != nil {
				return err
			}
			found := j.Checker.Summary()
			ids := make([]string, len(found))
			for i := range found {
				if ids[i] = found[i].ID; strings.EqualFold(ids[i], args[0]) {
					r := report.Result{Source: path, Findings: []oracle.Finding{found[i]}}
					switch c.format {
					case "text":
						return report.Text(c.stdout, r.Findings)
					case formatSVG:
						return page.Picture(c.stdout, found[i])
					case formatScenario:
						o.Judging = c.judging()
						text, err := explore.Scenario(cmd.Context(), path, found[i], o)
						c.clearProgress()
						if err != nil {
							return err
						}
						_, err = io.WriteString(c.stdout, text)
						return err
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
	cmd.Flags().StringVar(&o.Snapshot, "snapshot", "", "--format scenario: dump of the database before the first statement (as for wirecheck replay)")
	cmd.Flags().StringVar(&o.Engine, "engine", "", "--format scenario: where to execute the trace: a name (private server) or a URL (default: a private server of the trace's product)")
	cmd.Flags().BoolVar(&strict, "strict", false, "also show cycles that only session order or real time forbids")
	return cmd
}

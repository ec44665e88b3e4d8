package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/configs"
	"wirecheck/history/prose"
	"wirecheck/offline"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
	"wirecheck/product"
	"wirecheck/report"
	"wirecheck/trace/foreign"
)

// newCheckCommand makes "wirecheck check". The flag --format is the root's.
func newCheckCommand() *cobra.Command {
	var named, input string
	var strict, explain, jepsen bool
	var least float64
	var unit unitFlags
	var known baseline
	var values configs.Switch
	cmd := &cobra.Command{
		Use:   "check HISTORY...",
		Short: "Judge a recorded history",
		Long: `check reads what "wirecheck proxy --record" wrote and reports the anomalies in
it. The findings and their ids are those that the proxy reported live. check
needs no server.

It also says which isolation levels of the literature the history satisfies:
the weakest levels that it breaks, with the shortest proof of each, and the
strongest ones that it satisfies. With --level NAME for one of them (causal,
"snapshot isolation", "strict serializable", ...), the exit status is 0 if the
history satisfies it, 1 if not, and 3 if wirecheck did not see enough to say so.
--level mixed asks of each transaction for the level that it ran at.

HISTORY is a history (.jsonl), a trace (.wct) that a proxy recorded in mode
observe, or - for standard input. Of a trace in several parts, name the first.
It may also be a history of another checker: Elle and Jepsen (EDN or JSON),
Plume, PolySI, IsoVista and AWDIT (text), dbcop and TimeKiller (JSON).

Of several proxies in front of the same databases, name all histories: they are
judged as one, with the anomalies between sessions of different proxies. The
proxies' clocks are not compared, so levels that ask for real time stay unknown.

Exit status: 0 nothing found; 1 something found; 2 wirecheck could not read the
history; 3 nothing found, but that means nothing: wirecheck saw no statement
exactly, or fewer than --min-coverage asks for, most of them failed by mistake
(an unknown table, say), the history is cut off, or, with --unit request, there
are no requests in it.`,
		Example: `  wirecheck check shop.jsonl
  wirecheck check shop.wct
  wirecheck check --format sarif shop.jsonl > shop.sarif
  wirecheck check --format html shop.jsonl > shop.html
  wirecheck check --level serializable shop.jsonl  # as if all ran at that level
  wirecheck check --level causal shop.jsonl        # is it causally consistent?
  zcat shop.jsonl.gz | wirecheck check -
  wirecheck check host1.wct host2.wct host3.wct    # of three proxies
  wirecheck check --jepsen store/latest/history.edn`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := cmd.Flags().GetString("format")
			if err != nil {
				return err
			}
			l, asked, err := parseLevel(named)
			if err = errors.Join(checkInput(input), err); err != nil {
				if jepsen {
					return asJepsen(cmd, err, true)
				}
				return err
			}
			if err := unit.check(); err != nil {
				return err
			}
			if err := errors.Join(checkLeast(least), known.check()); err != nil {
				return err
			}
			inputs, found, done, err := openHistories(cmd, args, input)
			defer done()
			if err == nil && jepsen && found == inputNative && blank(inputs[0].In) {
				inputs[0].In, found = strings.NewReader(""), foreign.Elle // a history without a transaction, of which nothing is known
			}
			switch {
			case err != nil:
			case found != inputNative:
				err = checkForeign(cmd, inputs[0].In, args[0], inputs[0].Name, found, foreignFlags{l, format, asked, strict, jepsen, known})
			case jepsen:
				err = errors.New("--jepsen judges histories of other checkers: check a history of wirecheck's own without it")
			}
			if jepsen {
				return asJepsen(cmd, err, false)
			}
			if err != nil || found != inputNative {
				return err
			}
			return check(cmd, inputs, isolation.Options{Level: l, Strict: strict, Transactions: unit.unit == unitTransaction, Possible: unit.possible, Explain: explain, HideValues: !bool(values), Levels: showsLevels(asked, format)}, asked, format, unit.unit, least, known)
		},
	}
	cmd.Flags().StringVar(&named, "level", "", "judge as if every transaction had run at this SQL level (default: the recorded levels), or say whether the history satisfies this level of the literature")
	cmd.Flags().StringVar(&input, "input", inputAuto, "format of the history: "+strings.Join(inputs, ", "))
	cmd.Flags().BoolVar(&jepsen, "jepsen", false, "judge a history of another checker by strict serializability, or by --level, and end as Jepsen's commands do: 0 valid, 1 invalid, 2 unknown, 254 wrong arguments, 255 the history could not be read")
	unit.flags(cmd.Flags())
	cmd.Flags().BoolVar(&explain, "explain-coverage", false, explainUsage)
	values = true
	cmd.Flags().Var(&values, "values", valuesUsage)
	leastFlag(cmd.Flags(), &least)
	known.flags(cmd.Flags())
	cmd.Flags().BoolVar(&strict, "strict", false, "also report cycles that only session order or real time forbids")
	return cmd
}

// valuesUsage is that of the flag --values.
const valuesUsage = "show values in findings: what was read, what was assigned, parameters"

// explainUsage is that of the flag --explain-coverage.
const explainUsage = "show which statements wirecheck did not see exactly, or whose condition it did not judge: their share by reason and shape"

// parseLevel reads the flag --level: a level of SQL, one of the literature, or a name that both have.
func parseLevel(text string) (sql string, asked *level.Level, err error) {
	if text == "" {
		return "", nil, nil
	}
	sql, err = product.ParseLevel(text)
	asked, also := level.Parse(text)
	if err != nil && also != nil {
		return "", nil, fmt.Errorf("%w; or of the literature: %w", err, also)
	}
	return sql, asked, nil
}

// check judges one history and prints the result.
func check(cmd *cobra.Command, inputs []offline.Input, opts isolation.Options, asked *level.Level, format, unit string, least float64, known baseline) error {
	j, err := judge(cmd, inputs, opts, asked != nil, nil)
	if err != nil {
		return err
	}
	c := j.Checker
	result := judged(c.Summary(), c.Coverage(), unit, least, j.Missing)
	result.Source = inputs[0].Path
	again := result.Source
	if len(inputs) > 1 {
		again, result.Source = "", sourceOf(inputs)
	}
	if opts.Levels {
		if result.Levels, err = j.Levels(asked); err != nil {
			return err
		}
	}
	if opts.Explain {
		result.Explained = c.Coverage().Explain()
	}
	if err := known.apply(&result, time.Now()); err != nil {
		return err
	}
	if err := printResult(cmd.OutOrStdout(), result, format, again); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if asked == nil || opts.Level != "" {
		return status(result)
	}
	return levelStatus(result)
}

// showsLevels reports whether a report says which levels the history satisfies.
func showsLevels(asked *level.Level, format string) bool {
	return asked != nil || format == "text" || format == "json"
}

// levelStatus is the exit status where the question is whether the history satisfies a level of the literature.
func levelStatus(r report.Result) error {
	switch r.Levels.State(r.Undecided) {
	case level.Broken:
		return exitFound
	case level.Unknown:
		return exitUnknown
	}
	return nil
}

// printResult writes the result, as it suits a terminal if it goes to one. recorded is the file of which the findings can be judged again; empty: there is none.
func printResult(w io.Writer, r report.Result, format, recorded string) error {
	return writeResult(w, r, format, recorded, terminalWidth(w))
}

// writeResult is printResult for a terminal of this width; 0: it is none.
func writeResult(w io.Writer, r report.Result, format, recorded string, width int) error {
	if format != "text" || width == 0 {
		return writeFindings(w, r, format, recorded)
	}
	look := report.Look{Color: colorful(), Width: width, Again: again(recorded)}
	if err := look.Text(w, r.Findings); err != nil {
		return err
	}
	var text strings.Builder
	if err := report.Summary(&text, r); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := io.WriteString(w, prose.Wrap(line, width, "", "  ")); err != nil {
			return err
		}
	}
	return nil
}

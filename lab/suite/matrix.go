package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// phenomena says which phenomenon an outcome of the Hermitage scenarios is (testdata/hermitage). Where the dependencies that make it one
// are between a condition and the rows that it passed over, the isolation oracle sees them if it can evaluate the condition; it may
// still see the phenomenon where rows were read besides.
var phenomena = map[string]struct {
	is        anomaly.Phenomenon
	predicate anomaly.Phenomenon // what it is where the oracle evaluates the conditions
	name      string             // if it is one kind of these
}{
	"G0":                    {is: anomaly.PG0},
	"G1a":                   {is: anomaly.PG1a},
	"G1b":                   {is: anomaly.PG1b},
	"G1c":                   {is: anomaly.PG1c},
	"OTV":                   {is: anomaly.POTV},
	"PMP":                   {is: anomaly.PGSingle, predicate: anomaly.PPMP},
	"PMP-write":             {is: anomaly.PGSingle, predicate: anomaly.PPMP},
	"P4":                    {is: anomaly.P4},
	"G-single":              {is: anomaly.PGSingle},
	"G-single-dependencies": {is: anomaly.PGSingle},
	"G-single-write-1":      {is: anomaly.PGSingle, predicate: anomaly.PPMP, name: anomaly.ReadSkew},
	"G-single-write-2":      {is: anomaly.PGSingle, predicate: anomaly.PPMP, name: anomaly.ReadSkew},
	"G2-item":               {is: anomaly.PG2Item},
	"G2":                    {is: anomaly.PG2Item, predicate: anomaly.PG2},
	"G2-two-edges":          {is: anomaly.PG2Item},
}

// The relations of what the oracle says to what the results show.
const (
	agrees    = "agrees"
	notJudged = "not judged"
	disagrees = "**disagrees**"
)

// matrixCell is one outcome on one engine at one level.
type matrixCell struct {
	results string // what the data say: "let through", "prevented: blocked"
	oracle  string // what the isolation oracle found; empty: it was not asked
	verdict string // agrees, notJudged, disagrees; empty: there is nothing to compare
	why     string // of notJudged and disagrees
}

func (m matrixCell) String() string {
	parts := []string{m.results}
	if m.oracle != "" {
		parts = append(parts, "oracle: "+m.oracle)
	}
	if m.verdict != "" {
		parts = append(parts, m.verdict)
	}
	text := strings.Join(parts, "; ")
	if m.why != "" {
		text += " (" + m.why + ")"
	}
	return prose.Printable(text)
}

// What the results of a cell may say.
const (
	letThrough = "let through"
	notMeant   = "not meant for it"
)

// matrix executes the files on all engines and prints a table for each. An engine that is not installed is said to be.
func (r *runner) matrix(ctx context.Context, specs []*scenario.Spec) (c Conclusion, err error) {
	if len(r.o.Engines) == 0 {
		return c, fmt.Errorf("--format %s needs --engine: one or more, separated by commas", r.o.Format)
	}
	var all []matrixCell
	var rows []oracleRow
	for i, name := range r.o.Engines {
		d, err := backends.Missing(name)
		if err != nil {
			return c, err
		}
		var out bytes.Buffer
		if i > 0 {
			fmt.Fprintln(&out)
		}
		if d != nil {
			if r.o.Format == formatMarkdown {
				fmt.Fprintf(&out, "## %s (`%s`)\n\nNot installed. What installs it: `%s`\n", d.Title, name, d.Install)
			} else {
				fmt.Fprintf(&out, "%s (%s) is not installed. What installs it: %s\n", d.Title, name, d.Install)
			}
		} else if len(r.panel(&scenario.Spec{}).Judges) > 0 {
			list, err := r.oracleMatrixOf(ctx, name, specs, &out)
			if err != nil {
				return c, err
			}
			rows = append(rows, list...)
		} else {
			cells, err := r.matrixOf(ctx, name, specs, &out)
			if err != nil {
				return c, err
			}
			all = append(all, cells...)
		}
		if _, err := r.o.Stdout.Write(out.Bytes()); err != nil {
			return c, fmt.Errorf("write the matrix: %w", err)
		}
	}
	c.Found = slices.ContainsFunc(rows, func(row oracleRow) bool { return len(row.wrong) > 0 }) ||
		slices.ContainsFunc(all, func(cell matrixCell) bool { return cell.verdict == disagrees })
	c.Unknown = slices.ContainsFunc(rows, func(row oracleRow) bool { return row.unknown }) ||
		slices.ContainsFunc(all, func(cell matrixCell) bool { return strings.HasPrefix(cell.results, "unknown") })
	return c, nil
}

// matrixOf executes the files on one engine, level by level, and writes the table.
func (r *runner) matrixOf(ctx context.Context, name string, specs []*scenario.Spec, out *bytes.Buffer) ([]matrixCell, error) {
	s, levels, err := r.levelsOf(ctx, name, &scenario.Spec{})
	if err != nil {
		return nil, err
	}
	rows, header := make([][]matrixCell, len(specs)), []string{"scenario"}
	var all []matrixCell
	for _, level := range levels {
		header = append(header, product.Of(s.Engine.Name).LevelTitle(level.History))
		cells, err := r.matrixAt(ctx, s, level, specs)
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", s.Engine.Title, level.SQL, err)
		}
		all = append(all, cells...)
		for i, cell := range cells {
			rows[i] = append(rows[i], cell)
		}
	}
	if r.o.Format == formatMatrix {
		r.marks(out, s, levels, specs, rows)
		return all, nil
	}
	head(out, s, name, header)
	for i, spec := range specs {
		fmt.Fprintf(out, "| %s |", strings.TrimSuffix(filepath.Base(spec.Name), ".spec"))
		for _, cell := range rows[i] {
			fmt.Fprintf(out, " %s |", strings.ReplaceAll(cell.String(), "|", `\|`))
		}
		fmt.Fprintln(out)
	}
	return all, nil
}

// head writes what stands above a table's rows.
func head(out io.Writer, s *backends.Instance, name string, columns []string) {
	fmt.Fprintf(out, "## %s (`%s`)\n\nVersion %s.\n\n| %s |\n|%s\n", s.Engine.Title, name, s.Version, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// matrixAt executes the files at one level, by the isolation oracle.
func (r *runner) matrixAt(ctx context.Context, s *backends.Instance, level product.Level, specs []*scenario.Spec) ([]matrixCell, error) {
	cells := slices.Repeat([]matrixCell{{results: notMeant}}, len(specs))
	t := targetOf(s, level)
	err := r.firsts(ctx, s, level, panel.Selection{Isolation: r.o.Oracles != "none"}, specs, func(i int, perm *scenario.Permutation, d *panel.Judgement) {
		cells[i] = cellOf(d.Report(specs[i], t), d, specs[i].Outcomes(perm))
	})
	return cells, err
}

// firsts executes the files at one level, in one database: the first permutation of each that is meant for it.
func (r *runner) firsts(
	ctx context.Context, s *backends.Instance, level product.Level, who panel.Selection, specs []*scenario.Spec, each func(i int, perm *scenario.Permutation, d *panel.Judgement),
) (err error) {
	p, err := panel.Open(ctx, s, lab.Config{Level: level, Case: r.o.Limit}, who, r.o.Judging)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(ctx)) }()
	defer r.o.Progress(0, 0, "")
	for i, spec := range specs {
		r.o.Progress(int64(i), int64(len(specs)), "%s, %s, %s", filepath.Base(spec.Name), s.Engine.Title, level.SQL)
		for perm := range spec.Orders(r.mode(spec), r.choice(spec, s, level, &runCount{})) {
			if !spec.For(perm, targetOf(s, level)) {
				continue
			}
			d, err := p.Run(ctx, spec, perm)
			if err != nil {
				return fmt.Errorf("%s: %w", spec.Name, err)
			}
			each(i, perm, d)
			break
		}
	}
	return nil
}

// cellOf compares what the results show with what the oracle found.
func cellOf(report panel.CaseReport, d *panel.Judgement, outcomes []scenario.Outcome) matrixCell {
	if d.Trouble != nil {
		return matrixCell{results: "unknown: " + d.Trouble.Error()}
	}
	through := len(report.Outcomes) > 0
	cell := matrixCell{results: letThrough}
	if !through {
		cell.results = "prevented: " + prevention(d.Events)
	}
	if !d.Judged {
		return cell
	}
	cell.oracle = "nothing"
	if len(report.Found) > 0 {
		cell.oracle = strings.Join(report.Found, ", ")
	}
	if len(report.Wrong) > 0 {
		cell.verdict, cell.why = disagrees, strings.Join(report.Wrong, ", ")
		return cell
	}
	if d.Unseen() {
		cell.oracle, cell.verdict, cell.why = notJudged, "", "nothing seen"
		return cell
	}
	if len(outcomes) == 1 {
		cell.verdict, cell.why = agreement(outcomes[0].Name, through, d)
	}
	return cell
}

// agreement compares what the results say of one of the Hermitage scenarios with what the oracle found. Anomalies of other
// kinds may be there besides: what a scenario is about is not all that happens in it. The scenarios' expect lines name them.
func agreement(outcome string, through bool, d *panel.Judgement) (verdict, why string) {
	p, known := phenomena[outcome]
	if !known {
		return "", ""
	}
	found := slices.ContainsFunc(d.Isolation.Findings, func(f oracle.Finding) bool {
		is, ok := anomaly.Broken(f.Class, f.Name)
		return ok && (is == p.is || is == p.predicate) && (p.name == "" || p.name == f.Name)
	})
	switch {
	case found == through:
		return agrees, ""
	case found:
		return disagrees, fmt.Sprintf("the results do not show %s", outcome)
	case p.predicate != "" && d.Isolation.Coverage.Unevaluated() > 0:
		return notJudged, d.Isolation.Coverage.WhyUnread()
	}
	return disagrees, fmt.Sprintf("the results show %s, which should be reported as %s", outcome, p.is)
}

// prevention says what kept a schedule from going wrong: a transaction was aborted, or else had to wait; if neither
// happened, it was by what the reads were shown.
func prevention(events []lab.Event) string {
	waited := false
	for _, ev := range events {
		if ev.Outcome.Reason != "" && ev.Outcome.Reason != answer.ReasonOther {
			return fmt.Sprintf("aborted (%s)", ev.Outcome.Reason)
		}
		waited = waited || ev.Kind == lab.Waits
	}
	if waited {
		return "blocked"
	}
	return "snapshot"
}

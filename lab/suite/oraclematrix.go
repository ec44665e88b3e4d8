package suite

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// oracleRow is what the oracles said of one scenario at one level.
type oracleRow struct {
	results string            // what the data show
	cells   map[string]string // by oracle
	wrong   []string          // what an oracle that the scenario names should have said, or should not
	unknown bool
}

// oracleMatrixOf executes the files on one engine at the levels that they are for, and writes what each oracle says.
func (r *runner) oracleMatrixOf(ctx context.Context, name string, specs []*scenario.Spec, out io.Writer) ([]oracleRow, error) {
	s, err := r.instance(ctx, name)
	if err != nil {
		return nil, err
	}
	levels, err := panel.Levels(s.Engine, r.o.Levels, &scenario.Spec{})
	if err != nil {
		return nil, err
	}
	var columns []string
	p := r.panel(&scenario.Spec{})
	if p.Isolation {
		columns = append(columns, panel.IsolationName)
	}
	for _, j := range p.Judges {
		columns = append(columns, j.Name)
	}
	rows := map[*scenario.Spec][]string{}
	var all []oracleRow
	for _, level := range levels {
		row := make([]*oracleRow, len(specs))
		err := r.firsts(ctx, s, level, p, specs, func(i int, _ *scenario.Permutation, d *panel.Judgement) {
			is := oracleRowOf(specs[i], d.Report(specs[i], targetOf(s, level)), d)
			row[i] = &is
		})
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", s.Engine.Title, level.SQL, err)
		}
		for i, spec := range specs {
			if row[i] == nil {
				continue
			}
			all = append(all, *row[i])
			fields := []string{strings.TrimSuffix(filepath.Base(spec.Name), ".spec"), product.Of(s.Engine.Name).LevelTitle(level.History), row[i].results}
			for _, name := range columns {
				fields = append(fields, row[i].cells[name])
			}
			fields = append(fields, strings.Join(row[i].wrong, "; "))
			for n := range fields {
				fields[n] = strings.ReplaceAll(fields[n], "|", `\|`)
			}
			rows[spec] = append(rows[spec], "| "+strings.Join(fields, " | ")+" |\n")
		}
	}
	head(out, s, name, slices.Concat([]string{"scenario", "level", "results"}, columns, []string{"not as it should be"}))
	for _, spec := range specs {
		fmt.Fprint(out, strings.Join(rows[spec], ""))
	}
	return all, nil
}

// oracleRowOf says what each oracle says, and whether those that the scenario names speak where the results show what they should
// speak of. Elsewhere only what is permitted may be said.
func oracleRowOf(spec *scenario.Spec, report panel.CaseReport, d *panel.Judgement) oracleRow {
	row := oracleRow{results: "nothing wrong", cells: map[string]string{}}
	shown := slices.DeleteFunc(slices.Clone(report.Outcomes), func(o string) bool { return o == "correct" })
	if d.Trouble != nil {
		row.results, row.unknown = "unknown: "+d.Trouble.Error(), true
	} else if len(shown) > 0 {
		row.results = strings.Join(shown, ", ")
	}
	row.wrong = append(row.wrong, report.Wrong...)
	say := func(name string, findings []oracle.Finding, unknown string) {
		words, speaks, bug := cellText(findings)
		if len(words) == 0 {
			words = []string{"–"}
		}
		if unknown != "" {
			words = append(words, "unknown: "+unknown)
		}
		row.cells[name] = strings.Join(words, ", ")
		named := slices.Contains(spec.Oracles(), name)
		switch {
		case named && len(shown) > 0 && !speaks:
			row.wrong = append(row.wrong, name+" should speak")
		case bug && len(shown) == 0 && d.Trouble == nil && name != panel.IsolationName:
			row.wrong = append(row.wrong, name+" should not speak")
		}
	}
	if d.Judged {
		unknown := ""
		if d.Unseen() {
			unknown = "nothing seen"
		}
		say(panel.IsolationName, d.Isolation.Findings, unknown)
	}
	for _, v := range d.Rulings {
		say(v.Oracle, v.Findings, v.Unknown)
	}
	return row
}

// cellText names findings, each once; speaks says that there is one, bug that one is more than permitted.
func cellText(findings []oracle.Finding) (words []string, speaks, bug bool) {
	for i := range findings {
		f := &findings[i]
		text := f.Title()
		if diff := f.Difference; diff != nil {
			text = fmt.Sprintf("%s: %s (%s)", f.Kind, f.Title(), f.Class)
			if f.Kind == oracle.KindPermitted {
				text = fmt.Sprintf("permitted: %s (%s)", diff.Cause, f.Class)
			}
			if diff.Flaky {
				text = "flaky " + text
			}
			bug = bug || f.Kind != oracle.KindPermitted && !diff.Flaky
		}
		speaks = true
		if !slices.Contains(words, text) {
			words = append(words, text)
		}
	}
	return words, speaks, bug
}

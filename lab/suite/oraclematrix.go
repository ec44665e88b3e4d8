package suite

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/backends"
	"wirecheck/history/prose"
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
	s, levels, err := r.levelsOf(ctx, name, &scenario.Spec{})
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
	rows := make([][]*oracleRow, len(levels))
	var all []oracleRow
	for n, level := range levels {
		rows[n] = make([]*oracleRow, len(specs))
		err := r.firsts(ctx, s, level, p, specs, func(i int, _ *scenario.Permutation, d *panel.Judgement) {
			is := oracleRowOf(specs[i], d.Report(specs[i], targetOf(s, level)), d)
			rows[n][i] = &is
		})
		if err != nil {
			return nil, fmt.Errorf("%s at %s: %w", s.Engine.Title, level.SQL, err)
		}
		for _, row := range rows[n] {
			if row != nil {
				all = append(all, *row)
			}
		}
	}
	if r.o.Format == formatMatrix {
		r.oracleMarks(out, s, levels, specs, columns, rows)
		return all, nil
	}
	head(out, s, name, slices.Concat([]string{"scenario", "level", "results"}, columns, []string{"not as it should be"}))
	for i, spec := range specs {
		for n, level := range levels {
			row := rows[n][i]
			if row == nil {
				continue
			}
			fields := []string{strings.TrimSuffix(filepath.Base(spec.Name), ".spec"), product.Of(s.Engine.Name).LevelTitle(level.History), row.results}
			for _, name := range columns {
				fields = append(fields, row.cells[name])
			}
			fields = append(fields, strings.Join(row.wrong, "; "))
			for n := range fields {
				fields[n] = strings.ReplaceAll(fields[n], "|", `\|`)
			}
			fmt.Fprintf(out, "| %s |\n", strings.Join(fields, " | "))
		}
	}
	return all, nil
}

// oracleMarks writes a row of marks for each scenario at each level, and then what is not as it should be.
func (r *runner) oracleMarks(out io.Writer, s *backends.Instance, levels []product.Level, specs []*scenario.Spec, columns []string, rows [][]*oracleRow) {
	short, legend := shortLevels(s.Engine.Name, levels)
	lead(out, s, "what each oracle says", markFound+" it reports something, "+markGood+" nothing, "+markUnknown+" unknown, "+markNone+" it did not judge", legend)
	var names []string
	var cells [][]string
	var notes []string
	for i, name := range namesOf(specs) {
		for n := range levels {
			row := rows[n][i]
			if row == nil {
				continue
			}
			var list []string
			for _, c := range columns {
				switch text := row.cells[c]; {
				case text == "":
					list = append(list, markNone)
				case strings.Contains(text, "unknown: "):
					list = append(list, markUnknown)
				case text == "–":
					list = append(list, markGood)
				default:
					list = append(list, markFound)
				}
			}
			if len(name) > maxName-4 {
				name = prose.Cut(name, maxName-4)
			}
			names, cells = append(names, name+" "+short[n]), append(cells, list)
			for _, w := range row.wrong {
				notes = append(notes, fmt.Sprintf("%s at %s: %s", name, short[n], w))
			}
		}
	}
	m := newMarks(out, r.o.Color, names, columns)
	for i := range names {
		m.row(names[i], cells[i])
	}
	finish(out, notes)
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

package suite

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"wirecheck/backends"
	"wirecheck/history/prose"
	"wirecheck/lab/scenario"
	"wirecheck/product"
)

// The matrices' formats: marks for a terminal of 80 columns, Markdown for documents.
const (
	formatMatrix   = "matrix"
	formatMarkdown = "markdown"
)

// Marks of a matrix.
const (
	markGood    = "✓"
	markFound   = "✗"
	markUnknown = "?"
	markNone    = "·"
)

// shorts are what stands above the columns of a matrix of marks.
var shorts = map[string]string{product.ReadUncommitted: "RU", product.ReadCommitted: "RC", product.RepeatableRead: "RR", product.Snapshot: "SI", product.Serializable: "SER"}

// marks writes rows of marks below the titles of their columns.
type marks struct {
	out   io.Writer
	color bool
	first int // width of the first column
	wide  []int
}

// maxName is how wide the first column of a matrix gets.
const maxName = 28

func newMarks(out io.Writer, color bool, names, columns []string) *marks {
	m := &marks{out: out, color: color}
	for _, name := range names {
		m.first = max(m.first, min(utf8.RuneCountInString(name), maxName))
	}
	for _, c := range columns {
		m.wide = append(m.wide, utf8.RuneCountInString(c))
	}
	m.row("", columns)
	return m
}

func (m *marks) row(name string, cells []string) {
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName-1]) + "…"
	}
	line := name + strings.Repeat(" ", m.first-utf8.RuneCountInString(name))
	for i, c := range cells {
		pad := ""
		if i < len(cells)-1 {
			pad = strings.Repeat(" ", m.wide[i]-utf8.RuneCountInString(c))
		}
		line += "  " + m.colored(c) + pad
	}
	fmt.Fprintln(m.out, strings.TrimRight(line, " "))
}

func (m *marks) colored(mark string) string {
	code := map[string]string{markGood: "32", markFound: "31", markUnknown: "33"}[mark]
	if !m.color || code == "" {
		return mark
	}
	return "\x1b[" + code + "m" + mark + "\x1b[0m"
}

// shortLevels are the columns of levels, and a line that says what they mean.
func shortLevels(engine string, levels []product.Level) (short []string, legend string) {
	var meanings []string
	for _, l := range levels {
		short = append(short, shorts[l.History])
		meanings = append(meanings, shorts[l.History]+" "+product.Of(engine).LevelTitle(l.History))
	}
	return short, strings.Join(meanings, ", ")
}

// mark is a cell in one character.
func (m matrixCell) mark() string {
	switch {
	case m.results == notMeant:
		return markNone
	case m.results == letThrough:
		return markFound
	case strings.HasPrefix(m.results, "prevented"):
		return markGood
	}
	return markUnknown
}

// marks writes what each level lets through and prevents, and then where the isolation oracle does not agree.
func (r *runner) marks(out io.Writer, s *backends.Instance, levels []product.Level, specs []*scenario.Spec, rows [][]matrixCell) {
	short, legend := shortLevels(s.Engine.Name, levels)
	lead(out, s, "what each level lets through", markGood+" prevented, "+markFound+" let through, "+markUnknown+" unknown, "+markNone+" not meant for it", legend)
	names := namesOf(specs)
	m := newMarks(out, r.o.Color, names, short)
	var notes []string
	for i, row := range rows {
		var cells []string
		for k, c := range row {
			cells = append(cells, c.mark())
			if c.mark() == markUnknown || c.verdict == disagrees || c.verdict == notJudged {
				notes = append(notes, fmt.Sprintf("%s at %s: %s", names[i], short[k], strings.ReplaceAll(c.String(), "**", "")))
			}
		}
		m.row(names[i], cells)
	}
	finish(out, notes)
}

// namesOf are the files' names without their ends.
func namesOf(specs []*scenario.Spec) (names []string) {
	for _, spec := range specs {
		names = append(names, prose.Printable(strings.TrimSuffix(filepath.Base(spec.Name), ".spec")))
	}
	return names
}

// lead writes what stands above a matrix of marks.
func lead(out io.Writer, s *backends.Instance, lines ...string) {
	fmt.Fprintln(out, prose.Wrap(fmt.Sprintf("%s %s: %s", s.Engine.Title, s.Version, lines[0]), 80, "", "  "))
	for _, line := range lines[1:] {
		fmt.Fprintln(out, prose.Wrap(line, 80, "  ", "  "))
	}
	fmt.Fprintln(out)
}

// finish writes what has no room in a matrix of marks, each text once.
func finish(out io.Writer, notes []string) {
	slices.Sort(notes)
	for i, note := range slices.Compact(notes) {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, prose.Wrap(note, 80, "", "  "))
	}
}

package explore

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"wirecheck/history/prose"
)

// letter names a replay: as it was, A, B, ...
func letter(i int) string {
	if i == 0 {
		return "as it was"
	}
	return string(rune('A' + (i-1)%26))
}

// Text writes it for people, on about one screen.
func (c *Comparison) Text(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintf(w, "%s: %s of %s, in %s\n", c.Trace, prose.Count(c.Transactions, "transaction"), prose.Count(len(c.Shapes), "shape"), prose.Count(len(c.Runs), "replay"))
	for i, a := range c.Runs {
		text := letter(i) + ": " + a.Engine + " " + a.Version
		if a.Variant != "" {
			text += ", " + a.Variant
		}
		fmt.Fprintln(w, prose.Wrap(text, textWidth, "  ", "     "))
		if a.Failed != "" {
			fmt.Fprintf(w, "    not replayed: %s\n", prose.Line(a.Failed, 200))
		}
	}
	fmt.Fprintf(w, "  compared: %s; not compared, since two replays as it was differ: %d\n", prose.Count(c.Statements, "statement"), c.Unstable)
	if c.NotCompared > 0 {
		fmt.Fprintf(w, "  not compared: %s beyond the first %d\n", prose.Count(c.NotCompared, "transaction"), c.Transactions)
	}
	fmt.Fprintln(w)
	c.table(w)
	for i, a := range c.Runs {
		if a.Failed == "" {
			c.alternative(w, i, a)
		}
	}
	c.rest(w)
	return w.Flush()
}

// table has a column for each replay.
func (c *Comparison) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(what string, value func(i int, a *Alternative) string) {
		fmt.Fprint(w, what)
		for i, a := range c.Runs {
			text := "?"
			if a.Failed == "" {
				text = value(i, a)
			}
			fmt.Fprint(w, "\t", text)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "statements")
	for i := range c.Runs {
		fmt.Fprint(w, "\t", letter(i))
	}
	fmt.Fprintln(w)
	codes := map[string]bool{}
	for _, a := range c.Runs {
		for code := range a.Refused {
			codes[code] = true
		}
	}
	if len(codes) == 0 {
		row("refused", func(int, *Alternative) string { return "0" })
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		row("refused with "+code, func(_ int, a *Alternative) string { return fmt.Sprint(a.Refused[code]) })
	}
	row("rest of refused ones, not sent", func(_ int, a *Alternative) string { return fmt.Sprint(a.NotSent) })
	row("waited for a lock", func(_ int, a *Alternative) string { return fmt.Sprint(a.Waited) })
	row("answered otherwise than as it was", func(i int, a *Alternative) string {
		if i == 0 {
			return "-"
		}
		return fmt.Sprint(a.Otherwise)
	})
	row("anomalies, by the oracle", func(_ int, a *Alternative) string {
		n := 0
		for _, f := range a.Anomalies {
			n += f.Count
		}
		return fmt.Sprint(n)
	})
	if slices.ContainsFunc(c.Runs, func(a *Alternative) bool { return a.Interleavings > 0 }) {
		row("other interleavings", func(_ int, a *Alternative) string { return fmt.Sprint(a.Interleavings) })
		row("  wrong in another way than recorded", func(_ int, a *Alternative) string { return fmt.Sprint(a.Wrong) })
		row("  statements refused in them", func(_ int, a *Alternative) string {
			n := 0
			for _, s := range a.Others {
				n += s.refused()
			}
			return fmt.Sprint(n)
		})
	}
	_ = w.Flush() // out remembers its error
}

func (s *RefusedShape) refused() (n int) {
	for _, many := range s.Refused {
		n += many
	}
	return n
}

// alternative tells what came and went, and of the refusals by shape.
func (c *Comparison) alternative(w io.Writer, i int, a *Alternative) {
	if i > 0 {
		c.cameAndWent(w, letter(i), a)
	}
	c.shapes(w, letter(i)+" refuses", a.Shapes)
	c.shapes(w, letter(i)+" refuses in other interleavings", a.Others)
	if c.room {
		for n, d := range a.Differences {
			if n == 0 {
				fmt.Fprintf(w, "\n%s, statements that went otherwise:\n", letter(i))
			}
			fmt.Fprintf(w, "  statement %d of session %d, shape %d, %s: %s\n", d.Step, d.Session, d.Shape, d.How, d.SQL)
		}
	}
}

// cameAndWent lists the anomalies that only one of the two replays has.
func (c *Comparison) cameAndWent(w io.Writer, name string, a *Alternative) {
	var lines []string
	count := map[string]int{}
	for _, f := range a.Anomalies {
		how := "comes"
		if f.Count == 0 {
			how = "goes"
		} else if f.AsWas > 0 {
			continue
		}
		line := fmt.Sprintf("%s: %s: %s on %s", name, how, strings.ToUpper(f.Title), strings.Join(f.Tables, ", "))
		if count[line] == 0 {
			lines = append(lines, line)
		}
		count[line] += max(f.Count, f.AsWas)
	}
	if len(lines) > 0 {
		fmt.Fprintln(w)
	}
	for i, line := range lines {
		if i == c.room.few() {
			fmt.Fprintf(w, "  and %d more (--format json)\n", len(lines)-i)
			break
		}
		fmt.Fprintf(w, "%s: %d\n", line, count[line])
	}
}

// shapes tells of refusals by shape, and what follows.
func (c *Comparison) shapes(out io.Writer, what string, list []*RefusedShape) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s, by shape of transaction:\n", what)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\tshape\ttimes\trefused\ttrue conflict\trow-level only\tunknown")
	var sure, total, read, unknown int
	var retry []string
	for i, s := range list {
		name, count := "not among the transactions of the trace", 0
		if s.Shape > 0 {
			name, count = c.Shapes[s.Shape-1].Name, c.Shapes[s.Shape-1].Count
		}
		codes := strings.Join(slices.Sorted(maps.Keys(s.Refused)), ", ")
		if i < shapesOnScreen || c.room {
			fmt.Fprintf(w, "%d\t%s\t%d\t%d (%s)\t%d\t%d\t%d\n", s.Shape, prose.Line(name, 24), count, s.refused(), codes, s.True, s.RowLevel, s.Unknown)
		}
		sure, unknown, total, read = sure+s.True, unknown+s.Unknown, total+s.True+s.RowLevel+s.Unknown, read+s.Read
		if s.True+s.Unknown > 0 {
			retry = append(retry, fmt.Sprint(s.Shape))
		}
	}
	_ = w.Flush() // out remembers its error
	for i, s := range list {
		for j, e := range s.Examples {
			if i < onScreen && j == 0 || c.room {
				fmt.Fprintln(out, prose.Wrap(fmt.Sprintf("%d: %s", s.Shape, prose.Line(e, 300)), textWidth, "  ", "     "))
			}
		}
	}
	switch {
	case total == 0:
	case sure+unknown == 0:
		fmt.Fprintln(out, "  Without these refusals nothing would have been overwritten.")
	default:
		fmt.Fprintln(out, prose.Wrap(fmt.Sprintf("Needed: %s of %d must be refused or prevented. Retry shape %s.", needed(sure, unknown), total, strings.Join(retry, ", ")), textWidth, "  ", "  "))
	}
	if read > 0 {
		fmt.Fprintf(out, "  Row-level only, but it had read a column that the other one changed: %d.\n", read)
	}
}

// textWidth is how wide lines are that people read.
const textWidth = 80

func needed(sure, unknown int) string {
	if unknown > 0 {
		return fmt.Sprintf("%d, and perhaps %d more,", sure, unknown)
	}
	return fmt.Sprint(sure)
}

// rest says what the comparison does not tell.
func (c *Comparison) rest(w io.Writer) {
	first := c.Runs[0]
	fmt.Fprintln(w)
	if slices.ContainsFunc(c.Runs, func(a *Alternative) bool { return a.NotSent > 0 || len(a.Shapes) > 0 }) {
		fmt.Fprintln(w, "A refused transaction was not repeated, as the application might have done:\nwhat it would have written is missing from later answers.")
	}
	if first.Report.options.Mode.Kind == "" {
		fmt.Fprintln(w, "Only the recorded order was tried: most refusals come in others\n(--interleavings all).")
	}
	fmt.Fprintln(w, "Whether a statement waited is compared, not how long.")
	if c.Undecided != "" {
		fmt.Fprintf(w, "undecided: %s\n", c.Undecided)
	}
}

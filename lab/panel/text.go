package panel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/backends"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/report"
)

// Printer writes the results of one file at one level.
type Printer struct {
	Format   string
	Stdout   io.Writer
	Out      *bytes.Buffer // all that was written
	Spec     *scenario.Spec
	Instance *backends.Instance
	Level    product.Level
	// Hide keeps what is written next from Stdout.
	Hide  bool
	shown int // bytes of out that are on stdout
}

// Begin writes the headline.
func (p *Printer) Begin() error {
	p.shown = p.Out.Len()
	switch p.Format {
	case "text":
		if p.Out.Len() > 0 {
			fmt.Fprintln(p.Out)
		}
		fmt.Fprintf(p.Out, "%s on %s at %s\n", filepath.Base(p.Spec.Name), p.Instance.Engine.Title, p.Level.SQL)
	case "isolationtester":
		var unused []string
		for _, w := range p.Spec.Warnings {
			if strings.HasPrefix(w.Text, scenario.UnusedStep) {
				unused = append(unused, w.Text+"\n")
			}
		}
		slices.Sort(unused)
		fmt.Fprint(p.Out, strings.Join(unused, ""))
		fmt.Fprintf(p.Out, "Parsed test spec with %d sessions\n", len(p.Spec.Sessions))
	}
	return p.flush()
}

// Permutation writes what one permutation did, and the verdicts.
func (p *Printer) Permutation(n int, d *Judgement, r CaseReport) error {
	switch p.Format {
	case "isolationtester":
		if err := d.IsolationTester(p.Out, p.Spec); err != nil {
			return err
		}
	case "text":
		fmt.Fprintf(p.Out, "\npermutation %d: %s\n", n, d.Permutation)
		if err := d.Text(p.Out, p.Spec); err != nil {
			return err
		}
		p.verdict(d, r)
	}
	return p.flush()
}

// flush shows what was written since the last time.
func (p *Printer) flush() error {
	var err error
	if !p.Hide {
		_, err = p.Stdout.Write(p.Out.Bytes()[p.shown:])
	}
	p.shown = p.Out.Len()
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// Refused prints a case whose setup the server refused, where the format has words for that.
func (p *Printer) Refused(d *Judgement) error {
	if p.Format != "isolationtester" || d.Result == nil {
		return nil
	}
	return errors.Join(d.IsolationTester(p.Out, p.Spec), p.flush())
}

// End says how many of the possible orders were run, if there is a text for it.
func (p *Printer) End(text string) error {
	if p.Format == "text" && text != "" {
		fmt.Fprintf(p.Out, "\n%s\n", text)
	}
	return p.flush()
}

// verdict says what the oracles and the scenario's own conditions say.
func (p *Printer) verdict(d *Judgement, r CaseReport) {
	for _, name := range r.Outcomes {
		fmt.Fprintf(p.Out, "outcome: %s\n", name)
	}
	if d.Judged {
		if len(d.Isolation.Findings) == 0 && !d.Unseen() && d.Trouble == nil && len(r.Mistakes) == 0 {
			fmt.Fprintln(p.Out, "isolation: nothing found")
		}
		for i := range d.Isolation.Findings {
			p.finding(d, &d.Isolation.Findings[i])
		}
		fmt.Fprintln(p.Out, d.Isolation.Coverage)
		if caution := d.Isolation.Coverage.Caution(); caution != "" {
			fmt.Fprintln(p.Out, caution)
		}
	}
	for _, v := range d.Rulings {
		p.ruling(v)
	}
	for _, b := range r.Broken {
		fmt.Fprintf(p.Out, "invariant broken: %s\n", b)
	}
	if r.Kept != "" {
		fmt.Fprintf(p.Out, "shown by: wirecheck run %s --engine %s\n", r.Kept, p.Instance.Engine.Name)
	}
	if r.Unknown != "" {
		fmt.Fprintf(p.Out, "unknown: %s\n", r.Unknown)
	}
	for _, w := range r.Wrong {
		fmt.Fprintf(p.Out, "NOT AS EXPECTED: %s\n", w)
	}
}

// finding tells of one finding in the words of the scenario: sessions and steps in place of transactions and statements,
// since these have numbers that differ from run to run.
func (p *Printer) finding(d *Judgement, f *oracle.Finding) {
	f = new(report.Printable(*f))
	blame := "allowed at this level"
	if f.Promised {
		blame = "promised not to happen at this level: a DBMS bug"
	}
	title := string(f.Class)
	if f.Name != "" {
		title = fmt.Sprintf("%s (%s)", f.Name, f.Class)
	}
	fmt.Fprintf(p.Out, "isolation: %s, %s\n", title, blame)
	for _, line := range d.Dependencies(p.Spec, f) {
		fmt.Fprintf(p.Out, "  %s\n", line)
	}
}

// Dependencies tells the dependencies of a finding of the isolation oracle in the words of the scenario, a line each: what is told does not differ from run to run.
func (d *Judgement) Dependencies(spec *scenario.Spec, f *oracle.Finding) (lines []string) {
	for _, e := range f.Edges {
		from, to := d.who(spec, &f.Transactions[e.From], e.FromStatement), d.who(spec, &f.Transactions[e.To], e.ToStatement)
		_, row, _ := strings.Cut(e.Row.Table, ".") // the schema is the lab's own
		if e.Name != "" {
			row += " " + e.Name
		} else {
			row = "a row of " + row
		}
		var text string
		switch e.Kind {
		case oracle.EdgeWW:
			text = fmt.Sprintf("%s wrote %s, then %s wrote it", from, row, to)
		case oracle.EdgeWR:
			text = fmt.Sprintf("%s wrote %s, and %s read that", from, row, to)
		case oracle.EdgeRW:
			text = fmt.Sprintf("%s read %s as it was before %s wrote it", from, row, to)
		default:
			text = fmt.Sprintf("%s came before %s (%s)", from, to, e.Kind)
		}
		lines = append(lines, fmt.Sprintf("%s (%s)", text, e.Kind))
	}
	return lines
}

// Behind finds the bug that an oracle of schedules names of a statement of a finding of the isolation oracle: one event has one verdict. Nil: none does.
func (d *Judgement) Behind(f *oracle.Finding) *oracle.Finding {
	steps := map[string]bool{}
	for _, e := range f.Edges {
		for _, end := range []struct{ tx, statement int }{{e.From, e.FromStatement}, {e.To, e.ToStatement}} {
			t := &f.Transactions[end.tx]
			for _, s := range t.Statements {
				if session := d.watched.Session(t.Backend); s.N == end.statement && session >= 0 {
					steps[stepOf(d, session, s)] = true
				}
			}
		}
	}
	for _, v := range d.Rulings {
		for i := range v.Findings {
			if g := &v.Findings[i]; g.Kind == oracle.KindViolation && !g.Difference.Flaky && g.Difference.Cause != "" && g.Difference.Step != "" && steps[g.Difference.Step] {
				return g
			}
		}
	}
	return nil
}

// who names a transaction's session and the step that carries an edge.
func (d *Judgement) who(spec *scenario.Spec, t *oracle.Transaction, statement int) string {
	session := d.watched.Session(t.Backend)
	name := fmt.Sprintf("a transaction of backend %d", t.Backend)
	if session >= 0 {
		name = spec.Sessions[session].Name
	}
	for _, s := range t.Statements {
		if s.N != statement || session < 0 {
			continue
		}
		if step := stepOf(d, session, s); step != "" {
			return name + " in " + step
		}
	}
	return name
}

// stepOf finds the step that was a statement of a transaction: one with its text, at its place in a transaction of the
// session. Where steps hold several statements the places are not known; then it is the first with its text.
func stepOf(d *Judgement, session int, s oracle.Statement) (step string) {
	place := 0
	for _, ev := range d.watched.Events {
		if ev.Step.Session != session || ev.Kind != lab.Ran && ev.Kind != lab.Resumed {
			continue
		}
		if !ev.Answer.Before.InTransaction() {
			place = 0
			if ev.Answer.After.InTransaction() {
				continue // BEGIN has no number
			}
		}
		place++
		if s.SQL == "" || !strings.Contains(ev.Step.SQL, strings.TrimSpace(s.SQL)) {
			continue
		}
		if place == s.N {
			return ev.Step.Name
		}
		if step == "" {
			step = ev.Step.Name
		}
	}
	return step
}

// mostNotes is how many notes of an oracle are printed.
const mostNotes = 10

// ruling says what one re-executing oracle found.
func (p *Printer) ruling(v Ruling) {
	for i := range v.Findings {
		report.Difference(p.Out, &v.Findings[i])
	}
	if len(v.Findings) == 0 && v.Unknown == "" {
		fmt.Fprintf(p.Out, "%s: nothing found\n", v.Oracle)
	}
	for i, note := range v.Notes {
		if i == mostNotes {
			fmt.Fprintf(p.Out, "%s: left out: and %d more (--format json has all)\n", v.Oracle, len(v.Notes)-i)
			break
		}
		fmt.Fprintf(p.Out, "%s: left out: %s\n", v.Oracle, note)
	}
}

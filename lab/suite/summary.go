package suite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/lab/panel"
	"wirecheck/product"
	"wirecheck/report"
	"wirecheck/report/page"
)

// summary prints what concerns all cases.
func (r *runner) summary() error {
	switch r.o.Format {
	case "json":
		return r.printJSON()
	case "junit":
		return r.junit()
	case "html":
		return r.page()
	case "text":
		_, err := fmt.Fprintln(r.o.Stdout, "\n"+r.counted())
		return err
	}
	return nil
}

// counted says in a line what became of the cases.
func (r *runner) counted() string {
	wrong, unknown, found, failed, refused := 0, 0, 0, 0, 0
	for _, cr := range r.cases {
		refused += cr.Refused
		switch {
		case cr.Failed != "":
			failed++
		case len(cr.Wrong) > 0:
			wrong++
		case len(cr.Found)+len(cr.Broken) > 0: // whatever else could not be judged, as in the exit status
			found++
		case cr.Unknown != "":
			unknown++
		}
	}
	text := fmt.Sprintf("cases: %d, with findings: %d, not as expected: %d, unknown: %d", len(r.cases), found, wrong, unknown)
	if failed > 0 {
		text += fmt.Sprintf(", not executed: %d", failed)
	}
	if refused > 0 {
		text += fmt.Sprintf(", steps refused: %d", refused)
	}
	return text
}

// page writes what was found as a page, and below it what is not as expected.
func (r *runner) page() error {
	d := page.Document{Title: "wirecheck run", Notes: []string{r.counted()}}
	var rest strings.Builder
	for i := range r.cases {
		c := &r.cases[i]
		place := fmt.Sprintf("%s on %s at %s: %s", filepath.Base(c.Spec), product.Of(c.Engine).Title, product.Of(c.Engine).LevelTitle(c.Level), c.Permutation)
		for k := range c.Findings {
			again := fmt.Sprintf("wirecheck run %s --engine %s --level %q", c.Spec, c.Engine, c.Level)
			if c.Kept != "" {
				again = "wirecheck run " + c.Kept + " --engine " + c.Engine
			}
			d.Items = append(d.Items, page.Item{Finding: c.Findings[k], Where: []string{place}, Scenario: c.Case, Again: []string{again}})
		}
		for _, b := range c.Broken {
			fmt.Fprintf(&rest, "%s: invariant broken: %s\n", place, b)
		}
		for _, w := range c.Wrong {
			fmt.Fprintf(&rest, "%s: not as expected: %s\n", place, w)
		}
		if c.Unknown != "" {
			fmt.Fprintf(&rest, "%s: unknown: %s\n", place, c.Unknown)
		}
		if c.Failed != "" {
			fmt.Fprintf(&rest, "%s: not executed: %s\n", place, c.Failed)
		}
	}
	d.Text = rest.String()
	return page.Write(r.o.Stdout, d)
}

func (r *runner) junit() error {
	errors := 0
	suite := report.JUnitSuite{Name: "wirecheck run", Tests: len(r.cases), Errors: &errors}
	for _, cr := range r.cases {
		jc := report.JUnitCase{Class: cr.Spec, Name: strings.TrimSuffix(fmt.Sprintf("%s %s: %s", cr.Engine, cr.Level, cr.Permutation), ": ")}
		wrong := slices.Clone(cr.Wrong)
		for _, b := range cr.Broken {
			wrong = append(wrong, "invariant broken: "+b)
		}
		if !cr.Expects {
			for _, f := range cr.Found {
				wrong = append(wrong, "found "+f)
			}
		}
		switch {
		case cr.Failed != "":
			jc.Error = &report.JUnitFailure{Message: "not executed: " + cr.Failed}
			errors++
		case len(wrong) > 0:
			jc.Failure = &report.JUnitFailure{Message: strings.Join(wrong, "; ")}
			suite.Failures++
		case cr.Unknown != "":
			jc.Error = &report.JUnitFailure{Message: "unknown: " + cr.Unknown}
			errors++
		}
		suite.Cases = append(suite.Cases, jc)
	}
	return suite.Write(r.o.Stdout)
}

// printJSON writes everything.
func (r *runner) printJSON() error {
	return report.Indented(r.o.Stdout, struct {
		Runs  []runCount         `json:"runs"`
		Cases []panel.CaseReport `json:"cases"`
	}{append([]runCount{}, r.counts...), append([]panel.CaseReport{}, r.cases...)})
}

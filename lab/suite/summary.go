package suite

import (
	"fmt"
	"strings"

	"wirecheck/lab/panel"
	"wirecheck/report"
)

// summary prints what concerns all cases.
func (r *runner) summary() error {
	switch r.o.Format {
	case "json":
		return r.printJSON()
	case "junit":
		return r.junit()
	case "text":
		wrong, unknown, found, failed, refused := 0, 0, 0, 0, 0
		for _, cr := range r.cases {
			refused += cr.Refused
			switch {
			case cr.Failed != "":
				failed++
			case len(cr.Wrong) > 0:
				wrong++
			case cr.Unknown != "":
				unknown++
			case len(cr.Found) > 0:
				found++
			}
		}
		text := fmt.Sprintf("\ncases: %d, with findings: %d, not as expected: %d, unknown: %d", len(r.cases), found, wrong, unknown)
		if failed > 0 {
			text += fmt.Sprintf(", not executed: %d", failed)
		}
		if refused > 0 {
			text += fmt.Sprintf(", steps refused: %d", refused)
		}
		_, err := fmt.Fprintln(r.o.Stdout, text)
		return err
	}
	return nil
}

func (r *runner) junit() error {
	errors := 0
	suite := report.JUnitSuite{Name: "wirecheck run", Tests: len(r.cases), Errors: &errors}
	for _, cr := range r.cases {
		jc := report.JUnitCase{Class: cr.Spec, Name: strings.TrimSuffix(fmt.Sprintf("%s %s: %s", cr.Engine, cr.Level, cr.Permutation), ": ")}
		wrong := cr.Wrong
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

package suite

import (
	"encoding/xml"
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
		wrong, unknown, found, failed := 0, 0, 0, 0
		for _, cr := range r.cases {
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
		_, err := fmt.Fprintln(r.o.Stdout, text)
		return err
	}
	return nil
}

// junitCase is a test case of JUnit's XML form.
type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Error   *junitFailure `xml:"error,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
}

func (r *runner) junit() error {
	suite := struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}{Name: "wirecheck run", Tests: len(r.cases)}
	for _, cr := range r.cases {
		jc := junitCase{Class: cr.Spec, Name: strings.TrimSuffix(fmt.Sprintf("%s %s: %s", cr.Engine, cr.Level, cr.Permutation), ": ")}
		wrong := cr.Wrong
		if !cr.Expects {
			for _, f := range cr.Found {
				wrong = append(wrong, "found "+f)
			}
		}
		switch {
		case cr.Failed != "":
			jc.Error = &junitFailure{"not executed: " + cr.Failed}
			suite.Errors++
		case len(wrong) > 0:
			jc.Failure = &junitFailure{strings.Join(wrong, "; ")}
			suite.Failures++
		case cr.Unknown != "":
			jc.Error = &junitFailure{"unknown: " + cr.Unknown}
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, jc)
	}
	if _, err := fmt.Fprint(r.o.Stdout, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(r.o.Stdout)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.o.Stdout)
	return err
}

// printJSON writes everything.
func (r *runner) printJSON() error {
	return report.Indented(r.o.Stdout, struct {
		Runs  []runCount         `json:"runs"`
		Cases []panel.CaseReport `json:"cases"`
	}{append([]runCount{}, r.counts...), append([]panel.CaseReport{}, r.cases...)})
}

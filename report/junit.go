package report

import (
	"encoding/xml"
	"io"
	"strings"

	"wirecheck/oracle"
)

type junitSuite struct {
	XMLName   xml.Name    `xml:"testsuite"`
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Cases     []junitCase `xml:"testcase"`
	SystemOut string      `xml:"system-out,omitempty"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes a test suite with one failed case for each finding, or one passed case if there is none, since some
// readers take an empty suite for an error.
func JUnit(w io.Writer, r Result) error {
	s := junitSuite{Name: "wirecheck", Tests: max(len(r.Findings), 1), Failures: len(r.Findings)}
	if r.Source != "" {
		s.Name += " " + r.Source
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		var text strings.Builder
		if err := Text(&text, []oracle.Finding{*f}); err != nil {
			return err
		}
		s.Cases = append(s.Cases, junitCase{Class: "wirecheck." + f.Oracle, Name: f.Title() + " " + f.ID,
			Failure: &junitFailure{Message: Warning(*f).Message, Type: string(f.Kind), Text: text.String()}})
	}
	if len(s.Cases) == 0 {
		s.Cases = []junitCase{{Class: "wirecheck", Name: "nothing found"}}
	}
	if r.Coverage != nil {
		s.SystemOut = r.Coverage.String()
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

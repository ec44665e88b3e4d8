package report

import (
	"encoding/xml"
	"io"
	"strings"

	"wirecheck/history/prose"
	"wirecheck/oracle/level"
)

// JUnitSuite is a test suite in JUnit's XML form.
type JUnitSuite struct {
	XMLName   xml.Name    `xml:"testsuite"`
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    *int        `xml:"errors,attr"` // nil: there are no errors in the suite, only failures
	Cases     []JUnitCase `xml:"testcase"`
	SystemOut string      `xml:"system-out,omitempty"`
}

// JUnitCase is a test case of a suite.
type JUnitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *JUnitFailure `xml:"failure"`
	Error   *JUnitFailure `xml:"error"`
}

// JUnitFailure says why a test case failed, or could not be decided.
type JUnitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// Write writes the suite.
func (s *JUnitSuite) Write(w io.Writer) error {
	s.SystemOut = prose.Lines(s.SystemOut)
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Class, c.Name = prose.Printable(c.Class), prose.Printable(c.Name)
		for _, f := range []*JUnitFailure{c.Failure, c.Error} {
			if f != nil {
				f.Message, f.Text = prose.Printable(f.Message), prose.Lines(f.Text)
			}
		}
	}
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}

// JUnit writes a test suite with one failed case for each group of findings and one with an error where it is not decided whether there is more. Where
// there is neither it has one passed case, since some readers take an empty suite for an error.
func JUnit(w io.Writer, r Result) error {
	list := groups(r.Findings)
	s := JUnitSuite{Name: "wirecheck", Failures: len(list)}
	if r.Source != "" {
		s.Name += " " + r.Source
	}
	for i := range list {
		f := &list[i].f
		var text strings.Builder
		list[i].text(&text, Look{Again: r.Again})
		s.Cases = append(s.Cases, JUnitCase{Class: "wirecheck." + f.Oracle, Name: f.Title() + " " + f.ID,
			Failure: &JUnitFailure{Message: Headline(f) + " (" + f.ID + ")" + list[i].count(), Type: string(f.Kind), Text: text.String()}})
	}
	if r.Undecided != "" {
		s.Errors = new(1)
		s.Cases = append(s.Cases, JUnitCase{Class: "wirecheck", Name: "undecided", Error: &JUnitFailure{Message: "undecided: " + prose.Printable(r.Undecided), Type: "undecided"}})
	}
	if r.Levels != nil && r.Levels.Asked != "" {
		s.level(r.Levels, r.Undecided)
	}
	if len(s.Cases) == 0 {
		s.Cases = []JUnitCase{{Class: "wirecheck", Name: r.nothing()}}
	}
	s.Tests = len(s.Cases)
	s.SystemOut = strings.Join(r.seen(), "\n")
	return s.Write(w)
}

// level adds a case for the level that the user asked for.
func (s *JUnitSuite) level(l *Levels, undecided string) {
	c := JUnitCase{Class: "wirecheck", Name: "level " + l.Asked}
	why := &JUnitFailure{Message: l.answer(), Type: "level", Text: l.text(undecided)}
	switch l.State(undecided) {
	case level.Broken:
		c.Failure = why
		s.Failures++
	case level.Unknown:
		c.Error = why
		if s.Errors == nil {
			s.Errors = new(int)
		}
		*s.Errors++
	}
	s.Cases = append(s.Cases, c)
}

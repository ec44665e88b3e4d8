package scenario

import (
	"fmt"
	"strings"
)

// Print gives the spec as text from which Parse makes the same spec, places and warnings aside. The error says what of it
// the format cannot hold: a } in SQL, a newline in a name, directives that Parse would refuse.
func (s *Spec) Print() (string, error) {
	pr := &printer{}
	pr.spec(s)
	if pr.err != nil {
		return "", fmt.Errorf("print %s: %w", s.Name, pr.err)
	}
	text := pr.b.String()
	if _, err := Parse(s.Name, []byte(text)); err != nil {
		return "", fmt.Errorf("print %s: the result is not a spec: %w", s.Name, err)
	}
	return text, nil
}

type printer struct {
	b   strings.Builder
	err error
}

func (pr *printer) fail(format string, args ...any) {
	if pr.err == nil {
		pr.err = fmt.Errorf(format, args...)
	}
}

func (pr *printer) linef(format string, args ...any) {
	fmt.Fprintf(&pr.b, format, args...)
	pr.b.WriteByte('\n')
}

func (pr *printer) spec(s *Spec) {
	for _, text := range s.Header {
		if text != "" {
			text = " " + text
		}
		pr.linef("#%s", pr.oneLine(text, "a line of the header"))
	}
	if len(s.Header) > 0 {
		pr.linef("")
	}
	pr.directives(s.Directives)
	if len(s.Directives) > 0 {
		pr.linef("")
	}
	for _, b := range s.Setup {
		pr.linef("setup %s", pr.block(b.SQL, "setup"))
	}
	if s.Teardown != nil {
		pr.linef("teardown %s", pr.block(s.Teardown.SQL, "teardown"))
	}
	for _, session := range s.Sessions {
		pr.session(session)
	}
	if len(s.Permutations) > 0 {
		pr.linef("")
	}
	for i, p := range s.Permutations {
		if len(p.Directives) > 0 && i > 0 {
			pr.linef("")
		}
		pr.directives(p.Directives)
		pr.linef("permutation %s", pr.oneLine(p.String(), "a permutation"))
	}
}

func (pr *printer) session(s *Session) {
	pr.linef("\nsession %s", pr.name(s.Name))
	if s.Setup != nil {
		pr.linef("setup %s", pr.block(s.Setup.SQL, "setup"))
	}
	for _, st := range s.Steps {
		pr.linef("step %s %s", pr.name(st.Name), pr.block(st.SQL, "step "+st.Name))
	}
	if s.Teardown != nil {
		pr.linef("teardown %s", pr.block(s.Teardown.SQL, "teardown"))
	}
}

func (pr *printer) directives(ds []Directive) {
	for _, d := range ds {
		pr.linef("#%s %s", directiveMark, pr.oneLine(d.String(), "a directive"))
	}
}

func (pr *printer) name(name string) string { return pr.oneLine(quoteName(name), "a name") }

func (pr *printer) oneLine(text, what string) string {
	if strings.Contains(text, "\n") || what != "a name" && what != "a permutation" && strings.Contains(text, "\r") {
		pr.fail("%s holds a line end: %q", what, text)
	}
	return text
}

// block gives SQL in braces. Blanks at its ends are not part of it, newlines are.
func (pr *printer) block(sql, of string) string {
	if strings.Contains(sql, "\x00") {
		pr.fail("the SQL of %s holds a zero byte, which a spec file cannot: %q", of, sql)
	}
	open, end := "{ ", " }"
	if strings.HasPrefix(sql, "\n") {
		open = "{"
	}
	if strings.HasSuffix(sql, "\n") {
		end = "}"
	}
	if text := open + sql + end; blockEnd(text) != len(text)-1 {
		pr.fail("the SQL of %s holds a } outside of quotes, or a quote that is not closed, which a spec file cannot: %q", of, sql)
	}
	return open + sql + end
}

// markersText gives the markers with their parentheses, nothing if there are none.
func markersText(markers []Marker) string {
	if len(markers) == 0 {
		return ""
	}
	texts := make([]string, len(markers))
	for i, m := range markers {
		switch m.Kind {
		case MarkOnce:
			texts[i] = "*"
		case MarkStep:
			texts[i] = quoteName(m.Step.Name)
		case MarkNotices:
			texts[i] = fmt.Sprintf("%s notices %d", quoteName(m.Step.Name), m.Notices)
		}
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
)

// caseReport is the verdict over one permutation, for programs.
type caseReport struct {
	Spec        string   `json:"spec"`
	Engine      string   `json:"engine"`
	Level       string   `json:"level,omitempty"`
	N           int      `json:"n,omitempty"`
	Permutation string   `json:"permutation,omitempty"`
	Found       []string `json:"found"`               // names of the anomalies and classes of the differences, sorted
	Permitted   []string `json:"permitted,omitempty"` // differences that the product documents: the class and the cause
	Flaky       []string `json:"flaky,omitempty"`     // differences that were not there each time the case was executed again
	Outcomes    []string `json:"outcomes"`            // of the scenario's own, those that the results show
	Wrong       []string `json:"wrong,omitempty"`     // what is not as the scenario expects
	Unknown     string   `json:"unknown,omitempty"`   // why it could not be decided
	Expects     bool     `json:"expects"`             // the scenario says what the oracles are expected to find
	Crashed     bool     `json:"crashed,omitempty"`
	Failed      string   `json:"failed,omitempty"` // why it could not be executed
	Marks       []string `json:"marks,omitempty"`

	Findings []oracle.Finding `json:"findings,omitempty"`
	Rulings  []ruling         `json:"rulings,omitempty"` // what the re-executing oracles said besides
	// Case is a scenario file that shows the findings with one command; Kept is where it was stored (--out).
	Case string `json:"case,omitempty"`
	Kept string `json:"kept,omitempty"`
	runJSON
}

// unseen says that the isolation oracle cannot have found anything.
const unseen = "isolation: nothing of what the statements read and wrote could be seen"

// unseen reports whether the isolation oracle judged nothing: then that it found nothing says nothing.
func (d *done) unseen() bool {
	v := d.isolation.Coverage
	return d.judge && len(d.isolation.Findings) == 0 && v.Exact+v.Approximate == 0 && v.Opaque > 0
}

// verdictOf compares what happened with what the scenario expects.
func verdictOf(spec *scenario.Spec, t scenario.Target, d *done) caseReport {
	r := caseReport{Permutation: d.Permutation.String(), Found: []string{}, Outcomes: []string{}, Marks: d.Marks, Crashed: d.Crashed, runJSON: jsonOf(spec, d)}
	r.Findings, r.Rulings = slices.Clone(d.isolation.Findings), d.rulings
	for i := range d.isolation.Findings {
		r.Found = append(r.Found, d.isolation.Findings[i].Title())
	}
	for _, v := range d.rulings {
		r.Findings = append(r.Findings, v.findings...)
		for i := range v.findings {
			switch f := &v.findings[i]; {
			case f.Difference.Flaky:
				r.Flaky = append(r.Flaky, string(f.Class))
			case f.Kind == oracle.KindPermitted:
				r.Permitted = append(r.Permitted, fmt.Sprintf("%s (%s)", f.Class, f.Difference.Cause))
			default:
				r.Found = append(r.Found, string(f.Class))
			}
		}
		if v.Unknown != "" && r.Unknown == "" {
			r.Unknown = v.Oracle + ": " + v.Unknown
		}
	}
	for _, list := range []*[]string{&r.Found, &r.Permitted, &r.Flaky} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if d.Trouble != nil {
		r.Unknown = d.Trouble.Error()
		return r
	}
	results := caseResults{spec: spec, d: d}
	undecided := map[string]bool{}
	for _, o := range spec.Outcomes(d.Permutation) {
		switch o.Condition.Eval(results) {
		case scenario.True:
			r.Outcomes = append(r.Outcomes, o.Name)
		case scenario.Unknown:
			undecided[o.Name] = true
		}
	}
	if d.unseen() {
		r.Unknown = unseen
	} else if d.judge || len(d.rulings) > 0 {
		if want, ok := spec.Expect(d.Permutation, t); ok {
			r.Expects = true
			r.Wrong = append(r.Wrong, compareFound(d.judgesOf(want), r.Findings)...)
		}
	}
	if want, ok := spec.Observe(d.Permutation, t); ok {
		for _, o := range want {
			if undecided[o.Outcome] {
				r.Unknown = "the outcome " + o.Outcome + " depends on an oracle that did not judge"
				continue
			}
			if slices.Contains(r.Outcomes, o.Outcome) != o.Holds {
				r.Wrong = append(r.Wrong, fmt.Sprintf("the results should %sshow %s", map[bool]string{false: "not "}[o.Holds], o.Outcome))
			}
		}
	}
	return r
}

// judgesOf leaves of what is expected that about which somebody judged who could decide.
func (d *done) judgesOf(want []string) (out []string) {
	for _, name := range want {
		ruled := func(v ruling) bool { return v.Unknown == "" && slices.Contains(v.classes, oracle.Class(name)) }
		if slices.ContainsFunc(d.rulings, ruled) || d.judge && !slices.ContainsFunc(judges, func(j judge) bool { return slices.Contains(j.classes, oracle.Class(name)) }) {
			out = append(out, name)
		}
	}
	return out
}

// compareFound says what is missing and what is too much. An expectation names an anomaly or its class. What is permitted may
// be expected, and is never too much; what did not repeat is neither.
func compareFound(want []string, found []oracle.Finding) (wrong []string) {
	fits := func(name string, f *oracle.Finding) bool {
		return strings.EqualFold(name, f.Title()) || strings.EqualFold(name, string(f.Class))
	}
	for _, name := range want {
		if !slices.ContainsFunc(found, func(f oracle.Finding) bool { return fits(name, &f) }) {
			wrong = append(wrong, "expected "+name+", which was not found")
		}
	}
	for i := range found {
		if d := found[i].Difference; d != nil && (d.Flaky || found[i].Kind == oracle.KindPermitted) {
			continue
		}
		if !slices.ContainsFunc(want, func(name string) bool { return fits(name, &found[i]) }) {
			wrong = append(wrong, "found "+found[i].Title()+", which was not expected")
		}
	}
	return wrong
}

// caseResults is what conditions ask of a case.
type caseResults struct {
	spec *scenario.Spec
	d    *done
}

// Step implements scenario.Results.
func (c caseResults) Step(name string) (result scenario.StepResult, ok bool) {
	for i := range c.d.Finals {
		if name == "final" && i == 0 || name == fmt.Sprintf("final%d", i+1) {
			return stepResult(c.d.Finals[i]), true
		}
	}
	blocked := false
	for _, ev := range c.d.Events {
		if ev.Step.Name != name {
			continue
		}
		switch ev.Kind {
		case lab.Waits:
			blocked = true
		case lab.Ran, lab.Resumed:
			result, ok = stepResult(ev.Answer), true
			result.Blocked = ev.Kind == lab.Resumed
			blocked = false
		}
	}
	if blocked { // it waited to the end
		return scenario.StepResult{Blocked: true}, true
	}
	return result, ok
}

// stepResult is the part of an answer that conditions speak of.
func stepResult(a answer.Answer) scenario.StepResult {
	var s scenario.StepResult
	for _, r := range a.Results {
		if r.Columns == nil {
			s.Affected = r.Affected
			continue
		}
		s.Rows = nil
		for _, row := range r.Rows {
			values := make([]scenario.Value, len(row))
			for i, v := range row {
				values[i] = scenario.Value{Text: string(v), Null: v == nil}
			}
			s.Rows = append(s.Rows, values)
		}
	}
	if a.Err != nil {
		s.Error = a.Err.Code
	}
	return s
}

// Found implements scenario.Results.
func (c caseResults) Found(name string) (found, known bool) {
	if name == isolationName && c.d.judge && !c.d.unseen() {
		return len(c.d.isolation.Findings) > 0, true
	}
	for _, v := range c.d.rulings {
		if !slices.Contains(v.classes, oracle.Class(name)) {
			continue
		}
		found = slices.ContainsFunc(v.findings, func(f oracle.Finding) bool {
			return string(f.Class) == name && f.Kind != oracle.KindPermitted && !f.Difference.Flaky
		})
		return found, found || v.Unknown == ""
	}
	return false, false
}

// Crashed implements scenario.Results.
func (c caseResults) Crashed() bool { return c.d.Crashed }

// printer writes the results of one file at one level.
type printer struct {
	c        *common
	out      *bytes.Buffer
	spec     *scenario.Spec
	instance *backends.Instance
	level    engine.Level
	shown    int // bytes of out that are on stdout
}

// unusedStep begins the one warning that isolationtester has too.
const unusedStep = "unused step name: "

func (p *printer) begin() {
	p.shown = p.out.Len()
	switch p.c.format {
	case "text":
		if p.out.Len() > 0 {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintf(p.out, "%s on %s at %s\n", filepath.Base(p.spec.Name), p.instance.Engine.Title, p.level.SQL)
	case "isolationtester":
		var unused []string
		for _, w := range p.spec.Warnings {
			if strings.HasPrefix(w.Text, unusedStep) {
				unused = append(unused, w.Text+"\n")
			}
		}
		slices.Sort(unused)
		fmt.Fprint(p.out, strings.Join(unused, ""))
		fmt.Fprintf(p.out, "Parsed test spec with %d sessions\n", len(p.spec.Sessions))
	}
}

func (p *printer) permutation(n int, d *done, r caseReport) error {
	switch p.c.format {
	case "isolationtester":
		if err := d.IsolationTester(p.out, p.spec); err != nil {
			return err
		}
	case "text":
		fmt.Fprintf(p.out, "\npermutation %d: %s\n", n, d.Permutation)
		if err := d.Text(p.out, p.spec); err != nil {
			return err
		}
		p.verdict(d, r)
	}
	return p.flush()
}

// flush shows what was written since the last time.
func (p *printer) flush() error {
	_, err := p.c.stdout.Write(p.out.Bytes()[p.shown:])
	p.shown = p.out.Len()
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// refused prints a case whose setup the server refused, where the format has words for that.
func (p *printer) refused(d *done) error {
	if p.c.format != "isolationtester" || d.Result == nil {
		return nil
	}
	return errors.Join(d.IsolationTester(p.out, p.spec), p.flush())
}

// end says how many of the possible orders were run.
func (p *printer) end(count runCount) error {
	if text := count.text(); p.c.format == "text" && text != "" {
		fmt.Fprintf(p.out, "\n%s\n", text)
	}
	return p.flush()
}

// verdict says what the oracles and the scenario's own conditions say.
func (p *printer) verdict(d *done, r caseReport) {
	for _, name := range r.Outcomes {
		fmt.Fprintf(p.out, "outcome: %s\n", name)
	}
	if d.judge {
		if len(d.isolation.Findings) == 0 && !d.unseen() && d.Trouble == nil {
			fmt.Fprintln(p.out, "isolation: nothing found")
		}
		for i := range d.isolation.Findings {
			p.finding(d, &d.isolation.Findings[i])
		}
		fmt.Fprintln(p.out, d.isolation.Coverage)
	}
	for _, v := range d.rulings {
		p.ruling(v)
	}
	if r.Kept != "" {
		fmt.Fprintf(p.out, "shown by: wirecheck run %s --engine %s\n", r.Kept, p.instance.Engine.Name)
	}
	if r.Unknown != "" {
		fmt.Fprintf(p.out, "unknown: %s\n", r.Unknown)
	}
	for _, w := range r.Wrong {
		fmt.Fprintf(p.out, "NOT AS EXPECTED: %s\n", w)
	}
}

// finding tells of one finding in the words of the scenario: sessions and steps in place of transactions and statements,
// since these have numbers that differ from run to run.
func (p *printer) finding(d *done, f *oracle.Finding) {
	blame := "allowed at this level"
	if f.Promised {
		blame = "promised not to happen at this level: a DBMS bug"
	}
	title := string(f.Class)
	if f.Name != "" {
		title = fmt.Sprintf("%s (%s)", f.Name, f.Class)
	}
	fmt.Fprintf(p.out, "isolation: %s, %s\n", title, blame)
	for _, e := range f.Edges {
		from, to := p.who(d, &f.Transactions[e.From], e.FromStatement), p.who(d, &f.Transactions[e.To], e.ToStatement)
		_, row, _ := strings.Cut(e.Row.Table, ".") // the schema is the lab's own
		if e.Name != "" {
			row += " " + e.Name
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
		fmt.Fprintf(p.out, "  %s (%s)\n", text, e.Kind)
	}
}

// who names a transaction's session and the step that carries an edge.
func (p *printer) who(d *done, t *oracle.Transaction, statement int) string {
	session := d.watched.Session(t.Backend)
	name := fmt.Sprintf("a transaction of backend %d", t.Backend)
	if session >= 0 {
		name = p.spec.Sessions[session].Name
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
func stepOf(d *done, session int, s oracle.Statement) (step string) {
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

// summary prints what concerns all cases.
func (r *runner) summary() error {
	switch r.c.format {
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
		_, err := fmt.Fprintln(r.c.stdout, text)
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
	if _, err := fmt.Fprint(r.c.stdout, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(r.c.stdout)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := fmt.Fprintln(r.c.stdout)
	return err
}

package panel

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// CaseReport is the verdict over one permutation, for programs.
type CaseReport struct {
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
	Broken      []string `json:"broken,omitempty"`    // invariants that do not hold behind it, with what their queries gave
	Unknown     string   `json:"unknown,omitempty"`   // why it could not be decided
	Expects     bool     `json:"expects"`             // the scenario says what the oracles are expected to find
	Crashed     bool     `json:"crashed,omitempty"`
	Failed      string   `json:"failed,omitempty"` // why it could not be executed
	// Refused counts the steps that the server refused; Mistakes are those of them that cannot succeed (product.ErrorClass) and of which the
	// scenario does not say that they fail, with their errors.
	Refused  int      `json:"refused,omitempty"`
	Mistakes []string `json:"mistakes,omitempty"`
	Marks    []string `json:"marks,omitempty"`

	Findings []oracle.Finding `json:"findings,omitempty"`
	Rulings  []Ruling         `json:"rulings,omitempty"` // what the re-executing oracles said besides
	// Case is a scenario file that shows the findings with one command; Kept is where it was stored (--out).
	Case string `json:"case,omitempty"`
	Kept string `json:"kept,omitempty"`
	runJSON
}

// unseen says that the isolation oracle cannot have found anything.
const unseen = "nothing of what the statements read and wrote could be seen"

// Unseen reports whether the isolation oracle judged nothing of the steps: then that it found nothing says nothing. What it saw of the
// final queries does not count.
func (d *Judgement) Unseen() bool {
	v := d.Isolation.Coverage
	if d.steps != nil {
		v = *d.steps
	}
	return d.Judged && len(d.Isolation.Findings) == 0 && v.Exact+v.Approximate == 0 && v.Opaque > 0
}

// refused counts the steps that the server refused, and notes the mistakes among them.
func (r *CaseReport) refused(d *Judgement, outcomes []scenario.Outcome, t scenario.Target) {
	for _, ev := range d.Events {
		e := ev.Answer.Err
		if e == nil || ev.Kind != lab.Ran && ev.Kind != lab.Resumed {
			continue
		}
		r.Refused++
		stated := func(o scenario.Outcome) bool {
			return strings.Contains(o.Condition.String(), "failed("+ev.Step.Name+")")
		}
		if product.Of(t.Engine).Error(e.Code, e.Message).Mistake && !slices.ContainsFunc(outcomes, stated) {
			r.Mistakes = append(r.Mistakes, fmt.Sprintf("step %s failed with %s", ev.Step.Name, prose.Line(e.Text(), prose.Width)))
		}
	}
}

// Report compares what happened with what the scenario expects.
func (d *Judgement) Report(spec *scenario.Spec, t scenario.Target) CaseReport {
	r := CaseReport{Permutation: d.Permutation.String(), Found: []string{}, Outcomes: []string{}, Marks: d.Marks, Crashed: d.Crashed, runJSON: jsonOf(spec, d)}
	r.Findings, r.Rulings = slices.Clone(d.Isolation.Findings), d.Rulings
	for i := range d.Isolation.Findings {
		r.Found = append(r.Found, d.Isolation.Findings[i].Title())
	}
	for _, v := range d.Rulings {
		r.Findings = append(r.Findings, v.Findings...)
		for i := range v.Findings {
			switch f := &v.Findings[i]; {
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
	r.refused(d, spec.Outcomes(d.Permutation), t)
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
	if d.Unseen() {
		r.Unknown = IsolationName + ": " + unseen
	} else if d.Judged || len(d.Rulings) > 0 {
		if want, ok := spec.Expect(d.Permutation, t); ok {
			r.Expects = true
			r.Wrong = append(r.Wrong, compareFound(d.judgesOf(want), r.Findings)...)
		}
	}
	if want, ok := spec.Verdict(d.Permutation, t); ok && (d.Judged || len(d.Rulings) > 0) {
		r.Expects = true
		r.Wrong = append(r.Wrong, d.compareVerdict(want)...)
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
	if len(r.Found) > 0 || r.Unknown != "" || !d.Judged && len(d.Rulings) == 0 {
		return r
	}
	if v := d.Isolation.Coverage; len(r.Mistakes) > 0 {
		r.Unknown = r.Mistakes[0]
	} else if len(d.Rulings) == 0 && v.Statements() > 0 && v.Undecided(0) != "" {
		r.Unknown = IsolationName + ": " + v.Undecided(0)
	}
	return r
}

// judgesOf leaves of the expected names those about which an oracle judged and could decide.
func (d *Judgement) judgesOf(want []string) (out []string) {
	for _, name := range want {
		ruled := func(v Ruling) bool { return v.Unknown == "" && slices.Contains(v.classes, oracle.Class(name)) }
		if slices.ContainsFunc(d.Rulings, ruled) || d.Judged && !slices.ContainsFunc(judges, func(j Judge) bool { return slices.Contains(j.classes, oracle.Class(name)) }) {
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
	d    *Judgement
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
		s.Rows = r.Rows
	}
	s.Err = a.Err
	return s
}

// Found implements scenario.Results.
func (c caseResults) Found(name string) (found, known bool) {
	if name == IsolationName && c.d.Judged && !c.d.Unseen() {
		return len(c.d.Isolation.Findings) > 0, true
	}
	for _, v := range c.d.Rulings {
		if !slices.Contains(v.classes, oracle.Class(name)) {
			continue
		}
		found = slices.ContainsFunc(v.Findings, func(f oracle.Finding) bool {
			return string(f.Class) == name && f.Kind != oracle.KindPermitted && !f.Difference.Flaky
		})
		return found, found || v.Unknown == ""
	}
	return false, false
}

// Crashed implements scenario.Results.
func (c caseResults) Crashed() bool { return c.d.Crashed }

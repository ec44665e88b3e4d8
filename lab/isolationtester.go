package lab

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/scenario"
)

// IsolationTester writes the schedule as PostgreSQL's isolationtester does (src/test/isolation/README), so that it can be
// compared with expected output that was made for that. It obeys the markers of the permutation, which say when a step
// is to be reported as waiting or as done.
func (r *Result) IsolationTester(w io.Writer, spec *scenario.Spec) error {
	out := bufio.NewWriter(w)
	t := tester{w: out, spec: spec, r: r, reported: make([]bool, len(r.Permutation.Steps))}
	fmt.Fprintf(out, "\nstarting permutation: %s\n", t.order())
	for _, o := range r.Setup {
		t.notices(o.Session, o.Answer)
		t.rows(o.Answer)
	}
	t.play()
	for _, o := range r.Teardown {
		t.notices(o.Session, o.Answer)
		t.rows(o.Answer)
	}
	return out.Flush()
}

// tester writes one result.
type tester struct {
	w        *bufio.Writer
	spec     *scenario.Spec
	r        *Result
	reported []bool  // by place: the step was reported as done
	open     []Event // done, and reported as waiting, in the order in which they were submitted
	told     int     // notices of each session
}

// order is the permutation without its markers.
func (t *tester) order() string {
	names := make([]string, len(t.r.Permutation.Steps))
	for i, st := range t.r.Permutation.Steps {
		names[i] = quoted(st.Step.Name)
	}
	return strings.Join(names, " ")
}

// quoted is a name as PQescapeIdentifier would leave or quote it: only what is no plain word is quoted.
func quoted(name string) string {
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
	}
	return name
}

// play goes through the events. What a marker holds back is reported as soon as it may.
func (t *tester) play() {
	for _, ev := range t.r.Events {
		switch ev.Kind {
		case Waits:
			t.flush(ev.Place)
			fmt.Fprintf(t.w, "step %s: %s <waiting ...>\n", ev.Step.Name, ev.Step.SQL)
		case Ran:
			t.flush(ev.Place)
			if t.heldBack(ev) || t.marked(ev.Place, scenario.MarkOnce) {
				fmt.Fprintf(t.w, "step %s: %s <waiting ...>\n", ev.Step.Name, ev.Step.SQL)
				t.open = append(t.open, ev)
				continue
			}
			t.done(ev, fmt.Sprintf("step %s: %s", ev.Step.Name, ev.Step.SQL))
		case Resumed:
			t.open = append(t.open, ev)
			t.flush(-1)
		}
	}
	t.flush(-1)
	for _, ev := range t.open { // what they wait for never came
		t.done(ev, fmt.Sprintf("step %s: <... completed>", ev.Step.Name))
	}
	t.open = nil
}

// flush reports the steps that are done and may be said to be. place is the step that is submitted next: a step marked
// with * is held back until then.
func (t *tester) flush(place int) {
	for again := true; again; {
		again = false
		for i, ev := range t.open {
			if t.heldBack(ev) || place < 0 && ev.Kind == Ran && t.marked(ev.Place, scenario.MarkOnce) && !t.last() {
				continue
			}
			t.open = append(t.open[:i:i], t.open[i+1:]...)
			t.done(ev, fmt.Sprintf("step %s: <... completed>", ev.Step.Name))
			again = true
			break
		}
	}
}

// last reports whether every step was submitted.
func (t *tester) last() bool { return true }

// marked reports whether the step at a place has a marker of that kind.
func (t *tester) marked(place int, kind scenario.MarkerKind) bool {
	for _, m := range t.r.Permutation.Steps[place].Markers {
		if m.Kind == kind {
			return true
		}
	}
	return false
}

// heldBack reports whether a marker names a step that is not reported as done yet, though it was submitted.
func (t *tester) heldBack(ev Event) bool {
	for _, m := range t.r.Permutation.Steps[ev.Place].Markers {
		if m.Kind != scenario.MarkStep {
			continue
		}
		for place, st := range t.r.Permutation.Steps {
			if st.Step == m.Step && !t.reported[place] && t.underWay(place) {
				return true
			}
		}
	}
	return false
}

// underWay reports whether the step at a place was submitted before now and is not reported yet.
func (t *tester) underWay(place int) bool {
	for _, ev := range t.open {
		if ev.Place == place {
			return true
		}
	}
	return !t.reported[place]
}

// done reports a step as done.
func (t *tester) done(ev Event, head string) {
	t.reported[ev.Place] = true
	t.notices(ev.Step.Session, ev.Answer)
	fmt.Fprintln(t.w, head)
	t.rows(ev.Answer)
	if err := ev.Answer.Err; err != nil {
		fmt.Fprintf(t.w, "%s:  %s\n", severity(err), err.Message)
	}
	t.notifications(ev)
}

func severity(err *engine.ServerError) string {
	if err.Severity == "" {
		return "ERROR"
	}
	return err.Severity
}

// notices are written before the line of the step that they came with: isolationtester writes them when they arrive.
func (t *tester) notices(session int, a engine.Answer) {
	name := "control"
	if session >= 0 {
		name = t.spec.Sessions[session].Name
	}
	for _, n := range a.Notices {
		if n.Channel == "" {
			fmt.Fprintf(t.w, "%s: %s:  %s\n", name, n.Severity, n.Message)
		}
	}
}

func (t *tester) notifications(ev Event) {
	for _, n := range ev.Answer.Notices {
		if n.Channel != "" {
			fmt.Fprintf(t.w, "%s: NOTIFY %q with payload %q from a session\n", t.spec.Sessions[ev.Step.Session].Name, n.Channel, n.Payload)
		}
	}
}

// rows writes results in the form of libpq's PQprint, with headers, aligned.
func (t *tester) rows(a engine.Answer) {
	for _, r := range a.Results {
		if r.Columns != nil {
			pqPrint(t.w, r)
		}
	}
}

// pqPrint is libpq's old way to print a result: a column is numeric if all its values look like numbers.
func pqPrint(w io.Writer, r engine.Result) {
	widths, text := make([]int, len(r.Columns)), make([]bool, len(r.Columns))
	for i, c := range r.Columns {
		widths[i] = len(c.Name)
		for _, row := range r.Rows {
			widths[i] = max(widths[i], len(row[i]))
			text[i] = text[i] || !looksNumeric(row[i])
		}
	}
	line := func(value func(i int) string) {
		for i := range r.Columns {
			if i > 0 {
				fmt.Fprint(w, "|")
			}
			if text[i] {
				fmt.Fprintf(w, "%-*s", widths[i], value(i))
			} else {
				fmt.Fprintf(w, "%*s", widths[i], value(i))
			}
		}
		fmt.Fprintln(w)
	}
	line(func(i int) string { return r.Columns[i].Name })
	for i, n := range widths {
		if i > 0 {
			fmt.Fprint(w, "+")
		}
		fmt.Fprint(w, strings.Repeat("-", n))
	}
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		line(func(i int) string { return string(row[i]) })
	}
	fmt.Fprintf(w, "(%d %s)\n\n", len(r.Rows), plural(len(r.Rows), "row", "rows"))
}

// looksNumeric is PQprint's test: digits, points, blanks, signs and e, a digit last, and no e first. NULL and empty texts
// say nothing against it.
func looksNumeric(v engine.Value) bool {
	if len(v) == 0 {
		return true
	}
	for _, c := range v {
		if !(c >= '0' && c <= '9' || c == '.' || c == 'E' || c == 'e' || c == ' ' || c == '-') {
			return false
		}
	}
	end := v[len(v)-1]
	return v[0] != 'E' && v[0] != 'e' && end >= '0' && end <= '9'
}

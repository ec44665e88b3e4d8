package lab

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
)

// IsolationTester writes the schedule as PostgreSQL's isolationtester does (src/test/isolation/README, and isolationtester.c
// of version 15), so that it can be compared with expected output that was made for that. Expected output holds what
// isolationtester says on stdout and on stderr.
//
// isolationtester reports a step when it looks at it, and its markers say when a step may be reported as done. So what
// happened is played to it as it would have seen it, launch by launch.
func (r *Result) IsolationTester(w io.Writer, spec *scenario.Spec) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "\nstarting permutation:")
	for _, st := range r.Permutation.Steps {
		fmt.Fprint(out, " ", st.Step.Name)
	}
	fmt.Fprintln(out)
	t := newTester(out, spec, r)
	for _, o := range r.Setup {
		t.block(o, "setup")
	}
	t.play()
	for _, o := range r.Teardown {
		t.block(o, "teardown")
	}
	return out.Flush()
}

// tester plays the part of isolationtester for one result. Steps are numbered by their places in the permutation.
type tester struct {
	w       *bufio.Writer
	spec    *scenario.Spec
	r       *Result
	arrived [][]answer.Notice // by session: notices that are there to be read
	told    []int             // by session: notices that were read
	active  []int             // by session: the step that is not reported as done, or -1
	waiting []int             // steps that were reported as waiting, in the order of their launches
	answers map[int]Event     // of the steps that have finished on the server
	targets map[scenario.Pos]int
}

func newTester(w *bufio.Writer, spec *scenario.Spec, r *Result) *tester {
	n := len(spec.Sessions)
	t := &tester{
		w: w, spec: spec, r: r, arrived: make([][]answer.Notice, n), told: make([]int, n), active: make([]int, n),
		answers: map[int]Event{}, targets: map[scenario.Pos]int{},
	}
	for i := range t.active {
		t.active[i] = -1
	}
	return t
}

// launch is a step that was submitted, and what had happened until the next one was.
type launch struct {
	place  int
	waited bool    // it was seen waiting
	done   []Event // steps that finished
}

// launches cuts the schedule into pieces.
func (t *tester) launches() []launch {
	var all []launch
	for _, ev := range t.r.Events {
		if ev.Kind == Ran || ev.Kind == Waits {
			all = append(all, launch{place: ev.Place, waited: ev.Kind == Waits})
		}
		if (ev.Kind == Ran || ev.Kind == Resumed) && len(all) > 0 {
			l := &all[len(all)-1]
			l.done = append(l.done, ev)
		}
	}
	return all
}

// play is isolationtester's main loop (run_permutation).
func (t *tester) play() {
	heard := t.r.Heard
	for n, l := range t.launches() {
		t.makeRoom(t.session(l.place))
		for _, ev := range l.done {
			t.answers[ev.Place] = ev
		}
		for len(heard) > 0 && heard[0].Launched <= n+1 {
			t.arrived[heard[0].Session] = append(t.arrived[heard[0].Session], heard[0].Notice)
			heard = heard[1:]
		}
		t.active[t.session(l.place)] = l.place
		t.aim(l.place)
		waits := t.first(l)
		t.scan()
		if waits {
			t.waiting = append(t.waiting, l.place)
		}
	}
	t.scan()
	switch {
	case t.r.Trouble != nil:
		fmt.Fprintf(t.w, "wirecheck: not finished: %v\n", t.r.Trouble)
	case len(t.waiting) > 0:
		fmt.Fprintln(t.w, "failed to complete permutation due to mutually-blocking steps")
	}
}

func (t *tester) session(place int) int { return t.r.Permutation.Steps[place].Step.Session }

func (t *tester) markers(place int) []scenario.Marker { return t.r.Permutation.Steps[place].Markers }

// makeRoom reports the session's step as done, for which others may have to be reported first.
func (t *tester) makeRoom(session int) {
	for t.active[session] >= 0 {
		old, before := t.active[session], len(t.waiting)
		if t.retry(old) {
			t.waiting = slices.DeleteFunc(t.waiting, func(p int) bool { return p == old })
		}
		t.scan()
		if len(t.waiting) == before {
			return // what it is held back for comes later: isolationtester would never have launched the next step
		}
	}
}

// aim sets how many notices the launched step's markers wait for.
func (t *tester) aim(place int) {
	for _, m := range t.markers(place) {
		if m.Kind == scenario.MarkNotices {
			t.targets[m.Pos] = t.told[m.Step.Session] + m.Notices
		}
	}
}

// first looks at a step that was just launched, and reports whether it waits.
func (t *tester) first(l launch) (waits bool) {
	st := t.r.Permutation.Steps[l.place].Step
	once := slices.ContainsFunc(t.markers(l.place), func(m scenario.Marker) bool { return m.Kind == scenario.MarkOnce })
	if !once {
		t.read(st.Session)
	}
	if once || l.waited || t.heldBack(l.place) {
		fmt.Fprintf(t.w, "step %s: %s <waiting ...>\n", st.Name, st.SQL)
		return true
	}
	t.done(l.place, fmt.Sprintf("step %s: %s", st.Name, st.SQL))
	return false
}

// retry looks at a step that was reported as waiting, and reports whether it is done.
func (t *tester) retry(place int) bool {
	t.read(t.session(place))
	if _, finished := t.answers[place]; !finished || t.heldBack(place) {
		return false
	}
	t.done(place, fmt.Sprintf("step %s: <... completed>", t.r.Permutation.Steps[place].Step.Name))
	return true
}

// scan looks at all steps that were reported as waiting (try_complete_steps). A step that is held back is looked at again
// if others were done or sent notices.
func (t *tester) scan() {
	for again := true; again; {
		before, told, held := len(t.waiting), t.notices(), false
		t.waiting = slices.DeleteFunc(slices.Clone(t.waiting), func(place int) bool {
			done := t.retry(place)
			held = held || !done && len(t.markers(place)) > 0
			return done
		})
		again = held && (len(t.waiting) < before || t.notices() > told)
	}
}

// notices counts those that were read.
func (t *tester) notices() (n int) {
	for _, told := range t.told {
		n += told
	}
	return n
}

// heldBack reports whether a marker does not let a step be reported as done (step_has_blocker).
func (t *tester) heldBack(place int) bool {
	return slices.ContainsFunc(t.markers(place), func(m scenario.Marker) bool {
		switch m.Kind {
		case scenario.MarkStep:
			active := t.active[m.Step.Session]
			return active >= 0 && t.r.Permutation.Steps[active].Step == m.Step
		case scenario.MarkNotices:
			return t.told[m.Step.Session] < t.targets[m.Pos]
		}
		return false
	})
}

// done reports a step as done.
func (t *tester) done(place int, head string) {
	ev := t.answers[place]
	session := t.session(place)
	t.active[session] = -1
	fmt.Fprintln(t.w, head)
	for _, r := range ev.Answer.Results {
		pqPrint(t.w, r)
	}
	if err := ev.Answer.Err; err != nil {
		fmt.Fprintf(t.w, "%s:  %s\n", severity(err), err.Message)
	}
	if ev.Lost { // what libpq adds
		fmt.Fprint(t.w, "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n"+
			"\tbefore or while processing the request.\n\n")
	}
	for _, n := range ev.Answer.Notices {
		if n.Channel != "" {
			fmt.Fprintf(t.w, "%s: NOTIFY \"%s\" with payload \"%s\" from %s\n", t.spec.Sessions[session].Name, n.Channel, n.Payload, t.sender(n))
		}
	}
}

// sender names the session that a notification is from.
func (t *tester) sender(n answer.Notice) string {
	if i := t.r.Session(n.PID); i >= 0 {
		return t.spec.Sessions[i].Name
	}
	return fmt.Sprintf("PID %d", n.PID)
}

// read writes the notices that have arrived for a session.
func (t *tester) read(session int) {
	for _, n := range t.arrived[session] {
		t.notice(session, n)
		t.told[session]++
	}
	t.arrived[session] = nil
}

func (t *tester) notice(session int, n answer.Notice) {
	fmt.Fprintf(t.w, "%s: %s:  %s\n", t.spec.Sessions[session].Name, n.Severity, n.Message)
	if n.Detail != "" {
		fmt.Fprintf(t.w, "DETAIL:  %s\n", n.Detail)
	}
	if n.Hint != "" {
		fmt.Fprintf(t.w, "HINT:  %s\n", n.Hint)
	}
}

// block writes what a setup or teardown brought back: of its statements' results the last one (PQexec), of the control
// connection's notices none.
func (t *tester) block(o Output, what string) {
	if o.Session >= 0 {
		for _, n := range o.Answer.Notices {
			if n.Channel == "" {
				t.notice(o.Session, n)
			}
		}
		what += " of session " + t.spec.Sessions[o.Session].Name
	}
	if err := o.Answer.Err; err != nil {
		fmt.Fprintf(t.w, "%s failed: %s:  %s\n", what, severity(err), err.Message)
		for _, more := range [][2]string{{"DETAIL", err.Detail}, {"HINT", err.Hint}, {"CONTEXT", err.Where}} {
			if more[1] != "" {
				fmt.Fprintf(t.w, "%s:  %s\n", more[0], more[1])
			}
		}
		return
	}
	if n := len(o.Answer.Results); n > 0 {
		pqPrint(t.w, o.Answer.Results[n-1])
	}
}

func severity(err *answer.Error) string {
	return cmp.Or(err.Severity, "ERROR")
}

package explore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/serial"
	"wirecheck/product"
)

// Outcome is what executing units at one level in all inequivalent interleavings brought.
type Outcome struct {
	Level    string         `json:"level"`
	Tried    int            `json:"interleavings"`
	All      bool           `json:"all"`                // every inequivalent one was tried
	Wrong    int            `json:"wrong"`              // of these, in how many something goes wrong for sure: the one shown was executed three times
	Possible int            `json:"possible,omitempty"` // in how many something goes wrong that the application might have prevented
	Waited   int            `json:"waited,omitempty"`   // in how many a statement waited for a lock
	Refused  map[string]int `json:"refused,omitempty"`  // in how many the server refused a statement, by its code
	GaveUp   int            `json:"gave_up,omitempty"`  // in how many all units but one know that they came too late, since their UPDATE changes no row
	Found    []string       `json:"found,omitempty"`    // names of the anomalies that are sure
	Deadlock *Cycle         `json:"deadlock,omitempty"`
	// Untried says why nothing, or not all, was tried; empty: it was.
	Untried string    `json:"untried,omitempty"`
	Shown   *WrongRun `json:"shown,omitempty"`    // the shortest that goes wrong
	Maybe   *WrongRun `json:"possibly,omitempty"` // the shortest that might
	// Breaches are the invariants that interleavings break.
	Breaches []*Breach `json:"invariants,omitempty"`
	level    product.Level
}

// Cycle is a deadlock that was executed: each session's locking statements up to it, the last of which waits.
type Cycle struct {
	Count       int        `json:"interleavings"`
	Permutation string     `json:"permutation"`
	Orders      [][]string `json:"orders"`
}

// safe reports whether everything was tried, and nothing went wrong or may have.
func (o *Outcome) safe() bool { return o.All && o.Wrong == 0 && o.Possible == 0 }

// add adds what other units of the same shapes brought.
func (o *Outcome) add(p *Outcome) {
	if p.Untried != "" && p.Tried == 0 && o.Tried > 0 {
		return // these units tell nothing, others did
	}
	if o.Untried != "" && o.Tried == 0 {
		level := o.level
		*o = *p
		o.level = level
		return
	}
	o.Tried, o.Wrong, o.Possible, o.Waited = o.Tried+p.Tried, o.Wrong+p.Wrong, o.Possible+p.Possible, o.Waited+p.Waited
	o.All = o.All && p.All
	o.GaveUp += p.GaveUp
	for code, n := range p.Refused {
		o.Refused[code] += n
	}
	for _, name := range p.Found {
		if !slices.Contains(o.Found, name) {
			o.Found = append(o.Found, name)
		}
	}
	o.addBreaches(p)
	if o.Deadlock == nil {
		o.Deadlock = p.Deadlock
	} else if p.Deadlock != nil {
		o.Deadlock.Count += p.Deadlock.Count
	}
	if o.Shown == nil {
		o.Shown = p.Shown
	}
	if o.Maybe == nil {
		o.Maybe = p.Maybe
	}
	o.Untried = cmp.Or(o.Untried, p.Untried)
}

// Limits of a trial.
const (
	mostOrders = 1000 // interleavings of two units at one level
	// Of three, those in which one of them is interrupted at one place, if its statements are few; and all, to prove a remedy.
	mostThree, mostProof = 120, 5000

	shownTimes = 3 // how often one that goes wrong is executed before it is shown
)

// trial executes units at a level in all inequivalent interleavings, up to a limit. show says that the anomalies get names and a scenario.
func (e *explorer) trial(ctx context.Context, m replay.Meeting, level product.Level, show bool) (*Outcome, error) {
	o := &Outcome{Level: level.History, Refused: map[string]int{}, level: level}
	g := m.Unbound()
	k := &combination{e: e, g: g, level: level, serial: map[string]*schedule.Schedule{}, named: map[string]*WrongRun{}, blamed: map[int]string{}}
	var err error
	if k.lab, k.panel, err = e.at(ctx, level); err != nil {
		return nil, err
	}
	if o.Untried, err = k.begin(ctx); o.Untried != "" || err != nil {
		return o, err
	}
	if o.Untried = k.unlike(m.Copied); o.Untried != "" {
		return o, nil
	}
	most := mostOrders
	switch {
	case len(g.Units) > 2 && show:
		most = mostThree
	case len(g.Units) > 2:
		most = mostProof
	}
	orders, all := k.trials(most)
	for _, p := range orders {
		if err := k.attempt(ctx, p, o, show); err != nil {
			return o, err
		}
		if !show && o.Wrong+o.Possible > 0 {
			return o, nil // it is no remedy
		}
	}
	if o.All = all && o.Untried == ""; !all {
		o.Untried = fmt.Sprintf("there are more than %d inequivalent interleavings: those with few switches between the sessions were tried", most)
	}
	return o, nil
}

// unlike says why the units do not do in this state what they did in the trace; empty: they do. The copy of a unit may be refused what the unit was not.
func (k *combination) unlike(copied bool) string {
	answers := k.answers(k.base)
	for i, u := range k.g.Units {
		if copied && i == len(k.g.Units)-1 {
			continue
		}
		for j, s := range u.Steps {
			a := answers[i][j]
			if s.Answer.Err == nil && a != nil && a.Err != nil {
				return fmt.Sprintf("executed one right after the other, %s is refused: %s", prose.Query(s.SQL, 60), prose.Line(a.Err.Message, 80))
			}
		}
	}
	return ""
}

// trials gives the interleavings to execute: one of each class of those that cannot differ, the serial ones left out; or those with few
// switches, if there are more than most. all reports whether that leaves none out.
func (k *combination) trials(most int) (orders []*scenario.Permutation, all bool) {
	serialOrder := func(p *scenario.Permutation) bool { return p.Switches() < len(k.spec.Sessions) }
	all = true
	for p := range k.spec.Orders(scenario.Mode{Kind: scenario.KindAll}, scenario.Choice{Independent: panel.Independence(k.spec, k.e.r.instance.Engine, k.level)}) {
		if serialOrder(p) {
			continue
		}
		if len(orders) == most {
			all = false
			break
		}
		orders = append(orders, p)
	}
	if !all {
		orders = preempted(k.spec, most)
	}
	slices.SortStableFunc(orders, func(a, b *scenario.Permutation) int { return a.Switches() - b.Switches() })
	return orders, all
}

// preempted gives interleavings in which few sessions are interrupted: first those in which one is, at one place, and then those in which two are.
func preempted(spec *scenario.Spec, most int) (orders []*scenario.Permutation) {
	type block struct{ session, from, to int }
	seen := map[string]bool{}
	add := func(blocks []block) {
		for order := range schedule.Permutations(blocks) {
			p, next, ok := &scenario.Permutation{}, make([]int, len(spec.Sessions)), true
			for _, b := range order {
				ok = ok && next[b.session] == b.from
				next[b.session] = b.to
				for _, st := range spec.Sessions[b.session].Steps[b.from:b.to] {
					p.Steps = append(p.Steps, scenario.PermutationStep{Step: st})
				}
			}
			if ok && len(orders) < most && p.Switches() >= len(spec.Sessions) && !seen[p.String()] {
				seen[p.String()] = true
				orders = append(orders, p)
			}
		}
	}
	split := func(cuts map[int]int) (blocks []block) {
		for i, s := range spec.Sessions {
			if at := cuts[i]; at > 0 {
				blocks = append(blocks, block{i, 0, at}, block{i, at, len(s.Steps)})
			} else {
				blocks = append(blocks, block{i, 0, len(s.Steps)})
			}
		}
		return blocks
	}
	for i, s := range spec.Sessions {
		for at := 1; at < len(s.Steps); at++ {
			add(split(map[int]int{i: at}))
		}
	}
	for i, s := range spec.Sessions {
		for j := i + 1; j < len(spec.Sessions); j++ {
			for at := 1; at < len(s.Steps); at++ {
				for to := 1; to < len(spec.Sessions[j].Steps); to++ {
					add(split(map[int]int{i: at, j: to}))
				}
			}
		}
	}
	return orders
}

// attempt executes one interleaving and adds what it brought.
func (k *combination) attempt(ctx context.Context, p *scenario.Permutation, o *Outcome, show bool) error {
	texts, result, mark, err := k.settle(ctx, p)
	if err != nil {
		return err
	}
	if result.Trouble != nil {
		o.Untried = fmt.Sprintf("interleaving %s: %v", p, result.Trouble)
		return nil
	}
	o.Tried++
	k.e.executed++
	k.count(result, p, o)
	if late, guarded := k.tooLate(result); late > 0 { // what one does by itself is serializable, and of three, what two of them do was tried before
		if guarded {
			o.GaveUp++
		}
		return nil
	}
	if mark == "" {
		mark = k.stopped(result)
	}
	if mark == "" && replay.Alike(k.g.Units, k.e.r.dialect()) {
		mark = "all of them write the same values to the same rows, which may be what the application wants"
	}
	before := o.Wrong + o.Possible
	if err := k.compare(ctx, p, texts, result, mark, o, show); err != nil {
		return err
	}
	return k.breakTrial(ctx, p, texts, result, mark, o, o.Wrong+o.Possible == before, show)
}

// compare asks whether an interleaving was serializable, and counts it if it was not.
func (k *combination) compare(ctx context.Context, p *scenario.Permutation, texts [][]string, result *lab.Result, mark string, o *Outcome, show bool) (err error) {
	spec, perm := k.with(texts, p)
	w := &WrongRun{Level: k.level.History, Permutation: perm.String(), Mark: mark, switches: p.Switches(), steps: len(p.Steps), Runs: 1}
	j, masks := serial.Judgement{}, k.masks
	times := 2 // the second execution tells which values the server makes
	if show && o.Shown == nil {
		times = shownTimes
	}
	for i := range times {
		if i > 0 {
			again, err := k.lab.Run(ctx, spec, perm, func(bool) {})
			if err != nil {
				return err
			}
			if again.Trouble != nil {
				o.Untried = fmt.Sprintf("interleaving %s: %v", p, again.Trouble)
				return nil
			}
			if masks, err = k.refined(spec, result, again); err != nil {
				return err
			}
			result = again
		}
		if j, err = k.values(ctx, spec, texts, result, masks, false); err != nil {
			return err
		}
		if j.Unknown != "" {
			o.Untried = fmt.Sprintf("interleaving %s could not be judged: %s", p, j.Unknown)
		}
		if len(j.Differences) == 0 {
			return nil
		}
	}
	w.Why = []string{j.Closest().Text}
	return k.wrongTrial(ctx, w, o, spec, perm, show)
}

// stopped says that the server refused a statement for another reason than contention, and had not refused it then: the application would hardly have
// gone on as it did. Empty: it refused none.
func (k *combination) stopped(result *lab.Result) string {
	for i := range result.Events {
		ev := &result.Events[i]
		if ev.Answer.Err != nil && !ev.Outcome.Reason.Contention() && ev.Outcome.Reason != answer.ReasonFailed && k.g.Units[ev.Step.Session].Steps[ev.Step.Index].Answer.Err == nil {
			return fmt.Sprintf("session %s: the server refuses a statement (%s), and what the application then does is not known: %s",
				k.spec.Sessions[ev.Step.Session].Name, ev.Answer.Err.Code, prose.Query(ev.Step.SQL, prose.Width))
		}
	}
	return ""
}

// tooLate counts the units that know that they came too late, and have committed nothing: a unique key refused the row that they had looked for in vain (or
// that key is the remedy that is tried), or their UPDATE changed no row though its condition asks for that. guarded says that the application knows it by the number of rows.
func (k *combination) tooLate(result *lab.Result) (units int, guarded bool) {
	late := map[int]bool{}
	for i := range result.Events {
		ev := &result.Events[i]
		if ev.Kind != lab.Ran && ev.Kind != lab.Resumed || late[ev.Step.Session] {
			continue
		}
		u := k.g.Units[ev.Step.Session]
		refused := ev.Answer.Err != nil && ev.Answer.Err.Code == k.e.r.instance.Engine.DuplicateError && (len(k.g.State.Besides) > 0 || u.Expected(ev.Step.Index, k.e.r.dialect()))
		none := ev.Answer.Err == nil && changed(&ev.Answer) == 0 && changed(&u.Steps[ev.Step.Index].Answer) > 0 && u.Steps[ev.Step.Index].Guarded(k.e.r.dialect())
		if (refused || none) && !u.CommittedBefore(ev.Step.Index) {
			late[ev.Step.Session] = true
			guarded = guarded || none
		}
	}
	return len(late), guarded
}

// changed is how many rows a statement changed.
func changed(a *answer.Answer) (n int64) {
	for i := range a.Results {
		n += a.Results[i].Affected
	}
	return n
}

// wrongTrial counts an interleaving that goes wrong; the first ones get a name and a scenario, if its execution by itself shows it again.
func (k *combination) wrongTrial(ctx context.Context, w *WrongRun, o *Outcome, spec *scenario.Spec, perm *scenario.Permutation, show bool) error {
	first := &o.Shown
	if w.Mark != "" {
		first = &o.Maybe
	}
	if show && *first == nil {
		if err := k.name(ctx, spec, perm, w); err != nil {
			return err
		}
		for _, u := range k.g.Units {
			w.Sessions = append(w.Sessions, u.Session)
		}
		if why, err := k.print(ctx, w, spec, perm); err != nil || why != "" {
			o.Untried = fmt.Sprintf("interleaving %s differs from every serial order, but %s", w.Permutation, why)
			return err
		}
		w.findings = nil
		*first = w
		for _, name := range w.Found {
			if w.Mark == "" && !slices.Contains(o.Found, name) {
				o.Found = append(o.Found, name)
			}
		}
	}
	if w.Mark != "" {
		o.Possible++
	} else {
		o.Wrong++
	}
	return nil
}

// count counts waits and refusals of an interleaving.
func (k *combination) count(result *lab.Result, p *scenario.Permutation, o *Outcome) {
	waited, refused := false, map[string]bool{}
	for i := range result.Events {
		ev := &result.Events[i]
		waited = waited || ev.Kind == lab.Waits
		if (ev.Kind != lab.Ran && ev.Kind != lab.Resumed) || ev.Answer.Err == nil || ev.Outcome.Reason == answer.ReasonFailed {
			continue
		}
		if k.g.Units[ev.Step.Session].Steps[ev.Step.Index].Answer.Err == nil {
			refused[ev.Answer.Err.Code] = true
		}
		if ev.Outcome.Reason != answer.ReasonDeadlock {
			continue
		}
		if o.Deadlock == nil {
			o.Deadlock = k.cycle(result, i, p)
		}
		o.Deadlock.Count++
	}
	if waited {
		o.Waited++
	}
	for code := range refused {
		o.Refused[code]++
	}
}

// cycle tells what each session had locked, and waited for, when the server ended the step of an event as the victim of a deadlock.
func (k *combination) cycle(result *lab.Result, victim int, p *scenario.Permutation) *Cycle {
	c := &Cycle{Permutation: p.String(), Orders: make([][]string, len(k.spec.Sessions))}
	sent := map[*scenario.Step]bool{}
	for i := range result.Events[:victim+1] {
		ev := &result.Events[i]
		if ev.Kind == lab.Skipped || sent[ev.Step] {
			continue
		}
		sent[ev.Step] = true
		if k.g.Units[ev.Step.Session].Steps[ev.Step.Index].Writes() || ev.Kind == lab.Waits {
			c.Orders[ev.Step.Session] = append(c.Orders[ev.Step.Session], prose.Query(ev.Step.SQL, prose.Width))
		}
	}
	return c
}

// Package troc implements transaction oracle construction (Troc, Dou et al., ICSE 2023): each statement of a schedule is executed
// alone on its own database view, the versions that it should see at its level, and what it really did is compared with that:
// its result, whether it waited, and in the end the tables.
//
// Beyond the paper: any number of transactions, several tables with a view for each role in a statement, PostgreSQL, TiDB's optimistic
// transactions, MariaDB's innodb_snapshot_isolation. Where the engine may choose (waiters that one COMMIT lets go, the moment of a
// snapshot) all choices are followed as worlds: what was seen must be possible in one of them. Docs: docs/explain/troc.md.
package troc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Descriptor describes the oracle.
var Descriptor = oracle.Oracle{
	Name: "troc",
	Doc: `executes each statement alone on the versions that it should see, and compares its result, its waiting and the final state
It needs a stage to execute on. From Troc (ICSE 2023), extended to PostgreSQL, TiDB, several tables and any number of transactions.`,
}

// Options are what a caller may choose.
type Options struct {
	// Worlds bounds how many courses of one schedule are followed at once; 0: 64. Beyond, the verdict is Unknown.
	Worlds int
	// Waiters bounds how many statements that one step lets go are tried in all orders; 0: 4.
	Waiters int
	// Overblocking looks for waits that no documented lock explains, and for nothing else.
	Overblocking bool
}

// check is the judgement of one schedule.
type check struct {
	frame
	o        Options
	t        *theater
	place    int // of the step under way, in order, from 1
	features features
	keys     []schedule.Reference  // nil: they are not known
	died     []death               // of all steps
	judged   map[int]bool          // by step: its answer alone is a finding
	defined  map[int]*redefinition // by step
	since    map[string]int        // by table: the place of its last definition
	waits    *waits                // nil: nobody asks for them
	out      schedule.Verdict
}

// frame is what the schedule alone tells: its transactions, and the order of its steps.
type frame struct {
	s     *schedule.Schedule
	p     *product.Product
	txs   []schedule.Transaction
	txOf  []int // by step: its transaction, or -1
	order []int // steps in the order in which they took effect
	until []int // by number of steps: the place of the last statement that waited and may have seen what was not committed behind them
}

// death is the end of a world: what was seen is not possible in it.
type death struct {
	mismatch
	causes []note
	place  int
	world  *world    // how the world would go on if the comparison were left out
	writes []written // before it
}

// Check judges a schedule. The error says that the stage cannot go on.
func Check(ctx context.Context, s *schedule.Schedule, stage schedule.Stage, o Options) (schedule.Verdict, error) {
	o.Worlds = cmp.Or(o.Worlds, 64)
	o.Waiters = cmp.Or(o.Waiters, 4)
	s = s.Begun()
	c := &check{frame: frame{s: s, p: s.DBMS(), txs: s.Transactions()}, o: o, judged: map[int]bool{}, defined: map[int]*redefinition{}, since: map[string]int{}}
	if why := c.undecidable(); why != "" {
		return schedule.Verdict{Unknown: why}, nil
	}
	t, start, err := newTheater(ctx, s, stage, s.Final)
	var refused errRowID
	if errors.As(err, &refused) {
		return schedule.Verdict{Unknown: refused.Error()}, nil
	}
	if err != nil {
		return schedule.Verdict{}, err
	}
	c.t = t
	if o.Overblocking {
		c.waits = &waits{check: c, found: map[int]mismatch{}, explains: map[int]bool{}}
	}
	c.arrange()
	c.features = featuresOf(s.Setup, t.names)
	c.features.late = s.Postpones()
	if c.features.keys {
		if c.keys, _, err = schedule.References(ctx, stage, c.p); err != nil {
			return schedule.Verdict{}, err
		}
	}
	worlds, err := c.follow(ctx, c.first(start))
	var rows *schedule.Refused
	if errors.As(err, &rows) {
		return schedule.Verdict{Unknown: "a view that a statement should have breaks a key"}, nil
	}
	if err != nil {
		return schedule.Verdict{}, err
	}
	spoiled := ""
	if len(worlds) == 0 {
		if spoiled, err = c.spoiled(ctx, c.lastDeath()); err != nil {
			return schedule.Verdict{}, err
		}
	}
	v := c.out
	if v.Unknown = cmp.Or(v.Unknown, spoiled); spoiled == "" {
		v = c.verdict(worlds)
	}
	if row, err := orphan(ctx, c, start); err != nil {
		return schedule.Verdict{}, err
	} else if row != nil {
		f := c.finding(row, nil)
		f.Source = c.p.Title + " documentation, foreign keys"
		v.Findings = append(v.Findings, f)
	}
	if o.Overblocking {
		v = c.waits.findings(v)
	}
	return v, nil
}

// naming finds statements that a server refuses if it does not have an index or a partition of a name. The stage has those of the setup.
var naming = regexp.MustCompile(`(?i)\b(?:use|force|ignore)\s+(?:index|key)\b|\bpartition\s*\(\s*\w`)

// undecidable says why a schedule is not judged at all; empty if it is.
func (c *frame) undecidable() string {
	s := c.s
	switch {
	case s.Crashed:
		return "the server, or a connection, ended"
	case s.Trouble != "":
		return "the schedule did not come to its end: " + s.Trouble
	case s.Lazy():
		return "a session puts off the look for duplicates"
	case s.Holds() != "":
		return s.Holds()
	case s.Calls() != "":
		return s.Calls()
	case s.Untransacted() != "":
		return s.Untransacted()
	}
	for i := range s.Steps {
		st := &s.Steps[i].Statement
		switch {
		case st.DDL && !schedule.Upkeep(s.Setup, st) && !c.followed(i):
			return "a step changes definitions: " + s.Steps[i].Name
		case st.DDL && s.Says(naming):
			return "a statement names an index or a partition, and " + s.Steps[i].Name + " defines such things"
		case st.Control.Verb == statement.ControlDatabase, st.Control.Verb == statement.ControlReset && c.p.Dialect == product.DialectPostgres: // search_path, role
			return s.Steps[i].Name + " changes what later statements mean: " + st.Text
		case st.Verb == "script":
			return "the answers of a step of several statements cannot be told apart: " + s.Steps[i].Name
		}
	}
	for i := range s.Sessions { // the stage's tables are those of the setup
		if slices.ContainsFunc(s.Sessions[i].Setup, func(st statement.Statement) bool { return st.DDL }) {
			return "the setup of session " + s.Sessions[i].Name + " changes definitions"
		}
	}
	for i := range c.txs {
		t := &c.txs[i]
		if t.Outcome == history.OutcomeUnknown {
			return "it is not known whether a transaction was committed"
		}
		if _, ok := c.p.View(t.Level, product.Select); !ok {
			return fmt.Sprintf("what a statement of %s sees at %s is not known (Troc, table II)", c.p.Title, c.p.LevelTitle(t.Level))
		}
	}
	return featureless(s.Setup)
}

// arrange finds the transactions of steps, and the order in which steps took effect: that in which they finished, except that
// what let a waiter go precedes it, whichever answer arrived first. A deadlock's victims precede the statement that closed the deadlock and
// went on without them.
func (c *frame) arrange() {
	c.txOf = schedule.Places(c.txs, len(c.s.Steps))
	steps := c.s.Steps
	for i := range steps {
		c.order = append(c.order, i)
	}
	for i := 1; i < len(c.order); i++ {
		for j := i; j > 0; j-- {
			a, b := &steps[c.order[j-1]], &steps[c.order[j]]
			released := a.Waited && !b.Waited && b.Sent <= a.Done && b.Sent >= a.Sent && a.Session != b.Session && !c.closed(b, a)
			if !released && !c.closed(a, b) {
				break
			}
			c.order[j-1], c.order[j] = c.order[j], c.order[j-1]
		}
	}
	c.until = make([]int, len(c.order)+1)
	for place := 0; place < len(c.order); {
		unit := c.unit(place)
		place += len(unit)
		for _, i := range unit {
			kind, ok := c.kind(i)
			if !ok || !steps[i].Waited {
				continue
			}
			if view, _ := c.p.View(c.txs[c.txOf[i]].Level, kind); view.Read == product.V2 || view.Locked == product.V2 {
				for at := c.sentAt(i); at < place; at++ {
					c.until[at] = place
				}
			}
		}
	}
}

// closed reports whether a statement that did not wait closed a deadlock whose victim is the other one, a waiter: it is the last statement
// that was sent before the victim's answer, and the locks that it got stay with its transaction.
func (c *frame) closed(st, victim *schedule.Step) bool {
	if st.Waited || st.Answer.Err != nil || !st.Before.InTransaction() || st.Statement.Control.Verb != statement.ControlNone {
		return false
	}
	return victim.Waited && victim.Reason == answer.ReasonDeadlock && victim.Session != st.Session && victim.Sent < st.Sent && st.Sent < victim.Done &&
		!slices.ContainsFunc(c.s.Steps, func(o schedule.Step) bool { return o.Sent > st.Sent && o.Sent < victim.Done })
}

// sentAt is the place in the order behind which a step was sent.
func (c *frame) sentAt(i int) int {
	n := 0
	for _, j := range c.order {
		if c.s.Steps[j].Done < c.s.Steps[i].Sent {
			n++
		}
	}
	return n
}

// first is the world before the first step.
func (c *frame) first(start map[string]relation) *world {
	w := &world{tables: map[string][]row{}, txs: make([]progress, len(c.txs)), taint: map[string]string{}, likely: map[string]bool{}, own: map[string]int{}, next: 1}
	for name, rel := range start {
		for _, t := range rel {
			w.tables[name] = append(w.tables[name], row{t.id, []version{{tx: initial, values: t.values}}})
			w.next = max(w.next, t.id+1)
		}
	}
	for _, sql := range c.s.Setup { // the schedule's rows are not those that the setup left on the stage
		if varying := schedule.Varying(sql); varying != "" {
			for name, rel := range start {
				if len(rel) > 0 && strings.Contains(sql, name) {
					w.taint[name] = "the setup makes other rows each time: " + varying
				}
			}
		}
	}
	return w
}

// waited reports whether a step waited. One that closed a deadlock did, until the victim let it go, whether or not that was seen.
func (c *frame) waited(i int) bool {
	st := &c.s.Steps[i]
	return st.Waited || slices.ContainsFunc(c.s.Steps, func(o schedule.Step) bool { return c.closed(st, &o) })
}

// unit is a number of steps from place on that may have taken effect in any order: waiters that were let go together.
func (c *frame) unit(place int) []int {
	steps := c.s.Steps
	n := 1
	for place+n < len(c.order) && place > 0 {
		before, next := &steps[c.order[place-1]], &steps[c.order[place+n]]
		if !c.waited(c.order[place]) || !c.waited(c.order[place+n]) || next.Sent > before.Done {
			break
		}
		n++
	}
	return c.order[place : place+n]
}

// follow takes the worlds through all steps.
func (c *check) follow(ctx context.Context, w *world) ([]*world, error) {
	worlds := []*world{w}
	for place := 0; place < len(c.order); {
		unit := c.unit(place)
		orders := [][]int{unit}
		if len(unit) > 1 {
			if len(unit) > c.o.Waiters {
				c.out.Unknown = fmt.Sprintf("%d statements were let go at once", len(unit))
				return worlds, nil
			}
			orders = slices.Collect(schedule.Permutations(unit))
		}
		var next []*world
		var died []death
		for _, order := range orders {
			from := worlds
			for k, i := range order {
				c.place = place + k + 1
				var to []*world
				for _, w := range from {
					list, dead, err := c.step(ctx, w, i)
					if err != nil {
						return nil, err
					}
					to, died = append(to, list...), append(died, dead...)
					if c.out.Unknown != "" {
						return worlds, nil
					}
				}
				from = distinct(to)
			}
			next = append(next, from...)
		}
		place += len(unit)
		if len(next) == 0 && len(died) > 0 {
			var err error
			if next, err = c.confirm(ctx, died); err != nil {
				return nil, err
			}
		}
		c.died = append(c.died, died...)
		worlds = distinct(next)
		switch {
		case len(worlds) == 0:
			return nil, nil
		case len(worlds) > c.o.Worlds:
			c.out.Unknown = fmt.Sprintf("more than %d courses are possible", c.o.Worlds)
			return worlds, nil
		}
	}
	return c.finish(worlds), nil
}

// confirm executes the statements at which the last worlds died once more. Where the answer depends on the order of rows, or on the row
// id, nothing can be concluded: the world lives on.
func (c *check) confirm(ctx context.Context, died []death) (alive []*world, err error) {
	last := 0
	for _, d := range died {
		last = max(last, d.place)
	}
	for _, d := range died {
		if d.place != last || d.views == nil || d.world == nil {
			continue
		}
		st := &c.s.Steps[d.step]
		answers, err := c.t.again(ctx, st, d.views)
		if err != nil {
			return nil, err
		}
		if len(answers) == 0 {
			leave(c, d.world, "%s was not compared: %v", st.Name, errNoView)
			c.taint(d.world, &st.Statement, c.txOf[d.step], st.Name+": "+errNoView.Error())
			alive = append(alive, d.world)
			continue
		}
		agree := func(a *answer.Result) bool { return differ(st, a) == "" }
		same := slices.ContainsFunc(answers, func(a answer.Result) bool { return !sameAnswer(&answers[0], &a) })
		if slices.ContainsFunc(answers, func(a answer.Result) bool { return agree(&a) }) || same {
			leave(c, d.world, "%s was not compared: its answer depends on the order of rows", st.Name)
			if kind, _ := c.kind(d.step); kind.Writes() {
				c.taint(d.world, &st.Statement, c.txOf[d.step], "the effect of "+st.Name+" depends on the order of rows")
			}
			alive = append(alive, d.world)
		}
	}
	return alive, nil
}

// finish ends what is open, and compares the tables (Troc, III-F).
func (c *check) finish(worlds []*world) (alive []*world) {
	c.place = len(c.order) + 1
	for _, w := range worlds {
		for x := range w.txs {
			if w.txs[x].status == running {
				w.end(x, aborted, c.place)
			}
		}
		if m := c.final(w); m != nil {
			c.died = append(c.died, death{mismatch: *m, causes: w.causes, place: c.place, writes: w.writes})
			continue
		}
		alive = append(alive, w)
	}
	return alive
}

// final compares a world's tables with those that were seen at the end. If one is likely to be as the world has it, and is, then what was not certain has made no
// difference.
func (c *check) final(w *world) *mismatch {
	for _, table := range c.s.Final {
		var want [][]answer.Value
		for _, t := range w.view(table.Name, initial, moment{at: c.place}) {
			want = append(want, t.values)
		}
		got := table.Rows
		d := diffRows(table.Columns, want, got)
		if d.Equal() && w.likely[table.Name] {
			delete(w.taint, table.Name)
		}
		if _, ok := w.taint[table.Name]; !ok && !d.Equal() {
			expected, observed := schedule.Sides(table.Columns, want, got, d)
			return &mismatch{
				step: -1, name: oracle.NameFinalState, table: table.Name,
				rule: "the committed versions of all rows are what the tables hold at the end (Troc, III-F)",
				want: expected, got: observed, trail: w.trail,
			}
		}
	}
	return nil
}

// leave notes what a world leaves out of the comparison.
func leave(c *check, w *world, format string, args ...any) {
	c.out.Note(format, args...)
	if n := fmt.Sprintf(format, args...); !slices.Contains(w.notes, n) {
		w.notes = append(w.notes, n)
	}
}

// taint says that what a statement of a transaction wrote is not certain. Where it changes or removes rows, foreign keys may have led to other tables. What a
// transaction wrote that is undone in the end is its own affair until then.
func (c *check) taint(w *world, q *statement.Statement, x int, why string) {
	add := func(name string) {
		delete(w.likely, name)
		if own, is := w.own[name]; c.outcome(x) == aborted && (is && own == x || w.taint[name] == "") {
			w.own[name] = x
		} else {
			delete(w.own, name)
		}
		if _, is := w.taint[name]; !is {
			w.taint[name] = why
		}
	}
	if c.features.acts && !(q.Verb == "insert" && q.Insert != nil && !q.Insert.Conflict) {
		for _, name := range c.t.names {
			add(name)
		}
	}
	for _, u := range q.Targets() {
		if name, ok := c.t.known(u); ok {
			add(name)
		} else if base := c.features.views[u.Name]; base != "" {
			add(base)
		}
	}
}

// distinct leaves out worlds that cannot be told from one with no more causes.
func distinct(worlds []*world) (out []*world) {
	slices.SortStableFunc(worlds, func(a, b *world) int { return len(a.causes) - len(b.causes) })
	seen := map[string]bool{}
	for _, w := range worlds {
		k := w.key()
		if !seen[k] {
			seen[k] = true
			out = append(out, w)
		}
	}
	return out
}

// Package reduce shrinks a scenario that shows something, as long as it goes on showing it: delta debugging (Zeller and
// Hildebrandt, TSE 28(2), 2002) over sessions, steps, the order of steps, the setup's statements and rows, and then over the
// parts of each statement's tree, which a dialect makes (lab/reduce/mysql, lab/reduce/postgres). IsoRel (section 6.2) and WriteCheck
// (section 6.1) did this by hand.
package reduce

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wirecheck/lab/scenario"
)

// Test reports whether a smaller scenario still shows it: the same oracle, class and rule. It is asked for candidates of any kind,
// also such that a server refuses.
type Test func(ctx context.Context, spec *scenario.Spec) (bool, error)

// Options bound a reduction.
type Options struct {
	// Tries is how many candidates are tried at most; 0: 2000.
	Tries int
	// Confirm is how often a candidate must show it before it is taken; 0: 3.
	Confirm int
	// Simpler takes a statement's tree apart: it gives the statement as the tree is printed, and the same with something simpler in
	// one place each. Where it does not know the statement, or is nil, the statement's tokens are taken apart.
	Simpler func(sql string) (self string, simpler []string, known bool)
	// Split cuts a text into its statements; nil: nothing is cut.
	Split func(sql string) []string
	// Progress is told after each candidate; nil: nobody is.
	Progress func(Progress)
}

// Progress is how far a reduction has come.
type Progress struct {
	Tried, Taken int
	Pass         string // what is being removed
	Sessions     int
	Steps        int
	Setup        int
	Bytes        int  // of all statements
	Exhausted    bool // it ended because as many were tried as may be
}

const (
	defaultTries   = 2000
	defaultConfirm = 3
)

// errBudget ends a reduction that has used up its tries.
var errBudget = errors.New("the budget is used up")

// Reduce gives the smallest scenario that it finds. The scenario has one permutation. The error says why it ended early: what is
// given is the best so far all the same. It does not ask whether the scenario itself shows it.
func Reduce(ctx context.Context, spec *scenario.Spec, test Test, o Options) (*scenario.Spec, Progress, error) {
	if len(spec.Permutations) != 1 {
		return spec, Progress{}, fmt.Errorf("reduce %s: it has %d permutations: one is needed", spec.Name, len(spec.Permutations))
	}
	if o.Tries <= 0 {
		o.Tries = defaultTries
	}
	if o.Confirm <= 0 {
		o.Confirm = defaultConfirm
	}
	r := &reduction{ctx: ctx, test: test, o: o, best: of(spec), tried: map[string]bool{}}
	err := r.run()
	if errors.Is(err, errBudget) {
		r.progress.Exhausted, err = true, nil
	}
	return r.best.spec(), r.progress, err
}

// reduction is one under way.
type reduction struct {
	ctx      context.Context
	test     Test
	o        Options
	best     draft
	tried    map[string]bool // texts of candidates, so that none is tried twice
	progress Progress
}

// run makes passes until none of them removes anything.
func (r *reduction) run() error {
	passes := []struct {
		name string
		do   func() error
	}{
		{"sessions", r.sessions}, {"steps", r.steps}, {"setup", r.setup}, {"settings", r.settings}, {"transactions", r.brackets}, {"rows", r.rows},
		{"columns", r.columns}, {"tables", r.tables}, {"order", r.order}, {"expressions", r.expressions}, {"sessions joined", r.join}, {"steps for the setup", r.prepare},
		{"types", r.types}, {"constants", r.constants}, {"names", r.names},
	}
	if err := r.split(); err != nil {
		return err
	}
	for {
		taken := r.progress.Taken
		for _, p := range passes {
			r.progress.Pass = p.name
			if err := p.do(); err != nil {
				return err
			}
		}
		if r.progress.Taken == taken {
			return nil
		}
	}
}

// try takes a candidate if it still shows it, each time.
func (r *reduction) try(d draft) (bool, error) {
	key := d.key()
	if r.tried[key] {
		return false, nil
	}
	r.tried[key] = true
	if r.progress.Tried >= r.o.Tries {
		return false, errBudget
	}
	r.progress.Tried++
	candidate := d.spec()
	holds := true
	for range r.o.Confirm {
		var err error
		if holds, err = r.test(r.ctx, candidate); err != nil {
			return false, err
		}
		if r.ctx.Err() != nil {
			return false, context.Cause(r.ctx)
		}
		if !holds {
			break
		}
	}
	if holds {
		r.best = d
		r.progress.Taken++
	}
	r.progress.Sessions, r.progress.Steps, r.progress.Bytes = r.best.size()
	r.progress.Setup = len(r.best.setup)
	if r.o.Progress != nil {
		r.o.Progress(r.progress)
	}
	return holds, nil
}

// without removes as many of n things as possible: halves first, then smaller parts (ddmin). make builds the candidate that lacks
// the things of which gone holds; the things are numbered anew after each removal.
func (r *reduction) without(n func() int, make func(d draft, gone func(int) bool) draft) error {
	for size := n(); size >= 1; size /= 2 {
		for from := 0; from < n(); {
			to := min(from+size, n())
			taken, err := r.try(make(r.best.clone(), func(i int) bool { return i >= from && i < to }))
			if err != nil {
				return err
			}
			if !taken {
				from = to
			}
		}
	}
	return nil
}

// left gives the things that are not gone.
func left[T any](things []T, gone func(int) bool) (kept []T) {
	for i, x := range things {
		if !gone(i) {
			kept = append(kept, x)
		}
	}
	return kept
}

func (r *reduction) sessions() error {
	return r.without(func() int { return len(r.best.sessions) }, func(d draft, gone func(int) bool) draft {
		for i := len(d.sessions) - 1; i >= 0; i-- {
			if gone(i) {
				d.dropSession(i)
			}
		}
		return d
	})
}

func (r *reduction) steps() error {
	return r.without(func() int { return len(r.best.steps) }, func(d draft, gone func(int) bool) draft {
		d.steps = left(d.steps, gone)
		return d
	})
}

// brackets removes a transaction's first and last step together: what is left runs in autocommit.
func (r *reduction) brackets() error {
	for i := range len(r.best.sessions) {
		var places []int
		for n, st := range r.best.steps {
			if st.session == i {
				places = append(places, n)
			}
		}
		if len(places) < 3 {
			continue
		}
		d := r.best.clone()
		d.steps = slices.Delete(d.steps, places[len(places)-1], places[len(places)-1]+1)
		d.steps = slices.Delete(d.steps, places[0], places[0]+1)
		if _, err := r.try(d); err != nil {
			return err
		}
	}
	return nil
}

func (r *reduction) setup() error {
	return r.without(func() int { return len(r.best.setup) }, func(d draft, gone func(int) bool) draft {
		d.setup = left(d.setup, gone)
		return d.asking(r.best.tableNames())
	})
}

// rows removes rows of the setup's INSERT ... VALUES.
func (r *reduction) rows() error {
	for i := 0; i < len(r.best.setup); i++ {
		err := r.without(func() int { return len(valueRows(r.best.setup[i])) }, func(d draft, gone func(int) bool) draft {
			d.setup[i] = withoutRows(d.setup[i], gone)
			return d
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tables has the steps name one table in place of two, so that the other one goes from the setup.
func (r *reduction) tables() error {
	var names []string
	for _, sql := range r.best.setup {
		if table, _ := createdColumns(sql); table != "" {
			names = append(names, table)
		}
	}
	for _, gone := range names {
		for _, kept := range names {
			if gone == kept {
				continue
			}
			d := r.best.clone()
			is := func(t string) (string, bool) { return kept, name(t) == gone }
			for i := range d.steps {
				d.steps[i].sql = replaced(d.steps[i].sql, is)
			}
			d.setup = slices.DeleteFunc(d.setup, func(sql string) bool { return replaced(sql, is) != sql })
			if taken, err := r.try(d.asking(r.best.tableNames())); err != nil {
				return err
			} else if taken {
				return r.tables()
			}
		}
	}
	return nil
}

// columns removes a column from CREATE TABLE and from the INSERTs of the setup and of the steps at once.
func (r *reduction) columns() error {
	for i := 0; i < len(r.best.setup); i++ {
		table, names := createdColumns(r.best.setup[i])
		for n := len(names) - 1; n >= 0 && len(names) > 1; n-- {
			d := r.best.clone()
			d.each(func(sql string) string { return withoutColumn(sql, table, names[n], n) })
			if _, err := r.try(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// order makes the schedule more serial: each step is moved right behind the one before it in its session, if that is still it.
func (r *reduction) order() error {
	for at := 1; at < len(r.best.steps); at++ {
		before := -1
		for n := range at {
			if r.best.steps[n].session == r.best.steps[at].session {
				before = n
			}
		}
		if before < 0 || before == at-1 {
			continue
		}
		d := r.best.clone()
		st := d.steps[at]
		d.steps = slices.Insert(slices.Delete(d.steps, at, at+1), before+1, st)
		if _, err := r.try(d); err != nil {
			return err
		}
	}
	return nil
}

// expressions makes each statement simpler, step by step.
func (r *reduction) expressions() error {
	for i := 0; i < len(r.best.steps); i++ {
		if err := r.improve(func(d *draft) *string { return &d.steps[i].sql }); err != nil {
			return err
		}
	}
	for i := 0; i < len(r.best.setup); i++ {
		if err := r.improve(func(d *draft) *string { return &d.setup[i] }); err != nil {
			return err
		}
	}
	return nil
}

// improve makes one statement simpler until nothing about it can be. After each success it goes on where it was, since what was tried
// before that would mostly be refused again, and once more from the beginning at the end.
func (r *reduction) improve(text func(d *draft) *string) error {
	for at, left := 0, 1; left > 0; {
		list := r.simpler(*text(&r.best))
		taken := false
		for left = len(list); left > 0 && !taken; left-- {
			d := r.best.clone()
			*text(&d) = list[at%len(list)]
			var err error
			if taken, err = r.try(d); err != nil {
				return err
			}
			if !taken {
				at++
			}
		}
		if taken {
			left = 1
		}
	}
	return nil
}

// simpler gives lighter forms of a statement. A printed tree may be longer than what was written, so it counts in its place.
func (r *reduction) simpler(sql string) (list []string) {
	self, known := sql, false
	if r.o.Simpler != nil {
		self, list, known = r.o.Simpler(sql)
	}
	if !known {
		self, list = sql, simpler(sql)
	}
	most := weight(self)
	return slices.DeleteFunc(list, func(s string) bool { return weight(s) >= most })
}

package panel

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"time"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/scheduler/shell"
)

// Executor executes many cases on one server, at several levels, and has them judged. It starts a private server again that a case has ended.
type Executor struct {
	Options   Options
	Instance  *backends.Instance
	Selection Selection
	Spent     map[string]time.Duration // by oracle; the isolation oracle's holds the execution that it watches

	limit  time.Duration
	panels map[string]*Panel // by level
	beside map[string]*Panel // by level
	// undisturbed says that no case defines anything while transactions are open.
	undisturbed bool
	stuck       time.Duration // see StuckLimit
}

// StuckLimit is how long the server may take to end a state in which all sessions wait. Servers of labs look for deadlocks at once. Nothing
// ends the wait for a session that has no more steps, which is common while a reduction makes a case smaller.
const StuckLimit = 2 * time.Second

// reducedStuckLimit is the same for candidates of a reduction, of which many wait for what was left out. Where a server needs longer, the candidate is
// merely not taken.
const reducedStuckLimit = StuckLimit / 4

// OpenExecutor starts the server. limit bounds each execution of a case; undisturbed says that no case defines anything while transactions
// are open.
func OpenExecutor(ctx context.Context, name string, p Selection, o Options, limit time.Duration, undisturbed bool) (*Executor, error) {
	instance, err := backends.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	a := &Executor{Options: o, limit: limit, Instance: instance, Selection: p, panels: map[string]*Panel{}, beside: map[string]*Panel{}, undisturbed: undisturbed, stuck: StuckLimit, Spent: map[string]time.Duration{}}
	if _, _, err = p.fit(instance.Engine); err == nil {
		err = a.quicken(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, instance.Close())
	}
	return a, nil
}

// quicken makes definitions quick on a private server, where no case can see the difference (engine.Lab.Undisturbed).
func (a *Executor) quicken(ctx context.Context) error {
	sql := a.Instance.Engine.Lab.Undisturbed
	if a.Instance.Server == nil || !a.undisturbed || sql == "" {
		return nil
	}
	conn, err := a.Instance.Engine.Connect(ctx, a.Instance.Target)
	if err != nil {
		return err
	}
	return errors.Join(engine.Exec(ctx, conn, sql), conn.Close())
}

// Close drops the databases and ends the server.
func (a *Executor) Close(ctx context.Context) error {
	return errors.Join(a.closePanels(ctx), a.Instance.Close())
}

// At is the one for a level.
func (a *Executor) At(ctx context.Context, level product.Level) (*Panel, error) {
	if b := a.panels[level.History]; b != nil {
		return b, nil
	}
	if a.Instance.Server == nil { // other clients of it need connections, too
		if err := a.closePanels(ctx); err != nil {
			return nil, err
		}
	}
	b, err := a.open(ctx, level)
	if err != nil {
		return nil, err
	}
	b.spent = a.Spent
	a.panels[level.History] = b
	return b, nil
}

// Beside is one more for a level, for a case that is executed at the same time as another one. It adds what the oracles took to spent.
func (a *Executor) Beside(ctx context.Context, level product.Level, spent map[string]time.Duration) (b *Panel, err error) {
	if b = a.beside[level.History]; b == nil {
		if b, err = a.open(ctx, level); err != nil {
			return nil, err
		}
		a.beside[level.History] = b
	}
	b.spent = spent
	return b, nil
}

func (a *Executor) open(ctx context.Context, level product.Level) (*Panel, error) {
	limits := shell.Limits{Stuck: StuckLimit}
	b, err := Open(ctx, a.Instance, lab.Config{Level: level, Case: a.limit, Reset: lab.Quick, Limits: limits, Invariants: a.Options.Invariants}, a.Selection, a.Options)
	if err == nil {
		b.Sparing = true
	}
	return b, err
}

func (a *Executor) closePanels(ctx context.Context) error {
	var errs []error
	for _, panels := range []map[string]*Panel{a.panels, a.beside} {
		for _, name := range slices.Sorted(maps.Keys(panels)) {
			errs = append(errs, panels[name].Close(ctx))
		}
	}
	a.panels, a.beside = map[string]*Panel{}, map[string]*Panel{}
	return errors.Join(errs...)
}

// hurry is how many times as long a case may take as one that Hurried executes.
const hurry = 10

// Hurried executes cases with a tenth of their limit, for those that are expected to pass it: a machine that is merely slow may end them, too, so that what
// comes of it must be looked at with the whole limit.
func (a *Executor) Hurried(ctx context.Context, do func() error) error {
	whole := a.limit
	a.limit = whole / hurry
	err := errors.Join(a.closePanels(ctx), do()) // panels have their limit from the beginning
	a.limit = whole
	return errors.Join(err, a.closePanels(context.WithoutCancel(ctx)))
}

// Bounded bounds a case and its oracles together with what opens them, so that no server can stop a hunt.
func (a *Executor) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return bounded(ctx, a.limit)
}

// Fate says what became of the server in a case that ended in an error or in trouble: a crash, a hang, or nothing if it lives. What an
// error tells, lab.FateOf says; a private server is asked, too.
func (a *Executor) Fate(ctx context.Context, d *Judgement, err error) string {
	switch {
	case err == nil && d.Hung:
		return oracle.NameHang
	case err == nil && d.Crashed:
		return oracle.NameCrash
	case a.Instance.Server == nil:
		return ""
	}
	select {
	case <-a.Instance.Server.Done():
		return oracle.NameCrash
	default:
	}
	switch lab.FateOf(err) {
	case lab.Ended:
		return oracle.NameCrash
	case lab.Hangs:
		return oracle.NameHang
	}
	switch alive := a.Instance.Answers(ctx); {
	case alive == nil: // it may be the case that took long, or an oracle
		return ""
	case errors.Is(alive, context.DeadlineExceeded):
		return oracle.NameHang
	}
	return oracle.NameCrash
}

// Restart starts the private server again. To a server that is not private it only connects again.
func (a *Executor) Restart(ctx context.Context) error {
	if a.Instance.Server != nil { // what hangs in it holds locks
		if err := a.Instance.Server.Kill(); err != nil {
			return err
		}
	}
	_ = a.closePanels(ctx) // their server is gone
	s, err := a.Instance.Revive(ctx)
	if err != nil {
		return err
	}
	a.Instance = s
	return a.quicken(ctx)
}

// Shows executes a case and reports whether it shows the same finding as another case did: the same oracle, class, name and kind, by
// the same rule. A finding whose cause is known must stand when the other oracles of schedules judge, too: they may explain it by what the
// vendor documents.
func (a *Executor) Shows(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding, in *scenario.Spec) (bool, error) {
	shows, err := a.shows(ctx, spec, level, f, in, func(j Judge) bool { return j.Name == f.Oracle })
	others := func(j Judge) bool { return !j.Single && j.Name != f.Oracle }
	if !shows || err != nil || f.Difference == nil || f.Difference.Cause == "" || !slices.ContainsFunc(a.Selection.Judges, others) {
		return shows, err
	}
	return a.shows(ctx, spec, level, f, in, func(j Judge) bool { return j.Name == f.Oracle || others(j) })
}

// shows is Shows, with the judges to keep.
func (a *Executor) shows(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding, in *scenario.Spec, keep func(Judge) bool) (bool, error) {
	within, cancel := a.Bounded(ctx)
	defer cancel()
	d, err := &Judgement{}, error(nil)
	if b, e := a.At(within, level); e != nil {
		err = e
	} else {
		defer b.Only(keep, false)()
		defer func() { b.Attempts = Attempts; b.stuckAfter(StuckLimit) }()
		b.Attempts = 0
		b.stuckAfter(a.stuck)
		d, err = b.Run(within, spec, spec.Permutations[0])
	}
	var refused *answer.Error
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.As(err, &refused):
		return false, nil
	case err != nil, d.Crashed, d.Hung:
		if a.Instance.Server == nil && err != nil {
			return false, err
		}
		name := a.Fate(ctx, d, err)
		if e := a.Restart(ctx); e != nil {
			return false, errors.Join(err, e)
		}
		return f.Name == name, nil
	}
	same := func(other *oracle.Finding) bool {
		if other.Class != f.Class || other.Name != f.Name || other.Kind != f.Kind {
			return false
		}
		return f.Difference == nil || WithoutNames(other.Difference.Rule, spec, in) == WithoutNames(f.Difference.Rule, spec, in)
	}
	for _, v := range d.Rulings {
		if slices.ContainsFunc(v.Findings, func(other oracle.Finding) bool { return same(&other) }) {
			return true, nil
		}
	}
	return slices.ContainsFunc(d.Isolation.Findings, func(other oracle.Finding) bool { return same(&other) }), nil
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	creation   = regexp.MustCompile("(?i)\\bCREATE\\s+(?:\\w+\\s+)?(?:TABLE|VIEW)\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?[`\"]?(\\w+)")
)

// WithoutNames is a rule without the names of the sessions, steps and tables of cases. Rules that are compared are given the same cases: a
// name may be a word of the rule, too.
func WithoutNames(rule string, specs ...*scenario.Spec) string {
	names := map[string]bool{}
	for _, spec := range specs {
		for _, s := range spec.Sessions {
			names[s.Name] = true
			for _, st := range s.Steps {
				names[st.Name] = true
			}
		}
		for _, b := range spec.Setup {
			for _, m := range creation.FindAllStringSubmatch(b.SQL, -1) {
				names[m[1]] = true
			}
		}
	}
	return identifier.ReplaceAllStringFunc(rule, func(word string) string {
		if names[word] {
			return "_"
		}
		return word
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"syscall"
	"time"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/scheduler/shell"
)

// arena is a server on which many cases are executed and judged, at several levels. A private server that crashes is started again.
type arena struct {
	options  judging
	limit    time.Duration
	instance *backends.Instance
	panel    panel
	benches  map[string]*bench // by level
	// undisturbed says that no case defines anything while transactions are open.
	undisturbed bool
	spent       map[string]time.Duration // by oracle; the isolation oracle's holds the execution that it watches
}

// arenaStuck is how long the server may take to end a state in which all wait. Servers of labs look for deadlocks at once; that a
// session waits for one that has no more steps is not ended by anything, and common while a case is made smaller.
const arenaStuck = 2 * time.Second

// openArena starts the server. undisturbed says that no case will define anything while transactions are open.
func openArena(ctx context.Context, name string, p panel, o judging, limit time.Duration, undisturbed bool) (*arena, error) {
	instance, err := backends.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	a := &arena{options: o, limit: limit, instance: instance, panel: p, benches: map[string]*bench{}, undisturbed: undisturbed, spent: map[string]time.Duration{}}
	if _, _, err = p.fit(instance.Engine); err == nil {
		err = a.hush(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, instance.Close())
	}
	return a, nil
}

// hush makes definitions quick on a private server, where no case can tell (engine.Lab.Undisturbed).
func (a *arena) hush(ctx context.Context) error {
	sql := a.instance.Engine.Lab.Undisturbed
	if a.instance.Server == nil || !a.undisturbed || sql == "" {
		return nil
	}
	conn, err := a.instance.Engine.Connect(ctx, a.instance.Target)
	if err != nil {
		return err
	}
	return errors.Join(engine.Exec(ctx, conn, sql), conn.Close())
}

// close drops the databases and ends the server.
func (a *arena) close(ctx context.Context) error {
	return errors.Join(a.closeBenches(ctx), a.instance.Close())
}

// bench is the one for a level.
func (a *arena) bench(ctx context.Context, level engine.Level) (*bench, error) {
	if b := a.benches[level.History]; b != nil {
		return b, nil
	}
	if a.instance.Server == nil { // others need connections, too
		if err := a.closeBenches(ctx); err != nil {
			return nil, err
		}
	}
	limits := shell.Limits{Stuck: arenaStuck}
	b, err := openBench(ctx, a.instance, lab.Config{Level: level, Case: a.limit, Reset: lab.Quick, Limits: limits}, a.panel, a.options)
	if err != nil {
		return nil, err
	}
	b.sparing, b.spent = true, a.spent
	a.benches[level.History] = b
	return b, nil
}

func (a *arena) closeBenches(ctx context.Context) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(a.benches)) {
		errs = append(errs, a.benches[name].close(ctx))
	}
	a.benches = map[string]*bench{}
	return errors.Join(errs...)
}

// judgedShare is how many times as long as a case a case and its oracles may take.
const judgedShare = 5

// bounded bounds the execution of one case by all who judge it: nothing that a server does may make a hunt stand still.
func (a *arena) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := judgedShare * a.limit
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w %v", errJudgedLimit, limit))
}

var errJudgedLimit = errors.New("the case and its oracles took more than")

// fate is what became of the server in a case that ended in an error or in trouble: a crash, a hang, or nothing, since it lives.
func (a *arena) fate(ctx context.Context, d *done, err error) string {
	switch {
	case err == nil && d.Hung:
		return oracle.NameHang
	case err == nil && d.Crashed:
		return oracle.NameCrash
	case a.instance.Server == nil:
		return ""
	}
	select {
	case <-a.instance.Server.Done():
		return oracle.NameCrash
	default:
	}
	for _, lost := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, lost) { // a server may live although one of its processes crashed (PostgreSQL)
			return oracle.NameCrash
		}
	}
	switch alive := a.instance.Answers(ctx); {
	case alive == nil && (errors.Is(err, lab.ErrCaseLimit) || errors.Is(err, errJudgedLimit)):
		// A connection that does not answer, or one that holds locks and does not go on. Should it be an oracle that is slow, then the
		// crash oracle alone does not find it again.
		return oracle.NameHang
	case alive == nil:
		return ""
	case errors.Is(alive, context.DeadlineExceeded):
		return oracle.NameHang
	}
	return oracle.NameCrash
}

// restart starts the private server again. One that is somebody else's is only connected to again.
func (a *arena) restart(ctx context.Context) error {
	if a.instance.Server != nil { // what hangs in it holds locks
		if err := a.instance.Server.Kill(); err != nil {
			return err
		}
	}
	_ = a.closeBenches(ctx) // the server that they speak of is gone
	s, err := a.instance.Revive(ctx)
	if err != nil {
		return err
	}
	a.instance = s
	return a.hush(ctx)
}

// again executes a case once more and reports whether it shows the same finding as another one did: the same oracle, class, name and kind of
// finding, by the same rule.
func (a *arena) again(ctx context.Context, spec *scenario.Spec, level engine.Level, f *oracle.Finding, in *scenario.Spec) (bool, error) {
	within, cancel := a.bounded(ctx)
	defer cancel()
	d, err := &done{}, error(nil)
	if b, e := a.bench(within, level); e != nil {
		err = e
	} else {
		defer b.only(func(j judge) bool { return j.Name == f.Oracle }, false)()
		defer func() { b.attempts = attempts }()
		b.attempts = 0
		d, err = b.run(within, spec, spec.Permutations[0])
	}
	var refused *answer.Error
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.As(err, &refused):
		return false, nil
	case err != nil, d.Crashed, d.Hung:
		if a.instance.Server == nil && err != nil {
			return false, err
		}
		name := a.fate(ctx, d, err)
		if e := a.restart(ctx); e != nil {
			return false, errors.Join(err, e)
		}
		return f.Name == name, nil
	}
	same := func(other *oracle.Finding) bool {
		if other.Class != f.Class || other.Name != f.Name || other.Kind != f.Kind {
			return false
		}
		return f.Difference == nil || nameless(other.Difference.Rule, spec, in) == nameless(f.Difference.Rule, spec, in)
	}
	for _, v := range d.rulings {
		if slices.ContainsFunc(v.findings, func(other oracle.Finding) bool { return same(&other) }) {
			return true, nil
		}
	}
	return slices.ContainsFunc(d.isolation.Findings, func(other oracle.Finding) bool { return same(&other) }), nil
}

var (
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	creation   = regexp.MustCompile("(?i)\\bCREATE\\s+(?:\\w+\\s+)?(?:TABLE|VIEW)\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?[`\"]?(\\w+)")
)

// nameless is a rule without the names of the sessions, steps and tables of cases. Rules that are compared are given the same cases: a
// name may be a word of the rule, too.
func nameless(rule string, specs ...*scenario.Spec) string {
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

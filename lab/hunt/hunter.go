// Package hunt looks for bugs of a DBMS. It generates databases and cases, has a panel judge them, reduces each finding to a small case and
// keeps every distinct bug in a folder of its own. A hunt goes on after an interruption or a kill.
package hunt

import (
	"context"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/fleet/work"
	"wirecheck/lab"
	"wirecheck/lab/generate"
	"wirecheck/lab/hunt/filing"
	"wirecheck/lab/panel"
	"wirecheck/lab/reduce"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/crash"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Options says where to hunt, for how long, who judges, and what becomes of the findings.
type Options struct {
	Engine    string // a name or a URL
	Selection panel.Selection
	Levels    []string // in turn
	Out       string   // folder for what is found
	Known     string   // file with the signatures of what is known already; empty: nothing is
	Also      []string // other engines, names or URLs, on which each bug's smallest case is executed
	Resume    bool     // go on with the hunt in the folder
	Steer     bool     // choose cases that do what executions have not done yet

	Duration, Limit, Reduction time.Duration // of the hunt (0: no end), of one case, of one reduction (0: no end)
	Cases, Group, Tries        int           // of the hunt (0: no end), on one database, of one reduction
	Queries                    int           // of a case that is a list of queries
	Limits                     generate.Limits
	Judging                    panel.Options

	Fleet *work.Fleet // with which the cases are shared; nil: none. Duration and Cases are the fleet's then

	Choose   func() uint64            // gives a seed where judging has none
	Progress func(line func() string) // shows how far the hunt has come
	Rescue   io.Writer                // gets what could not be written to the folder
}

// hunter is a hunt under way.
type hunter struct {
	*panel.Executor
	o        Options
	levels   []product.Level
	store    *store
	began    time.Time     // the hunt, or the fleet's
	started  time.Time     // this run of it
	saved    time.Time     // when the state was last saved
	executed *lab.Result   // the case under way; nil: it was not executed to its end
	here     []reducedBug  // what the case under way has shown so far
	fails    int           // cases that failed one after the other, see broken
	watching time.Duration // what watched executions took in this run
	reduced  time.Duration // what reductions took in this run
	ends     time.Time     // when --duration is over; zero: never
	// invariants are the user's, with what this run has to say of them
	invariants []*Invariant
	others     map[string]*panel.Executor // of the other engines that a case was tried on
	settings   filing.Settings            // of the server, before a lab's sessions set any: MySQL tells of those, too, that only a session has set
	at, told   int                        // the case under way, and how many of its findings were compared with others
	last       int                        // the group under way ends in front of this case
	early      *early                     // nil: none waits for its turn
}

// saveEvery is how old the state may be that --resume finds after a kill: the cases since then are executed again. What is found is
// written at once.
const saveEvery = time.Second

// Run hunts until the time, the number of cases or ctx ends it. The report is there whenever the hunt began.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	h := &hunter{o: o}
	if o.Fleet == nil {
		if h.store, err = openStore(o.Out, o.Engine, o.Known, o.Resume); err != nil {
			return nil, err
		}
	}
	switch {
	case o.Resume:
		o.Judging.Seed = h.store.state.Seed
	case o.Judging.Seed == 0:
		o.Judging.Seed = o.Choose()
	}
	if h.Executor, err = panel.OpenExecutor(ctx, o.Engine, o.Selection, o.Judging, o.Limit, !o.Limits.Defines()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.closeOthers(ctx), h.Close(ctx)) }()
	if h.settings, err = filing.ReadSettings(ctx, h.Instance); err != nil {
		h.Options.Log.Warn().Err(err).Msg("the settings could not be read")
	}
	if h.Instance.Engine.Lab.Undisturbed != "" && !o.Limits.Defines() {
		h.o.Limits.Undisturbed = true // each definition would cost a hundred times what it costs otherwise, and so would each setup
	}
	if h.levels, err = panel.Levels(h.Instance.Engine, o.Levels, &scenario.Spec{}); err != nil {
		return nil, err
	}
	h.began, h.started = time.Now(), time.Now()
	if o.Fleet != nil {
		m, err := joined(ctx, h)
		if err != nil {
			return nil, err
		}
		defer m.close()
	} else {
		h.store.log, h.store.shared = o.Judging.Log, &alone{store: h.store, group: o.Group, cases: o.Cases}
	}
	h.store.state.Seed = o.Judging.Seed
	for _, i := range o.Judging.Invariants {
		h.invariants = append(h.invariants, &Invariant{Invariant: i.String()})
	}
	if o.Duration > 0 {
		h.ends = h.began.Add(o.Duration)
	}
	stop := h.loop(ctx)
	report, err := h.end(ctx)
	return report, errors.Join(stop, err)
}

// loop executes cases until the time, the number of cases or the user ends it.
func (h *hunter) loop(ctx context.Context) error {
	for !h.over(ctx) {
		g, err := h.store.shared.take(ctx)
		if ctx.Err() != nil || g == nil && err == nil {
			return nil
		}
		if err == nil {
			err = h.group(ctx, g)
			err = errors.Join(err, h.store.shared.leave(ctx, g))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// over reports whether the hunt is to end.
func (h *hunter) over(ctx context.Context) bool {
	return ctx.Err() != nil || !h.ends.IsZero() && !time.Now().Before(h.ends)
}

// group executes the cases of a group. What a case has counted that does not come to its end does not count.
func (h *hunter) group(ctx context.Context, g *group) error {
	h.last, h.early = g.end, nil
	for g.next < g.end && !h.over(ctx) {
		before := h.store.state.clone()
		if err := h.oneCase(ctx, g.next); err != nil {
			h.store.state = before
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("case %d (seed %d): %w", g.next, h.Options.Seed, err)
		}
		g.next++
		h.store.state.Next++
		err := h.store.shared.counted(ctx, g, h.store.state.since(&before))
		if errors.Is(err, errTaken) {
			h.store.state = before
			h.Options.Log.Warn().Int("case", g.next-1).Msg("another hunter has gone on with these cases, since this one gave no sign of life")
			return nil
		}
		if err != nil {
			return err
		}
		if time.Since(h.saved) >= saveEvery {
			h.saved = time.Now()
			if err := errors.Join(h.store.shared.refresh(ctx), h.store.save(time.Since(h.began))); err != nil {
				h.Options.Log.Error().Err(err).Msg("what was found is kept in memory and tried again")
			}
		}
		h.progress()
	}
	return nil
}

// generated makes case i: each has random numbers of its own. A group of cases shares a database. With steering, what earlier cases did
// matters, too; the entry is the case of the pool that this one was made from.
func (h *hunter) generated(i int) (*generate.Case, *generate.Entry, error) {
	base := generate.Base{Group: i / h.o.Group}
	if h.o.Steer {
		var err error
		if base, err = h.store.steering.Begin(base.Group, random(h.Options.Seed^groupSeed, base.Group), h.metadata); err != nil {
			return nil, nil, err
		}
	}
	g, db, err := h.database(base)
	if err != nil {
		return nil, nil, err
	}
	g.Draw(random(h.Options.Seed^caseSeed, i))
	if h.asks(i) {
		return g.QueriesOn(db, h.o.Queries), nil, nil
	}
	if h.o.Steer {
		k, from := h.store.steering.Next(g, db, random(h.Options.Seed^choiceSeed, i))
		return k, from, nil
	}
	return g.CaseOn(db), nil, nil
}

// What random numbers are for: each use has its own.
const (
	caseSeed   = 0x9e3779b97f4a7c15
	choiceSeed = 0xd1b54a32d192ed03
	groupSeed  = 0xaef17502108ef2d9
)

// random gives the numbers of one use and one case.
func random(seed uint64, n int) func(int) int {
	return mathrand.New(mathrand.NewPCG(seed, uint64(n))).IntN
}

// database makes a database, and a generator for cases on it.
func (h *hunter) database(base generate.Base) (*generate.Generator, *generate.Database, error) {
	g, err := generate.New(generate.Dialect(h.Instance.Engine.Name), h.o.Limits.ForGroup(base.Group), random(h.Options.Seed, base.Group|base.Attempt<<40))
	if err != nil {
		return nil, nil, err
	}
	return g, g.Database(), nil
}

// metadata is a database's abstract metadata.
func (h *hunter) metadata(base generate.Base) (string, error) {
	_, db, err := h.database(base)
	if err != nil {
		return "", err
	}
	var setup []string
	for _, st := range db.Setup {
		setup = append(setup, st.SQL)
	}
	return radar.Abstract(setup, radar.Options{Describe: panel.Describer(h.Instance.Engine), Define: panel.Definer(h.Instance.Engine)}), nil
}

// asks reports whether case i is a list of queries, if an oracle of single queries judges: the first of each database and every so many after it.
func (h *hunter) asks(i int) bool {
	return h.o.Queries > 0 && i%h.o.Group%h.every() == 0 && slices.ContainsFunc(h.Selection.Judges, func(j panel.Judge) bool { return panel.AsksQueries(j.Name) })
}

// watchedShare is the most that watched executions may take of a hunt's time, as one in so many, where others judge, too. With a proxy in
// between the setup is executed for each case, which takes most of the time where definitions are slow.
const watchedShare = 5

// watched reports whether the isolation oracle is to judge the next case.
func (h *hunter) watched() bool {
	return h.watching <= time.Since(h.started)/watchedShare
}

// oneCase makes, executes and judges a case.
func (h *hunter) oneCase(ctx context.Context, i int) error {
	k, from, err := h.generated(i)
	if err != nil {
		return err
	}
	h.executed, h.here, h.at, h.told = nil, nil, i, 0
	level := h.levels[i/h.o.Group%len(h.levels)]
	b, d, restore, err := h.execute(ctx, i, k, level)
	defer restore()
	s := &h.store.state
	var refused *answer.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused): // the setup
		h.Options.Log.Debug().Int("case", i).Err(err).Msg("the setup was refused")
		h.refused(ctx, k.Spec, level, refused, err)
		return nil
	case err != nil:
		return h.broken(ctx, k.Spec, level, d, err)
	}
	h.fails = 0
	s.Cases++
	s.tell(k, d, level.History)
	h.executed = d.Result
	if err := h.count(b, k, from, d); err != nil {
		return err
	}
	if d.Crashed || d.Hung {
		return h.crashed(ctx, k.Spec, level, d, h.Fate(ctx, d, nil))
	}
	if err := h.breaks(ctx, b, k.Spec, level, d.Result); err != nil {
		return err
	}
	for _, v := range d.Rulings {
		for n := range v.Findings {
			if err := h.found(ctx, k.Spec, level, &v.Findings[n]); err != nil {
				return err
			}
		}
	}
	for n := range d.Isolation.Findings {
		f := &d.Isolation.Findings[n]
		if !f.Promised {
			continue
		}
		if g := d.Behind(f); g != nil { // it was found with the oracle that names it
			told := *f
			told.Difference = &oracle.Difference{Cause: g.Difference.Cause}
			if known, err := h.store.knows(ctx, &told); known {
				s.Findings++
				h.unnoted(err)
				continue
			}
		}
		repeated, err := h.repeats(ctx, k.Spec, level, f) // the panel confirms the other oracles' findings
		switch {
		case err != nil:
			return err
		case repeated < panel.Attempts:
			if err := h.keepFlaky(ctx, k.Spec, level, f); err != nil {
				return err
			}
			continue
		}
		if err := h.found(ctx, k.Spec, level, f); err != nil {
			return err
		}
	}
	return nil
}

// refused counts a case whose setup the server refused, and keeps it apart.
func (h *hunter) refused(ctx context.Context, spec *scenario.Spec, level product.Level, why *answer.Error, err error) {
	s := &h.store.state
	s.Cases, s.Refused = s.Cases+1, s.Refused+1
	s.Refusals["error "+why.Code]++
	h.store.apart(ctx, filepath.Join("refused", "setup"), s.Refused, map[string]string{
		"case.spec": h.reproducer(spec, level, strings.Split(h.Selection.Names(), ",")...), "error.txt": err.Error() + "\n",
	})
}

// count adds what a case was like. What its execution did counts only if an oracle could judge it: else it would seem tested.
func (h *hunter) count(b *panel.Panel, k *generate.Case, from *generate.Entry, d *panel.Judgement) error {
	s := &h.store.state
	h.watching += h.Spent[panel.IsolationName]
	for oracle, spent := range h.Spent {
		s.Spent[oracle] += spent
		delete(h.Spent, oracle)
	}
	var outcomes []string
	some, all := d.Decided()
	if !some {
		s.Unjudged++
	} else {
		executed, err := b.Schedule(k.Spec, d.Result)
		if err != nil {
			return err
		}
		outcomes = executed.Features()
	}
	combinations, _ := h.store.steering.Learn(k, from, outcomes, all)
	s.Fresh += combinations
	for _, ev := range d.Events {
		if ev.Kind != lab.Ran && ev.Kind != lab.Resumed || ev.Outcome.Reason == answer.ReasonFailed {
			continue // the server does not look at statements of a transaction that has failed
		}
		s.Statements++
		if ev.Outcome.Reason != answer.ReasonOther || answer.BreaksConstraint(ev.Answer.Err) {
			s.Accepted++
		}
	}
	unknown := d.Trouble != nil
	for _, v := range d.Rulings {
		unknown = unknown || v.Unknown != ""
	}
	if unknown {
		s.Unknown++
	}
	return nil
}

// mostFails is how many cases one after the other may fail for a reason that is not the server's before a hunt gives up.
const mostFails = 3

// broken handles a case that could not be executed, or judged, to its end. The server may be the reason: that is a finding. If it is
// not, the case is kept apart with what went wrong, and the hunt goes on, on a fresh server.
func (h *hunter) broken(ctx context.Context, spec *scenario.Spec, level product.Level, d *panel.Judgement, err error) error {
	if h.Instance.Server == nil {
		return err
	}
	if d.Result == nil {
		d.Result = &lab.Result{}
	}
	d.Trouble = err
	if fate := h.Fate(ctx, d, err); fate != "" {
		return h.crashed(ctx, spec, level, d, fate)
	}
	if !panel.TimeOut(err) { // a slow case says nothing of the next one
		h.fails++
	}
	if h.fails == mostFails {
		return err
	}
	h.Options.Log.Error().Str("engine", h.o.Engine).Err(err).Msg("a case could not be judged; it is kept in broken/")
	s := &h.store.state
	s.Cases, s.Unknown, s.Broken = s.Cases+1, s.Unknown+1, s.Broken+1
	h.store.apart(ctx, filepath.Join("broken", "case"), s.Broken, map[string]string{
		"case.spec": h.reproducer(spec, level, strings.Split(h.Selection.Names(), ",")...), "error.txt": err.Error() + "\n",
	})
	return h.Restart(ctx)
}

// crashed keeps a crash or a hang, and starts the server again.
func (h *hunter) crashed(ctx context.Context, spec *scenario.Spec, level product.Level, d *panel.Judgement, fate string) error {
	s := &schedule.Schedule{Level: level.History, Crashed: true, Hung: fate == oracle.NameHang, Trouble: fmt.Sprint(d.Trouble)}
	if d.Silent != nil {
		s.Silent = &schedule.Step{Session: d.Silent.Session, Name: d.Silent.Name, Statement: statement.Statement{Text: d.Silent.SQL}}
		for _, session := range spec.Sessions {
			s.Sessions = append(s.Sessions, schedule.Session{Name: session.Name})
		}
	}
	f := crash.Check(s).Findings[0]
	for _, v := range d.Rulings {
		for i := range v.Findings {
			if v.Findings[i].Class == oracle.Crash && v.Findings[i].Name == fate {
				f = v.Findings[i]
			}
		}
	}
	h.Options.Log.Warn().Str("engine", h.o.Engine).Err(d.Trouble).Str("what", fate).Msg("the server is started again")
	if err := h.Restart(ctx); err != nil {
		return err
	}
	h.store.state.Crashes++
	repeated := 0
	repeat := func() (err error) {
		repeated, err = h.repeats(ctx, spec, level, &f)
		return err
	}
	if fate == oracle.NameHang { // each time would take the whole limit, which the smallest case is given in the end
		if err := h.Hurried(ctx, repeat); err != nil {
			return err
		}
	} else if err := repeat(); err != nil {
		return err
	}
	f.Difference.Attempts, f.Difference.Reproduced, f.Difference.Flaky = panel.Attempts, repeated, repeated < panel.Attempts
	return h.found(ctx, spec, level, &f)
}

// repeats counts how often a finding is there again.
func (h *hunter) repeats(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) (n int, err error) {
	for range panel.Attempts {
		again, err := h.Shows(ctx, spec, level, f, spec)
		if err != nil {
			return n, err
		}
		if again {
			n++
		}
	}
	return n, nil
}

// progress shows how far the hunt has come.
func (h *hunter) progress() { h.o.Progress(h.line) }

func (h *hunter) reducing(p reduce.Progress) {
	h.o.Progress(func() string {
		return fmt.Sprintf("%s; reducing (%s): %d tried, %d sessions, %d steps", h.line(), p.Pass, p.Tried, p.Sessions, p.Steps)
	})
}

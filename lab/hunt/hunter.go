// Package hunt looks for bugs of a DBMS. It generates databases and cases, has a panel judge them, reduces each finding to a small case and
// keeps every distinct bug in a folder of its own. A hunt goes on after an interruption or a kill.
package hunt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/lab"
	"wirecheck/lab/generate"
	"wirecheck/lab/panel"
	"wirecheck/lab/reduce"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/crash"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// Options says where to hunt, for how long, who judges, and what becomes of the findings.
type Options struct {
	Engine    string // a name or a URL
	Selection panel.Selection
	Levels    []string // in turn
	Out       string   // folder for what is found
	Known     string   // file with the signatures of what is known already; empty: nothing is
	Resume    bool     // go on with the hunt in the folder
	Steer     bool     // choose cases that do what executions have not done yet

	Duration, Limit, Reduction time.Duration // of the hunt (0: no end), of one case, of one reduction (0: no end)
	Cases, Group, Tries        int           // of the hunt (0: no end), on one database, of one reduction
	Queries                    int           // of a case that is a list of queries
	Limits                     generate.Limits
	Judging                    panel.Options

	Choose   func() uint64            // gives a seed where judging has none
	Progress func(line func() string) // shows how far the hunt has come
	Rescue   io.Writer                // gets what could not be written to the folder
}

// hunter is a hunt under way.
type hunter struct {
	*panel.Executor
	o       Options
	levels  []product.Level
	store   *store
	began   time.Time
	saved   time.Time                // when the state was last saved
	here    []reducedBug             // what the case under way has shown so far
	fails   int                      // cases that failed one after the other, see broken
	earlier map[string]time.Duration // what oracles took in the runs that this one resumes
}

// saveEvery is how old the state may be that --resume finds after a kill: the cases since then are executed again. What is found is
// written at once.
const saveEvery = time.Second

// Run hunts until the time, the number of cases or ctx ends it. The report is there whenever the hunt began.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	h := &hunter{o: o}
	if h.store, err = openStore(o.Out, o.Engine, o.Known, o.Resume); err != nil {
		return nil, err
	}
	switch {
	case o.Resume:
		o.Judging.Seed = h.store.state.Seed
	case o.Judging.Seed == 0:
		o.Judging.Seed = o.Choose()
	}
	h.store.state.Seed = o.Judging.Seed
	if h.Executor, err = panel.OpenExecutor(ctx, o.Engine, o.Selection, o.Judging, o.Limit, !o.Limits.Defines()); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close(ctx)) }()
	if h.levels, err = panel.Levels(h.Instance.Engine, o.Levels, &scenario.Spec{}); err != nil {
		return nil, err
	}
	h.began, h.earlier = time.Now(), maps.Clone(h.store.state.Spent)
	stop := h.loop(ctx)
	report, err := h.end()
	return report, errors.Join(stop, err)
}

// loop executes cases until the time, the number of cases or the user ends it.
func (h *hunter) loop(ctx context.Context) error {
	for i := h.store.state.Next; h.o.Cases == 0 || i < h.o.Cases; i++ {
		if ctx.Err() != nil || h.o.Duration > 0 && time.Since(h.began) >= h.o.Duration {
			return nil
		}
		if err := h.oneCase(ctx, i); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("case %d (seed %d): %w", i, h.Options.Seed, err)
		}
		h.store.state.Next = i + 1
		if time.Since(h.saved) >= saveEvery {
			h.saved = time.Now()
			if err := h.store.save(time.Since(h.began)); err != nil {
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
	g, err := generate.New(generate.Dialect(h.Instance.Engine.Name), h.o.Limits, random(h.Options.Seed, base.Group|base.Attempt<<40))
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

// asks reports whether case i is a list of queries, if an oracle of single queries judges: the first of each database and every fifth one after
// it, since a list takes about as long as a case for all of the others; every second one if no others judge.
func (h *hunter) asks(i int) bool {
	every := 5
	if !h.Selection.Isolation && !slices.ContainsFunc(h.Selection.Judges, func(j panel.Judge) bool { return !j.Single }) {
		every = 2
	}
	return h.o.Queries > 0 && i%h.o.Group%every == 0 && slices.ContainsFunc(h.Selection.Judges, func(j panel.Judge) bool { return panel.AsksQueries(j.Name) })
}

// watchedShare is the most that watched executions may take of a hunt's time, as one in so many, where others judge, too. With a proxy in
// between the setup is executed for each case, which takes most of the time where definitions are slow.
const watchedShare = 5

// watched reports whether the isolation oracle is to judge the next case.
func (h *hunter) watched() bool {
	return h.spentOn(panel.IsolationName) <= time.Since(h.began)/watchedShare
}

// spentOn is how long an oracle has taken in this run.
func (h *hunter) spentOn(oracle string) time.Duration {
	return h.store.state.Spent[oracle] - h.earlier[oracle]
}

// oneCase makes, executes and judges a case.
func (h *hunter) oneCase(ctx context.Context, i int) error {
	k, from, err := h.generated(i)
	if err != nil {
		return err
	}
	h.here = nil
	level := h.levels[i/h.o.Group%len(h.levels)]
	within, cancel := h.Bounded(ctx)
	defer cancel()
	d, asks := &panel.Judgement{}, h.asks(i)
	b, err := h.At(within, level)
	if err == nil {
		defer b.Only(func(j panel.Judge) bool { return j.Single || !asks }, !asks && h.watched())()
		d, err = b.Run(within, k.Spec, k.Spec.Permutations[0])
	}
	s := &h.store.state
	var refused *answer.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused): // the setup
		h.Options.Log.Debug().Int("case", i).Err(err).Msg("the setup was refused")
		h.refused(k.Spec, level, refused, err)
		return nil
	case err != nil:
		return h.broken(ctx, k.Spec, level, d, err)
	}
	h.fails = 0
	s.Cases++
	s.tell(k, d, level.History)
	if err := h.count(b, k, from, d); err != nil {
		return err
	}
	if d.Crashed || d.Hung {
		return h.crashed(ctx, k.Spec, level, d, h.Fate(ctx, d, nil))
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
		repeated, err := h.repeats(ctx, k.Spec, level, f) // the panel confirms the other oracles' findings
		switch {
		case err != nil:
			return err
		case repeated < panel.Attempts:
			if err := h.keepFlaky(k.Spec, level, f); err != nil {
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
func (h *hunter) refused(spec *scenario.Spec, level product.Level, why *answer.Error, err error) {
	s := &h.store.state
	s.Cases, s.Refused = s.Cases+1, s.Refused+1
	s.Refusals["error "+why.Code]++
	h.store.apart(filepath.Join("refused", "setup"), s.Refused, map[string]string{
		"case.spec": h.reproducer(spec, level, strings.Split(h.Selection.Names(), ",")...), "error.txt": err.Error() + "\n",
	})
}

// count adds what a case was like. What its execution did counts only if an oracle could judge it: else it would seem tested.
func (h *hunter) count(b *panel.Panel, k *generate.Case, from *generate.Entry, d *panel.Judgement) error {
	s := &h.store.state
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
		if ev.Outcome.Reason != answer.ReasonOther || constraint(ev.Answer.Err) {
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

// constraint reports whether an error is the violation of a constraint: the statement itself was understood.
func constraint(e *answer.Error) bool {
	return e != nil && (strings.HasPrefix(e.Code, "23") || strings.HasPrefix(e.SQLState, "23") || strings.HasPrefix(e.Code, "SQLITE_CONSTRAINT"))
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
	if h.fails++; h.fails == mostFails {
		return err
	}
	h.Options.Log.Error().Str("engine", h.o.Engine).Err(err).Msg("a case could not be judged; it is kept in broken/")
	s := &h.store.state
	s.Cases, s.Unknown, s.Broken = s.Cases+1, s.Unknown+1, s.Broken+1
	h.store.apart(filepath.Join("broken", "case"), s.Broken, map[string]string{
		"case.spec": h.reproducer(spec, level, strings.Split(h.Selection.Names(), ",")...), "error.txt": err.Error() + "\n",
	})
	return h.Restart(ctx)
}

// crashed keeps a crash or a hang, and starts the server again.
func (h *hunter) crashed(ctx context.Context, spec *scenario.Spec, level product.Level, d *panel.Judgement, fate string) error {
	f := crash.Check(&schedule.Schedule{Level: level.History, Crashed: true, Hung: fate == oracle.NameHang, Trouble: fmt.Sprint(d.Trouble)}).Findings[0]
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
	repeated, err := h.repeats(ctx, spec, level, &f)
	if err != nil {
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

// reductionName stands for reductions where times stand by oracle.
const reductionName = "reduction"

// seldom says which of many findings alike are reduced: the first three, and then ever fewer.
func seldom(n int) bool { return n <= 3 || n&(n-1) == 0 }

// focused is the case with nothing but the statement that differs, or else with the writes around it too, if that shows the finding: of a
// long list of queries, one is enough most of the time.
func (h *hunter) focused(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) (*scenario.Spec, error) {
	if !panel.AsksQueries(f.Oracle) || f.Difference == nil || f.Difference.Step == "" {
		return spec, nil
	}
	for _, keep := range []func(*scenario.Step) bool{
		func(st *scenario.Step) bool { return st.Name == f.Difference.Step },
		func(st *scenario.Step) bool { return st.Name == f.Difference.Step || !reads.MatchString(st.SQL) },
	} {
		candidate := only(spec, keep)
		shows, err := h.Shows(ctx, candidate, level, f, spec)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if shows {
			return candidate, nil
		}
	}
	return spec, nil
}

// reads are statements that change nothing.
var reads = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|\()`)

// only is a case with one permutation without the steps that are not kept.
func only(spec *scenario.Spec, keep func(*scenario.Step) bool) *scenario.Spec {
	out := *spec
	p := &scenario.Permutation{}
	steps := map[*scenario.Step]*scenario.Step{}
	out.Sessions = nil
	for i, s := range spec.Sessions {
		session := *s
		session.Steps = nil
		for _, st := range s.Steps {
			if keep(st) {
				kept := *st
				kept.Session, kept.Index = i, len(session.Steps)
				session.Steps = append(session.Steps, &kept)
				steps[st] = &kept
			}
		}
		out.Sessions = append(out.Sessions, &session)
	}
	for _, ps := range spec.Permutations[0].Steps {
		if kept := steps[ps.Step]; kept != nil {
			p.Steps = append(p.Steps, scenario.PermutationStep{Step: kept})
		}
	}
	out.Permutations = []*scenario.Permutation{p}
	return &out
}

// alike counts how many findings there were that are probably the same bug, this one included. What single queries show is compared
// with the reduced bugs; of what schedules show, little can be told before it is reduced.
func (h *hunter) alike(spec *scenario.Spec, f *oracle.Finding) int {
	key := coarseSignature(f)
	if panel.AsksQueries(f.Oracle) {
		i := slices.IndexFunc(h.store.kept, func(b *Bug) bool { return b.Seen > 0 && b.explains(spec, f) })
		if i < 0 {
			return 1
		}
		key = h.store.kept[i].Signature
	}
	reduced := h.store.state.Reduced
	reduced[key]++
	return reduced[key]
}

// found counts a finding and, if it may be a new one, makes it small and keeps it.
func (h *hunter) found(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) error {
	s := &h.store.state
	switch d := f.Difference; {
	case f.Kind == oracle.KindPermitted:
		s.Permitted[fmt.Sprintf("%s: %s", f.Class, d.Cause)]++
		return nil
	case d != nil && d.Flaky:
		return h.keepFlaky(spec, level, f)
	}
	s.Findings++
	if h.store.knows(f) {
		return nil
	}
	if told, err := h.alsoTold(ctx, spec, level, f); err != nil || told {
		return err
	}
	if !seldom(h.alike(spec, f)) {
		return nil
	}
	begun := time.Now()
	defer func() { s.Spent[reductionName] += time.Since(begun); clear(h.Spent) }()
	tries := h.o.Tries
	switch f.Name {
	case oracle.NameCrash:
		tries /= 10 // each of them starts a server
	case oracle.NameHang:
		tries /= 50 // each of them takes as long as a case may take
	}
	begin, err := h.focused(ctx, spec, level, f)
	if err != nil {
		return err
	}
	small, _, err := h.Reduce(ctx, begin, level, f, tries, h.o.Reduction, h.reducing)
	if err != nil && ctx.Err() == nil && !errors.Is(err, panel.ErrTime) {
		return err
	}
	evidence, seen := f, (*schedule.Schedule)(nil)
	for ctx.Err() == nil {
		// Without it the finding is kept as it was first seen. If it is the server that fails, the next case tells.
		var e *oracle.Finding
		if e, seen, err = h.evidence(ctx, small, level, f); err != nil {
			h.Options.Log.Warn().Err(err).Msg("the smallest case could not be executed once more")
			break
		}
		if e != nil {
			evidence = e
			break
		}
		if !evident(f) {
			break
		}
		if small == spec { // it was there again each time in one database, and is not in a fresh one
			return h.keepFlaky(spec, level, f)
		}
		small = spec
	}
	bug, err := h.store.keep(context.WithoutCancel(ctx), h, small, spec, level, evidence, seen)
	if bug != nil {
		h.here = append(h.here, reducedBug{bug, small})
	}
	return err
}

// reducedBug is a bug that the case under way showed, and how small the case became.
type reducedBug struct {
	bug   *Bug
	small *scenario.Spec
}

// alsoTold reports whether the finding is there in what became of the case for another finding: then another oracle, or another rule of
// the same one, tells the same bug, and it is noted with that.
func (h *hunter) alsoTold(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) (bool, error) {
	for _, r := range h.here {
		shows, err := h.Shows(ctx, r.small, level, f, spec)
		if err != nil {
			return false, err
		}
		if shows {
			if err := h.store.also(r.bug, string(f.Class)); err != nil { // it is printed at the end all the same
				h.Options.Log.Error().Err(err).Str("folder", r.bug.Folder).Msg("that another oracle tells it, too, could not be written")
			}
			return true, nil
		}
	}
	return false, nil
}

// evident reports whether evidence finds a finding again: one of an oracle that executes a case, and no crash.
func evident(f *oracle.Finding) bool {
	return f.Difference != nil && f.Name != oracle.NameCrash && f.Name != oracle.NameHang && f.Class != oracle.Crash
}

// evidence is the finding as the smallest case shows it, and the execution that showed it; nil if it does not any more.
func (h *hunter) evidence(ctx context.Context, small *scenario.Spec, level product.Level, f *oracle.Finding) (*oracle.Finding, *schedule.Schedule, error) {
	if f.Name == oracle.NameCrash || f.Name == oracle.NameHang {
		return nil, nil, nil
	}
	ctx, cancel := h.Bounded(ctx)
	defer cancel()
	b, err := h.At(ctx, level)
	if err != nil {
		return nil, nil, err
	}
	defer b.Only(func(j panel.Judge) bool { return j.Name == f.Oracle }, false)()
	d, err := b.Run(ctx, small, small.Permutations[0])
	if err != nil {
		return nil, nil, err
	}
	s, err := b.Schedule(small, d.Result)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range d.Rulings {
		for i := range v.Findings {
			if g := &v.Findings[i]; g.Class == f.Class && g.Name == f.Name && g.Kind == f.Kind {
				return g, s, nil
			}
		}
	}
	return nil, s, nil
}

// progress shows how far the hunt has come.
func (h *hunter) progress() { h.o.Progress(h.line) }

func (h *hunter) reducing(p reduce.Progress) {
	h.o.Progress(func() string {
		return fmt.Sprintf("%s; reducing (%s): %d tried, %d sessions, %d steps", h.line(), p.Pass, p.Tried, p.Sessions, p.Steps)
	})
}

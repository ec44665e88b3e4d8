// Package panel executes cases and lets the oracles judge them. A panel is the oracles that judge, with the databases that they need. It
// executes a case again where an oracle found something, and says which findings are there each time. An Executor keeps a panel for each
// isolation level of one server, and starts a private server again that a case has ended.
package panel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/live"
	"wirecheck/oracle"
	"wirecheck/oracle/crash"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"

	dialect "wirecheck/rewrite/mysql"
)

// Panel judges cases at one level of one server. It has a lab that executes the cases, a proxy through which the isolation oracle watches,
// and a database for each oracle that executes something itself.
//
// The isolation oracle needs hidden columns, and these make some bugs vanish. So where other oracles judge, too, Run executes a case
// twice: as it is for them, and watched for the isolation oracle.
type Panel struct {
	selection Selection
	lab       *lab.Lab            // executes the case: watched, if the isolation oracle judges alone
	primary   *lab.Stage          // of lab
	watched   *lab.Lab            // executes it for the isolation oracle; lab, or one more
	steps     *isolation.Coverage // of the case that is watched, before its final queries
	proxy     *live.Proxy         // nil: the isolation oracle does not judge
	blind     bool                // it does not judge for now
	labs      *engine.Labs

	config   lab.Config // of plain labs
	version  string
	describe lab.Describe
	define   func(sql string) statement.Definition
	seed     uint64 // of what oracles choose
	orders   int

	mu     sync.Mutex               // guards what follows while judges go abreast
	stages map[string]*lab.Stage    // by oracle
	extra  []*lab.Lab               // to be closed
	spent  map[string]time.Duration // by oracle; nil: it is not measured

	// Around, if set, calls what executes the case; oracles' own executions do not go through it. A test of the oracles has its faults there.
	Around func(execute func() error) error
	// Attempts is how often the panel executes a case again in which an oracle found something: Open sets it to the constant. If Sparing is
	// set, a permitted difference is no reason to execute it again.
	Attempts int
	Sparing  bool
	// Abreast has judges that use no database of another one go side by side. It is for cases that touch nothing which databases of a server
	// share, such as locks by name and settings of the server.
	Abreast bool
}

// spend adds the time since a moment to an oracle's.
func (b *Panel) spend(oracle string, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent != nil {
		b.spent[oracle] += time.Since(since)
	}
}

// Judgement is a case that was executed, and what the oracles said of it.
type Judgement struct {
	*lab.Result
	Judged    bool                // the isolation oracle judged
	Isolation live.Result         // what the isolation oracle said
	steps     *isolation.Coverage // of its steps alone; nil if they did not come to their end
	watched   *lab.Result         // the execution that it judged; Result, if there was only one
	Rulings   []Ruling
}

// Options says how the oracles judge.
type Options struct {
	Log    zerolog.Logger
	Seed   uint64 // of what oracles choose
	Orders uint   // how many topological orders txcheck executes for each case; 0: one
	// Invariants are looked at before and behind each execution of a case (Result.Broken).
	Invariants []lab.Invariant
	// Record gets the history that the isolation oracle judges; nil: the panel keeps none.
	Record io.Writer
	// Database is the name of the database on a private server; empty: a name that no other lab has.
	Database string
}

// Open makes the databases and starts the proxy. It leaves out oracles that cannot judge on the product, and logs that.
func Open(ctx context.Context, s *backends.Instance, config lab.Config, p Selection, o Options) (_ *Panel, err error) {
	p, note, err := p.fit(s.Engine)
	if err != nil {
		return nil, err
	}
	if note != "" {
		o.Log.Warn().Msg(note)
	}
	b := &Panel{
		selection: p, version: s.Version, describe: Describer(s.Engine), define: Definer(s.Engine), stages: map[string]*lab.Stage{},
		seed: o.Seed, orders: max(int(o.Orders), 1), Attempts: Attempts,
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close(ctx))
		}
	}()
	open := engine.OpenLabs
	if s.Server != nil {
		open = engine.OpenPrivateLabs
	}
	if b.labs, err = open(ctx, s.Engine, s.Target); err != nil {
		return nil, err
	}
	for _, name := range b.labs.Swept {
		o.Log.Info().Str("database", name).Msg("removed a database that an earlier run had left behind")
	}
	var target engine.Target
	if o.Database != "" && s.Server != nil {
		target, err = b.labs.Make(ctx, o.Database)
	} else {
		target, err = b.labs.Create(ctx)
	}
	if err != nil {
		return nil, err
	}
	if s.Server != nil {
		target = s.Server.Local(target)
	}
	config.Backend, config.Target, config.Side = s.Engine, target, target
	if len(p.Judges) > 0 && config.Reset == lab.Setup {
		config.Reset = lab.Quick // oracles reset their stages many times
	}
	if config.Case <= 0 {
		config.Case = lab.CaseLimit
	}
	b.config = config
	b.config.Invariants = nil // oracles' own executions break none
	if p.Isolation {
		if len(p.Judges) > 0 {
			if target, err = b.labs.Create(ctx); err != nil {
				return nil, err
			}
		}
		if b.watched, err = b.openWatched(ctx, o, s, config, target); err != nil {
			return nil, err
		}
		if b.lab = b.watched; len(p.Judges) == 0 {
			return b, nil
		}
		b.extra = append(b.extra, b.watched)
	}
	if b.lab, err = lab.Open(ctx, config); err != nil {
		return nil, err
	}
	b.primary = lab.NewStage(b.lab, b.version, b.describe)
	return b, nil
}

// Only leaves out the other judges, and the isolation oracle unless watched is set. The function that it gives brings them back.
func (b *Panel) Only(keep func(Judge) bool, watched bool) (restore func()) {
	whole, blind := b.selection, b.blind
	b.selection.Judges = slices.DeleteFunc(slices.Clone(whole.Judges), func(j Judge) bool { return !keep(j) })
	b.blind = blind || len(b.selection.Judges) > 0 && !watched // Close still closes the proxy
	return func() { b.selection, b.blind = whole, blind }
}

// stuckAfter says how long the server may take to end a state in which all sessions wait.
func (b *Panel) stuckAfter(limit time.Duration) {
	b.config.Limits.Stuck = limit // of labs to come
	for _, l := range append(slices.Clone(b.extra), b.lab) {
		l.StuckAfter(limit)
	}
}

// openWatched opens a lab behind a proxy that sees what happens.
func (b *Panel) openWatched(ctx context.Context, o Options, s *backends.Instance, config lab.Config, target engine.Target) (*lab.Lab, error) {
	var err error
	if b.proxy, err = live.Open(ctx, o.Log, s.Engine, s.Target, o.Record); err != nil {
		return nil, err
	}
	config.Target, config.Side, config.Hidden = b.proxy.Through(target), target, dialect.HiddenColumn
	config.Ended = func() {
		seen := b.proxy.Checker.Result().Coverage
		b.steps = &seen
	}
	if s.Engine.Protocol == engine.ProtocolMySQL {
		config.After = "DO 0"
		if !config.Aside && !s.Engine.Lab.Restores {
			config.Reset = lab.Setup // rows that the proxy has not seen written count as older, and fewer statements are exact
		}
	}
	return lab.Open(ctx, config)
}

// Run executes and judges one permutation, and gives one event one verdict. It is bounded, so that no server can keep it waiting.
func (b *Panel) Run(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation) (*Judgement, error) {
	within, cancel := bounded(ctx, b.config.Case)
	defer cancel()
	d, err := b.judge(within, spec, p)
	reconcile(d.Rulings)
	if err != nil && within.Err() != nil && ctx.Err() == nil && !TimeOut(err) {
		err = fmt.Errorf("%w: %w", context.Cause(within), err)
	}
	return d, err
}

// judgedShare is how many times as long as a case a case and its oracles may take.
const judgedShare = 5

var errJudgedLimit = errors.New("the case and its oracles took more than")

// bounded bounds the execution of one case by all oracles that judge it.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, judgedShare*limit, fmt.Errorf("%w %v", errJudgedLimit, judgedShare*limit))
}

// TimeOut reports whether the time of a case, or that of its oracles, ended it.
func TimeOut(err error) bool {
	return errors.Is(err, lab.ErrCaseLimit) || errors.Is(err, errJudgedLimit)
}

// judge executes one permutation, and gives what each oracle says of it by itself.
func (b *Panel) judge(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation) (*Judgement, error) {
	d := &Judgement{}
	if b.proxy != nil && !b.blind {
		b.proxy.Checker.Restart()
		b.steps = nil
		begun := time.Now()
		r, err := b.execute(ctx, b.watched, spec, p, b.proxy.Checker.Prepared)
		b.spend(IsolationName, begun)
		d.Result, d.watched = r, r
		if err != nil {
			return d, err
		}
		d.Isolation, d.Judged, d.steps = b.proxy.Checker.Result(), true, b.steps
		d.Isolation.Coverage.UnknownWriters = 0 // those without a known writer are the setup's
		if r.Crashed || r.Hung {
			return d, b.directly(ctx, spec, p, d)
		}
		if len(b.selection.Judges) == 0 {
			return d, nil
		}
	}
	begun := time.Now()
	ready := b.ahead(ctx, spec)
	var described sync.WaitGroup
	described.Go(func() { // the server works meanwhile; what goes wrong does so once more
		for _, ps := range p.Steps {
			_, _ = b.describe(ps.Step.SQL)
		}
	})
	r, err := b.Again(ctx, spec, p)
	described.Wait()
	if late := ready(err == nil && r.Trouble == nil); err == nil {
		err = late
	}
	b.spend(executionName, begun)
	if d.Result = r; err != nil {
		return d, err
	}
	d.Rulings, err = b.rule(ctx, spec, p, r)
	return d, err
}

// directly judges a case of which the proxy saw no end: the server may be judged by what it does without the proxy alone. If nothing can be executed any
// more, it has ended.
func (b *Panel) directly(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, d *Judgement) error {
	r, err := b.Again(ctx, spec, p)
	switch {
	case err == nil && (r.Crashed || r.Hung):
		d.Result = r
	case err == nil || !d.Crashed || ctx.Err() != nil:
		return nil
	}
	d.Rulings, err = b.rule(ctx, spec, p, d.Result)
	return err
}

// ahead resets the databases of oracles that judge while the case is executed in another one. If they are not needed, join ends that; what was cut
// off is made anew for the next case.
func (b *Panel) ahead(ctx context.Context, spec *scenario.Spec) (join func(needed bool) error) {
	joins := map[string]func(bool) error{}
	for _, j := range b.selection.Judges {
		if s := b.stages[j.Name]; s != nil {
			s.Plain(spec)
			joins[j.Name] = s.Ahead(ctx, spec.Setup)
		}
	}
	return func(needed bool) (late error) {
		for name, join := range joins {
			err := join(needed)
			if err != nil {
				delete(b.stages, name)
			}
			if needed && err != nil {
				late = fmt.Errorf("reset the database of oracle %s: %w", name, err)
			}
		}
		return late
	}
}

// Schedule gives what an execution did in the oracles' words.
func (b *Panel) Schedule(spec *scenario.Spec, r *lab.Result) (*schedule.Schedule, error) {
	return lab.NewStage(b.lab, b.version, b.describe).Schedule(spec, r)
}

// Executes reports whether an oracle judges that executes something itself.
func (b *Panel) Executes() bool { return len(b.selection.Judges) > 0 }

// Again executes a case without judging it.
func (b *Panel) Again(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation) (*lab.Result, error) {
	return b.execute(ctx, b.lab, spec, p, func(bool) {})
}

// execute executes the case itself, as it is executed for all oracles and whenever a finding is confirmed.
func (b *Panel) execute(ctx context.Context, l *lab.Lab, spec *scenario.Spec, p *scenario.Permutation, prepared func(afresh bool)) (r *lab.Result, err error) {
	run := func() error {
		r, err = l.Run(ctx, spec, p, prepared)
		return err
	}
	if b.Around == nil {
		err = run()
	} else {
		err = b.Around(run)
	}
	return r, err
}

// aside asks the database in which the case was executed, on a connection of its own.
func (b *Panel) aside(ctx context.Context, ask func(engine.Conn) error) error {
	conn, err := b.config.Backend.Connect(ctx, b.config.Side)
	if err != nil {
		return err
	}
	return errors.Join(ask(conn), conn.Close())
}

// keys gives the unique keys of that database.
func (b *Panel) keys(ctx context.Context) (keys map[string][][]string, err error) {
	err = b.aside(ctx, func(conn engine.Conn) (err error) {
		keys, err = b.config.Backend.Lab.UniqueKeys(ctx, conn)
		return err
	})
	return keys, err
}

// closeLimit is how long a server may take to drop a panel's databases.
const closeLimit = 20 * time.Second

// Close drops the databases and ends the proxy.
func (b *Panel) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	var errs []error
	for _, l := range b.extra {
		errs = append(errs, l.Close())
	}
	if b.lab != nil {
		errs = append(errs, b.lab.Close())
	}
	if b.proxy != nil {
		errs = append(errs, b.proxy.Close())
	}
	if b.labs != nil {
		errs = append(errs, b.labs.Close(ctx))
	}
	return errors.Join(errs...)
}

// Findings gives what the oracles found, permitted differences left out.
func (d *Judgement) Findings() []oracle.Finding {
	list := slices.Clone(d.Isolation.Findings)
	for _, v := range d.Rulings {
		for _, f := range v.Findings {
			if f.Kind != oracle.KindPermitted {
				list = append(list, f)
			}
		}
	}
	return list
}

// Decided reports whether at least one oracle could judge the case, and whether all could. The crash oracle always can; it counts only if no
// other one judges.
func (d *Judgement) Decided() (some, all bool) {
	if d.Trouble != nil || d.Crashed {
		return false, false
	}
	asked, known := 0, 0
	count := func(knows bool) {
		if asked++; knows {
			known++
		}
	}
	if d.Judged {
		count(!d.Unseen())
	}
	for _, v := range d.Rulings {
		if v.Oracle != crash.Descriptor.Name {
			count(v.Unknown == "")
		}
	}
	return known > 0 || asked == 0, known == asked
}

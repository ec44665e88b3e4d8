package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/trace/lex"
)

// Limits of what is executed in other orders.
const (
	maxUnits     = 50_000 // of a replay, that are remembered
	maxStateRows = 20_000 // of a group's state
	thinRows     = 200    // of a table, above which rows are left out that the group does not speak of
)

// joined makes units of the transactions. tagged reports whether tags tell requests apart.
func (r *replayer) joined(c *replay.Collector) (units []*replay.Unit, tagged bool) {
	tagged = slices.ContainsFunc(c.Units, func(u *replay.Unit) bool { return u.Request != "" })
	if r.o.Auto {
		r.o.Requests = r.o.UnitGap > 0 || tagged
	}
	r.report.options = r.o
	return replay.Request{On: r.o.Requests, Gap: r.o.UnitGap}.Join(c.Units), tagged
}

// explore runs units of the replay in other orders. The states before them are taken from a second replay.
func (r *replayer) explore(ctx context.Context, c *replay.Collector) (err error) {
	units, tagged := r.joined(c)
	near := 0
	if r.o.Mode.Kind != "" {
		near = r.o.Window
	}
	x := &Explored{Units: len(units), Anomalies: []*WrongRun{}, seen: map[string]*WrongRun{}, runs: map[string]int{}}
	r.report.Explored = x
	if r.o.Requests && !tagged && r.o.UnitGap == 0 {
		x.NoRequests = "--unit request: no statement of the trace has a tag that names its request (traceparent, request_id), so each transaction was a unit: let the application write tags, or put together what follows within a time (--unit-gap 50ms)"
	}
	if r.o.UnitGap > 0 {
		x.OneUnit = replay.WholeSessions(units)
	}
	groups, left := replay.Groups(units, near, r.o.Groups, r.dialect())
	x.Left = left
	p, err := panel.Select(r.o.Oracles)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.Judges, func(j panel.Judge) bool { return j.Single }) {
		alone, left := replay.Alone(units, max(r.o.Groups-len(groups), 0), r.dialect())
		groups, x.Left = append(groups, alone...), x.Left+left
		slices.SortStableFunc(groups, func(a, b *replay.Group) int { return a.Start - b.Start })
	}
	if r.wanted != nil {
		if groups, err = r.taking(units); err != nil {
			return err
		}
	}
	if x.planned = len(groups); len(groups) == 0 {
		return nil
	}
	if err := r.states(ctx, groups, c.Definitions); err != nil {
		return err
	}
	// The small ones first: what they show, the larger ones need not tell again.
	slices.SortStableFunc(groups, func(a, b *replay.Group) int { return len(a.Units) - len(b.Units) })
	e := newExplorer(r, c.Definitions)
	e.x = x
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	for i, g := range groups {
		r.o.Progress(int64(i), int64(len(groups)), "combination %d of %d, interleavings: %d, wrong: %d", i+1, len(groups), x.Interleavings, x.Wrong)
		if g.State == nil {
			continue
		}
		x.Groups++
		why, err := e.group(ctx, g)
		if ctx.Err() != nil {
			break // what was found so far is kept
		}
		if err != nil {
			why = fmt.Sprintf("%s: %v", sessionsOf(g), err)
			if overtime(err) {
				x.TooLong++
			}
			if err := e.renew(ctx); err != nil {
				return err
			}
		}
		if why != "" {
			x.NotJudged++
		}
		if why != "" && len(x.Unjudged) < firstShown {
			x.Unjudged = append(x.Unjudged, why)
		}
	}
	r.o.Progress(0, 0, "")
	for _, w := range slices.Concat(x.Anomalies, x.Possible) {
		w.Runs = x.runs[w.shape]
	}
	return e.keep()
}

func (r *replayer) dialect() lex.Dialect {
	if r.postgres() {
		return lex.PostgreSQL
	}
	return lex.MySQL
}

// errStates ends the second replay when all states are known.
var errStates = errors.New("all states are known")

// states replays the trace once more, without watching, and takes the database's state before each group.
func (r *replayer) states(ctx context.Context, groups []*replay.Group, defined []replay.Definition) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// An interruption must not break the connection that drops databases.
	if r.o.InPlace == "" {
		if err := r.labs.Drop(context.WithoutCancel(ctx), r.target); err != nil {
			return err
		}
	}
	if err := r.makeDatabase(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	proxy := r.proxy
	r.proxy = nil
	defer func() { r.proxy = proxy }()
	if err := r.restore(ctx); err != nil {
		return err
	}
	config, err := r.config()
	if err != nil {
		return err
	}
	side, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, side.Close()) }()
	if err := r.instance.Engine.Lab.PrepareConn(ctx, side); err != nil {
		return err
	}
	config.Order, config.Speed, config.Generated = replay.OrderCommit, 0, replay.NewGenerated(r.dialect())
	next := 0
	config.Before = func(ctx context.Context, s *replay.Step) error {
		for next < len(groups) && groups[next].Start <= s.N {
			g := groups[next]
			if err := r.state(ctx, side, g, s.N, defined); err != nil {
				return err
			}
			for _, tables := range [][]engine.Table{g.State.Tables, g.State.Whole} {
				r.asFirst(tables, config.Generated)
			}
			next++
		}
		if next == len(groups) {
			return errStates
		}
		return nil
	}
	if _, err = replay.Run(ctx, config, r.open, r.survey); errors.Is(err, errStates) {
		err = nil
	}
	return err
}

// asFirst gives rows of the second replay the values that the first one's clocks and UUIDs had: the units name them.
func (r *replayer) asFirst(tables []engine.Table, second *replay.Generated) {
	for _, t := range tables {
		for _, row := range t.Rows {
			for i, v := range row {
				if text := string(v); v != nil {
					if other := second.As(r.generated, text); other != text {
						row[i] = answer.Value(other)
					}
				}
			}
		}
	}
}

// state reads the committed state as far as a group needs it.
func (r *replayer) state(ctx context.Context, side engine.Conn, g *replay.Group, n int, defined []replay.Definition) error {
	b := r.instance.Engine.Lab
	tables, err := b.Definitions(ctx, side)
	if err != nil {
		return err
	}
	s := &replay.State{}
	for s.Defined < len(defined) && defined[s.Defined].N < n {
		s.Defined++
	}
	g.Queries = queries(r.invariants())
	s.Tables = g.Needed(tables, r.definitions(defined[:s.Defined]))
	if len(s.Tables) > 0 {
		if err := b.ReadRows(ctx, side, s.Tables); err != nil {
			return err
		}
	}
	rows := 0
	for _, t := range s.Tables {
		rows += len(t.Rows)
	}
	if rows > thinRows && (len(g.Queries) == 0 || rows > maxStateRows) { // an invariant speaks of all rows
		whole := s.Tables
		if s.Tables, s.Thinned = g.Keep(whole, thinRows, r.dialect()); s.Thinned && rows <= maxStateRows {
			s.Whole = whole
		}
	}
	if s.Counters, err = b.Counters(ctx, side); err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	if s.Filled, err = b.NumberedColumns(ctx, side); err != nil {
		return err
	}
	if s.Keys, err = b.UniqueKeys(ctx, side); err != nil {
		return err
	}
	if s.Filled != nil {
		maps.Copy(s.Filled, g.Counted(r.dialect()))
	}
	g.State = s
	return nil
}

// definitions are those of the snapshot and then of the trace itself.
func (r *replayer) definitions(own []replay.Definition) replay.Definitions {
	d := replay.Definitions{Before: slices.Clone(r.defs.Before), After: slices.Clone(r.defs.After)}
	for _, o := range own {
		d.Add(o.SQL)
	}
	return d
}

// explorer runs groups, one after the other, on labs of its own.
type explorer struct {
	r        *replayer
	x        *Explored
	defined  []replay.Definition
	panels   map[string]*panel.Panel // by level: for the oracles
	confirm  map[string]*panel.Panel // by level and oracles: for scenarios that show what was found
	describe lab.Describe
	labs     map[string]*lab.Lab // by level: for values
	owner    *engine.Labs
	wrong    []*replay.Group // that were found to go wrong
	executed int             // interleavings of trials
}

func newExplorer(r *replayer, defined []replay.Definition) *explorer {
	return &explorer{
		r: r, x: &Explored{}, defined: defined, panels: map[string]*panel.Panel{}, confirm: map[string]*panel.Panel{}, describe: r.describe(),
		labs: map[string]*lab.Lab{},
	}
}

// goesWrong reports whether units that do what some of a group's do go wrong by themselves.
func (e *explorer) goesWrong(g *replay.Group) bool {
	return slices.ContainsFunc(e.wrong, func(other *replay.Group) bool { return other.Within(g) })
}

// overtime reports whether a combination ended because something took too long.
func overtime(err error) bool {
	return errors.Is(err, lab.ErrCaseLimit) || errors.Is(err, context.DeadlineExceeded)
}

// renew lets go of all labs after one of them has failed in the middle of something, and asks whether the server still answers.
func (e *explorer) renew(ctx context.Context) error {
	if err := e.r.instance.Answers(ctx); err != nil {
		return err
	}
	_ = e.drop(ctx) // what failed before may fail again; the labs are dropped with their owners
	return nil
}

// drop lets go of all labs; others are made where they are needed.
func (e *explorer) drop(ctx context.Context) error {
	err := e.close(ctx)
	clear(e.labs)
	clear(e.panels)
	clear(e.confirm)
	e.owner = nil
	return err
}

func (e *explorer) close(ctx context.Context) error {
	var errs []error
	for _, l := range e.labs {
		errs = append(errs, l.Close())
	}
	for _, b := range e.confirm {
		errs = append(errs, b.Close(ctx))
	}
	for _, b := range e.panels {
		errs = append(errs, b.Close(ctx))
	}
	if e.owner != nil {
		errs = append(errs, e.owner.Close(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

// at gives what executes at a level.
func (e *explorer) at(ctx context.Context, level product.Level) (_ *lab.Lab, _ *panel.Panel, err error) {
	if l := e.labs[level.History]; l != nil {
		return l, e.panels[level.History], nil
	}
	p, err := panel.Select(e.r.o.Oracles)
	if err != nil {
		return nil, nil, err
	}
	config := lab.Config{Level: level, Case: e.r.o.Limit, Reset: lab.Quick, Aside: e.r.postgres()}
	config.Limits.Stuck = panel.StuckLimit
	if p.Isolation || len(p.Judges) > 0 {
		b, err := panel.Open(ctx, e.r.instance, config, p, e.r.o.Judging)
		if err != nil {
			return nil, nil, err
		}
		b.Attempts, e.panels[level.History] = 0, b
	}
	if e.owner == nil {
		if e.owner, err = engine.OpenLabs(ctx, e.r.instance.Engine, e.r.instance.Target); err != nil {
			return nil, nil, err
		}
	}
	target, err := e.owner.Create(ctx)
	if err != nil {
		return nil, nil, err
	}
	config.Invariants = e.r.invariants()
	config.Backend, config.Target, config.Side = e.r.instance.Engine, target, target
	l, err := lab.Open(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	e.labs[level.History] = l
	return l, e.panels[level.History], nil
}

// judges gives what executes and judges a scenario at a level as wirecheck run would, by these oracles.
func (e *explorer) judges(ctx context.Context, level product.Level, oracles []string) (*panel.Panel, error) {
	key := level.History + ": " + strings.Join(oracles, ",")
	if b := e.confirm[key]; b != nil {
		return b, nil
	}
	p, err := panel.Select(strings.Join(oracles, ","))
	if err != nil {
		return nil, err
	}
	config := lab.Config{Level: level, Case: e.r.o.Limit, Invariants: e.r.invariants()}
	config.Limits.Stuck = panel.StuckLimit
	b, err := panel.Open(ctx, e.r.instance, config, p, e.r.o.Judging)
	if err != nil {
		return nil, err
	}
	b.Attempts = 0
	e.confirm[key] = b
	return b, nil
}

// group runs one group; why says why it could not be judged.
func (e *explorer) group(ctx context.Context, g *replay.Group) (why string, err error) {
	name := cmp.Or(e.r.o.Level, g.Units[0].Level, e.r.instance.Engine.Default)
	level, err := panel.FindLevel(e.r.instance.Engine, name)
	if err != nil {
		return "", err
	}
	g = e.r.varied(g)
	k := &combination{e: e, g: g, level: level, serial: map[string]*schedule.Schedule{}, named: map[string]*WrongRun{}, blamed: map[int]string{}}
	if k.lab, k.panel, err = e.at(ctx, level); err != nil {
		return "", err
	}
	if why, err := k.begin(ctx); why != "" || err != nil {
		return why, err
	}
	if g.Overlapped {
		if err := k.weigh(ctx, k.recorded, k.texts(), k.base, true, ""); err != nil {
			return "", err
		}
	}
	if e.r.o.Mode.Kind == "" {
		return "", nil
	}
	return "", k.others(ctx)
}

// keep stores the scenarios.
func (e *explorer) keep() error {
	dir := e.r.o.Out
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep what was found: %w", err)
	}
	n := 0
	for _, w := range slices.Concat(e.x.Anomalies, e.x.Possible) {
		if w.Spec == "" {
			continue
		}
		n++
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.spec", strings.NewReplacer(" ", "-", "(", "", ")", "").Replace(w.Found[0]), n))
		if err := os.WriteFile(path, []byte(w.Spec), 0o600); err != nil {
			return fmt.Errorf("keep what was found: %w", err)
		}
		w.Kept = path
	}
	return nil
}

// reportFile is the file of --out that has the whole text.
const reportFile = "report.txt"

// keepText stores all that the report says.
func (r *replayer) keepText() error {
	if r.o.Out == "" || r.report.Replay == nil {
		return nil
	}
	err := os.MkdirAll(r.o.Out, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.o.Out, reportFile), []byte(r.report.whole()), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the report: %w", err)
	}
	return nil
}

package explore

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/serial"
	"wirecheck/product"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// Limits of what is executed in other orders.
const (
	maxUnits     = 50_000 // of a replay, that are remembered
	maxStateRows = 20_000 // of a group's state
	thinRows     = 200    // of a table, above which rows are left out that the group does not speak of
)

// Explored is what running transactions in other orders brought.
type Explored struct {
	Units         int      `json:"units"`
	Groups        int      `json:"groups"`
	Left          int      `json:"groups_left,omitempty"` // beyond --groups
	Interleavings int      `json:"interleavings"`
	Wrong         int      `json:"wrong"`              // of these, in how many something was found
	Marked        int      `json:"marked,omitempty"`   // with a finding that the application might not have produced
	Unjudged      []string `json:"unjudged,omitempty"` // groups that could not be judged, and why
	// Unconfirmed are the first of NotShown findings whose own scenario did not show them; they are none.
	Unconfirmed []string    `json:"unconfirmed,omitempty"`
	NotShown    int         `json:"not_confirmed,omitempty"`
	Anomalies   []*WrongRun `json:"anomalies"`
	Possible    []*WrongRun `json:"possible,omitempty"`
	seen        map[string]*WrongRun
	runs        map[string]int // interleavings by what the units do
}

// WrongRun is the shortest interleaving of its kind in which something was found.
type WrongRun struct {
	Captured    bool        `json:"captured"`      // the order is that of the trace
	Already     bool        `json:"already"`       // the order of the trace is wrong, too
	Runs        int         `json:"interleavings"` // that were run of units that do the same
	Found       []string    `json:"found"`         // names; "not serializable" where the values show it
	Sessions    []uint64    `json:"sessions"`
	Tables      []string    `json:"tables,omitempty"`
	Level       string      `json:"level"`
	OneSession  bool        `json:"one_session,omitempty"` // in the trace, two of them came from the same session
	Wrong       int         `json:"wrong"`
	Permutation string      `json:"permutation"`
	Why         []string    `json:"why,omitempty"` // for each serial order, what it would have brought
	Flows       []string    `json:"recomputed,omitempty"`
	Mark        string      `json:"mark,omitempty"` // why the application might not have produced it
	Units       []string    `json:"requests,omitempty"`
	Tags        []trace.Tag `json:"tags,omitempty"`
	Spec        string      `json:"spec,omitempty"`
	Kept        string      `json:"kept,omitempty"`
	Unprintable string      `json:"unprintable,omitempty"`
	switches    int
	steps       int
	shape       string
	oracles     []string // that show it
}

// explore runs units of the replay in other orders. The states before them are taken from a second replay.
func (r *replayer) explore(ctx context.Context, c *replay.Collector) (err error) {
	units := replay.Request{On: r.o.Requests, Gap: r.o.UnitGap}.Join(c.Units)
	near := 0
	if r.o.Mode.Kind != "" {
		near = r.o.Window
	}
	x := &Explored{Units: len(units), Anomalies: []*WrongRun{}, seen: map[string]*WrongRun{}, runs: map[string]int{}}
	r.report.Explored = x
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
	if len(groups) == 0 {
		return nil
	}
	if err := r.states(ctx, groups, c.Definitions); err != nil {
		return err
	}
	e := &explorer{r: r, x: x, defined: c.Definitions, panels: map[string]*panel.Panel{}, confirm: map[string]*panel.Panel{}, describe: panel.Describer(r.instance.Engine), labs: map[string]*lab.Lab{}}
	defer func() { err = errors.Join(err, e.close(ctx)) }()
	for i, g := range groups {
		r.o.Progress("combination %d of %d, interleavings: %d, wrong: %d", i+1, len(groups), x.Interleavings, x.Wrong)
		if g.State == nil {
			continue
		}
		x.Groups++
		why, err := e.group(ctx, g)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if why != "" && len(x.Unjudged) < firstShown {
			x.Unjudged = append(x.Unjudged, why)
		}
	}
	r.o.Progress("")
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
	if err := r.labs.Drop(ctx, r.target); err != nil {
		return err
	}
	if err := r.makeDatabase(ctx); err != nil {
		return err
	}
	proxy := r.proxy
	r.proxy = nil
	defer func() { r.proxy = proxy }()
	if r.o.Snapshot != "" {
		if err := r.restore(ctx); err != nil {
			return err
		}
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
	config.Order, config.Speed = replay.OrderCommit, 0
	next := 0
	config.Before = func(ctx context.Context, s *replay.Step) error {
		for next < len(groups) && groups[next].Start <= s.N {
			if err := r.state(ctx, side, groups[next], s.N, defined); err != nil {
				return err
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
	if rows > thinRows {
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
		if e.panels[level.History], err = panel.Open(ctx, e.r.instance, config, p, e.r.o.Judging); err != nil {
			return nil, nil, err
		}
		e.panels[level.History].Attempts = 0
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
	config := lab.Config{Level: level, Case: e.r.o.Limit}
	config.Limits.Stuck = panel.StuckLimit
	b, err := panel.Open(ctx, e.r.instance, config, p, e.r.o.Judging)
	if err != nil {
		return nil, err
	}
	b.Attempts = 0
	e.confirm[key] = b
	return b, nil
}

// combination is a group under way.
type combination struct {
	e        *explorer
	g        *replay.Group
	lab      *lab.Lab
	panel    *panel.Panel
	level    product.Level
	spec     *scenario.Spec
	recorded *scenario.Permutation
	base     *lab.Result
	lanes    []*replay.Lane
	stage    *lab.Stage // of lab: says what it did in the oracles' words
	masks    *serial.Masks
	orders   []*scenario.Permutation
	serial   map[string]*schedule.Schedule // serial orders, by sessions and the statements' texts
	named    map[string]*WrongRun          // by what differs: what the oracles call it
	wrong    bool                          // the recorded order is
}

// group runs one group; why says why it could not be judged.
func (e *explorer) group(ctx context.Context, g *replay.Group) (why string, err error) {
	name := g.Units[0].Level
	if name == "" {
		name = e.r.instance.Engine.Default
	}
	level, err := panel.FindLevel(e.r.instance.Engine, name)
	if err != nil {
		return "", err
	}
	k := &combination{e: e, g: g, level: level, serial: map[string]*schedule.Schedule{}, named: map[string]*WrongRun{}}
	if k.lab, k.panel, err = e.at(ctx, level); err != nil {
		return "", err
	}
	if why, err := k.begin(ctx); why != "" || err != nil {
		return why, err
	}
	if g.Overlapped {
		if err := k.judge(ctx, k.recorded, k.texts(), k.base, true); err != nil {
			return "", err
		}
	}
	if e.r.o.Mode.Kind == "" {
		return "", nil
	}
	return "", k.others(ctx)
}

// sessions names a group's, for people.
func sessionsOf(g *replay.Group) string {
	var list []string
	for _, u := range g.Units {
		list = append(list, fmt.Sprint(u.Session))
	}
	return "transactions of sessions " + strings.Join(list, ", ")
}

// begin makes the scenario, and executes the recorded order.
func (k *combination) begin(ctx context.Context) (why string, err error) {
	d := k.e.r.dialect()
	tables, thinned := k.g.State.Tables, k.g.State.Thinned
	defs := k.e.r.definitions(k.e.defined[:k.g.State.Defined])
	for {
		k.spec, k.recorded = k.g.Spec("replay.spec", k.e.r.instance.Engine.Lab, defs, tables, d)
		k.base, err = k.lab.Run(ctx, k.spec, k.recorded, func() {})
		var refused *answer.Error
		if errors.As(err, &refused) {
			return fmt.Sprintf("%s: its tables cannot be made anew: %v", sessionsOf(k.g), refused), nil
		}
		if err != nil {
			return "", err
		}
		if !thinned || k.same() {
			break
		}
		if k.g.State.Whole == nil {
			return fmt.Sprintf("%s: they depend on more than %d rows", sessionsOf(k.g), maxStateRows), nil
		}
		tables, thinned = k.g.State.Whole, false
	}
	if k.base.Trouble != nil {
		return fmt.Sprintf("%s: %v", sessionsOf(k.g), k.base.Trouble), nil
	}
	for _, u := range k.g.Units {
		k.lanes = append(k.lanes, replay.NewLane(u, d))
	}
	k.stage = lab.NewStage(k.lab, k.e.r.instance.Version, k.e.describe)
	again, err := k.lab.Run(ctx, k.spec, k.recorded, func() {})
	if err != nil {
		return "", err
	}
	x, err := k.stage.Schedule(k.spec, k.base)
	if err != nil {
		return "", err
	}
	y, err := k.stage.Schedule(k.spec, again)
	if err != nil {
		return "", err
	}
	k.masks = serial.NewMasks(k.g.State.Filled)
	k.masks.Blind(x)
	k.masks.Learn(x, y)
	for i, u := range k.g.Units {
		for j, without := range u.Superseded(d) {
			if without && !slices.ContainsFunc(k.lanes[i].Flows, func(f replay.Flow) bool { return f.From == j }) {
				k.masks.Skip(i, k.spec.Sessions[i].Steps[j].Name)
			}
		}
	}
	k.orders = replay.Serial(k.spec)
	return "", nil
}

// same reports whether the recorded order brought the same answers as the replay.
func (k *combination) same() bool {
	answers := k.answers(k.base)
	for i, u := range k.g.Units {
		for j, s := range u.Steps {
			a := answers[i][j]
			if a == nil || (a.Err == nil) != (s.Answer.Err == nil) || len(a.Results) != len(s.Answer.Results) {
				return false
			}
			for n := range a.Results {
				if a.Results[n].Affected != s.Answer.Results[n].Affected || !slices.EqualFunc(a.Results[n].Rows, s.Answer.Results[n].Rows, answer.SameRow) {
					return false
				}
			}
		}
	}
	return true
}

// answers gives what each step brought; nil for those that were not executed.
func (k *combination) answers(r *lab.Result) [][]*answer.Answer {
	out := make([][]*answer.Answer, len(k.spec.Sessions))
	for i, s := range k.spec.Sessions {
		out[i] = make([]*answer.Answer, len(s.Steps))
	}
	for i := range r.Events {
		ev := &r.Events[i]
		if ev.Kind == lab.Ran || ev.Kind == lab.Resumed {
			out[ev.Step.Session][ev.Step.Index] = &ev.Answer
		}
	}
	return out
}

// texts are the statements as the trace has them.
func (k *combination) texts() [][]string {
	out := make([][]string, len(k.spec.Sessions))
	for i, s := range k.spec.Sessions {
		for _, st := range s.Steps {
			out[i] = append(out[i], st.SQL)
		}
	}
	return out
}

// with makes the scenario with other statements, and a permutation of it.
func (k *combination) with(texts [][]string, p *scenario.Permutation) (*scenario.Spec, *scenario.Permutation) {
	spec := &scenario.Spec{Name: k.spec.Name, Setup: k.spec.Setup}
	for i, s := range k.spec.Sessions {
		c := &scenario.Session{Name: s.Name, Setup: s.Setup}
		for j, st := range s.Steps {
			c.Steps = append(c.Steps, &scenario.Step{Name: st.Name, SQL: texts[i][j], Session: i, Index: j})
		}
		spec.Sessions = append(spec.Sessions, c)
	}
	return spec, moved(spec, p)
}

// moved is the permutation with another scenario's steps.
func moved(spec *scenario.Spec, p *scenario.Permutation) *scenario.Permutation {
	q := &scenario.Permutation{}
	for _, ps := range p.Steps {
		q.Steps = append(q.Steps, scenario.PermutationStep{Step: spec.Sessions[ps.Step.Session].Steps[ps.Step.Index]})
	}
	return q
}

// others runs the group in other orders.
func (k *combination) others(ctx context.Context) error {
	choice := scenario.Choice{}
	switch k.e.r.o.Mode.Kind {
	case scenario.KindAll:
		choice.Independent = panel.Independence(k.spec, k.e.r.instance.Engine, k.level)
	default:
		choice.Intn = mathrand.New(mathrand.NewPCG(k.e.r.seed(), uint64(k.g.Start))).IntN
	}
	for p := range k.spec.Orders(k.e.r.o.Mode, choice) {
		if p.String() == k.recorded.String() || slices.ContainsFunc(k.orders, func(o *scenario.Permutation) bool { return o.String() == p.String() }) {
			continue
		}
		texts, result, mark, err := k.settle(ctx, p)
		if err != nil {
			return err
		}
		k.e.x.Interleavings++
		k.e.x.runs[k.shape()]++
		if result == nil || result.Trouble != nil {
			continue
		}
		if err := k.judgeMarked(ctx, p, texts, result, false, mark); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// settle runs an order until the statements are those that the application would have sent, as far as the data flow is known: what a step
// reads may change what a later one writes, and that what the next one reads.
func (k *combination) settle(ctx context.Context, p *scenario.Permutation) (texts [][]string, result *lab.Result, mark string, err error) {
	texts = k.texts()
	for range len(p.Steps) + 1 {
		spec, perm := k.with(texts, p)
		result, err = k.lab.Run(ctx, spec, perm, func() {})
		if err != nil {
			return nil, nil, "", err
		}
		answers := k.answers(result)
		var next [][]string
		mark = ""
		for i, lane := range k.lanes {
			list, m := lane.Recompute(answers[i], k.e.r.dialect())
			next = append(next, list)
			if mark == "" {
				mark = m
			}
		}
		if slices.EqualFunc(texts, next, func(a, b []string) bool { return slices.Equal(a, b) }) {
			return texts, result, mark, nil
		}
		texts = next
	}
	return texts, result, "the values that it writes do not settle", nil
}

func (k *combination) judge(ctx context.Context, p *scenario.Permutation, texts [][]string, result *lab.Result, captured bool) error {
	return k.judgeMarked(ctx, p, texts, result, captured, "")
}

// judgeMarked asks whether an execution was serializable, and the oracles. The isolation oracle, which takes long, only names what values show,
// and decides where they do not.
func (k *combination) judgeMarked(ctx context.Context, p *scenario.Permutation, texts [][]string, result *lab.Result, captured bool, mark string) error {
	if switches(p) == len(k.spec.Sessions)-1 && len(k.spec.Sessions) > 1 && (k.panel == nil || !k.panel.Executes()) {
		return nil // it is a serial order itself
	}
	spec, perm := k.with(texts, p)
	w := &WrongRun{Captured: captured, Level: k.level.History, Permutation: perm.String(), Mark: mark, switches: switches(p), steps: len(p.Steps)}
	j, err := k.values(ctx, spec, texts, result, true)
	if err != nil {
		return err
	}
	if len(j.Differences) == 0 && j.Unknown == "" && (k.panel == nil || !k.panel.Executes()) {
		return nil
	}
	if len(j.Differences) > 0 && k.masks.Doubts() {
		if j, err = k.values(ctx, spec, texts, result, false); err != nil {
			return err
		}
	}
	if len(j.Differences) > 0 {
		// Once more: what does not repeat is not reported.
		again, err := k.lab.Run(ctx, spec, perm, func() {})
		if err != nil {
			return err
		}
		if again.Trouble != nil {
			return nil
		}
		if j, err = k.values(ctx, spec, texts, again, false); err != nil {
			return err
		}
	}
	what := ""
	for _, d := range j.Differences {
		w.Why = append(w.Why, d.Text)
		what += fmt.Sprint(d.Order, d.Session, d.Step, d.Table, ";")
	}
	if known := k.named[what]; known != nil && what != "" && (k.panel == nil || !k.panel.Executes()) {
		w.Found, w.Tables, w.oracles = slices.Clone(known.Found), slices.Clone(known.Tables), known.oracles
	} else if err := k.name(ctx, spec, perm, w); err != nil {
		return err
	}
	k.named[what] = w
	if len(w.Found) == 0 {
		return nil
	}
	k.wrong = k.wrong || captured
	w.Already, w.shape = k.wrong, k.shape()
	if captured && (slices.Contains(w.oracles, panel.IsolationName) || k.told()) {
		return nil // the live oracle has told of it
	}
	return k.note(ctx, w, spec, perm)
}

// told reports whether the live oracle has told of transactions of all of the group's units together.
func (k *combination) told() bool {
	return slices.ContainsFunc(k.e.r.report.Findings, func(f oracle.Finding) bool {
		return !slices.ContainsFunc(k.g.Units, func(u *replay.Unit) bool {
			return !slices.ContainsFunc(f.Transactions, func(t oracle.Transaction) bool {
				return t.Session == u.Session && !slices.ContainsFunc(t.Statements, func(st oracle.Statement) bool {
					return !slices.ContainsFunc(u.Steps, func(s *replay.Step) bool { return s.Is(st.SQL) })
				})
			})
		})
	})
}

// values asks whether an execution's answers and tables are those of a serial one.
func (k *combination) values(ctx context.Context, spec *scenario.Spec, texts [][]string, result *lab.Result, strict bool) (serial.Judgement, error) {
	s, err := k.stage.Schedule(spec, result)
	if err != nil {
		return serial.Judgement{}, err
	}
	return k.masks.Judge(s, strict, func(order []int) (*schedule.Schedule, error) {
		key := fmt.Sprint(order, texts)
		if r := k.serial[key]; r != nil {
			return r, nil
		}
		p := &scenario.Permutation{}
		for _, i := range order {
			for _, st := range spec.Sessions[i].Steps {
				p.Steps = append(p.Steps, scenario.PermutationStep{Step: st})
			}
		}
		r, err := k.lab.Run(ctx, spec, p, func() {})
		if err != nil {
			return nil, err
		}
		k.serial[key], err = k.stage.Schedule(spec, r)
		return k.serial[key], err
	})
}

// name asks the oracles what an execution shows.
func (k *combination) name(ctx context.Context, spec *scenario.Spec, perm *scenario.Permutation, w *WrongRun) error {
	var findings []oracle.Finding
	if k.panel != nil {
		d, err := k.panel.Run(ctx, spec, perm)
		if err != nil {
			return err
		}
		findings = append(findings, d.Isolation.Findings...)
		for _, v := range d.Rulings {
			for _, f := range v.Findings {
				if f.Kind != oracle.KindPermitted {
					findings = append(findings, f)
				}
			}
		}
	}
	for i := range findings {
		f := &findings[i]
		if name := f.Title(); !slices.Contains(w.Found, name) {
			w.Found = append(w.Found, name)
		}
		if !slices.Contains(w.oracles, f.Oracle) {
			w.oracles = append(w.oracles, f.Oracle)
		}
		for _, t := range f.Tables {
			if name := t[strings.IndexByte(t, '.')+1:]; !slices.Contains(w.Tables, name) {
				w.Tables = append(w.Tables, name)
			}
		}
	}
	if len(w.Found) == 0 && w.Why != nil {
		w.oracles = []string{serial.Descriptor.Name}
		w.Found = []string{oracle.NameSerial}
		if k.g.Phantom() {
			w.Found[0] += " (phantom)"
		}
	}
	slices.Sort(w.Found)
	slices.Sort(w.Tables)
	return nil
}

func switches(p *scenario.Permutation) (n int) {
	for i := 1; i < len(p.Steps); i++ {
		if p.Steps[i].Step.Session != p.Steps[i-1].Step.Session {
			n++
		}
	}
	return n
}

// note keeps what was found, if it is the shortest of its kind and the scenario that shows it does.
func (k *combination) note(ctx context.Context, w *WrongRun, spec *scenario.Spec, p *scenario.Permutation) error {
	x := k.e.x
	if !w.Captured {
		if w.Mark != "" {
			x.Marked++
		} else {
			x.Wrong++
		}
	}
	for _, u := range k.g.Units {
		w.Sessions = append(w.Sessions, u.Session)
		for _, t := range u.Tags() {
			if !slices.Contains(w.Tags, t) {
				w.Tags = append(w.Tags, t)
			}
		}
		if u.Request != "" && k.e.r.o.Requests && !slices.Contains(w.Units, u.Request) {
			w.Units = append(w.Units, u.Request)
		}
	}
	w.OneSession = k.g.OneSession()
	for i, l := range k.lanes {
		for _, f := range l.Flows {
			before, after := spec.Sessions[i].Steps[f.To].SQL, k.spec.Sessions[i].Steps[f.To].SQL
			if before != after {
				w.Flows = append(w.Flows, fmt.Sprintf("session %s: %v (the trace has %s)", spec.Sessions[i].Name, f, prose.Line(after, 100)))
			}
		}
	}
	key := fmt.Sprint(w.Captured, w.Mark != "", w.Found, w.Tables, k.shape())
	old := x.seen[key]
	if old != nil {
		w.Wrong = old.Wrong
	}
	w.Wrong++
	if old != nil && (old.steps < w.steps || old.steps == w.steps && old.switches <= w.switches) {
		old.Wrong = w.Wrong
		return nil
	}
	if why, err := k.print(ctx, w, spec, p); err != nil {
		return err
	} else if why != "" {
		x.unconfirmed(fmt.Sprintf("%s of sessions %s, in the order %s: %s", strings.Join(w.Found, ", "), sessionList(w.Sessions), w.Permutation, why))
		return nil
	}
	if old != nil {
		*old = *w
		return nil
	}
	x.seen[key] = w
	switch {
	case w.Mark != "":
		x.Possible = append(x.Possible, w)
	default:
		x.Anomalies = append(x.Anomalies, w)
	}
	return nil
}

// unconfirmed notes something that was found, and that its scenario did not show again.
func (x *Explored) unconfirmed(text string) {
	if x.NotShown++; len(x.Unconfirmed) < firstShown {
		x.Unconfirmed = append(x.Unconfirmed, text)
	}
}

// shape is what the group's units do, whatever the values are.
func (k *combination) shape() string { return k.g.Shape() }

// printable writes a scenario so that a file can hold it.
func (k *combination) printable(from *scenario.Spec, p *scenario.Permutation) (*scenario.Spec, *scenario.Permutation) {
	write := func(sql string) string { return replay.Braceless(sql, k.e.r.dialect()) }
	block := func(b *scenario.Block) *scenario.Block {
		if b == nil {
			return nil
		}
		return &scenario.Block{SQL: write(b.SQL)}
	}
	spec := &scenario.Spec{Name: from.Name}
	for i := range from.Setup {
		spec.Setup = append(spec.Setup, *block(&from.Setup[i]))
	}
	for i, s := range from.Sessions {
		c := &scenario.Session{Name: s.Name, Setup: block(s.Setup)}
		for j, st := range s.Steps {
			c.Steps = append(c.Steps, &scenario.Step{Name: st.Name, SQL: write(st.SQL), Session: i, Index: j})
		}
		spec.Sessions = append(spec.Sessions, c)
	}
	return spec, moved(spec, p)
}

// print makes the scenario file, and executes it as wirecheck run does: why says why it does not show what was found.
func (k *combination) print(ctx context.Context, w *WrongRun, spec *scenario.Spec, p *scenario.Permutation) (why string, err error) {
	spec, p = k.printable(spec, p)
	out := spec.Reproducer(p, scenario.Target{Engine: k.e.r.instance.Engine.Name, Level: k.level.History}, w.oracles, 0)
	out.Header = []string{fmt.Sprintf("%s: %s of sessions %v of %s", strings.Join(w.Found, ", "), k.e.r.o.unit(), w.Sessions, filepath.Base(k.e.r.path))}
	for _, line := range w.Why {
		out.Header = append(out.Header, prose.Line(line, 0))
	}
	text, err := out.Print()
	if err != nil {
		w.Unprintable = err.Error()
		return "", nil
	}
	w.Spec = text
	read, err := scenario.Parse(spec.Name, []byte(text))
	if err != nil {
		return "", fmt.Errorf("read again the scenario that shows what was found: %w", err)
	}
	b, err := k.e.judges(ctx, k.level, w.oracles)
	if err != nil {
		return "", err
	}
	d, err := b.Run(ctx, read, read.Permutations[0])
	if err != nil {
		return "", err
	}
	shown := len(d.Isolation.Findings)
	for _, v := range d.Rulings {
		for _, f := range v.Findings {
			if f.Kind != oracle.KindPermitted {
				shown++
			}
		}
	}
	if shown == 0 {
		return "executed by itself it shows nothing", nil
	}
	return "", nil
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

package panel

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/crash"
	"wirecheck/oracle/dqe"
	"wirecheck/oracle/norec"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/serial"
	"wirecheck/oracle/tlp"
	"wirecheck/oracle/troc"
	"wirecheck/oracle/txcheck"
	"wirecheck/oracle/wss"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
	"wirecheck/statement/sqlite"
)

// Judge is an oracle that looks at one execution. Most of them execute something themselves.
type Judge struct {
	oracle.Oracle
	// classes are its names in scenario files: found(wss-tx), expect: wss-tx.
	classes []oracle.Class
	// own says that it needs a database of its own. Other oracles use the one in which the panel executed the case. both says that it uses that one, too.
	own, both bool
	// locks says that its rules are about statements that wait for locks. It has no rules for products whose statements never wait.
	locks bool
	// named says that it judges only if the user asks for it by name: "all" leaves it out.
	named bool
	// Single says that it judges single queries: a hunt hands it long lists of queries, a replay one query of each kind.
	Single bool
	// check judges. The panel has what it needs besides, such as one more stage.
	check func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, b *Panel) (schedule.Verdict, error)
}

// judges are all of them, in the order in which a panel asks them.
var judges = []Judge{
	{
		Oracle: wss.Oracle(), classes: []oracle.Class{oracle.WSSTx, oracle.WSSStmt},
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, _ *Panel) (schedule.Verdict, error) {
			return wss.Check(ctx, s, stage, wss.Options{})
		},
	},
	{
		Oracle: troc.Descriptor, classes: []oracle.Class{oracle.Troc}, own: true, locks: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, _ *Panel) (schedule.Verdict, error) {
			return troc.Check(ctx, s, stage, troc.Options{})
		},
	},
	{
		Oracle: troc.Overblocking, classes: []oracle.Class{oracle.Overblocking}, own: true, locks: true, named: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, _ *Panel) (schedule.Verdict, error) {
			return troc.Check(ctx, s, stage, troc.Options{Overblocking: true})
		},
	},
	{
		Oracle: txcheck.Descriptor, classes: []oracle.Class{oracle.TxCheck}, own: true, both: true, locks: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, b *Panel) (schedule.Verdict, error) {
			return txcheck.Check(ctx, s, stage, txcheck.Options{Intn: mathrand.New(mathrand.NewPCG(b.seed, 1)).IntN, Orders: b.orders, Plain: b.primary, Keys: b.keys})
		},
	},
	{
		Oracle: radar.Descriptor, classes: []oracle.Class{oracle.Radar}, Single: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, b *Panel) (schedule.Verdict, error) {
			raw, err := b.stage(ctx, "radar's raw database")
			if err != nil {
				return schedule.Verdict{}, err
			}
			return radar.Check(ctx, s, stage, radar.Options{Describe: b.describe, Define: b.define, Raw: raw, Executed: true})
		},
	},
	{
		Oracle: tlp.Descriptor, classes: []oracle.Class{oracle.TLP}, Single: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, _ *Panel) (schedule.Verdict, error) {
			return tlp.Check(ctx, s, stage)
		},
	},
	{
		Oracle: norec.Descriptor, classes: []oracle.Class{oracle.NoREC}, own: true, Single: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, _ *Panel) (schedule.Verdict, error) {
			return norec.Check(ctx, s, stage)
		},
	},
	{
		Oracle: dqe.Descriptor, classes: []oracle.Class{oracle.DQE}, own: true, Single: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, b *Panel) (schedule.Verdict, error) {
			return dqe.Check(ctx, s, stage, dqe.Options{Describe: b.describe, Define: b.define})
		},
	},
	{
		Oracle: serial.Descriptor, classes: []oracle.Class{oracle.Serial}, own: true, both: true, named: true,
		check: func(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, b *Panel) (schedule.Verdict, error) {
			o := serial.Options{Recent: Recent}
			err := b.aside(ctx, func(conn engine.Conn) (err error) {
				o.Counters, err = b.config.Backend.Lab.NumberedColumns(ctx, conn)
				return err
			})
			if err == nil {
				o.Keys, err = b.keys(ctx)
			}
			if err != nil {
				return schedule.Verdict{}, err
			}
			if o.Counters == nil {
				return schedule.Verdict{Unknown: "serial does not know " + s.Product}, nil
			}
			return serial.Check(ctx, s, stage, o)
		},
	},
	{
		Oracle: crash.Descriptor, classes: []oracle.Class{oracle.Crash}, Single: true,
		check: func(_ context.Context, s *schedule.Schedule, _ *lab.Stage, _ *Panel) (schedule.Verdict, error) {
			return crash.Check(s), nil
		},
	},
}

// IsolationName names the oracle that finds cycles. It watches the execution and executes nothing itself.
const IsolationName = "isolation"

// executionName stands for the execution of a case itself where times stand by oracle.
const executionName = "execution"

// Selection says which oracles judge.
type Selection struct {
	Isolation bool
	Named     bool // the user asked for the isolation oracle by its name
	all       bool // the user asked for all
	Judges    []Judge
}

// OracleNames lists all oracles.
func OracleNames() string {
	names := []string{IsolationName}
	for _, j := range judges {
		names = append(names, j.Name)
	}
	return strings.Join(names, ", ")
}

// Select reads a list of oracles: "wss,troc", "all", "none".
func Select(list string) (Selection, error) {
	var p Selection
	names := strings.Split(list, ",")
	for _, name := range names {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(judges, func(j Judge) bool { return j.Name == name })
		switch {
		case name == "none" && len(names) == 1:
		case name == "all":
			p = Selection{Isolation: true, Judges: slices.DeleteFunc(slices.Clone(judges), func(j Judge) bool { return j.named }), all: true}
		case name == IsolationName:
			p.Isolation, p.Named = true, true
		case i < 0:
			return p, fmt.Errorf("unknown oracle %q: known are %s, all, none", name, OracleNames())
		case !slices.ContainsFunc(p.Judges, func(j Judge) bool { return j.Name == name }):
			p.Judges = append(p.Judges, judges[i])
		}
	}
	return p, nil
}

// fit takes away the oracles that cannot judge on the product, and says so. It is an error if the user asked for the isolation oracle by
// its name; the others answer for themselves then.
func (p Selection) fit(d engine.Descriptor) (_ Selection, note string, err error) {
	var notes []string
	if p.Isolation && d.Embedded {
		why := fmt.Sprintf("the isolation oracle watches through a proxy, and %s is a library in this process with no protocol to stand in between", d.Title)
		if p.Named {
			return p, "", fmt.Errorf("%s: name other oracles (--oracle wss,radar,...)", why)
		}
		p.Isolation = false
		notes = append(notes, why+": it is left out")
	}
	if p.all && d.NeverWaits {
		p.Judges = slices.DeleteFunc(slices.Clone(p.Judges), func(j Judge) bool {
			if j.locks {
				notes = append(notes, fmt.Sprintf("oracle %s has rules for locks that are waited for, and %s refuses at once: it is left out", j.Name, d.Title))
			}
			return j.locks
		})
	}
	return p, strings.Join(notes, "; "), nil
}

// Names lists the oracles, for people and results.
func (p Selection) Names() string {
	var names []string
	if p.Isolation {
		names = append(names, IsolationName)
	}
	for _, j := range p.Judges {
		names = append(names, j.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// Describer gives the dialect's way to take a text apart.
func Describer(d engine.Descriptor) lab.Describe {
	switch {
	case d.Protocol == engine.ProtocolPostgres:
		return lab.Remember(postgres.Describe)
	case d.Embedded:
		return lab.Remember(sqlite.Describe)
	}
	return lab.Remember(mysql.New(mysql.Flavor(d.Name)).Describe)
}

// Definer gives the dialect's way to read what a statement defines.
func Definer(d engine.Descriptor) func(sql string) statement.Definition {
	switch {
	case d.Protocol == engine.ProtocolPostgres:
		return postgres.Define
	case d.Embedded:
		return sqlite.Define
	}
	return mysql.Define
}

// Ruling is what one judge said of a case.
type Ruling struct {
	Oracle  string   `json:"oracle"`
	Unknown string   `json:"unknown,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	Compared int              `json:"-"`
	Findings []oracle.Finding `json:"-"`
	classes  []oracle.Class
}

// Attempts is how often a panel executes a case with a finding again before it reports the finding.
const Attempts = 3

// rule asks all judges about an execution, and executes the case again where one of them found something.
func (b *Panel) rule(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, r *lab.Result) ([]Ruling, error) {
	if len(b.selection.Judges) == 0 {
		return nil, nil
	}
	s, err := b.primary.Schedule(spec, r)
	if err != nil {
		return nil, err
	}
	verdicts, err := b.askAll(ctx, spec, s)
	if err != nil {
		return nil, err
	}
	var out []Ruling
	for i, j := range b.selection.Judges {
		v := verdicts[i]
		if b.worth(v.Findings) && !s.Crashed && !s.Hung {
			if err := b.confirm(ctx, spec, p, j, &v); err != nil {
				return nil, err
			}
		}
		out = append(out, Ruling{Oracle: j.Name, Unknown: v.Unknown, Notes: v.Notes, Compared: v.Compared, Findings: v.Findings, classes: j.classes})
	}
	return out, nil
}

// askAll lets each judge judge. Those that use one database go one after the other; with Abreast the others go beside them.
func (b *Panel) askAll(ctx context.Context, spec *scenario.Spec, s *schedule.Schedule) ([]schedule.Verdict, error) {
	verdicts, errs := make([]schedule.Verdict, len(b.selection.Judges)), make([]error, len(b.selection.Judges))
	var shared []int
	var apart sync.WaitGroup
	one := func(i int) { verdicts[i], errs[i] = b.ask(ctx, spec, b.selection.Judges[i], s) }
	for i, j := range b.selection.Judges {
		if b.Abreast && j.own && !j.both {
			apart.Go(func() { one(i) })
		} else {
			shared = append(shared, i)
		}
	}
	for _, i := range shared {
		if one(i); errs[i] != nil {
			break
		}
	}
	apart.Wait()
	return verdicts, errors.Join(errs...)
}

// worth reports whether findings are to be confirmed.
func (b *Panel) worth(findings []oracle.Finding) bool {
	return b.Attempts > 0 && slices.ContainsFunc(findings, func(f oracle.Finding) bool { return !b.Sparing || f.Kind != oracle.KindPermitted })
}

// ask lets one judge judge. Where nobody heard whether a transaction was committed, what is wrong must be wrong whether it was or not.
func (b *Panel) ask(ctx context.Context, spec *scenario.Spec, j Judge, s *schedule.Schedule) (schedule.Verdict, error) {
	courses, err := b.courses(s)
	var first schedule.Verdict
	for i, s := range courses {
		v, err := b.askOf(ctx, spec, j, s)
		if err != nil || !slices.ContainsFunc(v.Findings, func(f oracle.Finding) bool { return f.Kind != oracle.KindPermitted }) {
			return v, err
		}
		if i == 0 {
			first = v
		}
	}
	return first, err
}

// courses are the schedules that an execution may have been: a COMMIT that is in doubt was done, or the transaction was rolled back.
func (b *Panel) courses(s *schedule.Schedule) ([]*schedule.Schedule, error) {
	list := []*schedule.Schedule{s}
	for i := range s.Steps {
		if !lab.InDoubt(s.Steps[i].Statement.Text) {
			continue
		}
		var both []*schedule.Schedule
		for _, sql := range []string{"COMMIT", "ROLLBACK"} {
			statements, err := b.describe(sql)
			if err != nil {
				return nil, err
			}
			for _, s := range list {
				course := *s
				course.Steps = slices.Clone(s.Steps)
				course.Steps[i].Statement, course.Steps[i].Effect = statements[0], answer.EffectNone
				both = append(both, &course)
			}
		}
		list = both
	}
	return list, nil
}

// askOf asks about one course. The judge has the same random numbers for the same schedule whatever was asked before.
func (b *Panel) askOf(ctx context.Context, spec *scenario.Spec, j Judge, s *schedule.Schedule) (schedule.Verdict, error) {
	if why := s.Incomplete(); why != "" && j.Name != crash.Descriptor.Name { // a server that hangs must not be asked
		return schedule.Verdict{Unknown: why}, nil
	}
	stage := b.primary
	if j.own {
		var err error
		if stage, err = b.stage(ctx, j.Name); err != nil {
			return schedule.Verdict{}, err
		}
	}
	defer b.spend(j.Name, time.Now())
	stage.Plain(spec)
	stage.TakeLost() // what is left of another case
	v, err := j.guarded(ctx, s, stage, b)
	if lost := stage.TakeLost(); lost != nil {
		v, err = endured(ctx, j, s, stage, lost, v, err)
	}
	if err != nil {
		return v, fmt.Errorf("oracle %s: %w", j.Name, err)
	}
	return v, nil
}

// guarded judges. No schedule ends the process: an oracle that fails by an error of its own could not judge, and the error says where it failed.
func (j Judge) guarded(ctx context.Context, s *schedule.Schedule, stage *lab.Stage, b *Panel) (v schedule.Verdict, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = schedule.Verdict{}, fmt.Errorf("an error of wirecheck's own, please report it: %v\n%s", r, debug.Stack())
		}
	}()
	return j.check(ctx, s, stage, b)
}

// endured is the verdict of an oracle that lost a session by one of its own statements. If the server lives on, it is a finding that a
// connection ended by a statement that no session asked to end.
func endured(ctx context.Context, j Judge, s *schedule.Schedule, stage interface{ Alive(context.Context) bool }, lost *lab.Lost, v schedule.Verdict, err error) (schedule.Verdict, error) {
	var same *lab.Lost
	if err != nil && !errors.As(err, &same) || slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Effect == answer.EffectGone }) {
		return v, err
	}
	if lost.Ended {
		if err != nil {
			v.Unknown = lost.Error()
		}
		return v, nil
	}
	if !stage.Alive(ctx) {
		return v, lost
	}
	session := s.Sessions[min(lost.Session, len(s.Sessions)-1)].Name
	f := oracle.Finding{Oracle: j.Name, Kind: oracle.KindViolation, Class: j.classes[0], Name: oracle.NameCrash, Level: s.Level, Promised: true, Seen: 1, Difference: &oracle.Difference{
		Rule: crash.Rule, Session: session, SQL: lost.SQL, Reference: []string{session + ": " + lost.SQL},
		Expected: oracle.Side{Text: "an answer"}, Observed: oracle.Side{Text: lost.Text},
	}}
	f.ID = f.Fingerprint()
	v.Findings = append(v.Findings, f)
	return v, nil
}

// confirm executes the case again, from a thorough reset, and counts how often the findings are there again. Where that is not each time, the
// setup is executed afresh for each of as many executions, and these count: a reset may miss what the setup does.
func (b *Panel) confirm(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, j Judge, v *schedule.Verdict) error {
	b.lab.Thorough(true)
	defer b.lab.Thorough(false)
	alive, err := b.repeat(ctx, spec, p, j, v.Findings, func() {})
	if err != nil || !alive {
		return err
	}
	var doubtful []oracle.Finding
	for _, f := range v.Findings {
		if f.Difference.Flaky {
			f.Difference.Attempts, f.Difference.Reproduced = 0, 0
			doubtful = append(doubtful, f)
		}
	}
	if len(doubtful) > 0 {
		_, err = b.repeat(ctx, spec, p, j, doubtful, b.Forget)
	}
	return err
}

// Forget has the next cases set up afresh.
func (b *Panel) Forget() {
	b.lab.Forget()
	for _, l := range b.extra {
		l.Forget()
	}
}

// repeat executes a case again as often as Attempts says, and counts in the findings how often they are there. It ends early if the server does.
func (b *Panel) repeat(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, j Judge, findings []oracle.Finding, before func()) (alive bool, err error) {
	for range b.Attempts {
		before()
		r, err := b.Again(ctx, spec, p)
		if err != nil {
			return false, err
		}
		s, err := b.primary.Schedule(spec, r)
		if err != nil {
			return false, err
		}
		again := schedule.Verdict{}
		if r.Trouble == nil {
			if again, err = b.ask(ctx, spec, j, s); err != nil {
				return false, err
			}
		}
		for i := range findings {
			d := findings[i].Difference
			d.Attempts++
			if slices.ContainsFunc(again.Findings, func(f oracle.Finding) bool { return f.ID == findings[i].ID }) {
				d.Reproduced++
			}
			d.Flaky = d.Reproduced < d.Attempts
		}
		if r.Crashed || r.Hung {
			return false, nil // the others are not reproduced either
		}
	}
	return true, nil
}

// stage opens a database of an oracle's own when it is first asked for.
func (b *Panel) stage(ctx context.Context, name string) (*lab.Stage, error) {
	if s := b.opened(name); s != nil {
		return s, nil
	}
	target, err := b.labs.Create(ctx)
	if err != nil {
		return nil, err
	}
	config := b.config
	target.Host, target.Socket = config.Target.Host, config.Target.Socket
	config.Target, config.Side, config.Hidden, config.After, config.Application = target, target, nil, "", ""
	l, err := lab.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	s := lab.NewStage(l, b.version, b.describe)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.extra = append(b.extra, l)
	b.stages[name] = s
	return s, nil
}

// opened gives the stage of an oracle's own, or nil.
func (b *Panel) opened(name string) *lab.Stage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stages[name]
}

// FindLevel finds a level of the product by one of its names.
func FindLevel(d engine.Descriptor, name string) (product.Level, error) {
	want, err := product.ParseLevel(name)
	if err != nil {
		return product.Level{}, err
	}
	var known []string
	for _, l := range d.Levels {
		if l.History == want {
			return l, nil
		}
		known = append(known, l.History)
	}
	return product.Level{}, fmt.Errorf("%s has no level %q: it has %s", d.Title, name, strings.Join(known, ", "))
}

// Levels gives the levels at which to execute a scenario on a product: the named ones ("all" names every one), else those that the
// scenario names and the product has, else the product's default.
func Levels(d engine.Descriptor, named []string, spec *scenario.Spec) ([]product.Level, error) {
	if slices.Equal(named, []string{"all"}) {
		return d.Levels, nil
	}
	names := named
	if len(names) == 0 {
		names = spec.Levels()
	}
	var levels []product.Level
	for _, name := range names {
		l, err := FindLevel(d, name)
		if err != nil && len(named) == 0 {
			continue // the scenario names levels of several products
		}
		if err != nil {
			return nil, err
		}
		levels = append(levels, l)
	}
	if len(names) > 0 {
		return levels, nil
	}
	l, err := FindLevel(d, d.Default)
	return []product.Level{l}, err
}

// AsksQueries reports whether an oracle judges single queries.
func AsksQueries(name string) bool {
	return slices.ContainsFunc(judges, func(j Judge) bool { return j.Single && j.Name == name && name != crash.Descriptor.Name })
}

// recentDays is how far a day lies from today that no clock shows while cases run, whatever its time zone.
const recentDays = 3

// Recent reports whether a clock may show a day (2026-11-23) while cases run. What is no day may be one in another form.
func Recent(day string) bool {
	at, err := time.Parse(time.DateOnly, day)
	return err != nil || time.Until(at).Abs() < recentDays*24*time.Hour
}

// Package explore executes a trace again, once in its own order and then transactions of it in other orders, each from the state in which
// the trace had them. Its Report says what came back differently, and which orders go wrong, each with the shortest scenario that shows it.
package explore

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/fleet/work"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/live"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/statement/pgsyntax"
	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Options says what of a trace to execute again, where, in which orders, and who judges.
type Options struct {
	Engine   string // a name or a URL; empty: the product that the trace is of
	Product  string // that the trace is of; empty: its sessions name it
	Snapshot string // a dump of the database as it was before the first statement; empty: an empty database
	// Template is a database of the server, which is copied in place of a dump. InPlace is one in which the trace is replayed itself; Reset brings its
	// rows back before each replay, nil: nobody does.
	Template, InPlace string
	Reset             func(ctx context.Context) error
	// InferSchema executes the trace's own definitions first.
	InferSchema bool
	Oracles     string // who judges, as panel.Select reads it
	Judging     panel.Options

	Order    replay.Order
	Speed    float64                          // of the trace's clock; 0: no clock
	Only     []string                         // only these sessions: session=N, user=PATTERN, application=PATTERN
	Until    func(first int64) (int64, error) // leaves out what began then or later, by the trace's beginning; nil: nothing
	Database string                           // the trace's; empty: the one with the most statements
	Session  []string                         // statements with which each session begins
	Limit    time.Duration                    // of one statement, or one interleaving

	Mode     scenario.Mode // the other orders; empty: none
	Window   int           // how many transactions next to each other are combined
	Groups   int           // combinations of transactions at most
	Requests bool          // units are requests, not transactions
	Auto     bool          // units are requests if the trace tells them apart
	UnitGap  time.Duration // transactions without tags that follow each other within this time are one request

	// Invariants are looked at before and behind the replay, and before and behind each interleaving.
	Invariants []lab.Invariant

	MinCoverage float64 // share of the statements that must be seen exactly

	Out     string // folder for scenarios that show what was found; empty: none
	Tables  string // file for the tables as the replay left them; empty: none
	Compare string // a dump of the database after the last statement; empty: none

	Fleet *work.Fleet // with which an advice shares its trials; nil: none. All processes of it have the same options
	// Instance is the server, which stays open; nil: Engine names it. Level is the level of all transactions, as product.Level.History, whatever the trace
	// says; empty: those of the trace. Settings hold in all sessions. Trail notes the replay; nil: nobody compares it.
	Instance  *backends.Instance
	Level     string
	Settings  []Setting
	Trail     *replay.Trail
	units     *replay.Collector // that are run in other orders in place of those that this replay brought; nil: none, and generated is theirs
	generated *replay.Generated

	Choose   func() uint64                                       // gives a seed where judging has none
	Progress func(done, total int64, format string, args ...any) // shows how far the replay has come
	// Replayed is called when the trace was replayed, before anything runs in other orders; Found for each kind of anomaly when it is found.
	Replayed func(*Report) error
	Found    func(*WrongRun)
}

// unit names what must be serializable.
func (o *Options) unit() string {
	if o.Requests {
		return "request"
	}
	return "transaction"
}

// replayer is one run of wirecheck replay.
type replayer struct {
	o        Options
	path     string
	survey   *replay.Survey
	instance *backends.Instance
	proxy    *live.Proxy
	labs     *engine.Labs
	target   engine.Target // the database, not through the proxy
	main     string        // the trace's database
	left     map[string]int
	defs     replay.Definitions // the snapshot's
	filter   sessionFilter
	report   Report
	// victims says that the server lets us choose who is the victim of a deadlock.
	victims   bool
	generated *replay.Generated // what the statements of the units have of the replay's values
	made      map[string]bool   // definitions of the trace that were executed before it
	units     *replay.Collector // that this replay brought, and their values
	own       *replay.Generated
	readings  []lab.Reading // of the invariants
	from      origin
	// wanted is the finding for which a scenario is made; nil: all that is found.
	wanted *oracle.Finding
	// advising gets the advice; nil: nobody asks for any.
	advising *Advice
}

// ErrEmpty says that a trace holds no statement.
var ErrEmpty = errors.New("holds no statement")

// Run executes a trace again, and transactions of it in other orders.
func Run(ctx context.Context, path string, o Options) (*Report, error) {
	r := &replayer{o: o, path: path}
	if err := r.execute(ctx); err != nil {
		return nil, err
	}
	return &r.report, nil
}

// execute looks at the trace, starts what is needed, replays, and stops it again.
func (r *replayer) execute(ctx context.Context) (err error) {
	o := r.o
	name, err := r.look()
	if err != nil {
		return err
	}
	if r.instance = o.Instance; r.instance == nil {
		if r.instance, err = backends.Open(ctx, name); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.instance.Close()) }()
	}
	if err := r.sameDialect(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil && (ctx.Err() == nil || r.report.Replay == nil) {
		return err
	}
	why := r.undecided(ctx)
	r.report.told = r.report.told && why == r.report.Undecided
	r.report.Undecided, r.report.Seed = why, r.o.Judging.Seed
	return r.keepText()
}

func (r *replayer) open() (*trace.Reader, error) { return trace.Open(r.path, trace.ReadOptions{}) }

func (r *replayer) sameDialect() error {
	if len(r.survey.Products) == 0 {
		return nil
	}
	if r.instance.Engine.Embedded {
		return fmt.Errorf("the trace is of %s, and cannot be replayed on %s: traces are of servers", r.survey.Products[0], r.instance.Engine.Title)
	}
	if mysql := lex.Of(product.Of(r.survey.Products[0]).Dialect) == lex.MySQL; mysql != (r.instance.Engine.Protocol == engine.ProtocolMySQL) {
		return fmt.Errorf("the trace is of %s, and cannot be replayed on %s", r.survey.Products[0], r.instance.Engine.Title)
	}
	return nil
}

func (r *replayer) private() bool { return r.instance.Server != nil }

func (r *replayer) postgres() bool { return r.instance.Engine.Protocol == engine.ProtocolPostgres }

// prepare makes the database as it was before the first statement.
func (r *replayer) prepare(ctx context.Context) (err error) {
	if err := r.from.home(ctx, r); err != nil {
		return err
	}
	if r.labs, err = engine.OpenLabs(ctx, r.instance.Engine, r.instance.Target); err != nil {
		return err
	}
	r.main = r.o.Database
	if r.main == "" {
		r.main = r.survey.MainDatabase(r.maintenance)
	}
	if err := r.makeDatabase(ctx); err != nil {
		return err
	}
	if err := r.accounts(ctx); err != nil {
		return err
	}
	p, err := panel.Select(r.o.Oracles)
	if err != nil {
		return err
	}
	if p.Isolation && r.wanted == nil && r.advising == nil {
		if r.proxy, err = live.Open(ctx, r.o.Judging.Log, r.instance.Engine, r.instance.Target, nil); err != nil {
			return err
		}
	}
	if err := r.restore(ctx); err != nil {
		return err
	}
	if r.proxy != nil {
		r.proxy.Checker.Prepared(true)
	}
	return nil
}

// makeDatabase makes an empty one, or one as the options say.
func (r *replayer) makeDatabase(ctx context.Context) (err error) {
	switch {
	case r.o.InPlace != "":
		return r.from.inPlace(ctx, r)
	case r.o.Template != "":
		r.target, err = r.labs.Copy(ctx, r.o.Template)
	case r.private() && r.main != "" && !r.maintenance(r.main):
		r.target, err = r.labs.Make(ctx, r.main) // statements may name it
	default:
		r.target, err = r.labs.Create(ctx)
	}
	if err != nil || !r.postgres() {
		return err
	}
	conn, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	// Labs' servers look for deadlocks at once, which makes the last waiter the victim; here it is to be the trace's.
	a, err := conn.Do(ctx, "ALTER DATABASE "+pgsyntax.Quote(r.target.Database)+" SET deadlock_timeout = '1s'")
	r.victims = err == nil && a.Err == nil
	return errors.Join(err, conn.Close())
}

// seed chooses a seed where there is none.
func (r *replayer) seed() uint64 {
	if r.o.Judging.Seed == 0 {
		r.o.Judging.Seed = r.o.Choose()
	}
	return r.o.Judging.Seed
}

// maintenance reports whether a database of the trace is one of the product's own.
func (r *replayer) maintenance(name string) bool {
	return name == "" || name == r.instance.Engine.Lab.Maintenance || r.postgres() && (name == "template0" || name == "template1") || r.instance.Engine.System(name)
}

// accounts makes the trace's users on a private server, since statements and the snapshot may name them.
func (r *replayer) accounts(ctx context.Context) error {
	if !r.private() || !r.postgres() {
		return nil
	}
	conn, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	for _, user := range r.survey.Users {
		if user == r.target.User {
			continue
		}
		there, err := engine.Query(ctx, conn, "SELECT 1 FROM pg_roles WHERE rolname = '"+strings.ReplaceAll(user, "'", "''")+"'")
		if err == nil && len(there) == 0 { // another replay on this server may have made it
			err = engine.Exec(ctx, conn, "CREATE ROLE "+pgsyntax.Quote(user)+" LOGIN SUPERUSER")
		}
		if err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}

func (r *replayer) describe() lab.Describe { return panel.Describer(r.instance.Engine) }

// restore brings back what the database was before the first statement, as far as that is known.
func (r *replayer) restore(ctx context.Context) error {
	r.defs, r.report.SnapshotSkipped = replay.Definitions{}, nil
	if r.o.Snapshot != "" {
		if err := r.restoring(ctx, func(s *replay.Snapshot) error { return s.Restore(ctx, r.o.Snapshot) }); err != nil {
			return err
		}
	}
	if r.o.Template != "" || r.o.InPlace != "" {
		if err := r.from.learn(ctx, r); err != nil {
			return err
		}
	}
	if r.o.InPlace != "" && r.proxy != nil {
		if err := r.from.watch(ctx, r); err != nil {
			return err
		}
	}
	if r.o.InferSchema {
		return r.inferSchema(ctx)
	}
	return nil
}

// restoring makes definitions and rows. In the MySQL family this goes through the proxy, which gives new tables their hidden columns.
func (r *replayer) restoring(ctx context.Context, restore func(*replay.Snapshot) error) (err error) {
	target := r.target
	if !r.postgres() && r.proxy != nil {
		target = r.proxy.Through(target)
	}
	conn, err := r.instance.Engine.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	s := replay.Snapshot{Conn: conn, Dialect: r.dialect(), Confined: !r.private(), Archive: r.instance.Engine.Lab.Archive, Database: r.main, Skipped: r.report.SnapshotSkipped, Definitions: r.defs}
	if err := restore(&s); err != nil {
		return err
	}
	r.report.SnapshotSkipped, r.defs = s.Skipped, s.Definitions
	return nil
}

func (r *replayer) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if r.proxy != nil {
		errs = append(errs, r.proxy.Close())
	}
	errs = append(errs, r.from.unwatch(ctx, r))
	if r.labs != nil {
		errs = append(errs, r.labs.Close(ctx))
	}
	return errors.Join(errs...)
}

// config is how the trace is replayed.
func (r *replayer) config() (replay.Config, error) {
	until := int64(0)
	if r.o.Until != nil {
		var err error
		if until, err = r.o.Until(r.survey.First); err != nil {
			return replay.Config{}, err
		}
	}
	r.left = map[string]int{}
	c := replay.Config{
		Backend: r.instance.Engine, Target: r.target, Side: r.target, Describe: replay.Describe(r.describe()), Order: r.o.Order, Speed: r.o.Speed,
		Limits: replay.Limits{Statement: r.o.Limit}, Confined: !r.private(), Until: until, Made: r.made, Level: r.o.Level,
		Keep: func(id uint64, s *trace.Session) bool {
			if !r.filter.keeps(id, s) {
				return false
			}
			if s.Database != r.main && s.Database != "" && r.main != "" {
				r.left[s.Database]++
				return false
			}
			return true
		},
		Setup: func(s *trace.Session) []string {
			var sql []string
			if r.private() && r.postgres() && s.User != "" && s.User != r.target.User {
				sql = append(sql, "SET SESSION AUTHORIZATION "+pgsyntax.Quote(s.User))
			}
			return append(append(sql, r.o.Session...), r.settings()...)
		},
	}
	c.Settings = settingNames(r.o.Settings)
	if r.proxy != nil {
		c.Target = r.proxy.Through(r.target)
	}
	c.Progress = func(done int) {
		r.o.Progress(int64(done), int64(r.survey.Statements), "%s: %d of %d statements", r.path, done, r.survey.Statements)
	}
	return c, nil
}

// run replays the trace, and what it is asked for besides.
func (r *replayer) run(ctx context.Context) error {
	config, err := r.config()
	if err != nil {
		return err
	}
	config.Victims = r.victims && !slices.ContainsFunc(config.Settings, func(name string) bool { return name == "deadlock_timeout" })
	r.generated = replay.NewGenerated(r.dialect())
	config.Generated = r.generated
	units := replay.NewCollector(maxUnits)
	units.Begin = r.o.Session
	if !r.postgres() {
		units.Database = r.main
	}
	lacking, traits := &Lacking{}, product.Of(r.instance.Engine.Name)
	w := &told{sessions: map[uint64]*trace.Session{}, tags: map[toldKey][]trace.Tag{}}
	config.Done = func(s *replay.Step) {
		w.add(s)
		units.Add(s)
		lacking.add(s, traits)
		if r.o.Trail != nil {
			r.o.Trail.Done(s)
		}
	}
	if r.o.Trail != nil {
		config.Before = func(_ context.Context, s *replay.Step) error {
			r.o.Trail.Sent(s)
			return nil
		}
	}
	if err := r.before(ctx); err != nil {
		return err
	}
	result, err := replay.Run(ctx, config, r.open, r.survey)
	r.o.Progress(0, 0, "")
	if r.o.Trail != nil {
		r.o.Trail.Finish()
	}
	if err != nil && (ctx.Err() == nil || result == nil || result.Statements == 0) {
		return err
	}
	if r.o.Trail != nil && ctx.Err() == nil {
		if r.o.Trail.Keys, err = uniqueKeys(ctx, r.instance.Engine, r.target); err != nil {
			return err
		}
	}
	if r.postgres() && !r.victims {
		result.Notes = append(result.Notes, "this user may not set deadlock_timeout: the victims of deadlocks are the server's choice")
	}
	if r.o.once() {
		result.Notes = append(result.Notes, "no transactions were executed again by themselves: --in-place without --reset replays once")
	}
	if r.survey.Warning != "" {
		result.Notes = append(result.Notes, r.survey.Warning)
	}
	r.report.Trace, r.report.Engine, r.report.Version = r.path, r.instance.Engine.Name, r.instance.Version
	r.report.Replay, r.report.LeftOut, r.report.Lacking, r.report.advice = result, r.left, lacking, r.snapshotAdvice()
	r.report.options, r.report.title = r.o, r.instance.Engine.Title
	if r.proxy != nil {
		j := r.proxy.Checker.Result()
		j.Coverage.UnknownWriters = 0
		w.named(j.Findings, result.Backends)
		r.report.judged, r.report.Coverage = &j, j.Coverage
		r.report.Findings = j.Findings
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := errors.Join(r.after(ctx), r.finish(ctx)); err != nil {
		return err
	}
	if r.report.Undecided = r.undecided(ctx); r.o.Replayed != nil {
		if err := r.o.Replayed(&r.report); err != nil {
			return err
		}
	}
	r.units, r.own = units, r.generated
	if r.o.units != nil { // those of the replay as it was: here, some may have been refused
		units, r.generated = r.o.units, r.o.generated
	}
	if r.advising != nil {
		return r.advise(ctx, units)
	}
	if r.o.once() {
		return nil // a note tells of it
	}
	if p, err := panel.Select(r.o.Oracles); err != nil || !p.Isolation && len(p.Judges) == 0 && r.o.Mode.Kind == "" {
		return err
	}
	return r.explore(ctx, units)
}

// undecided says why it means nothing that nothing was found.
func (r *replayer) undecided(ctx context.Context) string {
	x, e, seen := r.report.Replay, r.report.Explored, ""
	if r.report.judged != nil {
		seen = r.report.judged.Coverage.Undecided(r.o.MinCoverage)
	}
	switch d := x.Divergence; {
	case ctx.Err() != nil:
		return r.interrupted(ctx)
	case x.Statements == 0:
		return "no statement was replayed"
	case r.report.Lacking.undecided() != "":
		return r.report.Lacking.undecided()
	case seen != "":
		return seen
	case 2*d.Count() > d.Compared:
		return fmt.Sprintf("%d of %s differ from the trace's: does the replay begin with the database as it was before the trace (--snapshot)?", d.Count(), prose.Count(d.Compared, "answer"))
	case e != nil && e.NoRequests != "":
		return e.NoRequests
	case e != nil && e.Groups > 0 && e.NotJudged == e.Groups:
		return "no combination of transactions could be judged: " + e.Unjudged[0]
	}
	return r.survey.Warning
}

// told is what the trace says of sessions and statements that no oracle sees.
type told struct {
	sessions map[uint64]*trace.Session
	tags     map[toldKey][]trace.Tag
}

type toldKey struct {
	session uint64
	sql     string
}

func (w *told) add(s *replay.Step) {
	if s.Info() != nil {
		w.sessions[s.Session] = s.Info()
	}
	if tags := s.Tags(); len(tags) > 0 && len(w.tags) < maxUnits {
		w.tags[toldKey{s.Session, s.SQL}] = tags
	}
}

// named gives sessions the numbers and users that they have in the trace, and transactions their tags.
func (w *told) named(findings []oracle.Finding, sessions map[uint64]uint64) {
	for i := range findings {
		f := &findings[i]
		completed := f.Session
		for j := range f.Transactions {
			t := &f.Transactions[j]
			session, known := sessions[t.Backend]
			if !known {
				continue
			}
			if t.Session == completed {
				f.Session = session
			}
			t.Session, t.Backend = session, 0 // the server's number is the replay's, not the trace's
			if info := w.sessions[session]; info != nil && info.User != "" {
				t.User = info.User
			}
			for _, st := range t.Statements {
				for _, tag := range flow.Route(w.tags[toldKey{session, st.SQL}]) {
					if text := tag.Key + "=" + tag.Value; !slices.Contains(t.Tags, text) {
						t.Tags = append(t.Tags, text)
					}
				}
			}
		}
	}
}

// sessionFilter is what --only asks for: alternatives by kind.
type sessionFilter map[string][]string

func parseFilter(list []string) (sessionFilter, error) {
	f := sessionFilter{}
	for _, text := range list {
		kind, value, ok := strings.Cut(text, "=")
		if !ok || !slices.Contains([]string{"session", "user", "application"}, kind) {
			return nil, fmt.Errorf("--only %q: expected session=N, user=PATTERN or application=PATTERN", text)
		}
		if _, err := strconv.ParseUint(value, 10, 64); kind == "session" && err != nil {
			return nil, fmt.Errorf("--only %q: sessions have numbers (wirecheck trace show)", text)
		}
		if _, err := path.Match(value, ""); err != nil {
			return nil, fmt.Errorf("--only %q: %w", text, err)
		}
		f[kind] = append(f[kind], value)
	}
	return f, nil
}

func (f sessionFilter) keeps(id uint64, s *trace.Session) bool {
	is := map[string]string{"session": strconv.FormatUint(id, 10), "user": s.User, "application": s.Application}
	for kind, patterns := range f {
		if !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, is[kind]); return ok }) {
			return false
		}
	}
	return true
}

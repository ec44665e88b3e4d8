package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab/panel"
	"wirecheck/lab/replay"
	"wirecheck/lab/scenario"
	"wirecheck/live"
	"wirecheck/oracle"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// replayFlags are the flags of wirecheck replay.
type replayFlags struct {
	engine, snapshot, oracles string
	order                     string
	speed                     float64
	only                      []string
	until, database           string
	session                   []string // statements for each session
	interleavings             string
	window                    int
	unit                      string
	unitGap                   time.Duration
	out                       string
	limit                     time.Duration
	groups                    int
	failDiverged              bool
	tables, compare           string

	mode scenario.Mode
}

func newReplayCommand(c *common) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "Execute a capture again and find what could have gone wrong",
		Long: `replay executes a capture again, with one connection for each session, and keeps
the recorded order where sessions wait for each other's locks. It reports the
answers that differ from the capture, and what the oracles find. A capture comes
from "wirecheck proxy --record" or from "wirecheck trace import".

With --interleavings, replay also takes transactions that stand close to each
other in the capture and runs them in other orders, each from the same state. It
prints the shortest scenario that goes wrong.

ENGINE is a name (postgres, mariadb, ...), which starts a private server, or the
URL of a server on which the user may create databases. replay works in a
database of its own and drops it at the end.

--order says what a statement waits for besides its own session:
  commit    its place among the commits of the capture; statements that
            overlapped in the capture go one at a time, too
  object    the same, among statements that use the same tables and of which one
            writes; all others run at once
  session   its session's last statement and the think time (--speed)
  off       the clock (--speed)
If the recorded order and the server's locks contradict each other, replay
follows the locks and reports it.

Exit status: 0 nothing found, 1 something found, 2 wirecheck could not do its
work, 3 wirecheck could not decide.`,
		Example: `  wirecheck trace import postgresql-*.csv -o shop.wct
  wirecheck replay shop.wct --snapshot dump.sql --engine postgres
  wirecheck replay shop.wct --snapshot dump.sql --engine postgres --interleavings random:200 --window 20
  wirecheck replay shop.wct --engine mariadb --order off --speed 2 --only user=app --until +10m`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return runReplay(cmd.Context(), c, f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.engine, "engine", "", "where to replay: a name (private server) or a URL (default: a private server of the capture's product)")
	flags.StringVar(&f.snapshot, "snapshot", "", "dump of the database before the first statement, in plain SQL (pg_dump, mysqldump, mariadb-dump; also gzip) (default: an empty database)")
	flags.StringVar(&f.order, "order", "commit", "what a statement waits for: commit, object, session, off")
	flags.Float64Var(&f.speed, "speed", 0, "speed of the capture's clock: 1 as recorded, 2 twice as fast, 0 no clock")
	flags.StringSliceVar(&f.only, "only", nil, "only these sessions: session=N, user=PATTERN, application=PATTERN; several of one kind are alternatives")
	flags.StringVar(&f.until, "until", "", "leave out what began at this time or later: "+timeForms)
	flags.StringVar(&f.database, "database", "", "database of the capture to replay (default: the one with the most statements)")
	flags.StringArrayVar(&f.session, "session-sql", nil, "statement that each session begins with, as in 'SET search_path = shop'; repeatable")
	flags.StringVar(&f.oracles, "oracle", panel.IsolationName, "oracles that judge: "+panel.OracleNames()+", all, none")
	ordersFlag(flags, c)
	flags.StringVar(&f.interleavings, "interleavings", "", "also run transactions in other orders: random:N, pct:N,D, all")
	flags.IntVar(&f.window, "window", 20, "combine transactions with fewer than this many others between them")
	flags.IntVar(&f.groups, "groups", 200, "run at most this many combinations of transactions")
	flags.StringVar(&f.unit, "unit", "transaction", "what must be serializable: transaction, or request (its transactions share tags, or see --unit-gap)")
	flags.DurationVar(&f.unitGap, "unit-gap", 0, "transactions without tags that follow each other in a session within this time are one request; 0: they are not")
	flags.StringVar(&f.out, "out", "", "folder for the scenarios that show the findings (default: replay prints them)")
	flags.DurationVar(&f.limit, "limit", time.Minute, "how long one statement, or one interleaving, may take")
	flags.StringVar(&f.tables, "tables", "", "write the final tables of the replay to this file, rows in canonical order")
	flags.StringVar(&f.compare, "compare", "", "compare the final tables with this dump of the database after the last statement")
	flags.BoolVar(&f.failDiverged, "fail-on-divergence", false, "exit with status 1 if an answer differs from the capture's")
	return cmd
}

// check reads the flags that have a form of their own.
func (f *replayFlags) check() error {
	if _, err := replay.ParseOrder(f.order); err != nil {
		return err
	}
	if _, err := panel.Select(f.oracles); err != nil {
		return err
	}
	if f.unit != "transaction" && f.unit != "request" {
		return fmt.Errorf("unit %q: expected transaction or request", f.unit)
	}
	if f.speed < 0 {
		return fmt.Errorf("speed %v: expected 0 or more", f.speed)
	}
	if f.window < 2 {
		return fmt.Errorf("window %d: expected at least 2 transactions", f.window)
	}
	if f.interleavings == "" || f.interleavings == "recorded" {
		return nil
	}
	text := f.interleavings
	if kind, n, ok := strings.Cut(text, ":"); ok && kind == "pct" && !strings.Contains(n, ",") {
		text += ",3"
	}
	mode, err := scenario.ParsePermutations(text)
	if err != nil || mode.Kind == scenario.KindListed {
		return fmt.Errorf("interleavings %q: expected recorded, random:N, pct:N,D or all", f.interleavings)
	}
	f.mode = mode
	return nil
}

// replayer is one run of wirecheck replay.
type replayer struct {
	c        *common
	f        replayFlags
	path     string
	survey   *replay.Survey
	instance *backends.Instance
	lens     *live.Proxy
	labs     *engine.Labs
	target   engine.Target // the database, not through the lens
	main     string        // the capture's database
	left     map[string]int
	defs     replay.Definitions // the snapshot's
	filter   sessionFilter
	report   replayReport
	// victims says that the server lets us choose who is the victim of a deadlock.
	victims bool
}

func runReplay(ctx context.Context, c *common, f replayFlags, path string) (err error) {
	if err := c.needFormat("text", "json"); err != nil {
		return err
	}
	r := &replayer{c: c, f: f, path: path}
	if r.filter, err = parseFilter(f.only); err != nil {
		return err
	}
	if r.survey, err = replay.Look(r.open); err != nil {
		return err
	}
	if r.survey.Statements == 0 {
		fmt.Fprintf(c.stderr, "wirecheck: %s holds no statement\n", path)
		return exitUnknown
	}
	name := f.engine
	if name == "" {
		if len(r.survey.Products) == 0 {
			return errors.New("the trace does not say which product it is of: name one with --engine")
		}
		name = r.survey.Products[0]
	}
	if r.instance, err = backends.Open(ctx, name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.instance.Close()) }()
	if err := r.sameDialect(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	if err := r.print(); err != nil {
		return err
	}
	return r.status()
}

func (r *replayer) open() (*trace.Reader, error) { return trace.Open(r.path, trace.ReadOptions{}) }

func (r *replayer) sameDialect() error {
	if len(r.survey.Products) == 0 {
		return nil
	}
	if r.instance.Engine.Embedded {
		return fmt.Errorf("the trace is of %s, and cannot be replayed on %s: traces are of servers", r.survey.Products[0], r.instance.Engine.Title)
	}
	if mysql := lex.DialectOf(r.survey.Products[0]) == lex.MySQL; mysql != (r.instance.Engine.Protocol == engine.ProtocolMySQL) {
		return fmt.Errorf("the trace is of %s, and cannot be replayed on %s", r.survey.Products[0], r.instance.Engine.Title)
	}
	return nil
}

func (r *replayer) private() bool { return r.instance.Server != nil }

func (r *replayer) postgres() bool { return r.instance.Engine.Protocol == engine.ProtocolPostgres }

// prepare makes the database as it was before the first statement.
func (r *replayer) prepare(ctx context.Context) (err error) {
	if r.labs, err = engine.OpenLabs(ctx, r.instance.Engine, r.instance.Target); err != nil {
		return err
	}
	r.main = r.f.database
	if r.main == "" {
		r.main = r.survey.MainDatabase(r.maintenance)
	}
	if err := r.makeDatabase(ctx); err != nil {
		return err
	}
	if err := r.accounts(ctx); err != nil {
		return err
	}
	p, err := panel.Select(r.f.oracles)
	if err != nil {
		return err
	}
	if p.Isolation {
		if r.lens, err = live.Open(ctx, r.c.log, r.instance.Engine, r.instance.Target, nil); err != nil {
			return err
		}
	}
	if r.f.snapshot != "" {
		if err := r.restore(ctx); err != nil {
			return err
		}
	}
	if r.lens != nil {
		r.lens.Checker.Prepared()
	}
	return nil
}

// makeDatabase makes an empty one.
func (r *replayer) makeDatabase(ctx context.Context) (err error) {
	if r.private() && r.main != "" && !r.maintenance(r.main) {
		r.target, err = r.labs.Make(ctx, r.main) // statements may name it
	} else {
		r.target, err = r.labs.Create(ctx)
	}
	if err != nil || !r.postgres() {
		return err
	}
	conn, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	// Labs' servers look for deadlocks at once, which makes the last waiter the victim; here it is to be the capture's.
	a, err := conn.Do(ctx, "ALTER DATABASE "+quoteName(r.target.Database)+" SET deadlock_timeout = '1s'")
	r.victims = err == nil && a.Err == nil
	return errors.Join(err, conn.Close())
}

// maintenance reports whether a database of the capture is one of the product's own.
func (r *replayer) maintenance(name string) bool {
	return name == "" || name == r.instance.Engine.Lab.Maintenance || r.postgres() && (name == "template0" || name == "template1") || r.instance.Engine.System(name)
}

// accounts makes the capture's users on a private server, since statements and the snapshot may name them.
func (r *replayer) accounts(ctx context.Context) error {
	if !r.private() || !r.postgres() {
		return nil
	}
	conn, err := r.instance.Engine.Connect(ctx, r.target)
	if err != nil {
		return err
	}
	var sql []string
	for _, user := range r.survey.Users {
		if user == r.target.User {
			continue
		}
		sql = append(sql, "CREATE ROLE "+quoteName(user)+" LOGIN SUPERUSER")
	}
	for _, s := range sql {
		if err := engine.Exec(ctx, conn, s); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// restore brings back the snapshot. In the MySQL family it goes through the lens, which gives new tables their hidden columns.
func (r *replayer) restore(ctx context.Context) (err error) {
	target := r.target
	d := lex.PostgreSQL
	if !r.postgres() {
		d = lex.MySQL
		if r.lens != nil {
			target = r.lens.Through(target)
		}
	}
	conn, err := r.instance.Engine.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	s := replay.Snapshot{Conn: conn, Dialect: d, Confined: !r.private()}
	if err := s.Restore(ctx, r.f.snapshot); err != nil {
		return err
	}
	r.report.SnapshotSkipped, r.defs = s.Skipped, s.Definitions
	return nil
}

func (r *replayer) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if r.lens != nil {
		errs = append(errs, r.lens.Close())
	}
	if r.labs != nil {
		errs = append(errs, r.labs.Close(ctx))
	}
	return errors.Join(errs...)
}

// config is how the trace is replayed.
func (r *replayer) config() (replay.Config, error) {
	until := int64(0)
	if r.f.until != "" {
		var err error
		if until, err = parseMoment(r.f.until, r.survey.First); err != nil {
			return replay.Config{}, fmt.Errorf("--until: %w", err)
		}
	}
	order, err := replay.ParseOrder(r.f.order)
	if err != nil {
		return replay.Config{}, err
	}
	r.left = map[string]int{}
	c := replay.Config{
		Backend: r.instance.Engine, Target: r.target, Side: r.target, Describe: replay.Describe(panel.Describer(r.instance.Engine)), Order: order, Speed: r.f.speed,
		Limits: replay.Limits{Statement: r.f.limit}, Confined: !r.private(), Until: until,
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
				sql = append(sql, "SET SESSION AUTHORIZATION "+quoteName(s.User))
			}
			return append(sql, r.f.session...)
		},
	}
	if r.lens != nil {
		c.Target = r.lens.Through(r.target)
	}
	if r.c.progress() {
		c.Progress = func(done int) {
			r.c.progressf("%s: %d of %d statements", r.path, done, r.survey.Statements)
		}
	}
	return c, nil
}

// run replays the trace, and what it is asked for besides.
func (r *replayer) run(ctx context.Context) error {
	config, err := r.config()
	if err != nil {
		return err
	}
	config.Victims = r.victims
	units := replay.NewCollector(maxUnits)
	if !r.postgres() {
		units.Database = r.main
	}
	w := &told{sessions: map[uint64]*trace.Session{}, tags: map[toldKey][]trace.Tag{}}
	config.Done = func(s *replay.Step) {
		w.add(s)
		units.Add(s)
	}
	result, err := replay.Run(ctx, config, r.open, r.survey)
	r.c.clearProgress()
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	if r.postgres() && !r.victims {
		result.Notes = append(result.Notes, "this user may not set deadlock_timeout: the victims of deadlocks are the server's choice")
	}
	if r.survey.Warning != "" {
		result.Notes = append(result.Notes, r.survey.Warning)
	}
	r.report.Trace, r.report.Engine, r.report.Version = r.path, r.instance.Engine.Name, r.instance.Version
	r.report.Replay, r.report.LeftOut = result, r.left
	if r.lens != nil {
		j := r.lens.Checker.Result()
		j.Coverage.UnknownWriters = 0
		w.named(j.Findings, result.Backends)
		r.report.judged = &j
		r.report.Findings = j.Findings
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	if p, err := panel.Select(r.f.oracles); err != nil || !p.Isolation && len(p.Judges) == 0 && r.f.mode.Kind == "" {
		return err
	}
	return r.explore(ctx, units)
}

// told is what the capture says of sessions and statements that no oracle sees.
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

// named gives sessions the numbers and users that they have in the capture, and transactions their tags.
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
			t.Session, t.Backend = session, 0 // the server's number is the replay's, not the capture's
			if info := w.sessions[session]; info != nil && info.User != "" {
				t.User = info.User
			}
			for _, st := range t.Statements {
				for _, tag := range replay.Route(w.tags[toldKey{session, st.SQL}]) {
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

// Package live joins what the proxies record with the oracle that judges it while it happens. The command proxy uses it for
// clients' traffic, and labs use it to see what the statements of a case read and wrote.
package live

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/fleet/stream"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/product"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
	"wirecheck/proxy/pgwire"
	"wirecheck/proxy/record"
	"wirecheck/report"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/recorder"
)

// Result is what the isolation oracle said, and how much it saw.
type Result struct {
	Findings []oracle.Finding
	Coverage isolation.Coverage
	Dropped  int // events that the history lacks, because its file could not be written
	// Between are the ids of the findings with sessions of other proxies, as far as wirecheck collect told of them.
	Between []string
}

// Checker judges what the proxies record. Every event goes to the history file and the trace file, then to the isolation
// checker. What the event completes goes to the session as a warning, to the log and to the stream.
type Checker struct {
	recorder *record.Recorder
	log      zerolog.Logger
	onFind   func(oracle.Finding) // called for each finding, in order; may be nil
	// postgres has an observer for each way to observe: listeners share what is known of the servers' catalogs.
	postgres map[Observation]*pgwire.Observer
	early    rewrite.Early

	mu       sync.Mutex // guards what follows: the sink and those who ask for results
	writer   *history.Writer
	record   io.Closer          // the file behind it
	trace    *recorder.Recorder // nil: there is none
	checker  *isolation.Checker
	audience *audience
	notices  notices
	stream   func(oracle.Finding) error
	news     func(*oracle.Finding) bool
	publish  *stream.Publisher  // nil: there is none
	err      error              // the first error of a file; what is recorded from then on is incomplete
	dropped  int                // events that the history lacks
	before   isolation.Coverage // of what Prepared left out
	options  isolation.Options
	broken   bool // the log has said that judging has ended
	redact   *trace.Redactor
	spare    []history.Access // for a redacted event
	clock    func() time.Time
	pace     Pace // counted if clock is set
	// open are the events by which the sessions that are open began, where they are needed again (see Restart).
	open map[uint64]history.Event
}

// Options says what is done with events and findings.
type Options struct {
	Record io.WriteCloser // the history, which Finish closes; nil: none is written
	// Closes says that all sessions end before Finish, so that a history in which one does not is cut off.
	Closes bool
	// Trace gets all events for its file; nil: there is none. Finish closes it.
	Trace *recorder.Recorder
	// Stream gets each finding as a line of JSON when it is found; nil: none.
	Stream io.Writer
	OnFind func(oracle.Finding)
	// News says which findings are logged and handed to Stream and OnFind; nil: each the first time.
	News func(*oracle.Finding) bool
	// Publish gets all events for those who judge several proxies together; nil: there is none. It stays the caller's.
	Publish *stream.Publisher
	// Recorder and Origin are those of isolation.Options.
	Recorder func(session uint64) int
	Origin   func(txn uint64) (recorder string, own uint64)
	// Redact puts tokens in the place of values, in all that leaves the checker; nil: values are kept. Trace has its own.
	Redact *trace.Redactor
	// Whole says that nobody writes in the tables past the proxy, and that all sessions are observed.
	Whole bool
	// Strict, MaxTxns and Explain are the checker's.
	Strict  bool
	MaxTxns int
	Window  int // isolation.Options.Keep
	Explain bool
	// Judge says what else is judged: requests, unless it says that transactions alone are, and what is only possible. RequestTags are the
	// tags that name a request; nil: the usual ones.
	Judge       Judge
	RequestTags []string
	// HideValues says that findings show no values of answers, parameters and assignments, and the history has none.
	HideValues bool
	// NoPredicates says that what statements asked is not judged.
	NoPredicates bool
	// ShowOthers says that warnings may quote other users' statements.
	ShowOthers bool
	Log        zerolog.Logger
	// Run is the process's own name, a RunName; empty: one is made.
	Run string
	Now time.Time
	// Clock gives each event its wall-clock time, for people; nil: sessions alone have one, and results repeat.
	Clock func() time.Time
	// Pace says that the time is counted for which sessions wait for judging (Status). It needs the Clock.
	Pace bool
}

// Judge says what is judged besides transactions.
type Judge struct {
	Transactions bool // transactions alone
	Sampled      bool // not all sessions are observed: transactions alone, and the history has no requests
	Possible     bool // what is only possible, too
}

// New begins the history, if there is one.
func New(o Options) (*Checker, error) {
	l := &Checker{
		log: o.Log, onFind: o.OnFind, news: o.News, publish: o.Publish, trace: o.Trace, redact: o.Redact, open: map[uint64]history.Event{}, postgres: map[Observation]*pgwire.Observer{},
		options: isolation.Options{Whole: o.Whole, Strict: o.Strict, MaxTxns: o.MaxTxns, Keep: o.Window, Explain: o.Explain, Recorder: o.Recorder, Origin: o.Origin, Transactions: o.Judge.Transactions || o.Judge.Sampled, Possible: o.Judge.Possible,
			Repeats: true, HideValues: o.HideValues || o.Redact != nil},
	}
	if l.news == nil {
		l.news = func(f *oracle.Finding) bool { return f.Seen <= 1 } // the report counts the others
	}
	if o.Pace {
		l.clock = o.Clock
	}
	l.checker, l.audience = isolation.New(l.options), newAudience(&o)
	run := o.Run
	if run == "" {
		run = RunName(o.Now)
	}
	if o.Record != nil {
		w, err := history.NewWriter(o.Record, history.Header{Started: o.Now.UnixNano(), Run: run, Closes: o.Closes})
		if err != nil {
			return nil, err
		}
		l.writer, l.record = w, o.Record
	}
	if o.Stream != nil {
		l.stream = func(f oracle.Finding) error { return report.JSONLine(o.Stream, f) }
	}
	l.recorder = record.NewRecorder(run, l.sink)
	l.recorder.Now, l.recorder.Answers, l.recorder.Due = o.Clock, l.answers, l.due
	l.recorder.Requests = record.NewRequests(o.RequestTags) // also where transactions alone are judged: findings name what the tags say
	l.recorder.Requests.Values, l.recorder.Requests.Partial, l.recorder.NoPredicates = !l.options.HideValues, o.Judge.Sampled, o.NoPredicates
	return l, nil
}

// RunName makes a short name for a process that no other process has: the microsecond of its start in base 36, and four random digits of that base, since
// processes of several machines may start together.
func RunName(now time.Time) string {
	const random = 36 * 36 * 36 * 36
	return fmt.Sprintf("%s%04s", strconv.FormatInt(now.UnixMicro(), 36), strconv.FormatInt(rand.Int64N(random), 36))
}

// sink takes the recorder's events. The recorder never calls it from two goroutines at once.
func (l *Checker) sink(ev *history.Event) []record.Warning {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock != nil {
		begun := l.clock()
		defer func(at int64) { l.pace.count(at, begun, l.clock()) }(l.recorder.Handed())
	}
	l.audience.event(ev)
	switch ev.Kind {
	case history.EventSession:
		l.open[ev.Session] = *ev
	case history.EventClose:
		delete(l.open, ev.Session)
	case history.EventStmt:
		l.early.Statement()
	}
	if l.trace != nil {
		l.trace.Event(ev)
	}
	if l.redact != nil {
		ev = l.redacted(ev)
	}
	if l.writer != nil {
		err := l.writer.Write(ev)
		if l.keep("write the history", err); err != nil {
			l.dropped++
		}
	}
	if l.publish != nil {
		l.publish.Event(ev)
	}
	found := l.checker.Add(ev)
	if why := l.checker.Broken(); why != "" && !l.broken {
		l.broken = true
		l.log.Error().Str("why", why).Msg("judging has ended: a defect of wirecheck; traffic goes on, and no finding is reported any more")
	}
	for _, f := range found {
		l.audience.found(f)
		l.tell(f)
	}
	return l.audience.due(ev.Session)
}

// tell tells of a finding, if it is news.
func (l *Checker) tell(f oracle.Finding) {
	if !l.news(&f) {
		return
	}
	l.log.Warn().Str("finding", f.ID).Str("class", string(f.Class)).Str("name", f.Title()).Str("kind", string(f.Kind)).
		Str("isolation", f.Level).Strs("tables", report.Printable(f).Tables).Uint64("session", f.Session).Msg("anomaly found")
	if l.stream != nil {
		l.keep("write the findings", l.stream(f))
	}
	if l.onFind != nil {
		l.onFind(f)
	}
}

// Take judges an event that another process recorded.
func (l *Checker) Take(ev *history.Event) { l.sink(ev) }

// Needed is the number of the first event, from 1, that the checker still needs to judge later ones.
func (l *Checker) Needed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return isolation.Needed(l.checker)
}

// redacted gives a copy of an event without values. What follows from it has none either: findings, warnings, the log. It
// is good until the next call.
func (l *Checker) redacted(ev *history.Event) *history.Event {
	own := *ev
	l.spare = append(l.spare[:0], ev.Accesses...)
	own.Accesses = l.spare
	own.Operands, own.Derived = slices.Clone(ev.Operands), slices.Clone(ev.Derived)
	if own.Error != nil {
		e := *own.Error
		own.Error = &e
	}
	l.redact.Event(&own, lex.Of(product.Of(l.open[ev.Session].Engine).Dialect))
	return &own
}

// keep remembers the first error of a file, and says it at once.
func (l *Checker) keep(what string, err error) {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("%s: %w", what, err)
		l.log.Error().Err(l.err).Msg("the record is incomplete from here on")
	}
}

// Flush brings the history up to date on disk.
func (l *Checker) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer != nil {
		l.keep("write the history", l.writer.Flush())
	}
	if l.trace != nil {
		l.trace.Flush(time.Now())
	}
}

// Restart begins a new judgement. The checker forgets what happened before, except the sessions that are open.
func (l *Checker) Restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checker, l.before = isolation.New(l.options), isolation.Coverage{}
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		ev := l.open[id]
		l.checker.Add(&ev)
	}
}

// Prepared says that what happened since the restart was the setup. The setup stays in the graph, since it tells which version is
// older than another one; on PostgreSQL all that it wrote counts as initial. The coverage leaves it out. afresh says that the setup may have changed definitions
// past the proxy; else it did no more there than to put rows back.
func (l *Checker) Prepared(afresh bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = l.checker.Coverage()
	for _, o := range l.postgres {
		o.Renew(afresh)
	}
}

// Result gives what the oracle found since the last Restart, and what it saw since Prepared.
func (l *Checker) Result() Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Result{l.checker.Summary(), l.coverage().Since(l.before), l.dropped, l.notices.ids()}
}

// coverage is the oracle's, with what the recorder knows of requests. mu is held.
func (l *Checker) coverage() isolation.Coverage {
	v := l.checker.Coverage()
	v.Resumed, v.Untraced = max(v.Resumed, l.recorder.Requests.Resumed()), l.recorder.Requests.Untraced()
	return v
}

// Finish closes the files and gives all findings with the coverage.
func (l *Checker) Finish() (Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writer != nil {
		if err := errors.Join(l.writer.Close(), l.record.Close()); l.err == nil && err != nil {
			l.err = fmt.Errorf("write the history: %w", err)
		}
		l.writer = nil
	}
	if l.trace != nil {
		l.err = errors.Join(l.err, l.trace.Close(time.Now()))
	}
	return Result{l.checker.Summary(), l.coverage(), l.dropped, l.notices.ids()}, l.err
}

// Observation is how one listener observes.
type Observation struct {
	Capture   rewrite.Capture
	Warn      bool
	Limits    record.Limits
	AllTables bool // MySQL family: all new tables get the hidden columns, not only those of schemas that have them
	images    bool // images of all rows that are written, whether a predicate reads them or not
}

// Handler makes the session loop for a listener.
func (l *Checker) Handler(c proxy.Config, o Observation) (proxy.Handler, error) {
	switch {
	case c.Protocol == proxy.Postgres && c.Mode == proxy.Pass:
		return pgwire.New(nil), nil
	case c.Protocol == proxy.Postgres:
		if l.postgres[o] == nil {
			r := postgres.New(o.Capture)
			if o.images {
				r.WantAll()
			}
			r.WantEarly(&l.early)
			l.postgres[o] = pgwire.NewObserver(pgwire.ObserverConfig{
				Rewriter: r, Recorder: l.recorder, Limits: o.Limits, Silent: !o.Warn,
			})
		}
		return pgwire.New(l.postgres[o]), nil
	case c.Protocol == proxy.MySQL && c.Mode == proxy.Pass:
		return mysqlwire.New(nil), nil
	case c.Protocol == proxy.MySQL:
		newTables := mysqlwire.InstrumentFollow
		if o.AllTables {
			newTables = mysqlwire.InstrumentAuto
		}
		// One for each listener: the catalogs that it keeps are those of one server.
		return mysqlwire.New(&mysqlwire.Observer{Recorder: l.recorder, Limits: o.Limits, Capture: o.Capture, Warn: o.Warn, Instrument: newTables, Images: o.images, Early: &l.early}), nil
	}
	return nil, fmt.Errorf("no session loop for protocol %q", c.Protocol)
}

// Package isolation finds isolation anomalies in a history while it is being recorded (IsoRel, ISSTA 2025, with Adya's
// item dependencies and Elle's names).
//
// # Graph
//
// Nodes are committed transactions. T precedes U by an edge
//   - ww, if T and U wrote versions of one row and T's comes first,
//   - wr, if U read T's version,
//   - rw, if T read a version that precedes one of U's,
//
// each drawn to the next version whose writer is known. Versions in between may be missing: written by clients that do
// not go through the proxy, or by statements that could not be captured. Leaving them out is sound. If T's version x1 is
// followed by the unseen x2 of X and by U's x3, then the true graph has T -ww-> X -ww-> U, and our T -ww-> U stands for
// that path; likewise rw stands for rw;ww*. wr edges are exact. So a cycle found here is a closed walk of the true graph
// with the same number of rw edges. A closed walk splits into cycles none of which has more rw edges than the walk, so
// the true anomaly is at least as severe as the one reported, and a promise to prevent the reported class covers it.
//
// # Time
//
// Answers race: a reader's events may arrive before those of the writer. A transaction's accesses are therefore only
// kept while it is open, and enter the graph when it ends (install.go). An edge appears when the later of its two ends
// does, and a cycle when the last one does. Tokens not known by then are resolved when the transaction that owns them ends.
//
// # What is believed
//
// Accesses marked Approx are dropped: without a read there is no edge, without a write a path is contracted, as above.
// A plain read that the same transaction followed by a locking read of the row, or by an UPDATE that computes from the
// current row, is superseded: what the transaction went on with was current, so no rw edge leaves the plain read
// (IsoRel, section 3.4). A transaction whose outcome is unknown counts as committed once a committed transaction at
// more than READ UNCOMMITTED read or replaced its version.
//
// # Memory
//
// See forget.go.
package isolation

import (
	"fmt"
	"slices"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/oracle/cycle"
	"wirecheck/oracle/level"
	"wirecheck/product"
)

// Descriptor describes this oracle.
var Descriptor = oracle.Oracle{
	Name: "isolation",
	Doc: `finds dependency cycles and dirty reads among committed transactions
Needs only a history, live or recorded. From IsoRel (ISSTA 2025), TxCheck's item dependencies (OSDI 2023), Adya and Elle.`,
}

// Options sets what a Checker reports and how much it remembers. The zero value is good for a live proxy.
type Options struct {
	// Strict also reports cycles that need session order or real time (classes -process and -realtime).
	Strict bool
	// Repeats reports every occurrence; otherwise a fingerprint is reported the first time and then only counted.
	Repeats bool
	// Level, if set, takes the place of the level that each transaction ran at.
	Level string
	// Keep is how many ended transactions are kept at least, however old: it guards against events that arrive late and
	// lets stale reads that far back be found. 0 means DefaultKeep; negative means that nothing is ever forgotten.
	// A transaction counts once more for each weightBytes that it takes.
	Keep int
	// MaxTxns is how many ended transactions, counted so, are kept at most, when one that stays open holds them back. 0 means
	// DefaultMaxTxns.
	MaxTxns int
	// MaxBytes is how much memory the ended transactions may take, by estimate, and how much the open ones. Past it the oldest ended ones are
	// forgotten, and of open ones only those that are small are kept whole. 0 means DefaultMaxBytes.
	MaxBytes int
	// MaxAccesses is how many accesses of one transaction are kept, and how many statements. The reads of a larger one are not judged. 0 means
	// DefaultMaxAccesses.
	MaxAccesses int
	// MaxPlaces is how many places of versions by forgotten writers are remembered. 0 means DefaultMaxPlaces.
	MaxPlaces int
	// Transactions says that transactions alone are judged, not requests.
	Transactions bool
	// Possible also reports what may be an anomaly between requests, or a stale check of a transaction (kind unknown).
	Possible bool
	// Whole says that the history has all that is written in the tables: nobody writes past the proxy, and all sessions are observed.
	Whole bool
	// Explain also counts which statements were not seen exactly and why (Coverage.Lost).
	Explain bool
	// HideValues says that findings have no values of answers, parameters and assignments.
	HideValues bool
	// Levels keeps all dependencies, for the levels that the history satisfies (function Levels).
	Levels bool
	// Dependencies is given each edge of the graph as it is drawn, those of session order and real time with Strict alone. An edge may come a
	// second time where there are many between two transactions (maxEvidence). nil: nobody asks.
	Dependencies func(Dependency)
	// Recorder says which recorder's clock the ticks of a session are of, where several made the history. Ticks of two clocks are not compared.
	// nil: there is one.
	Recorder func(session uint64) int
	// Origin names the recorder of a transaction, and tells the number that it gave to it, where several made the history. nil: there is one.
	Origin func(txn uint64) (recorder string, own uint64)
	// Only says which transactions are judged; of the others all is counted that is known without the graph (Settle gives the rest), and of
	// their strings none is kept of which there are many: history.Reader.Lend. nil: all of them.
	Only func(txn uint64) bool
	// Walks gives the cycles that a transaction completes: then no edges are drawn, and nothing is searched. nil: the Checker searches.
	Walks func(txn uint64) []cycle.Walk
	// Passed is how many transactions began of which the Checker is given nothing (Join). nil: none.
	Passed func() int
	// MaxFingerprints is how many different findings are remembered. 0 means DefaultMaxFingerprints.
	MaxFingerprints int
}

// The default limits.
const (
	DefaultKeep            = 2000
	DefaultMaxTxns         = 100_000
	DefaultMaxBytes        = 64 << 20
	DefaultMaxAccesses     = 200_000
	DefaultMaxPlaces       = 1 << 19
	DefaultMaxFingerprints = 10_000
)

// Checker judges a history event by event. It has one owner: it is not safe for concurrent use.
type Checker struct {
	opts     Options
	sessions map[uint64]*session
	open     map[uint64]*txn // transactions begun and not ended
	late     map[uint64]*txn // ended ones, some of whose writes are still to be told
	tables   map[string]*table
	requests requests
	session  uint64   // of the event at hand
	hand     *txn     // which the event at hand ended, or the writes of which it told
	counts   Counts   // see Settle
	all      *Checker // and Join
	same     *Checker
	ran      []ran                 // of those that were only counted, in the order of their ends
	tokens   map[string]*txn       // of transactions that are not forgotten
	pending  map[string][]*version // versions seen whose writer's token belongs to nobody yet

	seq       uint64 // number of the event, the checker's own clock
	openFirst *txn   // open transactions in the order of their begin
	openLast  *txn
	ended     []*txn // not forgotten, in the order of their end
	settled   int    // ended[:settled] can get no new edge from others, see forget.go
	weight    int    // of ended
	endedSize int    // of ended, in bytes
	openSize  int    // of open, in bytes
	unsettled int    // the weight of those of ended that are not settled
	sweepAt   int    // weight at which to sweep next
	places    places
	gone      places // of rows without versions: the last place of a forgotten one; of versions without place, and of dead ones: that they were forgotten
	forgot    bool   // versions were forgotten
	unsure    bool   // places or gone did not remember what was asked for, see Complete

	graph
	found    []oracle.Finding
	seen     map[string]*oracle.Finding // by fingerprint
	order    []string                   // fingerprints in order of appearance
	overflow int                        // findings whose fingerprint was not remembered
	reported map[string]bool            // sets of transactions reported, see txn.sets
	coverage Coverage
	// approximate counts the accesses that are left out, by table.
	approximate map[string]int
	lost        lost // statements that were not seen exactly; nil unless Options.Explain
	conditions  lost // those whose predicate reads were not evaluated in full; nil in the same way
	texts       texts
	walked      map[uint64]*txn // those that Options.Walks may name; nil without it
	recs        []record        // room for register's
	last        *table          // the table of the last access
	recent      *session        // the one that was asked for last
}

// New makes a Checker.
func New(opts Options) *Checker {
	or := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	or(&opts.Keep, DefaultKeep)
	or(&opts.MaxTxns, DefaultMaxTxns)
	or(&opts.MaxBytes, DefaultMaxBytes)
	or(&opts.MaxAccesses, DefaultMaxAccesses)
	or(&opts.MaxPlaces, DefaultMaxPlaces)
	or(&opts.MaxFingerprints, DefaultMaxFingerprints)
	c := &Checker{
		opts:        opts,
		sessions:    map[uint64]*session{},
		open:        map[uint64]*txn{},
		late:        map[uint64]*txn{},
		tables:      map[string]*table{},
		approximate: map[string]int{},
		tokens:      map[string]*txn{},
		pending:     map[string][]*version{},
		seen:        map[string]*oracle.Finding{},
		reported:    map[string]bool{},
	}
	if opts.Explain {
		c.lost, c.conditions = lost{}, lost{}
	}
	c.dependencies, c.paths, c.told = opts.Dependencies, *cycle.New(0, 0), opts.Walks != nil
	c.requests = requests{c: c, by: map[string]*request{}, open: map[string]bool{}, moved: map[move]int{}}
	if opts.Levels {
		c.levels, c.grant = level.NewGraph(), grantOld
		c.levels.Timeless = opts.Recorder != nil
	}
	if opts.Walks != nil {
		c.walked = map[uint64]*txn{}
	}
	c.places.limit, c.gone.limit = opts.MaxPlaces, opts.MaxPlaces
	c.sweepAt = c.opts.sweepStep()
	return c
}

// Add takes the next event of the history and returns what it completed. The event is not kept, its strings are.
//
// Where the checker comes to a state that cannot be, it ends judging: it reports nothing of this event or any later one, and Coverage.Broken
// says so. A caller that passes traffic on must not end with it.
func (c *Checker) Add(e *history.Event) (found []oracle.Finding) {
	if c.coverage.Broken != "" {
		c.coverage.Unjudged++
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			c.coverage.Broken, found = fmt.Sprintf("%v, at event %d", r, c.seq), nil
		}
	}()
	return c.add(e)
}

func (c *Checker) add(e *history.Event) []oracle.Finding {
	c.seq++
	c.found, c.session = nil, e.Session
	switch e.Kind {
	case history.EventSession:
		if c.sessions[e.Session] != nil && c.sessions[e.Session].info.Engine != "" {
			c.coverage.contradiction(beganTwice)
		}
		s := c.sessionOf(e.Session)
		s.info = *e
		s.info.Accesses, s.info.Tokens = nil, nil
		s.dbms = product.Of(e.Engine)
		c.coverage.Sessions++
	case history.EventBegin:
		c.beginTxn(e)
	case history.EventStmt:
		c.statement(e)
	case history.EventEnd:
		if t := openOf(c, e.Session, e.Txn); t != nil {
			c.endTxn(t, e)
		} else {
			c.coverage.contradiction(endUnbegun)
		}
	case history.EventClose:
		c.closeSession(e)
	}
	return c.found
}

// Summary gives the first finding of each fingerprint, in order of appearance, with its final count in Seen.
func (c *Checker) Summary() []oracle.Finding {
	out := make([]oracle.Finding, 0, len(c.order))
	for _, id := range c.order {
		out = append(out, *c.seen[id])
	}
	return out
}

// Broken says why judging has ended early (Coverage.Broken); empty: it has not.
func (c *Checker) Broken() string { return c.coverage.Broken }

// Kept is how many transactions are in memory, for tests and metrics.
func (c *Checker) Kept() int { return len(c.open) + len(c.ended) }

func (c *Checker) sessionOf(id uint64) *session {
	if c.recent != nil && c.recent.id == id {
		return c.recent
	}
	s := c.sessions[id]
	if s == nil {
		s = &session{id: id, info: history.Event{Kind: history.EventSession, Session: id}, dbms: product.Of("")}
		if c.opts.Recorder != nil {
			s.recorder = c.opts.Recorder(id)
		}
		c.sessions[id] = s
	}
	c.recent = s
	return s
}

// openOf is the open transaction with an id, as an event of a session names it; nil: there is none.
func openOf(c *Checker, session, id uint64) *txn {
	if s := c.recent; s != nil && s.id == session && s.txn != nil && s.txn.id == id && len(c.coverage.Contradictions) == 0 {
		return s.txn
	}
	return c.open[id]
}

func (c *Checker) beginTxn(e *history.Event) *txn {
	s := c.sessionOf(e.Session)
	if c.open[e.Txn] != nil {
		c.coverage.contradiction(beganTwice)
	}
	if s.txn != nil {
		// A recorder that begins a second transaction lost the end of the first.
		c.finishTxn(s.txn, history.OutcomeUnknown)
	}
	t := c.spare.txn()
	*t = txn{id: e.Txn, session: s, level: e.Level, implicit: e.Implicit, begin: c.seq, from: e.From, stmts: t.stmts, passed: c.opts.Only != nil && !c.opts.Only(e.Txn)}
	if !t.passed && t.stmts == nil {
		r := c.spare.room()
		t.stmts, t.accesses, t.writes, t.touched, t.tokens, t.out = r.stmts, r.accesses, r.writes, r.touched, r.tokens, r.out
	}
	t.grow(c, txnBytes)
	if c.opts.Level != "" {
		t.level = c.opts.Level
	}
	s.txn = t
	c.open[t.id] = t
	if c.walked != nil && !t.passed {
		c.walked[t.id] = t
	}
	// Whoever ended before the oldest transaction began that was open at t's begin, or at the begin of one that was open then, overlaps
	// nobody who could lead from t to it.
	t.oldest, t.floor = t.begin, t.begin
	if o := c.openFirst; o != nil {
		t.oldest, t.floor = o.begin, o.oldest
	}
	t.prevOpen = c.openLast
	if c.openLast != nil {
		c.openLast.nextOpen = t
	} else {
		c.openFirst = t
	}
	c.openLast = t
	c.coverage.Transactions++
	c.addTokens(t, e.Tokens)
	if c.opts.Strict && !t.passed {
		c.realTimeBegin(t)
	}
	return t
}

func (c *Checker) statement(e *history.Event) {
	t := openOf(c, e.Session, e.Txn)
	if t == nil {
		if t = c.late[e.Txn]; t != nil {
			c.finishLate(t, e)
			return
		}
		counted(c, e)
		if e.Error != nil {
			c.coverage.failed(e, c.sessionOf(e.Session).dbms.Error(e.Error.Code, e.Error.Message).Mistake)
		}
		return // outside a transaction (SET and the like), or of one that was already taken for lost
	}
	if i := t.statementIndex(e.N); i >= 0 {
		c.addLate(t, i, e)
		return
	}
	counted(c, e)
	c.addTokens(t, e.Tokens)
	if e.Level != "" && c.opts.Level == "" {
		t.level = e.Level // SET TRANSACTION after BEGIN
	}
	if e.UndoesFrom > 0 && e.Error == nil {
		t.undo(e.UndoesFrom)
	}
	if e.Error != nil && e.Coverage != history.CoverageNone {
		t.undone = true
	}
	if e.Error != nil {
		if is := t.product().Error(e.Error.Code, e.Error.Message); is.Reason != answer.ReasonFailed { // a failed transaction refuses all, for what made it fail
			t.mistaken = is.Mistake
		}
		c.coverage.failed(e, t.mistaken)
	}
	if e.Error == nil && e.Coverage != history.CoverageNone {
		t.part.Use(e.N)
	}
	c.requests.belongs(t, e.Request)
	if t.passed {
		pass(c, t, e)
		return
	}
	for _, tag := range e.Tags {
		if len(t.tags) < maxTags && !slices.Contains(t.tags, tag) {
			t.tags = append(t.tags, tag)
		}
	}
	if saysNothing := e.Verb == "select" && len(e.Accesses) == 0 && !e.Predicate && e.Error == nil; len(t.stmts) >= maxSilent && saysNothing {
		return
	}
	if len(t.stmts) >= c.opts.MaxAccesses || t.tooLarge(c) {
		t.cutOff(&c.coverage)
		return
	}
	i := int32(len(t.stmts))
	t.grow(c, sizeOfStatement(e))
	t.stmts = append(t.stmts, stmt{n: e.N, sql: prose.Cut(e.SQL, maxText), verb: e.Verb, from: e.From, to: e.To, at: e.At, tags: slices.Clone(e.Tags),
		current: e.CurrentRead, failed: e.Error != nil, coverage: e.Coverage, columns: c.requests.columnsOf(t, i, e), duplicate: t.product().Duplicate(e.Error)})
	sees(c, t, &t.stmts[i], e)
	t.show(i, e)
	t.addReads(c, i, e)
	c.addAccesses(t, i, e)
}

// maxSilent is how many statements of a transaction are kept that say nothing of rows.
const maxSilent = 10_000

// cutOff notes that no more of t is kept.
func (t *txn) cutOff(v *Coverage) {
	if !t.partial {
		t.partial = true
		v.Partial++
	}
}

// addAccesses keeps the accesses of e as those of statement i.
func (c *Checker) addAccesses(t *txn, i int32, e *history.Event) {
	if n := len(e.Accesses); n > 0 && n <= c.opts.MaxAccesses && !t.tooLarge(c) {
		if t.told == nil {
			t.told = take(&c.spare.told)
		}
		if len(t.accesses) == 0 && n > cap(t.accesses) {
			t.accesses = take(&c.spare.accesses)
		}
		t.accesses, t.told = slices.Grow(t.accesses, n), slices.Grow(t.told, n)
	}
	for k := range e.Accesses {
		a := &e.Accesses[k]
		if leftOut(c, a) {
			t.stmts[i].unsure = t.stmts[i].unsure || a.Approx
			continue
		}
		if len(t.accesses) >= c.opts.MaxAccesses || t.tooLarge(c) {
			t.cutOff(&c.coverage)
			break
		}
		tb := c.tableOf(a.Row.Table)
		tb.seen++
		t.apart(&c.coverage, a, tb, e.CurrentRead, len(e.Accesses)-1-k)
		t.grow(c, sizeOfAccess(a))
		t.accesses = append(t.accesses, access{op: opOf(a.Op), stmt: i})
		t.told = append(t.told, told{table: tb, key: a.Row.Key, name: a.Name, ver: a.Version,
			writer: a.Writer, prev: a.Prev, prevW: a.PrevWriter, order: a.Order, prevO: a.PrevOrder, asOf: a.AsOf,
			became: a.Image, were: a.Was})
	}
}

// leftOut reports whether nothing can be said about an access, and counts it if it is not certain.
func leftOut(c *Checker, a *history.Access) bool {
	if a.Approx {
		c.coverage.ApproxAccesses++
		c.approximate[a.Row.Table]++
	}
	return a.Approx || a.Version == "" && a.Op != history.OpDelete
}

func (c *Checker) endTxn(t *txn, e *history.Event) {
	if t.to, t.endedAt = e.To, e.At; t.to != 0 && t.to < t.from {
		c.coverage.contradiction(endBefore)
	}
	t.sent, t.answered = max(t.from, e.Sent), e.Outcome == history.OutcomeCommitted
	c.addTokens(t, e.Tokens)
	out := e.Outcome
	if out == "" {
		out = history.OutcomeUnknown
	}
	if e.Pending { // before the end, which may already forget t
		c.late[t.id] = t
		t.session.late = append(t.session.late, t)
	}
	c.finishTxn(t, out)
}

func (c *Checker) closeSession(e *history.Event) {
	outcome := history.OutcomeAborted // the server rolls back what a client leaves open
	if e.Why != "" {                  // the session goes on, unobserved
		c.coverage.Unobserved++
		outcome = history.OutcomeUnknown
	}
	s := c.sessions[e.Session]
	if s == nil {
		return
	}
	if t := s.txn; t != nil {
		// A connection lost during COMMIT has had its own end event.
		t.to, t.endedAt = e.To, e.At
		if e.Why != "" {
			t.unobserved()
		}
		c.finishTxn(t, outcome)
	}
	for _, t := range s.late { // they will not be told
		delete(c.late, t.id)
		c.coverage.Untold++
		c.requests.told(t)
	}
	s.late, c.recent = nil, nil
	delete(c.sessions, e.Session)
}

// unobserved takes back what t did, of which the rest is not known: it may have read again what it had read, and undone what it had written. Whoever
// meets one of its versions still knows by its token whose it is.
func (t *txn) unobserved() {
	t.accesses, t.told, t.reads = t.accesses[:0], t.told[:0], nil
	t.partial, t.undone = true, true
}

// finishTxn takes t out of the open ones, installs it and looks for what that completed.
func (c *Checker) finishTxn(t *txn, out history.Outcome) {
	delete(c.open, t.id)
	if t.session.txn == t {
		t.session.txn = nil
	}
	if t.prevOpen != nil {
		t.prevOpen.nextOpen = t.nextOpen
	} else {
		c.openFirst = t.nextOpen
	}
	if t.nextOpen != nil {
		t.nextOpen.prevOpen = t.prevOpen
	} else {
		c.openLast = t.prevOpen
	}
	t.prevOpen, t.nextOpen = nil, nil
	t.end = c.seq
	if t.passed {
		endPassed(c, t, out)
		return
	}
	c.hand = t
	c.ended = append(c.ended, t)
	c.openSize -= t.size
	t.weight = 1 + t.size/weightBytes
	c.endedSize, c.weight, c.unsettled = c.endedSize+t.size, c.weight+t.weight, c.unsettled+t.weight
	c.edges = c.edges[:0]
	switch out {
	case history.OutcomeCommitted:
		c.coverage.Committed++
		c.install(t)
	case history.OutcomeAborted:
		c.coverage.Aborted++
		c.installAborted(t)
	default:
		c.coverage.Unknown++
		c.installLimbo(t)
	}
	c.search(t.session.id)
	c.settle()
}

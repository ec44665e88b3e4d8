package record

import (
	"math"
	"slices"
	"time"

	"wirecheck/history"
	"wirecheck/product"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/trace/lex"
	"wirecheck/trace/secret"
)

// Limits bound what a Tracker keeps.
type Limits struct {
	Gap      time.Duration // a pause that ends a request without tags; 0: such requests are not told apart
	Accesses int           // facts kept of one statement; the rest is counted and makes its coverage approximate. 0: DefaultAccesses
}

// DefaultAccesses is how many facts of one statement are kept unless Limits says otherwise.
const DefaultAccesses = 10_000

// Tracker follows the transactions of one session and records its events. It belongs to the goroutine of its session
// loop, except that Sending may be called by the goroutine that sends while another one reads answers, if the caller
// holds one lock around both.
//
// A request's life: Sending before its bytes go out, Answer when its answer begins, Done when it is complete, Status
// when the server has said whether a transaction is open. A request that the server will skip gets Drop.
type Tracker struct {
	// Manual says that autocommit is off: what comes without BEGIN begins a transaction, too (MySQL family).
	Manual bool

	rec     *Recorder
	session uint64
	dbms    *product.Product
	dialect lex.Dialect
	limits  Limits

	level     string // of the session's next transactions
	nextLevel string // of the very next one only (MySQL family)
	txn       *txn   // open, or nil
	looks     looks
	flying    int    // tickets sent, not yet done or dropped
	commits   int    // of these, statements that may commit something
	pending   []late // ended transactions whose writes come with the session's log
	unsettled []unsettled
	due       []Warning
	want      func(*rewrite.Ask) // asks for images, see Wants; may be nil
	spare     spare
	facts     Share         // of the statement whose answer comes, and those that wait for the log
	event     history.Event // room for the next one that is recorded at once: the sink keeps none
	pauses    pauses
	load      load // see value
}

type txn struct {
	id        uint64
	level     string
	implicit  bool
	from      uint64
	begun     bool // its EventBegin is recorded
	n         int  // statements so far
	failed    bool // implicit: one of its statements failed
	ends      bool // a statement that commits implicitly was refused: perhaps it committed before that
	saves     []savepoint
	held      []held // statements that wait for the log, and those behind them
	heldFacts int    // their number and that of their accesses
	logged    bool
	collected map[string]bool // tokens recorded so far
	seen      view
	holds     []*Ticket // declared cursors that outlive it
}

// held is a statement that is not recorded yet. logs says that the log tells some of what it did, and changed is whether it changed rows
// that were there before.
type held struct {
	ev      *history.Event
	logs    bool
	changed bool
	pinned  []history.PredicateRead // see Running.pinned
	groups  *loggedGroups
}

type savepoint struct {
	name string
	next int // number of the first statement after it
}

type late struct {
	txn uint64
	n   int
	ev  *history.Event

	changed bool                    // it changed rows that were there before
	pinned  []history.PredicateRead // see Running.pinned
	groups  *loggedGroups
}

// NewTracker records that a session was opened. open holds what is known of it (Engine, Server, Database, User,
// Client, Backend, At); its Kind is set here, and its Session unless the caller numbers the sessions, and then all of them.
func NewTracker(rec *Recorder, open history.Event, limits Limits) *Tracker {
	if limits.Accesses <= 0 {
		limits.Accesses = DefaultAccesses
	}
	t := &Tracker{rec: rec, session: open.Session, dbms: product.Of(open.Engine), limits: limits, facts: rec.accesses(), pauses: pauses{gap: limits.Gap}}
	t.dialect = lex.Of(t.dbms.Dialect)
	if t.session == 0 {
		t.session = rec.sessions.Add(1)
	}
	open.Kind, open.Session, open.From = history.EventSession, t.session, rec.Tick()
	t.record(&open)
	return t
}

// SetLevel sets the level of the session's next transactions.
func (t *Tracker) SetLevel(level string) { t.level = level }

// LevelOf is the level of a session's open transaction, or else of the next one, as far as it is known.
func LevelOf(t *Tracker) string {
	if t.txn != nil {
		return t.txn.level
	}
	return t.level
}

// InTransaction reports whether a transaction is open as far as answers have shown.
func (t *Tracker) InTransaction() bool { return t.txn != nil }

// Sending announces a statement right before its bytes go to the server.
func (t *Tracker) Sending(p *rewrite.Plan) *Ticket { return t.Continuing(nil, p, 0) }

// Continuing announces, as Sending does, a request that fetches more rows of the statement that an earlier request began, which may be nil. The
// rows are that statement's, unless the server has skipped it or its transaction has ended. looked is what Looking gave for the message that settled what
// the statement sees; 0: this one does.
func (t *Tracker) Continuing(first *Ticket, p *rewrite.Plan, looked uint64) *Ticket {
	tk := &Ticket{plan: p, from: looked, continues: first, looks: t.looks}
	if looked == 0 {
		tk.from = t.rec.Tick()
	}
	t.looks.sent(p, t.txn == nil && t.flying == 0)
	if t.flying == 0 {
		t.place(tk)
	}
	t.flying++
	if mayCommit(p) {
		t.commits++
	}
	return tk
}

// place finds the transaction to which a ticket belongs. It is called when all earlier answers are known, so that the
// open transaction is the right one.
func (t *Tracker) place(tk *Ticket) {
	if tk.set {
		return
	}
	tk.set = true
	if first := tk.continues; t.goesOn(first) {
		tk.txn, tk.n, tk.from = first.txn, first.n, first.from
		return
	}
	tk.continues = nil
	if t.txn == nil && touches(tk.plan) && inside(tk.plan) && !tk.plan.Control.Ends {
		t.txn = t.newTxn(tk.looks.before(tk.from, true), true)
	}
	if t.txn == nil {
		return
	}
	tk.txn = t.txn
	if !inside(tk.plan) {
		return
	}
	t.txn.n++
	tk.n = t.txn.n
	t.txn.seen.sent(tk, t.txn.implicit)
	if touches(tk.plan) {
		t.begin(t.txn)
	}
}

func (t *Tracker) newTxn(from uint64, implicit bool) *txn {
	x := &txn{level: t.level, implicit: implicit, from: from}
	if t.nextLevel != "" {
		x.level, t.nextLevel = t.nextLevel, ""
	}
	return x
}

// noticed is a transaction that the server has begun already.
func noticed(t *Tracker) *txn {
	x := t.newTxn(t.rec.Tick(), false)
	x.seen.imported = t.dbms.SnapshotAt == product.AtBegin
	return x
}

// begin records the transaction's beginning, unless it is recorded.
func (t *Tracker) begin(x *txn) {
	if x.begun {
		return
	}
	x.begun = true
	x.id = t.rec.txns.Add(1)
	ev := &t.event
	*ev = history.Event{Kind: history.EventBegin, Session: t.session, Txn: x.id, From: x.from, Level: x.level, Implicit: x.implicit && !t.Manual}
	if !t.dbms.TransactionIDs { // there the server's own transaction ids are the tokens
		ev.Tokens = []string{t.rec.Token(x.id)}
	}
	t.record(ev)
}

// Stamp is what the statement's writes are to be marked with (Plan.Stamp). It needs all earlier answers, so a session
// that stamps sends one statement at a time.
func (t *Tracker) Stamp(tk *Ticket) string {
	t.place(tk)
	if tk.txn == nil {
		return t.rec.Stamp(0, 0)
	}
	t.begin(tk.txn)
	return t.rec.Stamp(tk.txn.id, tk.n)
}

// Drop takes back a ticket whose statement the server skipped (PostgreSQL, after an error until Sync).
func (t *Tracker) Drop(tk *Ticket) {
	t.flying--
	if mayCommit(tk.plan) {
		t.commits--
	}
}

// Answer says that the answer to the ticket begins. Answers come in the order of Sending.
func (t *Tracker) Answer(tk *Ticket) *Running {
	t.place(tk)
	tk.opened = true
	r := &Running{ticket: tk, limit: t.limits.Accesses, facts: &t.facts, accesses: t.spare.take(), values: t.rec.Requests != nil && t.rec.Requests.Values}
	return r
}

// Done says that the statement was answered, and returns the warnings that became due.
func (t *Tracker) Done(r *Running, res Result) []Warning {
	tk := r.ticket
	p := tk.plan
	t.Drop(tk) // it flies no more
	to := t.rec.Tick()
	if t.pauses.gap > 0 {
		t.pauses.end = time.Now()
	}
	if p.Control.Ends && t.txn != nil {
		// The MySQL family commits the open transaction before it executes such a statement; if it refused the
		// statement, the refusal may have come before the commit, which the next status shows.
		if res.Err == nil {
			t.txn.seen.last = tk.from
			t.end(history.OutcomeCommitted, to)
		} else {
			t.txn.ends = true
		}
	}
	if p.Control.Ends && t.txn == nil && touches(p) && inside(p) { // DDL is a transaction of its own
		t.txn = t.newTxn(tk.from, true)
		t.begin(t.txn)
		t.txn.n, tk.txn, tk.n = 1, t.txn, 1
	}
	if tk.n > 0 && tk.txn != nil && tk.txn == t.txn {
		if r.moments == nil {
			r.moments = res.Moments
		}
		t.statement(r, res, to)
	}
	keepsHeld(t)
	if res.Err != nil {
		t.refused(tk, res, to)
	} else {
		t.control(tk, res, to)
	}
	if t.rec.Due != nil {
		t.due = append(t.due, t.rec.Due(t.session)...)
	}
	return t.warnings()
}

// statement records one statement of the open transaction.
func (t *Tracker) statement(r *Running, res Result, to uint64) {
	p, x := r.ticket.plan, r.ticket.txn
	if !x.begun { // nothing was read or written yet
		return
	}
	text := secret.SQL(p.Text, t.dialect)
	if text.Any() { // the server's message may show the secret
		res.Err = secret.Error(res.Err)
	}
	ev, logs := &t.event, p.Log && res.Err == nil
	if logs || x.logged { // it waits for the log
		ev = new(history.Event)
	}
	*ev = history.Event{
		Kind: history.EventStmt, Session: t.session, Txn: x.id, N: r.ticket.n, From: r.ticket.from, To: to,
		SQL: text.SQL, Verb: p.Verb, Accesses: r.accesses,
		CurrentRead: p.CurrentRead, Predicate: p.Predicate, Error: res.Err,
	}
	if ev != &t.event {
		ev.At = t.rec.now()
	}
	r.decoded += int(min(res.Changed, math.MaxInt32))
	ev.Coverage, ev.Why = r.coverage()
	if p.Unseen && ev.Why == "" && res.Changed > 0 {
		ev.Why = history.UnseenRows
	}
	if t.requested(r, ev); text.Any() {
		ev.Params = ""
	}
	for i := range ev.Accesses {
		a := &ev.Accesses[i]
		if !a.Op.Writes() || a.Writer == "" {
			continue
		}
		if !x.collected[a.Writer] {
			if x.collected == nil {
				x.collected = make(map[string]bool, 1)
			}
			x.collected[a.Writer] = true
			ev.Tokens = append(ev.Tokens, a.Writer)
		}
		a.Writer = ""
	}
	if res.Suspended && p.Verb != "select" && ev.Coverage == history.CoverageExact {
		ev.Coverage, ev.Why = history.CoverageApproximate, inParts
	}
	t.cursor(r, ev, res)
	if first := r.ticket.continues; first != nil {
		if first.coverage != history.CoverageExact {
			ev.Coverage, ev.Why = first.coverage, first.why
		}
		first.coverage, first.why = ev.Coverage, ev.Why
	} else {
		t.predicates(r, ev, res)
		r.ticket.coverage, r.ticket.why = ev.Coverage, ev.Why
	}
	if p.Control.Verb == statement.ControlRollbackTo && res.Err == nil {
		if i := x.savepoint(p.Control.Name); i >= 0 {
			ev.UndoesFrom = x.saves[i].next
			undoes(t, x, ev.UndoesFrom)
		}
	}
	if logs && x.implicit {
		t.pending = append(t.pending, late{txn: x.id, n: ev.N, ev: ev, changed: overwrites(p, res), pinned: r.pinned, groups: r.logged})
	}
	if logs && !x.implicit {
		x.logged = true
	}
	if x.logged {
		if len(ev.Accesses) == 0 {
			t.spare.give(ev.Accesses)
			ev.Accesses = nil
		}
		x.held = append(x.held, held{ev, logs, overwrites(p, res), r.pinned, r.logged})
		if x.heldFacts += 1 + len(ev.Accesses) + len(ev.SQL)/heldText; x.heldFacts > heldMax || !t.facts.Takes(0) {
			t.flush(x, true)
		}
		return
	}
	unsettle(t, r, ev)
	t.record(ev)
	t.spare.give(ev.Accesses)
	ev.Accesses = nil
}

// inParts is why not everything is known of a statement whose rows are fetched in parts, perhaps not all.
const inParts = "its rows are fetched in parts"

func (x *txn) savepoint(name string) int {
	for i := len(x.saves) - 1; i >= 0; i-- {
		if x.saves[i].name == name {
			return i
		}
	}
	return -1
}

// refused follows what an error does to the transaction.
func (t *Tracker) refused(tk *Ticket, res Result, to uint64) {
	x := t.txn
	if x == nil {
		return
	}
	switch {
	case res.Err.Aborted:
		t.end(history.OutcomeAborted, to)
	case tk.plan.Control.Verb == statement.ControlCommit && t.dbms.CommitErrorAborts:
		t.end(history.OutcomeAborted, to)
	case tk.plan.Control.Verb == statement.ControlCommit:
		t.end(history.OutcomeUnknown, to)
	case x.implicit:
		x.failed = true
	}
}

// control follows what a statement that succeeded does to the transaction and the session.
func (t *Tracker) control(tk *Ticket, res Result, to uint64) {
	c := tk.plan.Control
	switch c.Verb {
	case statement.ControlBegin:
		switch {
		case t.txn == nil:
			t.txn = t.newTxn(tk.from, false)
		case t.txn.implicit:
			// PostgreSQL: BEGIN in a request of several statements takes the earlier ones into the transaction.
			t.txn.implicit = false
		}
		if c.Level != "" {
			t.txn.level = c.Level
		}
		if touches(tk.plan) || t.dbms.SnapshotAt == product.AtBegin { // WITH CONSISTENT SNAPSHOT reads, in effect
			t.begin(t.txn)
			t.txn.seen.atBegin(tk.from, to)
		}
	case statement.ControlCommit, statement.ControlRollback:
		if t.txn != nil {
			t.txn.seen.last = tk.from
		}
		t.finish(c, res, to)
	case statement.ControlSavepoint:
		if t.txn != nil {
			t.txn.saves = append(t.txn.saves, savepoint{c.Name, t.txn.n + 1})
		}
	case statement.ControlRelease:
		if t.txn != nil {
			if i := t.txn.savepoint(c.Name); i >= 0 {
				t.txn.saves = t.txn.saves[:i]
			}
		}
	case statement.ControlRollbackTo:
		if t.txn != nil {
			if i := t.txn.savepoint(c.Name); i >= 0 {
				t.txn.seen.back(t.dbms, t.txn.saves[i].next)
				t.txn.saves = t.txn.saves[:i+1]
			}
		}
	case statement.ControlLevel:
		t.setLevel(c)
	}
}

func (t *Tracker) finish(c statement.Control, res Result, to uint64) {
	var level string
	if t.txn != nil {
		level = t.txn.level
		outcome := history.OutcomeCommitted
		// COMMIT of a failed transaction is answered with the tag ROLLBACK (PostgreSQL manual, COMMIT).
		if c.Verb == statement.ControlRollback || res.Tag == "ROLLBACK" {
			outcome = history.OutcomeAborted
		}
		t.end(outcome, to)
	}
	if c.Chain {
		t.txn = noticed(t)
		if level != "" {
			t.txn.level = level
		}
	}
}

func (t *Tracker) setLevel(c statement.Control) {
	switch c.Scope {
	case statement.ScopeSession:
		t.level = c.Level
	case statement.ScopeNext:
		t.nextLevel = c.Level
	case statement.ScopeTransaction:
		if t.txn != nil && !t.txn.begun {
			t.txn.level = c.Level
		}
	}
}

// Status says whether the server has a transaction open after all that was answered so far.
func (t *Tracker) Status(open bool) []Warning {
	switch {
	case !open && t.txn != nil:
		outcome := history.OutcomeUnknown // ended by something that we did not understand
		switch {
		case t.txn.implicit && t.txn.failed:
			outcome = history.OutcomeAborted
		case t.txn.implicit, t.txn.ends:
			outcome = history.OutcomeCommitted
		}
		t.end(outcome, t.rec.Tick())
	case open && t.txn == nil:
		t.txn = noticed(t)
	case open:
		t.txn.ends = false
		// A transaction that began without BEGIN stays open: autocommit is off. What its first statement logged follows
		// as a late form of it.
		t.txn.implicit = false
	}
	return t.warnings()
}

// end records the end of the open transaction.
func (t *Tracker) end(outcome history.Outcome, to uint64) {
	x := t.txn
	t.txn = nil
	if !x.begun {
		return
	}
	lost := outcome != history.OutcomeAborted
	t.flush(x, lost)
	awaited := awaits(t, x)
	waits := awaited || slices.ContainsFunc(t.pending, func(l late) bool { return l.txn == x.id })
	for _, tk := range x.holds {
		if outcome == history.OutcomeCommitted && !waits { // one of them can be told of
			tk.told, waits = toldNothing, true
		}
	}
	t.event = history.Event{Kind: history.EventEnd, Session: t.session, Txn: x.id, From: x.from, To: to, Outcome: outcome, Pending: waits,
		Sent: x.seen.last}
	t.record(&t.event)
}

// flush records the statements that wait for the log. lost says that the log did not come although it was needed.
func (t *Tracker) flush(x *txn, lost bool) {
	for _, h := range x.held {
		if lost && h.logs && h.ev.Coverage == history.CoverageExact {
			h.ev.Coverage, h.ev.Why = history.CoverageApproximate, "the session's log, which tells the rest of it, could not be fetched"
		}
		t.record(h.ev)
		t.spare.give(h.ev.Accesses)
	}
	x.held, x.heldFacts, x.logged = nil, 0, false
	keepsHeld(t)
}

// keepsHeld counts what the session keeps where no answer comes: what waits for the log.
func keepsHeld(t *Tracker) { t.facts.Add(t.Held()*accessSize - t.facts.Own()) }

// heldMax bounds how many statements and accesses a transaction holds. Past it, or if all sessions together keep too many (facts), they are recorded
// without the log. heldText bytes of a statement's text count as one more.
const (
	heldMax  = 100_000
	heldText = 256
)

// Close records that the session is gone. What was open is aborted, unless something that commits was under way.
func (t *Tracker) Close() []Warning {
	if t.txn != nil {
		outcome := history.OutcomeAborted
		if t.commits > 0 {
			outcome = history.OutcomeUnknown
		}
		t.end(outcome, t.rec.Tick())
	}
	t.Settle("")
	t.facts.Forget()
	t.record(&history.Event{Kind: history.EventClose, Session: t.session, To: t.rec.Tick()})
	return t.warnings()
}

// Abandon records that the session goes on but is not observed any more, and why. How its open transaction ends is not known. The Tracker must not be
// used any more.
func (t *Tracker) Abandon(why string) {
	if t.txn != nil {
		t.end(history.OutcomeUnknown, t.rec.Tick())
	}
	t.Settle("")
	t.facts.Forget()
	t.record(&history.Event{Kind: history.EventClose, Session: t.session, To: t.rec.Tick(), Why: why})
}

func (t *Tracker) record(ev *history.Event) {
	t.due = append(t.due, t.rec.record(ev)...)
}

func (t *Tracker) warnings() []Warning {
	w := t.due
	t.due = nil
	return w
}

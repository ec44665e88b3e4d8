package pgwire

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/answer"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// pipeline stands between the two halves of an observed session: the messages that were sent and not answered, and what follows from them. The client half
// puts an entry in for each message that the server will answer; the server half takes the entries out as the answers come. So each answer is
// known to belong to its request however deeply the client pipelines. Both halves call its methods, which take the mutex; types without a mutex of
// their own (recording, queue, names, turn) are used by these methods only.
type pipeline struct {
	log     zerolog.Logger
	sending *sending
	wake    func()      // ends the waits of both halves for their connections
	left    func() bool // reports whether the client has hung up

	mu       sync.Mutex // guards what follows
	changed  *sync.Cond // something below changed
	events   recording
	queue    queue
	names    names
	turn     turn
	seq      uint64        // of the entries
	batch    uint64        // Syncs sent
	open     bool          // messages of the extended protocol were sent since the last Sync: the server is in a transaction, whatever it has said
	ran      bool          // an Execute was among them
	crowded  bool          // the client half waits for room in the queue
	bound    bool          // a portal was made since the session was ready last
	ignoring bool          // the server ignores everything up to a Sync that was not sent yet
	status   byte          // of the last ReadyForQuery
	lost     string        // why it is not known any more which answer belongs to which request; then everything passes as it is
	ended    bool          // the server half has ended
	draining bool          // the process ends, and the session as soon as it is idle
	leaving  bool          // the session ends because the process does
	watch    time.Duration // how often the server looks whether its client has hung up while it works; 0: never
	untidy   bool          // an error kept the server from closing the names of a question of ours, whose answer nobody awaits
}

func newPipeline(log zerolog.Logger, events recording, gate turn, wake func(), left func() bool) *pipeline {
	p := &pipeline{log: log, sending: newSending(), wake: wake, left: left, events: events, names: newNames(), turn: gate, status: 'I'}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// errGone ends the client half when the server half has ended.
var errGone = errors.New("the server's answers are not read any more")

// await waits until done, which is called with the mutex held. It returns errGone if the server half ends before, the end of the client if the
// server would notice it now, and at once if the pipeline is lost.
func (p *pipeline) await(done func() bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := false
	if p.watch > 0 {
		defer watching(p, &left)()
	}
	for !done() && !p.ended && p.lost == "" && !left {
		p.sending.park(true)
		p.changed.Wait()
	}
	p.sending.park(false)
	switch {
	case p.ended:
		return errGone
	case left:
		return &sideError{client, "read from", io.EOF}
	}
	return nil
}

// watching looks, as often as the server would, whether the client has hung up. Nobody reads the client meanwhile. mu is held, also when
// stop is called.
func watching(p *pipeline, left *bool) (stop func()) {
	over := false
	var timer *time.Timer
	timer = time.AfterFunc(p.watch, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case over:
		case p.left():
			*left = true
			p.changed.Broadcast()
		default:
			timer.Reset(p.watch)
		}
	})
	return func() {
		over = true
		timer.Stop()
	}
}

// stop ends the observation of the session, which goes on. mu is held.
func (p *pipeline) stop(why string) {
	if p.events.tracker != nil {
		p.log.Warn().Str("why", why).Msg("session is not observed any more")
		p.events.end(why)
	}
}

// guard calls f, which finds out what wirecheck wants to know and sends nothing. If f panics, the session goes on but is not observed any more.
func (p *pipeline) guard(f func()) {
	defer recovered(p)
	f()
}

// recovered, deferred, ends the observation of the session if the function panics.
func recovered(p *pipeline) {
	if v := recover(); v != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.events.panicked(v)
	}
}

// observed reports whether the session is still observed.
func (p *pipeline) observed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events.tracker != nil
}

// idle reports whether the server has nothing to do and is ready in this state, so that a question of ours can be sent.
func (p *pipeline) idle(status byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status == status && answered(p) && p.events.tracker != nil
}

// refusing reports whether the transaction has failed and nothing is on its way that may end it.
func refusing(p *pipeline) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status == 'E' && answered(p)
}

// settled reports whether the server has answered all, so that it has told all settings that it reports.
func settled(p *pipeline) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return answered(p)
}

// steady reports whether nothing was executed of which the server has yet to tell what it did to the settings: it does so in front of ReadyForQuery.
func steady(p *pipeline) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ran && !p.ignoring && !slices.ContainsFunc(p.queue.items, func(e *entry) bool {
		return e.request != parse && e.request != bind && e.request != describe && e.request != closing
	})
}

// answered reports whether the server has answered all that was sent. p.mu is held.
func answered(p *pipeline) bool { return !p.open && p.queue.empty() && !p.ignoring }

// alone reports whether everything that was sent before or behind an entry is answered.
func (p *pipeline) alone(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue.items) == 1 && p.queue.items[0] == e && e.more == 0
}

// set takes over settings: the level of the next transactions, and how often the server looks whether its client has hung up.
func (p *pipeline) set(level string, watch time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.setLevel(level)
	p.watch = watch
}

// lose gives up: it is not known any more which answer belongs to which request.
func (p *pipeline) lose(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost != "" {
		return
	}
	p.lost = why
	p.ungate()
	p.stop(why)
	p.queue.clear()
	p.changed.Broadcast()
}

// drain ends the session as soon as it is idle.
func (p *pipeline) drain() {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	p.leave()
}

// leave ends the session if it is to end and is idle.
func (p *pipeline) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.draining || p.leaving || p.status != 'I' || !answered(p) {
		return
	}
	p.leaving = true
	p.wake()
}

// end says that the server half has ended.
func (p *pipeline) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.changed.Broadcast()
}

// close records the end of the session. The warnings that become due have no client any more.
func (p *pipeline) close() (leaving bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events.close()
	p.queue.share.Forget()
	p.names.texts.Forget()
	return p.leaving
}

// What the client half does.

// failed reports whether the session is in a transaction that failed, as far as the server has said.
func (p *pipeline) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status == 'E'
}

// full reports whether too much awaits its answer, and whether the server may hold the answers back until a Flush or Sync.
func (p *pipeline) full() (full, back bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crowded = p.queue.full()
	return p.crowded, p.open
}

// hold reports whether a message that takes n bytes may be held while it is handled, which drop ends. Where it must be looked at, it may.
func hold(p *pipeline, n int, must bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !must && !p.queue.share.Takes(n) {
		return false
	}
	p.queue.share.Add(n)
	return true
}

// drop ends what hold began.
func drop(p *pipeline, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.share.Add(-n)
}

// sync says that a Sync is about to be sent.
func (p *pipeline) sync() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ignoring, p.open, p.ran = false, false, false
	p.batch++
	if !p.queue.more(syncing) {
		p.push(&entry{request: syncing})
	}
}

// copied says that an end of copied data is about to be sent.
func (p *pipeline) copied() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.queue.more(copyEnd) {
		p.push(&entry{request: copyEnd})
	}
}

// send queues a message that is about to be sent. It returns false if the server will ignore it.
func (p *pipeline) send(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.request == execute {
		p.names.executed(e)
	}
	if !p.push(e) {
		p.names.takeBack(e)
		return false
	}
	if e.request == parse && e.stmt != nil {
		e.stmt.seq, e.stmt.batch, e.stmt.parsing = e.seq, p.batch, e
	}
	p.names.sent(e)
	p.events.sent(e, &p.names)
	if e.request == bind && len(p.names.portals) >= maxPortals {
		p.stop("it has more portals than are remembered")
	}
	return true
}

// push queues an entry. It returns false if the server will ignore the message. mu is held.
func (p *pipeline) push(e *entry) bool {
	if p.lost != "" || p.ignoring {
		return false
	}
	switch e.request {
	case parse, bind, describe, execute, closing:
		p.open = true
		p.ran = p.ran || e.request == execute
	case simpleQuery:
		p.open, p.ran = false, false // it ends the transaction that the others began
	}
	p.turn.sent(e)
	p.events.looks(e, p.open)
	p.seq++
	e.seq = p.seq
	p.queue.push(e)
	return true
}

// sendAgain queues the messages that replace a statement by another form of it under the same name: a Close, unless it has no name, and a Parse.
// It returns false if the server would ignore them.
func (p *pipeline) sendAgain(old, now *prepared) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost != "" || p.ignoring {
		return false
	}
	if old.name != "" {
		p.push(&entry{request: closing, ours: true, undo: undo{kind: 'S', name: old.name, stmt: old}})
	}
	none := *old // if the server refuses the Parse, it has neither
	none.gone = true
	e := &entry{
		request: parse, ours: true, client: now.client, script: now.script, name: old.name, stmt: now,
		undo: undo{kind: 'S', name: old.name, stmt: &none},
	}
	p.push(e)
	now.seq, now.batch, now.parsing = e.seq, p.batch, e
	p.names.set(old.name, now)
	return true
}

// between reports whether the last message that the server got ends a transaction, unless a BEGIN made it.
func between(p *pipeline) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.open && !p.ignoring && p.lost == ""
}

// statement finds a prepared statement. If the server has not answered its Parse, which lies before a Sync, it is not known which statement the
// name means: then its answer must be awaited.
func (p *pipeline) statement(name string) (stmt *prepared, awaited *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stmt = p.names.statements[name]
	if stmt != nil && stmt.parsing != nil && !stmt.parsing.resolved && stmt.batch < p.batch &&
		(stmt.again() || stmt.parsing.undo.stmt.again()) {
		return stmt, stmt.parsing
	}
	return stmt, nil
}

// replace gives a name another form of the statement that it means, unless it means another one by now.
func (p *pipeline) replace(old, now *prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names.statements[old.name] == old {
		p.names.set(old.name, now)
	}
}

// remembers reports whether one more statement can be remembered; limit bounds their number.
func (p *pipeline) remembers(name, sql string, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names.takes(name, sql, limit)
}

// portal finds a portal; nil if it is not known.
func (p *pipeline) portal(name string) *portal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names.portals[name]
}

// hiddenPortal finds a named portal with hidden columns that a text may mention.
func (p *pipeline) hiddenPortal(sql string) *rewrite.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names.hiddenPortal(sql)
}

// hiddenStatements finds named statements with hidden columns that a text may mention. In a failed transaction there are none: EXECUTE is
// refused there, and so would be a Parse of ours.
func (p *pipeline) hiddenStatements(sql string) []*prepared {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status == 'E' {
		return nil
	}
	return p.names.hiddenStatements(sql)
}

// What the server half does.

// head gives the entry that is answered next, nil if there is none.
func (p *pipeline) head() (e *entry, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.head(), p.lost != ""
}

// pop takes the head off the queue. mu is held.
func (p *pipeline) pop() {
	p.queue.pop()
	if p.crowded && p.queue.hasRoom() {
		p.crowded = false
		p.changed.Broadcast()
	}
}

// begin gives the running statement of an entry, nil if it has none. Its answer begins at the latest now.
func (p *pipeline) begin(e *entry) *record.Running {
	e.begun = true
	if e.running != nil || e.next >= len(e.tickets) {
		return e.running
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events.begin(e)
}

// complete takes note of a ParseComplete, BindComplete or CloseComplete, or of the answer to a Describe.
func (p *pipeline) complete(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pop()
	p.bound = p.bound || e.request == bind
	if e.request == parse {
		e.resolved = true
		e.undo = undo{} // it cannot fail any more, so what was there before can go
		p.changed.Broadcast()
	}
}

// answered takes note of the answer to a question of ours.
func (p *pipeline) answered(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pop()
	e.own.done = true
	if e.own.settles {
		p.untidy = p.untidy || e.own.err != nil
		p.events.settle(e.own)
	}
	p.changed.Broadcast()
}

// finish ends the statement that runs, with a message of this kind. It says whether its CommandComplete may wait for the ReadyForQuery.
func (p *pipeline) finish(e *entry, tag string, kind byte) (ws []record.Warning, hold bool) {
	if kind != 'I' || e.request == execute {
		p.begin(e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.copying {
		e.copying = false
		p.queue.endCopy()
	}
	if p.names.deallocated(tag, e.current(), e.seq) {
		defer p.changed.Broadcast()
	}
	if kind == 'C' {
		followCursor(p, e, tag)
	}
	e.rows = nil
	hold = p.queue.follows(syncing)
	switch {
	case e.request == execute:
		ws = p.events.done(e, record.Result{Tag: tag, Suspended: kind == 's'})
		p.pop()
	case e.script.Unparsed: // there may be any number of answers
		e.tag, hold = tag, true
	case kind == 'C':
		next := e.next + 1
		ws = p.events.done(e, record.Result{Tag: tag})
		e.next = next // also if nothing is recorded
		hold = e.next >= len(e.script.Plans)
	}
	return ws, hold
}

// deadlockDetected is the SQLSTATE of a deadlock's victim (manual, appendix A).
const deadlockDetected = "40P01"

// refuse follows what an error does to the requests.
func (p *pipeline) refuse(e *entry, refusal *answer.Error) (ws []record.Warning) {
	p.begin(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	result := record.Result{Err: refusal}
	p.turn.victim = p.turn.victim || refusal.Code == deadlockDetected
	copying := e.copying
	e.copying = false
	if copying && e.request == execute {
		p.queue.endCopy()
	}
	switch e.request {
	case simpleQuery, function:
		e.rows = nil
		ws = p.events.done(e, result)
		p.events.drop(e)
		e.failed = true
		return ws
	case syncing: // the implicit transaction could not be committed
		return p.events.extra(&rewrite.Plan{Verb: "commit"}, result)
	case execute:
		ws = p.events.done(e, result)
	default:
		if plan := e.refusedPlan(); plan != nil {
			ws = p.events.extra(plan, result)
		}
	}
	p.ignore()
	return ws
}

// ignore drops what the server ignores after an error. mu is held.
func (p *pipeline) ignore() {
	if e := p.queue.head(); e != nil && e.request == parse && e.name == "" && !e.ours {
		e.undo.stmt = nil // the server has dropped the old one before it read the text
	}
	ignored, synced := p.queue.beforeSync()
	for i := len(ignored) - 1; i >= 0; i-- {
		p.events.drop(ignored[i])
		ignored[i].resolved = true
		p.names.takeBack(ignored[i])
	}
	if !synced {
		p.ignoring = true
	}
	p.changed.Broadcast()
}

// ready takes note of the ReadyForQuery that ends an entry's answer.
func (p *pipeline) ready(e *entry, status byte) (ws []record.Warning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.running == nil && !e.failed && e.next < len(e.tickets) && e.request != simpleQuery {
		p.events.begin(e)
	}
	ws = p.events.done(e, record.Result{Tag: e.tag}) // of a text that was not understood, or a function call: this is its end
	p.events.drop(e)
	p.status, p.bound = status, false
	p.pop()
	p.changed.Broadcast() // see awaitCursors
	ws = append(ws, p.events.ready(status)...)
	p.turnOver(e)
	if status == 'I' {
		p.names.transactionEnded(e.seq)
	}
	return ws
}

// strayReady takes note of a ReadyForQuery that belongs to no entry: that of a Sync that we believed the server had ignored.
func (p *pipeline) strayReady(status byte) []record.Warning {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.bound = status, false
	ws := p.events.ready(status)
	p.turnOver(nil)
	return ws
}

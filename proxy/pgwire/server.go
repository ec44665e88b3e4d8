package pgwire

import (
	"encoding/binary"
	"errors"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// answers relays what the server sends until it sends no more.
func (o *observing) answers() error {
	for {
		if err := o.answer(); err != nil {
			return errors.Join(err, o.rest())
		}
	}
}

// rest sends what is complete when the server's stream broke.
func (o *observing) rest() error {
	if err := o.release(); err != nil {
		return err
	}
	return o.toClient.flush()
}

// answer relays one message.
func (o *observing) answer() error {
	f, err := o.fromServer.header(maxMessage)
	if err != nil {
		return err
	}
	o.mu.Lock()
	e := o.queue.head()
	lost := o.lost != ""
	o.mu.Unlock()
	switch {
	case lost:
		return o.relayAnswer(f)
	case f.kind == 'D':
		return o.dataRow(f, e)
	case f.kind == 'N', f.kind == 'A', f.kind == 'S':
		return o.aside(f, e)
	case e != nil && e.request == ownQuery:
		return o.ownAnswer(f, e)
	case e == nil:
		return o.unasked(f)
	}
	switch f.kind {
	case 'T', 'n':
		return o.shape(f, e)
	case '1', '2', '3':
		return o.complete(f, e)
	case 'C', 'I', 's':
		return o.done(f, e)
	case 'E':
		return o.failure(f, e)
	case 'Z':
		return o.turn(f, e)
	case 'G':
		e.copying = true
		o.begin(e)
	case 'H', 'W':
		o.begin(e)
	}
	return o.relayAnswer(f)
}

// relayAnswer passes a message on as it is.
func (o *observing) relayAnswer(f frame) error {
	if err := o.release(); err != nil {
		return err
	}
	if err := o.toClient.header(f.kind, f.size); err != nil {
		return err
	}
	return o.body(f.size)
}

// body passes n bytes of a message on.
func (o *observing) body(n int) error {
	o.inside = true
	if err := o.fromServer.copyTo(o.toClient, n); err != nil {
		return err
	}
	o.inside = false
	return nil
}

// release lets go of a CommandComplete that was held back.
func (o *observing) release() error {
	if o.held == nil {
		return nil
	}
	held := o.held
	o.held = nil
	return o.toClient.message('C', held)
}

// aside relays what may come at any time: notices, notifications, reports of settings.
func (o *observing) aside(f frame, e *entry) error {
	if f.size > smallMessage {
		return o.relayAnswer(f)
	}
	body, err := o.fromServer.body(f.size)
	if err != nil {
		return err
	}
	switch {
	case f.kind == 'S':
		o.mu.Lock()
		o.remember(body)
		o.encoding()
		o.mu.Unlock()
	case f.kind == 'N' && e != nil && e.ours:
		return nil
	case f.kind == 'N':
		body = mapped(body, e)
	}
	if err := o.release(); err != nil {
		return err
	}
	return o.toClient.message(f.kind, body)
}

// unasked relays what comes although nothing was asked: the reason why the server ends the session, or the
// ReadyForQuery of a Sync that we believed it had ignored.
func (o *observing) unasked(f frame) error {
	switch f.kind {
	case 'E':
		o.parting = true
	case 'Z':
		return o.stray(f)
	default:
		o.mu.Lock()
		o.lose("the server sent a message of kind " + string(rune(f.kind)) + " that nothing had asked for")
		o.mu.Unlock()
	}
	return o.relayAnswer(f)
}

// stray relays a ReadyForQuery that belongs to no entry.
func (o *observing) stray(f frame) error {
	if f.size != 1 {
		return o.relayAnswer(f)
	}
	body, err := o.fromServer.body(1)
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.status = body[0]
	ws := o.tracker.Status(o.status != 'I')
	o.turnOver(nil)
	o.mu.Unlock()
	return o.readyForQuery(ws, body[0])
}

// begin gives the running statement of an entry, nil if it has none. Its answer begins at the latest now.
func (o *observing) begin(e *entry) *record.Running {
	if e.running != nil || e.next >= len(e.tickets) {
		return e.running
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	e.running = o.tracker.Answer(e.tickets[e.next])
	return e.running
}

// current is the plan by which the answer that comes now is taken apart, or nil.
func (e *entry) current() *rewrite.Plan {
	switch {
	case e.request == simpleQuery && e.next < len(e.script.Plans):
		return e.script.Plans[e.next]
	case e.request == execute, e.request == describe:
		return e.plan
	}
	return nil
}

// shape relays a RowDescription or NoData.
func (o *observing) shape(f frame, e *entry) error {
	plan := e.current()
	if e.request == simpleQuery {
		o.begin(e)
	} else {
		o.pop(e)
	}
	switch {
	case plan == nil || plan.Hidden == 0 || f.kind == 'n':
		return o.relayAnswer(f)
	case plan.NoRows:
		if err := o.fromServer.skip(f.size); err != nil {
			return err
		}
		if err := o.release(); err != nil {
			return err
		}
		if e.request == describe {
			return o.toClient.header('n', 0)
		}
		return nil
	}
	return o.rowDescription(f, plan)
}

// pop takes the head off the queue.
func (o *observing) pop(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queue.head() == e {
		o.queue.pop()
	}
}

// complete relays a ParseComplete, BindComplete or CloseComplete.
func (o *observing) complete(f frame, e *entry) error {
	want := map[byte]request{'1': parse, '2': bind, '3': closing}[f.kind]
	if e.request != want {
		o.mu.Lock()
		o.lose("an answer does not belong to its request")
		o.mu.Unlock()
		return o.relayAnswer(f)
	}
	o.mu.Lock()
	o.queue.pop()
	if e.request == parse {
		e.resolved = true
		e.undo = undo{} // it cannot fail any more, so what was there before can go
		o.news.Broadcast()
	}
	o.mu.Unlock()
	if e.ours {
		return o.fromServer.skip(f.size)
	}
	return o.relayAnswer(f)
}

// done relays a CommandComplete, EmptyQueryResponse or PortalSuspended.
func (o *observing) done(f frame, e *entry) error {
	if e.request != simpleQuery && e.request != execute {
		o.mu.Lock()
		o.lose("an answer does not belong to its request")
		o.mu.Unlock()
		return o.relayAnswer(f)
	}
	if f.size > smallMessage {
		return o.relayAnswer(f)
	}
	body, err := o.fromServer.body(f.size)
	if err != nil {
		return err
	}
	if err := o.release(); err != nil {
		return err
	}
	tag := ""
	if f.kind == 'C' {
		tag, _, _ = text(body)
	}
	ws, hold := o.finish(e, tag, f.kind)
	if err := o.tell(ws); err != nil {
		return err
	}
	if hold && f.kind == 'C' {
		o.held = append([]byte{}, body...)
		return nil
	}
	return o.toClient.message(f.kind, body)
}

// finish ends the statement that runs. It says whether its CommandComplete may wait for the ReadyForQuery.
func (o *observing) finish(e *entry, tag string, kind byte) (ws []record.Warning, hold bool) {
	if kind != 'I' || e.request == execute {
		o.begin(e)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.copying {
		e.copying = false
		o.queue.endCopy()
	}
	plan := e.current()
	if kind == 'C' && plan != nil && changesSchema(plan) {
		o.database.changes.Add(1)
	}
	o.forget(tag, e.seq)
	hold = o.queue.syncFollows()
	switch {
	case e.request == execute:
		if e.running != nil {
			ws = o.tracker.Done(e.running, record.Result{Tag: tag})
			o.logStatement(plan, tag, nil)
		}
		o.queue.pop()
	case e.script.Unparsed: // there may be any number of answers
		e.tag, hold = tag, true
	case kind == 'C':
		if e.running != nil {
			ws = o.tracker.Done(e.running, record.Result{Tag: tag})
			o.logStatement(plan, tag, nil)
		}
		e.running = nil
		e.next++
		hold = e.next >= len(e.script.Plans)
	}
	return ws, hold
}

// forget drops prepared statements that SQL dropped. mu is held.
func (o *observing) forget(tag string, seq uint64) {
	if tag != "DEALLOCATE ALL" && tag != "DISCARD ALL" {
		return
	}
	for name, p := range o.statements {
		if p.seq < seq {
			delete(o.statements, name)
		}
	}
}

func (o *observing) logStatement(p *rewrite.Plan, tag string, err *serverError) {
	ev := o.Log.Debug()
	if ev == nil || p == nil {
		return
	}
	ev = ev.Str("verb", p.Verb).Str("coverage", string(p.Coverage))
	if p.Why != "" {
		ev = ev.Str("why", p.Why)
	}
	if err != nil {
		ev = ev.Str("sqlstate", err.code)
	} else {
		ev = ev.Str("tag", tag)
	}
	ev.Msg("statement")
}

// failure relays an ErrorResponse.
func (o *observing) failure(f frame, e *entry) error {
	o.begin(e)
	var body []byte
	failed := &serverError{}
	if f.size <= o.Config.Limits.Text {
		var err error
		if body, err = o.fromServer.body(f.size); err != nil {
			return err
		}
		failed = parseError(body)
		if ourFault(body, e, failed.code) {
			o.database.changes.Add(1)
			o.Log.Warn().Str("sqlstate", failed.code).Str("error", failed.message).Msg("a rewritten statement was refused, the catalog is read again")
		}
		body = mapped(body, e)
		if e.spent != nil && failed.code == "34000" {
			body = spentPortal(failed, *e.spent)
			failed = parseError(body)
		}
		if e.request == bind && e.plan != nil && e.plan.Hidden > 0 {
			body = recounted(body, e.plan.Hidden)
		}
	}
	ws := o.failed(e, failed)
	if failed.severity == "FATAL" || failed.severity == "PANIC" {
		o.parting = true
	}
	if body == nil {
		return errors.Join(o.tell(ws), o.relayAnswer(f))
	}
	if err := o.release(); err != nil {
		return err
	}
	if err := o.tell(ws); err != nil {
		return err
	}
	return o.toClient.message('E', body)
}

// deadlockDetected is the SQLSTATE of a deadlock's victim (manual, appendix A).
const deadlockDetected = "40P01"

// failed follows what an error does to the requests.
func (o *observing) failed(e *entry, failed *serverError) (ws []record.Warning) {
	o.mu.Lock()
	defer o.mu.Unlock()
	result := record.Result{Err: &history.ServerError{Code: failed.code, Message: failed.message}}
	o.gated.victim = o.gated.victim || failed.code == deadlockDetected
	copying := e.copying
	e.copying = false
	if copying && e.request == execute {
		if !o.queue.endCopy() {
			// The rest of what the client copies is ignored, up to a Sync that it has not sent yet.
			o.skipping = true
		}
	}
	switch e.request {
	case simpleQuery, function:
		if e.running != nil {
			ws = o.tracker.Done(e.running, result)
			o.logStatement(e.current(), "", failed)
			e.running = nil
			e.next++
		}
		for ; e.next < len(e.tickets); e.next++ {
			o.tracker.Drop(e.tickets[e.next])
		}
		e.failed = true
		return ws
	case syncing: // the implicit transaction could not be committed
		return o.extra(&rewrite.Plan{Verb: "commit"}, result)
	case execute:
		if e.running != nil {
			ws = o.tracker.Done(e.running, result)
			o.logStatement(e.plan, "", failed)
			e.running = nil
			e.next++
		}
	default:
		if plan := e.refusedPlan(); plan != nil {
			ws = o.extra(plan, result)
		}
	}
	o.skip()
	return ws
}

// refusedPlan is the plan of the statement whose Parse, Bind or Describe was refused.
func (e *entry) refusedPlan() *rewrite.Plan {
	if e.plan != nil {
		return e.plan
	}
	if e.script != nil && len(e.script.Plans) > 0 {
		return e.script.Plans[0]
	}
	return nil
}

// extra records a refusal that belongs to no Execute: it makes the transaction fail all the same. mu is held.
func (o *observing) extra(p *rewrite.Plan, r record.Result) []record.Warning {
	return o.tracker.Done(o.tracker.Answer(o.tracker.Sending(p)), r)
}

// skip drops what the server ignores after an error: everything up to a Sync (manual, 55.2.3). mu is held.
func (o *observing) skip() {
	n := 0
	for n < len(o.queue.items) && o.queue.items[n].request != syncing {
		n++
	}
	dropped := o.queue.items[:n]
	for i := n - 1; i >= 0; i-- {
		e := dropped[i]
		for _, tk := range e.tickets[min(e.next, len(e.tickets)):] {
			o.tracker.Drop(tk)
		}
		e.resolved = true
		o.takeBack(e)
	}
	if n == len(o.queue.items) {
		o.skipping = true
	}
	o.queue.items = o.queue.items[n:]
	o.news.Broadcast()
}

// takeBack makes a name mean again what it meant before a message that had no effect. mu is held.
func (o *observing) takeBack(e *entry) {
	switch u := e.undo; u.kind {
	case 'S':
		if now := o.statements[u.name]; now != nil && now.seq > e.seq {
			return
		}
		if u.stmt == nil {
			delete(o.statements, u.name)
		} else {
			o.statements[u.name] = u.stmt
		}
	case 'P':
		if now := o.portals[u.name]; now != nil && now.seq > e.seq {
			return
		}
		if u.port == nil {
			delete(o.portals, u.name)
		} else {
			o.portals[u.name] = u.port
		}
	}
}

// turn relays a ReadyForQuery.
func (o *observing) turn(f frame, e *entry) error {
	if f.size != 1 || !e.turns() {
		o.mu.Lock()
		o.lose("the server is ready before it has answered")
		o.mu.Unlock()
		return o.relayAnswer(f)
	}
	body, err := o.fromServer.body(1)
	if err != nil {
		return err
	}
	status := body[0]
	o.mu.Lock()
	var ws []record.Warning
	if e.running == nil && !e.failed && e.next < len(e.tickets) && e.request != simpleQuery {
		e.running = o.tracker.Answer(e.tickets[e.next])
	}
	if e.running != nil { // it was not understood, or it is a function call: this is its end
		ws = o.tracker.Done(e.running, record.Result{Tag: e.tag})
		o.logStatement(e.running.Plan(), e.tag, nil)
		e.next++
	}
	for ; e.next < len(e.tickets); e.next++ {
		o.tracker.Drop(e.tickets[e.next])
	}
	o.status = status
	o.queue.pop()
	ws = append(ws, o.tracker.Status(status != 'I')...)
	o.turnOver(e)
	if status == 'I' {
		if o.schema {
			o.database.changes.Add(1) // now others see it
		}
		for name, p := range o.portals { // portals end with their transaction
			if p.seq < e.seq {
				delete(o.portals, name)
			}
		}
	}
	o.mu.Unlock()
	return o.readyForQuery(ws, status)
}

// readyForQuery ends a turn: warnings, the CommandComplete that waited for them, ReadyForQuery.
func (o *observing) readyForQuery(ws []record.Warning, status byte) error {
	if err := o.tell(ws); err != nil {
		return err
	}
	if err := o.release(); err != nil {
		return err
	}
	if err := o.toClient.message('Z', []byte{status}); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leave()
	return nil
}

// ownAnswer takes an answer to a question of ours.
func (o *observing) ownAnswer(f frame, e *entry) error {
	if f.kind != 'E' && f.kind != 'Z' {
		return o.fromServer.skip(f.size)
	}
	if f.size > smallMessage {
		e.own.err = &serverError{message: "an error that is too long"}
		return o.fromServer.skip(f.size)
	}
	body, err := o.fromServer.body(f.size)
	if err != nil {
		return err
	}
	if f.kind == 'E' {
		e.own.err = parseError(body)
		if s := e.own.err.severity; s == "FATAL" || s == "PANIC" { // the session is over: the client must know why
			o.parting = true
			return o.toClient.message('E', body)
		}
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue.pop()
	e.own.done = true
	o.news.Broadcast()
	return nil
}

// welcomeClient relays the first ReadyForQuery, which the client has waited for.
func (o *observing) welcomeClient() error {
	if err := o.toClient.message('Z', []byte{'I'}); err != nil {
		return err
	}
	return o.toClient.flush()
}

// ownRow keeps a row of an answer to a question of ours.
func (o *observing) ownRow(f frame, q *own) error {
	if q.size += f.size; q.size > maxOwn {
		q.rows, q.err = nil, &serverError{message: "the answer is too long"}
		return o.fromServer.skip(f.size)
	}
	body, err := o.fromServer.body(f.size)
	if err != nil {
		return err
	}
	body = append([]byte{}, body...)
	var row [][]byte
	if len(body) >= 2 {
		n := int(binary.BigEndian.Uint16(body))
		body = body[2:]
		for range n {
			cell, rest, ok := cell(body)
			if !ok {
				break
			}
			row, body = append(row, cell), rest
		}
	}
	q.rows = append(q.rows, row)
	return nil
}

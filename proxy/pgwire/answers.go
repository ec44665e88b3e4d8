package pgwire

import (
	"encoding/binary"
	"errors"

	"github.com/rs/zerolog"

	"wirecheck/answer"
	"wirecheck/proxy"
	"wirecheck/proxy/record"
)

// serverHalf reads the server of an observed session and relays its answers. One goroutine runs it, and only it writes to the client.
type serverHalf struct {
	in          *reader // from the server
	out         *writer // to the client
	pipeline    *pipeline
	environment *environment
	log         zerolog.Logger
	limits      proxy.Limits
	silent      func() bool  // the client gets no warnings
	share       record.Share // of the message at hand, where it does not fit in the reader's buffer

	hidden    [][]byte         // room for the hidden cells of a row
	row       []record.Cell    // and for the client's values
	due       []record.Warning // that wait for their client
	requests  *clientHalf
	repeated  int    // so many notices come again, see again
	held      []byte // a CommandComplete that waits for the ReadyForQuery behind it
	holding   []byte // room for it
	inside    bool   // a message to the client was begun and not ended
	explained bool   // the server said why it ends the session
}

// run relays what the server sends until it sends no more.
func (a *serverHalf) run() error {
	for {
		if err := a.answer(); err != nil {
			return errors.Join(err, a.rest())
		}
	}
}

// rest sends what is complete when the server's stream broke.
func (a *serverHalf) rest() error {
	if err := a.release(); err != nil {
		return err
	}
	return a.out.flush()
}

// answer relays one message.
func (a *serverHalf) answer() error {
	a.share.Forget()
	f, err := a.in.header(maxMessage)
	if err != nil {
		return err
	}
	e, lost := a.pipeline.head()
	switch {
	case lost:
		return a.relay(f)
	case f.kind == 'D':
		return a.dataRow(f, e)
	case f.kind == 'N', f.kind == 'A', f.kind == 'S':
		return a.aside(f, e)
	case e != nil && e.request == ownQuery:
		return a.ownAnswer(f, e)
	case e == nil:
		return a.unasked(f)
	}
	switch f.kind {
	case 'T', 'n':
		return a.shape(f, e)
	case 't':
		return a.parameters(f, e)
	case '1', '2', '3':
		return a.complete(f, e)
	case 'C', 'I', 's':
		return a.done(f, e)
	case 'E':
		return a.failure(f, e)
	case 'Z':
		return a.ready(f, e)
	case 'G':
		e.copying = true
		a.pipeline.begin(e)
	case 'H', 'W':
		a.pipeline.begin(e)
	}
	return a.relay(f)
}

// holds reports whether n bytes of the message may be held to be looked at, of at most limit bytes.
func (a *serverHalf) holds(n, limit int) bool {
	if n > limit {
		return false
	}
	if n <= bufferLen {
		return true
	}
	if !a.share.Takes(n) {
		return false
	}
	a.share.Add(n)
	return true
}

// relay passes a message on as it is.
func (a *serverHalf) relay(f frame) error {
	if err := a.release(); err != nil {
		return err
	}
	if err := a.out.header(f.kind, f.size); err != nil {
		return err
	}
	return a.body(f.size)
}

// body passes n bytes of a message on.
func (a *serverHalf) body(n int) error {
	a.inside = true
	if err := a.in.copyTo(a.out, n); err != nil {
		return err
	}
	a.inside = false
	return nil
}

// release lets go of a CommandComplete that was held back.
func (a *serverHalf) release() error {
	if a.held == nil {
		return nil
	}
	held := a.held
	a.held = nil
	return a.out.message('C', held)
}

// aside relays what may come at any time: notices, notifications, reports of settings.
func (a *serverHalf) aside(f frame, e *entry) error {
	if f.size > smallMessage {
		return a.relay(f)
	}
	body, err := a.in.body(f.size)
	if err != nil {
		return err
	}
	switch {
	case f.kind == 'S':
		if name, value, ok := parameterStatus(body); ok {
			a.environment.reported(name, value)
		}
	case f.kind == 'N' && e != nil && e.ours:
		return nil
	case f.kind == 'N' && a.repeated > 0:
		a.repeated--
		return nil
	case f.kind == 'N':
		if e != nil {
			e.notices++
		}
		a.pipeline.guard(func() { body = mapped(body, e) })
	}
	if err := a.release(); err != nil {
		return err
	}
	return a.out.message(f.kind, body)
}

// unasked relays what comes although nothing was asked: the reason why the server ends the session, or the
// ReadyForQuery of a Sync that we believed it had ignored.
func (a *serverHalf) unasked(f frame) error {
	switch f.kind {
	case 'E':
		a.explained = true
	case 'Z':
		return a.stray(f)
	default:
		a.pipeline.lose("the server sent a message of kind " + string(rune(f.kind)) + " that nothing had asked for")
	}
	return a.relay(f)
}

// stray relays a ReadyForQuery that belongs to no entry.
func (a *serverHalf) stray(f frame) error {
	if f.size != 1 {
		return a.relay(f)
	}
	body, err := a.in.body(1)
	if err != nil {
		return err
	}
	return a.readyForQuery(a.pipeline.strayReady(body[0]), body)
}

// shape relays a RowDescription or NoData.
func (a *serverHalf) shape(f frame, e *entry) error {
	plan := e.current()
	if e.request == simpleQuery {
		if f.kind == 'T' && (plan == nil || plan.Hidden == 0) && f.size <= a.limits.Row && hasCursors(a.pipeline) {
			return a.fetch(f, e)
		}
		a.pipeline.begin(e)
	} else {
		a.pipeline.complete(e)
	}
	switch {
	case plan == nil || plan.Hidden == 0 || f.kind == 'n':
		return a.relay(f)
	case plan.NoRows:
		if err := a.in.skip(f.size); err != nil {
			return err
		}
		if err := a.release(); err != nil {
			return err
		}
		if e.request == describe {
			return a.out.header('n', 0)
		}
		return nil
	}
	return a.rowDescription(f, plan, e)
}

// complete relays a ParseComplete, BindComplete or CloseComplete.
func (a *serverHalf) complete(f frame, e *entry) error {
	if e.request != completes(f.kind) {
		a.pipeline.lose("an answer does not belong to its request")
		return a.relay(f)
	}
	a.pipeline.complete(e)
	if e.ours {
		return a.in.skip(f.size)
	}
	return a.relay(f)
}

// completes is the request that a ParseComplete, BindComplete or CloseComplete answers.
func completes(kind byte) request {
	switch kind {
	case '1':
		return parse
	case '2':
		return bind
	}
	return closing
}

// done relays a CommandComplete, EmptyQueryResponse or PortalSuspended.
func (a *serverHalf) done(f frame, e *entry) error {
	if e.request != simpleQuery && e.request != execute {
		a.pipeline.lose("an answer does not belong to its request")
		return a.relay(f)
	}
	if f.size > smallMessage {
		return a.relay(f)
	}
	body, err := a.in.body(f.size)
	if err != nil {
		return err
	}
	if err := a.release(); err != nil {
		return err
	}
	if e.blank {
		body, f.kind, e.blank = unnumbered(body, f.kind), 'C', false
	}
	tag := ""
	if f.kind == 'C' {
		tag, _, _ = text(body)
	}
	if plan := e.current(); f.kind == 'C' && plan != nil && changesSchema(plan) {
		a.environment.database.changes.Add(plan.Changes...)
	}
	ws, hold := a.pipeline.finish(e, tag, f.kind)
	if err := a.warn(ws); err != nil {
		return err
	}
	if hold && f.kind == 'C' {
		a.held = append(a.holding[:0], body...)
		a.holding = a.held
		return nil
	}
	return a.out.message(f.kind, body)
}

// unnumbered gives the CommandComplete of an answer of which the only row was left out. A portal that was to give one row is suspended behind it, and
// has no more.
func unnumbered(body []byte, kind byte) []byte {
	if kind == 's' {
		return []byte("SELECT 0\x00")
	}
	if n := len(body); n > 2 && body[n-2] == '1' {
		body[n-2] = '0'
	}
	return body
}

// failure relays an ErrorResponse.
func (a *serverHalf) failure(f frame, e *entry) error {
	var body []byte
	refusal := &answer.Error{}
	if a.holds(f.size, a.limits.Text) {
		var err error
		if body, err = a.in.body(f.size); err != nil {
			return err
		}
		if sent, err := a.again(body, e); sent || err != nil {
			return err
		}
		a.pipeline.begin(e)
		body, refusal = a.translated(body, e)
	}
	ws := a.pipeline.refuse(e, refusal)
	if ends(refusal) {
		a.explained = true
	}
	if body == nil {
		return errors.Join(a.warn(ws), a.relay(f))
	}
	if err := a.release(); err != nil {
		return err
	}
	if err := a.warn(ws); err != nil {
		return err
	}
	return a.out.message('E', body)
}

// translated makes of an error about the text that was sent one about the client's text.
func (a *serverHalf) translated(body []byte, e *entry) ([]byte, *answer.Error) {
	refusal := parseError(body)
	a.pipeline.guard(func() {
		if ourFault(body, e, refusal.Code) {
			a.environment.database.changes.Add()
			a.log.Warn().Str("sqlstate", refusal.Code).Msg("a rewritten statement was refused, the catalog is read again")
		}
		body = mapped(body, e)
	})
	if e.spent && refusal.Code == "34000" {
		body = spentPortal(body, e.name)
		refusal = parseError(body)
	}
	if e.request == bind && e.plan != nil && e.plan.Hidden > 0 {
		body = recounted(body, e.plan.Hidden)
	}
	return body, refusal
}

// ready relays a ReadyForQuery.
func (a *serverHalf) ready(f frame, e *entry) error {
	if f.size != 1 || !e.endsReady() {
		a.pipeline.lose("the server is ready before it has answered")
		return a.relay(f)
	}
	body, err := a.in.body(1)
	if err != nil {
		return err
	}
	status := body[0]
	if status == 'I' {
		answered := a.environment.definitions() // first: what is sent from now on is not answered
		if !a.pipeline.alone(e) {
			answered = -1
		}
		a.environment.committed(answered) // before the session may be seen to be idle, see refresh
	}
	return a.readyForQuery(a.pipeline.ready(e, status), body)
}

// readyForQuery ends a turn: warnings, the CommandComplete that waited for them, ReadyForQuery.
func (a *serverHalf) readyForQuery(ws []record.Warning, body []byte) error {
	a.repeated = 0
	if err := a.warn(ws); err != nil {
		return err
	}
	if err := a.release(); err != nil {
		return err
	}
	if err := a.out.message('Z', body); err != nil {
		return err
	}
	a.pipeline.leave()
	return a.settle()
}

// ownAnswer takes an answer to a question of ours.
func (a *serverHalf) ownAnswer(f frame, e *entry) error {
	if f.kind != 'E' && f.kind != 'Z' {
		return a.in.skip(f.size)
	}
	if f.size > smallMessage {
		e.own.err = &answer.Error{Message: "an error that is too long"}
		return a.in.skip(f.size)
	}
	body, err := a.in.body(f.size)
	if err != nil {
		return err
	}
	if f.kind == 'E' {
		e.own.err = parseError(body)
		if ends(e.own.err) { // the client must know why
			a.explained = true
			return a.out.message('E', body)
		}
		return nil
	}
	a.pipeline.answered(e)
	return nil
}

// welcome relays the first ReadyForQuery, which the client has waited for.
func (a *serverHalf) welcome() error {
	if err := a.out.message('Z', []byte{'I'}); err != nil {
		return err
	}
	return a.out.flush()
}

// ownRow keeps a row of an answer to a question of ours.
func (a *serverHalf) ownRow(f frame, q *own) error {
	if q.size += f.size; q.size > maxOwn {
		q.rows, q.err = nil, &answer.Error{Message: "the answer is too long"}
		return a.in.skip(f.size)
	}
	body, err := a.in.body(f.size)
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

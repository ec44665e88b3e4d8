package pgwire

import (
	"bytes"
	"encoding/binary"
	"slices"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// requests relays what the client sends until it sends no more.
func (o *observing) requests() error {
	for {
		f, err := o.fromClient.header(maxMessage)
		if err != nil {
			return err
		}
		if err := o.request(f); err != nil {
			return err
		}
	}
}

// request relays one message.
func (o *observing) request(f frame) error {
	if err := o.enter(f); err != nil {
		return err
	}
	switch f.kind {
	case 'Q':
		return o.query(f)
	case 'P':
		return o.parse(f)
	case 'B':
		return o.bind(f)
	case 'D':
		return o.describe(f)
	case 'E':
		return o.execute(f)
	case 'C':
		return o.closing(f)
	case 'S':
		o.mu.Lock()
		o.skipping, o.open = false, false
		o.batch++
		o.push(&entry{request: syncing})
		o.mu.Unlock()
	case 'F':
		o.mu.Lock()
		e := &entry{request: function, plan: callPlan}
		if o.push(e) {
			e.tickets = []*record.Ticket{o.tracker.Sending(callPlan)}
		}
		o.mu.Unlock()
	case 'c', 'f':
		o.mu.Lock()
		o.push(&entry{request: copyEnd})
		o.mu.Unlock()
	case 'X':
		o.mu.Lock()
		o.terminated = true
		o.mu.Unlock()
	}
	return o.forward(f)
}

// callPlan stands for a FunctionCall, which has no text.
var callPlan = &rewrite.Plan{Verb: "other", Coverage: history.CoverageOpaque, Why: "a function call may read and write tables"}

// forward passes a message on as it is.
func (o *observing) forward(f frame) error {
	if err := o.toServer.header(f.kind, f.size); err != nil {
		return err
	}
	return o.fromClient.copyTo(o.toServer, f.size)
}

// push queues an entry. It returns false if the server will ignore the message. mu is held.
func (o *observing) push(e *entry) bool {
	if o.lost != "" || o.skipping {
		return false
	}
	switch e.request {
	case parse, bind, describe, execute, closing:
		o.open = true
	case simpleQuery:
		o.open = false // it ends the transaction that the others began
	}
	if o.gated.active && e.turns() && !e.ours {
		e.last, o.gated.ending = true, true
	}
	o.seq++
	e.seq = o.seq
	o.queue.push(e)
	return true
}

// peek gives the first n bytes, at most a buffer's length, of a body without consuming them.
func (o *observing) peek(n int) ([]byte, error) {
	n = min(n, bufferLen)
	if err := o.fromClient.fill(n); err != nil {
		return nil, inside(err)
	}
	return o.fromClient.buf[o.fromClient.r : o.fromClient.r+n], nil
}

// text takes a string and its final zero byte off b.
func text(b []byte) (string, []byte, bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return "", nil, false
	}
	return string(b[:i]), b[i+1:], true
}

// opaque is the script of a text that is not looked at.
func opaque(sql, why string) *rewrite.Script {
	return &rewrite.Script{SQL: sql, Unparsed: true, Plans: []*rewrite.Plan{{
		Text: sql, Verb: "other", Coverage: history.CoverageOpaque, Why: why,
	}}}
}

const tooLong = "it is longer than the limit for statements"

// query relays a Query.
func (o *observing) query(f frame) error {
	if err := o.refresh(); err != nil {
		return err
	}
	if f.size > o.Config.Limits.Text {
		o.sendQuery(&entry{request: simpleQuery, script: opaque("", tooLong)})
		return o.forward(f)
	}
	body, err := o.fromClient.body(f.size)
	if err != nil {
		return err
	}
	sql, rest, ok := text(body)
	if !ok || len(rest) > 0 { // the server will complain
		o.sendQuery(&entry{request: simpleQuery, script: opaque("", "malformed message")})
		return o.toServer.message('Q', body)
	}
	if err := o.learnInside(sql); err != nil {
		return err
	}
	e := &entry{request: simpleQuery, client: sql}
	o.mu.Lock()
	catalog, facts := o.known()
	o.mu.Unlock()
	e.script = o.observer.rewriter.Script(sql, catalog, facts)
	if err := o.fetchNames(e); err != nil {
		return err
	}
	o.sendQuery(e)
	if !e.script.Changed(sql) {
		return o.toServer.message('Q', body)
	}
	return o.writeQuery(e.script.SQL)
}

func (o *observing) writeQuery(sql string) error {
	if err := o.toServer.header('Q', len(sql)+1); err != nil {
		return err
	}
	return o.writeString(sql)
}

// writeString writes a string with its final zero byte.
func (o *observing) writeString(s string) error {
	if _, err := o.toServer.Write([]byte(s)); err != nil {
		return err
	}
	_, err := o.toServer.Write([]byte{0})
	return err
}

// sendQuery announces the statements of a Query.
func (o *observing) sendQuery(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.push(e) {
		return
	}
	for _, p := range e.script.Plans {
		e.tickets = append(e.tickets, o.tracker.Sending(p))
		o.sent(p, e.script.Unparsed)
	}
}

// parse relays a Parse.
func (o *observing) parse(f frame) error {
	if err := o.refresh(); err != nil {
		return err
	}
	if f.size > o.Config.Limits.Text {
		begin, err := o.peek(f.size)
		if err != nil {
			return err
		}
		name, _, _ := text(begin)
		o.sendParse(&prepared{name: name, script: opaque("", tooLong)}, false)
		return o.forward(f)
	}
	body, err := o.fromClient.body(f.size)
	if err != nil {
		return err
	}
	name, rest, ok := text(body)
	sql, tail, ok2 := text(rest)
	if !ok || !ok2 {
		o.sendParse(&prepared{name: name, script: opaque("", "malformed message")}, false)
		return o.toServer.message('P', body)
	}
	if err := o.learnInside(sql); err != nil {
		return err
	}
	o.mu.Lock()
	catalog, facts := o.known()
	full := len(o.statements) >= o.Config.Limits.Prepared && o.statements[name] == nil
	o.mu.Unlock()
	if full {
		catalog = nil // it could not be remembered that it was changed
	}
	p := &prepared{name: name, client: sql, catalog: catalog, script: o.observer.rewriter.Statement(sql, catalog, facts)}
	if err := o.sqlNames(p.script, sql); err != nil {
		return err
	}
	if p.extended() {
		p.tail = slices.Clone(tail)
	}
	o.sendParse(p, full)
	if !p.script.Changed(sql) {
		return o.toServer.message('P', body)
	}
	return o.writeParse(p, tail)
}

func (o *observing) writeParse(p *prepared, tail []byte) error {
	if err := o.toServer.header('P', len(p.name)+1+len(p.script.SQL)+1+len(tail)); err != nil {
		return err
	}
	if err := o.writeString(p.name); err != nil {
		return err
	}
	if err := o.writeString(p.script.SQL); err != nil {
		return err
	}
	_, err := o.toServer.Write(tail)
	return err
}

// sendParse announces a Parse. The name means the new statement at once, since the client may use it without waiting; an
// error takes that back.
func (o *observing) sendParse(p *prepared, forget bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.statements[p.name]
	e := &entry{request: parse, client: p.client, script: p.script, undo: undo{kind: 'S', name: p.name, stmt: old}}
	if !o.push(e) {
		return
	}
	p.seq, p.batch, p.parsing = e.seq, o.batch, e
	if p.name != "" && p.extended() {
		o.named++
	}
	if forget {
		e.undo.kind = 0
		return
	}
	o.statements[p.name] = p
}

// statement finds a prepared statement. If the server has not answered its Parse, which lies before a Sync, nobody knows
// which statement the name means: then the answer is awaited.
func (o *observing) statement(name string) (*prepared, error) {
	o.mu.Lock()
	p := o.statements[name]
	unsure := p != nil && p.parsing != nil && !p.parsing.resolved && p.batch < o.batch &&
		(p.extended() || p.parsing.undo.stmt.extended())
	if !unsure {
		o.mu.Unlock()
		return p, nil
	}
	o.mu.Unlock()
	if err := o.toServer.flush(); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for !p.parsing.resolved && !o.ended && o.lost == "" {
		o.news.Wait()
	}
	if o.ended {
		return nil, errGone
	}
	return o.statements[name], nil
}

// bind relays a Bind. The client's format codes are for the columns that it knows of; ours are text.
func (o *observing) bind(f frame) error {
	if err := o.refresh(); err != nil {
		return err
	}
	begin, err := o.peek(f.size)
	if err != nil {
		return err
	}
	portalName, rest, ok := text(begin)
	name, _, ok2 := text(rest)
	if !ok || !ok2 {
		o.sendBind("\x00", nil)
		return o.forward(f)
	}
	p, err := o.statement(name)
	if err != nil {
		return err
	}
	if p.extended() {
		if p, err = o.upToDate(p, f.size); err != nil {
			return err
		}
	}
	o.sendBind(portalName, p)
	if !p.extended() {
		return o.forward(f)
	}
	body, err := o.fromClient.body(f.size)
	if err != nil {
		return err
	}
	plan := p.plan()
	at, n := resultFormats(body)
	switch {
	case n <= 1:
		return o.toServer.message('B', body)
	case plan.NoRows: // the client knows of no columns, so its codes mean nothing
		if err := o.toServer.header('B', at+2); err != nil {
			return err
		}
		if _, err := o.toServer.Write(body[:at]); err != nil {
			return err
		}
		_, err := o.toServer.Write([]byte{0, 0})
		return err
	}
	if err := o.toServer.header('B', len(body)+2*plan.Hidden); err != nil {
		return err
	}
	if _, err := o.toServer.Write(body[:at]); err != nil {
		return err
	}
	if _, err := o.toServer.Write(binary.BigEndian.AppendUint16(nil, uint16(n+plan.Hidden))); err != nil {
		return err
	}
	if _, err := o.toServer.Write(body[at+2:]); err != nil {
		return err
	}
	_, err = o.toServer.Write(make([]byte, 2*plan.Hidden))
	return err
}

// resultFormats finds the result format codes of a Bind: where their number stands, and the number. It is 0 if the
// message is malformed, which the server will say.
func resultFormats(b []byte) (at, n int) {
	pos := 0
	for range 2 { // portal and statement
		i := bytes.IndexByte(b[pos:], 0)
		if i < 0 {
			return 0, 0
		}
		pos += i + 1
	}
	short := func() (int, bool) {
		if pos+2 > len(b) {
			return 0, false
		}
		v := int(binary.BigEndian.Uint16(b[pos:]))
		pos += 2
		return v, true
	}
	codes, ok := short()
	if !ok {
		return 0, 0
	}
	pos += 2 * codes
	params, ok := short()
	if !ok {
		return 0, 0
	}
	for range params {
		if pos+4 > len(b) {
			return 0, 0
		}
		size := int32(binary.BigEndian.Uint32(b[pos:]))
		pos += 4
		if size > 0 {
			if int(size) > len(b)-pos {
				return 0, 0
			}
			pos += int(size)
		}
	}
	at = pos
	if n, ok = short(); !ok || pos+2*n != len(b) {
		return 0, 0
	}
	return at, n
}

// sendBind announces a Bind.
func (o *observing) sendBind(name string, p *prepared) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &entry{request: bind, undo: undo{kind: 'P', name: name, port: o.portals[name]}}
	e.plan = p.plan()
	if p != nil {
		e.client, e.script = p.client, p.script
	}
	if !o.push(e) {
		return
	}
	if p.plan() == nil {
		delete(o.portals, name)
		return
	}
	if name != "" && p.extended() {
		o.named++
	}
	o.portals[name] = &portal{stmt: p, plan: p.plan(), seq: e.seq}
}

// upToDate sees to it that a statement with hidden columns still fits the schema and that its Bind can be handled;
// otherwise it is prepared anew under the same name.
func (o *observing) upToDate(p *prepared, size int) (*prepared, error) {
	o.mu.Lock()
	catalog, facts := o.known()
	o.mu.Unlock()
	if size > o.Config.Limits.Text {
		return o.again(p, nil, opaque(p.client, "its parameters are longer than the limit for statements"))
	}
	if catalog != nil && catalog == p.catalog && !p.gone {
		return p, nil
	}
	script := o.observer.rewriter.Statement(p.client, catalog, facts)
	if catalog == nil || p.gone || script.SQL != p.script.SQL {
		return o.again(p, catalog, script)
	}
	// The server keeps the statement up to date itself, and tells the client if its columns are no longer the same
	// ("cached plan must not change result type"). What is read in the hidden ones may have changed.
	q := *p
	q.script, q.catalog = script, catalog
	o.mu.Lock()
	if o.statements[p.name] == p {
		o.statements[p.name] = &q
	}
	o.mu.Unlock()
	return &q, nil
}

// again prepares a statement once more, with another plan. The client does not see it.
func (o *observing) again(p *prepared, catalog *rewrite.Catalog, script *rewrite.Script) (*prepared, error) {
	q := &prepared{name: p.name, client: p.client, script: script, tail: p.tail, catalog: catalog}
	if script.Unparsed { // the text is the client's, but not its analysis
		plan := *script.Plans[0]
		plan.Text = p.client
		q.script = &rewrite.Script{SQL: p.client, Plans: []*rewrite.Plan{&plan}}
	}
	o.mu.Lock()
	if o.lost != "" || o.skipping {
		o.mu.Unlock()
		return p, nil
	}
	if p.name != "" {
		o.push(&entry{request: closing, ours: true, undo: undo{kind: 'S', name: p.name, stmt: p}})
	}
	none := *p // if the server refuses it, it has neither
	none.gone = true
	e := &entry{request: parse, ours: true, client: q.client, script: q.script, undo: undo{kind: 'S', name: p.name, stmt: &none}}
	o.push(e)
	q.seq, q.batch, q.parsing = e.seq, o.batch, e
	o.statements[p.name] = q
	o.mu.Unlock()
	if p.name != "" {
		if err := o.toServer.message('C', append(append([]byte{'S'}, p.name...), 0)); err != nil {
			return nil, err
		}
	}
	return q, o.writeParse(q, q.tail)
}

// describe relays a Describe.
func (o *observing) describe(f frame) error {
	begin, err := o.peek(f.size)
	if err != nil {
		return err
	}
	var plan *rewrite.Plan
	if name, _, ok := text(begin[min(1, len(begin)):]); ok {
		if plan, err = o.meant(begin[0], name); err != nil {
			return err
		}
	}
	o.mu.Lock()
	o.push(&entry{request: describe, plan: plan})
	o.mu.Unlock()
	return o.forward(f)
}

// meant is the plan behind a name of a statement ('S') or portal ('P').
func (o *observing) meant(kind byte, name string) (*rewrite.Plan, error) {
	if kind == 'S' {
		p, err := o.statement(name)
		return p.plan(), err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.portals[name]; p != nil {
		return p.plan, nil
	}
	return nil, nil
}

// execute relays an Execute.
func (o *observing) execute(f frame) error {
	begin, err := o.peek(f.size)
	if err != nil {
		return err
	}
	name, rest, ok := text(begin)
	o.mu.Lock()
	e := &entry{request: execute}
	if p := o.portals[name]; ok && p != nil {
		e.plan, e.client, e.script = p.plan, p.stmt.client, p.stmt.script
		if p.run {
			e.spent = &name
		}
		p.run = p.plan.NoRows
	}
	if o.push(e) && e.plan != nil {
		e.tickets = []*record.Ticket{o.tracker.Sending(e.plan)}
		o.sent(e.plan, e.script.Unparsed)
	}
	o.mu.Unlock()
	if e.plan == nil || !e.plan.NoRows || len(rest) != 4 || f.size != len(begin) {
		return o.forward(f)
	}
	if e.spent != nil {
		// The server would say that there is nothing left of what was added; without it, it refuses.
		if err := o.fromClient.skip(f.size); err != nil {
			return err
		}
		return o.toServer.message('E', []byte(noPortal+"\x00\x00\x00\x00\x00"))
	}
	// The client expects no rows, so its limit means nothing; with one the server would stop in between.
	body := slices.Clone(begin)
	clear(body[len(body)-4:])
	if err := o.fromClient.skip(f.size); err != nil {
		return err
	}
	return o.toServer.message('E', body)
}

// noPortal is the name of a portal that nobody has.
const noPortal = "wirecheck: no such portal"

// closing relays a Close.
func (o *observing) closing(f frame) error {
	begin, err := o.peek(f.size)
	if err != nil {
		return err
	}
	o.mu.Lock()
	e := &entry{request: closing}
	if name, _, ok := text(begin[min(1, len(begin)):]); ok {
		e.undo = undo{kind: begin[0], name: name, stmt: o.statements[name], port: o.portals[name]}
	}
	if o.push(e) {
		switch e.undo.kind {
		case 'S':
			delete(o.statements, e.undo.name)
		case 'P':
			delete(o.portals, e.undo.name)
		}
	}
	o.mu.Unlock()
	return o.forward(f)
}

// fetchNames sees to it that a Query that uses a protocol-level statement or portal by SQL shows nothing hidden.
func (o *observing) fetchNames(e *entry) error {
	if o.named == 0 {
		return nil
	}
	if err := o.sqlNames(e.script, e.client); err != nil {
		return err
	}
	if len(e.script.Plans) != 1 || !word(e.client, "fetch") {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, p := range o.portals {
		if name == "" || p.plan.Hidden == 0 || !word(e.client, name) {
			continue
		}
		plan := *e.script.Plans[0]
		plan.Hidden, plan.NoRows, plan.Decode = p.plan.Hidden, p.plan.NoRows, p.plan.Decode
		e.script = &rewrite.Script{SQL: e.script.SQL, Unparsed: e.script.Unparsed, Plans: []*rewrite.Plan{&plan}}
		return nil
	}
	return nil
}

// sqlNames finds statements that EXECUTE may run, in SQL, though they were prepared by a Parse and extended. They are
// prepared anew as the client wrote them.
func (o *observing) sqlNames(s *rewrite.Script, sql string) error {
	if o.named == 0 || !word(sql, "execute") {
		return nil
	}
	o.mu.Lock()
	var found []*prepared
	if o.status != 'E' { // in a failed transaction EXECUTE is refused, and so would be our Parse
		for name, p := range o.statements {
			if name != "" && p.extended() && word(sql, name) {
				found = append(found, p)
			}
		}
	}
	o.mu.Unlock()
	slices.SortFunc(found, func(a, b *prepared) int { return int(a.seq) - int(b.seq) })
	for _, p := range found {
		if _, err := o.again(p, nil, opaque(p.client, "it is executed by SQL")); err != nil {
			return err
		}
	}
	return nil
}

// word reports whether a name may be in the text, in any case. It errs on the side of yes.
func word(text, name string) bool {
	return bytes.Contains(bytes.ToLower([]byte(text)), bytes.ToLower([]byte(name)))
}

package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// prepared is a prepared statement as the client knows it. It may stand for several of the server's: what may be added
// to a SELECT depends on whether it will lock, which the session's level says when it is executed, not when it is
// prepared.
type prepared struct {
	id     uint32 // the client's: that of the first of the server's
	sql    string // the client's own text; empty if it was too long to be looked at
	params int
	forms  []*form
	used   *form  // by the last execution, or by long data that waits for it
	types  []byte // of all columns of the last answer
	// bound are the types of the parameters as the client last sent them; it need not repeat them.
	bound    []byte
	longData bool // some was sent since the last execution
	cursor   bool
	running  *statement // the execution whose rows are fetched
}

// form is one prepared statement of the server's.
type form struct {
	id      uint32
	sql     string
	plan    *rewrite.Plan
	session dialect.Session
	plain   bool // the client's own text
}

// prepare relays COM_STMT_PREPARE.
func (s *session) prepare(f frame) error {
	if f.n > min(s.ps.Config.Limits.Text, packetMax) || len(s.statements) >= s.ps.Config.Limits.Prepared {
		return s.prepareLong(f)
	}
	b, err := s.client.packet(f)
	if err != nil {
		return s.badClient(err, "command")
	}
	sql := string(b[1:])
	fm := s.form(sql)
	news, err := s.refresh(&rewrite.Script{Plans: []*rewrite.Plan{fm.plan}})
	if err != nil {
		return err
	}
	if news {
		fm = s.form(sql)
	}
	p := &prepared{sql: sql}
	if fm.plan.ParsedApart > 0 {
		fm = s.apartForm(sql, fm)
	}
	refused, err := s.relayPrepare(p, fm, !fm.plain && !s.onTiDB())
	if err != nil {
		return err
	}
	if refused != nil { // our text does not fit the tables any more
		s.observer.changed()
		if _, err := s.relayPrepare(p, s.plainForm(sql, fm.plan), false); err != nil {
			return err
		}
	}
	return nil
}

// form asks the dialect how to prepare a text at the session's present settings.
func (s *session) form(sql string) *form { return s.formFor(sql, s.current()) }

func (s *session) formFor(sql string, now dialect.Session) *form {
	catalog := s.catalog
	if s.blind {
		catalog = nil
	}
	script := s.rewriter.Prepare(sql, catalog, now)
	fm := &form{sql: script.SQL, session: now, plain: !script.Changed(sql)}
	if len(script.Plans) == 1 {
		fm.plan = script.Plans[0]
		if fm.plan.Diagnostics && fm.plan.Stamp {
			fm.plan, fm.sql, fm.plain = forwarded(script.Plans, inquisitive)[0], sql, true
		}
		return fm
	}
	fm.plan, fm.sql, fm.plain = opaquePlan(sql, "it is not one statement"), sql, true
	return fm
}

// plainForm is the client's own text.
func (s *session) plainForm(sql string, p *rewrite.Plan) *form {
	return &form{sql: sql, session: s.current(), plain: true, plan: forwarded([]*rewrite.Plan{p}, "the tables were changed")[0]}
}

func opaquePlan(sql, why string) *rewrite.Plan {
	return &rewrite.Plan{Text: sql, Verb: "other", Coverage: history.CoverageOpaque, Why: why}
}

// prepareLong relays a text that is too long, or one more statement than we keep.
func (s *session) prepareLong(f frame) error {
	if _, err := s.client.relay(s.server, 0); err != nil {
		return err
	}
	plan := opaquePlan("", "the text is too long, or there are too many prepared statements")
	plan.Schema, plan.Control.Verb = true, rewrite.ControlReset
	_, err := s.prepareAnswer(&prepared{}, &form{plan: plan, plain: true}, false)
	return err
}

// relayPrepare prepares a form for the client. If try is set, an error that says that our text does not fit is returned
// and not relayed.
func (s *session) relayPrepare(p *prepared, fm *form, try bool) (refused *errPacket, err error) {
	if err := s.server.put(0, []byte{mysql.COM_STMT_PREPARE}, []byte(fm.sql)); err != nil {
		return nil, err
	}
	return s.prepareAnswer(p, fm, try)
}

// prepareAnswer relays the answer to COM_STMT_PREPARE (MySQL manual, "COM_STMT_PREPARE Response"): OK with the number
// of columns and parameters, then the definitions of the parameters and of the columns, each list with its EOF.
func (s *session) prepareAnswer(p *prepared, fm *form, try bool) (refused *errPacket, err error) {
	f, err := s.firstPacket()
	if err != nil {
		return nil, err
	}
	b, err := s.take(f)
	if err != nil {
		return nil, err
	}
	if f.first != markOK || len(b) < 9 {
		e := parseERR(b)
		if try && f.first == markERR && dialect.Stale(e.code, e.message) {
			return &e, nil
		}
		s.last = nil
		return nil, s.toClient(b)
	}
	fm.id = binary.LittleEndian.Uint32(b[1:])
	columns, params := int(binary.LittleEndian.Uint16(b[5:])), int(binary.LittleEndian.Uint16(b[7:]))
	if fm.plan.Hidden > columns || fm.plan.NoRows {
		return nil, fmt.Errorf("a prepared statement has %d columns, %d of them ours: %w", columns, fm.plan.Hidden, errMalformed)
	}
	p.id, p.params, p.forms, p.used = fm.id, params, []*form{fm}, fm
	if len(s.statements) < s.ps.Config.Limits.Prepared {
		s.statements[p.id] = p
	}
	s.last = p
	b = bytes.Clone(b)
	if columns > 0 && s.mayShow(fm.plan) {
		return nil, s.relayPreparedHandler(p, fm, b, columns, params)
	}
	binary.LittleEndian.PutUint16(b[5:], uint16(columns-fm.plan.Hidden))
	if err := s.toClient(b); err != nil {
		return nil, err
	}
	if _, err := s.definitions(params, 0); err != nil {
		return nil, err
	}
	types, err := s.definitions(columns, fm.plan.Hidden)
	p.types = types
	return nil, err
}

// relayPreparedHandler relays the answer b to the preparation of HANDLER ... READ, of whose columns the last ones are ours
// if the table has them.
func (s *session) relayPreparedHandler(p *prepared, fm *form, b []byte, columns, params int) error {
	list, _, err := s.holdDefinitions(params)
	if err != nil {
		return err
	}
	end := func() error {
		f, err := s.nextPacket()
		if err != nil {
			return err
		}
		eof, err := s.take(f)
		list = append(list, bytes.Clone(eof))
		return err
	}
	if params > 0 && s.caps&deprecateEOF == 0 {
		if err := end(); err != nil {
			return err
		}
	}
	held, ours, err := s.holdDefinitions(columns)
	if err != nil {
		return err
	}
	plan := *fm.plan
	plan.Hidden = ours
	fm.plan = &plan
	binary.LittleEndian.PutUint16(b[5:], uint16(columns-ours))
	for _, packet := range append([][]byte{b}, list...) {
		if err := s.toClient(packet); err != nil {
			return err
		}
	}
	if p.types, err = s.releaseDefinitions(held, ours); err != nil || s.caps&deprecateEOF != 0 {
		return err
	}
	f, err := s.nextPacket()
	if err != nil {
		return err
	}
	return s.pass(f)
}

// definitions relays a list of definitions with its EOF. A list of which nothing is left has no EOF.
func (s *session) definitions(n, hidden int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	types, err := s.relayDefinitions(n, hidden, nil)
	if err != nil || s.caps&deprecateEOF != 0 {
		return types, err
	}
	f, err := s.nextPacket()
	if err != nil {
		return nil, err
	}
	if n == hidden {
		_, err = s.take(f)
		return types, err
	}
	return types, s.pass(f)
}

// prepareOwn prepares a further form of a statement for ourselves. It reports false if the server refuses.
func (s *session) prepareOwn(fm *form) (bool, error) {
	if err := s.server.put(0, []byte{mysql.COM_STMT_PREPARE}, []byte(fm.sql)); err != nil {
		return false, err
	}
	refused, _, err := s.prepareOwnAnswer(fm)
	return refused == nil && err == nil, err
}

// prepareOwnAnswer reads the answer to the preparation of a form for ourselves, with the number of warnings.
func (s *session) prepareOwnAnswer(fm *form) (refused *errPacket, warnings int, err error) {
	f, err := s.nextPacket()
	if err != nil {
		return nil, 0, err
	}
	b, err := s.take(f)
	if err != nil {
		return nil, 0, err
	}
	if f.first != markOK || len(b) < 9 {
		e := parseERR(b)
		return &e, 0, nil
	}
	if len(b) >= 12 {
		warnings = int(binary.LittleEndian.Uint16(b[10:]))
	}
	fm.id = binary.LittleEndian.Uint32(b[1:])
	columns, params := int(binary.LittleEndian.Uint16(b[5:])), int(binary.LittleEndian.Uint16(b[7:]))
	skip := columns + params
	if s.caps&deprecateEOF == 0 {
		skip += min(columns, 1) + min(params, 1)
	}
	for range skip {
		if f, err = s.nextPacket(); err != nil {
			return nil, 0, err
		}
		if _, err = s.take(f); err != nil {
			return nil, 0, err
		}
	}
	return nil, warnings, nil
}

// lookup finds the statement that a command names.
func (s *session) lookup(id uint32) *prepared {
	if id == 0xffffffff {
		return s.last
	}
	return s.statements[id]
}

// choose picks the form to be executed at the session's present settings, and prepares it if it is new.
func (s *session) choose(p *prepared) (*form, error) {
	now := s.current()
	now.Database = p.forms[0].session.Database // names were resolved when it was prepared
	if p.sql == "" || p.longData || p.used.session == now {
		return p.used, nil
	}
	want := s.formFor(p.sql, now)
	for _, fm := range p.forms {
		if fm.sql == want.sql && fm.plan.Hidden == want.plan.Hidden {
			fm.session, fm.plan = want.session, want.plan
			p.used = fm
			return fm, nil
		}
	}
	if s.env.Database != now.Database { // they would be resolved otherwise now
		return p.used, nil
	}
	ok, err := s.prepareOwn(want)
	if err != nil || !ok {
		return p.used, err
	}
	p.forms = append(p.forms, want)
	p.used = want
	return want, nil
}

// execute relays COM_STMT_EXECUTE and MariaDB's COM_STMT_BULK_EXECUTE.
func (s *session) execute(f frame) error {
	head, err := s.client.prefix(f, 7)
	if err != nil {
		return err
	}
	if len(head) < 7 {
		return s.badClient(errMalformed, "command")
	}
	p := s.lookup(binary.LittleEndian.Uint32(head[1:]))
	if p == nil { // one too many for us, or the server has an error for it
		return s.simple(opaquePlan("execute", "there are too many prepared statements"))
	}
	bulk, cursor := f.first == comBulkExecute, head[5] != 0
	fm, err := s.choose(p)
	if err != nil {
		return err
	}
	probe := &rewrite.Script{Plans: []*rewrite.Plan{fm.plan}}
	if _, err := s.refresh(probe); err != nil {
		return err
	}
	if err := s.restoreFoundRows(probe); err != nil {
		return err
	}
	r := request{plans: probe.Plans, binary: true, prepared: p}
	if f.n > packetMax {
		r.send = func() error { return s.streamExecute(f, fm.id) }
	} else {
		b, err := s.client.packet(f)
		if err != nil {
			return err
		}
		b = bytes.Clone(b)
		if !bulk {
			b = p.withTypes(b, len(p.forms) > 1 || !fm.plain)
		}
		r.send = func() error { return s.sendExecute(b, fm.id) }
		if !fm.plain && !p.longData {
			r.again = func(why string) error { return s.executePlain(p, fm.plan, b, why) }
		}
	}
	p.longData, p.cursor = false, cursor && !bulk
	return s.perform(r)
}

func (s *session) sendExecute(b []byte, id uint32) error {
	binary.LittleEndian.PutUint32(b[1:], id)
	return s.server.put(0, b)
}

// executePlain executes the client's own text after the server refused ours.
func (s *session) executePlain(p *prepared, plan *rewrite.Plan, b []byte, why string) error {
	fm := s.plainForm(p.sql, plan)
	ok, err := s.prepareOwn(fm)
	if err != nil {
		return err
	}
	if ok {
		p.forms = append(p.forms, fm)
		p.used = fm
	} else {
		fm = p.used // its error is the client's now
	}
	p.types = nil
	return s.perform(request{
		plans: forwarded([]*rewrite.Plan{plan}, why), binary: true, prepared: p,
		send: func() error { return s.sendExecute(b, fm.id) },
	})
}

// streamExecute relays an execution that is too long to be held. Its head is in the buffer.
func (s *session) streamExecute(f frame, id uint32) error {
	b, err := s.client.prefix(f, 5)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b[1:], id)
	_, err = s.client.relay(s.server, 0)
	return err
}

// withTypes remembers the parameters' types that an execution brings. If it brings none although the server's
// statement may be another one than last time, they are put in (MySQL manual, "COM_STMT_EXECUTE": null bitmap, a byte
// that says whether types follow, types, values).
func (p *prepared) withTypes(b []byte, mayDiffer bool) []byte {
	const fixed = 1 + 4 + 1 + 4
	at := fixed + (p.params+7)/8
	if p.params == 0 || len(b) <= at {
		return b
	}
	if b[at] == 1 {
		if len(b) >= at+1+2*p.params {
			p.bound = bytes.Clone(b[at+1 : at+1+2*p.params])
		}
		return b
	}
	if p.bound == nil || !mayDiffer {
		return b
	}
	out := append(bytes.Clone(b[:at]), 1)
	out = append(out, p.bound...)
	return append(out, b[at+1:]...)
}

// handle relays a command that names a prepared statement and is not answered, or (COM_STMT_RESET) by OK.
func (s *session) handle(f frame) error {
	head, err := s.client.prefix(f, 5)
	if err != nil {
		return err
	}
	if len(head) < 5 {
		return s.badClient(errMalformed, "command")
	}
	p := s.lookup(binary.LittleEndian.Uint32(head[1:]))
	if p == nil {
		if f.first == mysql.COM_STMT_RESET {
			return s.single(f)
		}
		_, err := s.client.relay(s.server, 0)
		return err
	}
	switch f.first {
	case mysql.COM_STMT_CLOSE:
		for _, fm := range p.forms[1:] {
			if err := s.server.put(0, closeCommand(fm.id)); err != nil {
				return err
			}
		}
		delete(s.statements, p.id)
		if s.last == p {
			s.last = nil
		}
		binary.LittleEndian.PutUint32(head[1:], p.id)
		_, err := s.client.relay(s.server, 0)
		return err
	case mysql.COM_STMT_SEND_LONG_DATA:
		if !p.longData {
			if _, err := s.choose(p); err != nil {
				return err
			}
			p.longData = true
			if head, err = s.client.prefix(f, 5); err != nil {
				return err
			}
		}
		binary.LittleEndian.PutUint32(head[1:], p.used.id)
		_, err := s.client.relay(s.server, 0)
		return err
	}
	p.longData = false
	binary.LittleEndian.PutUint32(head[1:], p.used.id)
	return s.single(f)
}

func closeCommand(id uint32) []byte {
	return binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_CLOSE}, id)
}

// fetch relays COM_STMT_FETCH: rows without metadata.
func (s *session) fetch(f frame) error {
	head, err := s.client.prefix(f, 5)
	if err != nil {
		return err
	}
	var p *prepared
	if len(head) == 5 {
		p = s.lookup(binary.LittleEndian.Uint32(head[1:]))
	}
	plan := &rewrite.Plan{Text: "fetch", Verb: "other"}
	cols := &columns{binary: true}
	if p != nil {
		binary.LittleEndian.PutUint32(head[1:], p.used.id)
		cols.types, cols.hidden = p.types, p.used.plan.Hidden

	}
	st := &statement{plan: plan, ticket: s.tracker.Sending(plan)}
	st.running = s.tracker.Answer(st.ticket)
	if _, err := s.client.relay(s.server, 0); err != nil {
		return err
	}
	a := &answer{statements: []*statement{st}, binary: true, prepared: p}
	if f, err = s.firstPacket(); err != nil {
		return err
	}
	if s.endsRows(f) {
		_, err = s.endRows(a, st, f, cols)
		return err
	}
	_, err = s.relayRows(a, st, cols)
	return err
}

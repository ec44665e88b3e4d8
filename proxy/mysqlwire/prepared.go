package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/statement"
)

// preparedStatements is a session's prepared statements.
type preparedStatements struct {
	o    *observation
	byID map[uint32]*prepared
	text record.Share
	last *prepared // the latest one, which MariaDB's clients may call -1
}

// preparedSize is roughly the room that a prepared statement takes besides its text.
const preparedSize = 512

// prepared is a prepared statement as the client knows it. It may stand for several of the server's: what may be added
// to a SELECT depends on whether it will lock, which the session's level says when it is executed, not when it is
// prepared.
type prepared struct {
	id  uint32 // the client's: that of the first of the server's
	sql string // the client's own text; empty if it was too long to be analysed
	// question is what the text asked wirecheck; sql is the answer now, as a SELECT.
	question *record.Question
	params   int
	forms    []*form
	used     *form // by the last execution, or by long data that waits for it
	told     *form // of which the client got the columns last
	shown    int   // as many
	size     int   // of the room that it takes, roughly, in bytes
	// sources are the columns of tables that the client's columns of the last answer show, where requests are told apart.
	sources []source
	// bound are the types of the parameters as the client last sent them; it need not repeat them.
	bound    []byte
	spoiled  bool // there was long data for no parameter, so that the statement is unusable until it is reset
	longData bool // some was sent since the last execution
	cursor   bool // the last execution asked for one
}

// forget drops all prepared statements, as the server does at COM_CHANGE_USER and COM_RESET_CONNECTION.
func (s *preparedStatements) forget() {
	s.byID, s.last = make(map[uint32]*prepared), nil
	s.text.Forget()
}

// full reports whether a statement of n bytes is not kept any more.
func (s *preparedStatements) full(n int) bool {
	return len(s.byID) >= s.o.ps.Config.Limits.Prepared || !s.text.Takes(n)
}

func (s *preparedStatements) keep(p *prepared) {
	s.byID[p.id] = p
	p.size = preparedSize + len(p.sql) + p.used.plan.Size()
	s.text.Add(p.size)
}

func (s *preparedStatements) drop(p *prepared) {
	if s.byID[p.id] == p {
		delete(s.byID, p.id)
		s.text.Add(-p.size)
	}
	if s.last == p {
		s.last = nil
	}
}

// lookup finds the statement that a command names.
func (s *preparedStatements) lookup(id uint32) *prepared {
	if id == 0xffffffff {
		return s.last
	}
	return s.byID[id]
}

// named finds the statement that a command names which begins with head; nil if the command is too short.
func (s *preparedStatements) named(head []byte) *prepared {
	if len(head) < 5 {
		return nil
	}
	return s.lookup(binary.LittleEndian.Uint32(head[1:]))
}

// tells notes that the client gets n columns of the form in use. known says that the client had those of another form of ours before, so that the server
// cannot know whether the number has changed; changed is whether it has.
func (p *prepared) tells(n int) (known, changed bool) {
	known, changed = p.told != p.used, p.shown != n
	p.told, p.shown = p.used, n
	return known, changed
}

// prepare relays COM_STMT_PREPARE.
func (s *preparedStatements) prepare(f frame) error {
	o := s.o
	if f.n > o.ps.Config.Limits.Text || s.full(preparedSize+f.n) || !holds(o, f) {
		return s.prepareLong()
	}
	b, err := o.client.packet(f)
	if err != nil {
		return o.badClient(err, "command")
	}
	sql := string(b[1:])
	own, question, err := asked(o, sql)
	if err != nil {
		return err
	}
	if question != nil {
		sql = own
	}
	fm, err := s.complete(sql)
	if err != nil {
		return err
	}
	p := &prepared{sql: sql, question: question}
	if fm.plan.ParsedApart > 0 {
		fm = s.unparsedForm(sql, fm)
	}
	refused, err := s.relayPrepare(p, fm, !fm.clients)
	if err != nil || refused == nil {
		return err
	}
	if _, err = s.relayPrepare(p, s.clientsForm(sql, fm.plan), false); err == nil && p.used != nil {
		o.observer.catalogs.changed(nil)
	}
	return err
}

// prepareLong relays a text that is too long, or one more statement than we keep.
func (s *preparedStatements) prepareLong() error {
	if err := s.o.relayCommand(); err != nil {
		return err
	}
	plan := opaquePlan("", "the text is too long, too many long ones are held, or there are too many prepared statements")
	plan.Schema, plan.Control.Verb = true, statement.ControlReset
	_, err := s.prepareAnswer(&prepared{}, &form{plan: plan, clients: true}, false)
	return err
}

// relayPrepare prepares a form for the client. If try is set, it returns an error that says that the server refused our text,
// and does not relay it.
func (s *preparedStatements) relayPrepare(p *prepared, fm *form, try bool) (refused *history.ServerError, err error) {
	if err := s.o.ownPrepare(fm.sql); err != nil {
		return nil, err
	}
	return s.prepareAnswer(p, fm, try)
}

// prepareAnswer relays the answer to COM_STMT_PREPARE (MySQL manual, "COM_STMT_PREPARE Response"): OK with the number
// of columns and parameters, then the definitions of the parameters and of the columns, each list with its EOF.
func (s *preparedStatements) prepareAnswer(p *prepared, fm *form, try bool) (refused *history.ServerError, err error) {
	o := s.o
	f, err := o.nextPacket()
	if err != nil {
		return nil, err
	}
	b, err := o.take(f)
	if err != nil {
		return nil, err
	}
	if f.first != markOK || len(b) < 9 {
		e := parseERR(b)
		if try && f.first == markERR && o.traits.refused(fm.plan, e) {
			return e, nil
		}
		s.last = nil
		o.refusedCommand()
		return nil, o.toClient(b)
	}
	plan := fm.plan
	if !o.traits.ClearsWarnings && call.MatchString(plan.Text) { // to prepare it, MariaDB opens no table, and keeps the list (10.11.19)
		own := *plan
		own.Coverage, plan = history.CoverageNone, &own
	}
	if o.warnings.clear(plan, &o.traits); o.traits.forgetsWarnings(plan) && len(b) >= 12 {
		o.warnings.server = binary.LittleEndian.Uint16(b[10:])
	}
	fm.id = binary.LittleEndian.Uint32(b[1:])
	columns, params := int(binary.LittleEndian.Uint16(b[5:])), int(binary.LittleEndian.Uint16(b[7:]))
	if fm.plan.Hidden > columns || fm.plan.NoRows {
		return nil, fmt.Errorf("a prepared statement has %d columns, %d of them ours: %w", columns, fm.plan.Hidden, errMalformed)
	}
	p.id, p.params, p.forms, p.used = fm.id, params, []*form{fm}, fm
	if !s.full(preparedSize + len(p.sql)) {
		s.keep(p)
	}
	s.last = p
	b = bytes.Clone(b)
	if columns > 0 && o.traits.mayShow(fm.plan) {
		return nil, s.relayShownColumns(p, fm, b, columns, params)
	}
	p.tells(columns - fm.plan.Hidden)
	binary.LittleEndian.PutUint16(b[5:], uint16(columns-fm.plan.Hidden))
	if err := o.toClient(b); err != nil {
		return nil, err
	}
	if _, err := o.relayDefinitionList(params, 0); err != nil {
		return nil, err
	}
	o.wantSources = s.wants(p)
	fm.types, err = o.relayDefinitionList(columns, fm.plan.Hidden)
	p.sources = o.sources
	return nil, err
}

// relayShownColumns relays the answer b to a preparation of whose columns the last ones may be ours, as only their names
// tell (traits.mayShow).
func (s *preparedStatements) relayShownColumns(p *prepared, fm *form, b []byte, columns, params int) error {
	o := s.o
	list, _, err := o.holdDefinitions(params)
	if err != nil {
		return err
	}
	if params > 0 && !o.has(deprecateEOF) {
		eof, err := o.takeNext()
		if err != nil {
			return err
		}
		list = append(list, bytes.Clone(eof))
	}
	held, ours, err := o.holdDefinitions(columns)
	if err != nil {
		return err
	}
	plan := *fm.plan
	plan.Hidden = ours
	fm.plan = &plan
	p.tells(columns - ours)
	binary.LittleEndian.PutUint16(b[5:], uint16(columns-ours))
	for _, packet := range append([][]byte{b}, list...) {
		if err := o.toClient(packet); err != nil {
			return err
		}
	}
	o.wantSources = s.wants(p)
	fm.types, err = o.releaseDefinitions(held, ours)
	if p.sources = o.sources; err != nil || o.has(deprecateEOF) {
		return err
	}
	return o.passNext()
}

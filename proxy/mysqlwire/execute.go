package mysqlwire

import (
	"bytes"
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// execute relays COM_STMT_EXECUTE and MariaDB's COM_STMT_BULK_EXECUTE.
func (s *preparedStatements) execute(f frame) error {
	o := s.o
	head, err := o.client.prefix(f, 7)
	if err != nil {
		return err
	}
	p := s.named(head)
	if p == nil || len(head) < 7 { // one too many for us, or the server has an error for it
		return o.simple(opaquePlan("execute", "there are too many prepared statements"))
	}
	cursor := head[5] != 0 && f.first != comBulkExecute
	held := holds(o, f)
	if !p.longData {
		if _, err := o.refresh(&rewrite.Script{Plans: []*rewrite.Plan{p.used.plan}, Missing: o.known().Stale(p.used.uses)}); err != nil {
			return err
		}
	}
	if p.question != nil && !p.longData && f.first == mysql.COM_STMT_EXECUTE && held {
		if err := s.answerAgain(p, f); err != nil {
			return err
		}
	}
	fm, refused, err := s.choose(p, false)
	if err != nil {
		return err
	}
	if refused != nil && held {
		return s.refuse(f, p, refused)
	}
	probe := &rewrite.Script{Plans: []*rewrite.Plan{fm.plan}}
	if err := o.restoreCounts(probe); err != nil {
		return err
	}
	x := exchange{o: o, plans: probe.Plans, client: p.sql, ran: fm.ran}
	run := execution{o: o, of: p, id: fm.id, long: p.longData}
	if !held {
		x.request = streamExecution{run, f}
	} else {
		b, err := o.client.packet(f)
		if err != nil {
			return err
		}
		run.body = bytes.Clone(b)
		if f.first != comBulkExecute {
			run.body = p.withTypes(run.body, len(p.forms) > 1 || !fm.clients, o.traits.KeepsTypes)
		}
		x.request = run
		if !fm.clients && !p.longData {
			x.fallback = func(_ int, why string) (*exchange, error) { return s.executeClients(fm.plan, run, why) }
		}
	}
	p.longData, p.cursor = false, cursor
	err = x.run()
	fm.ran = fm.ran || !x.answer.failed
	p.longData = p.spoiled || x.answer.failed && x.answer.err.Code == wrongArguments // the server's statement is unusable until it is reset (MariaDB 10.11.19)
	return err
}

// wrongArguments is ER_WRONG_ARGUMENTS: long data was sent for no parameter.
const wrongArguments = "1210"

// refuse answers an execution with the server's error in answer to the preparation.
func (s *preparedStatements) refuse(f frame, p *prepared, e *history.ServerError) error {
	o := s.o
	if _, err := o.client.packet(f); err != nil {
		return o.badClient(err, "command")
	}
	return s.failed(p, e)
}

// failed answers an execution with an error that the server gave us.
func (s *preparedStatements) failed(p *prepared, e *history.ServerError) error {
	o := s.o
	a := &answer{o: o}
	plan := forwarded([]*rewrite.Plan{p.used.plan}, "the tables were changed")[0]
	st := &sentStatement{plan: plan, ticket: o.tracker.Sending(plan)}
	st.running = o.tracker.Answer(st.ticket)
	o.warnings.clear(plan, &o.traits)
	err := a.fail(st, encodeERR(e, true), e)
	o.counts.spoiled = true // if the session was in another database meanwhile, see prepareIn
	return err
}

// executeClients makes the execution of the client's own text after the server refused ours.
func (s *preparedStatements) executeClients(plan *rewrite.Plan, run execution, why string) (*exchange, error) {
	o := s.o
	p := run.of
	fm := s.clientsForm(p.sql, plan)
	refused, err := s.prepareIn(p.forms[0].session.Database, fm)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, s.failed(p, refused)
	}
	p.used = fm
	if err := s.addForm(p, fm); err != nil {
		return nil, err
	}
	run.id = fm.id
	return &exchange{o: o, plans: forwarded([]*rewrite.Plan{plan}, why), client: p.sql, request: run}, nil
}

// withTypes remembers the parameters' types that an execution brings. If it brings none although the server's
// statement may be another one than last time, they are put in (MySQL manual, "COM_STMT_EXECUTE": null bitmap, a byte
// that says whether types follow, types, values).
func (p *prepared) withTypes(b []byte, mayDiffer, keeps bool) []byte {
	const fixed = 1 + 4 + 1 + 4
	at := fixed + (p.params+7)/8
	if p.params == 0 || len(b) <= at {
		return b
	}
	if b[at] != 0 { // as the servers read it
		if len(b) >= at+1+2*p.params {
			p.bind(b[at+1:at+1+2*p.params], keeps)
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

// bind remembers the types of an execution, but those that the server does not take (product.Traits.KeepsTypes).
func (p *prepared) bind(types []byte, keeps bool) {
	n := len(types)
	if keeps {
		for n = 0; n < len(types) && !p.spoiled && (types[n] <= mysql.MYSQL_TYPE_BIT || types[n] >= mysql.MYSQL_TYPE_NEWDECIMAL); n += 2 {
		}
	}
	switch {
	case n == len(types):
		p.bound = append(p.bound[:0], types...)
	case len(p.bound) == len(types):
		copy(p.bound[:n], types)
	}
}

// handle relays a command that names a prepared statement and is not answered, or (COM_STMT_RESET) by OK.
func (s *preparedStatements) handle(f frame) error {
	o := s.o
	if short := map[byte]int{mysql.COM_STMT_SEND_LONG_DATA: 7, mysql.COM_STMT_CLOSE: 5}; f.n < short[f.first] && o.traits.RefusesShort {
		return o.single()
	}
	head, err := o.client.prefix(f, 7)
	if err != nil {
		return err
	}
	p := s.named(head)
	if p == nil {
		if f.first == mysql.COM_STMT_RESET {
			return o.single()
		}
		return o.relayCommand()
	}
	switch f.first {
	case mysql.COM_STMT_CLOSE:
		return s.close(p, head)
	case mysql.COM_STMT_SEND_LONG_DATA:
		return s.relayLongData(p, f, head)
	}
	p.longData, p.spoiled = false, false
	o.warnings.parsed = 0 // its answer counts none, nor does a COM_PING behind it (mysqld_stmt_reset; 9.7.4)
	binary.LittleEndian.PutUint32(head[1:], p.used.id)
	return o.single()
}

// close relays COM_STMT_CLOSE, whose head is in the client's buffer, and closes our own forms of the statement.
func (s *preparedStatements) close(p *prepared, head []byte) error {
	for _, fm := range p.forms[1:] {
		if err := s.o.ownClose(fm.id); err != nil {
			return err
		}
	}
	s.drop(p)
	binary.LittleEndian.PutUint32(head[1:], p.id)
	return s.o.relayCommand()
}

// relayLongData relays COM_STMT_SEND_LONG_DATA, whose head is in the client's buffer. The first one for an execution
// decides which form it executes.
func (s *preparedStatements) relayLongData(p *prepared, f frame, head []byte) (err error) {
	o := s.o
	if len(head) >= 7 && int(binary.LittleEndian.Uint16(head[5:])) >= p.params {
		p.spoiled = true
	}
	if !p.longData {
		if _, _, err := s.choose(p, true); err != nil {
			return err
		}
		p.longData = true
		if head, err = o.client.prefix(f, 5); err != nil {
			return err
		}
	}
	binary.LittleEndian.PutUint32(head[1:], p.used.id)
	return o.relayCommand()
}

// fetch relays COM_STMT_FETCH: rows without metadata.
func (s *preparedStatements) fetch(f frame) error {
	o := s.o
	head, err := o.client.prefix(f, 5)
	if err != nil {
		return err
	}
	p := s.named(head)
	plan := &rewrite.Plan{Text: "fetch", Verb: "other"}
	cols := &columns{binary: true}
	if p != nil {
		binary.LittleEndian.PutUint32(head[1:], p.used.id)
		cols.types, cols.hidden = p.used.types, p.used.plan.Hidden
	}
	st := &sentStatement{plan: plan, ticket: o.tracker.Sending(plan)}
	st.running = o.tracker.Answer(st.ticket)
	o.warnings.clear(plan, &o.traits)
	if err := o.relayCommand(); err != nil {
		return err
	}
	a := &answer{o: o, statements: []*sentStatement{st}, binary: true, prepared: p}
	if f, err = o.nextPacket(); err != nil {
		return err
	}
	if o.endsRows(f) {
		if ended, _, err := a.endRows(st, f, cols); err != nil || ended {
			return err
		}
	}
	_, err = a.relayRows(st, cols)
	return err
}

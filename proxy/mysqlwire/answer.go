package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// sentStatement is one statement under way, with what follows from its answer.
type sentStatement struct {
	plan    *rewrite.Plan
	ticket  *record.Ticket
	running *record.Running // since its answer began
	listing *listing        // nil: it is no SHOW WARNINGS to which rows are added
}

// answer is the reading of one command's answer.
type answer struct {
	o          *observation
	statements []*sentStatement
	next       int // of statements: the one whose answer comes
	binary     bool
	// prepared tells the columns of a statement whose answer may come without metadata (MariaDB's cache of it).
	prepared *prepared
	failed   bool                 // an error ended it
	err      *history.ServerError // if failed
	cursor   bool                 // the client is to fetch the rows
	affected uint64
	insertID uint64 // of an OK
	matched  int    // rows that an UPDATE found whose plan logs; -1: not known
	// hold keeps an error from the client that says that the server refused the text that we made, so that the client's own
	// text can be sent instead.
	hold             func(*rewrite.Plan, *history.ServerError) bool
	held             bool   // hold said yes
	another          bool   // the client had the columns of another form of the statement before,
	reshaped         bool   // and of another number
	from             byte   // the sequence number of the first packet of the present result
	shown, concealed uint64 // rows of the present result, where some may be concealed
	// front is how many warnings were kept back when the statement was parsed apart.
	front int
	// moments gives what the server's time was, as far as a query in front of the statement told it; nil: there was none.
	moments func() []condition.Value
}

// terminator is the packet that ends a result: OK, EOF or an OK in place of EOF.
type terminator struct {
	packet           []byte
	status, warnings uint16
	at               int // offset of status in the packet
	warningsAt       int
	rowless          bool // nothing came before it
}

// current is the statement whose answer is coming. Answers beyond the statements that are known belong to the last one.
func (a *answer) current() *sentStatement { return a.statements[min(a.next, len(a.statements)-1)] }

// relay relays the whole answer to a command that executes statements.
func (a *answer) relay() error {
	f, err := a.o.nextPacket()
	for {
		if err != nil {
			return err
		}
		st := a.current()
		if st.running == nil {
			st.running = a.o.tracker.Answer(st.ticket)
		}
		a.from = a.o.seq
		more, err := a.relayResult(st, f)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		f, err = a.o.nextPacket()
		if err != nil {
			return err
		}
	}
	// What the server did not come to is not executed.
	for _, st := range a.statements {
		if st.running == nil {
			a.o.tracker.Drop(st.ticket)
		}
	}
	return nil
}

// relayResult relays one result of an answer, and reports whether another one follows.
func (a *answer) relayResult(st *sentStatement, f frame) (more bool, err error) {
	switch {
	case f.n == 0:
		return false, fmt.Errorf("read the server's answer: %w", errMalformed)
	case f.first == markERR:
		return a.relayError(st, f)
	case f.first == markOK, f.first == markEOF && f.n >= packetEOF && a.o.has(deprecateEOF):
		return a.relayOK(st, f)
	case f.first == markEOF && f.n < packetEOF:
		b, err := a.o.take(f)
		if err != nil {
			return false, err
		}
		return a.endWithEOF(st, b, true)
	case f.first == markInfo:
		if err := a.relayFile(f); err != nil {
			return false, err
		}
		if f, err = a.o.nextPacket(); err != nil {
			return false, err
		}
		return a.relayResult(st, f)
	}
	return a.relayResultSet(st, f)
}

// relayOK relays an OK that is a whole result.
func (a *answer) relayOK(st *sentStatement, f frame) (more bool, err error) {
	b, err := a.o.take(f)
	if err != nil {
		return false, err
	}
	ok, err := parseOK(b)
	if err != nil {
		return false, fmt.Errorf("read the server's OK: %w", err)
	}
	a.affected, a.insertID, a.o.counts.changed = ok.affected, ok.insertID, int64(ok.affected)
	if st.plan.Log {
		a.matched = matchedRows(b[ok.at+4:])
	}
	return a.end(st, ok.terminator(b, true))
}

// relayError relays an error, which ends the whole answer. A progress report only looks like one: more is true then.
func (a *answer) relayError(st *sentStatement, f frame) (more bool, err error) {
	o := a.o
	b, err := o.take(f)
	if err != nil {
		return false, err
	}
	e := parseERR(b)
	if e.Code == progress && o.has(capProgress) {
		return true, o.toClient(b)
	}
	a.failed, a.err = true, e
	if a.hold != nil && o.seq == a.from && a.hold(st.plan, e) {
		// The server refused it before it executed anything, so that the client's own text stands for it.
		a.held = true
		st.running = nil
		return false, nil
	}
	return false, a.fail(st, b, e)
}

// fail ends the whole answer with an error and relays its packet.
func (a *answer) fail(st *sentStatement, b []byte, e *history.ServerError) error {
	o := a.o
	e.Aborted = o.traits.abortsAt(st.plan, e)
	o.victim = o.victim || e.Code == deadlock
	due := o.tracker.Done(st.running, record.Result{Err: e})
	if e.Aborted {
		o.settings.status &^= statusInTrans
	}
	due = append(due, o.tracker.Status(o.settings.status)...)
	o.warnings.renew()
	o.warnings.server = 1
	if st.plan.Listed {
		b = bytes.Clone(b)
		if err := o.warnings.firstError(&o.link, &o.counts, e); err != nil {
			return err
		}
	}
	o.warn(o.warnings.takeDue(due)) // an error has no count of warnings, but SHOW WARNINGS lists them
	o.counts.changed, o.counts.spoiled = -1, false
	a.next = len(a.statements)
	return o.toClient(b)
}

// endWithEOF ends a result with an EOF packet.
func (a *answer) endWithEOF(st *sentStatement, b []byte, rowless bool) (more bool, err error) {
	if len(b) < 5 {
		return false, fmt.Errorf("read the server's EOF: %w", errMalformed)
	}
	return a.end(st, terminator{b, binary.LittleEndian.Uint16(b[3:]), binary.LittleEndian.Uint16(b[1:]), 3, 1, rowless})
}

// tellColumns makes the two bytes of a status say whether the number of a prepared statement's columns has changed, where the server cannot know it.
func (a *answer) tellColumns(status []byte) {
	if !a.another {
		return
	}
	flags := binary.LittleEndian.Uint16(status) &^ statusMetadata
	if a.reshaped {
		flags |= statusMetadata
	}
	binary.LittleEndian.PutUint16(status, flags)
}

// changing are the verbs of statements whose count of affected rows is one of rows that they changed.
var changing = []string{"insert", "replace", "update", "delete"}

// end ends a result with its last packet: the statement is over if no more results of it follow.
func (a *answer) end(st *sentStatement, t terminator) (more bool, err error) {
	o := a.o
	o.settings.status = t.status
	a.tellColumns(t.packet[t.at:])
	a.cursor = t.status&statusCursor != 0
	more = t.status&statusMoreResults != 0
	var due []record.Warning
	// The results of CALL go on until its own OK; other statements have one result each. A statement that is not
	// known to be the last one's is taken for the last one.
	over := !more || a.next < len(a.statements)-1 && (!manyResults(st.plan) || t.rowless)
	if over {
		if a.cursor && (st.plan.Hidden > 0 || st.plan.AsksExistence()) {
			st.opaque("its rows are fetched with a cursor")
		}
		bare := o.sawBare(st.plan)
		res := record.Result{}
		if t.rowless && slices.Contains(changing, st.plan.Verb) {
			res.Changed, res.None = a.affected, st.plan.Log && st.plan.Verb == "update" && a.matched == 0
		}
		if a.moments != nil {
			res.Moments = a.moments()
		}
		due = o.tracker.Done(st.running, res)
		if o.terminal() {
			due = append(bare, due...)
		} else { // a program that counts warnings behaves as without us, and finds this one if it asks
			o.warn(bare)
		}
		o.follow(st.plan)
		due = append(due, o.tracker.Status(o.settings.status)...)
		a.next++
	}
	o.counts.note(st.plan, &o.traits)
	o.counts.spoiled = false
	if a.concealed > 0 {
		shown := a.shown
		o.counts.found, o.counts.foundNow = &shown, shown+a.concealed
	}
	b := t.packet
	if a.front > 0 {
		if b, err = addWarnings(b, t, a.front); err != nil {
			return false, err
		}
		t.warnings = plusWarnings(t.warnings, a.front)
	}
	if t.warnings > 0 && !st.plan.Diagnostics {
		o.warnings.renew()
	}
	if !st.plan.Diagnostics && (t.warnings > 0 || o.traits.forgetsWarnings(st.plan)) {
		o.warnings.server = t.warnings - uint16(a.front)
	}
	if created := a.created(); !more && len(created) > 0 {
		b = bytes.Clone(b)
		if err := (newTables{o}).instrument(created); err != nil {
			return false, err
		}
	}
	if st.plan.Diagnostics { // it shows the list of the statement before
		o.warnings.late(due)
	} else if n := o.warn(o.warnings.takeDue(due)); n > 0 {
		binary.LittleEndian.PutUint16(b[t.warningsAt:], plusWarnings(t.warnings, n))
	}
	return more, o.toClient(b)
}

// relayFile relays the server's request for a local file and the client's packets up to the empty one that ends it.
func (a *answer) relayFile(request frame) error {
	o := a.o
	if err := o.pass(request); err != nil {
		return err
	}
	at := request.seq // the server's own count: it has sent more than the client got, if columns were hidden before
	for continued := false; ; {
		f, err := o.client.peek()
		if err != nil {
			return err
		}
		if f.seq != o.seq && !o.compresses {
			return o.badClient(errSequence{f.seq, o.seq}, "file")
		}
		at++
		if err := o.client.relayFrame(f, o.server, at); err != nil {
			return err
		}
		o.seq = f.seq + 1
		if f.n == 0 && !continued {
			return nil
		}
		continued = f.n == frameMax
	}
}

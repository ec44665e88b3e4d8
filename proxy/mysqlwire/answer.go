package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// errServer is an error of the server's connection at a place where the client can still be told.
type errServer struct{ err error }

func (e *errServer) Error() string { return "the server's connection: " + e.err.Error() }
func (e *errServer) Unwrap() error { return e.err }

// statement is one statement under way, with what follows from its answer.
type statement struct {
	plan    *rewrite.Plan
	ticket  *record.Ticket
	running *record.Running // since its answer began
}

// answer is the reading of one command's answer.
type answer struct {
	statements []*statement
	next       int // of statements: the one whose answer comes
	binary     bool
	// prepared tells the columns of a statement whose answer may come without metadata (MariaDB's cache of it).
	prepared *prepared
	failed   bool      // an error ended it
	err      errPacket // if failed
	cursor   bool      // rows are to be fetched
	affected uint64
	matched  int // rows that an UPDATE found (TiDB)
	// hold keeps an error that says that the text we made does not fit any more away from the client, so that the
	// client's own text can be sent instead.
	hold func(errPacket) bool
	held bool // hold said yes
	// front is how many warnings were kept back when the statement was parsed apart.
	front int
	last  terminator
}

// terminator is the packet that ends a result: OK, EOF or an OK in place of EOF.
type terminator struct {
	status, warnings uint16
	at               int // offset of status in the packet
	warningsAt       int
}

// current is the statement whose answer is coming. Answers beyond the statements that are known belong to the last one.
func (a *answer) current() *statement { return a.statements[min(a.next, len(a.statements)-1)] }

// firstPacket waits for the first packet of an answer, while the client is watched: if it leaves, so does the session.
func (s *session) firstPacket() (frame, error) {
	if err := s.server.await(s.client, false); err != nil {
		var other *otherError
		switch {
		case errors.As(err, &other):
			return frame{}, err // the client is gone
		case errors.Is(err, errPoked):
		default:
			return frame{}, &errServer{err}
		}
	}
	return s.nextPacket()
}

// nextPacket waits for a further packet of an answer.
func (s *session) nextPacket() (frame, error) {
	f, err := s.server.peek()
	if err != nil {
		return f, &errServer{err}
	}
	return f, nil
}

// take uses up a packet that is short by its nature.
func (s *session) take(f frame) ([]byte, error) {
	b, err := s.server.packet(f)
	if err != nil {
		return nil, &errServer{err}
	}
	return b, nil
}

// pass relays one packet as it is, with the client's next sequence number.
func (s *session) pass(f frame) error {
	seq, err := s.server.relay(s.client, s.seq-f.seq)
	s.seq = seq + 1
	return err
}

// relayAnswer relays the whole answer to a command that executes statements.
func (s *session) relayAnswer(a *answer) error {
	f, err := s.firstPacket()
	for {
		if err != nil {
			return err
		}
		st := a.current()
		if st.running == nil {
			st.running = s.tracker.Answer(st.ticket)
		}
		more, err := s.relayResult(a, st, f)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		f, err = s.nextPacket()
		if err != nil {
			return err
		}
	}
	// What the server did not come to is not executed.
	for _, st := range a.statements {
		if st.running == nil {
			s.tracker.Drop(st.ticket)
		}
	}
	return nil
}

// relayResult relays one result of an answer, and reports whether another one follows.
func (s *session) relayResult(a *answer, st *statement, f frame) (more bool, err error) {
	switch {
	case f.n == 0:
		return false, fmt.Errorf("read the server's answer: %w", errMalformed)
	case f.first == markERR:
		return s.relayError(a, st, f)
	case f.first == markOK, f.first == markEOF && f.n >= packetEOF && s.caps&deprecateEOF != 0:
		b, err := s.take(f)
		if err != nil {
			return false, err
		}
		ok, err := parseOK(b)
		if err != nil {
			return false, fmt.Errorf("read the server's OK: %w", err)
		}
		a.affected, s.changedRows = ok.affected, int64(ok.affected)
		if st.plan.Log && s.onTiDB() {
			a.matched = matchedRows(b[ok.at+4:])
		}
		return s.finish(a, st, b, terminator{ok.status, ok.warnings, ok.at, ok.at + 2}, true)
	case f.first == markEOF && f.n < packetEOF:
		b, err := s.take(f)
		if err != nil {
			return false, err
		}
		return s.finishEOF(a, st, b, true)
	case f.first == markInfo:
		if err := s.relayInfile(f); err != nil {
			return false, err
		}
		if f, err = s.firstPacket(); err != nil {
			return false, err
		}
		return s.relayResult(a, st, f)
	}
	return s.relayResultSet(a, st, f)
}

// relayError relays an error, which ends the whole answer. A progress report only looks like one.
func (s *session) relayError(a *answer, st *statement, f frame) (more bool, err error) {
	b, err := s.take(f)
	if err != nil {
		return false, err
	}
	e := parseERR(b)
	if e.code == progress && s.caps&capProgress != 0 {
		return true, s.toClient(b)
	}
	if a.hold != nil && a.hold(e) {
		// It was refused before anything was executed, so that the client's own text stands for it.
		a.held, a.failed, a.err = true, true, e
		st.running = nil
		return false, nil
	}
	a.failed, a.err = true, e
	aborted := s.aborts(e.code) || s.commitFails(st.plan, e.code)
	s.victim = s.victim || e.code == mysql.ER_LOCK_DEADLOCK
	due := s.tracker.Done(st.running, record.Result{Err: e.history(), Aborted: aborted})
	if aborted {
		s.status &^= statusInTrans
	}
	due = append(due, s.tracker.Status(s.status&statusInTrans != 0)...)
	s.tell(append(s.due, due...)) // an error has no count of warnings, but SHOW WARNINGS lists them
	s.due = nil
	s.serverWarnings = 1
	s.changedRows = -1
	a.next = len(a.statements)
	return false, s.toClient(b)
}

// finishEOF ends a result with an EOF packet.
func (s *session) finishEOF(a *answer, st *statement, b []byte, rowless bool) (more bool, err error) {
	if len(b) < 5 {
		return false, fmt.Errorf("read the server's EOF: %w", errMalformed)
	}
	t := terminator{status: binary.LittleEndian.Uint16(b[3:]), warnings: binary.LittleEndian.Uint16(b[1:]), at: 3, warningsAt: 1}
	return s.finish(a, st, b, t, rowless)
}

// finish ends a result with its last packet b: the statement is over if no more results of it follow.
func (s *session) finish(a *answer, st *statement, b []byte, t terminator, rowless bool) (more bool, err error) {
	s.status = t.status
	a.last = t
	a.cursor = t.status&statusCursor != 0
	more = t.status&statusMoreResults != 0
	var due []record.Warning
	// The results of CALL go on until its own OK; other statements have one result each. A statement that is not
	// known to be the last one's is taken for the last one.
	over := !more || a.next < len(a.statements)-1 && (!manyResults(st.plan) || rowless)
	if over {
		if a.cursor && st.plan.Hidden > 0 {
			st.running.Opaque("its rows are fetched with a cursor")
		}
		due = s.tracker.Done(st.running, record.Result{})
		s.follow(st.plan)
		due = append(due, s.tracker.Status(t.status&statusInTrans != 0)...)
		a.next++
	}
	s.noteFoundRows(st.plan)
	if a.front > 0 {
		if b, err = addWarnings(b, t, a.front); err != nil {
			return false, err
		}
		t.warnings = uint16(min(int(t.warnings)+a.front, math.MaxUint16))
	}
	if !st.plan.Diagnostics {
		s.serverWarnings = t.warnings - uint16(a.front)
	}
	if created := a.created(); !more && len(created) > 0 {
		b = bytes.Clone(b)
		if err := s.afterDDL(created); err != nil {
			return false, err
		}
	}
	due = append(s.due, due...)
	s.due = nil
	if n := s.tell(due); n > 0 {
		binary.LittleEndian.PutUint16(b[t.warningsAt:], uint16(min(int(t.warnings)+n, math.MaxUint16)))
	}
	return more, s.toClient(b)
}

// relayResultSet relays metadata and rows.
func (s *session) relayResultSet(a *answer, st *statement, f frame) (more bool, err error) {
	b, err := s.take(f)
	if err != nil {
		return false, err
	}
	count, rest, err := lenenc(b)
	if err != nil || count > 1<<16 {
		return false, fmt.Errorf("read the number of columns: %w", errMalformed)
	}
	hidden := st.plan.Hidden
	// MariaDB tells in a further byte whether the metadata follows.
	follows := s.caps&capCacheMetadata == 0 || len(rest) == 0 || rest[0] != 0
	var held [][]byte
	if hidden == 0 && follows && s.mayShow(st.plan) {
		rest = bytes.Clone(rest)
		if held, hidden, err = s.holdDefinitions(int(count)); err != nil {
			return false, err
		}
	}
	if uint64(hidden) > count || st.plan.NoRows {
		return false, fmt.Errorf("a result has %d columns, %d of them ours: %w", count, hidden, errMalformed)
	}
	s.changedRows = -1
	cols := &columns{hidden: hidden, binary: a.binary}
	if hidden > 0 {
		b = append(mysql.PutLengthEncodedInt(count-uint64(hidden)), rest...)
	}
	if err := s.toClient(b); err != nil {
		return false, err
	}
	if follows {
		if held != nil {
			cols.types, err = s.releaseDefinitions(held, hidden)
		} else {
			cols.types, err = s.relayDefinitions(int(count), hidden, nil)
		}
		if err != nil {
			return false, err
		}
		if a.prepared != nil {
			a.prepared.types = cols.types
		}
	} else if a.prepared != nil && len(a.prepared.types) == int(count) {
		cols.types = a.prepared.types
	} else {
		return false, fmt.Errorf("a result came without its columns: %w", errMalformed)
	}
	if s.caps&deprecateEOF == 0 {
		done, more, err := s.relayColumnsEnd(a, st)
		if err != nil || done {
			return more, err
		}
	}
	return s.relayRows(a, st, cols)
}

// relayColumnsEnd relays the EOF behind the column definitions. If a cursor was opened it ends the result too.
func (s *session) relayColumnsEnd(a *answer, st *statement) (done, more bool, err error) {
	f, err := s.nextPacket()
	if err != nil {
		return false, false, err
	}
	if f.first == markERR {
		more, err := s.relayError(a, st, f)
		return true, more, err
	}
	b, err := s.take(f)
	if err != nil {
		return false, false, err
	}
	if f.first != markEOF || len(b) < 5 {
		return false, false, fmt.Errorf("read the end of the columns: %w", errMalformed)
	}
	if binary.LittleEndian.Uint16(b[3:])&statusCursor != 0 {
		more, err := s.finishEOF(a, st, b, false)
		return true, more, err
	}
	return false, false, s.toClient(b)
}

// relayDefinitions relays n column definitions but for the last hidden ones, and returns the types of all of them. drop, if
// not nil, says which others to leave away.
func (s *session) relayDefinitions(n, hidden int, drop func(def []byte) bool) ([]byte, error) {
	types := make([]byte, 0, n)
	for i := range n {
		f, err := s.nextPacket()
		if err != nil {
			return nil, err
		}
		def, err := s.take(f)
		if err != nil {
			return nil, err
		}
		typ, err := typeOf(def)
		if err != nil {
			return nil, fmt.Errorf("read a column definition: %w", err)
		}
		types = append(types, typ)
		if i >= n-hidden || drop != nil && drop(def) {
			continue
		}
		if err := s.toClient(def); err != nil {
			return nil, err
		}
	}
	return types, nil
}

var handlerRead = regexp.MustCompile(`(?is)^\s*HANDLER\b.*\bREAD\b`)

// readsHandler reports whether the statement is HANDLER ... READ, which shows all columns of a table, ours too.
func readsHandler(p *rewrite.Plan) bool { return p.Verb == "other" && handlerRead.MatchString(p.Text) }

// holdDefinitions reads n column definitions and tells how many of the last ones are ours.
func (s *session) holdDefinitions(n int) (held [][]byte, ours int, err error) {
	for range n {
		f, err := s.nextPacket()
		if err != nil {
			return nil, 0, err
		}
		def, err := s.take(f)
		if err != nil {
			return nil, 0, err
		}
		held = append(held, bytes.Clone(def))
		if dialect.HiddenColumn(columnName(def)) {
			ours++
		} else {
			ours = 0
		}
	}
	return held, ours, nil
}

// releaseDefinitions relays held definitions but for the last hidden ones, and returns the types of all of them.
func (s *session) releaseDefinitions(held [][]byte, hidden int) ([]byte, error) {
	types := make([]byte, 0, len(held))
	for i, def := range held {
		typ, err := typeOf(def)
		if err != nil {
			return nil, fmt.Errorf("read a column definition: %w", err)
		}
		types = append(types, typ)
		if i >= len(held)-hidden {
			continue
		}
		if err := s.toClient(def); err != nil {
			return nil, err
		}
	}
	return types, nil
}

// endsRows reports whether f is not a row but the end of the rows: EOF, an OK in its place, or an error. A row's first
// column of 16 MiB or more begins like an EOF, but its packet has more than one frame.
func (s *session) endsRows(f frame) bool {
	switch f.first {
	case markERR:
		return f.n > 0
	case markEOF:
		return f.n < packetEOF || s.caps&deprecateEOF != 0 && f.n < frameMax
	}
	return false
}

// relayRows relays rows and what ends them.
func (s *session) relayRows(a *answer, st *statement, cols *columns) (more bool, err error) {
	if err := s.prependWarnings(cols); err != nil {
		return false, err
	}
	plain := cols.hidden == 0 && st.plan.Conceal == nil
	for {
		f, err := s.nextPacket()
		if err != nil {
			return false, err
		}
		switch {
		case s.endsRows(f):
			return s.endRows(a, st, f, cols)
		case plain:
			err = s.pass(f)
		default:
			err = s.relayRow(st, cols, f)
		}
		if err != nil {
			return false, err
		}
	}
}

func (s *session) endRows(a *answer, st *statement, f frame, cols *columns) (more bool, err error) {
	if f.first == markERR {
		more, err := s.relayError(a, st, f)
		if more { // it was a progress report
			return s.relayRows(a, st, cols)
		}
		return false, err
	}
	b, err := s.take(f)
	if err != nil {
		return false, err
	}
	if err := s.appendWarnings(cols); err != nil {
		return false, err
	}
	if f.n < packetEOF && s.caps&deprecateEOF == 0 {
		return s.finishEOF(a, st, b, false)
	}
	ok, err := parseOK(b)
	if err != nil {
		return false, fmt.Errorf("read the end of the rows: %w", err)
	}
	return s.finish(a, st, b, terminator{ok.status, ok.warnings, ok.at, ok.at + 2}, false)
}

// relayRow relays one row without its hidden columns.
func (s *session) relayRow(st *statement, cols *columns, f frame) error {
	if f.n > min(s.ps.Config.Limits.Row, packetMax) {
		if cols.hidden == 0 {
			return s.pass(f)
		}
		st.running.Opaque("a row is too long to be held")
		return s.longRow(cols)
	}
	row, err := s.take(f)
	if err != nil {
		return err
	}
	if cols.hidden > 0 {
		shown, hidden, err := cols.cut(row, s.scratch)
		if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		s.decode(st, hidden)
		row = shown
		if cols.binary {
			s.scratch = shown
		}
	}
	if st.plan.Conceal != nil {
		keep := true
		if row, keep, err = cols.conceal(row, st.plan.Conceal); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		if !keep {
			return nil
		}
	}
	return s.toClientFrames(row)
}

// decode gives a row's hidden values to the history.
func (s *session) decode(st *statement, hidden [][]byte) {
	if st.running == nil || st.plan.Decode == nil {
		return
	}
	switch err := st.running.Decode(st.plan, hidden); {
	case err == nil:
	case errors.Is(err, rewrite.ErrPartial):
		st.running.Opaque(err.Error())
	default:
		st.running.Opaque("the hidden columns are not understood: " + err.Error())
	}
}

// relayInfile relays the server's request for a local file and the client's packets up to the empty one that ends it.
func (s *session) relayInfile(request frame) error {
	if err := s.pass(request); err != nil {
		return err
	}
	for continued := false; ; {
		f, err := s.client.peek()
		if err != nil {
			return err
		}
		if f.seq != s.seq {
			return s.badClient(errSequence{f.seq, s.seq}, "file")
		}
		if err := s.client.relayFrame(f, s.server, f.seq); err != nil {
			return err
		}
		s.seq = f.seq + 1
		if f.n == 0 && !continued {
			return nil
		}
		continued = f.n == frameMax
	}
}

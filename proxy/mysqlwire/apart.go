package mysqlwire

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// MySQL warns of assignments within expressions (1287) when it parses a text: the warnings are in the answer to
// COM_STMT_PREPARE and in SHOW WARNINGS behind it, but not in those of COM_STMT_EXECUTE, which begins with an empty list.
// (Parsing it once more, because a table was changed, clears the list too; all measured on 9.7.4, TestParsedApart.) So
// such a text (rewrite.Plan.ParsedApart) is prepared, executed and closed. It is a write without a result set, whose OK is the same in
// both protocols. If the server refuses to prepare it nothing was executed, and the client's own text is sent.

// apart makes a request of a text that is to be parsed apart.
func (s *session) apart(r request, sql string) request {
	r.apart = true
	r.send = func() error { return s.server.put(0, []byte{mysql.COM_STMT_PREPARE}, []byte(sql)) }
	return r
}

// execApart reads the answer to the preparation and sends the execution. ok is false if the client's own text must be
// sent; its reason is why. An error that the client's own text would have met as well stays in the input as the answer.
func (s *session) execApart() (why string, ok bool, err error) {
	f, err := s.nextPacket()
	if err != nil {
		return "", false, err
	}
	if f.first == markERR {
		head, err := s.server.prefix(f, 3)
		if err != nil {
			return "", false, &errServer{err}
		}
		if len(head) >= 3 && meantForClient(binary.LittleEndian.Uint16(head[1:])) {
			return "", true, nil
		}
	}
	fm := &form{}
	refused, err := s.prepareOwnAnswer(fm)
	if err != nil {
		return "", false, err
	}
	if refused != nil {
		if dialect.Stale(refused.code, refused.message) {
			s.observer.changed()
		}
		return "the server did not prepare it: " + refused.message, false, nil
	}
	// No flags, one iteration, no parameters (MySQL manual, "COM_STMT_EXECUTE").
	execute := binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_EXECUTE}, fm.id)
	if err := s.server.put(0, append(execute, 0, 1, 0, 0, 0)); err != nil {
		return "", false, err
	}
	return "", true, s.server.put(0, closeCommand(fm.id))
}

// meantForClient reports whether an error says something about the session rather than about the text: a lock wait that was too
// long (for a table that is being changed), the end of the server, KILL QUERY.
func meantForClient(code uint16) bool {
	switch code {
	case 1053, 1205, 1213, 1317, 3169:
		return true
	}
	return false
}

// apartForm is the client's own text, to stand for a form that is parsed apart until it is executed.
func (s *session) apartForm(sql string, fm *form) *form {
	plain := s.plainForm(sql, fm.plan)
	plain.session = dialect.Session{Database: fm.session.Database} // no session is like that, so choose looks for another form
	return plain
}

// fetchQuietly puts the statements into the output that fetch the log from MySQL and set the stamp.
func (s *session) fetchQuietly(stamp string) error {
	q := dialect.FetchLogQuietly(stamp)
	if err := s.ownQuery(q[0]); err != nil {
		return err
	}
	return s.ownQuery(q[1] + ",FOUND_ROWS()")
}

// logAnswer reads the answers to what fetched the log: refused says that the stamp was not set, lost that the log is gone.
func (s *session) logAnswer(stamp string) (rows [][][]byte, refused *errPacket, lost bool, err error) {
	if s.rewriter.Flavor() != dialect.MySQL {
		rows, refused, err = s.ownAnswer()
		return rows, refused, refused != nil, err
	}
	if _, refused, err = s.ownAnswer(); err != nil {
		return nil, nil, false, err
	}
	rows, unread, err := s.ownAnswer()
	return rows, refused, refused != nil || unread != nil, err
}

// forgetsWarnings reports whether the server forgets its list of warnings at a statement. MySQL does so at each but those that ask for
// diagnostics (manual, "Diagnostics Area").
func (s *session) forgetsWarnings(p *rewrite.Plan) bool {
	return p.Coverage != history.CoverageNone || p.Schema || s.rewriter.Flavor() == dialect.MySQL
}

package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

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
func (s *session) execApart(a *answer) (why string, ok bool, err error) {
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
	refused, warnings, err := s.prepareOwnAnswer(fm)
	if err != nil {
		return "", false, err
	}
	if refused != nil {
		if dialect.Stale(refused.code, refused.message) {
			s.observer.changed()
		}
		return "the server did not prepare it: " + refused.message, false, nil
	}
	if plan := a.statements[0].plan; warnings != plan.ParsedApart {
		ok, err := s.keepFront(plan.ParsedApart, warnings)
		if err != nil {
			return "", false, err
		}
		if !ok {
			return "the warnings of its own text cannot be told from ours", false, s.server.put(0, closeCommand(fm.id))
		}
		a.front = len(s.front)
	}
	// No flags, one iteration, no parameters (MySQL manual, "COM_STMT_EXECUTE").
	execute := binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_EXECUTE}, fm.id)
	if err := s.server.put(0, append(execute, 0, 1, 0, 0, 0)); err != nil {
		return "", false, err
	}
	return "", true, s.server.put(0, closeCommand(fm.id))
}

// codeDeprecated is ER_WARN_DEPRECATED_SYNTAX; its text tells what is meant.
const codeDeprecated = "1287"

const assignmentText = "Setting user variables within expressions is deprecated"

// keepFront asks for the warnings of a preparation and keeps those that are of the client's own text (VALUES(c), &&, an
// assignment) for its answer and for SHOW WARNINGS, where they stand in front of those of the execution. It reports false
// if ours are not all among them (max_error_count), or not as many as they should be.
func (s *session) keepFront(ours, all int) (bool, error) {
	if err := s.ownQuery("SHOW WARNINGS"); err != nil {
		return false, err
	}
	if err := s.ownQuery("SELECT @@max_error_count,FOUND_ROWS()"); err != nil {
		return false, err
	}
	list, refused, err := s.ownAnswer()
	if err != nil {
		return false, err
	}
	facts, refusedFacts, err := s.ownAnswer()
	if err != nil || refused != nil || refusedFacts != nil || len(list) != all || len(facts) != 1 || len(facts[0]) != 2 {
		return false, err
	}
	s.frontMax = atoi(string(facts[0][0]))
	if s.found == nil {
		s.keepFoundRows(string(facts[0][1]))
	}
	s.foundNow = math.MaxUint64
	s.front = nil
	for _, row := range list {
		if len(row) != 3 {
			return false, nil
		}
		code, message := string(row[1]), string(row[2])
		if ours > 0 && code == codeDeprecated && strings.HasPrefix(message, assignmentText) {
			ours--
			continue
		}
		s.front = append(s.front, listed{string(row[0]), uint16(atoi(code)), message})
	}
	return ours == 0, nil
}

// addWarnings adds n to the warnings that an OK packet counts, in its number and in its text ("Rows matched: 1  Changed: 1
// Warnings: 0"; MySQL manual, "OK_Packet": the text has its length in front).
func addWarnings(b []byte, t terminator, n int) ([]byte, error) {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint16(b[t.warningsAt:], uint16(min(int(t.warnings)+n, math.MaxUint16)))
	head := b[:t.warningsAt+2]
	if len(b) == len(head) {
		return b, nil
	}
	size, rest, err := lenenc(b[len(head):])
	if err != nil || size > uint64(len(rest)) {
		return nil, fmt.Errorf("read the text of an OK: %w", errMalformed)
	}
	info, rest := string(rest[:size]), rest[size:]
	const label = "Warnings: "
	if i := strings.LastIndex(info, label); i >= 0 {
		if had, err := strconv.Atoi(info[i+len(label):]); err == nil {
			info = info[:i+len(label)] + strconv.Itoa(had+n)
		}
	}
	return append(appendLenencString(bytes.Clone(head), info), rest...), nil
}

// inWindow keeps those of the server's rows of SHOW WARNINGS that the client asked for, behind the ones in front.
func (s *session) inWindow(l *listing) func([][]byte) bool {
	at := len(s.front)
	return func([][]byte) bool {
		at++
		l.seen++
		return l.has(at-1) && at <= s.frontMax
	}
}

// has reports whether row i of the whole list was asked for.
func (l *listing) has(i int) bool { return i >= l.offset && i-l.offset < l.limit }

// prependWarnings sends the rows of SHOW WARNINGS that stand in front of the server's.
func (s *session) prependWarnings(cols *columns) error {
	if s.listing == nil || len(cols.types) != 3 {
		return nil
	}
	for i, w := range s.front {
		if !s.listing.has(i) {
			continue
		}
		if err := s.toClientFrames(w.row(cols)); err != nil {
			return err
		}
	}
	return nil
}

// appendInWindow sends the rows behind the server's.
func (s *session) appendInWindow(l *listing, cols *columns) error {
	for i, w := range s.listed {
		if !l.has(len(s.front) + l.seen + i) {
			continue
		}
		if err := s.toClientFrames(w.row(cols)); err != nil {
			return err
		}
	}
	return nil
}

var doStatement = regexp.MustCompile(`(?i)^\s*DO\b`)

// setsFound reports whether a statement sets FOUND_ROWS() anew. On MySQL UPDATE does too, to the rows that it found, and DO.
func (s *session) setsFound(p *rewrite.Plan) bool {
	if word, _, ok := strings.Cut(p.Text[:min(len(p.Text), 8)], " "); ok && strings.EqualFold(word, "SELECT") {
		return true // as most do, without a search
	}
	return setsFoundRows.MatchString(p.Text) ||
		s.rewriter.Flavor() == dialect.MySQL && (p.Verb == "update" || doStatement.MatchString(p.Text))
}

// meantForClient reports whether an error says something about the session rather than about the text: a lock wait that
// was too long (for a table that is being changed), the end of the server, KILL QUERY.
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

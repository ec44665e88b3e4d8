package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// parsedApart is a text that is prepared, executed and closed instead of sent as COM_QUERY. MySQL warns of assignments within
// expressions (1287) when it parses a text: the warnings are in the answer to COM_STMT_PREPARE and in SHOW WARNINGS behind
// it, but not in those of COM_STMT_EXECUTE, which begins with an empty list. (Parsing it once more, because a table was
// changed, clears the list too; all measured on 9.7.4, TestParsedApart.) Such a text (rewrite.Plan.ParsedApart) is a write
// without a result set, whose OK is the same in both protocols. If the server refuses to prepare it nothing was executed,
// and the client's own text is sent.
type parsedApart struct {
	plain
	o   *observation
	sql string
}

func (r parsedApart) send(string) error { return r.o.ownPrepare(r.sql) }

// proceed reads the answer to the preparation and sends the execution. An error that the client's own text would have met as
// well stays in the input as the answer.
func (r parsedApart) proceed(a *answer) (why string, ok bool, err error) {
	o := r.o
	f, err := o.nextPacket()
	if err != nil {
		return "", false, err
	}
	if f.first == markERR {
		head, err := o.server.prefix(f, 3)
		if err != nil {
			return "", false, &errServer{err}
		}
		if len(head) >= 3 && concernsSession(binary.LittleEndian.Uint16(head[1:])) {
			return "", true, nil
		}
	}
	own, refused, err := o.ownPrepared()
	if err != nil {
		return "", false, err
	}
	if refused != nil {
		a.held = true
		return "the server did not prepare it: " + refused.Message, false, nil
	}
	if plan := a.statements[0].plan; own.warnings != plan.ParsedApart {
		ok, err := o.keepFront(plan.ParsedApart, own.warnings)
		if err != nil {
			return "", false, err
		}
		if !ok {
			return "the warnings of its own text cannot be told from ours", false, o.ownClose(own.id)
		}
		a.front = len(o.warnings.front)
		o.warnings.parsed = a.front
	}
	// No flags, one iteration, no parameters (MySQL manual, "COM_STMT_EXECUTE").
	execute := binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_EXECUTE}, own.id)
	if err := o.server.put(0, append(execute, 0, 1, 0, 0, 0)); err != nil {
		return "", false, err
	}
	return "", true, o.ownClose(own.id)
}

// concernsSession reports whether an error says something about the session rather than about the text: a lock wait that
// was too long (for a table that is being changed), the end of the server, KILL QUERY.
func concernsSession(code uint16) bool {
	switch code {
	case 1053, 1205, 1213, 1317, 3169:
		return true
	}
	return false
}

// codeDeprecated is ER_WARN_DEPRECATED_SYNTAX; its text tells what is meant.
const codeDeprecated = "1287"

const assignmentText = "Setting user variables within expressions is deprecated"

// keepFront asks for the warnings of a preparation and keeps those that are of the client's own text (VALUES(c), &&, an
// assignment) for its answer and for SHOW WARNINGS, where they stand in front of those of the execution. It reports false
// if ours are not all among them (max_error_count), or not as many as they should be.
func (o *observation) keepFront(ours, all int) (bool, error) {
	if err := o.ownQuery("SHOW WARNINGS"); err != nil {
		return false, err
	}
	if err := o.ownQuery("SELECT @@max_error_count,FOUND_ROWS()"); err != nil {
		return false, err
	}
	list, refused, err := o.ownAnswer()
	if err != nil {
		return false, err
	}
	facts, refusedFacts, err := o.ownAnswer()
	if err != nil || refused != nil || refusedFacts != nil || len(list) != all || len(facts) != 1 || len(facts[0]) != 2 {
		return false, err
	}
	o.warnings.frontMax = atoi(string(facts[0][0]))
	o.counts.keep(string(facts[0][1]))
	o.counts.foundNow = math.MaxUint64
	o.warnings.front = nil
	for _, row := range list {
		if len(row) != 3 {
			return false, nil
		}
		code, message := string(row[1]), string(row[2])
		if ours > 0 && code == codeDeprecated && strings.HasPrefix(message, assignmentText) {
			ours--
			continue
		}
		o.warnings.front = append(o.warnings.front, warning{string(row[0]), uint16(atoi(code)), message})
	}
	return ours == 0, nil
}

// addWarnings adds n to the warnings that an OK packet counts, in its number and in its text ("Rows matched: 1  Changed: 1
// Warnings: 0"; MySQL manual, "OK_Packet": the text has its length in front).
func addWarnings(b []byte, t terminator, n int) ([]byte, error) {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint16(b[t.warningsAt:], plusWarnings(t.warnings, n))
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

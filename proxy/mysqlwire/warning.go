package mysqlwire

import (
	"encoding/binary"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history/prose"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// listed is a row of SHOW WARNINGS that the server does not have.
type listed struct {
	level   string
	code    uint16
	message string
}

// messageMax is how many bytes the column Message of SHOW WARNINGS holds: 512 characters of utf8mb4.
const messageMax = 4 * 512

// tell keeps warnings for SHOW WARNINGS and returns how many are to be counted in the statement's answer.
func (s *session) tell(due []record.Warning) int {
	for _, w := range due {
		s.ps.Log.Debug().Str("finding", w.Finding).Uint16("code", w.Code).Msg("warning")
	}
	if !s.observer.Warn {
		return 0
	}
	if len(due) > 0 && s.listedOld {
		s.listed, s.listedOld = nil, false
	}
	for _, w := range due {
		s.listed = append(s.listed, listed{"Warning", w.Code, warningText(w)})
	}
	return len(due)
}

// warningText puts a warning into one line: the client tools print one line each. If it is too long, the detail is cut:
// what it is and what to do about it are needed more.
func warningText(w record.Warning) string {
	head, detail, hint := prose.Line(w.Message, 0), prose.Line(w.Detail, 0), prose.Line(w.Hint, 0)
	if w.Finding != "" && !strings.Contains(head, w.Finding) {
		head += " (" + w.Finding + ")"
	}
	if detail != "" {
		detail = " DETAIL: " + detail
	}
	if hint != "" {
		hint = " HINT: " + hint
	}
	return prose.Cut(head+prose.Cut(detail, messageMax-len(head)-len(hint))+hint, messageMax)
}

// clearWarnings forgets what a new statement makes the server forget too: one that reads or writes tables clears the
// list at once, any other one when it brings a warning of its own (MariaDB 10.11: SHOW WARNINGS after SELECT 1 still
// shows the list of the statement before).
func (s *session) clearWarnings(p *rewrite.Plan) {
	if !p.Diagnostics {
		s.front = nil
	}
	switch {
	case p.Diagnostics:
	case s.forgetsWarnings(p):
		s.listed = nil
	default:
		s.listedOld = true
	}
}

var (
	showWarnings  = regexp.MustCompile(`(?is)^\s*SHOW\s+WARNINGS(?:\s+LIMIT\s+(\d+)(?:\s*(,|OFFSET)\s*(\d+))?)?\s*;?\s*$`)
	countWarnings = regexp.MustCompile(`(?is)^\s*(?:SHOW\s+COUNT\s*\(\s*\*\s*\)\s+WARNINGS|SELECT\s+@@(?:SESSION\.|LOCAL\.)?WARNING_COUNT)\s*;?\s*$`)
)

// withWarnings gives the plan that merges our warnings into the answer to a question for them; p itself if it is no such
// question, or there are none.
func (s *session) withWarnings(p *rewrite.Plan) *rewrite.Plan {
	s.listing = nil
	if len(s.front)+len(s.listed) == 0 || !p.Diagnostics || p.Hidden > 0 {
		return p
	}
	merged := *p
	if countWarnings.MatchString(p.Text) {
		merged.Conceal = addTo(len(s.front) + len(s.listed))
		return &merged
	}
	m := showWarnings.FindStringSubmatch(p.Text)
	if m == nil {
		return p
	}
	l := &listing{limit: math.MaxInt}
	switch {
	case m[2] == ",":
		l.offset, l.limit = atoi(m[1]), atoi(m[3])
	case m[1] != "":
		l.limit, l.offset = atoi(m[1]), atoi(m[3])
	}
	s.listing = l
	if len(s.front) > 0 {
		merged.Conceal = s.inWindow(l)
		return &merged
	}
	merged.Conceal = func([][]byte) bool {
		l.seen++
		return true
	}
	return &merged
}

// listing is a SHOW WARNINGS under way.
type listing struct {
	offset, limit int
	seen          int // rows of the server's
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil && s != "" {
		return math.MaxInt
	}
	return n
}

// addTo changes a row that consists of a number: in the text protocol its digits, in the binary one eight bytes.
func addTo(n int) func([][]byte) bool {
	return func(row [][]byte) bool {
		if len(row) != 1 {
			return true
		}
		if v, err := strconv.ParseUint(string(row[0]), 10, 64); err == nil {
			row[0] = strconv.AppendUint(nil, v+uint64(n), 10)
			return true
		}
		switch cell := row[0]; len(cell) {
		case 8:
			row[0] = binary.LittleEndian.AppendUint64(nil, binary.LittleEndian.Uint64(cell)+uint64(n))
		case 4:
			row[0] = binary.LittleEndian.AppendUint32(nil, binary.LittleEndian.Uint32(cell)+uint32(n))
		}
		return true
	}
}

// appendWarnings adds our rows behind the server's in the answer to SHOW WARNINGS.
func (s *session) appendWarnings(cols *columns) error {
	l := s.listing
	s.listing = nil
	if l == nil || len(cols.types) != 3 {
		return nil
	}
	if len(s.front) > 0 {
		return s.appendInWindow(l, cols)
	}
	skip := max(0, l.offset-int(s.serverWarnings))
	for i, w := range s.listed {
		if i < skip || l.seen >= l.limit {
			continue
		}
		l.seen++
		if err := s.toClientFrames(w.row(cols)); err != nil {
			return err
		}
	}
	return nil
}

// row makes the row: Level, Code, Message.
func (w listed) row(cols *columns) []byte {
	if !cols.binary {
		b := appendLenencString(nil, w.level)
		b = appendLenencString(b, utoa(uint64(w.code)))
		return appendLenencString(b, w.message)
	}
	b := make([]byte, bitmap(3), 64)
	b = appendLenencString(b, w.level)
	switch cols.types[1] {
	case mysql.MYSQL_TYPE_SHORT:
		b = binary.LittleEndian.AppendUint16(b, w.code)
	case mysql.MYSQL_TYPE_LONGLONG:
		b = binary.LittleEndian.AppendUint64(b, uint64(w.code))
	default:
		b = binary.LittleEndian.AppendUint32(b, uint32(w.code))
	}
	return appendLenencString(b, w.message)
}

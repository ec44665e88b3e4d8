package mysqlwire

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// warningList is the list of warnings that SHOW WARNINGS shows the client, as far as the server does not have it: its rows
// stand in front of the server's (front) and behind them (behind).
type warningList struct {
	due      []record.Warning // came between two statements
	behind   []warning
	unlisted counted
	old      bool   // behind and unlisted are of an earlier statement than the last one
	server   uint16 // rows of the server's
	front    []warning
	frontMax int // max_error_count when front was kept
	parsed   int // how many rows front has, or behind of the server's, behind the statement that they are of: what MySQL's answer to COM_PING counts
}

// counted says how many warnings, errors among them, and how many errors there are.
type counted struct{ warnings, errors int }

// countIn counts the rows of a list.
func countIn(list []warning) counted { return counted{len(list), len(askedFor("ERRORS", list))} }

// warning is a row of SHOW WARNINGS.
type warning struct {
	level   string
	code    uint16
	message string
}

// forget empties the list: the session begins again.
func (l *warningList) forget() { l.behind, l.unlisted, l.front, l.parsed = nil, counted{}, nil, 0 }

// late keeps warnings that became due between two statements for the next one's answer.
func (l *warningList) late(due []record.Warning) { l.due = append(l.due, due...) }

// takeDue gives the warnings that came late and those that are due now.
func (l *warningList) takeDue(now []record.Warning) []record.Warning {
	due := append(l.due, now...)
	l.due = nil
	return due
}

// add puts warnings into the list, and says how many rows they are.
func (l *warningList) add(due []record.Warning) (rows int) {
	if len(due) > 0 {
		l.renew()
	}
	for _, w := range due {
		more := rowsOf(w)
		l.behind, rows = append(l.behind, more...), rows+len(more)
	}
	return rows
}

// keep keeps the server's own rows before a statement of ours that makes it forget them.
func (l *warningList) keep(server *link) error {
	if l.server == 0 {
		return nil
	}
	rows, refused, err := server.ownRows("SHOW WARNINGS")
	if err != nil || refused != nil {
		return err
	}
	for _, r := range rows {
		if len(r) == 3 {
			l.behind = append(l.behind, warning{r[0], uint16(atoi(r[1])), r[2]})
		}
	}
	if len(rows) < int(l.server) { // max_error_count bounds the list, and not the counts
		counts, refused, err := server.ownRows("SELECT @@warning_count,@@error_count")
		if err != nil || refused != nil || len(counts) != 1 || len(counts[0]) != 2 {
			return err
		}
		listed := countIn(l.behind[len(l.behind)-len(rows):])
		l.unlisted = counted{max(0, atoi(counts[0][0])-listed.warnings), max(0, atoi(counts[0][1])-listed.errors)}
	}
	l.server = 0
	return nil
}

// brokenCheck is MariaDB's ER_CONSTRAINT_FAILED. The server checks only a row whose columns have all taken their values.
const brokenCheck = "4025"

// firstError takes the server's list over as far as the first error, if there is more behind it (rewrite.Plan.Listed). If the last one is a broken check, the
// errors before it are the check's own, which show without a list of columns, too.
func (l *warningList) firstError(server *link, counts *rowCounts, e *history.ServerError) error {
	rows, refused, err := server.ownRows("SHOW WARNINGS")
	first := slices.IndexFunc(rows, func(r []string) bool { return len(r) == 3 && r[0] == "Error" })
	if err != nil || refused != nil || first < 0 || first == len(rows)-1 || slices.ContainsFunc(rows, func(r []string) bool { return len(r) == 3 && r[1] == brokenCheck }) {
		return err
	}
	if err := counts.save(server); err != nil {
		return err
	}
	if first == 0 { // GET DIAGNOSTICS shows it, too
		if raised, err := server.raise(e, rows[0][2]); err != nil || raised {
			return err
		}
	}
	for _, r := range rows[:first+1] {
		l.behind = append(l.behind, warning{r[0], uint16(atoi(r[1])), r[2]})
	}
	l.server = 0
	return server.forgetWarnings()
}

// rowOf is the number of the row that MariaDB's errors about columns name.
var rowOf = regexp.MustCompile(`at row (\d+)$`)

// raise makes an error the only one in the server's list, if its text is of ASCII, so that it is the same in all character sets.
func (l *link) raise(e *history.ServerError, message string) (bool, error) {
	if strings.ContainsFunc(message, func(r rune) bool { return r < ' ' || r > '~' }) || strings.Contains(message, `\`) || len(e.SQLState) != 5 {
		return false, nil
	}
	sql := fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO=%s,MESSAGE_TEXT='%s'", e.SQLState, e.Code, strings.ReplaceAll(message, "'", "''"))
	if m := rowOf.FindStringSubmatch(message); m != nil {
		sql += ",ROW_NUMBER=" + m[1]
	}
	if err := l.ownQuery(sql); err != nil {
		return false, err
	}
	_, refused, err := l.ownAnswer()
	return refused != nil && refused.Code == e.Code, err
}

// forgetsWarnings clears the server's list, as a query of a table does.
const forgetsWarnings = "SELECT 1 FROM (SELECT 1) wc_d"

func (l *link) forgetWarnings() error {
	_, _, err := l.ownRows(forgetsWarnings)
	return err
}

// clear forgets what a new statement makes the server forget too: one that reads or writes tables clears the list at once,
// any other one when it brings a warning of its own (MariaDB 10.11: SHOW WARNINGS after SELECT 1 still shows the list of
// the statement before).
func (l *warningList) clear(p *rewrite.Plan, t *traits) {
	l.parsed = 0
	if p.Diagnostics {
		return
	}
	l.front = nil
	if t.forgetsWarnings(p) {
		l.behind, l.unlisted = nil, counted{}
	} else {
		l.old = true
	}
}

// renew forgets what is of an earlier statement: the last one has brought a warning or an error of its own.
func (l *warningList) renew() {
	if l.old {
		l.behind, l.unlisted, l.old = nil, counted{}, false
	}
}

// messageMax is how many bytes the column Message of SHOW WARNINGS holds: 512 characters of utf8mb4.
const messageMax = 4 * 512

// rowsOf are the rows of a warning: what it is, and then, as notes, each thing that happened and each remedy. The client tools print
// a row on one line.
func rowsOf(w record.Warning) []warning {
	head := prose.Line(w.Message, 0)
	if w.Finding != "" && !strings.Contains(head, w.Finding) {
		head += " (" + w.Finding + ")"
	}
	rows := []warning{{"Warning", w.Code, prose.Cut(head, messageMax)}}
	for _, text := range []string{w.Detail, w.Hint} {
		for _, line := range strings.Split(text, "\n") {
			switch last := &rows[len(rows)-1]; {
			case line == "":
			case line[0] == ' ' && last.level == "Note": // an indented line belongs to the one above
				last.message = prose.Cut(last.message+" "+prose.Line(line, 0), messageMax)
			default:
				rows = append(rows, warning{"Note", w.Code, prose.Cut(prose.Line(line, 0), messageMax)})
			}
		}
	}
	return rows
}

// row makes the row: Level, Code, Message.
func (w warning) row(cols *columns) []byte {
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

// plusWarnings is a count of warnings with n more.
func plusWarnings(count uint16, n int) uint16 { return uint16(min(int(count)+n, math.MaxUint16)) }

package mysqlwire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
)

// player plays a session.
type player struct {
	c   *rawClient
	d   testserver.Database
	ids [slots + 1]uint32
	// params is how many parameters each statement has.
	params [slots + 1]int
}

// play plays a session on an empty database and returns the answers. A session that ends early has fewer.
func play(t *testing.T, d testserver.Database, caps uint64, acts []act) (out []string) {
	t.Helper()
	p := &player{c: dialRaw(t, d, caps), d: d}
	p.c.lost = true
	defer p.c.conn.Close()
	for i := range p.ids {
		p.ids[i] = 9_000_000
	}
	defer func() {
		if err := recover(); err != nil {
			err, ok := err.(error)
			if !ok {
				panic(err)
			}
			out = append(out, "the session is over: "+err.Error())
		}
	}()
	p.c.query("SELECT 1") // FOUND_ROWS() of a new connection is what the server's thread has left of the one before
	queried, unlisted, prepared := true, false, map[int]string{}
	for _, a := range acts {
		if a.slot == otherClient {
			other := dialRaw(t, d, baseCaps)
			other.query("SET lock_wait_timeout = 1") // the session may have locked the table
			other.query(a.text)
			other.conn.Close()
			continue
		}
		if !strings.HasPrefix(prepared[a.slot], "SELECT") { // see randomActs: a session that is cut down may have another statement there
			a.flags = 0
		}
		text := a.text
		if a.cmd == mysql.COM_STMT_EXECUTE {
			text = prepared[a.slot]
		}
		if a.cmd != mysql.COM_STMT_PREPARE && !foundByQueries(text, queried) {
			out = append(out, "FOUND_ROWS() of no query") // what it says behind other statements than queries is documented nowhere
			continue
		}
		if unlisted = unlisted || strings.Contains(text, "max_error_count=0"); unlisted && a.cmd == mysql.COM_RESET_CONNECTION {
			out = append(out, "a count of warnings that the server keeps without their list") // see limits
			continue
		}
		if testserver.IsMySQL() && a.cmd == mysql.COM_STMT_EXECUTE && a.slot < slots && (len(a.params) != p.params[a.slot] || a.cut > 0) {
			out = append(out, "a malformed execution") // see limits
			continue
		}
		answer := p.do(a)
		if a.cmd == mysql.COM_STMT_PREPARE && !strings.Contains(answer, `: "\xff`) { // else the slot has the statement of before
			prepared[a.slot] = text
		}
		out = append(out, answer)
		queried = (a.cmd == mysql.COM_QUERY || a.cmd == mysql.COM_STMT_EXECUTE) && strings.HasPrefix(text, "SELECT") && !strings.Contains(answer, `: "\xff`) && !aggregate.MatchString(text)
	}
	return out
}

// foundByQueries reports whether each FOUND_ROWS() of a text is about a query: that before the text, if queried, or the statement in front of it.
func foundByQueries(text string, queried bool) bool {
	for _, sql := range strings.Split(text, ";") {
		if strings.Contains(sql, "FOUND_ROWS()") && !queried {
			return false
		}
		queried = strings.HasPrefix(strings.TrimSpace(sql), "SELECT") && !aggregate.MatchString(sql)
	}
	return true
}

// aggregate is a query of aggregates. MariaDB leaves FOUND_ROWS() as it was behind one of which it sees that no row can be there (10.11.19).
var aggregate = regexp.MustCompile(`^SELECT .*?\b(?:COUNT|SUM|MIN|MAX|AVG|GROUP_CONCAT|BIT_OR)\(.*? FROM `)

func (p *player) do(a act) string {
	c := p.c
	arg := []byte(strings.ReplaceAll(a.text, "DBNAME", p.d.Name))
	id := binary.LittleEndian.AppendUint32(nil, p.ids[a.slot])
	c.cursor = false
	switch a.cmd {
	case mysql.COM_STMT_EXECUTE:
		arg = append(executeArg(p.ids[a.slot], a.flags, a.params), a.text...)
		c.cursor = a.flags != 0
	case mysql.COM_STMT_FETCH:
		arg = binary.LittleEndian.AppendUint32(id, uint32(a.number(2)))
	case mysql.COM_STMT_RESET, mysql.COM_STMT_CLOSE:
		arg = id
	case mysql.COM_STMT_SEND_LONG_DATA:
		arg = append(binary.LittleEndian.AppendUint16(id, uint16(a.number(0))), arg...)
	}
	arg = arg[:max(0, len(arg)-a.cut)]
	c.about = a.String()
	if a.cmd == mysql.COM_STMT_CLOSE || a.cmd == mysql.COM_STMT_SEND_LONG_DATA {
		c.write(0, append([]byte{a.cmd}, arg...))
		return "no answer\n" + c.do(mysql.COM_PING, nil).String()
	}
	r := c.do(a.cmd, arg)
	switch {
	case a.cmd == mysql.COM_STATISTICS:
		return fmt.Sprintf("statistics: %.8s", r.last()) // how they begin: "Uptime: "
	case a.cmd == mysql.COM_STMT_PREPARE && r.packets[0][0] == 0:
		p.ids[a.slot], p.params[a.slot] = binary.LittleEndian.Uint32(r.packets[0][1:]), int(binary.LittleEndian.Uint16(r.packets[0][7:]))
		clear(r.packets[0][1:5])
	}
	if (!totalOrder.MatchString(a.text) || strings.Contains(a.text, ";") && strings.Count(a.text, "ORDER BY") > len(totalOrder.FindAllString(a.text, -1))) && a.cmd != mysql.COM_STMT_FETCH {
		for _, rows := range r.rows { // nothing fixes their order
			slices.SortFunc(r.packets[rows[0]:rows[1]], bytes.Compare)
		}
	}
	if testserver.IsTiDB() { // see TestDifferentialOnTiDB
		return withoutDefinitions(r.String())
	}
	return statementID.ReplaceAllString(preparedID.ReplaceAllString(r.String(), "a statement"), "statement (N)")
}

// totalOrder are orders without ties, but for those of joins.
var totalOrder = regexp.MustCompile(`ORDER BY (?:[pq]\.)?(?:id|k,n)\b`)

// preparedID is a statement's number in an error, with the length of the text in front where it is a row.
var preparedID = regexp.MustCompile(`(?:\\x..|.)?(?:The statement|Unknown prepared statement handler) \(\d+\)`)

// endOfTransaction is the note in an OK that the session has no transaction any more (CLIENT_SESSION_TRACK).
var endOfTransaction = regexp.MustCompile(`@((?:\\x..|\\.|.){2}[^\\]*)(?:\\x00)?\\v\\x05\\t\\b_{8}`)

// withoutEnds takes that note out of answers behind an error, whose statement may have ended the transaction: a statement of wirecheck's may get it (docs/reference/limits.md).
func withoutEnds(answers []string) []string {
	out := slices.Clone(answers)
	for i := 1; i < len(out); i++ {
		if strings.Contains(answers[i-1], `: "\xff`) {
			out[i] = endOfTransaction.ReplaceAllString(out[i], `\x00$1`)
		}
	}
	return out
}

func TestWithoutEnds(t *testing.T) {
	const failed, done, ended, plain = `1: "\xff\x92\x04#42000no"`, `1: "\x00\x00\x00\x02\x00\x00\x00"`, `1: "\x00\x02\x00\x02@\x00\x00\x00\v\x05\t\b________"`, `1: "\x00\x02\x00\x02\x00\x00\x00"`
	const begun = `1: "\x00\x02\x00\x02@\x00\x00\x00\v\x05\t\bT_______"`
	const counted, less = `1: "\x00\x00\x00\x02@\x00\x00&Records: 0  Duplicates: 0  Warnings: 0\v\x05\t\b________"`, `1: "\x00\x00\x00\x02\x00\x00\x00&Records: 0  Duplicates: 0  Warnings: 0"`
	for _, c := range [][3]string{{failed, counted, less}, {failed, ended, plain}, {done, ended, ended}, {failed, begun, begun}, {failed, plain, plain}} {
		if got := withoutEnds([]string{c[0], c[1]})[1]; got != c[2] {
			t.Errorf("behind %s, %s becomes %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

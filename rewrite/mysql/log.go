package mysql

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"wirecheck/history"
)

// How a session and its server talk about versions.
//
// A stamp names one statement: "T7.2.k3f9" is statement 2 of transaction 7 of run k3f9; the transaction's token is
// "T7.k3f9". wc_writers holds the number of writes and the stamps of the last three: "12:T3.1.k3f9,T7.2.k3f9". "0:"
// means that the row was not written through wirecheck since it has the column.
//
// What the statements of the session do to the diagnostics of the client's last one was measured on MariaDB 10.11
// (TestAddedStatementsAndDiagnostics measures it again):
//
//	added statement                  ROW_COUNT()  FOUND_ROWS()  SHOW WARNINGS  @@warning_count  LAST_INSERT_ID()
//	SET @wc_t='...', @wc_log=...     0            kept          kept           kept             kept
//	SELECT @wc_log, @wc_log:=''      -1           1             kept           kept             kept
//	DELETE ... RETURNING             -1 instead of the number of rows: therefore never added
//
// So a SET comes right before a statement that sets ROW_COUNT() anew, and the SELECT never before a statement that is
// Plan.Diagnostics.

// logLimit bounds the log: an entry is appended only while it is shorter.
const logLimit = 1 << 16

// stampLimit bounds a stamp so that three of them and the count fit into wc_writers.
const stampLimit = 48

// SetToken is the statement that makes stamp the name of what the session's next statements write.
func SetToken(stamp string) string {
	return "SET @wc_t='" + CleanStamp(stamp) + "',@wc_log=IFNULL(@wc_log," + emptyLog + ")"
}

// emptyLog is the SQL text of a log without entries. It is binary, and CONCAT of something binary is, so that no character
// set matters and the server need not count characters in what is there already: a cast of the log to BINARY in each
// entry cost 3.5 us for each of the 100 rows of a range (MariaDB 10.11.19). All that goes into it is ASCII.
const emptyLog = "_binary''"

// NewLog is the statement that gives a new session an empty log.
func NewLog() string { return "SET @wc_log=" + emptyLog }

// CleanStamp is a stamp that may stand in a quoted literal, and is no longer than the hidden column can take.
func CleanStamp(stamp string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, stamp)
	return clean[:min(len(clean), stampLimit)]
}

// FetchLog is the query whose one row's first column is the session's log; it empties the log.
func FetchLog() string { return "SELECT @wc_log,@wc_log:=" + emptyLog }

// FetchLogQuietly is FetchLog for MySQL, which warns of assignments within expressions: two statements, of which the second
// gives the row. The first one sets the stamp; empty takes it away.
func FetchLogQuietly(stamp string) [2]string {
	value := "NULL"
	if stamp != "" {
		value = "'" + CleanStamp(stamp) + "'"
	}
	return [2]string{"SET @wc_t=" + value + ",@wc_f=IFNULL(@wc_log,''),@wc_log=" + emptyLog, "SELECT @wc_f,''"}
}

// DecodeLog takes the log apart: what each stamped statement updated, deleted, or read (found unchanged, or where a
// hidden column could not tell it), by stamp. truncated says that the log was full, so that some is missing.
func DecodeLog(value []byte) (entries map[string][]history.Access, truncated bool, err error) {
	truncated = len(value) >= logLimit
	entries = make(map[string][]history.Access)
	last, list := "", []history.Access(nil) // entries of one statement stand together
	table := ""
	for rest := value; len(rest) > 0; {
		entry, after, ok := bytes.Cut(rest, []byte(";"))
		if !ok {
			return nil, false, fmt.Errorf("log entry %q has no end", rest)
		}
		stamp, access, err := decodeEntry(entry, last, table)
		if err != nil {
			return nil, false, err
		}
		table = access.Row.Table
		if access.Row.Key == noKey {
			truncated, rest = true, after
			continue
		}
		if n := len(list); stamp == last && n > 0 && list[n-1].Op == history.OpInsert && access.Op != history.OpInsert {
			list = list[:n-1] // ON DUPLICATE KEY UPDATE found a row in the place of the one that it would have inserted
		}
		if stamp != last || list == nil {
			if list != nil {
				entries[last] = list
			}
			if last, list = stamp, entries[stamp]; list == nil {
				list = make([]history.Access, 0, 1+len(after)/(len(entry)+1))
			}
		}
		list = append(list, access)
		rest = after
	}
	if list != nil {
		entries[last] = list
	}
	return entries, truncated, nil
}

// decodeEntry reads "u schema.table rowid writers stamp key"; a table without a key has none. The first letter: read,
// locking read, match without a change, update, delete. In front of the key, U has the images of the old and of the new
// version, D that of the old one, I that of a new row, and R that of one that was read. stamp and table are those of the entry before, which are mostly
// the same and then need no new text.
func decodeEntry(entry []byte, stamp, table string) (string, history.Access, error) {
	fail := func(err error) (string, history.Access, error) { return "", history.Access{}, err }
	var f [6][]byte // times have spaces
	n, rest, more := 0, entry, true
	for ; n < len(f) && more; n++ {
		if n == len(f)-1 {
			f[n], more = rest, false
			continue
		}
		f[n], rest, more = bytes.Cut(rest, space)
	}
	if n < 5 || len(f[0]) != 1 || !bytes.Contains([]byte("rlmudRUDI"), f[0]) {
		return fail(fmt.Errorf("log entry %q is not understood", entry))
	}
	var images [2]string
	count := map[byte]int{'U': 2, 'D': 1, 'I': 1, 'R': 1}[f[0][0]]
	for i := range count {
		if n < 6 {
			return fail(fmt.Errorf("log entry %q lacks an image", entry))
		}
		text, name, named := bytes.Cut(f[5], space)
		if f[5] = name; !named {
			n = 5
		}
		var err error
		if images[i], err = readImage(string(text)); err != nil {
			return fail(err)
		}
	}
	if string(f[4]) != stamp {
		stamp = string(f[4])
	}
	if bytes.IndexByte(f[1], '%') >= 0 || string(f[1]) != table { // the entry's name is escaped, table is not
		var err error
		if table, err = unescapeName(string(f[1])); err != nil {
			return fail(err)
		}
	}
	old, err := parseWriters(f[3])
	if err != nil {
		return fail(err)
	}
	// Texts of its own, all pieces of one string: rows that are kept do not keep the whole log.
	var room [192]byte
	b := append(room[:0], f[2]...)
	version := len(b)
	b = old.appendVersion(b)
	token := len(b)
	b = appendToken(b, old.last)
	label := len(b)
	all := string(append(b, f[5]...))
	name, before := all[label:], history.Access{
		Row: history.Row{Table: table, Key: all[:version]}, Version: all[version:token], Writer: all[token:label], Order: old.order(),
	}
	if n == 6 {
		if name, err = readName(name, nil); err != nil {
			return fail(err)
		}
	}
	before.Name = name
	if op, ok := readOp(f[0][0]); ok {
		before.Op, before.Image = op, images[0]
		return stamp, before, nil
	}
	a := history.Access{
		Op: history.OpUpdate, Row: before.Row, Name: name, Was: images[0], Image: images[1],
		Prev: before.Version, PrevWriter: before.Writer, PrevOrder: before.Order, Order: old.count + 2,
	}
	if f[0][0] == 'd' || f[0][0] == 'D' {
		a.Op = history.OpDelete
		return stamp, a, nil
	}
	a.Version = writers{count: old.count + 1, last: f[4]}.version()
	if f[0][0] == 'I' {
		a.Op, a.Was, a.Image, a.Prev, a.PrevWriter, a.PrevOrder = history.OpInsert, "", images[0], "", "", 0
	}
	return stamp, a, nil
}

// readOp gives the operation of entries that tell a version that was read.
func readOp(letter byte) (history.Op, bool) {
	switch letter {
	case 'r', 'R':
		return history.OpRead, true
	case 'l':
		return history.OpLock, true
	case 'm':
		return history.OpMatch, true
	}
	return "", false
}

// writers is a value of wc_writers.
type writers struct {
	count uint64
	last  []byte // stamp of the last writer
}

// countLimit bounds the number of writes that is believed.
const countLimit = 1 << 62

func parseWriters(s []byte) (writers, error) {
	w := writers{}
	i := 0
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9' && w.count < countLimit/10; i++ {
		w.count = w.count*10 + uint64(s[i]-'0')
	}
	if i == 0 || i == len(s) || s[i] != ':' {
		return writers{}, fmt.Errorf("%q is no value of %s", s, columnWriters)
	}
	w.last = s[i+1:]
	if i := bytes.LastIndexByte(w.last, ','); i >= 0 {
		w.last = w.last[i+1:]
	}
	return w, nil
}

// nextWriters is SQL text for the value of wc_writers, which w is, after one more write.
func nextWriters(w string) string {
	return "CONCAT(SUBSTRING_INDEX(" + w + ",':',1)+1,':',SUBSTRING_INDEX(SUBSTRING_INDEX(" + w + ",':',-1),',',-2),','," + stampMark + ")"
}

// logging is SQL text for a value that is put into a row, which is logged by the way.
func logging(entry, value string) string {
	return "IF(LENGTH(@wc_log)<" + fmt.Sprint(logLimit) + " AND " + entry + " IS NULL,''," + value + ")"
}

// appendVersion appends the version's name within its row.
func (w writers) appendVersion(b []byte) []byte {
	return append(append(strconv.AppendUint(b, w.count, 10), ':'), w.last...)
}

// version is the version's name within its row.
func (w writers) version() string { return string(w.appendVersion(make([]byte, 0, 64))) }

// order is the version's place: history.OrderInitial for a row that was not written through wirecheck.
func (w writers) order() uint64 { return w.count + 1 }

// StampToken gives the token of the transaction to which a stamp's statement belongs: T7.k3f9 for T7.2.k3f9.
func StampToken(stamp string) string {
	return string(appendToken(make([]byte, 0, stampLimit), []byte(stamp)))
}

// appendToken appends the token that belongs to a stamp, nothing if it is none.
func appendToken(b, stamp []byte) []byte {
	i := bytes.IndexByte(stamp, '.')
	k := bytes.IndexByte(stamp[i+1:], '.')
	if i < 0 || k < 0 {
		return b
	}
	return append(append(b, stamp[:i]...), stamp[i+1+k:]...)
}

// decodeRead reads "rowid writers key", the hidden column of one table.
func decodeRead(cell []byte, from told, op history.Op) (history.Access, error) {
	id, stamp, ok := bytes.Cut(cell, space)
	if !ok {
		return history.Access{}, fmt.Errorf("%q names no version", cell)
	}
	var key []byte
	if from.key != nil {
		if stamp, key, ok = bytes.Cut(stamp, space); !ok {
			return history.Access{}, fmt.Errorf("%q has no key", cell)
		}
	}
	w, err := parseWriters(stamp)
	if err != nil {
		return history.Access{}, err
	}
	// All texts are pieces of one string: a row is read far more often than its texts are kept.
	var room [192]byte
	b := append(room[:0], id...)
	version := len(b)
	b = w.appendVersion(b)
	token := len(b)
	b = appendToken(b, w.last)
	label := len(b)
	sole := isSole(key, from.key)
	if sole {
		b = append(append(append(b, from.key[0]...), '='), key...)
	}
	all := string(b)
	a := history.Access{
		Op: op, Row: history.Row{Table: from.table, Key: all[:version]}, Name: all[label:],
		Version: all[version:token], Writer: all[token:label], Order: w.order(),
	}
	if from.key != nil && !sole {
		a.Name, err = readName(string(key), from.key)
	}
	return a, err
}

var space = []byte(" ")

// escapeName makes a name that holds no space, comma, semicolon, equals sign, quote, backslash or non-ASCII byte.
func escapeName(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c > ' ' && c < 0x7f && !strings.ContainsRune(`,;='"\%`, rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

func unescapeName(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+3 > len(s) {
			return "", fmt.Errorf("name %q is cut", s)
		}
		c, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("name %q: %w", s, err)
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), nil
}

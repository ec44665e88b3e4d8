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
	for rest := value; len(rest) > 0; {
		entry, after, ok := bytes.Cut(rest, []byte(";"))
		if !ok {
			return nil, false, fmt.Errorf("log entry %q has no end", rest)
		}
		stamp, access, err := decodeEntry(string(entry)) // each a text of its own: rows that are kept do not keep the whole log
		if err != nil {
			return nil, false, err
		}
		if access.Row.Key == noKey {
			truncated, rest = true, after
			continue
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
// locking read, match without a change, update, delete.
func decodeEntry(entry string) (string, history.Access, error) {
	var f [6]string // times have spaces
	n, rest, more := 0, entry, true
	for ; n < len(f) && more; n++ {
		if n == len(f)-1 {
			f[n], more = rest, false
			continue
		}
		f[n], rest, more = strings.Cut(rest, " ")
	}
	if n < 5 || len(f[0]) != 1 || !strings.Contains("rlmud", f[0]) {
		return "", history.Access{}, fmt.Errorf("log entry %q is not understood", entry)
	}
	table, err := unescapeName(f[1])
	if err != nil {
		return "", history.Access{}, err
	}
	old, err := parseWriters(f[3])
	if err != nil {
		return "", history.Access{}, err
	}
	name := ""
	if n == 6 {
		if name, err = readName(f[5], nil); err != nil {
			return "", history.Access{}, err
		}
	}
	if op, ok := readOp(f[0][0]); ok {
		return f[4], history.Access{
			Op: op, Row: history.Row{Table: table, Key: f[2]}, Name: name,
			Version: old.version(), Writer: old.token(), Order: old.order(),
		}, nil
	}
	a := history.Access{
		Op: history.OpUpdate, Row: history.Row{Table: table, Key: f[2]}, Name: name,
		Prev: old.version(), PrevWriter: old.token(), PrevOrder: old.order(), Order: old.count + 2,
	}
	if f[0] == "d" {
		a.Op = history.OpDelete
	} else {
		a.Version = writers{count: old.count + 1, last: f[4]}.version()
	}
	return f[4], a, nil
}

// readOp gives the operation of entries that tell a version that was read.
func readOp(letter byte) (history.Op, bool) {
	switch letter {
	case 'r':
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
	last  string // stamp of the last writer
	name  string // the version's name, if it stands in the value as it is
}

func parseWriters(s string) (writers, error) {
	count, tail, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(count, 10, 63)
	if !ok || err != nil {
		return writers{}, fmt.Errorf("%q is no value of %s", s, columnWriters)
	}
	if i := strings.LastIndexByte(tail, ','); i >= 0 {
		return writers{count: n, last: tail[i+1:]}, nil
	}
	w := writers{count: n, last: tail}
	if count[0] != '0' || n == 0 && len(count) == 1 {
		w.name = s
	}
	return w, nil
}

// nextWriters is SQL text for the value of wc_writers, which w is, after one more write.
func nextWriters(w string) string {
	return "CONCAT(SUBSTRING_INDEX(" + w + ",':',1)+1,':',SUBSTRING_INDEX(SUBSTRING_INDEX(" + w + ",':',-1),',',-2),','," + stampMark + ")"
}

// logging is SQL text for a value that is put into a row, which is logged by the way.
func logging(op string, src *source, value string) string {
	return "IF(LENGTH(@wc_log)<" + fmt.Sprint(logLimit) + " AND " + logEntry(op, src) + " IS NULL,''," + value + ")"
}

// version is the version's name within its row.
func (w writers) version() string {
	if w.name != "" {
		return w.name
	}
	b := make([]byte, 0, 64)
	return string(append(append(strconv.AppendUint(b, w.count, 10), ':'), w.last...))
}

// order is the version's place: history.OrderInitial for a row that was not written through wirecheck.
func (w writers) order() uint64 { return w.count + 1 }

// token is the token of the transaction that wrote the version; empty if it is not known.
func (w writers) token() string { return StampToken(w.last) }

// StampToken gives the token of the transaction to which a stamp's statement belongs: T7.k3f9 for T7.2.k3f9.
func StampToken(stamp string) string {
	txn, rest, ok := strings.Cut(stamp, ".")
	_, run, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return ""
	}
	return txn + "." + run
}

// decodeRead reads "rowid writers key", the hidden column of one table.
func decodeRead(cell string, from told, op history.Op) (history.Access, error) {
	id, stamp, ok := strings.Cut(cell, " ")
	if !ok {
		return history.Access{}, fmt.Errorf("%q names no version", cell)
	}
	name := ""
	if from.key != nil {
		var key string
		var err error
		if stamp, key, ok = strings.Cut(stamp, " "); !ok {
			return history.Access{}, fmt.Errorf("%q has no key", cell)
		}
		if name, err = readName(key, from.key); err != nil {
			return history.Access{}, err
		}
	}
	w, err := parseWriters(stamp)
	if err != nil {
		return history.Access{}, err
	}
	return history.Access{
		Op: op, Row: history.Row{Table: from.table, Key: id}, Name: name,
		Version: w.version(), Writer: w.token(), Order: w.order(),
	}, nil
}

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

package logs

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// slowLog reads the slow query log: MySQL's (manual, 7.4.5), also with log_slow_extra; MariaDB's with any log_slow_verbosity; Percona Server's
// extended one; TiDB's (TiDB manual, Identify Slow Queries). An entry is written when its statement has ended, so the order is that of ends. MySQL tells ends to the microsecond, MariaDB
// seconds only; durations are precise everywhere.
type slowLog struct {
	mySessions
	at     int64 // of the last "# Time:"
	fine   bool  // that time has a fraction
	fresh  bool  // that time is this entry's own
	entry  *slowEntry
	coarse bool
	start  bool // entries tell their own start
	errno  bool // entries tell errors
	rows   bool // entries tell affected rows
	rated  bool // only some statements are written
	least  int64
}

// slowEntry is an entry that is being read.
type slowEntry struct {
	line       int
	user, host string
	client     bool   // its user is known
	id         string // thread
	schema     string
	at         int64 // end, 0 if not known
	took       int64
	start, end int64
	stamp      int64 // SET timestamp
	sent       int64
	affected   int64
	errno      string
	xid        uint64
	failed     bool   // without a code
	command    string // administrator command
	text       []byte
	quote      openQuote
	body       bool
	long       bool
	cut        bool // the file ends in it without a line end
}

// whole tells whether the statement's text seems to be complete: the server ends it with a semicolon, and no quote is open.
func (e *slowEntry) whole() bool {
	return !e.body || e.command != "" || e.ended() && !e.quote.ends(e.text)
}

func (e *slowEntry) ended() bool {
	return bytes.HasSuffix(bytes.TrimRight(e.text, "\r\n"), []byte(";"))
}

func newSlowLog(out *source.Sink) source.Reader {
	return &slowLog{mySessions: newMySessions(out), least: -1}
}

// slowUser begins an entry: # User@Host: app[app] @ localhost [127.0.0.1]  Id:     7
var slowUser = regexp.MustCompile(`^# User@Host: (.*?)\[(.*?)\] @ *(.*?) *\[(.*?)\](?: +Id: +(\d+))? *$`)

func isSlowLog(head []byte) bool {
	return anyLine(head, len(head), func(line []byte) bool { return slowUser.Match(bytes.TrimRight(line, "\r ")) })
}

// Read reads the next file.
func (l *slowLog) Read(in *source.Input) error {
	if err := in.Each(func(line []byte, long bool) error { return l.line(in, line, long) }); err != nil {
		return err
	}
	if l.entry != nil {
		l.entry.cut = in.Cut
	}
	return l.flushEntry()
}

func (l *slowLog) line(in *source.Input, line []byte, long bool) error {
	if bytes.HasPrefix(line, []byte("# ")) || bytes.HasPrefix(line, []byte("#\r\n")) || bytes.HasPrefix(line, []byte("#\n")) {
		if taken, err := l.head(in, strings.TrimRight(string(line[:min(len(line), 64<<10)]), "\r\n "), line); taken || err != nil {
			return err
		}
	}
	if text := strings.TrimRight(string(line[:min(len(line), 1000)]), "\r\n"); l.banner(text) {
		l.out.Other("server messages")
		return l.flushEntry()
	}
	e := l.entry
	if e == nil {
		if len(bytes.TrimSpace(line)) > 0 {
			l.out.Unknown(in.N, "it belongs to no entry", line)
		}
		return nil
	}
	if !e.body {
		if l.setting(e, strings.TrimRight(string(line[:min(len(line), 1000)]), "\r\n")) {
			return nil
		}
		e.body = true
	}
	if long || len(e.text)+len(line) > in.Max {
		if !e.long {
			l.out.Unknown(in.N, "the statement is too long", line)
		}
		e.long = true
		return nil
	}
	e.text = append(e.text, line...)
	return nil
}

// head takes a line that begins with #. In a statement's text only what begins the next entry is one; and that is of the text where this is
// not whole and the time is not a later one. (A quote may also stay open because the client forgot it.)
func (l *slowLog) head(in *source.Input, s string, line []byte) (taken bool, err error) {
	if rest, ok := strings.CutPrefix(s, "# Time: "); ok {
		at, ok := parseMyTime(strings.TrimSpace(rest))
		if (!ok || at < l.at) && l.entry != nil && !l.entry.whole() {
			return false, nil
		}
		if err := l.flushEntry(); err != nil {
			return true, err
		}
		if !ok {
			l.out.Unknown(in.N, "its time cannot be read", line)
			return true, nil
		}
		l.at, l.fresh, l.fine = at, true, strings.Contains(rest, ".")
		l.coarse = l.coarse || !l.fine
		l.out.Seen(in.N, at)
		return true, nil
	}
	if m := slowUser.FindStringSubmatch(s); m != nil {
		if l.entry != nil && !l.entry.whole() && !l.entry.ended() {
			return false, nil
		}
		if e := l.entry; e == nil || e.client || e.body { // TiDB tells who it was behind other facts
			if err := l.flushEntry(); err != nil {
				return true, err
			}
		}
		e := l.begin(in.N)
		e.user, e.host, e.id, e.client = m[2], m[3], m[5], true
		if m[2] == "" {
			e.user = m[1]
		}
		if m[4] != "" && m[4] != m[3] {
			e.host = strings.TrimPrefix(m[3]+" ["+m[4]+"]", " ")
		}
		return true, nil
	}
	if l.entry == nil && l.fresh && strings.Contains(s, ": ") {
		l.begin(in.N)
	}
	e := l.entry
	if e == nil || e.body {
		return false, nil
	}
	if command, ok := strings.CutPrefix(s, "# administrator command: "); ok {
		e.command, e.body = strings.TrimSuffix(command, ";"), true
		return true, nil
	}
	l.facts(e, s)
	return true, nil
}

// begin begins an entry, unless the facts in front of its user have.
func (l *slowLog) begin(line int) *slowEntry {
	if l.entry == nil {
		l.entry = &slowEntry{line: line, sent: trace.Unknown, affected: trace.Unknown, took: trace.Unknown}
	}
	if l.fresh && l.fine {
		l.entry.at = l.at
	}
	l.fresh = false
	return l.entry
}

// facts reads "# Query_time: 0.000123  Lock_time: 0.000000 ...". A value may be empty.
func (l *slowLog) facts(e *slowEntry, s string) {
	words := strings.Fields(s)
	for i := 1; i < len(words); i++ {
		key, ok := strings.CutSuffix(words[i], ":")
		if !ok || i+1 == len(words) || strings.HasSuffix(words[i+1], ":") {
			continue
		}
		v := words[i+1]
		switch key {
		case "Thread_id", "Id":
			e.id = v
		case "Conn_ID": // TiDB
			e.id, l.product = v, "tidb"
		case "Schema", "DB":
			e.schema = v
		case "Succ":
			e.failed = v == "false"
		case "Log_slow_rate_limit":
			l.rated = l.rated || v != "1"
		case "Query_time":
			if took, ok := parseSeconds(v); ok {
				e.took = took
			}
		case "Rows_sent":
			e.sent = parseCount(v)
		case "Rows_affected":
			e.affected, l.rows = parseCount(v), true
		case "Errno", "Last_errno":
			l.errno = true
			if v != "0" {
				e.errno = v
			}
		case "Start":
			if at, ok := parseMyTime(v); ok {
				e.start, l.start = at, true
			}
		case "End":
			if at, ok := parseMyTime(v); ok {
				e.end = at
			}
		case "InnoDB_trx_id":
			e.xid, _ = strconv.ParseUint(v, 16, 64)
		}
	}
}

func parseCount(s string) int64 {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil && v >= 0 {
		return v
	}
	return trace.Unknown
}

// setting takes the lines that the server puts in front of the statement: use db; SET timestamp=N;
func (l *slowLog) setting(e *slowEntry, s string) bool {
	if db, ok := strings.CutPrefix(s, "use "); ok && strings.HasSuffix(db, ";") && e.stamp == 0 {
		e.schema = strings.ReplaceAll(strings.Trim(strings.TrimSuffix(db, ";"), "`"), "``", "`")
		return true
	}
	rest, ok := strings.CutPrefix(s, "SET ")
	if !ok || e.stamp != 0 || !strings.Contains(rest, "timestamp=") {
		return false
	}
	for _, part := range strings.Split(strings.TrimSuffix(rest, ";"), ",") { // also last_insert_id, insert_id
		if v, ok := strings.CutPrefix(part, "timestamp="); ok {
			if at, ok := parseSeconds(v); ok {
				e.stamp = at
			}
		}
	}
	return e.stamp != 0
}

func (l *slowLog) flushEntry() error {
	e := l.entry
	l.entry = nil
	if e == nil || e.long {
		return nil
	}
	if e.id == "" { // before MySQL 5.7 nothing tells sessions apart
		e.id = e.user + "@" + e.host
	}
	at := max(e.at, e.end, e.stamp, l.at)
	if e.took == trace.Unknown || e.text == nil && e.command == "" {
		l.out.Unknown(e.line, "the entry is not complete", e.text)
		return nil
	}
	if !e.client {
		l.out.Other("statements of the server itself")
		return nil
	}
	st := &trace.Statement{XID: e.xid}
	l.times(st, e)
	known := l.byID[e.id] != nil
	s := l.find(e.id, at)
	if !known && st.Start != 0 {
		s.Info.At = st.Start
	}
	s.Info.User, s.Info.Client = e.user, e.host
	if e.schema != "" {
		s.Info.Database = e.schema
	}
	if e.command != "" {
		l.out.Other("commands that are no statements")
		if e.command == "Quit" {
			return l.end(e.id, &trace.End{At: at, Tick: l.out.Tick(), Reason: trace.EndQuit})
		}
		return nil
	}
	text := strings.TrimSuffix(strings.TrimRight(string(e.text), "\r\n"), ";") // the server adds it
	st.SQL, st.To, st.Tags = text, l.out.Tick(), trace.ParseTags(text, lex.MySQL)
	if e.cut = e.cut || !e.ended(); e.cut {
		st.Lost = true
	}
	if e.errno != "" {
		st.Error = &answer.Error{Code: e.errno}
	}
	if st.Error == nil && e.failed {
		st.Error = &answer.Error{Message: "it failed; the log does not say why"}
	}
	if st.Error == nil && (e.sent != trace.Unknown || e.affected != trace.Unknown) {
		st.Results = []trace.Result{{Count: e.sent, Affected: e.affected}}
	}
	return l.done(s, st)
}

// times takes the best of what an entry tells.
func (l *slowLog) times(st *trace.Statement, e *slowEntry) {
	st.Took = e.took
	if l.least < 0 || e.took < l.least {
		l.least = e.took
	}
	switch {
	case e.start != 0 && e.end != 0:
		st.Start, st.End = e.start, e.end
	case e.at != 0:
		st.Start, st.End = e.at-e.took, e.at
	case e.stamp != 0: // the second in which it began
		st.Start, st.End = e.stamp, e.stamp+e.took
	case l.at != 0:
		st.Start, st.End = l.at-e.took, l.at
	}
}

// Finish hands on what is left, and reports what the log does not show.
func (l *slowLog) Finish() error {
	if err := l.flushAll(); err != nil {
		return err
	}
	r := l.out.Report
	r.Lacks("results", "a packet capture tells them")
	if !l.errno {
		r.Lacks("errors", "log_slow_extra = ON (MySQL 8.0.14 and later), MariaDB's server_audit")
	}
	if !l.rows {
		r.Lacks("affected rows", "MariaDB and Percona Server tell them (log_slow_verbosity = full)")
	}
	if l.coarse {
		r.Lacks("starts and ends to less than a second; durations and the order of ends are exact", "MariaDB's server_audit in its place tells the order of starts, a packet capture all times")
	} else if !l.start {
		r.Lacks("starts by themselves: they are the end less the duration", "log_slow_extra = ON (MySQL 8.0.14 and later)")
	}
	r.Lacks("isolation levels that sessions did not ask for by name", "")
	r.Lacks("when sessions began", "")
	if l.rated {
		r.Lacks("all statements: only some are written", "log_slow_rate_limit = 1")
	}
	if l.least >= 10_000_000 {
		r.Note("the shortest statement took %d ms: shorter ones may have been left out (long_query_time = 0)", l.least/1_000_000)
	}
	return nil
}

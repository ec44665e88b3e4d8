package logs

import (
	"bytes"
	"regexp"
	"strings"

	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// generalLog reads the general query log (MySQL manual, 7.4.3; MariaDB Knowledge Base, General Query Log). An entry is written when the
// server has received a command, so its order is that of starts. What a statement returned, and when it ended, it does not tell. Values of
// the binary protocol stand in the text of Execute.
type generalLog struct {
	mySessions
	at     int64 // the time that was printed last
	entry  *generalEntry
	coarse bool
}

type generalEntry struct {
	line    int
	at      int64
	id      string
	command string
	text    []byte
	quote   openQuote
	cut     bool // the file ends in it without a line end
}

func newGeneralLog(out *source.Sink) source.Reader {
	return &generalLog{mySessions: newMySessions(out)}
}

// generalLine is the beginning of an entry: time (or tabs), thread id, command, and a tab.
//
//	261120  9:31:15<TAB>     6 Query<TAB>START TRANSACTION
//	<TAB><TAB>     7 Execute<TAB>UPDATE ...
//	2026-11-20T09:31:15.123456Z<TAB>    7 Query<TAB>...
var generalLine = regexp.MustCompile(`^(?:(\d{6} [ 0-9]\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d))\t|\t\t) *(\d+) ([A-Z][A-Za-z_ ]*?)(?:\t|$)`)

func isGeneralLog(head []byte) bool {
	return anyLine(head, 200, func(line []byte) bool {
		m := generalLine.FindSubmatch(line)
		return m != nil && generalCommands[string(m[3])] != commandUnknown
	})
}

// What a command means for a trace.
const (
	commandUnknown = iota
	commandConnect
	commandQuit
	commandQuery
	commandExecute
	commandInitDB
	commandNothing
	commandReset
)

// generalCommands are the names of commands (sql/sql_parse.cc of both servers).
var generalCommands = map[string]int{
	"Connect": commandConnect, "Quit": commandQuit, "Query": commandQuery, "Execute": commandExecute, "Init DB": commandInitDB,
	"Change user": commandConnect, "Prepare": commandNothing, "Close stmt": commandNothing, "Reset stmt": commandNothing,
	"Long Data": commandNothing, "Fetch": commandNothing, "Field List": commandNothing, "Statistics": commandNothing, "Ping": commandNothing,
	"Processlist": commandNothing, "Kill": commandNothing, "Debug": commandNothing, "Shutdown": commandNothing, "Refresh": commandNothing,
	"Set option": commandNothing, "Binlog Dump": commandNothing, "Binlog Dump GTID": commandNothing, "Register Slave": commandNothing,
	"Register Replica": commandNothing, "Table Dump": commandNothing, "Daemon": commandNothing, "Delayed insert": commandNothing, "Sleep": commandNothing,
	"Time": commandNothing, "Error": commandNothing, "Create DB": commandNothing, "Drop DB": commandNothing, "Connect Out": commandNothing,
	"Reset connection": commandReset, "Reset Connection": commandReset, "Clone": commandNothing, "Slave_worker": commandNothing, "Slave_IO": commandNothing,
	"Slave_SQL": commandNothing, "Com_multi": commandNothing, "Bulk_execute": commandExecute, "Unimpl get tid": commandNothing, "Subscribe Group Replication Stream": commandNothing,
}

// Read reads the next file.
func (l *generalLog) Read(in *source.Input) error {
	if err := in.Each(func(line []byte, long bool) error { return l.line(in, line, long) }); err != nil {
		return err
	}
	if l.entry != nil {
		l.entry.cut = in.Cut || l.entry.quote.ends(l.entry.text)
	}
	return l.flushEntry()
}

func (l *generalLog) line(in *source.Input, line []byte, long bool) error {
	var m [][]byte
	if len(line) > 2 && (line[0] == '\t' || line[0] >= '0' && line[0] <= '9') {
		m = generalLine.FindSubmatch(bytes.TrimRight(line[:min(len(line), 200)], "\r\n"))
	}
	if m == nil || generalCommands[string(m[3])] == commandUnknown {
		return l.more(in, line, long)
	}
	at, ok := l.at, true
	if len(m[1]) > 0 {
		at, ok = parseMyTime(string(m[1]))
	}
	if l.quotes(m, at, ok) {
		return l.more(in, line, long)
	}
	if err := l.flushEntry(); err != nil {
		return err
	}
	if !ok {
		l.out.Unknown(in.N, "its time cannot be read", line)
		return nil
	}
	if len(m[1]) > 0 {
		l.at = at
		l.coarse = l.coarse || m[1][4] != '-'
		l.out.Seen(in.N, at)
	}
	if long {
		l.out.Unknown(in.N, "the line is too long", line)
		return nil
	}
	l.entry = &generalEntry{line: in.N, at: l.at, id: string(m[2]), command: string(m[3]), text: bytes.Clone(line[len(m[0]):])}
	return nil
}

// quotes tells whether a line that looks like an entry is of the text of the one before: a quote is open there, and the line cannot be the
// server's next one, as its time is not later, or its session not known. (A quote may also stay open because the client forgot it.)
func (l *generalLog) quotes(m [][]byte, at int64, readable bool) bool {
	if l.entry == nil || !l.entry.quote.ends(l.entry.text) {
		return false
	}
	if len(m[1]) > 0 { // whole seconds are printed when they change
		return !readable || at < l.at || at == l.at && m[1][4] != '-'
	}
	return l.byID[string(m[2])] == nil && string(m[2]) != l.entry.id && string(m[3]) != "Connect"
}

// more takes a line that does not begin an entry: of a statement of several lines, or of the server's banner.
func (l *generalLog) more(in *source.Input, line []byte, long bool) error {
	if text := strings.TrimRight(string(line[:min(len(line), 1000)]), "\r\n"); l.banner(text) {
		if err := l.flushEntry(); err != nil {
			return err
		}
		l.out.Other("server messages")
		return nil
	}
	switch {
	case l.entry == nil && len(bytes.TrimSpace(line)) > 0:
		l.out.Unknown(in.N, "it is no entry and belongs to none", line)
	case l.entry == nil:
	case long || len(l.entry.text)+len(line) > in.Max:
		l.out.Unknown(in.N, "the statement is too long", line)
		l.entry = nil
	default:
		l.entry.text = append(l.entry.text, line...)
	}
	return nil
}

// flushEntry takes the entry that is complete now.
func (l *generalLog) flushEntry() error {
	e := l.entry
	if e == nil {
		return nil
	}
	l.entry = nil
	text := string(bytes.TrimSuffix(bytes.TrimSuffix(e.text, []byte("\n")), []byte("\r")))
	switch generalCommands[e.command] {
	case commandConnect:
		return l.connect(e, text)
	case commandQuit:
		l.find(e.id, e.at)
		return l.end(e.id, &trace.End{At: e.at, Tick: l.out.Tick(), Reason: trace.EndQuit})
	case commandInitDB:
		s := l.find(e.id, e.at)
		s.Info.Database = strings.Clone(text)
		return l.tell(s)
	case commandReset:
		l.find(e.id, e.at).Transaction = source.Transaction{Dialect: lex.MySQL, Status: answer.Idle}
	case commandQuery, commandExecute:
		s := l.find(e.id, e.at)
		st := &trace.Statement{SQL: text, Protocol: trace.ProtocolSimple, Lost: e.cut, Start: e.at, From: l.out.Tick(), Tags: trace.ParseTags(text, lex.MySQL)}
		if e.command != "Query" {
			st.Protocol = trace.ProtocolPrepared
		}
		return l.done(s, st)
	}
	l.out.Other("commands that are no statements")
	return nil
}

// connect takes "app@localhost on shop using TCP/IP", or "Access denied for user ...".
func (l *generalLog) connect(e *generalEntry, text string) error {
	if strings.HasPrefix(text, "Access denied") {
		l.out.Other("refused logins")
		return nil
	}
	user, rest, ok := strings.Cut(text, " on ")
	s := l.byID[e.id]
	if s == nil || e.command == "Connect" {
		var err error
		if s, err = l.begin(e.id, e.at); err != nil {
			return err
		}
	}
	if ok {
		var host string
		s.Info.User, host, _ = strings.Cut(strings.Clone(user), "@")
		s.Info.Client = host
		db, _, _ := cutLast(rest, " using ")
		s.Info.Database = strings.Clone(strings.TrimSpace(db))
	}
	return l.tell(s)
}

// Finish hands on what is left, and reports what the log does not show.
func (l *generalLog) Finish() error {
	if err := l.flushAll(); err != nil {
		return err
	}
	r := l.out.Report
	r.Lacks("when statements ended, so who waited for whom", "the slow query log with long_query_time = 0, or MariaDB's server_audit")
	r.Lacks("results, affected rows and errors", "a packet capture tells them")
	r.Lacks("parameters of prepared statements by themselves: they stand in the text", "")
	r.Lacks("isolation levels that sessions did not ask for by name", "")
	if l.coarse {
		r.Lacks("times to less than a second", "the order of lines is that of starts all the same")
	}
	return nil
}

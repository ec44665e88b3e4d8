package logs

import (
	"bytes"
	"container/heap"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// serverAudit reads the file of MariaDB's server_audit plugin (MariaDB Knowledge Base, Audit Plugin - Log Format):
//
//	time,serverhost,user,host,connection id,query id,operation,database,object,error
//
// A statement gets its query id when it begins and its line when it has ended. So the ids tell the order of starts and the lines that of
// ends. Both together do not tell whether one was over before another began; that follows only where a session's own order comes
// in between, see began.
type serverAudit struct {
	mySessions
	tables  map[string]tablesOf // of statements that have not ended, by session
	waiting auditHeap
	recent  []auditStart
	floor   auditStart
	last    map[string][]auditEnd // by session: where its last statements ended, in the order of their ids
	limit   int                   // statements that are cut
	longest int                   // text, as it was written
	atMost  int                   // texts of that length, or one byte less
	servers []string
	masked  int
}

type tablesOf struct {
	id     uint64
	tables []trace.Table
}

// auditStart says that the statement with an id, and all with a higher one, began after a tick.
type auditStart struct{ id, after uint64 }

// auditEnd is where a statement ended. One of the same session that comes later and has a smaller id went on all the while: it is what
// the client sent, and the others are those of its triggers and routines, which the plugin tells of, too.
type auditEnd struct{ id, to uint64 }

// auditWindow is within how many statements the order of starts is restored.
const auditWindow = 1024

func newServerAudit(out *source.Sink) source.Reader {
	l := &serverAudit{mySessions: newMySessions(out), tables: map[string]tablesOf{}, last: map[string][]auditEnd{}}
	l.product = "mariadb"
	return l
}

func isServerAudit(head []byte) bool {
	return anyLine(head, 50, func(line []byte) bool { _, ok := splitAudit(string(line)); return ok })
}

// auditLine is a line.
type auditLine struct {
	at         int64
	server     string
	user, host string
	thread     string
	id         uint64
	op         string
	db         string
	object     string
	length     int // of the object as it was written
	code       string
}

// auditOps are the operations that there are.
var auditOps = map[string]bool{
	"CONNECT": true, "DISCONNECT": true, "FAILED_CONNECT": true, "CHANGEUSER": true, "QUERY": true, "READ": true, "WRITE": true, "CREATE": true,
	"ALTER": true, "RENAME": true, "DROP": true,
}

func splitAudit(s string) (auditLine, bool) {
	f := strings.SplitN(s, ",", 9)
	if len(f) < 9 || !auditOps[f[6]] {
		return auditLine{}, false
	}
	t, err := time.Parse("20060102 15:04:05", f[0])
	id, err2 := strconv.ParseUint(f[5], 10, 64)
	_, err3 := strconv.ParseUint(f[4], 10, 64)
	if err != nil || err2 != nil || err3 != nil {
		return auditLine{}, false
	}
	a := auditLine{at: t.UnixNano(), server: f[1], user: f[2], host: f[3], thread: f[4], id: id, op: f[6], db: f[7]}
	rest := f[8]
	if strings.HasPrefix(rest, "'") {
		end, closed := lex.Quoted(rest, 0, true)
		if !closed {
			return auditLine{}, false
		}
		a.object, a.length = unescapeAudit(rest[1:end-1]), end-2
		rest = rest[end:]
		if !strings.HasPrefix(rest, ",") {
			return auditLine{}, false
		}
		a.code, _, _ = strings.Cut(rest[1:], ",") // versions may add columns
		if _, err := strconv.ParseUint(a.code, 10, 64); err != nil {
			return auditLine{}, false
		}
	} else if object, code, ok := cutLast(rest, ","); ok {
		a.object, a.code = object, code
	}
	return a, true
}

// unescapeAudit undoes what the plugin does to texts (tried on MariaDB 10.11: quotes, backslashes and \b \f \n \r \t, nothing else).
func unescapeAudit(s string) string { return lex.Unescape(s, "nrtbf", "\n\r\t\b\f") }

// Read reads the next file.
func (l *serverAudit) Read(in *source.Input) error {
	return in.Each(func(line []byte, long bool) error {
		text := bytes.TrimRight(line, "\r\n")
		if len(text) == 0 {
			return nil
		}
		a, ok := splitAudit(string(text))
		switch {
		case long:
			l.out.Unknown(in.N, "the line is too long", line)
		case !ok:
			l.out.Unknown(in.N, "this is not a line of server_audit", line)
		case in.Cut && a.op == "QUERY" && a.code != "0":
			l.out.Unknown(in.N, "the line is cut off, so its error code may be", line)
		default:
			l.out.Seen(in.N, a.at)
			if len(l.servers) < 5 && !slices.Contains(l.servers, a.server) {
				l.servers = append(l.servers, strings.Clone(a.server))
			}
			return l.add(&a)
		}
		return nil
	})
}

func (l *serverAudit) add(a *auditLine) error {
	switch a.op {
	case "FAILED_CONNECT":
		l.out.Other("refused logins")
		return nil
	case "CONNECT":
		s, err := l.begin(a.thread, a.at)
		if err != nil {
			return err
		}
		l.last[s.Info.Backend] = []auditEnd{{a.id, l.out.Tick()}}
		l.who(s, a)
		return l.tell(s)
	case "CHANGEUSER":
		s := l.find(a.thread, a.at)
		l.who(s, a)
		return l.tell(s)
	case "DISCONNECT":
		if err := l.drain(0); err != nil {
			return err
		}
		l.find(a.thread, a.at)
		delete(l.tables, a.thread)
		delete(l.last, a.thread)
		return l.end(a.thread, &trace.End{At: a.at, Tick: l.out.Tick(), Reason: trace.EndQuit})
	case "QUERY":
		return l.query(a)
	}
	l.out.Other("tables of statements")
	t := l.tables[a.thread]
	if t.id != a.id {
		t = tablesOf{id: a.id}
	}
	t.tables = mergeTables(t.tables, []trace.Table{{Name: strings.Clone(a.db + "." + a.object), Write: a.op != "READ"}})
	l.tables[strings.Clone(a.thread)] = t
	return nil
}

func (l *serverAudit) who(s *mySession, a *auditLine) {
	s.Info.User, s.Info.Client = strings.Clone(a.user), strings.Clone(a.host)
	if a.db != "" {
		s.Info.Database = strings.Clone(a.db)
	}
}

// maxAuditText is the plugin's limit unless server_audit_query_log_limit says otherwise. It counts the text with its backslashes, and a character
// is not taken apart from its own (tried on MariaDB 10.11: a text that is cut has 1023 or 1024 bytes).
const maxAuditText = 1024

// cut tells whether a text seems to have been cut. Other limits than the usual one show by a quote that is open in what succeeded.
func (l *serverAudit) cut(a *auditLine) bool {
	switch {
	case a.length > l.longest+1:
		l.longest, l.atMost = a.length, 1
	case a.length > l.longest:
		l.longest = a.length
		l.atMost++
	case a.length >= l.longest-1:
		l.atMost++
	}
	var q openQuote
	return a.length == maxAuditText || a.length == maxAuditText-1 || a.code == "0" && q.ends([]byte(a.object))
}

func (l *serverAudit) query(a *auditLine) error {
	s := l.find(a.thread, a.at)
	if s.Info.User == "" { // joined; the database is the statement's, as a rule the session's too
		l.who(s, a)
	}
	l.within(s, a)
	st := &trace.Statement{SQL: a.object, ID: a.id, From: l.began(a), To: l.out.Tick(), End: a.at, Tags: trace.ParseTags(a.object, lex.MySQL)}
	if l.out.Crowded(len(l.last)) > 0 { // the reader forgets what they show, and claims less from here on
		clear(l.last)
		clear(l.tables)
	}
	ends := append(l.last[s.Info.Backend], auditEnd{st.ID, st.To})
	l.last[s.Info.Backend] = ends[max(0, len(ends)-auditWindow):]
	if l.cut(a) {
		st.Lost = true
		l.limit++
	}
	if strings.Contains(a.object, "*****") {
		st.Lost = true
		l.masked++
	}
	if a.code != "0" && a.code != "" {
		st.Error = &answer.Error{Code: a.code}
	}
	if t := l.tables[a.thread]; t.id == a.id {
		st.Tables = t.tables
		delete(l.tables, a.thread)
	}
	heap.Push(&l.waiting, auditWaiting{s, st})
	return l.drain(auditWindow)
}

// within takes away the statements that were executed within one that has ended now.
func (l *serverAudit) within(s *mySession, a *auditLine) {
	ends := l.last[a.thread]
	n := len(ends)
	for n > 0 && ends[n-1].id > a.id {
		n--
	}
	if n == len(ends) {
		return
	}
	l.last[a.thread] = ends[:n]
	l.waiting = slices.DeleteFunc(l.waiting, func(w auditWaiting) bool {
		if w.session != s || w.st.ID < a.id {
			return false
		}
		l.out.Other("statements of triggers and routines")
		return true
	})
	heap.Init(&l.waiting)
}

// began gives a tick after which a statement began. It began after its session's last one had ended, and, as its id was given later, after
// every statement with a smaller id had begun.
func (l *serverAudit) began(a *auditLine) uint64 {
	own := auditStart{id: a.id}
	if ends := l.last[a.thread]; len(ends) > 0 {
		own.after = ends[len(ends)-1].to
	}
	after := own.after
	if l.floor.id <= a.id {
		after = max(after, l.floor.after)
	}
	for _, r := range l.recent {
		if r.id <= a.id {
			after = max(after, r.after)
		}
	}
	if len(l.recent) == 64 {
		// The oldest one goes; what it says holds for all ids from its own on.
		old := l.recent[0]
		l.recent = append(l.recent[:0], l.recent[1:]...)
		l.floor = auditStart{max(l.floor.id, old.id), max(l.floor.after, old.after)}
	}
	l.recent = append(l.recent, own)
	return after
}

// drain hands on statements in the order of their ids until no more than most wait.
func (l *serverAudit) drain(most int) error {
	for len(l.waiting) > most {
		w := heap.Pop(&l.waiting).(auditWaiting)
		if err := l.done(w.session, w.st); err != nil {
			return err
		}
	}
	return nil
}

// Finish hands on what is left, and reports what the log does not show.
func (l *serverAudit) Finish() error {
	if err := l.drain(0); err != nil {
		return err
	}
	if err := l.flushAll(); err != nil {
		return err
	}
	r := l.out.Report
	r.Lacks("when statements began: only their order", "the slow query log with long_query_time = 0 in its place, or a packet capture")
	r.Lacks("times to less than a second; the order of ends is exact", "")
	r.Lacks("results and affected rows", "a packet capture tells them")
	r.Lacks("parameters of prepared statements by themselves: they stand in the text", "")
	r.Lacks("isolation levels that sessions did not ask for by name", "")
	if l.limit > 0 {
		r.Note("%s cut, or as long as what the plugin cuts: server_audit_query_log_limit", prose.Count(l.limit, "statement"))
	} else if l.atMost >= 3 && l.longest >= 64 {
		r.Note("%d statements have the greatest length that there is (%d bytes): if server_audit_query_log_limit has that value they are cut", l.atMost, l.longest)
	}
	if len(l.servers) > 1 {
		r.Note("the lines are of several servers (%s), whose statements cannot be told apart: import each server's by itself", strings.Join(l.servers, ", "))
	}
	if l.masked > 0 {
		r.Note("%d statements have their passwords masked and cannot be executed as they stand", l.masked)
	}
	return nil
}

// auditWaiting is a statement that waits for those with smaller ids.
type auditWaiting struct {
	session *mySession
	st      *trace.Statement
}

type auditHeap []auditWaiting

func (h auditHeap) Len() int           { return len(h) }
func (h auditHeap) Less(i, j int) bool { return h[i].st.ID < h[j].st.ID }
func (h auditHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *auditHeap) Push(x any)        { *h = append(*h, x.(auditWaiting)) }
func (h *auditHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

package logs

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// pgEntry is one entry of a PostgreSQL server log, in whatever format it was written.
type pgEntry struct {
	line    int
	at      int64
	user    string
	db      string
	client  string
	pid     string
	session string
	ps      string // command tag, or what the process title says
	vxid    string
	xid     uint64
	level   string // severity
	state   string // SQLSTATE; empty if the format does not show it
	message string
	detail  string
	context string
	query   string
	app     string
	backend string // type of the process; empty before PostgreSQL 13
	lost    bool   // the texts may not be whole
}

// pgLog makes a trace of a PostgreSQL server's log entries (PostgreSQL manual, 20.8 Error Reporting and Logging).
type pgLog struct {
	out      *source.Sink
	version  string
	sessions map[string]*pgSession // by process id
	gone     map[string]string     // by process id: the session that the server ended there

	starts, ends, ended int // statements with a line at the start, at the end, at the end only
	shortest            int64
	audits, late        int
	clock               pgClock
	foreign             int               // messages of sessions that are not in English
	users               bool              // some entry names its user
	replaced            map[string]string // by process id: the session whose place another one took
	restarted           map[string]bool   // sessions that were there when the server was started again
	mixed               int               // sessions that were there after they cannot have been
	besides             string            // what else makes the format tell parameters
}

// pgSession is what is known of one server process.
type pgSession struct {
	source.Session
	id    string
	open  *trace.Statement
	last  *trace.Statement // it is over; what follows may tell more of it
	bound *trace.Statement // bind was logged, execute was not
	vxid  string
	audit string // number of the statement that pgaudit logged last
}

func newPgLog(out *source.Sink) *pgLog {
	return &pgLog{out: out, sessions: map[string]*pgSession{}, gone: map[string]string{}, replaced: map[string]string{}, shortest: -1}
}

// add takes the next entry.
func (l *pgLog) add(e *pgEntry) error {
	l.out.Seen(e.line, e.at)
	l.users = l.users || e.user != ""
	if v, ok := strings.CutPrefix(e.message, "starting PostgreSQL "); ok {
		l.version, _, _ = strings.Cut(strings.Clone(v), " on ")
		l.out.Other("server messages")
		l.restarted = map[string]bool{}
		for _, s := range l.sessions {
			l.restarted[s.id] = true
		}
		return l.finishAll("the server was started again")
	}
	if !l.ofClient(e) {
		l.out.Other("server messages")
		return nil
	}
	if l.gone[e.pid] == e.session {
		l.out.Other("messages of sessions that the server had ended")
		return nil
	}
	s, err := l.find(e)
	if err != nil {
		return err
	}
	s.learn(e)
	switch m := e.message; {
	case strings.HasPrefix(m, "statement: "):
		return l.start(s, e, trace.ProtocolSimple, "", m[len("statement: "):])
	case strings.HasPrefix(m, "execute "):
		if name, sql, ok := strings.Cut(m[len("execute "):], ": "); ok {
			protocol, name := executeName(name)
			return l.start(s, e, protocol, name, sql)
		}
	case strings.HasPrefix(m, "duration: "):
		if ms, rest, ok := strings.Cut(m[len("duration: "):], " ms"); ok {
			if took, ok := parseMS(ms); ok {
				return l.duration(s, e, took, rest)
			}
		}
	case strings.HasPrefix(m, "AUDIT: "):
		if handled, err := l.auditLine(s, e); handled || err != nil {
			return err
		}
	case strings.HasPrefix(m, "process "):
		if w := l.parseWait(e); w != nil {
			if err := l.out.Session(&s.Session); err != nil {
				return err
			}
			return l.out.Wait(s.Number, w)
		}
	case strings.HasPrefix(m, "connection "), strings.HasPrefix(m, "replication connection authorized"):
		return l.connection(s, e)
	case strings.HasPrefix(m, "disconnection: "):
		return l.close(e.pid, s, &trace.End{At: e.at, Tick: l.out.Tick(), Reason: trace.EndQuit})
	}
	if isError(e.level, e.state) {
		return l.failed(s, e)
	}
	known := slices.Contains(severities, e.level)
	switch {
	case known && e.level != "LOG":
	case strings.Contains(e.message, "fastpath function call"):
		l.out.Other("function calls (fastpath)")
		return nil
	case foreignLine.MatchString(e.message) && (e.state == "" || e.state == "00000"), !known && e.state == "":
		l.foreign++
		l.out.Unknown(e.line, "it is not in English (lc_messages = C)", []byte(e.message))
		return nil
	case !known:
		l.foreign++
	}
	l.out.Other("messages to sessions")
	return nil
}

// foreignLine knows the lines of log_statement and log_duration in any language: a word or a few, and SQL or milliseconds. English ones have been
// taken before.
var foreignLine = regexp.MustCompile(`^(?:\pL+[\pL\pM ]{0,30}:? ?\d+[.,]\d{3} [\pL\pM]+(?:$|[ ,])|[\pL\pM]+(?: [\pL\pM<>/0-9_]+){0,2} ?: ` +
	`(?i:select|insert|update|delete|merge|begin|start|commit|end|rollback|savepoint|release|set|with|copy|lock|create|alter|drop|truncate|declare|fetch|close|execute|prepare|call|show|values|table|do)\b)`)

// severities are those that say nothing of a statement's success.
var severities = []string{"LOG", "WARNING", "NOTICE", "INFO", "DEBUG", "DEBUG1", "DEBUG2", "DEBUG3", "DEBUG4", "DEBUG5"}

// isError tells errors from the rest. Severities may be translated (lc_messages); a warning's SQLSTATE may be of an error's class.
func isError(level, state string) bool {
	switch {
	case level == "ERROR" || level == "FATAL" || level == "PANIC":
		return true
	case slices.Contains(severities, level):
		return false
	}
	return len(state) == 5 && state[:2] != "00" && state[:2] != "01" && state[:2] != "02" && state != "25001" && state != "25P01"
}

// ofClient tells whether an entry belongs to a client's session.
func (l *pgLog) ofClient(e *pgEntry) bool {
	switch {
	case e.pid == "" || e.session == "":
		return false
	case e.backend == "client backend":
		return true
	case e.backend == "" || e.backend == "not initialized":
		return e.user != "" || e.client != "" || strings.HasPrefix(e.message, "connection received: ") || !l.users && ofStatement(e)
	}
	return false
}

// ofStatement tells whether an entry is about a statement, where log_line_prefix has nothing that only sessions have.
func ofStatement(e *pgEntry) bool {
	heads := []string{"statement: ", "execute ", "duration: ", "AUDIT: ", "connection authorized: ", "disconnection: "}
	return e.query != "" || slices.ContainsFunc(heads, func(head string) bool { return strings.HasPrefix(e.message, head) })
}

// find gives the session of an entry. A process id comes again; what it belonged to is over then.
func (l *pgLog) find(e *pgEntry) (*pgSession, error) {
	s := l.sessions[e.pid]
	if s != nil && s.id == e.session {
		return s, nil
	}
	if s != nil {
		if err := l.close(e.pid, s, &trace.End{At: s.Seen, Reason: "not logged"}); err != nil {
			return nil, err
		}
		if l.replaced[e.pid] == e.session {
			l.mixed++
		}
		l.replaced[s.Info.Backend] = s.id
	} else if l.restarted[e.session] {
		l.mixed++
	}
	if n := l.out.Crowded(len(l.sessions)); n > 0 {
		if err := l.forget(n); err != nil {
			return nil, err
		}
	}
	pid := strings.Clone(e.pid)
	s = &pgSession{id: strings.Clone(e.session)}
	s.Number, s.Info = l.out.NewSession(), trace.Session{Product: "postgres", Version: l.version, Backend: pid}
	s.Transaction.Dialect = lex.PostgreSQL
	if strings.HasPrefix(e.message, "connection ") {
		s.Transaction.Status = answer.Idle
	} else {
		s.Info.Joined = true
	}
	s.Info.At = e.at
	l.sessions[pid] = s
	return s, nil
}

// forget ends the sessions that were seen least recently.
func (l *pgLog) forget(n int) error {
	pids := slices.Sorted(maps.Keys(l.sessions))
	slices.SortStableFunc(pids, func(a, b string) int { return cmp.Compare(l.sessions[a].Seen, l.sessions[b].Seen) })
	for _, pid := range pids[:n] {
		s := l.sessions[pid]
		if err := l.close(pid, s, &trace.End{At: s.Seen, Reason: source.Stale}); err != nil {
			return err
		}
	}
	clear(l.gone)
	clear(l.replaced)
	return nil
}

// learn takes what every entry says of its session.
func (s *pgSession) learn(e *pgEntry) {
	set := func(to *string, v string) {
		if v != "" && v != *to && v != "[unknown]" {
			*to = strings.Clone(v) // v is a part of a line, which may be large
		}
	}
	set(&s.Info.User, e.user)
	set(&s.Info.Database, e.db)
	set(&s.Info.Client, e.client)
	set(&s.Info.Application, e.app)
	s.Seen = e.at
}

func (l *pgLog) connection(s *pgSession, e *pgEntry) error {
	l.out.Other("connection messages")
	if !strings.Contains(e.message, "authorized: ") {
		return nil
	}
	if i := strings.Index(e.message, " application_name="); i >= 0 {
		app := strings.Clone(e.message)[i+len(" application_name="):]
		for _, end := range []string{" SSL enabled (", " GSS ("} {
			if j := strings.LastIndex(app, end); j >= 0 {
				app = app[:j]
			}
		}
		s.Info.Application = app
	}
	return l.out.Session(&s.Session)
}

// parseWait reads the lines of log_lock_waits (and the one of a deadlock).
func (l *pgLog) parseWait(e *pgEntry) *trace.Wait {
	m := strings.TrimPrefix(e.message, "process ")
	_, m, ok := strings.Cut(m, " ")
	if !ok {
		return nil
	}
	w := &trace.Wait{At: e.at, Tick: l.out.Tick()}
	for _, verb := range []struct {
		text  string
		state trace.WaitState
	}{
		{"still waiting for ", trace.WaitBegan}, {"acquired ", trace.WaitEnded}, {"detected deadlock while waiting for ", trace.WaitDeadlock},
		{"failed to acquire ", trace.WaitGaveUp}, {"avoided deadlock for ", trace.WaitBegan},
	} {
		if rest, ok := strings.CutPrefix(m, verb.text); ok {
			w.State, m = verb.state, rest
			break
		}
	}
	lock, after, ok := cutLast(m, " after ")
	ms, isMS := strings.CutSuffix(after, " ms")
	took, good := parseMS(ms)
	if w.State == 0 || !ok || !isMS || !good {
		return nil
	}
	w.Lock, w.Took = strings.TrimSuffix(lock, " by rearranging queue order"), took
	holders, _, _ := strings.Cut(e.detail, ". ")
	if _, pids, ok := strings.Cut(holders, "holding the lock: "); ok {
		for _, pid := range strings.Split(pids, ", ") {
			if s := l.sessions[pid]; s != nil {
				w.For = append(w.For, s.Number)
			}
		}
	}
	return w
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// close ends a session.
func (l *pgLog) close(pid string, s *pgSession, end *trace.End) error {
	delete(l.sessions, pid)
	if !s.Announced() && s.open == nil && s.last == nil && end.Reason == trace.EndQuit {
		l.out.Other("connections without a session") // of a prober, or refused
	}
	if err := l.flush(s); err != nil {
		return err
	}
	return l.out.End(s.Number, end)
}

// finishAll ends all sessions.
func (l *pgLog) finishAll(reason string) error {
	for _, pid := range slices.Sorted(maps.Keys(l.sessions)) {
		s := l.sessions[pid]
		if err := l.close(pid, s, &trace.End{At: s.Seen, Reason: reason}); err != nil {
			return err
		}
	}
	return nil
}

// flush hands on what is known of a session.
func (l *pgLog) flush(s *pgSession) error {
	if err := l.out.Session(&s.Session); err != nil {
		return err
	}
	for _, st := range []*trace.Statement{s.last, s.open} {
		if st != nil {
			if err := l.out.Statement(s.Number, st); err != nil {
				return err
			}
		}
	}
	s.last, s.open = nil, nil
	return nil
}

// flushAll hands on what is known at the end of the log, where sessions need not have ended.
func (l *pgLog) flushAll() error {
	for _, pid := range slices.Sorted(maps.Keys(l.sessions)) {
		if err := l.flush(l.sessions[pid]); err != nil {
			return err
		}
	}
	return nil
}

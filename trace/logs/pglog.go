package logs

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/history/prose"
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
	state   string // SQLSTATE; empty if the format does not tell it
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
	zones               []string          // that are not known
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
	audit string // number of the statement that pgaudit told last
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
		return l.close(e.pid, s, &trace.End{At: e.at, Tick: l.out.Tick(), Reason: "quit"})
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
	for _, head := range []string{"statement: ", "execute ", "duration: ", "AUDIT: ", "connection authorized: ", "disconnection: "} {
		if strings.HasPrefix(e.message, head) {
			return true
		}
	}
	return e.query != ""
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
		s.Transaction.Status = trace.StatusIdle
	} else {
		s.Info.Joined = true
	}
	s.Info.At = e.at
	l.sessions[pid] = s
	return s, nil
}

// forget ends the sessions that were seen least recently.
func (l *pgLog) forget(n int) error {
	pids := sortedKeys(l.sessions)
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

// executeName takes the name of a prepared statement from what stands between "execute" and the text: NAME, NAME/PORTAL,
// "fetch from NAME/PORTAL".
func executeName(name string) (trace.Protocol, string) {
	protocol := trace.ProtocolPrepared
	if rest, ok := strings.CutPrefix(name, "fetch from "); ok {
		protocol, name = trace.ProtocolFetch, rest
	}
	if name == "<unnamed>" || strings.HasPrefix(name, "<unnamed>/") {
		return protocol, ""
	}
	name, _, _ = strings.Cut(name, "/")
	return protocol, name
}

// statement makes a statement of what a line says.
func (l *pgLog) statement(e *pgEntry, protocol trace.Protocol, name, sql string) *trace.Statement {
	st := &trace.Statement{SQL: sql, Lost: e.lost, Protocol: protocol, Name: name, XID: e.xid}
	if e.vxid != "" && !strings.HasSuffix(e.vxid, "/0") {
		st.Txn = e.vxid
	}
	if text, ok := strings.CutPrefix(e.detail, "prepare: "); ok {
		st.Protocol, st.Prepared = trace.ProtocolExecute, text
	} else if text, ok := parametersText(e.detail); ok {
		l.params(st, e, text)
	} else if protocol != trace.ProtocolSimple && strings.Contains(sql, "$1") {
		st.NoParams = true
	}
	st.Tags = trace.ParseTags(sql, lex.PostgreSQL)
	return st
}

func (l *pgLog) params(st *trace.Statement, e *pgEntry, text string) {
	params, ok := parseParameters(text)
	if !ok {
		st.NoParams = true
		l.out.Unknown(e.line, "parameters that cannot be read", []byte(text))
		return
	}
	st.Params = params
}

// parametersText is what follows "parameters: " (PostgreSQL 15) or "Parameters: " (PostgreSQL 16 and later).
func parametersText(detail string) (string, bool) {
	if len(detail) > 12 && detail[1:12] == "arameters: " && (detail[0] == 'p' || detail[0] == 'P') {
		return detail[12:], true
	}
	return "", false
}

// parseParameters reads $1 = 'it”s', $2 = NULL.
func parseParameters(s string) ([]trace.Param, bool) {
	params := make([]trace.Param, 0, strings.Count(s, " = "))
	for n := 1; ; n++ {
		head := "$" + strconv.Itoa(n) + " = "
		if !strings.HasPrefix(s, head) {
			return nil, false
		}
		s = s[len(head):]
		switch {
		case strings.HasPrefix(s, "NULL"):
			params = append(params, trace.Param{Null: true})
			s = s[4:]
		case strings.HasPrefix(s, "'"):
			end, closed := lex.Quoted(s, 0, false)
			if !closed {
				return nil, false
			}
			params = append(params, trace.Param{Value: strings.ReplaceAll(s[1:end-1], "''", "'")})
			s = s[end:]
		default:
			return nil, false
		}
		if s == "" {
			return params, true
		}
		if !strings.HasPrefix(s, ", ") {
			return nil, false
		}
		s = s[2:]
	}
}

// start is a line at the start of a statement.
func (l *pgLog) start(s *pgSession, e *pgEntry, protocol trace.Protocol, name, sql string) error {
	if err := l.out.Session(&s.Session); err != nil {
		return err
	}
	l.starts++
	if s.open != nil { // its end was not logged
		if err := l.done(s, s.open); err != nil {
			return err
		}
	}
	st := l.statement(e, protocol, name, sql)
	st.Start, st.From = e.at, l.out.Tick()
	s.begin(e.vxid)
	if status := titleStatus(e.ps); status != trace.StatusUnknown {
		s.Transaction.Status = status
	}
	st.Before = s.Transaction.Status
	s.open, s.bound, s.audit = st, nil, ""
	if s.last != nil && st.Before != trace.StatusUnknown && titleStatus(e.ps) != trace.StatusUnknown {
		s.last.After = st.Before
	}
	return nil
}

// begin takes the virtual transaction id that a statement has. A new one means that no transaction was open before.
func (s *pgSession) begin(vxid string) {
	if vxid == "" || strings.HasSuffix(vxid, "/0") || vxid == s.vxid {
		return
	}
	if s.vxid != "" {
		s.Transaction.Status = trace.StatusIdle
	}
	s.vxid = strings.Clone(vxid)
}

// titleStatus is the status that the process title shows while a session is between statements.
func titleStatus(ps string) trace.Status {
	switch ps {
	case "idle":
		return trace.StatusIdle
	case "idle in transaction":
		return trace.StatusOpen
	case "idle in transaction (aborted)":
		return trace.StatusFailed
	}
	return trace.StatusUnknown
}

// duration is a line at the end of a statement, or of a part of one.
func (l *pgLog) duration(s *pgSession, e *pgEntry, took int64, rest string) error {
	rest = strings.TrimPrefix(rest, "  ")
	if rest == "" {
		if s.open == nil { // of parse and bind, or log_duration alone
			l.out.Other("durations without a statement")
			return nil
		}
		l.ends++
		return l.finish(s, e, took)
	}
	if sql, ok := strings.CutPrefix(rest, "statement: "); ok {
		return l.onlyLine(s, e, took, trace.ProtocolSimple, "", sql)
	}
	for _, part := range []string{"parse ", "bind ", "execute "} {
		text, ok := strings.CutPrefix(rest, part)
		if !ok {
			continue
		}
		name, sql, ok := strings.Cut(text, ": ")
		if !ok {
			break
		}
		protocol, name := executeName(name)
		switch part {
		case "execute ":
			return l.onlyLine(s, e, took, protocol, name, sql)
		case "bind ":
			s.bound = l.statement(e, protocol, name, sql)
		}
		l.out.Other("durations of parse and bind")
		return nil
	}
	if strings.HasPrefix(rest, "fastpath function call") {
		l.out.Other("function calls (fastpath)")
		return nil
	}
	l.out.Unknown(e.line, "a duration of something unknown", []byte(e.message))
	return nil
}

// finish ends the open statement: its text was logged when it began.
func (l *pgLog) finish(s *pgSession, e *pgEntry, took int64) error {
	st := s.open
	s.open = nil
	st.To = l.out.Tick()
	l.interval(st, e.at, took)
	if e.xid != 0 {
		st.XID = e.xid
	}
	return l.closeStatement(s, st, e)
}

// interval sets the times of a statement. The log's are cut to milliseconds, the duration is precise.
func (l *pgLog) interval(st *trace.Statement, at, took int64) {
	st.Took = max(took, 1)
	if l.shortest < 0 || took < l.shortest {
		l.shortest = took
	}
	st.End = at
	if st.Start == 0 || st.Start+took > at {
		st.End = max(at, st.Start+took)
	}
	if st.Start == 0 {
		st.Start = at - took
	}
}

// onlyLine is the only line of a statement, written at its end.
func (l *pgLog) onlyLine(s *pgSession, e *pgEntry, took int64, protocol trace.Protocol, name, sql string) error {
	if !s.Announced() && s.Info.Joined {
		s.Info.At = e.at - took
	}
	if err := l.out.Session(&s.Session); err != nil {
		return err
	}
	if s.open != nil && s.open.SQL == sql { // its start was logged too
		l.ends++
		return l.finish(s, e, took)
	}
	l.ended++
	st := l.statement(e, protocol, name, sql)
	st.To = l.out.Tick()
	s.begin(e.vxid)
	st.Before = s.Transaction.Status
	l.interval(st, e.at, took)
	s.bound = nil
	return l.closeStatement(s, st, e)
}

// closeStatement follows what a statement that succeeded does to the transaction. The last line of a simple query is written when its
// transaction has ended, if it does: its virtual transaction id has the number 0 then.
func (l *pgLog) closeStatement(s *pgSession, st *trace.Statement, e *pgEntry) error {
	st.After = s.Transaction.Done(st.SQL, nil)
	if st.Protocol == trace.ProtocolSimple && e.vxid != "" {
		switch {
		case strings.HasSuffix(e.vxid, "/0"):
			s.Transaction.Status = trace.StatusIdle
		case s.Transaction.Status != trace.StatusFailed:
			s.Transaction.Status = trace.StatusOpen
		}
		st.After = s.Transaction.Status
	}
	return l.done(s, st)
}

// done keeps a statement that is over until the next one, which may tell the status after it.
func (l *pgLog) done(s *pgSession, st *trace.Statement) error {
	if st == s.open {
		st.After = s.Transaction.Done(st.SQL, nil)
		s.open = nil
	}
	s.Executed(st)
	last := s.last
	s.last = st
	if last == nil {
		return nil
	}
	return l.out.Statement(s.Number, last)
}

// failed is an error. It belongs to the statement that is open, or to one that was not logged when it began.
func (l *pgLog) failed(s *pgSession, e *pgEntry) error {
	err := &trace.Error{Code: e.state, Message: e.message}
	if s.open == nil {
		s.begin(e.vxid)
	}
	fatal := e.level == "FATAL" || e.level == "PANIC"
	st := s.open
	if st != nil && e.query != "" && e.query != st.SQL {
		if err := l.done(s, st); err != nil {
			return err
		}
		st = nil
	}
	switch {
	case st != nil:
		s.open = nil
	case e.query != "":
		st = l.statement(e, trace.ProtocolUnknown, "", e.query)
		if s.bound != nil && s.bound.SQL == e.query {
			st.Protocol, st.Name, st.Params = trace.ProtocolPrepared, s.bound.Name, s.bound.Params
		}
		st.Before = s.Transaction.Status
	case s.bound != nil:
		st = s.bound
		st.Before = s.Transaction.Status
	case fatal:
		l.out.Other("sessions refused or ended by the server")
	default:
		st = &trace.Statement{Lost: true, Before: s.Transaction.Status}
		if i := strings.Index(e.context, "with parameters: "); i >= 0 {
			st.Protocol = trace.ProtocolPrepared
		}
	}
	if st != nil {
		if err := l.refuse(s, e, st, err); err != nil {
			return err
		}
	}
	if fatal {
		l.gone[s.Info.Backend] = s.id // it may still say that it disconnects
		return l.close(e.pid, s, &trace.End{At: e.at, Tick: l.out.Tick(), Reason: e.message})
	}
	return nil
}

func (l *pgLog) refuse(s *pgSession, e *pgEntry, st *trace.Statement, err *trace.Error) error {
	if err := l.out.Session(&s.Session); err != nil {
		return err
	}
	s.bound = nil
	st.Error, st.End, st.To = err, e.at, l.out.Tick()
	if st.XID == 0 {
		st.XID = e.xid
	}
	if st.Txn == "" && !strings.HasSuffix(e.vxid, "/0") {
		st.Txn = e.vxid
	}
	if i := strings.Index(e.context, "with parameters: "); i >= 0 && st.Params == nil {
		// The context may go on behind the parameters, but they are its last line as a rule.
		if params, ok := parseParameters(e.context[i+len("with parameters: "):]); ok {
			st.Params, st.NoParams = params, false
			if st.Protocol == trace.ProtocolUnknown {
				st.Protocol = trace.ProtocolPrepared
			}
		}
	}
	st.After = s.Transaction.Done(st.SQL, err)
	return l.done(s, st)
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
	if !s.Announced() && s.open == nil && s.last == nil && end.Reason == "quit" {
		l.out.Other("connections without a session") // of a prober, or refused
	}
	if err := l.flush(s); err != nil {
		return err
	}
	return l.out.End(s.Number, end)
}

// finishAll ends all sessions.
func (l *pgLog) finishAll(reason string) error {
	for _, pid := range sortedKeys(l.sessions) {
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
	for _, pid := range sortedKeys(l.sessions) {
		if err := l.flush(l.sessions[pid]); err != nil {
			return err
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// summary hands on what is left and says what the log could not tell.
func (l *pgLog) summary() error {
	if err := l.flushAll(); err != nil {
		return err
	}
	r := l.out.Report
	if l.audits > 0 {
		l.auditSummary(r)
	} else {
		l.timesSummary(r)
	}
	if r.NoParams > 0 {
		r.NotTold("parameters of some statements", "log_parameter_max_length = -1, log_parameter_max_length_on_error = -1"+l.besides)
	}
	r.NotTold("results, and how many rows were read and written", "a packet capture tells them")
	r.NotTold("isolation levels that nobody asked for by name", "replay with the server's default_transaction_isolation")
	r.NotTold("data of COPY, large objects and function calls", "")
	if r.Count("connection messages") == 0 && r.Sessions > 0 {
		r.NotTold("when sessions began and ended", "log_connections = on, log_disconnections = on")
	}
	if r.Waits == 0 {
		r.NotTold("who waited for a lock, unless nobody did", "log_lock_waits = on, deadlock_timeout = 10ms")
	}
	if r.Lost > 0 {
		r.NotTold("the text of statements that failed", "log_min_error_statement = error (not \"log\", which leaves errors out)")
	}
	for _, z := range l.zones {
		r.Note("the time zone %s is not known here; its times were read as UTC. log_timezone = UTC avoids that", z)
	}
	if l.foreign > 0 {
		r.Note("%s to sessions not in English and not understood: lc_messages = C", prose.Count(l.foreign, "message"))
	}
	if l.mixed > 0 {
		r.Note("%d times a session was there again after its process id had been another's, or after the server had been started again: this seems to be the log of several "+
			"servers in one. Import each server's by itself", l.mixed)
	}
	if !l.users && r.Sessions > 0 {
		r.NotTold("users and databases of sessions", "%u, %d in log_line_prefix, or csvlog")
	}
	return nil
}

func (l *pgLog) timesSummary(r *source.Report) {
	switch {
	case l.starts == 0 && l.ended == 0:
		r.Note("no statement was logged: log_statement = all, log_duration = on")
	case l.starts > 0 && l.ends == 0 && l.ended == 0:
		r.NotTold("when statements ended", "log_duration = on")
	case l.starts == 0:
		r.NotTold("in which order statements began, to less than a millisecond", "log_statement = all and log_duration = on in place of log_min_duration_statement")
		const long = 1_000_000
		if l.shortest >= long {
			r.Note("the shortest statement took %d ms: shorter ones may have been left out (log_min_duration_statement = 0)", l.shortest/1_000_000)
		}
	}
}

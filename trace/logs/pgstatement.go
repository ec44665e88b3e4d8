package logs

import (
	"cmp"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

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
	if status := titleStatus(e.ps); status != answer.Unknown {
		s.Transaction.Status = status
	}
	st.Before = s.Transaction.Status
	s.open, s.bound, s.audit = st, nil, ""
	if s.last != nil && st.Before != answer.Unknown && titleStatus(e.ps) != answer.Unknown {
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
		s.Transaction.Status = answer.Idle
	}
	s.vxid = strings.Clone(vxid)
}

// titleStatus is the status that the process title shows while a session is between statements.
func titleStatus(ps string) answer.State {
	switch ps {
	case "idle":
		return answer.Idle
	case "idle in transaction":
		return answer.Open
	case "idle in transaction (aborted)":
		return answer.Failed
	}
	return answer.Unknown
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
	st.Start = cmp.Or(st.Start, at-took)
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
	st.After = s.Done(st.SQL, nil)
	if st.Protocol == trace.ProtocolSimple && e.vxid != "" {
		switch {
		case strings.HasSuffix(e.vxid, "/0"):
			s.Transaction.Status = answer.Idle
		case s.Transaction.Status != answer.Failed:
			s.Transaction.Status = answer.Open
		}
		st.After = s.Transaction.Status
	}
	return l.done(s, st)
}

// done keeps a statement that is over until the next one, which may tell the status after it.
func (l *pgLog) done(s *pgSession, st *trace.Statement) error {
	if st == s.open {
		st.After = s.Done(st.SQL, nil)
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
	err := &answer.Error{Code: e.state, Message: e.message}
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

func (l *pgLog) refuse(s *pgSession, e *pgEntry, st *trace.Statement, err *answer.Error) error {
	if err := l.out.Session(&s.Session); err != nil {
		return err
	}
	s.bound = nil
	st.Error, st.End, st.To = err, e.at, l.out.Tick()
	st.XID = cmp.Or(st.XID, e.xid)
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
	st.After = s.Done(st.SQL, err)
	return l.done(s, st)
}

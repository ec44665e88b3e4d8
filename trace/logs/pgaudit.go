package logs

import (
	"strconv"
	"strings"

	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// auditLine takes a line of pgaudit (https://github.com/pgaudit/pgaudit, Format):
//
//	AUDIT: SESSION,STATEMENT_ID,SUBSTATEMENT_ID,CLASS,COMMAND,OBJECT_TYPE,OBJECT_NAME,STATEMENT,PARAMETER[,ROWS]
//
// A statement has a line for each relation (log_relation, OBJECT lines), and one for each statement that it executes itself, as functions
// do, with higher substatement ids. Only the client's own statement counts, once. Where the server logs statements by itself too, the lines
// only tell tables and rows.
func (l *pgLog) auditLine(s *pgSession, e *pgEntry) (handled bool, err error) {
	f, ok := splitCSV(strings.TrimPrefix(e.message, "AUDIT: "), nil)
	if !ok || len(f) < 9 || f[0] != "SESSION" && f[0] != "OBJECT" {
		l.out.Unknown(e.line, "an AUDIT line that is not pgaudit's", []byte(e.message))
		return true, nil
	}
	id, sub, class, command, sql := f[1], f[2], f[3], f[4], f[7]
	var table []trace.Table
	if f[6] != "" && (f[5] == "TABLE" || f[5] == "VIEW" || f[5] == "MATERIALIZED VIEW" || f[5] == "PARTITIONED TABLE" || f[5] == "FOREIGN TABLE") {
		table = []trace.Table{{Name: f[6], Write: class == "WRITE"}}
	}
	if err := l.out.Session(&s.Session); err != nil {
		return true, err
	}
	if st := l.audited(s, sql, id); st != nil {
		st.Tables = mergeTables(st.Tables, table)
		if sub == "1" {
			auditRows(st, f, class)
		}
		l.out.Other("pgaudit lines of statements that were told already")
		return true, nil
	}
	switch {
	case sub != "1", s.audit == id:
		l.out.Other("pgaudit lines of statements within statements")
		return true, nil
	case l.starts+l.ended > 0: // the server logs statements itself; this one is gone already
		l.out.Other("pgaudit lines of statements that were told already")
		return true, nil
	}
	l.audits++
	s.audit = strings.Clone(id)
	s.begin(e.vxid)
	st := &trace.Statement{SQL: sql, Before: s.Transaction.Status, XID: e.xid, Tables: table, Tags: trace.ParseTags(sql, lex.PostgreSQL)}
	if !strings.HasSuffix(e.vxid, "/0") {
		st.Txn = e.vxid
	}
	l.auditParams(st, f[8])
	if len(f) > 9 { // log_rows: it is over
		st.End, st.To = e.at, l.out.Tick()
		if e.ps != "" && e.ps != command {
			st.Late, st.To = true, 0
			l.late++
		}
		auditRows(st, f, class)
	} else {
		st.Start, st.From = e.at, l.out.Tick()
	}
	st.After = s.Done(sql, nil)
	return true, l.done(s, st)
}

// audited gives the statement that a line belongs to if it is known already.
func (l *pgLog) audited(s *pgSession, sql, id string) *trace.Statement {
	for _, st := range []*trace.Statement{s.open, s.last} {
		if st != nil && (st.SQL == sql && l.starts+l.ended > 0 || s.audit == id && st == s.last) {
			return st
		}
	}
	return nil
}

// auditParams reads pgaudit.log_parameter's list, which is CSV. NULL and the empty string look the same in it.
func (l *pgLog) auditParams(st *trace.Statement, list string) {
	switch list {
	case "<none>":
		return
	case "<not logged>", "<long param suppressed>":
		st.NoParams = strings.Contains(st.SQL, "$1")
		return
	}
	values, ok := splitCSV(list, nil)
	if !ok {
		st.NoParams = true
		return
	}
	st.Protocol = trace.ProtocolPrepared
	for _, v := range values {
		st.Params = append(st.Params, trace.Param{Value: v, Null: v == ""})
	}
}

// auditRows takes log_rows' count.
func auditRows(st *trace.Statement, f []string, class string) {
	if len(f) < 10 || class != "READ" && class != "WRITE" || st.Results != nil {
		return
	}
	if n, err := strconv.ParseInt(f[9], 10, 64); err == nil && n >= 0 {
		r := trace.Result{Affected: trace.Unknown, Count: trace.Unknown}
		if class == "READ" {
			r.Count = n
		} else {
			r.Affected = n
		}
		st.Results = []trace.Result{r}
	}
}

func mergeTables(have, more []trace.Table) []trace.Table {
next:
	for _, t := range more {
		for i := range have {
			if have[i].Name == t.Name {
				have[i].Write = have[i].Write || t.Write
				continue next
			}
		}
		have = append(have, t)
	}
	return have
}

func (l *pgLog) auditSummary(r *source.Report) {
	if l.starts+l.ended > 0 {
		l.timesSummary(r)
		return
	}
	r.Lacks("when statements began, and their order among sessions", "log_statement = all and log_duration = on besides pgaudit")
	r.Lacks("whether a parameter was NULL or empty", "log_statement = all")
	r.Lacks("which statements failed, where pgaudit leaves them out and the error line does not name them", "log_min_error_statement = error")
	if l.late > 0 {
		r.Note("%d statements were written at an unknown time after they had ended (pgaudit.log_rows writes a SELECT when its portal closes)", l.late)
	}
}

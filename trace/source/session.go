package source

import (
	"strings"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// Session is what a source knows of a session.
type Session struct {
	Number      uint64
	Info        trace.Session
	Seen        int64 // when it was seen last
	Transaction Transaction
	handed      trace.Session // as the sink has handed it on last
}

// Announced tells whether something was handed on of the session.
func (s *Session) Announced() bool { return s.handed != (trace.Session{}) }

// Done says that a statement has ended, and gives the state of the transaction after it.
func (s *Session) Done(sql string, err *answer.Error) answer.State {
	if err == nil {
		return s.Transaction.done(sql, nil, nil)
	}
	p := product.Of(s.Info.Product)
	if !p.Known() && s.Transaction.Dialect == lex.MySQL { // a log that does not say whose it is: the family shares the codes that matter
		p = product.OfVersion("")
	}
	return s.Transaction.done(sql, err, p)
}

// Executed takes what a statement changes of its session: its level, its database.
func (s *Session) Executed(st *trace.Statement) {
	if st.Error != nil {
		return
	}
	if level := levelOf(st.SQL, s.Transaction.Dialect); level != "" {
		s.Info.Level = level
	}
	if s.Transaction.Dialect == lex.MySQL {
		if db, ok := useDatabase(st.SQL); ok {
			s.Info.Database = db
		}
	}
}

// useDatabase reads USE db.
func useDatabase(sql string) (string, bool) {
	if s := strings.TrimLeft(sql, " \t\r\n"); s == "" || s[0]|0x20 != 'u' { // almost all statements
		return "", false
	}
	f := strings.Fields(strings.TrimRight(sql, "; \t\r\n"))
	if len(f) == 2 && strings.EqualFold(f[0], "use") {
		return strings.Trim(f[1], "`"), true
	}
	return "", false
}

// levelOf gives the isolation level that a statement sets for its session: SET SESSION CHARACTERISTICS AS TRANSACTION (PostgreSQL),
// SET SESSION TRANSACTION (MySQL family).
func levelOf(sql string, d lex.Dialect) string {
	if len(sql) < 3 || sql[0]|0x20 != 's' || sql[1]|0x20 != 'e' || sql[2]|0x20 != 't' { // almost all statements
		return ""
	}
	all := strings.Join(lex.Words(sql, d, 12), " ")
	head := "set session transaction "
	if d == lex.PostgreSQL {
		head = "set session characteristics as transaction "
	}
	if !strings.HasPrefix(all, head) {
		return ""
	}
	_, after, ok := strings.Cut(all, "isolation level ")
	for _, level := range []string{"read uncommitted", "read committed", "repeatable read", "serializable"} {
		if ok && strings.HasPrefix(after, level) {
			return level
		}
	}
	return ""
}

package source

import (
	"strings"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// known is what a source knows of a session.
type Session struct {
	Number      uint64
	Info        trace.Session
	Seen        int64 // when it was seen last
	Transaction Transaction
	told        trace.Session // as it was handed on last
}

// announced tells whether something was handed on of the session.
func (k *Session) Announced() bool { return k.told != (trace.Session{}) }

// executed takes what a statement changes of its session: its level, its database.
func (k *Session) Executed(st *trace.Statement) {
	if st.Error != nil {
		return
	}
	if level := levelOf(st.SQL, k.Transaction.Dialect); level != "" {
		k.Info.Level = level
	}
	if k.Transaction.Dialect == lex.MySQL {
		if db, ok := useDatabase(st.SQL); ok {
			k.Info.Database = db
		}
	}
}

// productOf tells the products of the MySQL family apart by their version.
func ProductOf(version string) string {
	switch v := strings.ToLower(version); {
	case strings.Contains(v, "mariadb"):
		return "mariadb"
	case strings.Contains(v, "tidb"):
		return "tidb"
	}
	return "mysql"
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

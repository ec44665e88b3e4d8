package trace

import "strings"

// effect is what a statement does to its session's transaction, as far as its first words tell.
type effect uint8

const (
	effectNone effect = iota
	effectBegin
	effectEnd
	effectImplicit // commits what is open and leaves none open (MySQL family: DDL and its like)
	effectAutoOff
	effectAutoOn
	effectUndo // to a savepoint: a failed transaction goes on (PostgreSQL)
	effectMany // several statements: not known
)

// effectOf reads the statement's first words. It is for status that no server told; a wrong guess is bounded by the next status that one
// tells.
func effectOf(sql string, d Dialect) effect {
	if i := strings.IndexByte(sql, ';'); i >= 0 && strings.TrimSpace(strings.TrimRight(sql[i:], "; \t\r\n")) != "" && several(sql, d) {
		return effectMany
	}
	if plain(sql) {
		return effectNone
	}
	w := words(sql, d, 4)
	if len(w) == 0 {
		return effectNone
	}
	second := ""
	if len(w) > 1 {
		second = w[1]
	}
	switch w[0] {
	case "begin":
		return effectBegin
	case "start":
		if second == "transaction" {
			return effectBegin
		}
	case "commit", "end", "abort", "rollback":
		return endEffect(w, d)
	case "prepare":
		if second == "transaction" && d == PostgreSQL {
			return effectEnd
		}
	case "set":
		if d == MySQL {
			return autocommitEffect(sql)
		}
	case "create", "alter", "drop", "truncate", "rename", "analyze", "optimize", "grant", "revoke", "lock", "flush":
		if d == MySQL && second != "temporary" {
			return effectImplicit
		}
	}
	return effectNone
}

// plain knows the statements that most statements are by their first letters.
func plain(sql string) bool {
	for _, verb := range [...]string{"select ", "insert ", "update ", "delete "} {
		if len(sql) > len(verb) && strings.EqualFold(sql[:len(verb)], verb) {
			return true
		}
	}
	return false
}

func endEffect(w []string, d Dialect) effect {
	for i, word := range w[1:] {
		switch {
		case word == "to":
			return effectUndo
		case word == "prepared" && d == PostgreSQL:
			return effectNone
		case word == "chain" && w[i] != "no":
			return effectBegin
		}
	}
	return effectEnd
}

func autocommitEffect(sql string) effect {
	s := strings.ToLower(strings.Join(strings.Fields(sql), ""))
	for _, name := range []string{"setautocommit", "setsessionautocommit", "set@@autocommit", "set@@session.autocommit"} {
		if v, ok := strings.CutPrefix(s, name); ok {
			switch strings.TrimRight(strings.TrimLeft(v, ":="), ";") {
			case "0", "off", "false":
				return effectAutoOff
			case "1", "on", "true":
				return effectAutoOn
			}
		}
	}
	return effectNone
}

// levelOf gives the isolation level that a statement sets for its session: SET SESSION CHARACTERISTICS AS TRANSACTION (PostgreSQL),
// SET SESSION TRANSACTION (MySQL family).
func levelOf(sql string, d Dialect) string {
	if len(sql) < 3 || sql[0]|0x20 != 's' || sql[1]|0x20 != 'e' || sql[2]|0x20 != 't' { // almost all statements
		return ""
	}
	all := strings.Join(words(sql, d, 12), " ")
	head := "set session transaction "
	if d == PostgreSQL {
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

// several reports whether the text has more than one statement.
func several(sql string, d Dialect) bool {
	if w := words(sql, d, 4); len(w) > 0 && w[0] == "create" {
		return false // a routine's body has semicolons
	}
	seen := false
	for l := (lexer{sql: sql, dialect: d}); ; {
		kind, text, ok := l.next()
		switch {
		case !ok:
			return false
		case kind == tokenOther && text == ";":
			seen = true
		case seen && kind != tokenSpace && kind != tokenComment:
			return true
		}
	}
}

// follower follows a session's transaction from its statements where the source does not tell it.
type follower struct {
	dialect Dialect
	status  Status
	manual  bool // autocommit is off
}

// done tells of a statement that has ended and gives the status after it.
func (f *follower) done(sql string, err *Error) Status {
	e := effectOf(sql, f.dialect)
	switch {
	case e == effectMany:
		f.status = StatusUnknown
	case err != nil:
		f.failed(e, err)
	case e == effectBegin:
		f.status = StatusOpen
	case e == effectEnd, e == effectImplicit:
		f.status = StatusIdle
	case e == effectUndo && f.status == StatusFailed:
		f.status = StatusOpen
	case e == effectAutoOff:
		f.manual = true
	case e == effectAutoOn:
		f.manual, f.status = false, StatusIdle
	case f.manual && f.status != StatusFailed && e == effectNone:
		f.status = StatusOpen
	}
	return f.status
}

// failed follows an error. In the MySQL family a deadlock (1213) and 1020 with a snapshot end the transaction; COMMIT's failure
// leaves it unknown.
func (f *follower) failed(e effect, err *Error) {
	switch {
	case f.dialect == PostgreSQL && e == effectEnd:
		f.status = StatusIdle
	case f.dialect == PostgreSQL && f.status == StatusOpen:
		f.status = StatusFailed
	case f.dialect == MySQL && (err.Code == "1213"):
		f.status = StatusIdle
	case f.dialect == MySQL && (err.Code == "1020" || err.Code == "1205" || e == effectEnd || e == effectImplicit):
		f.status = StatusUnknown
	}
}

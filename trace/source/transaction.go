package source

import (
	"strings"

	"wirecheck/answer"
	"wirecheck/product"
	"wirecheck/trace/lex"
)

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

// effectOf reads the statement's first words. It serves sources that do not show the status; a wrong guess ends with the next status that one
// tells.
func effectOf(sql string, d lex.Dialect) effect {
	if i := strings.IndexByte(sql, ';'); i >= 0 && strings.TrimSpace(strings.TrimRight(sql[i:], "; \t\r\n")) != "" && lex.Several(sql, d) {
		return effectMany
	}
	if plain(sql) {
		return effectNone
	}
	w := lex.Words(sql, d, 4)
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
		if second == "transaction" && d == lex.PostgreSQL {
			return effectEnd
		}
	case "set":
		if d == lex.MySQL {
			return autocommitEffect(sql)
		}
	case "create", "alter", "drop", "truncate", "rename", "analyze", "optimize", "grant", "revoke", "lock", "flush":
		if d == lex.MySQL && second != "temporary" {
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

func endEffect(w []string, d lex.Dialect) effect {
	for i, word := range w[1:] {
		switch {
		case word == "to":
			return effectUndo
		case word == "prepared" && d == lex.PostgreSQL:
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

// Transaction follows a session's transaction from its statements where the source does not show it.
type Transaction struct {
	Dialect lex.Dialect
	Status  answer.State
	manual  bool // autocommit is off
}

// done tells of a statement that has ended and gives the state after it.
func (f *Transaction) done(sql string, err *answer.Error, p *product.Product) answer.State {
	e := effectOf(sql, f.Dialect)
	switch {
	case e == effectMany:
		f.Status = answer.Unknown
	case err != nil:
		f.failed(e, p, p.Error(err.Code, err.Message))
	case e == effectBegin:
		f.Status = answer.Open
	case e == effectEnd, e == effectImplicit:
		f.Status = answer.Idle
	case e == effectUndo && f.Status == answer.Failed:
		f.Status = answer.Open
	case e == effectAutoOff:
		f.manual = true
	case e == effectAutoOn:
		f.manual, f.Status = false, answer.Idle
	case f.manual && f.Status != answer.Failed && e == effectNone:
		f.Status = answer.Open
	}
	return f.Status
}

// failed follows an error of a class. In the MySQL family a lock wait time-out may end the transaction (innodb_rollback_on_timeout), and a COMMIT that
// fails leaves unknown what became of it.
func (f *Transaction) failed(e effect, p *product.Product, class product.ErrorClass) {
	switch {
	case p.ErrorFails && e == effectEnd:
		f.Status = answer.Idle
	case p.ErrorFails:
		if f.Status == answer.Open {
			f.Status = answer.Failed
		}
	case class.Aborts:
		f.Status = answer.Idle
	case class.Reason == answer.ReasonLockTimeout || e == effectEnd || e == effectImplicit:
		f.Status = answer.Unknown
	}
}

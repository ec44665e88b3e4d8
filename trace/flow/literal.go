package flow

import (
	"strconv"
	"strings"

	"wirecheck/trace/lex"
)

// Literal is a literal of a statement.
type Literal struct {
	At, End int
	Value   string
	Number  bool
	Column  string // that it alone is assigned to, inserted into or compared with, in lower case; empty if that is not plain
	Clause  string // set, where, values, limit (which chooses no rows by their values)
	open    bool   // what follows was not seen
}

// Param is the value of a parameter, in the text format.
type Param struct {
	Text string
	Null bool
	// Unknown: it came in a binary form that wirecheck does not read, or was too long to be kept.
	Unknown bool
}

// Literals finds the literals of a statement, and its parameters if their values are given, and what they stand beside, by tokens alone.
func Literals(sql string, d lex.Dialect, params ...Param) (list []Literal) {
	clause, column, operator := "", "", ""
	columns, depth, place, limited := []string(nil), 0, 0, 0
	insert, listing, sign := false, false, ""
	cast, asked := false, 0 // behind ::; placeholders so far
	for t := range lex.Tokens(sql, d) {
		if n := len(list); n > 0 && list[n-1].Column != "" && t.Kind != lex.Space && t.Kind != lex.Comment && list[n-1].open {
			// What follows a literal says whether it is the whole value.
			switch {
			case t.Text == ":":
				cast = true
			case cast && t.Kind == lex.Word:
				cast = false
			default:
				list[n-1].open = false
				if t.Kind == lex.Other && strings.Contains("+-*/%|^&#<>", t.Text) {
					list[n-1].Column = ""
				}
			}
		}
		switch t.Kind {
		case lex.Space, lex.Comment:
			continue
		case lex.Word, lex.Name:
			word := strings.ToLower(strings.Trim(t.Text, "\"`"))
			if t.Kind == lex.Word {
				switch word {
				case "insert", "replace":
					insert = true
				case "set":
					clause = "set"
				case "where", "having", "on":
					clause = "where"
				case "limit", "fetch":
					clause, limited = "limit", depth
				case "values":
					clause, listing, depth = "values", false, 0
				}
			}
			if listing {
				columns = append(columns, word)
			}
			column, operator, sign = word, "", ""
		case lex.String, lex.Number, lex.Placeholder:
			if t.Kind == lex.Placeholder {
				asked++
			}
			l, ok := literal(t, clause, params, asked)
			if !ok {
				operator = ""
				continue
			}
			if sign == "-" && l.Number && operator != "" && sql[l.At-1] == '-' {
				l.At, l.Value = l.At-1, "-"+l.Value
			}
			switch {
			case clause == "values" && depth == 1 && place < len(columns):
				l.Column = columns[place]
			case operator == "=":
				l.Column = column
			}
			l.open, cast = true, false
			list = append(list, l)
			operator, sign = "", ""
		case lex.Other:
			switch t.Text {
			case "(":
				depth++
				if insert && clause == "" && columns == nil {
					listing = true
				}
				if clause == "values" && depth == 1 {
					place = 0
				}
				continue
			case ")":
				depth--
				listing = false
				if clause == "limit" && depth < limited { // a subquery's
					clause = "where"
				}
			case ",":
				if clause == "values" && depth == 1 {
					place++
				}
				operator = ""
			case "=":
				operator = "="
				continue
			case "-":
				sign = "-"
				continue
			case "<", ">", "!", "+", "*", "/", "%", "|":
				operator = t.Text
			}
			sign = ""
		}
	}
	return list
}

// Unquote reads a string literal of either dialect, as far as both agree on it.
func Unquote(text string) string {
	i := strings.IndexAny(text, "'\"")
	if i < 0 || len(text) < i+2 {
		return text
	}
	prefix, quote := strings.ToLower(text[:i]), text[i]
	body := text[i+1 : len(text)-1]
	body = strings.ReplaceAll(body, string([]byte{quote, quote}), string(quote))
	if strings.Contains(body, `\`) && prefix != "x" {
		body = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\0`, "\x00").Replace(body)
	}
	return body
}

// literal makes one of a token; false for a parameter whose value is not known.
func literal(t lex.Token, clause string, params []Param, asked int) (Literal, bool) {
	l := Literal{At: t.At, End: t.At + len(t.Text), Clause: clause, Number: t.Kind == lex.Number, Value: t.Text}
	switch t.Kind {
	case lex.String:
		l.Value = Unquote(t.Text)
	case lex.Placeholder:
		p, ok := param(params, t.Text, asked)
		l.Value = p.Text
		return l, ok
	}
	return l, true
}

// param is the value that a placeholder stands for: PostgreSQL's have numbers, the others count. It is not ok if it is NULL or not known.
func param(params []Param, placeholder string, n int) (p Param, ok bool) {
	if number, err := strconv.Atoi(strings.TrimPrefix(placeholder, "$")); err == nil {
		n = number
	}
	if n < 1 || n > len(params) {
		return p, false
	}
	p = params[n-1]
	return p, !p.Null && !p.Unknown
}

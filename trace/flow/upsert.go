package flow

import (
	"slices"
	"strings"

	"wirecheck/trace/lex"
)

// Upsert reports whether a text may be an INSERT that updates the row that is in its way.
func Upsert(sql string) bool {
	for i := 0; i+6 <= len(sql); i++ {
		if sql[i]|0x20 == 'u' && strings.EqualFold(sql[i:i+6], "update") {
			return true
		}
	}
	return false
}

// upsert is an INSERT of one row that updates the row in its way: ON CONFLICT ... DO UPDATE (PostgreSQL manual, INSERT), ON DUPLICATE KEY UPDATE (MySQL manual, 15.2.7.2).
type upsert struct {
	sql    string
	tokens []lex.Token
	params []Param

	table, alias string          // alias is of the new row (MySQL)
	items        map[string]span // what it inserts into columns
	keys         []string        // that are in the way, if ON CONFLICT names them
	set          int             // the place of the first assignment

	out  strings.Builder
	used []Param // of the question marks in out
}

// span is of tokens.
type span struct{ from, to int }

// asUpdate gives an upsert as the UPDATE that it is where the row is there, and its parameters: EXCLUDED.n and VALUES(n) stand for what it inserts. ok is false for
// other statements, and for upserts of several rows.
func asUpdate(sql string, tokens []lex.Token, params []Param) (string, []Param, bool) {
	u := upsert{sql: sql, tokens: tokens, params: params, items: map[string]span{}}
	if !u.read() {
		return "", nil, false
	}
	u.out.WriteString("UPDATE " + u.table + " SET ")
	end := u.set
	for end < len(tokens) && !u.is(end, "where", "returning") {
		end++
	}
	u.write(span{u.set, end}, true)
	before := " WHERE "
	for _, key := range u.keys {
		if item, ok := u.items[key]; ok {
			u.out.WriteString(before + key + " = ")
			u.write(item, false)
			before = " AND "
		}
	}
	if u.is(end, "where") {
		u.out.WriteString(before)
		u.write(span{end + 1, len(tokens)}, true)
	}
	if !slices.ContainsFunc(tokens, func(t lex.Token) bool { return t.Kind == lex.Placeholder && t.Text == "?" }) {
		u.used = params
	}
	return u.out.String(), u.used, true
}

func (u *upsert) is(i int, words ...string) bool {
	return i >= 0 && i < len(u.tokens) && slices.ContainsFunc(words, func(w string) bool { return u.tokens[i].Text == w || u.tokens[i].Is(w) })
}

// list reads what stands between parentheses from place i on, and gives the place behind; 0 if there are none.
func (u *upsert) list(i int) (items []span, behind int) {
	if !u.is(i, "(") {
		return nil, 0
	}
	depth, from := 0, i+1
	for ; i < len(u.tokens); i++ {
		switch {
		case u.is(i, "("):
			depth++
		case u.is(i, ")"):
			if depth--; depth == 0 {
				return append(items, span{from, i}), i + 1
			}
		case u.is(i, ",") && depth == 1:
			items, from = append(items, span{from, i}), i+1
		}
	}
	return nil, 0
}

// read finds the parts.
func (u *upsert) read() bool {
	i := 1
	for u.is(i, "into", "ignore", "low_priority", "high_priority") {
		i++
	}
	if i >= len(u.tokens) {
		return false
	}
	u.table = u.tokens[i].Text
	for i++; u.is(i, ".") && i+1 < len(u.tokens); i += 2 {
		u.table = u.tokens[i+1].Text
	}
	if u.is(i, "as") { // another name for the table (PostgreSQL)
		i += 2
	}
	columns, i := u.list(i)
	if i == 0 || !u.is(i, "values", "value") {
		return false
	}
	values, i := u.list(i + 1)
	if i == 0 || len(values) != len(columns) {
		return false
	}
	for k, c := range columns {
		u.items[column(u.tokens[c.to-1])] = values[k]
	}
	if u.is(i, "as") && i+1 < len(u.tokens) {
		u.alias = column(u.tokens[i+1])
		i += 2
	}
	switch {
	case u.is(i, "on") && u.is(i+1, "duplicate") && u.is(i+2, "key") && u.is(i+3, "update"):
		u.set = i + 4
	case u.is(i, "on") && u.is(i+1, "conflict"):
		keys, _ := u.list(i + 2)
		for _, k := range keys {
			if k.to == k.from+1 {
				u.keys = append(u.keys, column(u.tokens[k.from]))
			}
		}
		for i += 2; i < len(u.tokens) && !(u.is(i-2, "do") && u.is(i-1, "update") && u.is(i, "set")); i++ {
		}
		u.set = i + 1
	}
	return u.set > 0 && u.set < len(u.tokens)
}

// write writes tokens as they stand. new says that they may name what is inserted.
func (u *upsert) write(s span, new bool) {
	for i := s.from; i < s.to; i++ {
		name, behind := "", i
		switch {
		case !new:
		case u.is(i+1, ".") && i+2 < s.to && (u.tokens[i].Is("excluded") || u.alias != "" && column(u.tokens[i]) == u.alias):
			name, behind = column(u.tokens[i+2]), i+2
		case u.tokens[i].Is("values") && u.is(i+1, "("):
			if list, after := u.list(i + 1); len(list) == 1 {
				name, behind = column(u.tokens[list[0].to-1]), after-1
			}
		}
		if i > s.from {
			u.out.WriteString(u.sql[u.tokens[i-1].At+len(u.tokens[i-1].Text) : u.tokens[i].At])
		}
		if name == "" {
			u.token(i)
			continue
		}
		if item, ok := u.items[name]; ok && item.to > item.from {
			u.write(item, false)
		} else {
			u.out.WriteString("f(0)") // not known
		}
		i = behind
	}
}

// token writes one token, and its parameter.
func (u *upsert) token(i int) {
	t := u.tokens[i]
	if u.out.WriteString(t.Text); t.Kind != lex.Placeholder || t.Text != "?" {
		return
	}
	p, place := Param{Unknown: true}, 0
	for _, q := range u.tokens[:i] {
		if q.Kind == lex.Placeholder {
			place++
		}
	}
	if place < len(u.params) {
		p = u.params[place]
	}
	u.used = append(u.used, p)
}

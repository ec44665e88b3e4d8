package flow

import (
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/trace/lex"
)

// maxOperands bounds the columns that are told of one statement.
const maxOperands = 200

// Update tells the bare name of the table that an UPDATE writes, and which columns it assigns and compares, by tokens alone. So it does of an upsert, for the
// row that is in its way. The list is nil for any other statement, for an UPDATE of several tables, and for one whose SET clause it does not understand.
func Update(sql string, d lex.Dialect, params []Param) (table string, list []history.Operand) {
	u := readUpdate(sql, d, params)
	return u.name, u.list
}

// Relative tells which columns an UPDATE computes from their own current values, as SET n = n - 1 does.
func Relative(sql string, d lex.Dialect) []string { return readUpdate(sql, d, nil).own }

// readUpdate takes an UPDATE or an upsert apart; its list is nil if that is not possible.
func readUpdate(sql string, d lex.Dialect, params []Param) (u update) {
	u.read(sql, d, params)
	if len(u.tokens) == 0 {
		return u
	}
	set, named := -1, 0 // where the assignments begin, and the name of the table ends
	switch begin := u.joined(); {
	case u.tokens[0].Is("insert"):
		set, named = u.upsert(nil)
	case u.tokens[begin].Is("update"):
		set = slices.IndexFunc(u.tokens, func(t lex.Token) bool { return t.Is("set") })
		u.begin, named = begin, set
	}
	if set < 0 || slices.ContainsFunc(u.tokens[u.begin:named], func(t lex.Token) bool { return t.Text == "," || t.Is("join") }) {
		return u
	}
	where, ok := u.assignments(set + 1)
	if u.conditions(where); !ok || len(u.list) > maxOperands {
		u.list, u.own = nil, nil
		return u
	}
	times(u.list, func(o *history.Operand) bool { return o.Role.Assigns() && slices.Contains(u.clocks, o.Column) })
	u.name = u.table(named)
	return u
}

// read takes the text apart; there are no tokens if it has a query.
func (u *update) read(sql string, d lex.Dialect, params []Param) {
	u.dialect = d
	asked := 0 // placeholders so far
	for t := range lex.Tokens(sql, d) {
		if t.Kind == lex.Space || t.Kind == lex.Comment {
			continue
		}
		null := t.Is("null")
		if t.Kind == lex.Placeholder {
			asked++
			p, _ := param(params, t.Text, asked)
			null = p.Null
		}
		if null {
			u.nulls = append(u.nulls, t.At)
		}
		u.tokens = append(u.tokens, t)
	}
	if slices.ContainsFunc(u.tokens, func(t lex.Token) bool { return t.Is("select") }) {
		u.tokens = nil
		return
	}
	for _, l := range Literals(sql, d, params...) {
		if u.every = append(u.every, l); l.Column != "" {
			u.literals = append(u.literals, l)
		}
	}
}

// update is an UPDATE that is taken apart.
type update struct {
	dialect  lex.Dialect
	tokens   []lex.Token
	literals []Literal // with their columns
	every    []Literal
	listed   bool   // a value of a list is read
	begin    int    // the token that says what it does
	name     string // of the table
	list     []history.Operand
	branches []cased  // of CASE
	own      []string // columns that are computed from their own values
	clocks   []string // columns that get the server's time
	nulls    []int    // where NULL stands in the text, or a parameter that is NULL
	offers
}

// table is the first name in front of a place, without schema and alias.
func (u *update) table(end int) (name string) {
	for i := u.begin + 1; i < end; i++ {
		t := u.tokens[i]
		if t.Kind != lex.Word && t.Kind != lex.Name || t.Is("only") || t.Is("ignore") || t.Is("low_priority") || t.Is("into") {
			continue
		}
		if name = column(t); i+1 >= end || u.tokens[i+1].Text != "." {
			break
		}
	}
	return name
}

func column(t lex.Token) string { return strings.ToLower(strings.Trim(t.Text, "\"`")) }

// value is the literal that stands alone between two places of the text, beside a column or in a list.
func (u *update) value(column string, from, to int) (string, bool) {
	for _, l := range u.literals {
		if l.At >= from && l.End <= to && (u.listed || l.Column == column) {
			return l.Value, true
		}
	}
	return "", false
}

// null reports whether a token is NULL, or a parameter that is.
func (u *update) null(t lex.Token) bool { return slices.Contains(u.nulls, t.At) }

// assignments reads the SET clause and gives the place of the token behind WHERE; the number of tokens if there is none.
func (u *update) assignments(i int) (where int, ok bool) {
	for {
		if i >= len(u.tokens) || u.tokens[i].Kind != lex.Word && u.tokens[i].Kind != lex.Name {
			return 0, false // SET (a, b) = ...
		}
		name := column(u.tokens[i])
		for i++; i+1 < len(u.tokens) && u.tokens[i].Text == "."; i += 2 {
			name = column(u.tokens[i+1])
		}
		if i >= len(u.tokens) || u.tokens[i].Text != "=" {
			return 0, false
		}
		begin, depth, own, values := i+1, 0, false, false
		for i++; i < len(u.tokens); i++ {
			t := u.tokens[i]
			if depth == 0 && (t.Text == "," || t.Text == ";" || EndsSet(t)) {
				break
			}
			if _, end := u.offered(i); end > i {
				i, values = end-1, true
				continue
			}
			switch {
			case t.Text == "(":
				depth++
			case t.Text == ")":
				depth--
			case t.Kind == lex.Word || t.Kind == lex.Name:
				own = own || column(t) == name
			case t.Kind == lex.String || t.Kind == lex.Number || t.Kind == lex.Placeholder:
				values = true
			}
		}
		if begin >= len(u.tokens) {
			return 0, false
		}
		o := u.operand(name, begin, i)
		branches := u.cases(name, begin, i)
		if o.Role == history.RoleUnknown && (own || !values) && branches == nil {
			o.Role = history.RoleComputed
		}
		if isClock(u.tokens[begin:i]) {
			u.clocks = append(u.clocks, name)
		}
		if own && o.Role == history.RoleComputed {
			u.own = append(u.own, name)
		}
		u.list, u.branches = append(u.list, o), append(u.branches, branches...)
		if i < len(u.tokens) && u.tokens[i].Text == "," {
			i++
			continue
		}
		for ; i < len(u.tokens); i++ {
			switch {
			case u.tokens[i].Is("where"):
				return i + 1, true
			case u.tokens[i].Is("from"), u.tokens[i].Is("returning"), u.tokens[i].Is("order"), u.tokens[i].Is("limit"):
				if u.tokens[i].Is("from") && i != u.from {
					return 0, false // it reads other tables
				} else if i == u.from {
					continue
				}
				return len(u.tokens), true
			}
		}
		return i, true
	}
}

// operand is the column that gets what stands between two tokens, if that is a value or NULL.
func (u *update) operand(name string, begin, end int) history.Operand {
	if o, behind := u.offered(begin); behind > begin && u.cast(behind) == end {
		if u.taken == nil {
			u.taken = map[string]string{}
		}
		u.taken[name], o.Column = o.Column, name
		return o
	}
	o := history.Operand{Column: name, Role: history.RoleUnknown}
	if begin >= end {
		return o
	}
	first, last, ok := u.tokens[begin], u.tokens[end-1], false
	o.Value, ok = u.value(name, first.At, last.At+len(last.Text))
	if end == begin+1 && (first.Is("true") || first.Is("false")) {
		o.Value, ok = strings.ToLower(first.Text), true
	}
	switch {
	case ok:
		o.Role = history.RoleSet
	case u.null(first) && (end == begin+1 || end == begin+4 && u.tokens[begin+1].Text == ":"): // NULL::text is NULL, too
		o.Role = history.RoleNull
	}
	return o
}

// EndsSet reports whether a word ends the assignments of an UPDATE.
func EndsSet(t lex.Token) bool {
	return t.Is("where") || t.Is("from") || t.Is("returning") || t.Is("order") || t.Is("limit")
}

// conditions reads the WHERE clause. What is not plainly an equality or a range counts as a comparison that may have checked something.
func (u *update) conditions(from int) {
	rest := u.tokens[min(from, len(u.tokens)):]
	if i := slices.IndexFunc(rest, func(t lex.Token) bool { return t.Is("returning") || t.Is("order") || t.Is("limit") || t.Text == ";" }); i >= 0 {
		rest = rest[:i]
	}
	plain := !slices.ContainsFunc(rest, func(t lex.Token) bool { return t.Is("or") || t.Is("not") || t.Is("xor") || t.Is("case") })
	for i, t := range rest {
		if t.Kind != lex.Word && t.Kind != lex.Name || i+1 < len(rest) && (rest[i+1].Text == "." || rest[i+1].Text == "(") || keyword[strings.ToLower(t.Text)] ||
			i > 0 && rest[i-1].Text == ":" { // of ::bigint

			continue
		}
		o := history.Operand{Column: column(t), Role: history.RoleChecked}
		next, before := "", ""
		if i+1 < len(rest) {
			next = rest[i+1].Text
		}
		if i > 0 {
			before = rest[i-1].Text
		}
		switch {
		case plain && next == "=" && i+2 < len(rest):
			value := rest[i+2]
			if value.Text == "-" && i+3 < len(rest) {
				value = rest[i+3]
			}
			if v, ok := u.value(o.Column, rest[i+2].At, value.At+len(value.Text)); ok {
				o.Role, o.Value = history.RoleEqual, v
			}
		case plain && i+2 < len(rest) && rest[i+1].Is("is") && u.null(rest[i+2]):
			o.Role = history.RoleIsNull
		case plain && (next == "<" || next == ">" || next == "!" || before == "<" || before == ">"):
			o.Role = history.RoleRange
		}
		u.list = append(u.list, o)
	}
}

// keyword are the words of a condition that name no column.
var keyword = map[string]bool{
	"and": true, "or": true, "not": true, "xor": true, "is": true, "null": true, "in": true, "like": true, "ilike": true, "between": true, "true": true, "false": true,
	"distinct": true, "from": true, "as": true, "collate": true, "escape": true, "case": true, "when": true, "then": true, "else": true, "end": true,
}

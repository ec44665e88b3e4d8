package flow

import (
	"strings"

	"wirecheck/history"
	"wirecheck/trace/lex"
)

// offers is the row that an upsert would have inserted: its assignments name its values (EXCLUDED.n; VALUES(n), and MariaDB's VALUE(n)).
type offers struct {
	row   map[string]history.Operand // by column, in lower case; empty: one of several rows
	alias string                     // of the row (MySQL: VALUES (1, 2) AS new)
}

// upsert reads the row of an INSERT ... ON CONFLICT DO UPDATE or ... ON DUPLICATE KEY UPDATE. It gives the token in front of the assignments, -1 if there are
// none, and the one behind the table's name.
func (u *update) upsert() (set, named int) {
	values := -1
	set = -1
	for i, t := range u.tokens {
		switch before := u.tokens[max(i-1, 0)]; {
		case values < 0 && (t.Is("values") || t.Is("value")) && i+1 < len(u.tokens) && u.tokens[i+1].Text == "(":
			if values = i; named == 0 {
				named = i
			}
		case named == 0 && t.Text == "(":
			named = i
		case set < 0 && (t.Is("set") && before.Is("update") || t.Is("update") && before.Is("key")):
			set = i
		}
	}
	if set < 0 || values < named {
		return -1, 0
	}
	var columns []string
	for _, t := range u.tokens[named:values] {
		if t.Kind == lex.Word || t.Kind == lex.Name {
			columns = append(columns, column(t))
		}
	}
	u.row = map[string]history.Operand{}
	end := u.closed(values + 1)
	for i, begin, depth := values+2, values+2, 0; i < end && len(columns) > 0; i++ {
		switch text := u.tokens[i].Text; {
		case text == "(":
			depth++
		case text == ")" && i < end-1:
			depth--
		case text == "," && depth == 0 || i == end-1:
			u.row[columns[0]] = u.alone(columns[0], begin, i)
			columns, begin = columns[1:], i+1
		}
	}
	switch {
	case end < set && u.tokens[end].Text == ",":
		u.row = map[string]history.Operand{}
	case end+1 < set && u.tokens[end].Is("as"):
		u.alias = column(u.tokens[end+1])
	}
	return set, named
}

// alone is operand for a value that stands in a list: others may stand beside it.
func (u *update) alone(name string, begin, end int) history.Operand {
	for i := begin; i < end; i++ {
		if t := u.tokens[i]; t.Kind == lex.Other && t.Text != ":" && (t.Text != "-" || i > begin) {
			return history.Operand{Column: name, Role: history.RoleUnknown}
		}
	}
	o := u.operand(name, begin, end)
	if o.Role == history.RoleSet && u.tokens[begin].Text == "-" && !strings.HasPrefix(o.Value, "-") {
		o.Value = "-" + o.Value
	}
	return o
}

// closed is the place behind the bracket that closes the one at a place.
func (u *update) closed(i int) int {
	for depth := 0; i < len(u.tokens); i++ {
		switch u.tokens[i].Text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// offered reads the name of a value of the row that would have been inserted. It gives the place behind it; i if there is none.
func (u *update) offered(i int) (o history.Operand, end int) {
	if u.row == nil || i+2 >= len(u.tokens) {
		return o, i
	}
	t, name := u.tokens[i], u.tokens[i+2]
	switch {
	case (t.Is("values") || t.Is("value")) && u.tokens[i+1].Text == "(" && i+3 < len(u.tokens) && u.tokens[i+3].Text == ")":
		end = i + 4
	case u.tokens[i+1].Text == "." && (t.Is("excluded") || u.alias != "" && column(t) == u.alias):
		end = i + 3
	default:
		return o, i
	}
	o, known := u.row[column(name)]
	if !known {
		o.Role = history.RoleUnknown
	}
	return o, end
}

package flow

import (
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/trace/lex"
)

// offers are the rows that a statement has beside the table: those that an upsert would have inserted (its assignments name their values as EXCLUDED.n,
// VALUES(n), MariaDB's VALUE(n)), or those of UPDATE ... FROM (VALUES ...).
type offers struct {
	row   map[string]history.Operand   // by column, in lower case; empty: one of several rows
	rows  []map[string]history.Operand // all of them
	alias string                       // of the row (MySQL: VALUES (1, 2) AS new)
	taken map[string]string            // the columns of the row that columns get
	from  int                          // the place of FROM in front of the rows; 0: they stand elsewhere
}

// maxRows bounds the rows of a statement that are told apart.
const maxRows = 1000

// upsert reads the rows of an INSERT. It gives the token in front of the assignments of ON CONFLICT DO UPDATE or ON DUPLICATE KEY UPDATE, -1 if there are none,
// and the one behind the table's name. all are the columns of an INSERT that does not list them.
func (u *update) upsert(all []string) (set, named int) {
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
	if values < named || values < 0 || set >= 0 && set < values {
		return -1, 0
	}
	columns := u.names(named, values)
	if len(columns) == 0 {
		columns = all
	}
	end := u.offer(values+1, columns)
	if end+1 < set && u.tokens[end].Is("as") {
		u.alias = column(u.tokens[end+1])
	}
	return set, named
}

// names are the names between two places.
func (u *update) names(from, to int) (list []string) {
	for _, t := range u.tokens[from:to] {
		if t.Kind == lex.Word || t.Kind == lex.Name {
			list = append(list, column(t))
		}
	}
	return list
}

// offer reads rows of VALUES and gives the place behind them.
func (u *update) offer(i int, columns []string) (end int) {
	u.row = map[string]history.Operand{}
	for n := 0; i < len(u.tokens) && u.tokens[i].Text == "("; n++ {
		end = u.closed(i)
		row, rest := map[string]history.Operand{}, columns
		for k, begin, depth := i+1, i+1, 0; k < end && len(rest) > 0; k++ {
			switch text := u.tokens[k].Text; {
			case text == "(":
				depth++
			case text == ")" && k < end-1:
				depth--
			case text == "," && depth == 0 || k == end-1:
				row[rest[0]] = u.alone(rest[0], begin, k)
				rest, begin = rest[1:], k+1
			}
		}
		if u.rows = append(u.rows, row); n == maxRows {
			u.rows = nil
			return end
		}
		if i = end + 1; end >= len(u.tokens) || u.tokens[end].Text != "," {
			break
		}
	}
	if len(u.rows) == 1 {
		u.row = u.rows[0]
	}
	return end
}

// joined reads the rows of UPDATE ... FROM (VALUES ...) AS v (id, n), and those that WITH v (id, n) AS (VALUES ...) puts in front of it. It gives the place where the
// UPDATE begins.
func (u *update) joined() (begin int) {
	values := slices.IndexFunc(u.tokens, func(t lex.Token) bool { return t.Is("values") })
	switch {
	case values < 4 || values+1 >= len(u.tokens) || u.tokens[values-1].Text != "(" || u.tokens[values+1].Text != "(":
	case u.tokens[0].Is("with"):
		// v ( ... ) AS ( VALUES
		if u.tokens[2].Text != "(" || u.closed(2) != values-2 || !u.tokens[values-2].Is("as") {
			return 0
		}
		u.alias = column(u.tokens[1])
		end := u.offer(values+1, u.names(3, values-2))
		begin = min(end+1, len(u.tokens)-1)
		for i := begin; i+1 < len(u.tokens); i++ {
			if u.tokens[i].Is("from") && column(u.tokens[i+1]) == u.alias && (i+2 == len(u.tokens) || EndsSet(u.tokens[i+2])) {
				u.from = i
			}
		}
	case u.tokens[0].Is("update") && u.tokens[values-2].Is("from"):
		place := u.closed(values - 1)
		if place < len(u.tokens) && u.tokens[place].Is("as") {
			place++
		}
		if place+1 >= len(u.tokens) || u.tokens[place+1].Text != "(" {
			return 0
		}
		u.alias = column(u.tokens[place])
		if behind := u.closed(place + 1); behind == len(u.tokens) || EndsSet(u.tokens[behind]) {
			u.from = values - 2
		}
		u.offer(values+1, u.names(place+2, u.closed(place+1)-1))
	}
	return begin
}

// cast is the place behind a cast (::int) that stands at a place; that place if there is none.
func (u *update) cast(i int) int {
	if i+2 < len(u.tokens) && u.tokens[i].Text == ":" && u.tokens[i+1].Text == ":" && (u.tokens[i+2].Kind == lex.Word || u.tokens[i+2].Kind == lex.Name) {
		if i += 3; i < len(u.tokens) && u.tokens[i].Text == "(" {
			i = u.closed(i)
		}
	}
	return i
}

// alone is operand for a value that stands in a list: others may stand beside it.
func (u *update) alone(name string, begin, end int) history.Operand {
	if isClock(u.tokens[begin:end]) {
		return history.Operand{Column: name, Role: history.RoleTime}
	}
	for i := begin; i < end; i++ {
		if t := u.tokens[i]; t.Kind == lex.Other && t.Text != ":" && (t.Text != "-" || i > begin) {
			return history.Operand{Column: name, Role: history.RoleUnknown}
		}
	}
	plain := u.literals
	u.literals, u.listed = u.every, true
	o := u.operand(name, begin, end)
	u.literals, u.listed = plain, false
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
	if !known || o.Role == history.RoleTime {
		o.Role = history.RoleUnknown
	}
	o.Column = column(name)
	return o, end
}

package mysql

import (
	"slices"
	"strings"

	"wirecheck/statement"
)

// Queries over information_schema.COLUMNS get a condition that leaves out the hidden columns, wherever in a statement they
// stand: so LIMIT, COUNT and what is made of the answer (CREATE TABLE AS SELECT) are right. The texts of views and routines
// stay as they are. Where a place is not certain, the session takes the rows out of the answer (concealRows).

// afterTable are the words that may follow a table in a FROM clause and are no alias.
var afterTable = []string{"WHERE", "JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "NATURAL", "STRAIGHT_JOIN", "ON", "USING", "GROUP", "ORDER", "HAVING", "LIMIT",
	"UNION", "EXCEPT", "INTERSECT", "MINUS", "FOR", "WINDOW", "PROCEDURE", "INTO", "USE", "FORCE", "IGNORE", "LOCK", "OFFSET", "FETCH", "SET", "PARTITION", "RETURNING"}

// hideColumns finds the queries and makes the edits.
func (s *draft) hideColumns() {
	if !s.aboutColumns() || !s.catalog.Usable() || s.text.Is(0, "EXPLAIN", "DESCRIBE", "DESC") && !s.text.Is(1, "ANALYZE") { // a plan has no columns, but shows conditions
		return
	}
	byQuery := make(map[int]string) // the token SELECT, and the condition
	var queries []int
	for i := 1; i < len(s.text.Tokens); i++ {
		schema, name, next, ok := s.text.Qualified(i)
		if !ok || !s.text.Is(i-1, "FROM", "JOIN", "STRAIGHT_JOIN", ",") || !strings.EqualFold(name, "columns") ||
			!strings.EqualFold(schema, "information_schema") && (schema != "" || !strings.EqualFold(s.session.Database, "information_schema")) {
			continue
		}
		condition := s.columnsRef(next) + ".COLUMN_NAME NOT IN ('" + columnRowID + "','" + columnWriters + "')"
		first := queryOf(s.text, i)
		if first < 0 || s.hideInJoin(i, next, first, condition) {
			continue
		}
		if byQuery[first] == "" {
			queries = append(queries, first)
			byQuery[first] = condition
		} else {
			byQuery[first] += " AND " + condition
		}
	}
	for _, first := range queries {
		s.veils = append(s.veils, s.narrowed(first, byQuery[first], byQuery[first])...)
	}
}

// columnsRef is how the query names the table that ends before token next.
func (s *draft) columnsRef(next int) string {
	t := s.text
	if t.Is(next, "AS") {
		next++
	} else if next >= len(t.Tokens) || t.Is(next, afterTable...) {
		return t.At(next - 1)
	}
	if _, ok := t.Name(next); ok {
		return t.At(next)
	}
	return t.At(next - 1)
}

// queryOf gives the token SELECT of the query in whose FROM clause, outside of parentheses, token i stands; -1 if there is none.
func queryOf(t *statement.Text, i int) int {
	depth := t.Tokens[i].Depth
	for j := i - 1; j >= 0 && t.Tokens[j].Depth >= depth; j-- {
		if t.Tokens[j].Depth == depth && t.Is(j, "SELECT") {
			return j
		}
	}
	return -1
}

// hideInJoin puts the condition into ON where the table from token i to next is the one that LEFT JOIN adds. It reports whether the query
// needs no condition in WHERE, also where it can have none.
func (s *draft) hideInJoin(i, next, first int, condition string) bool {
	t := s.text
	depth := t.Tokens[first].Depth
	end := clausesEnd(t, first, "WHERE")
	outer := func(j int) bool { return t.Tokens[j].Depth == depth && !t.Is(j+1, "(") }
	for j := t.Find(first, depth, "FROM"); j >= 0 && j < end; j++ {
		if outer(j) && t.Is(j, "RIGHT", "NATURAL") {
			return true
		}
	}
	if !t.Is(i-1, "JOIN") || !t.Is(i-2, "LEFT") && !(t.Is(i-2, "OUTER") && t.Is(i-3, "LEFT")) {
		return false
	}
	on := t.Find(next, depth, "ON")
	if on < 0 || on > next+2 {
		return true
	}
	last := on + 1
	for last < end && !(outer(last) && t.Is(last, ",", "JOIN", "LEFT", "INNER", "CROSS", "STRAIGHT_JOIN")) {
		last++
	}
	if last > on+1 {
		s.veils = append(s.veils, around(t, on+1, last, condition, condition)...)
	}
	return true
}

// around makes the tokens from first to end, which are a condition, a part of a longer one.
func around(t *statement.Text, first, end int, add, check string) []edit {
	return []edit{{at: t.Tokens[first].Start, add: "(", check: "("}, {at: t.Tokens[end-1].End, add: ") AND " + add + " ", check: ") AND " + check + " "}}
}

// clausesEnd gives the token at which the FROM clause and the condition of the query end whose SELECT is token first; further words end
// them too.
func clausesEnd(t *statement.Text, first int, further ...string) int {
	depth := t.Tokens[first].Depth
	ends := append([]string{"GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "PROCEDURE", "FOR", "LOCK", "INTO", "UNION", "EXCEPT", "INTERSECT", "MINUS"}, further...)
	rest := slices.IndexFunc(t.Tokens[first+1:], func(tok statement.Token) bool { return tok.Depth < depth })
	end := len(t.Tokens)
	if rest >= 0 {
		end = first + 1 + rest
	}
	for j := first + 1; j < end; j++ {
		if t.Tokens[j].Depth == depth && t.Is(j, ends...) {
			return j
		}
	}
	return end
}

// narrowed adds a last part to the condition of the query whose SELECT is token first; nil if WHERE is not understood.
func (s *draft) narrowed(first int, add, check string) []edit {
	t := s.text
	end := clausesEnd(t, first)
	where := t.Find(first, t.Tokens[first].Depth, "WHERE")
	switch {
	case where < 0 || where > end:
		return []edit{{at: t.Tokens[end-1].End, add: " WHERE " + add + " ", check: " WHERE " + check + " "}}
	case where+1 >= end:
		return nil
	}
	return around(t, where+1, end, add, check)
}

package reduce

import (
	"strings"
)

// span is a piece of a text.
type span struct{ from, to int }

// element is an element of a list in parentheses.
type element struct {
	span
	first string // its first word, without quotes, in lower case
}

// parenthesised gives the elements of the list that begins with the opening parenthesis at token i, and the token behind it.
func parenthesised(sql string, list []token, i int) (elements []element, next int) {
	depth, from := 0, i+1
	for n := i; n < len(list); n++ {
		switch sql[list[n].from:list[n].to] {
		case "(":
			depth++
		case ")":
			depth--
		}
		if text := sql[list[n].from:list[n].to]; depth == 0 && n > i || depth == 1 && text == "," {
			if from < n {
				elements = append(elements, element{span{list[from].from, list[n-1].to}, name(sql[list[from].from:list[from].to])})
			}
			from = n + 1
			if depth == 0 {
				return elements, n + 1
			}
		}
	}
	return nil, len(list)
}

// name is a name without quotes.
func name(word string) string { return strings.ToLower(strings.Trim(word, "`\"")) }

// valueRows gives the places of the rows of INSERT ... VALUES (...), (...).
func valueRows(sql string) (rows []span) {
	list := tokens(sql)
	if len(list) == 0 || !strings.EqualFold(sql[list[0].from:list[0].to], "INSERT") && !strings.EqualFold(sql[list[0].from:list[0].to], "REPLACE") {
		return nil
	}
	for i := range list {
		if !strings.EqualFold(sql[list[i].from:list[i].to], "VALUES") {
			continue
		}
		for n := i + 1; n < len(list) && sql[list[n].from:list[n].to] == "("; {
			_, next := parenthesised(sql, list, n)
			rows = append(rows, span{list[n].from, list[next-1].to})
			if next >= len(list) || sql[list[next].from:list[next].to] != "," {
				return rows
			}
			n = next + 1
		}
	}
	return rows
}

// withoutRows leaves rows out; a statement without rows is left as it is.
func withoutRows(sql string, gone func(int) bool) string {
	rows := valueRows(sql)
	var kept []string
	for _, row := range left(rows, gone) {
		kept = append(kept, sql[row.from:row.to])
	}
	if len(kept) == 0 {
		return sql
	}
	return sql[:rows[0].from] + strings.Join(kept, ", ") + sql[rows[len(rows)-1].to:]
}

// createdColumns gives the table and the columns of a CREATE TABLE; nothing for other statements.
func createdColumns(sql string) (table string, columns []string) {
	list := tokens(sql)
	table, open := created(sql, list)
	if open < 0 {
		return "", nil
	}
	elements, _ := parenthesised(sql, list, open)
	for _, e := range elements {
		if !isConstraint(e.first) {
			columns = append(columns, e.first)
		}
	}
	return table, columns
}

// created finds the table of a CREATE TABLE and the token that opens its columns; -1 if it is none.
func created(sql string, list []token) (table string, open int) {
	if len(list) < 3 || !strings.EqualFold(sql[list[0].from:list[0].to], "CREATE") {
		return "", -1
	}
	for i := 1; i < len(list); i++ {
		if !strings.EqualFold(sql[list[i].from:list[i].to], "TABLE") {
			continue
		}
		for n := i + 1; n < len(list); n++ {
			if sql[list[n].from:list[n].to] == "(" {
				return name(sql[list[n-1].from:list[n-1].to]), n
			}
		}
	}
	return "", -1
}

func isConstraint(word string) bool {
	switch word {
	case "primary", "unique", "key", "index", "constraint", "foreign", "check", "fulltext", "spatial", "exclude", "like":
		return true
	}
	return false
}

// withoutColumn leaves a column out of a CREATE TABLE of the table, or of an INSERT into it, where it is the n-th if the INSERT
// names none.
func withoutColumn(sql, table, column string, n int) string {
	list := tokens(sql)
	if len(list) == 0 {
		return sql
	}
	if t, open := created(sql, list); open >= 0 && t == table {
		elements, _ := parenthesised(sql, list, open)
		for i, e := range elements {
			if e.first == column {
				return cut(sql, elements, i)
			}
		}
		return sql
	}
	verb := strings.ToUpper(sql[list[0].from:list[0].to])
	if verb != "INSERT" && verb != "REPLACE" {
		return sql
	}
	at := 1
	for at < len(list) && name(sql[list[at].from:list[at].to]) != table {
		at++
	}
	if at+1 >= len(list) {
		return sql
	}
	place := n
	var names []element
	if sql[list[at+1].from:list[at+1].to] == "(" {
		names, _ = parenthesised(sql, list, at+1)
		place = -1
		for i, e := range names {
			if e.first == column {
				place = i
			}
		}
	}
	if place < 0 {
		return sql
	}
	rows := valueRows(sql)
	for i := len(rows) - 1; i >= 0; i-- { // from the end: places before stay
		for k := range list {
			if list[k].from != rows[i].from {
				continue
			}
			if values, _ := parenthesised(sql, list, k); place < len(values) {
				sql = cut(sql, values, place)
			}
			break
		}
	}
	if names != nil && len(rows) > 0 {
		sql = cut(sql, names, place)
	}
	return sql
}

// cut takes an element and a comma beside it away.
func cut(sql string, elements []element, i int) string {
	switch {
	case len(elements) == 1:
		return sql
	case i+1 < len(elements):
		return sql[:elements[i].from] + sql[elements[i+1].from:]
	}
	return sql[:elements[i-1].to] + sql[elements[i].to:]
}

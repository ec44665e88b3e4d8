package reduce

import (
	"slices"
	"strings"
)

// clauses are the words that begin a part of a statement which may be there or not. A part reaches to the next such word at the
// same depth of parentheses, or to the end.
var clauses = []string{
	"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "LOCK", "JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "FULL", "NATURAL", "ON", "USING", "UNION",
	"EXCEPT", "INTERSECT", "WINDOW", "RETURNING", "PARTITION", "ENGINE", "ROW_FORMAT", "COLLATE", "CHARACTER", "CHARSET", "DEFAULT", "NOT", "CHECK", "UNIQUE", "PRIMARY", "REFERENCES",
	"GENERATED", "AUTO_INCREMENT", "COMMENT", "DISTINCT", "IGNORE", "WITH", "CONSTRAINT", "ISOLATION", "READ", "NOWAIT", "SKIP", "VIRTUAL", "STORED", "UNSIGNED", "ZEROFILL",
	"SET", "VALUES", "FROM", "SELECT", "AS", "KEY", "DEFERRABLE", "OVER", "WHEN", "ELSE", "END", "ASC", "DESC",
}

// needed are clause words that only end other parts: a statement without them is another statement.
var needed = []string{"SET", "VALUES", "FROM", "SELECT", "AS", "KEY", "END", "WHEN"}

// simpler gives texts that are a little simpler than a statement, larger cuts first: without a clause, an element of a list, an
// operand of AND or OR, with the inside of parentheses in their place, with a constant in place of an expression. Many of them
// are no SQL, or say something else: who asks tries them.
func simpler(sql string) (out []string) {
	list := tokens(sql)
	add := func(from, to int, by string) {
		text := join(join(strings.TrimRight(sql[:from], " "), strings.TrimSpace(by)), strings.TrimLeft(sql[to:], " "))
		if text != sql && text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	upper := make([]string, len(list))
	for i, t := range list {
		upper[i] = strings.ToUpper(sql[t.from:t.to])
	}
	match := matching(upper)
	// behind is the index of the first token behind i at its depth for which stop holds, or where its depth ends.
	behind := func(i int, stop func(string) bool) int {
		for n := i + 1; n < len(list); n++ {
			switch {
			case upper[n] == "(" && match[n] > 0:
				if stop("(") {
					return n
				}
				n = match[n]
			case upper[n] == ")", stop(upper[n]):
				return n
			}
		}
		return len(list)
	}
	at := func(i int) int {
		if i < len(list) {
			return list[i].from
		}
		return len(sql)
	}
	for i := 1; i < len(list); i++ {
		w := upper[i]
		if slices.Contains(clauses, w) && !slices.Contains(needed, w) {
			stop := behind(i, func(s string) bool { return slices.Contains(clauses, s) || s == "," })
			add(list[i].from, at(stop), "")
			if far := behind(i, func(s string) bool { return s == "," }); far != stop {
				add(list[i].from, at(far), "")
			}
			if one := i + 1; one < stop {
				add(list[i].from, at(one), "") // a single word: NOT, DISTINCT, IGNORE
			}
		}
	}
	for i := range list {
		switch upper[i] {
		case ",": // the element behind it, and the one before it
			add(list[i].from, at(behind(i, func(s string) bool { return s == "," || slices.Contains([]string{"FROM", "WHERE", "ON"}, s) })), "")
			if from, ok := before(upper, i, ",", "SELECT", "VALUES", "SET", "BY", "DISTINCT", "FROM"); ok {
				add(list[from].from, list[i].to, "")
			}
		case "AND", "OR", "XOR":
			stop := behind(i, func(s string) bool {
				return s == "," || s == "AND" || s == "OR" || s == "XOR" || slices.Contains(clauses, s) && s != "NOT"
			})
			add(list[i].from, at(stop), "")
			if from, ok := before(upper, i, "AND", "OR", "WHERE", "ON", "HAVING", "WHEN"); ok {
				add(list[from].from, list[i].to, "")
			}
		case "+", "-", "*", "/", "%", "||", "&", "|", "=", "<", ">", "<=", ">=", "<>", "!=", "<=>":
			if i > 0 && i+1 < len(list) {
				right := i + 2
				if upper[i+1] == "(" && match[i+1] > 0 {
					right = match[i+1] + 1
				}
				add(list[i].from, at(right), "")
			}
		case "(":
			if match[i] == 0 {
				continue
			}
			inside := sql[list[i].to:list[match[i]].from]
			from := i
			if i > 0 && word(sql[list[i-1].from]) && !slices.Contains(clauses, upper[i-1]) && !slices.Contains([]string{"AND", "OR", "IN", "ANY", "ALL", "EXISTS"}, upper[i-1]) {
				from = i - 1 // a function: its first argument stands for it
				first := sql[list[i].to:at(behind(i, func(s string) bool { return s == "," || s == "AS" || s == "FROM" }))]
				add(list[from].from, list[match[i]].to, first)
			}
			add(list[from].from, list[match[i]].to, inside)
			add(list[from].from, list[match[i]].to, "1")
			add(list[from].from, list[match[i]].to, "NULL")
		}
	}
	return out
}

// join puts a blank between two pieces where one is needed to read them.
func join(a, b string) string {
	if a == "" || b == "" || strings.HasSuffix(a, "(") || strings.IndexByte(",);", b[0]) >= 0 {
		return a + b
	}
	return a + " " + b
}

// matching gives for each "(" the place of its ")"; 0 if it has none.
func matching(upper []string) []int {
	match := make([]int, len(upper))
	var open []int
	for i, w := range upper {
		switch {
		case w == "(":
			open = append(open, i)
		case w == ")" && len(open) > 0:
			match[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	return match
}

// before is where the part in front of a comma, AND or OR begins: behind the word that stops, at the same depth. It is false if
// nothing is there.
func before(upper []string, at int, stop ...string) (int, bool) {
	depth := 0
	for i := at - 1; i >= 0; i-- {
		switch {
		case upper[i] == ")":
			depth++
		case upper[i] == "(" && depth > 0:
			depth--
		case depth > 0:
		case upper[i] == "(" || slices.Contains(stop, upper[i]):
			return i + 1, i+1 < at
		}
	}
	return 0, false
}

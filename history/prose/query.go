package prose

import "strings"

// longList is how many characters a select list may have before a message leaves it out: what an application asks for matters less than of which rows.
const longList = 30

// Query is Line's text of a statement, in which the select lists that ORMs write, of all columns, are three dots: SELECT ... FROM stock WHERE id = 1. A statement
// that fits into a line of a terminal stays as it is.
func Query(sql string, most int) string {
	const fits = 80
	sql = Line(sql, 0)
	if len(sql) <= fits {
		return Line(sql, most)
	}
	var b strings.Builder
	var open []int // where the select list of each SELECT around begins in b; -1: it is over
	depth := []int{}
	at := 0
	for i := 0; i < len(sql); i++ {
		switch c := sql[i]; {
		case c == '\'' || c == '"' || c == '`':
			if n := strings.IndexByte(sql[i+1:], c); n >= 0 {
				i += n + 1
			}
		case c == '(':
			at++
		case c == ')':
			if at--; len(depth) > 0 && depth[len(depth)-1] > at {
				open, depth = open[:len(open)-1], depth[:len(depth)-1]
			}
		case keyword(sql, i, "select"):
			b.WriteString(sql[:i+len("select")])
			sql, i = sql[i+len("select"):], -1
			open, depth = append(open, b.Len()), append(depth, at)
		case keyword(sql, i, "from") && len(open) > 0 && depth[len(depth)-1] == at && open[len(open)-1] >= 0:
			from := open[len(open)-1]
			open[len(open)-1] = -1
			if list := b.String()[from:] + sql[:i]; len(list) > longList {
				before := b.String()[:from]
				b.Reset()
				b.WriteString(before + " " + dots + " ")
				sql, i = sql[i:], len("from")-1
			}
		}
	}
	return Line(b.String()+sql, most)
}

// keyword reports whether a word stands at a place, whatever its case.
func keyword(sql string, i int, word string) bool {
	letter := func(c byte) bool {
		return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '.' || c >= '0' && c <= '9'
	}
	return len(sql)-i >= len(word) && strings.EqualFold(sql[i:i+len(word)], word) && (i == 0 || !letter(sql[i-1])) && (len(sql)-i == len(word) || !letter(sql[i+len(word)]))
}

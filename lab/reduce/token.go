package reduce

import "strings"

// token is a piece of a statement: a word, a number, a string, a sign. Blanks and comments are between tokens.
type token struct{ from, to int }

// tokens takes a statement apart as both dialects write them. It only has to find where things end: what it misreads makes
// candidates that the server refuses.
func tokens(sql string) (list []token) {
	for i := 0; i < len(sql); {
		from := i
		switch c := sql[i]; {
		case strings.IndexByte(" \t\r\n\f", c) >= 0:
			i++
			continue
		case strings.HasPrefix(sql[i:], "--"), c == '#' && (i == 0 || sql[i-1] <= ' '):
			i = end(sql, i, "\n")
			continue
		case strings.HasPrefix(sql[i:], "/*") && !strings.HasPrefix(sql[i:], "/*!"):
			i = end(sql, i+2, "*/")
			continue
		case c == '\'' || c == '"' || c == '`':
			i = quoted(sql, i)
		case c == '$' && tag(sql[i:]) != "":
			t := tag(sql[i:])
			i = end(sql, i+len(t), t)
		case word(c):
			for i < len(sql) && (word(sql[i]) || sql[i] == '.' && i+1 < len(sql) && word(sql[i+1]) && digit(c)) {
				i++
			}
		case strings.IndexByte("<>=!|&:*-@", c) >= 0:
			for i < len(sql) && strings.IndexByte("<>=!|&:@", sql[i]) >= 0 {
				i++
			}
			if i == from {
				i++
			}
		default:
			i++
		}
		list = append(list, token{from, i})
	}
	return list
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func word(c byte) bool {
	return c == '_' || digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// end is the place behind the next mark from i on, or the text's end.
func end(sql string, i int, mark string) int {
	if n := strings.Index(sql[i:], mark); n >= 0 {
		return i + n + len(mark)
	}
	return len(sql)
}

// quoted is the place behind a quoted text that begins at i. A backslash hides the next character: where it does not
// (PostgreSQL), at worst a candidate is lost.
func quoted(sql string, i int) int {
	q := sql[i]
	for i++; i < len(sql); i++ {
		switch {
		case sql[i] == '\\' && q != '`':
			i++
		case sql[i] == q && i+1 < len(sql) && sql[i+1] == q:
			i++
		case sql[i] == q:
			return i + 1
		}
	}
	return len(sql)
}

// tag is the opening tag of a dollar-quoted text (PostgreSQL); empty if there is none.
func tag(sql string) string {
	n := strings.IndexByte(sql[1:], '$')
	if n < 0 {
		return ""
	}
	for i := range n {
		if !word(sql[1+i]) || i == 0 && digit(sql[1]) {
			return ""
		}
	}
	return sql[:n+2]
}

package statement

import "strings"

// Shape is a statement's text without its values: literals and parameters become ?, lists of them collapse, comments
// go, white space becomes one blank and everything outside quoted identifiers is lower case. It is meant for
// fingerprints, so it need not be valid SQL, and it never fails.
func Shape(sql string) string {
	w := shaper{b: make([]byte, 0, len(sql))}
	for i := 0; i < len(sql); {
		i = w.piece(sql, i)
	}
	shape := strings.TrimRight(string(w.b), "; ")
	for strings.Contains(shape, "(?),(?)") {
		shape = strings.ReplaceAll(shape, "(?),(?)", "(?)")
	}
	return shape
}

// shaper writes a shape.
type shaper struct {
	b     []byte
	blank bool // white space was passed and not written
}

// piece takes the piece of sql that begins at i, and returns where the next one begins.
func (w *shaper) piece(sql string, i int) int {
	c := sql[i]
	switch {
	case c <= ' ':
		w.blank = true
		return i + 1
	case c == '-' && strings.HasPrefix(sql[i:], "--"), c == '#' && !strings.HasPrefix(sql[i:], "#>") && !strings.HasPrefix(sql[i:], "#-"):
		w.blank = true
		return end(sql, i, "\n")
	case c == '/' && strings.HasPrefix(sql[i:], "/*"):
		w.blank = true
		return end(sql, i+2, "*/")
	case c == '\'':
		w.value()
		return quoted(sql, i)
	case c == '"' || c == '`':
		j := quoted(sql, i)
		w.put(sql[i:j])
		return j
	case c == '$' && i+1 < len(sql) && isDigit(sql[i+1]):
		for i++; i < len(sql) && isDigit(sql[i]); i++ {
		}
		w.value()
		return i
	case c == '$':
		j, ok := dollarQuoted(sql, i)
		if ok {
			w.value()
		} else {
			w.put(sql[i:j])
		}
		return j
	case isDigit(c) || c == '.' && i+1 < len(sql) && isDigit(sql[i+1]):
		w.value()
		return number(sql, i)
	case c == '?':
		w.value()
		return i + 1
	case isWord(c):
		j := i
		for j < len(sql) && (isWord(sql[j]) || isDigit(sql[j])) {
			j++
		}
		if j < len(sql) && sql[j] == '\'' && j-i == 1 && strings.ContainsRune("eEbBxXnN", rune(c)) {
			w.value() // E'..', X'..', N'..'
			return quoted(sql, j)
		}
		w.put(strings.ToLower(sql[i:j]))
		return j
	}
	w.put(sql[i : i+1])
	return i + 1
}

func (w *shaper) put(s string) {
	if w.blank && len(w.b) > 0 && glue(w.b[len(w.b)-1]) && glue(s[0]) {
		w.b = append(w.b, ' ')
	}
	w.blank = false
	w.b = append(w.b, s...)
}

// value writes ? for a value, and folds "?,?" to "?", so that the length of a list does not matter. A sign in front of a
// number is part of it.
func (w *shaper) value() {
	n := len(w.b)
	if n >= 2 && (w.b[n-1] == '-' || w.b[n-1] == '+') && strings.IndexByte("=,(<>", w.b[n-2]) >= 0 {
		n--
		w.b = w.b[:n]
	}
	if n >= 2 && w.b[n-1] == ',' && w.b[n-2] == '?' {
		w.b, w.blank = w.b[:n-1], false
		return
	}
	w.put("?")
}

// glue tells bytes between which a blank is kept: operators and brackets need none.
func glue(c byte) bool {
	return isWord(c) || isDigit(c) || c == '?' || c == '"' || c == '`' || c == '*' || c == ')' || c == '('
}

// end is the index after the next mark at or after i, or the end of sql.
func end(sql string, i int, mark string) int {
	if i > len(sql) {
		return len(sql)
	}
	if j := strings.Index(sql[i:], mark); j >= 0 {
		return i + j + len(mark)
	}
	return len(sql)
}

// quoted is the index after the quoted piece that starts at i. A doubled quote and, except in identifiers, a backslash
// keep it open: PostgreSQL's standard strings do not know the backslash, but a shape may be a little wrong.
func quoted(sql string, i int) int {
	q := sql[i]
	for j := i + 1; j < len(sql); j++ {
		switch {
		case sql[j] == '\\' && q == '\'':
			j++
		case sql[j] == q && j+1 < len(sql) && sql[j+1] == q:
			j++
		case sql[j] == q:
			return j + 1
		}
	}
	return len(sql)
}

// dollarQuoted is the index after PostgreSQL's $tag$...$tag$ that starts at i.
func dollarQuoted(sql string, i int) (int, bool) {
	j := i + 1
	for j < len(sql) && (isWord(sql[j]) || isDigit(sql[j])) {
		j++
	}
	if j >= len(sql) || sql[j] != '$' {
		return i + 1, false
	}
	tag := sql[i : j+1]
	return end(sql, j+1, tag), true
}

// number is the index after the number that starts at i.
func number(sql string, i int) int {
	for i < len(sql) && (isDigit(sql[i]) || isWord(sql[i]) || sql[i] == '.' ||
		(sql[i] == '+' || sql[i] == '-') && (sql[i-1] == 'e' || sql[i-1] == 'E')) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '@' || c >= 0x80
}

package statement

import (
	"slices"
	"strings"

	"wirecheck/trace/lex"
)

// Shape is a statement's text without its values: literals and parameters become ?, lists of them collapse, comments
// go, white space becomes one blank and everything outside quoted identifiers is lower case. It is meant for
// fingerprints, so it need not be valid SQL, and it never fails.
func Shape(sql string, d lex.Dialect) string {
	w := shaper{b: make([]byte, 0, len(sql))}
	for t := range lex.Tokens(sql, d) {
		w.token(t)
	}
	return rows(strings.TrimRight(string(w.b), "; "))
}

// Masked is a statement's text with ? in the place of each literal and without comments, for a reader who may not see them. ok is false if
// settings of the session decide where a literal ends.
func Masked(sql string, d lex.Dialect) (text string, ok bool) {
	var b strings.Builder
	for t := range lex.Tokens(sql, d) {
		switch t.Kind {
		case lex.Comment:
			b.WriteByte(' ')
		case lex.String, lex.Number:
			b.WriteByte('?')
		default:
			b.WriteString(t.Text)
		}
	}
	return b.String(), !strings.Contains(sql, `\`)
}

// shaper writes a shape.
type shaper struct {
	b     []byte
	blank bool   // white space was passed and not written
	last  string // the last word, if nothing stands behind it
}

func (w *shaper) token(t lex.Token) {
	last := w.last
	w.last = ""
	switch t.Kind {
	case lex.Space, lex.Comment:
		w.blank, w.last = true, last
	case lex.String, lex.Number, lex.Placeholder:
		w.value()
	case lex.Word:
		word := strings.ToLower(t.Text)
		if (word == "null" || word == "true" || word == "false") && last != "is" && last != "not" && !strings.HasSuffix(string(w.b), ".") {
			w.value()
			return
		}
		w.last = word
		w.put(word)
	default:
		w.put(t.Text)
	}
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
	if n >= 2 && (w.b[n-1] == '-' || w.b[n-1] == '+') && strings.IndexByte("=,(<>+-*/%", w.b[n-2]) >= 0 {
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
	return isWord(c) || c >= '0' && c <= '9' || c == '?' || c == '"' || c == '`' || c == '*' || c == ')' || c == '('
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '@' || c >= 0x80
}

// rows folds lists of rows, "(?),(?)", "row(?),row(?)" or "(default,?),(?)": each form of a row stays once, so that neither the number of rows
// matters nor their order.
func rows(shape string) string {
	if !strings.Contains(shape, "),(") && !strings.Contains(shape, "),row(") {
		return shape
	}
	closing := brackets(shape)
	var out strings.Builder
	for i := 0; i < len(shape); {
		list, end := rowList(shape, i, closing)
		if len(list) < 2 {
			out.WriteByte(shape[i])
			i++
			continue
		}
		slices.Sort(list)
		out.WriteString(strings.Join(slices.Compact(list), ","))
		i = end
	}
	return out.String()
}

// rowList gives the rows of the list that begins at i, and where it ends. No row begins behind a name: that is a function's.
func rowList(shape string, i int, closing map[int]int) (list []string, end int) {
	const row = "row"
	if i > 0 && isWord(shape[i-1]) && !strings.HasSuffix(shape[:i], "values") {
		return nil, i
	}
	for from := i; ; from++ {
		open := from
		if strings.HasPrefix(shape[from:], row+"(") {
			open += len(row)
		}
		last, ok := closing[open]
		if !ok {
			return list, end
		}
		end = last + 1
		list = append(list, shape[from:end])
		if !strings.HasPrefix(shape[end:], ",") {
			return list, end
		}
		from = end
	}
}

// brackets gives the place of the closing bracket for that of each opening one, but for those in quoted names.
func brackets(shape string) map[int]int {
	closing := map[int]int{}
	var open []int
	for i := 0; i < len(shape); i++ {
		switch shape[i] {
		case '(':
			open = append(open, i)
		case ')':
			if n := len(open); n > 0 {
				closing[open[n-1]] = i
				open = open[:n-1]
			}
		case '"', '`':
			n, _ := lex.Quoted(shape[i:], 0, false)
			i += n - 1
		}
	}
	return closing
}

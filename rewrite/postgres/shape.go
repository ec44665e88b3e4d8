package postgres

import (
	"sort"
	"strings"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// Clients of the simple protocol write values into the text, so that hardly any text comes twice. Texts that differ in
// the values of their literals only have the same shape, and nothing in a plan depends on these values, but for
// settings and for the types of numbers. So a plan is made once per shape and its places are moved.

// shape replaces the numbers and plain quoted literals of a text by marks. ok is false if there are none, or if the
// text has something that is left to the real parser (other kinds of quotes, numbers that run into words).
func shape(sql string) (text string, lits []rewrite.Literal, ok bool) {
	if strings.IndexByte(sql, 0) >= 0 {
		return "", nil, false
	}
	out := make([]byte, 0, len(sql))
	n := len(sql)
	for i := 0; i < n; {
		c := sql[i]
		start := i
		switch {
		case pgsyntax.BeginsWord(c):
			for i < n && (pgsyntax.BeginsWord(sql[i]) || digit(sql[i]) || sql[i] == '$') {
				i++
			}
			if i < n && sql[i] == '\'' || i+1 < n && sql[i] == '&' && (sql[i+1] == '\'' || sql[i+1] == '"') {
				return "", nil, false // E'', B'', U&'' and the like
			}
		case digit(c) || c == '.' && i+1 < n && digit(sql[i+1]):
			for i < n && (digit(sql[i]) || sql[i] == '.') {
				i++
			}
			if i < n && (pgsyntax.BeginsWord(sql[i]) || sql[i] == '$') {
				return "", nil, false // 1e5, 0x1F, junk
			}
			if dots := strings.Count(sql[start:i], "."); dots > 1 {
				return "", nil, false
			}
			lits = append(lits, rewrite.Literal{At: start, End: i})
			mark := byte(0) // no text has a zero byte
			if i-start > 9 || strings.IndexByte(sql[start:i], '.') >= 0 {
				mark = 2 // it may be another type than integer
			}
			out = append(out, mark)
			continue
		case c == '\'':
			for i++; ; i++ {
				if i >= n {
					return "", nil, false
				}
				if sql[i] == '\'' {
					if i++; i >= n || sql[i] != '\'' {
						break
					}
				}
			}
			lits = append(lits, rewrite.Literal{At: start, End: i})
			out = append(out, 1)
			continue
		case c == '"':
			j := strings.IndexByte(sql[i+1:], '"')
			if j < 0 {
				return "", nil, false
			}
			i += j + 2
		case c == '$':
			for i++; i < n && digit(sql[i]); i++ {
			}
			if i == start+1 || i < n && (pgsyntax.BeginsWord(sql[i]) || sql[i] == '$') {
				return "", nil, false // a dollar quote
			}
		case c == '-' && i+1 < n && sql[i+1] == '-':
			for i < n && sql[i] != '\n' && sql[i] != '\r' {
				i++
			}
		case c == '/' && i+1 < n && sql[i+1] == '*':
			for depth := 0; ; {
				switch {
				case i+1 >= n:
					return "", nil, false
				case sql[i] == '/' && sql[i+1] == '*':
					depth, i = depth+1, i+2
					continue
				case sql[i] == '*' && sql[i+1] == '/':
					depth, i = depth-1, i+2
				default:
					i++
				}
				if depth == 0 {
					break
				}
			}
		case c <= 2:
			return "", nil, false
		default:
			i++
		}
		out = append(out, sql[start:i]...)
	}
	return string(out), lits, len(lits) > 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// template is a script of which the places are known well enough to move them.
type template struct {
	script *rewrite.Script
	lits   []rewrite.Literal
	spans  []rewrite.Literal // of each plan's text
	adds   []string          // of each edit, copies of the client's text not resolved
}

// templated reports whether the plans of a script hold for all texts of its shape.
func templated(sc *rewrite.Script, sql string) bool {
	if sc.Unparsed || len(sc.Plans) == 0 || strings.Contains(strings.ToLower(sql), "set_config") {
		return false
	}
	for _, p := range sc.Plans {
		if p.Verb == "set" {
			return false
		}
	}
	return true
}

// fill makes the script of a text of the template's shape.
func (t *template) fill(sql string, lits []rewrite.Literal) *rewrite.Script {
	sc := &rewrite.Script{SQL: sql, Own: true, Plans: make([]*rewrite.Plan, len(t.script.Plans)), Uses: t.script.Uses, Missing: t.script.Missing}
	plans := make([]rewrite.Plan, len(t.script.Plans))
	move := rewrite.Shift{From: t.lits, To: lits}.Place
	var edits []rewrite.Edit
	if old := t.script.Plans[0].Edits; len(old) > 0 {
		edits = make([]rewrite.Edit, len(old))
		for i, e := range old {
			at := move(e.At)
			edits[i] = rewrite.Edit{At: at, Cut: move(e.At+e.Cut) - at, Add: resolve(t.adds[i], sql, move)}
		}
		sc.SQL = rewrite.Apply(sql, edits)
	}
	for i, p := range t.script.Plans {
		plans[i] = *p
		from := move(t.spans[i].At)
		plans[i].Text = sql[from:move(t.spans[i].End)]
		plans[i].Edits = edits
		plans[i].Asks = t.asks(p.Asks, sql, lits)
		sc.Plans[i] = &plans[i]
	}
	return sc
}

// asks gives the predicate reads of a text of the template's shape.
func (t *template) asks(list []rewrite.Ask, sql string, lits []rewrite.Literal) []rewrite.Ask {
	if len(list) == 0 {
		return nil
	}
	out := make([]rewrite.Ask, len(list))
	for i := range list {
		out[i] = list[i].Shifted(func(at int) (int, string, bool) {
			k := sort.Search(len(t.lits), func(i int) bool { return t.lits[i].At >= at })
			if k == len(t.lits) || t.lits[k].At != at {
				return 0, "", false
			}
			return lits[k].At, sql[lits[k].At:lits[k].End], true
		})
	}
	return out
}

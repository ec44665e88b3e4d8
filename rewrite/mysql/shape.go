package mysql

import (
	"slices"
	"strings"
	"unicode/utf8"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// Clients of the text protocol write values into the text, so that hardly any text comes twice. Texts that differ only in
// the values of plain literals have the same shape, and nothing in a plan but its places depends on these values. So a
// plan is made once per shape, and its places are moved.
//
// Whether a literal is plain is decided by what stands around it, with a list of what is known to be harmless. All
// others are part of the shape as they stand: literals within the parentheses of a function or a type (lengths and
// precisions are checked by the parser), behind COLLATE, ESCAPE, INTERVAL, OUTFILE, an introducer or another string,
// and everything that is no literal to the lexer, comments and hints included.

// The marks of plain literals in a shape. No shape has them otherwise.
const (
	markInteger = 1
	markDecimal = 2
	markString  = 3
)

// mold is the shape of one text.
type mold struct {
	shape     string
	lits      []rewrite.Literal
	from, end int // the place of the statement, without comments around it and a semicolon
}

// shape replaces the plain literals of a text by marks. ok is false if there are none, or if the text is not one
// statement of those whose plans may be shared.
func shape(sql string, mode mysqlsyntax.Mode) (m mold, ok bool) {
	if mode&mysqlsyntax.Foreign != 0 || !shareable(sql) || strings.ContainsAny(sql, "\x00\x01\x02\x03") {
		return m, false
	}
	t, err := mysqlsyntax.Lex(sql, mode)
	if err != nil || len(t.Tokens) == 0 {
		return m, false
	}
	if last := len(t.Tokens) - 1; sql[t.Tokens[last].Start] == ';' {
		t.Tokens = t.Tokens[:last]
	}
	tokens := t.Tokens
	s := shaper{text: *t, out: make([]byte, 0, len(sql))}
	for i := range tokens {
		if tokens[i].Executable || sql[tokens[i].Start] == ';' {
			return m, false
		}
		s.token(i)
	}
	if len(s.lits) == 0 {
		return m, false
	}
	return mold{string(append(s.out, sql[s.copied:]...)), s.lits, tokens[0].Start, tokens[len(tokens)-1].End}, true
}

// shareable reports whether a text begins like a statement that reads or writes rows. Only their plans are shared: SET
// and its like mean something else with another value.
func shareable(sql string) bool {
	sql = strings.TrimLeft(sql, " \t\r\n(")
	return len(sql) > 6 && slices.ContainsFunc([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "REPLAC"},
		func(verb string) bool { return strings.EqualFold(sql[:6], verb) })
}

type shaper struct {
	text   statement.Text
	out    []byte
	copied int // how much of the text is in out
	lits   []rewrite.Literal
	parens []bool // of the parentheses that are open: whether literals within may be plain
	by     bool   // behind ORDER BY or GROUP BY, where a number is the place of a column
}

func (s *shaper) token(i int) {
	tok := &s.text.Tokens[i]
	switch {
	case s.text.Is(i, "BY"):
		s.by = true
	case s.by && s.text.Is(i, "LIMIT", "HAVING", "SELECT", "WHERE", "ON"):
		s.by = false
	}
	switch tok.Kind {
	case statement.TokenSymbol:
		switch s.text.SQL[tok.Start] {
		case '(':
			s.parens = append(s.parens, s.within() && s.opens(i))
		case ')':
			if n := len(s.parens); n > 0 {
				s.parens = s.parens[:n-1]
			}
		}
	case statement.TokenNumber, statement.TokenString:
		mark := plain(s.text.At(i), tok.Kind)
		if mark == 0 || s.by || !s.within() || !s.follows(i) || s.text.Is(i-1, "LIMIT") && (tok.Depth > 0 || strings.Trim(s.text.At(i), "0") == "") { // see reader.top and noRows
			return
		}
		s.out = append(append(s.out, s.text.SQL[s.copied:tok.Start]...), mark)
		s.copied = tok.End
		s.lits = append(s.lits, rewrite.Literal{At: tok.Start, End: tok.End})
	}
}

func (s *shaper) within() bool { return len(s.parens) == 0 || s.parens[len(s.parens)-1] }

// opens reports whether the parenthesis at token i is that of a list or an expression, and not of a function, a type, a
// hint or the like.
func (s *shaper) opens(i int) bool {
	t := &s.text
	return i == 0 || s.operator(i-1) ||
		t.Is(i-1, "(", "IN", "VALUES", "VALUE", "WHERE", "AND", "OR", "NOT", "ON", "HAVING", "SELECT", "BETWEEN", "WHEN", "THEN", "ELSE", "UNION", "ALL")
}

// follows reports whether token i stands where a value may stand, and only as a value.
func (s *shaper) follows(i int) bool {
	return i > 0 && (s.operator(i-1) ||
		s.text.Is(i-1, "(", "SELECT", "WHERE", "AND", "OR", "BETWEEN", "LIKE", "LIMIT", "OFFSET", "WHEN", "THEN", "ELSE", "HAVING"))
}

// operator reports whether token i ends an operator or is a comma. That of JSON paths is none.
func (s *shaper) operator(i int) bool {
	t := &s.text
	if t.Is(i, ">") && t.Is(i-1, "-", ">") {
		return false
	}
	return t.Is(i, "=", "<", ">", ",", "+", "-", "*", "/")
}

// plain gives the mark of a literal that is of the simplest form: a number that fits the parser's integers, a decimal
// number, a string without quotes, escapes, and characters that are not certain; 0 for all others.
func plain(lit string, kind statement.TokenKind) byte {
	if kind == statement.TokenNumber {
		whole, fraction, decimal := strings.Cut(lit, ".")
		switch {
		case len(lit) > 18 || !digits(whole) || decimal && !digits(fraction):
			return 0
		case decimal:
			return markDecimal
		}
		return markInteger
	}
	if len(lit) < 2 || lit[0] != '\'' {
		return 0
	}
	in := lit[1 : len(lit)-1]
	for i := range len(in) {
		if c := in[i]; c < ' ' || c == '\'' || c == '\\' || c == 0x7f {
			return 0
		}
	}
	if !utf8.ValidString(in) || strings.Contains(in, "<=>") { // orderless looks for that in the whole text
		return 0
	}
	return markString
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// template is a script of one statement whose places are known well enough to move them.
type template struct {
	script *rewrite.Script
	mold   mold // of the text that it was made of
}

// templateOf makes a template of the script of a text; nil if its plan may not be shared.
func templateOf(script *rewrite.Script, m mold) *template {
	if script.Unparsed || len(script.Plans) != 1 {
		return nil
	}
	p := script.Plans[0]
	switch p.Verb {
	case "select", "insert", "update", "delete", "replace":
	default:
		return nil
	}
	if p.Control != (statement.Control{}) || p.Temporary != "" || p.Schema {
		return nil
	}
	return &template{script, m}
}

// fill makes the script of a text of the template's shape.
func (t *template) fill(sql string, m mold) *rewrite.Script {
	move := rewrite.Shift{From: t.mold.lits, To: m.lits}.Place
	plan := *t.script.Plans[0]
	plan.Text, plan.At = sql[m.from:m.end], m.from
	plan.Asks = t.asks(plan.Asks, sql, m)
	script := &rewrite.Script{SQL: sql, Own: true, Plans: []*rewrite.Plan{&plan}, Uses: t.script.Uses}
	if len(plan.Edits) > 0 {
		plan.Edits, plan.Marked = moved(plan.Edits, move), moved(plan.Marked, move)
		script.SQL = rewrite.Apply(sql, plan.Edits)
	}
	return script
}

// asks gives the predicate reads of a text of the template's shape. A literal that is part of the shape is the same in each of its texts.
func (t *template) asks(list []rewrite.Ask, sql string, m mold) []rewrite.Ask {
	if len(list) == 0 {
		return nil
	}
	out := make([]rewrite.Ask, len(list))
	move := rewrite.Shift{From: t.mold.lits, To: m.lits}.Place
	for i := range list {
		out[i] = list[i].Shifted(func(at int) (int, string, bool) {
			k, found := slices.BinarySearchFunc(t.mold.lits, at, func(l rewrite.Literal, at int) int { return l.At - at })
			if !found {
				return move(at), "", true
			}
			return m.lits[k].At, sql[m.lits[k].At:m.lits[k].End], true
		})
	}
	return out
}

func moved(edits []rewrite.Edit, move func(int) int) []rewrite.Edit {
	if edits == nil {
		return nil
	}
	out := make([]rewrite.Edit, len(edits))
	for i, e := range edits {
		out[i] = rewrite.Edit{At: move(e.At), Cut: e.Cut, Add: e.Add} // no literal is cut out
	}
	return out
}

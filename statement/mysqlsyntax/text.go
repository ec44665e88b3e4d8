package mysqlsyntax

import "strings"

// Text is a statement with its tokens.
type Text struct {
	SQL    string
	Tokens []Token
}

// At gives the text of token i; nothing if there is none.
func (t *Text) At(i int) string {
	if i < 0 || i >= len(t.Tokens) {
		return ""
	}
	return t.SQL[t.Tokens[i].Start:t.Tokens[i].End]
}

// Is reports whether token i is one of the given keywords or symbols.
func (t *Text) Is(i int, words ...string) bool {
	if i < 0 || i >= len(t.Tokens) || t.Tokens[i].Kind != Word && t.Tokens[i].Kind != Symbol {
		return false
	}
	s := t.At(i)
	for _, w := range words {
		if strings.EqualFold(s, w) {
			return true
		}
	}
	return false
}

// Seq reports whether the tokens from i on are the given keywords.
func (t *Text) Seq(i int, words ...string) bool {
	for n, w := range words {
		if !t.Is(i+n, w) {
			return false
		}
	}
	return true
}

// Any reports whether the given keywords follow each other anywhere from token i on.
func (t *Text) Any(i int, words ...string) bool {
	for ; i < len(t.Tokens); i++ {
		if t.Seq(i, words...) {
			return true
		}
	}
	return false
}

// Find gives the first token from i on, at the given depth, that is one of the words; -1 if there is none.
func (t *Text) Find(i int, depth int32, words ...string) int {
	for ; i < len(t.Tokens); i++ {
		if t.Tokens[i].Depth < depth {
			return -1
		}
		if t.Tokens[i].Depth == depth && t.Is(i, words...) {
			return i
		}
	}
	return -1
}

// Close gives the token that closes the parenthesis at i; -1 if there is none.
func (t *Text) Close(i int) int {
	return t.Find(i+1, t.Tokens[i].Depth, ")")
}

// Unwrap takes the parentheses around the tokens from first to end away.
func (t *Text) Unwrap(first, end int) (int, int) {
	i, j := first, end
	for i < end && t.Is(i, "(") {
		i++
	}
	for j > i && t.Is(j-1, ")") {
		j--
	}
	layers := min(i-first, end-j)
	for _, k := range t.Tokens[i:j] {
		layers = min(layers, int(k.Depth-t.Tokens[first].Depth))
	}
	return first + layers, end - layers
}

// Name gives the identifier that token i is, unquoted.
func (t *Text) Name(i int) (string, bool) {
	if i < 0 || i >= len(t.Tokens) {
		return "", false
	}
	s := t.At(i)
	switch t.Tokens[i].Kind {
	case Word:
		return s, true
	case Ident:
		if q := s[0]; q == '`' || q == '"' {
			return strings.ReplaceAll(s[1:len(s)-1], string([]byte{q, q}), string([]byte{q})), true
		}
		return s, true
	}
	return "", false
}

// Qualified reads [schema.]name from token i on and gives the token after it.
func (t *Text) Qualified(i int) (schema, name string, next int, ok bool) {
	name, ok = t.Name(i)
	if !ok {
		return "", "", i, false
	}
	if t.Is(i+1, ".") {
		schema = name
		name, ok = t.Name(i + 2)
		return schema, name, i + 3, ok
	}
	return "", name, i + 1, true
}

// Between is the text of the tokens from i to j.
func (t *Text) Between(i, j int) string {
	if i >= j || j > len(t.Tokens) {
		return ""
	}
	return t.SQL[t.Tokens[i].Start:t.Tokens[j-1].End]
}

// Split cuts the tokens from i to end at the commas outside of parentheses.
func (t *Text) Split(i, end int) (parts [][2]int) {
	if i >= end {
		return nil
	}
	depth := t.Tokens[i].Depth
	for i < end {
		j := t.Find(i, depth, ",")
		if j < 0 || j > end {
			j = end
		}
		parts = append(parts, [2]int{i, j})
		i = j + 1
	}
	return parts
}

// Skip gives the first token from i on that is none of the words.
func (t *Text) Skip(i int, words ...string) int {
	for t.Is(i, words...) {
		i++
	}
	return i
}

// Assigned gives the ranges of tokens of the values that are assigned between two tokens; nil if they are not certain.
func (t *Text) Assigned(from, end int) (values [][2]int) {
	for _, p := range t.Split(from, end) {
		eq := t.Find(p[0], t.Tokens[from].Depth, "=")
		if eq < 0 || eq+1 >= p[1] {
			return nil
		}
		values = append(values, [2]int{eq + 1, p[1]})
	}
	return values
}

// Statements cuts the text at its semicolons; it leaves empty statements out.
func (t *Text) Statements() []*Text {
	var parts []*Text
	first := 0
	for i := 0; i <= len(t.Tokens); i++ {
		if i < len(t.Tokens) && !t.Is(i, ";") {
			continue
		}
		if i > first {
			parts = append(parts, &Text{t.SQL, t.Tokens[first:i]})
		}
		first = i + 1
	}
	return parts
}

// Compound reports whether the statement may have semicolons of its own, or goes on behind one.
func (t *Text) Compound() bool {
	if t.Is(0, "BEGIN") && t.Seq(1, "NOT", "ATOMIC") || t.Is(0, "IF", "LOOP", "WHILE", "REPEAT", "FOR", "CASE", "DECLARE", "END", "ELSE", "ELSEIF") {
		return true
	}
	if !t.Is(0, "CREATE", "ALTER") {
		return false
	}
	for i := 1; i < len(t.Tokens) && i < 24; i++ {
		if t.Is(i, "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE") {
			return true
		}
		if t.Is(i, "TABLE", "VIEW", "INDEX", "DATABASE", "SCHEMA", "USER", "SEQUENCE", "(") {
			return false
		}
	}
	return false
}

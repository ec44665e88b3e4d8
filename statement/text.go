package statement

import "strings"

// Text is a statement, or a script, cut into tokens.
type Text struct {
	SQL    string
	Tokens []Token
	Fold   bool // names without quotes are in lower case (PostgreSQL)
}

// Token is one token of a text. Comments are none.
type Token struct {
	Start, End int
	Depth      int32 // of parentheses around it; both parentheses of a pair have the outer depth
	Kind       TokenKind
	Executable bool // MySQL family: within /*! */ or /*M! */
}

// TokenKind is a kind of token.
type TokenKind uint8

// The kinds of tokens.
const (
	TokenWord           TokenKind = iota // a keyword or an unquoted name
	TokenName                            // a quoted name, or a word right behind a dot
	TokenString                          // quoted text
	TokenNumber                          //
	TokenParam                           // ?
	TokenVariable                        // MySQL family: @name
	TokenSystemVariable                  // MySQL family: @@name
	TokenSymbol                          // one character
	TokenOther                           // what a dialect does not tell apart
)

// At gives the text of token i; nothing if there is none.
func (t *Text) At(i int) string {
	if i < 0 || i >= len(t.Tokens) {
		return ""
	}
	return t.SQL[t.Tokens[i].Start:t.Tokens[i].End]
}

// Is reports whether token i is one of the given keywords or symbols.
func (t *Text) Is(i int, words ...string) bool {
	if i < 0 || i >= len(t.Tokens) || t.Tokens[i].Kind != TokenWord && t.Tokens[i].Kind != TokenSymbol {
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

// Name gives what token i names, without quotes; false if it is no name.
func (t *Text) Name(i int) (string, bool) {
	if i < 0 || i >= len(t.Tokens) {
		return "", false
	}
	s := t.At(i)
	if t.Tokens[i].Kind > TokenName {
		return "", false
	}
	switch q := s[0]; q {
	case '`', '"':
		return strings.ReplaceAll(s[1:len(s)-1], string([]byte{q, q}), string([]byte{q})), true
	case '[':
		return s[1 : len(s)-1], true
	}
	if t.Fold {
		s = strings.ToLower(s)
	}
	return s, true
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

// Split cuts the tokens from i to end at the commas outside of parentheses. Nothing between two commas is left out.
func (t *Text) Split(i, end int) (parts [][2]int) {
	if i >= end {
		return nil
	}
	depth, first := t.Tokens[i].Depth, i
	for ; i <= end; i++ {
		if i < end && (t.Tokens[i].Depth != depth || !t.Is(i, ",")) {
			continue
		}
		if i > first {
			parts = append(parts, [2]int{first, i})
		}
		first = i + 1
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

// EmptyStatement reports whether an empty statement stands in front of another one.
func (t *Text) EmptyStatement() bool {
	empty, start := false, true
	for i := range t.Tokens {
		end := t.Is(i, ";")
		if empty && !end {
			return true
		}
		empty, start = empty || end && start, end
	}
	return false
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
			parts = append(parts, &Text{SQL: t.SQL, Tokens: t.Tokens[first:i], Fold: t.Fold})
		}
		first = i + 1
	}
	return parts
}

// Clause is a clause with its keyword, as a range of tokens.
type Clause struct {
	Word       string // the keyword in upper case
	Start, End int
}

// Clauses cuts the tokens from i to end, outside of parentheses, at those that begin a clause. Each word counts once.
func (t *Text) Clauses(i, end int, begins func(i int) bool) (list []Clause) {
	seen := map[string]bool{}
	depth := t.Tokens[i].Depth
	for ; i < end; i++ {
		if t.Tokens[i].Depth != depth || !begins(i) {
			continue
		}
		word := strings.ToUpper(t.At(i))
		if seen[word] {
			continue
		}
		seen[word] = true
		if n := len(list); n > 0 {
			list[n-1].End = i
		}
		list = append(list, Clause{word, i, end})
	}
	return list
}

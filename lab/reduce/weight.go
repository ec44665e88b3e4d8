package reduce

import "strings"

// weight is how much there is to read in a statement: mostly the number of its tokens, and then how simple its constants are. Each change
// of a statement must make it lighter: so a reduction comes to an end.
func weight(sql string) (sum int) {
	for _, t := range tokens(sql) {
		sum += 20 + constantWeight(sql[t.from:t.to])
	}
	return sum
}

// constantWeight is 0 for the simplest constants and what is none, but for a word of which there is a plainer one.
func constantWeight(text string) int {
	switch {
	case strings.EqualFold(text, "REPLACE"):
		return 1 // INSERT is plainer
	case text == "0" || text == "1":
		return 0
	case digit(text[0]) && len(text) == 1:
		return int(text[0] - '0')
	case digit(text[0]):
		return 10 + len(text)
	case text == "''":
		return 2
	case text[0] == '\'' && len(text) == 3:
		return 12
	case text[0] == '\'':
		return 14 + len(text)
	}
	return 0
}

// constant reports whether a token is a constant that may be written otherwise.
func constant(text string) bool { return constantWeight(text) > 2 }

// replaced puts other words in the place of tokens.
func replaced(sql string, by func(token string) (string, bool)) string {
	var b strings.Builder
	last := 0
	for _, t := range tokens(sql) {
		if other, ok := by(sql[t.from:t.to]); ok {
			b.WriteString(sql[last:t.from] + other)
			last = t.to
		}
	}
	return b.String() + sql[last:]
}

package pgsyntax

import (
	"wirecheck/statement"
)

// PostgreSQL's grammar builds, copies and prints trees by recursion in C, and a C stack that overflows ends the process. So the gate
// cuts a text into tokens first, and bounds how deep its tree can be. A level of the tree takes up to 500 bytes of stack
// (TestDeep): maxDepth needs 0.5 MB of the 8 MB that a thread has on Linux (2 MB where the limit is off).
const (
	// MaxText is how long a text may be to be parsed, in bytes.
	MaxText = 256 << 10
	// maxTokens bounds the time: the parser takes one to three microseconds a token.
	maxTokens = 20_000
	// maxScanned bounds the time, too: the lexer reads a run of operator characters again for each token and each beginning of a comment
	// in it, 15 nanoseconds a byte.
	maxScanned = 1 << 20
	// maxDepth bounds the stack: the greatest number of tokens of which each may be a level of the tree below the one before.
	maxDepth = 1000
)

// Bound gives the error with which Parse refuses a text that is too large; nil for other texts.
func Bound(sql string) error {
	if len(sql) > MaxText {
		return &statement.TooLarge{Of: "a length", Amount: len(sql), Limit: MaxText}
	}
	if len(sql) <= maxDepth { // no token is shorter than a byte
		return nil
	}
	m, err := measure(sql)
	if err != nil {
		return err
	}
	if m.tokens > maxTokens {
		return &statement.TooLarge{Of: "a number of tokens", Amount: m.tokens, Limit: maxTokens}
	}
	if depth := m.depth(); depth > maxDepth {
		return &statement.TooLarge{Of: "a depth", Amount: depth, Limit: maxDepth}
	}
	return nil
}

// measure reads a text.
func measure(sql string) (*meter, error) {
	m := &meter{sql: sql, levels: make([]level, 1, 16)}
	m.read()
	if limit := maxScanned + 2*len(sql); m.scanned > limit {
		return nil, &statement.TooLarge{Of: "operators and comments", Amount: m.scanned, Limit: limit}
	}
	return m, nil
}

// meter measures how deep the tree of a text can be. Within a pair of parentheses, lists are flat (commas, AND, OR, the arms of a
// CASE); each other token may put what is before it one level deeper, as in 1+1+1. UNION and JOIN do so across the lists.
//
// Where it is not certain what a word is, the meter takes the reading that is deeper. A reserved word is a keyword unless a dot or AS
// stands before it (manual, appendix C); JOIN may also be a function.
type meter struct {
	sql     string
	tokens  int
	scanned int     // see maxScanned
	label   bool    // the last token was a dot or AS: a word is a name
	levels  []level // the parentheses, brackets and CASEs that are open; the first is the text itself
}

// level is one that is open.
type level struct {
	opener  byte // '(', '[' or 'c' for CASE
	chain   int  // tokens since the last separator
	inner   int  // the deepest level that was closed since then
	deepest int  // of what stands between two separators
	links   int  // UNION, INTERSECT, EXCEPT and JOIN
	between int  // BETWEENs whose AND is to come: that is no separator
}

// total is how deep all of a level can be.
func (l *level) total() int { return l.links + max(l.deepest, l.chain+l.inner) }

// separate ends an element of a list.
func (l *level) separate() {
	l.deepest = max(l.deepest, l.chain+l.inner)
	l.chain, l.inner = 0, 0
}

func (m *meter) top() *level { return &m.levels[len(m.levels)-1] }

func (m *meter) open(opener byte) { m.levels = append(m.levels, level{opener: opener}) }

// pop closes the level on top.
func (m *meter) pop() {
	depth := m.top().total() + 1
	m.levels = m.levels[:len(m.levels)-1]
	m.top().inner = max(m.top().inner, depth)
}

// close closes a parenthesis or bracket, and the CASEs in it that have no END. One that is not open is an error of syntax.
func (m *meter) close(opener byte) {
	for i := len(m.levels) - 1; i > 0; i-- {
		if m.levels[i].opener == opener {
			for len(m.levels) > i {
				m.pop()
			}
			return
		}
	}
}

// depth closes all levels and gives the depth of the whole.
func (m *meter) depth() int {
	for len(m.levels) > 1 {
		m.pop()
	}
	return m.top().total()
}

// word counts an identifier or a keyword.
func (m *meter) word(w string) {
	m.tokens++
	l := m.top()
	l.chain++
	if m.label {
		m.label = false
		return
	}
	if len(w) > len("intersect") {
		return
	}
	var lower [len("intersect")]byte
	for i := range w {
		lower[i] = w[i]
		if 'A' <= w[i] && w[i] <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	switch string(lower[:len(w)]) {
	case "as":
		m.label = true
	case "and":
		if l.between > 0 {
			l.between--
			return
		}
		l.separate()
	case "or":
		l.separate()
	case "between":
		l.between++
	case "case":
		m.open('c')
	case "when", "then", "else":
		if l.opener == 'c' {
			l.separate()
		}
	case "end":
		if l.opener == 'c' {
			m.pop()
		}
	case "union", "except", "intersect":
		l.links++
		l.separate()
	case "join":
		l.links++
	}
}

// sign counts an operator or a sign of punctuation.
func (m *meter) sign(c byte) {
	m.tokens++
	m.label = c == '.'
	switch c {
	case '(', '[':
		m.open(c)
	case ')':
		m.close('(')
	case ']':
		m.close('[')
	case ',', ';':
		m.top().separate()
	default:
		m.top().chain++
	}
}

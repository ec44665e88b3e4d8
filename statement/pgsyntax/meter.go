package pgsyntax

import "strings"

// read cuts a text into tokens as PostgreSQL's lexer does with standard_conforming_strings on (src/backend/parser/scan.l), and counts
// them. It may see more tokens in numbers and operators than there are. What has no end is an error of syntax and ends the reading.
func (m *meter) read() {
	sql := m.sql
	for i := 0; i < len(sql) && m.scanned <= maxScanned+2*len(sql); {
		switch c := sql[i]; {
		case blank(c):
			i++
		case strings.HasPrefix(sql[i:], "--"):
			i = lineEnd(sql, i)
		case strings.HasPrefix(sql[i:], "/*"):
			i = m.comment(i)
		case BeginsWord(c):
			end := i + 1
			for end < len(sql) && (wordByte(sql[end]) || sql[end] == '$') {
				end++
			}
			if end == i+1 && end < len(sql) && sql[end] == '\'' && (c == 'e' || c == 'E') {
				i = escapedEnd(sql, end)
				m.literal()
				continue
			}
			m.word(sql[i:end]) // a prefix of a literal counts as a token of its own
			i = end
		case '0' <= c && c <= '9':
			i = numberEnd(sql, i)
			m.literal()
		case c == '\'' || c == '"':
			i = quotedEnd(sql, i)
			m.literal()
		case c == '$':
			i = dollarEnd(sql, i)
			m.literal()
		case operator(c):
			i = m.operators(i)
		default:
			m.sign(c)
			if i++; c == ':' && i < len(sql) && (sql[i] == ':' || sql[i] == '=') {
				i++
			}
		}
	}
}

// wordByte reports whether a byte goes on with a word or a number.
func wordByte(c byte) bool { return BeginsWord(c) || '0' <= c && c <= '9' }

func operator(c byte) bool { return strings.IndexByte("~!@#^&|`?+-*/%<>=", c) >= 0 }

// numberEnd gives the place behind the number, or what begins as one, that begins at i.
func numberEnd(sql string, i int) int {
	fraction := i > 0 && sql[i-1] == '.'
	for i < len(sql) && ('0' <= sql[i] && sql[i] <= '9' || sql[i] == '_') {
		i++
	}
	if i < len(sql) && sql[i] == '.' && !fraction {
		i++
	}
	for i < len(sql) && wordByte(sql[i]) {
		i++
	}
	return i
}

// run gives the place behind the operator characters that begin at i.
func run(sql string, i int) int {
	for i < len(sql) && operator(sql[i]) {
		i++
	}
	return i
}

// operators counts the operators that begin at i, and gives the place behind them: behind characters of operators up to a comment. No
// operator ends with + or -, unless it has one of the characters that standard SQL does not use.
func (m *meter) operators(i int) int {
	end := run(m.sql, i)
	all := m.sql[i:end]
	for _, mark := range []string{"--", "/*"} {
		if n := strings.Index(all, mark); n >= 0 {
			all = all[:n]
		}
	}
	n := 1
	if !strings.ContainsAny(all, "~!@#^&|`?%") {
		n = min(len(all), 1+len(all)-len(strings.TrimRight(all, "+-")))
	}
	for ; n > 0; n-- {
		m.sign(all[0])
		m.scanned += end - i
	}
	return i + len(all)
}

// literal counts a literal, a quoted name or a parameter.
func (m *meter) literal() {
	m.tokens++
	m.label = false
	m.top().chain++
}

func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// lineEnd gives the place of the end of the line.
func lineEnd(sql string, i int) int {
	if n := strings.IndexAny(sql[i:], "\n\r"); n >= 0 {
		return i + n
	}
	return len(sql)
}

// comment gives the place behind the comment that begins at i. Comments nest.
func (m *meter) comment(i int) int {
	sql, limit := m.sql, maxScanned+2*len(m.sql)
	for depth := 0; i < len(sql) && m.scanned <= limit; {
		switch {
		case strings.HasPrefix(sql[i:], "/*"):
			m.scanned += run(sql, i) - i
			depth, i = depth+1, i+2
		case strings.HasPrefix(sql[i:], "*/"):
			if depth, i = depth-1, i+2; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(sql)
}

// quotedEnd gives the place behind the text in quotes that begins at i. Two quotes in a row end one text and begin another, which is
// as good here.
func quotedEnd(sql string, i int) int {
	if n := strings.IndexByte(sql[i+1:], sql[i]); n >= 0 {
		return i + 1 + n + 1
	}
	return len(sql)
}

// escapedEnd does the same for a text with backslashes. It goes on in the same way behind white space with the end of a line.
func escapedEnd(sql string, i int) int {
	for {
		for i++; i < len(sql) && sql[i] != '\''; i++ {
			if sql[i] == '\\' {
				i++
			}
		}
		if i++; i >= len(sql) {
			return len(sql)
		}
		next := i
		if sql[i] != '\'' { // not two quotes in a row
			if next = continuation(sql, i); next < 0 {
				return i
			}
		}
		i = next
	}
}

// continuation gives the place of the quote that goes on with the literal which ends at i; -1 if there is none. Unlike PostgreSQL's
// lexer, that of libpg_query does not look behind comments.
func continuation(sql string, i int) int {
	for line := false; i < len(sql); i++ {
		switch {
		case blank(sql[i]):
			line = line || sql[i] == '\n' || sql[i] == '\r'
		case sql[i] == '\'' && line:
			return i
		default:
			return -1
		}
	}
	return -1
}

// dollarEnd gives the place behind the text between dollar quotes, or the parameter, that begins at i.
func dollarEnd(sql string, i int) int {
	end := i + 1
	for end < len(sql) && (BeginsWord(sql[end]) || end > i+1 && wordByte(sql[end])) {
		end++
	}
	if end == len(sql) || sql[end] != '$' {
		for end = i + 1; end < len(sql) && '0' <= sql[end] && sql[end] <= '9'; { // $1
			end++
		}
		return end
	}
	mark := sql[i : end+1]
	if n := strings.Index(sql[end+1:], mark); n >= 0 {
		return end + 1 + n + len(mark)
	}
	return len(sql)
}

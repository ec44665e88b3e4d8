// Package prose writes for people: a text that fits into a line, a number with its noun.
package prose

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Width is how many characters of a statement a message shows.
const Width = 160

// dots stand for what was cut off. They are ASCII, since messages also go to clients with other character sets.
const dots = "..."

// Line makes one line of a text that a person can read: white space becomes one blank, and a character that cannot be printed a dot. If most is
// not 0, Line cuts a longer text to that many characters, the three dots at its end included.
func Line(text string, most int) string { return string(AppendLine(nil, text, most)) }

// AppendLine appends Line's text to b.
func AppendLine(b []byte, text string, most int) []byte {
	from, cut := len(b), len(b) // cut: where the dots go
	n, blank := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) {
			blank = len(b) > from
			continue
		}
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			r = '.'
		}
		for _, c := range [...]rune{' ', r} {
			if c == ' ' && !blank {
				continue
			}
			if n++; most > 0 && n > most {
				return append(b[:cut], dots...)
			}
			if b = utf8.AppendRune(b, c); n <= most-len(dots) {
				cut = len(b)
			}
		}
		blank = false
	}
	return b
}

// Printable is a text as it is where a person can read it on one line, and what Line makes of it where not: names and values come from others, and
// may hold line ends, escape sequences of terminals, or characters that turn the direction of writing.
func Printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return Line(text, 0)
	}
	return text
}

// Lines is a text of several lines with a dot for each character that cannot be printed. Tabulators stay.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && r != utf8.RuneError || r == '\u00a0' {
			return r
		}
		return '.'
	}, text)
}

// parent is a traceparent in a comment (W3C Trace Context, 3.2): the end of its trace tells it from others.
var parent = regexp.MustCompile(`(?i)(traceparent='?)[0-9a-f]{2}-[0-9a-f]{20}([0-9a-f]{12})-[0-9a-f]{16}-[0-9a-f]{2}\b`)

// identifier is a long value in a comment, as sqlcommenter writes tags: its end tells it from others.
var identifier = regexp.MustCompile(`(?i)(trace[a-z]+='?)[0-9a-z%=-]{10,}([0-9a-z%=-]{6})`)

// Statement makes one line of a statement, as Line does, with the end of the trace for a traceparent in a comment. Where it is longer than most, what
// says least goes first: the beginning of other identifiers in the comment, the list of columns of a SELECT, and behind RETURNING, then the middle of long brackets (lists of values, subqueries), the longest first, then the end of what stands in front of WHERE, then the middle of
// the condition. Tables, the beginning and the end of the condition, and the comment with the application's tags are kept.
func Statement(sql string, most int) string {
	line := Line(sql, 0)
	if at := strings.LastIndex(line, "/*"); at >= 0 {
		line = line[:at] + parent.ReplaceAllString(line[at:], "${1}"+dots+"${2}")
	}
	fits := func() bool { return most <= 0 || utf8.RuneCountInString(line) <= most }
	if fits() {
		return line
	}
	if at := strings.LastIndex(line, "/*"); at >= 0 {
		line = line[:at] + identifier.ReplaceAllString(line[at:], "${1}"+dots+"${2}")
	}
	if i, j := columns(line); !fits() && j > i+len(dots) {
		line = line[:i] + dots + line[j:]
	}
	const returning = " returning "
	if i := outside(line, returning); !fits() && i > 0 {
		i += len(returning)
		j := len(line)
		if at := strings.LastIndex(line[i:], " /*"); at >= 0 {
			j = i + at
		}
		if j > i+len(dots) {
			line = line[:i] + dots + line[j:]
		}
	}
	for range maxBrackets {
		if fits() {
			return line
		}
		i, j := longestBracket(line)
		if j-i <= most/4 {
			break
		}
		line = line[:i+1] + middle(line[i+1:j], most/8) + line[j:]
	}
	const where = " where "
	if at := outside(line, where); at > 0 {
		head, tail := line[:at], line[at:]
		room := max(most-utf8.RuneCountInString(tail), most/2)
		if runes := []rune(head); len(runes) > room {
			head = string(runes[:max(room-len(dots), 0)]) + dots
		}
		return head + middle(tail, most-utf8.RuneCountInString(head))
	}
	return middle(line, most)
}

// maxBrackets is how many brackets of a statement are shortened.
const maxBrackets = 20

// middle cuts the middle out of a text of more than most characters.
func middle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	head := max(most-len(dots), 0) / 2
	return string(runes[:head]) + dots + string(runes[len(runes)-max(most-len(dots)-head, 0):])
}

// longestBracket gives the places of the brackets with the longest text between them that is not cut yet; 0, 0 where there are none.
func longestBracket(line string) (from, to int) {
	var open []int
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\'', '"', '`':
			i = behindQuote(line, i)
		case '(':
			open = append(open, i)
		case ')':
			if n := len(open); n > 0 {
				if at := open[n-1]; i-at > to-from {
					from, to = at, i
				}
				open = open[:n-1]
			}
		}
	}
	return from, to
}

// outside finds the first place of a word outside brackets and quotes; -1: there is none.
func outside(line, word string) int {
	depth := 0
	for i := 0; i+len(word) <= len(line); i++ {
		switch line[i] {
		case '\'', '"', '`':
			i = behindQuote(line, i)
		case '(':
			depth++
		case ')':
			depth--
		case ' ':
			if depth == 0 && strings.EqualFold(line[i:i+len(word)], word) {
				return i
			}
		}
	}
	return -1
}

// behindQuote is the place of the quote that closes the one at i, or of the last byte.
func behindQuote(line string, i int) int {
	if next := strings.IndexByte(line[i+1:], line[i]); next >= 0 {
		return i + 1 + next
	}
	return len(line) - 1
}

// columns finds the list of columns between SELECT and its FROM; 0, 0 where there is none.
func columns(line string) (from, to int) {
	const start, end = "select ", " from "
	if len(line) < len(start) || !strings.EqualFold(line[:len(start)], start) {
		return 0, 0
	}
	depth := 0
	for i := len(start); i < len(line); i++ {
		switch c := line[i]; c {
		case '(':
			depth++
		case ')':
			depth--
		case '\'', '"', '`':
			next := strings.IndexByte(line[i+1:], c)
			if next < 0 {
				return 0, 0
			}
			i += next + 1
		case ' ':
			if depth == 0 && len(line)-i > len(end) && strings.EqualFold(line[i:i+len(end)], end) {
				return len(start), i
			}
		}
	}
	return 0, 0
}

// Cut gives the beginning of a text that has more than most bytes, the three dots at its end included. It cuts between characters.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := max(most-len(dots), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

// Tail gives the last bytes of a text that has more than most, behind three dots.
func Tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	from := len(text) - most
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return dots + text[from:]
}

// Wrap breaks a line of prose at blanks, so that no line is wider than width where words allow it. The first line begins with first, the others
// with rest. With width 0 it breaks nothing.
func Wrap(text string, width int, first, rest string) string {
	var b strings.Builder
	line, n := first, utf8.RuneCountInString(first)
	b.WriteString(line)
	for i, word := range strings.Split(text, " ") {
		size := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width > 0 && n+1+size > width:
			b.WriteString("\n" + rest)
			n = utf8.RuneCountInString(rest)
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += size
	}
	return b.String()
}

// Fit breaks the prose of a report at a terminal's width. Statements (they stand four blanks in), tables and commands, which people copy, stay as they
// are. With width 0 it breaks nothing.
func Fit(text string, width int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(body)]
		if len(indent) >= 4 || strings.Contains(body, "  ") || strings.HasPrefix(body, "wirecheck ") || strings.Contains(body, ": wirecheck ") {
			b.WriteString(line)
			continue
		}
		b.WriteString(Wrap(body, width, indent, indent+"  "))
	}
	return b.String()
}

// Count is a number with its noun: 1 row, 3 rows.
func Count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}

package scenario

import (
	"regexp"
	"strings"
)

var dollarQuote = regexp.MustCompile(`^\$\w*\$`)

// blockEnd finds the } that ends the SQL block with which a text begins; -1: there is none. A } in quotes does not end it, if the quotes are
// closed on the same line, and one between dollar quotes. isolationtester ends a block at every }: a quote that is not closed is an
// ordinary character, and so is one in a comment.
func blockEnd(text string) int {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '}':
			return i
		case '\'', '"', '`':
			i += quoted(text[i:], c)
		case '$':
			if tag := dollarQuote.FindString(text[i:]); tag != "" {
				if n := strings.Index(text[i+len(tag):], tag); n >= 0 {
					i += n + 2*len(tag) - 1
				}
			}
		case '-', '/':
			end := "\n"
			switch {
			case strings.HasPrefix(text[i:], "/*"):
				end = "*/"
			case !strings.HasPrefix(text[i:], "--"):
				continue
			}
			comment, _, _ := strings.Cut(text[i:], end)
			if n := strings.IndexByte(comment, '}'); n >= 0 {
				return i + n
			}
			i += len(comment) - 1
		}
	}
	return -1
}

// quoted is the place of the quote that closes a text, which begins with one, on its first line; 0: there is none. Whether a backslash
// escapes depends on the dialect: it does if a quote is left then.
func quoted(text string, quote byte) int {
	line, _, _ := strings.Cut(text, "\n")
	for _, escapes := range []bool{true, false} {
		for i := 1; i < len(line); i++ {
			switch {
			case line[i] == '\\' && escapes && quote != '`':
				i++
			case line[i] == quote && i+1 < len(line) && line[i+1] == quote:
				i++
			case line[i] == quote:
				return i
			}
		}
	}
	return 0
}

package trace

import (
	"net/url"
	"strings"

	"wirecheck/trace/lex"
)

// maxTags bounds the tags of one statement.
const maxTags = 64

// ParseTags gives the tags that sqlcommenter and its like (https://google.github.io/sqlcommenter/spec/) put into the statement's
// comments: key='value', separated by commas, both percent-encoded.
func ParseTags(sql string, d lex.Dialect) []Tag {
	if !strings.Contains(sql, "='") || !strings.Contains(sql, "/*") {
		return nil
	}
	var tags []Tag
	for t := range lex.Tokens(sql, d) {
		if text := t.Text; t.Kind == lex.Comment && strings.HasPrefix(text, "/*") && strings.HasSuffix(text, "*/") && len(text) >= 4 {
			tags = append(tags, commentTags(text[2:len(text)-2])...)
		}
	}
	return tags
}

// commentTags reads a comment that consists of nothing but tags; any other has none.
func commentTags(s string) []Tag {
	var tags []Tag
	for s = strings.TrimSpace(s); s != ""; {
		key, rest, ok := strings.Cut(s, "='")
		if !ok || key == "" || strings.ContainsAny(key, " \t\n,'") {
			return nil
		}
		end := 0
		for end < len(rest) && rest[end] != '\'' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) || len(tags) == maxTags {
			return nil
		}
		tags = append(tags, Tag{unescapeTag(key), unescapeTag(rest[:end])})
		s = strings.TrimSpace(rest[end+1:])
		if s != "" && s[0] != ',' {
			return nil
		}
		s = strings.TrimSpace(strings.TrimPrefix(s, ","))
	}
	return tags
}

func unescapeTag(s string) string {
	s = strings.ReplaceAll(s, `\'`, `'`)
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

package schedule

import (
	"regexp"
	"strings"

	"wirecheck/statement"
)

var (
	primaryKeys  = regexp.MustCompile(`(?is)\bprimary\s+key\b`)
	indexed      = regexp.MustCompile("(?is)\\b(?:key|index|unique)\\b[^(),;]*\\(([^)]*)\\)")
	createdIndex = regexp.MustCompile("(?is)\\bindex\\b[^();]*\\bon\\b[^();]*\\(([^)]*)\\)")
	uniqueColumn = regexp.MustCompile("(?is)[(,]\\s*([`\"]?\\w+[`\"]?)\\s[^,]*?\\bunique\\b")
	names        = regexp.MustCompile(`\w+`)
)

// ByIndex reports whether a statement may find its rows by an index besides the primary key, so that its scan need not come to rows that do
// not match: its text names a column of one. It goes by the texts, and errs on the side of an index.
func ByIndex(setup []string, st *statement.Statement) bool {
	used := map[string]bool{}
	for _, name := range names.FindAllString(strings.ToLower(st.Text), -1) {
		used[name] = true
	}
	for _, sql := range setup {
		sql = primaryKeys.ReplaceAllString(strings.ToLower(sql), "")
		for _, pattern := range []*regexp.Regexp{indexed, createdIndex, uniqueColumn} {
			for _, m := range pattern.FindAllStringSubmatch(sql, -1) {
				for _, name := range names.FindAllString(m[1], -1) {
					if used[name] {
						return true
					}
				}
			}
		}
	}
	return false
}

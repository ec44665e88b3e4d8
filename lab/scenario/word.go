package scenario

import "strings"

// FirstWord is the first word of a text in capitals, behind comments.
func FirstWord(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n;(")
		switch {
		case strings.HasPrefix(sql, "--"), strings.HasPrefix(sql, "#"):
			_, rest, _ := strings.Cut(sql, "\n")
			sql = rest
		case strings.HasPrefix(sql, "/*") && !strings.HasPrefix(sql, "/*!"):
			_, rest, _ := strings.Cut(sql, "*/")
			sql = rest
		default:
			end := strings.IndexFunc(sql, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_') })
			if end < 0 {
				end = len(sql)
			}
			return strings.ToUpper(sql[:end])
		}
	}
}

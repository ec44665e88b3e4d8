package mysqlsyntax

import (
	"slices"
	"strings"
)

// Quote makes a quoted identifier.
func Quote(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// ContainsName reports whether a list has a name; names compare without regard to case.
func ContainsName(list []string, s string) bool {
	return slices.ContainsFunc(list, func(t string) bool { return strings.EqualFold(s, t) })
}

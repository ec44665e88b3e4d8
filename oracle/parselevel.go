package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// ParseLevel reads a level as people write it: "Repeatable-Read", "read_committed". An empty text is no level, and no error.
func ParseLevel(text string) (string, error) {
	known := []string{ReadUncommitted, ReadCommitted, RepeatableRead, Snapshot, Serializable}
	name := strings.ToLower(strings.NewReplacer("-", " ", "_", " ").Replace(text))
	if name != "" && !slices.Contains(known, name) {
		return "", fmt.Errorf("unknown level %q: use one of %s", text, strings.Join(known, ", "))
	}
	return name, nil
}

package radar

import (
	"strconv"
	"strings"
)

// summed takes floating point numbers for equal, whatever they are: sums in another order differ in the last digits of what is added, which
// may be all digits of what comes out. Exact types stay as they are.
func summed(v, kind string) string {
	kind = strings.ToLower(kind)
	if _, err := strconv.ParseFloat(v, 64); err != nil || !strings.Contains(kind, "double") && !strings.Contains(kind, "float") && kind != "real" {
		return v
	}
	return "a number"
}

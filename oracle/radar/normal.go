package radar

import (
	"strconv"
	"strings"

	"wirecheck/oracle/schedule"
)

// rounded leaves of a floating point number as many digits as its sums have in any order; exact types stay as they are.
func rounded(v, kind string) string {
	kind = strings.ToLower(kind)
	digits := 0
	switch {
	case strings.Contains(kind, "double"), kind == "float8":
		digits = 12
	case strings.Contains(kind, "float"), kind == "real":
		digits = 4
	}
	f, err := strconv.ParseFloat(v, 64)
	if digits == 0 || err != nil {
		return v
	}
	if f > -1e-9 && f < 1e-9 {
		return "0"
	}
	return strconv.FormatFloat(f, 'e', digits-1, 64)
}

// folded makes values alike that some collation or type may take for equal.
func folded(v, _ string) string { return schedule.Fold(v) }

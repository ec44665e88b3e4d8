package radar

import (
	"regexp"
	"strconv"
	"strings"
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

var number = regexp.MustCompile(`^[-+]?[0-9]*\.?[0-9]*(e[-+]?[0-9]+)?$`)

// folded makes values alike that some collation or type may take for equal: letters of either case, characters beyond ASCII, blanks at
// the end, and numbers with zeros at the end.
func folded(v, _ string) string {
	if v != "" && number.MatchString(v) {
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return strconv.FormatFloat(f+0, 'g', -1, 64) // + 0: not -0
		}
	}
	return strings.TrimRight(strings.Map(func(r rune) rune {
		if r > 127 {
			return '~'
		}
		return r
	}, strings.ToLower(v)), " ")
}

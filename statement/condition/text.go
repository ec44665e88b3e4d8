package condition

import "strings"

// sorts reports whether two texts are in the order of their bytes in all collations of no language, and in those of English: they are the same, or what they
// differ in first are two digits, two letters of one case, a digit and a letter, or the end of one and such a character. Digits stand before letters there,
// and no characters of ASCII are compared together, as ch is in Czech (Unicode Technical Standard 10, 3.3).
func sorts(a, b string) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	const end, digit, lower, upper, other = 0, 1, 2, 3, 4
	class := func(s string) int {
		switch {
		case n == len(s):
			return end
		case s[n] >= '0' && s[n] <= '9':
			return digit
		case s[n] >= 'a' && s[n] <= 'z':
			return lower
		case s[n] >= 'A' && s[n] <= 'Z':
			return upper
		}
		return other
	}
	x, y := class(a), class(b)
	return a == b || printable(a) && printable(b) && max(x, y) < other && (x == y || min(x, y) < lower)
}

// printable reports whether s has printable characters of ASCII only, and blanks.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// like decides LIKE, where op is like, or ilike, if case does not matter. As to i and I, see alike.
func (k Kind) like(op, s, pattern string) Truth {
	if !printable(s) || !printable(pattern) {
		return Unsure
	}
	lower, small := strings.ToLower(s), strings.ToLower(pattern)
	switch {
	case fits(s, pattern):
		return True
	case (k == Text || k == Bytes) && op == "like", !fits(lower, small):
		return False
	case k == Folded && op == "like", strings.Contains(small, "i"):
		return Unsure
	}
	return True
}

// fits reports whether a text is like a pattern, in which _ is one character and % any number of them.
func fits(s, pattern string) bool {
	i, j, star, from := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '%':
			star, from, j = j, i, j+1
		case j < len(pattern) && (pattern[j] == '_' || pattern[j] == s[i]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = from, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[j:], "%") == ""
}

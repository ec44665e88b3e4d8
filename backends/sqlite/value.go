package sqlite

import (
	"encoding/hex"
	"math"
	"regexp"
	"strconv"
	"strings"

	"wirecheck/answer"
)

// In SQLite each value has a type of its own (sqlite.org/datatype3.html), so the text form of a value must tell it: 1 is an integer,
// 1.0 a real, X'31' a blob, and a text stands as it is, unless it could be taken for one of these: then it is in quotes, '1'. Different
// values have different forms, and reals lose nothing.

// numeric is the form of a number; 9e999 is infinity, as SQL text has to write it.
var numeric = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$`)

func integerValue(n int64) answer.Value { return strconv.AppendInt(nil, n, 10) }

func realValue(f float64) answer.Value {
	switch {
	case math.IsInf(f, 1):
		return answer.Value("9e999")
	case math.IsInf(f, -1):
		return answer.Value("-9e999")
	}
	b := strconv.AppendFloat(nil, f, 'g', -1, 64)
	if !strings.ContainsAny(string(b), ".e") {
		b = append(b, ".0"...)
	}
	return b
}

func blobValue(b []byte) answer.Value {
	return append([]byte(strings.ToUpper("X'"+hex.EncodeToString(b))), '\'')
}

func textValue(s string) answer.Value {
	if ambiguous(s) {
		return answer.Value(Quote(s))
	}
	return answer.Value(s)
}

// ambiguous reports whether a text looks like a value of another type, or like a text in quotes.
func ambiguous(s string) bool {
	return strings.HasPrefix(s, "'") || strings.HasPrefix(s, "X'") || numeric.MatchString(s)
}

// literal writes a value in its text form as SQL.
func literal(to []byte, v answer.Value, _ string) []byte {
	s := string(v)
	switch {
	case strings.HasPrefix(s, "'"), strings.HasPrefix(s, "X'"), numeric.MatchString(s):
		if strings.HasPrefix(s, "'") && strings.Contains(s, "\x00") {
			s = strings.ReplaceAll(s[1:len(s)-1], "''", "'")
			break
		}
		return append(to, s...)
	}
	if strings.Contains(s, "\x00") { // would end the statement
		return append(hex.AppendEncode(append(to, "CAST(X'"...), []byte(s)), "' AS TEXT)"...)
	}
	return append(to, Quote(s)...)
}

// Quote makes a string literal.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Identifier quotes a name.
func Identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

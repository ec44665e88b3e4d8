package condition

import (
	"strconv"
	"strings"
)

// The kinds of PostgreSQL's range types (manual, 8.17), by the kind of their bounds.
const (
	IntRange       Kind = "intrange"   // int4range, int8range
	NumRange       Kind = "numrange"   // numrange
	DateRange      Kind = "daterange"  // daterange
	LocalRange     Kind = "localrange" // tsrange
	InstantRange   Kind = "instantrange"
	UniversalRange Kind = "universalrange" // see Universal
)

// bounds are the kinds of the bounds of ranges.
var bounds = map[Kind]Kind{IntRange: Number, NumRange: Number, DateRange: Date, LocalRange: Local, InstantRange: Instant, UniversalRange: Universal}

// Bounds is the kind of the bounds of a kind of ranges; empty if it is none.
func (k Kind) Bounds() Kind { return bounds[k] }

// discrete reports whether there is a next value behind each one: [1,3] is [1,4) then (manual, 8.17.7).
func (k Kind) discrete() bool { return k == IntRange || k == DateRange }

// bound is one end of a range; text is in canonical form. One without a text is infinite.
type bound struct {
	text      string
	infinite  bool
	inclusive bool
}

// interval is a range: empty, or from lower to upper.
type interval struct {
	empty        bool
	lower, upper bound
}

// splitRange takes the text of a range that is not empty apart, without escapes in it.
func splitRange(s string) (lower, upper string, open, shut byte, ok bool) {
	if s = strings.TrimSpace(s); len(s) < 3 {
		return "", "", 0, 0, false
	}
	open, shut = s[0], s[len(s)-1]
	lower, upper, ok = strings.Cut(s[1:len(s)-1], ",")
	plain := func(s *string) bool {
		if len(*s) >= 2 && (*s)[0] == '"' && (*s)[len(*s)-1] == '"' {
			*s = (*s)[1 : len(*s)-1]
			return *s != "" && !strings.ContainsAny(*s, `"\`)
		}
		return !strings.ContainsAny(*s, `"\()[],`)
	}
	return lower, upper, open, shut, ok && (open == '[' || open == '(') && (shut == ']' || shut == ')') && plain(&lower) && plain(&upper)
}

// joinRange is the text of a range with these bounds, of which nil is infinite, and kinds of bounds, as in [).
func joinRange(lower, upper Value, kinds string) (text string, ok bool) {
	if len(kinds) != 2 {
		return "", false
	}
	quoted := func(v Value) string {
		if v == nil {
			return ""
		}
		return `"` + *v + `"`
	}
	text = kinds[:1] + quoted(lower) + "," + quoted(upper) + kinds[1:]
	_, _, _, _, ok = splitRange(text)
	return text, ok
}

// interval reads the text of a range of the kind k.
func (k Kind) interval(s string) (r interval, ok bool) {
	if strings.EqualFold(strings.TrimSpace(s), "empty") {
		return interval{empty: true}, true
	}
	low, high, open, shut, ok := splitRange(s)
	if !ok {
		return r, false
	}
	var ok1, ok2 bool
	r.lower, ok1 = k.bound(low, open == '[', true)
	r.upper, ok2 = k.bound(high, shut == ']', false)
	if !ok1 || !ok2 {
		return r, false
	}
	if r.lower.infinite || r.upper.infinite {
		return r, true
	}
	switch c := k.order(r.lower.text, r.upper.text); {
	case c > 0: // (1,2) of integers is [2,2); of others it is an error
		return interval{empty: true}, k.discrete() && open == '('
	case c == 0 && !(r.lower.inclusive && r.upper.inclusive):
		return interval{empty: true}, true
	}
	return r, true
}

// bound reads a bound. Those of discrete ranges become inclusive below, and exclusive above.
func (k Kind) bound(s string, inclusive, lower bool) (b bound, ok bool) {
	if s == "" {
		return bound{infinite: true}, true
	}
	s = strings.TrimSpace(s)
	if b.text, ok = k.Bounds().canonical(s); !ok || !k.discrete() {
		b.inclusive = inclusive
		return b, ok
	}
	n, ok := Integer(&s)
	if k == DateRange {
		day, known := days(b.text)
		n, ok = int64(day), known
	}
	if inclusive != lower {
		n++
	}
	return bound{text: strconv.FormatInt(n, 10), inclusive: lower}, ok
}

// order compares two bounds.
func (k Kind) order(a, b string) int {
	if k.discrete() || k == NumRange {
		return compareNumbers(a, b)
	}
	return strings.Compare(a, b)
}

// reaches reports whether what begins with lower does not lie wholly behind what ends with upper.
func (k Kind) reaches(lower, upper bound) bool {
	if lower.infinite || upper.infinite {
		return true
	}
	c := k.order(lower.text, upper.text)
	return c < 0 || c == 0 && lower.inclusive && upper.inclusive
}

// within reports whether b ends where a does, or before. sign is 1 for upper bounds, and -1 for lower ones.
func (k Kind) within(b, a bound, sign int) bool {
	if a.infinite || b.infinite {
		return a.infinite
	}
	c := sign * k.order(b.text, a.text)
	return c < 0 || c == 0 && (a.inclusive || !b.inclusive)
}

func (k Kind) contains(a, b interval) bool {
	return b.empty || !a.empty && k.within(b.lower, a.lower, -1) && k.within(b.upper, a.upper, 1)
}

// compareRanges decides a comparison of ranges (manual, 9.20): = <> && @> <@, and has, which is @> with a value.
func (k Kind) compareRanges(op, a, b string) Truth {
	x, ok := k.interval(a)
	if op == "has" {
		b, _ = joinRange(&b, &b, "[]")
	}
	y, ok2 := k.interval(b)
	if !ok || !ok2 {
		return Unsure
	}
	switch op {
	case "&&":
		return truth(!x.empty && !y.empty && k.reaches(x.lower, y.upper) && k.reaches(y.lower, x.upper))
	case "@>", "has":
		return truth(k.contains(x, y))
	case "<@":
		return truth(k.contains(y, x))
	case "=", "<>":
		same := k.contains(x, y) && k.contains(y, x)
		return truth(same == (op == "="))
	}
	return Unsure
}

// overlaps decides OVERLAPS of two periods, each the text of a range with two bounds. A period may begin with its later end; one without length is
// one moment (manual, 9.9). k is the kind of the ends.
func (k Kind) overlaps(a, b string) Truth {
	var ends [2][2]string
	for i, s := range []string{a, b} {
		from, to, _, _, ok := splitRange(s)
		from, ok1 := k.canonical(from)
		to, ok2 := k.canonical(to)
		if !ok || !ok1 || !ok2 {
			return Unsure
		}
		ends[i] = [2]string{min(from, to), max(from, to)}
	}
	x, y := ends[0], ends[1]
	return truth(x[0] == y[0] || x[0] < y[0] && y[0] < x[1] || y[0] < x[0] && x[0] < y[1])
}

package condition

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// functions are those of Term whose result is NULL where an argument is, with how many arguments they take. They compute what PostgreSQL and the MySQL
// family do alike, and say so (false) where they cannot: TestConditions of both rewriters compares them with the servers.
var functions = map[string]struct {
	least, most int
	of          func(a []string) (string, bool)
}{
	"lower": {1, 1, func(a []string) (string, bool) { return cased(a[0], strings.ToLower(a[0]), 'I') }},
	"upper": {1, 1, func(a []string) (string, bool) { return cased(a[0], strings.ToUpper(a[0]), 'i') }},
	"trim":  {1, 1, func(a []string) (string, bool) { return strings.Trim(a[0], " "), true }},
	"ltrim": {1, 1, func(a []string) (string, bool) { return strings.TrimLeft(a[0], " "), true }},
	"rtrim": {1, 1, func(a []string) (string, bool) { return strings.TrimRight(a[0], " "), true }},
	"left":  {2, 2, func(a []string) (string, bool) { return part(a[0], "1", a[1]) }},
	"right": {2, 2, func(a []string) (string, bool) {
		n, ok := natural(a[1])
		from := max(len(a[0])-n, 0)
		return a[0][from:], ok && ascii(a[0])
	}},
	"substr": {2, 3, func(a []string) (string, bool) { return part(a[0], a[1:]...) }},
	"length": {1, 1, func(a []string) (string, bool) { return strconv.Itoa(len(a[0])), ascii(a[0]) }},
	"concat": {2, maxSum, func(a []string) (string, bool) { return strings.Join(a, ""), true }},

	"abs":     {1, 1, func(a []string) (string, bool) { _, ok := decimal(a[0]); return strings.TrimLeft(a[0], "+-"), ok }},
	"product": {2, 2, product},
	"number":  {1, 1, func(a []string) (string, bool) { return a[0], integer(a[0]) }},
	"quotient": {2, 2, func(a []string) (string, bool) {
		return integers(a, func(n, m int64) (int64, bool) { return n / m, m > 0 })
	}},
	"remainder": {2, 2, func(a []string) (string, bool) {
		return integers(a, func(n, m int64) (int64, bool) { return n % m, m > 0 })
	}},
	"bitand": {2, 2, func(a []string) (string, bool) {
		return integers(a, func(n, m int64) (int64, bool) { return n & m, n >= 0 && m >= 0 })
	}},

	"extract":    {2, 2, func(a []string) (string, bool) { return extract(a[0], a[1]) }},
	"date_trunc": {2, 2, func(a []string) (string, bool) { return truncated(a[0], a[1]) }},
	"time": {1, 1, func(a []string) (string, bool) {
		s, ok := Local.canonical(a[0])
		return s[min(11, len(s)):], ok
	}},
	"utc":         {1, 1, func(a []string) (string, bool) { return utc(a[0]) }},
	"plus":        {2, 3, func(a []string) (string, bool) { return shifted(a[0], strings.Join(a[1:], " "), 1) }},
	"minus":       {2, 3, func(a []string) (string, bool) { return shifted(a[0], strings.Join(a[1:], " "), -1) }},
	"to_char":     {2, 2, func(a []string) (string, bool) { return formatted(a[0], a[1], toChar) }},
	"date_format": {2, 2, func(a []string) (string, bool) { return formatted(a[0], a[1], dateFormat) }},
}

// cased is a text in letters of one case. In languages with a dotless i (Turkish) that of i and I differs; which language it is, is not known.
func cased(s, to string, odd byte) (string, bool) {
	return to, ascii(s) && strings.IndexByte(s, odd) < 0
}

// natural reads a number that is not negative, and no larger than a text is long.
func natural(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 30)
	return int(n), err == nil
}

// part is the part of a text from a character on (the first is 1), of a length if there is one.
func part(s string, bounds ...string) (string, bool) {
	from, ok := natural(bounds[0])
	length := len(s)
	if ok && len(bounds) > 1 {
		length, ok = natural(bounds[1])
	}
	if !ok || from < 1 || !ascii(s) {
		return "", false
	}
	from = min(from-1, len(s))
	return s[from:min(from+length, len(s))], true
}

func product(a []string) (string, bool) {
	x, ok1 := decimal(a[0])
	y, ok2 := decimal(a[1])
	if !ok1 || !ok2 || len(a[0]) > maxDigits || len(a[1]) > maxDigits {
		return "", false
	}
	n, ok1 := new(big.Rat).SetString(a[0])
	m, ok2 := new(big.Rat).SetString(a[1])
	if !ok1 || !ok2 {
		return "", false
	}
	return n.Mul(n, m).FloatString(len(x.part) + len(y.part)), true
}

func integers(a []string, of func(n, m int64) (int64, bool)) (string, bool) {
	n, err1 := strconv.ParseInt(a[0], 10, 64)
	m, err2 := strconv.ParseInt(a[1], 10, 64)
	if err1 != nil || err2 != nil || m == 0 {
		return "", false
	}
	out, ok := of(n, m)
	return strconv.FormatInt(out, 10), ok
}

// fields are where a date and a time in canonical form have their parts. Their names are those of EXTRACT (PostgreSQL manual, 9.9.1; MySQL manual, 14.7).
var fields = []struct {
	name     string
	from, to int
}{{"year", 0, 4}, {"month", 5, 7}, {"day", 8, 10}, {"hour", 11, 13}, {"minute", 14, 16}}

func extract(field, moment string) (string, bool) {
	s, ok := Local.canonical(moment)
	for _, f := range fields {
		if ok && strings.EqualFold(field, f.name) {
			return s[f.from:f.to], true
		}
	}
	return "", false
}

func truncated(field, moment string) (string, bool) {
	s, ok := Local.canonical(moment)
	for _, f := range fields {
		if ok && strings.EqualFold(field, f.name) {
			return s[:f.to] + "0001-01-01 00:00:00.000000"[f.to:], true
		}
	}
	return "", false
}

// utc is a moment with an offset as date and time in UTC.
func utc(moment string) (string, bool) {
	offset, at, ok := zone(twoDigits(moment))
	if !ok {
		return "", false
	}
	return shifted(twoDigits(moment)[:at], strconv.Itoa(offset)+" minute", -1)
}

// units are the lengths of the units of intervals, in seconds. Months and years have none.
var units = map[string]int{"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}

// shifted adds an interval, as '1 day 2 hours', to a date and a time, or takes it away.
func shifted(moment, interval string, sign int) (string, bool) {
	s, ok := Local.canonical(moment)
	words := strings.Fields(interval)
	if !ok || len(words) == 0 || len(words)%2 != 0 {
		return "", false
	}
	seconds := 0
	for pair := range slices.Chunk(words, 2) {
		n, err := strconv.ParseInt(pair[0], 10, 32)
		length := units[strings.TrimSuffix(strings.ToLower(pair[1]), "s")]
		if err != nil || length == 0 {
			return "", false
		}
		seconds += sign * int(n) * length
	}
	day, _ := days(s[:10])
	second, _ := strconv.Atoi(s[17:19])
	seconds += 60*minutes(s[11:]) + second
	day += seconds / 86400
	if seconds %= 86400; seconds < 0 {
		seconds += 86400
		day--
	}
	date, ok := dayOf(day)
	return date + " " + clockOf(seconds) + s[19:], ok
}

// clockOf is the time of day that so many seconds make.
func clockOf(seconds int) string {
	two := func(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }
	return two(seconds/3600) + ":" + two(seconds/60%60) + ":" + two(seconds%60)
}

// dayOf is the date of a day that days counts: the last one of which the year, the month and the day have not been passed by then.
func dayOf(day int) (string, bool) {
	if last, _ := days("9999-12-31"); day < 1 || day > last {
		return "", false
	}
	s := "0001-01-01"
	for _, f := range fields[:3] {
		low, high := 1, 10000
		if f.name != "year" {
			high = 32
		}
		for high-low > 1 {
			middle := (low + high) / 2
			digits := strconv.Itoa(middle)
			next := s[:f.from] + strings.Repeat("0", f.to-f.from-len(digits)) + digits + s[f.to:]
			if n, ok := days(next); ok && n <= day {
				low, s = middle, next
			} else {
				high = middle
			}
		}
	}
	return s, true
}

// What formats name: the fields of a moment (PostgreSQL manual, 9.8; MySQL manual, 14.7, DATE_FORMAT).
var (
	toChar     = []string{"YYYY", "MM", "DD", "HH24", "MI"}
	dateFormat = []string{"%Y", "%m", "%d", "%H", "%i"}
)

// formatted writes a moment by a format that has nothing but names of fields, and separators.
func formatted(moment, format string, names []string) (string, bool) {
	s, ok := Local.canonical(moment)
	out := ""
	ok = ok && format != "" // PostgreSQL's to_char() is NULL then
	for ok && format != "" {
		i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(format, name) })
		switch {
		case i >= 0:
			out += s[fields[i].from:fields[i].to]
			format = format[len(names[i]):]
		case strings.IndexByte("-/:. ", format[0]) >= 0:
			out += format[:1]
			format = format[1:]
		default:
			return "", false
		}
	}
	return out, ok
}

package condition

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind says how the values of a column compare, and how an image writes them.
type Kind string

// The kinds.
const (
	Number    Kind = "number" // integers and decimal numbers: -12.50
	Bool      Kind = "bool"   // true, false
	UUID      Kind = "uuid"
	Date      Kind = "date"      // 2026-11-22
	Clock     Kind = "time"      // 09:00:00.5
	Timestamp Kind = "timestamp" // 2026-11-22 09:00:00.5, without a zone
	Local     Kind = "local"     // the same; an offset from UTC behind it means nothing (PostgreSQL manual, 8.5.1.3: timestamp without time zone)
	Instant   Kind = "instant"   // the same with its offset from UTC: 2026-11-22T09:00:00+01:00
	Universal Kind = "universal" // the same, where a value without an offset is in UTC, as in a session whose time zone that is
	Text      Kind = "text"      // equal if the bytes are equal, and only then
	Folded    Kind = "folded"    // text of a collation that may take letters for equal that differ in case or accents, and ignore blanks at the end
	Bytes     Kind = "bytes"     // equal if the bytes are, and in their order
	Other     Kind = "other"
)

// equates reports whether equality of two values can be decided.
func (k Kind) equates() bool { return k != Other && k != "" && k != JSON && k.Element() == "" }

// Orders reports whether the order of two values can be decided. That of texts depends on their collation, too, see sorts.
func (k Kind) Orders() bool {
	return k.equates() && k != Bool && k.Bounds() == ""
}

// Reads reports whether text is a value that the kind understands.
func (k Kind) Reads(text string) bool {
	switch {
	case k == JSON:
		_, ok := document(text)
		return ok
	case k.Element() != "":
		_, ok := elements(text)
		return ok
	case k.Bounds() != "":
		_, ok := k.interval(text)
		return ok
	}
	_, ok := k.canonical(text)
	return ok
}

// canonical gives a form that orders, but for numbers, as the values do.
func (k Kind) canonical(s string) (string, bool) {
	switch k {
	case Date, Clock, Timestamp, Local, Instant, Universal:
		s = twoDigits(s)
	}
	switch k {
	case Number:
		_, ok := decimal(s)
		return s, ok
	case Bool:
		switch strings.ToLower(s) {
		case "true", "t", "1":
			return "true", true
		case "false", "f", "0":
			return "false", true
		}
		return "", false
	case UUID:
		s = strings.ToLower(s)
		if len(s) != 36 {
			return "", false
		}
		for i := range len(s) {
			dash := i == 8 || i == 13 || i == 18 || i == 23
			if dash != (s[i] == '-') || !dash && !strings.ContainsRune("0123456789abcdef", rune(s[i])) {
				return "", false
			}
		}
		return s, true
	case Date:
		_, ok := days(s)
		return s, ok
	case Clock:
		return clock(s)
	case Timestamp:
		if len(s) < 16 || s[10] != ' ' && s[10] != 'T' {
			return "", false
		}
		day, ok1 := Date.canonical(s[:10])
		t, ok2 := clock(s[11:])
		return day + " " + t, ok1 && ok2
	case Local:
		if _, at, ok := zone(s); ok {
			s = s[:at]
		}
		return Timestamp.canonical(midnight(s))
	case Instant:
		return instant(s)
	case Universal:
		s = midnight(s)
		if _, _, ok := zone(s); !ok {
			s += "Z"
		}
		return instant(s)
	case Text, Folded, Bytes:
		return s, true
	}
	return "", false
}

// twoDigits writes the month, day and hour of a date or a time with two digits each, where people write one: 2026-1-5 9:00.
func twoDigits(s string) string {
	at := 0 // where the hour begins
	if len(s) > 4 && s[4] == '-' {
		for range 2 {
			_, rest, found := strings.Cut(s[at:], "-")
			if !found || rest == "" {
				return s
			}
			if at = len(s) - len(rest); len(rest) == 1 || !digit(rest[1]) {
				s = s[:at] + "0" + rest
			}
		}
		at += 3
	}
	if len(s) > at+1 && digit(s[at]) && s[at+1] == ':' {
		s = s[:at] + "0" + s[at:]
	}
	return s
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// clock writes a time of day with six digits behind the second.
func clock(s string) (string, bool) {
	if len(s) == 5 {
		s += ":00"
	}
	if len(s) == 8 {
		s += "."
	}
	if len(s) < 9 || len(s) > 15 || s[2] != ':' || s[5] != ':' || s[8] != '.' || strings.Trim(s[9:], "0123456789") != "" {
		return "", false
	}
	ok := below(s[:2], 24) && below(s[3:5], 60) && below(s[6:8], 60)
	return s + strings.Repeat("0", 15-len(s)), ok
}

// below reports whether two digits are a number below n.
func below(s string, n int) bool {
	v, err := strconv.ParseUint(s, 10, 8)
	return err == nil && int(v) < n
}

// days is the number of a date's day: 2026-11-22, in the Gregorian calendar.
func days(s string) (n int, ok bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, err1 := strconv.ParseUint(s[:4], 10, 16)
	m, err2 := strconv.ParseUint(s[5:7], 10, 8)
	d, err3 := strconv.ParseUint(s[8:], 10, 8)
	if err1 != nil || err2 != nil || err3 != nil || y < 1 || m < 1 || m > 12 || d < 1 {
		return 0, false
	}
	leap := y%4 == 0 && (y%100 != 0 || y%400 == 0)
	length := [...]uint64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if leap {
		length[1] = 29
	}
	if d > length[m-1] {
		return 0, false
	}
	before := y - 1
	total := before*365 + before/4 - before/100 + before/400 + d
	for _, l := range length[:m-1] {
		total += l
	}
	return int(total), true
}

// nextDay is the date behind a date.
func nextDay(s string) (string, bool) {
	if _, ok := days(s); !ok {
		return "", false
	}
	y, _ := strconv.Atoi(s[:4])
	m, _ := strconv.Atoi(s[5:7])
	d, _ := strconv.Atoi(s[8:])
	for _, next := range [][3]int{{y, m, d + 1}, {y, m + 1, 1}, {y + 1, 1, 1}} {
		text := fmt.Sprintf("%04d-%02d-%02d", next[0], next[1], next[2])
		if _, ok := days(text); ok {
			return text, true
		}
	}
	return "", false
}

// instant writes a moment as its minute in UTC, counted from the year 1, and the seconds.
func instant(s string) (string, bool) {
	offset, at, ok := zone(s)
	if !ok {
		return "", false
	}
	day, ok1 := days(s[:10])
	t, ok2 := clock(s[11:at])
	if !ok1 || !ok2 {
		return "", false
	}
	return fmt.Sprintf("%012d%s", day*1440+minutes(t)-offset, t[5:]), true
}

// zone is the offset from UTC, in minutes, that stands behind a date and a time, and where they end: Z, UTC, +01, -0330, +01:00, behind a blank or not.
func zone(s string) (offset, at int, ok bool) {
	if rest, named := strings.CutSuffix(s, "UTC"); named {
		s = rest + "Z"
	}
	at = strings.LastIndexAny(s, "+-Z")
	if at < 16 || s[10] != ' ' && s[10] != 'T' {
		return 0, 0, false
	}
	text := s[at:]
	if text == "Z" {
		text = "+00"
	}
	switch len(text) {
	case 3:
		text += ":00"
	case 5:
		text = text[:3] + ":" + text[3:]
	}
	if len(text) != 6 || text[3] != ':' || !below(text[1:3], 24) || !below(text[4:], 60) {
		return 0, 0, false
	}
	offset = minutes(text[1:])
	if text[0] == '-' {
		offset = -offset
	}
	return offset, len(strings.TrimSuffix(s[:at], " ")), true
}

// midnight is a date alone as PostgreSQL reads it where it wants a time of day, too.
func midnight(s string) string {
	if len(s) == len("2026-11-22") {
		s += " 00:00"
	}
	return s
}

// minutes are those of hours and minutes.
func minutes(s string) int {
	h, _ := strconv.Atoi(s[:2])
	m, _ := strconv.Atoi(s[3:5])
	return 60*h + m
}

// compare decides a comparison.
func (k Kind) compare(op string, a, b Value) Truth {
	if a == nil || b == nil {
		if a != nil && op == "member" {
			return Unsure // false for an array without elements
		}
		return Null
	}
	if op == "prefix" {
		begins := strings.HasPrefix(*a, *b)
		if k == Folded && !begins && (!plain(*a) || !plain(*b) || len(*a) >= len(*b) && strings.EqualFold((*a)[:len(*b)], *b)) {
			return Unsure
		}
		return truth(begins)
	}
	switch {
	case op == "alike":
		return k.alike(*a, *b)
	case op == "like", op == "ilike":
		return k.like(op, *a, *b)
	case op == "overlaps":
		return k.overlaps(*a, *b)
	case k == JSON || k.Element() != "":
		return k.includes(op, *a, *b)
	case k.Bounds() != "":
		return k.compareRanges(op, *a, *b)
	}
	if k == Number {
		n, ok1 := Integer(a)
		m, ok2 := Integer(b)
		if ok1 && ok2 { // as most are
			return ordered(op, cmp.Compare(n, m))
		}
	}
	x, ok1 := k.canonical(*a)
	y, ok2 := k.canonical(*b)
	if !ok1 || !ok2 {
		return Unsure
	}
	order := strings.Compare(x, y)
	switch {
	case k == Number:
		order = compareNumbers(x, y)
	case (k == Text || k == Folded) && op != "=" && op != "<>":
		if !sorts(x, y) {
			return Unsure
		}
	case k == Folded:
		if order != 0 && (!plain(x) || !plain(y) || strings.EqualFold(x, y)) {
			return Unsure
		}
	}
	return ordered(op, order)
}

// alike decides whether texts are equal but for case. In languages with a dotless i (Turkish), i and I are two letters; which language it is, is not known.
func (k Kind) alike(a, b string) Truth {
	switch {
	case a == b:
		return True
	case !ascii(a), !ascii(b), k == Folded && (!plain(a) || !plain(b)):
		return Unsure
	case !strings.EqualFold(a, b):
		return False
	}
	for i := range len(a) {
		if a[i] != b[i] && (a[i] == 'i' || a[i] == 'I') {
			return Unsure
		}
	}
	return True
}

// ascii reports whether s has characters of ASCII only.
func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// ordered decides a comparison of two values that are in an order, as cmp.Compare gives it.
func ordered(op string, order int) Truth {
	switch op {
	case "=":
		return truth(order == 0)
	case "<>":
		return truth(order != 0)
	case "<":
		return truth(order < 0)
	case "<=":
		return truth(order <= 0)
	case ">":
		return truth(order > 0)
	case ">=":
		return truth(order >= 0)
	}
	return Unsure
}

// plain reports whether s has printable characters of ASCII and no blanks only: two such texts that differ by more than case are
// different in every collation of the kind Folded.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// number is a decimal number without leading zeros before the point, or trailing ones behind it.
type number struct {
	negative    bool
	whole, part string
}

func decimal(s string) (n number, ok bool) {
	if s, n.negative = strings.CutPrefix(s, "-"); !n.negative {
		s = strings.TrimPrefix(s, "+")
	}
	whole, part, _ := strings.Cut(s, ".")
	if whole+part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return n, false
	}
	n.whole, n.part = strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")
	n.negative = n.negative && n.whole+n.part != ""
	return n, true
}

func compareNumbers(a, b string) int {
	x, _ := decimal(a)
	y, _ := decimal(b)
	switch {
	case x.negative && !y.negative:
		return -1
	case !x.negative && y.negative:
		return 1
	case x.negative:
		x, y = y, x
	}
	if len(x.whole) != len(y.whole) {
		return len(x.whole) - len(y.whole)
	}
	if c := strings.Compare(x.whole, y.whole); c != 0 {
		return c
	}
	return strings.Compare(x.part, y.part)
}

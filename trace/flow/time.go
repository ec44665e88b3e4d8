package flow

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/history"
	"wirecheck/trace/lex"
)

// Frameworks give a column like updated_at the time of each UPDATE, besides what the application assigns. Such a value depends on nothing that was
// read, and nobody misses the one that it replaces. A column is taken for one of these if the statement assigns others, too, and its condition does not
// name the column.

const (
	past   = time.Minute     // how long before it sends a statement an application may have looked at its clock
	future = 5 * time.Second // how far its clock may be ahead
)

// Times says of the columns to which a statement, sent at a time in nanoseconds since 1970, gave just that time that they got it (RoleTime).
func Times(list []history.Operand, at int64) {
	times(list, func(o *history.Operand) bool { return o.Role == history.RoleSet && isTime(o.Value, at) })
}

// times marks the columns that is reports, if they are columns of the time.
func times(list []history.Operand, is func(*history.Operand) bool) {
	var found []*history.Operand
	others := false
	for i := range list {
		o := &list[i]
		if is(o) && !slices.ContainsFunc(list, func(c history.Operand) bool { return c.Column == o.Column && !c.Role.Assigns() }) {
			found = append(found, o)
		} else if o.Role.Assigns() && o.Role != history.RoleTime {
			others = true
		}
	}
	for _, o := range found {
		if others {
			o.Role = history.RoleTime
		}
	}
}

// MayTime reports whether a text, or a value, may contain the time, in nanoseconds since 1970.
func MayTime(text string, at int64) bool {
	if at == 0 {
		return false
	}
	t := time.Unix(0, at).UTC()
	return strings.Contains(text, t.Format("2006-01-")) || strings.Contains(text, t.AddDate(0, 0, -1).Format("2006-01-")) || strings.Contains(text, t.AddDate(0, 0, 1).Format("2006-01-")) ||
		strings.Contains(text, strconv.FormatInt(t.Unix()/1e4, 10))
}

// isTime reports whether a value is the time, but for a zone that it does not tell: then it is not a time of full minutes, which a person may have chosen.
func isTime(value string, at int64) bool {
	near := func(t time.Time) bool { d := time.Unix(0, at).Sub(t); return d >= -future && d <= past }
	if IsClock(value) {
		whole, _, _ := strings.Cut(value, ".")
		n, err := strconv.ParseInt((whole + "000000000")[:19], 10, 64)
		return err == nil && near(time.Unix(0, n))
	}
	value = strings.Replace(value, "T", " ", 1)
	for _, zone := range []string{"", "Z07", "Z07:00", "Z0700", " Z07:00"} {
		t, err := time.Parse("2006-01-02 15:04:05"+zone, value)
		if err != nil {
			continue
		}
		if zone != "" {
			return near(t)
		}
		const step = 15 * time.Minute // zones are multiples of it apart
		away := time.Unix(0, at).Sub(t).Round(step)
		return !t.Truncate(time.Minute).Equal(t) && away.Abs() <= 14*time.Hour && near(t.Add(away))
	}
	return false
}

// clocks are functions and words that give the time of a statement or of its transaction.
var clocks = strings.Fields("now current_timestamp localtimestamp localtime utc_timestamp sysdate statement_timestamp clock_timestamp transaction_timestamp")

// isClock reports whether the tokens are one of them.
func isClock(t []lex.Token) bool {
	if len(t) == 0 || !slices.ContainsFunc(clocks, t[0].Is) {
		return false
	}
	rest := t[1:]
	if len(rest) == 3 && rest[1].Kind == lex.Number {
		rest = []lex.Token{rest[0], rest[2]}
	}
	return len(rest) == 0 || len(rest) == 2 && rest[0].Text == "(" && rest[1].Text == ")"
}

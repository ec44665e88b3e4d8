package schedule

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/oracle"
	"wirecheck/product"
)

// Permit makes a finding about a query permitted where the vendor documents that its answer may be another one each time: a list in IN that mixes quoted and
// unquoted values.
func (s *Schedule) Permit(f *oracle.Finding, sql string) {
	known := s.DBMS().Cause(product.MixedList)
	if known == nil || f.Name != oracle.NameResult || f.Kind != oracle.KindViolation || !mixes(sql) {
		return
	}
	f.Kind, f.Promised = oracle.KindPermitted, false
	f.Because(known)
}

var (
	quotedTexts = regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"`)
	lists       = regexp.MustCompile(`(?i)\bIN\s*\(`)
	unquoted    = regexp.MustCompile(`(?i)^(?:[-+(\s]*\d[\w.+-]*|TRUE|FALSE)[)\s]*$`)
)

// mixes reports whether a list in IN has both a quoted value and a number.
func mixes(sql string) bool {
	sql = quotedTexts.ReplaceAllString(sql, "''") // what is quoted may look like anything
	return slices.ContainsFunc(lists.FindAllStringIndex(sql, -1), func(at []int) bool {
		items := Items(sql[at[1]:])
		return slices.ContainsFunc(items, func(item string) bool { return strings.Trim(item, " ()") == "''" }) &&
			slices.ContainsFunc(items, func(item string) bool { return unquoted.MatchString(strings.TrimSpace(item)) })
	})
}

package schedule

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/statement"
)

var (
	primaryKeys  = regexp.MustCompile(`(?is)\bprimary\s+key\b`)
	indexed      = regexp.MustCompile("(?is)\\b(?:key|index|unique)\\b[^(),;]*\\(([^)]*)\\)")
	createdIndex = regexp.MustCompile("(?is)\\bindex\\b[^();]*\\bon\\b[^();]*\\(([^)]*)\\)")
	uniqueColumn = regexp.MustCompile("(?is)[(,]\\s*([`\"]?\\w+[`\"]?)\\s[^,]*?\\bunique\\b")
	names        = regexp.MustCompile(`\w+`)
)

// ByIndex reports whether a statement may find its rows by an index besides the primary key, so that its scan need not come to rows that do
// not match: its text names a column of one. It goes by the texts, and errs on the side of an index.
func ByIndex(setup []string, st *statement.Statement) bool {
	keyed := indexedNames(setup)
	return slices.ContainsFunc(names.FindAllString(strings.ToLower(st.Text), -1), func(name string) bool { return keyed[name] })
}

// indexedNames are the words of all lists of columns that have an index besides the primary key, in lower case.
func indexedNames(setup []string) map[string]bool {
	keyed := map[string]bool{}
	for _, sql := range setup {
		sql = primaryKeys.ReplaceAllString(strings.ToLower(sql), "")
		for _, pattern := range []*regexp.Regexp{indexed, createdIndex, uniqueColumn} {
			for _, m := range pattern.FindAllStringSubmatch(sql, -1) {
				for _, name := range names.FindAllString(m[1], -1) {
					keyed[name] = true
				}
			}
		}
	}
	return keyed
}

var (
	computedColumn = regexp.MustCompile("(?is)^\\s*[`\"]?(\\w+)[`\"]?\\s.*\\bas\\s*\\(")
	keptColumn     = regexp.MustCompile(`(?i)\)\s*(?:stored|persistent)\b`)
)

// virtualIndex reports whether an index has a column that is computed where it is read.
func virtualIndex(setup []string) bool {
	keyed := indexedNames(setup)
	for _, sql := range setup {
		_, list, _ := strings.Cut(sql, "(")
		for _, part := range Items(list) {
			if m := computedColumn.FindStringSubmatch(part); m != nil && keyed[strings.ToLower(m[1])] && !keptColumn.MatchString(part) {
				return true
			}
		}
	}
	return false
}

// Attribute names the cause of a finding about step i, if the product is known to lose rows there: a SELECT without locks that sorts what an index
// with a virtual column gives lacks rows where another session has written the table (product.VirtualIndex).
func (s *Schedule) Attribute(f *oracle.Finding, i int) {
	cause, st, d := s.DBMS().Cause(product.VirtualIndex), &s.Steps[i], f.Difference
	q := &st.Statement
	lacking := len(d.Observed.Rows) == 0 || q.Limit && len(d.Observed.Rows) <= len(d.Expected.Rows)
	if cause == nil || d.Cause != "" || f.Name != oracle.NameResult || len(d.Expected.Rows) == 0 || !lacking ||
		q.Verb != "select" || q.Clauses.OrderBy == "" || q.SetOperation || q.Aggregate || q.Locking.Lock != statement.LockNone || !virtualIndex(s.Setup) {
		return
	}
	written := slices.ContainsFunc(s.Steps, func(o Step) bool {
		return o.Session != st.Session && o.Sent < st.Done && slices.ContainsFunc(o.Statement.Targets(), func(u statement.TableUse) bool {
			return slices.ContainsFunc(q.Tables, func(r statement.TableUse) bool { return r.Name == u.Name })
		})
	})
	if written {
		d.Cause, d.Reason, f.Source = string(cause.ID), cause.Reason, cause.Source
	}
}

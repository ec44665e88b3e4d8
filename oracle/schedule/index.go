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

var keptColumn = regexp.MustCompile(`(?i)\)\s*(?:stored|persistent)\b`)

// virtualIndex reports whether an index has a column that is computed where it is read.
func virtualIndex(setup []string) bool {
	keyed := indexedNames(setup)
	for _, sql := range setup {
		_, list, _ := strings.Cut(sql, "(")
		for _, part := range Items(list) {
			if m := computes.FindStringSubmatch(part); m != nil && keyed[strings.ToLower(m[1])] && !keptColumn.MatchString(part) {
				return true
			}
		}
	}
	return false
}

// Attribute names the cause of a finding about step i, where an answer alone shows a known bug of the product.
func (s *Schedule) Attribute(f *oracle.Finding, i int) {
	for _, known := range []struct {
		id    product.CauseID
		shows func(*Schedule, *oracle.Finding, int) bool
	}{{product.VirtualIndex, losesRows}, {product.KeyUnseen, hidesKey}, {product.UnlockedDuplicate, passesDuplicate}} {
		if cause := s.DBMS().Cause(known.id); cause != nil && f.Difference.Cause == "" && known.shows(s, f, i) {
			f.Because(cause)
		}
	}
}

var actsOnUpdate = regexp.MustCompile(`(?i)\bon\s+update\s+(?:cascade|set\s+null)\b`)

// hidesKey reports whether an UPDATE was not refused that gives a row a key which is there, and a foreign key acts on updates.
func hidesKey(s *Schedule, f *oracle.Finding, i int) bool {
	d := f.Difference
	return f.Name == oracle.NameError && s.Steps[i].Statement.Verb == "update" && s.Steps[i].Answer.Err == nil && s.Says(actsOnUpdate) &&
		strings.Contains(d.Expected.Text, s.DBMS().DuplicateError)
}

// losesRows reports whether a sorted read lacks rows that an index with a virtual column may have lost.
func losesRows(s *Schedule, f *oracle.Finding, i int) bool {
	st, d := &s.Steps[i], f.Difference
	q := &st.Statement
	lacking := len(d.Observed.Rows) == 0 || q.Limit && len(d.Observed.Rows) <= len(d.Expected.Rows)
	if f.Name != oracle.NameResult || len(d.Expected.Rows) == 0 || !lacking ||
		q.Verb != "select" || q.Clauses.OrderBy == "" || q.SetOperation || q.Aggregate || q.Locking.Lock != statement.LockNone || !virtualIndex(s.Setup) {
		return false
	}
	return slices.ContainsFunc(s.Steps, func(o Step) bool {
		return o.Session != st.Session && o.Sent < st.Done && slices.ContainsFunc(o.Statement.Targets(), func(u statement.TableUse) bool {
			return slices.ContainsFunc(q.Tables, func(r statement.TableUse) bool { return r.Name == u.Name })
		})
	})
}

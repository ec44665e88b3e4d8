package mysql

import (
	"slices"
	"strings"

	"wirecheck/rewrite"
	"wirecheck/statement"
)

// changes notes what a definition changes in the catalog: at most what its text names, if it is of a kind that changes nothing else.
func (s *planner) changes() {
	t, p := s.text, s.plan
	if !s.catalog.Usable() || !confined(t) {
		return
	}
	var added rewrite.Known
	for i := range t.Tokens {
		if name, ok := t.Name(i); ok {
			for _, n := range []string{folded(s.catalog.Server, name), strings.ToLower(name)} { // functions are known in lower case
				if !slices.Contains(p.Changes, n) {
					p.Changes = append(p.Changes, n)
				}
			}
		}
		if t.Is(i, "REFERENCES") && (t.Any(i, "CASCADE") || t.Any(i, "SET", "NULL") || t.Any(i, "SET", "DEFAULT")) {
			if _, parent, end, ok := t.Qualified(i + 1); ok {
				var update []string
				if t.Any(i, "UPDATE") {
					update = []string{s.referred(t, end)}
				}
				added.AddParent(folded(s.catalog.Server, parent), rewrite.Cascade{Delete: t.Any(i, "DELETE"), Update: update})
			}
		}
	}
	p.Parents = added.Parents
	p.Renames = t.Any(0, "RENAME") || t.Any(0, "CHANGE")
}

// referred gives the columns that REFERENCES names from token i on, as rewrite.Cascade has them.
func (s *scene) referred(t *statement.Text, i int) string {
	if !t.Is(i, "(") || t.Close(i) < 0 || s.r.flavor == TiDB {
		return ""
	}
	var columns []string
	for k := i + 1; k < t.Close(i); k++ {
		if name, ok := t.Name(k); ok {
			columns = append(columns, name)
		} else if !t.Is(k, ",") {
			return ""
		}
	}
	return rewrite.Columns(columns)
}

// confined reports whether a definition changes no relation or function but those that it names.
func confined(t *statement.Text) bool {
	what := 1
	switch {
	case slices.ContainsFunc(t.Tokens, func(tok statement.Token) bool { return tok.Executable }):
		return false
	case t.Is(0, "RENAME", "TRUNCATE"):
		return t.Is(1, "TABLE", "TABLES")
	case t.Is(0, "ALTER", "DROP"):
		what = t.Skip(1, "ONLINE", "OFFLINE", "IGNORE", "TEMPORARY", "UNIQUE")
		return t.Is(what, "TABLE", "TABLES", "VIEW", "INDEX", "SEQUENCE", "FUNCTION", "PROCEDURE", "USER", "ROLE")
	case t.Is(0, "CREATE"):
		for what < len(t.Tokens) && !t.Is(what, "TABLE", "VIEW", "INDEX", "SEQUENCE", "FUNCTION", "PROCEDURE", "TRIGGER", "DATABASE", "SCHEMA", "USER", "ROLE", "EVENT") {
			what++
		}
		return what < len(t.Tokens)
	}
	return false
}

// definition looks up the table that CREATE TABLE may find: whether it was there before decides whether it is instrumented.
func (s *planner) definition() {
	t := s.text
	if i := t.Skip(1, "OR", "REPLACE"); t.Is(i, "TABLE") && (i > 1 || t.Seq(i+1, "IF", "NOT", "EXISTS")) {
		if schema, name, _, ok := t.Qualified(t.Skip(i+1, "IF", "NOT", "EXISTS")); ok {
			s.resolve(schema, name)
		}
	}
}

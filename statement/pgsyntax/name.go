package pgsyntax

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// LastName gives the last part of a qualified name.
func LastName(names []*pg.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

// Quote makes a quoted identifier.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// TableNode makes a node of a table's name.
func TableNode(rv *pg.RangeVar) *pg.Node { return &pg.Node{Node: &pg.Node_RangeVar{RangeVar: rv}} }

package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement/mysqlsyntax"
)

// anyRow reports whether a query shows nothing of its rows but how many there are, so that others would have done as well where LIMIT is reached
// (rewrite.Plan.Any): SELECT 1 AS a FROM t WHERE ... LIMIT 1, as exists() of Django and Rails asks.
func anyRow(n *ast.SelectStmt) bool {
	return n.Limit != nil && n.LockInfo == nil && n.With == nil && n.GroupBy == nil && n.Having == nil && n.Fields != nil && !slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
		switch f.Expr.(type) {
		case *mysqlsyntax.Value, *mysqlsyntax.ParamMarker:
			return false
		}
		return true
	})
}

package mysql

import (
	"fmt"
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement/mysqlsyntax"
)

// withoutLimit gives a query for one group at most without its LIMIT: WHERE fixes what it groups by, so LIMIT 1 hides nothing. ORMs send one wherever they are asked
// for one object. The text keeps it.
func withoutLimit(s *planner, n *ast.SelectStmt, list []source) *ast.SelectStmt {
	if n.Limit == nil || n.GroupBy == nil || n.GroupBy.Rollup || s.r.flavor == TiDB {
		return n
	}
	whole := func(e ast.ExprNode) string {
		v, ok := e.(*mysqlsyntax.Value)
		if !ok {
			return ""
		}
		return fmt.Sprint(v.V)
	}
	if count, skip := whole(n.Limit.Count), n.Limit.Offset; count == "" || count == "0" || skip != nil && whole(skip) != "0" || !oneGroup(s, n, list) {
		return n
	}
	s.copies = true // with OFFSET 1 it is another query
	alone := *n
	alone.Limit = nil
	return &alone
}

// oneGroup reports whether a query groups by columns of which WHERE leaves one value each: it equates them with a constant, or it does so with a whole unique
// key of their table.
func oneGroup(s *planner, n *ast.SelectStmt, list []source) bool {
	one := func(src *source, name string) bool {
		return s.equates(n.Where, list, src, append([][]string{{name}}, src.rel.Unique...), s.equalsOne)
	}
	return !slices.ContainsFunc(n.GroupBy.Items, func(item *ast.ByItem) bool {
		c, ok := item.Expr.(*ast.ColumnNameExpr)
		return !ok || !slices.ContainsFunc(list, func(src source) bool {
			return src.rel != nil && src.rel.Kind == "table" && s.owns(c.Name, list, &src, 1) && one(&src, src.column(c.Name.Name.O).Name)
		})
	})
}

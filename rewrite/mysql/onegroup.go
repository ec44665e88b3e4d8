package mysql

import (
	"fmt"
	"slices"
	"strings"

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
// key of their table. A text equals many numbers, so the two must be of one kind.
func oneGroup(s *planner, n *ast.SelectStmt, list []source) bool {
	one := func(src *source, name string) bool {
		alike := func(column string, value ast.ExprNode) bool {
			at := src.column(column)
			switch v := value.(type) {
			case *mysqlsyntax.ParamMarker:
				return integer(at)
			case *mysqlsyntax.Value:
				_, text := v.V.(string)
				_, signed := v.V.(int64)
				_, unsigned := v.V.(uint64)
				return integer(at) && (signed || unsigned) || text && at != nil && strings.HasSuffix(typeName(at.Type), "char")
			}
			return false
		}
		return s.equates(n.Where, list, src, append([][]string{{name}}, src.rel.Unique...), alike)
	}
	return !slices.ContainsFunc(n.GroupBy.Items, func(item *ast.ByItem) bool {
		c, ok := item.Expr.(*ast.ColumnNameExpr)
		return !ok || !slices.ContainsFunc(list, func(src source) bool {
			return src.rel != nil && src.rel.Kind == "table" && s.owns(c.Name, list, &src, 1) && one(&src, src.column(c.Name.Name.O).Name)
		})
	})
}

package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

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

// quietGroups reports whether what a query groups by certainly has no warnings, and is the same when it is computed again. Without an aggregate of the client's,
// MariaDB (10.11.19) computes it once for each row; beside one of ours, once more: its warnings come twice, and DEFAULT(id) of DEFAULT uuid() makes other groups.
func (q quietly) quietGroups(n *ast.SelectStmt) bool {
	return !slices.ContainsFunc(n.GroupBy.Items, func(item *ast.ByItem) bool {
		e := unwrapped(item.Expr)
		for i, f := range n.Fields.Fields {
			c, named := e.(*ast.ColumnNameExpr)
			at, placed := e.(*ast.PositionExpr)
			if f.Expr != nil && (named && c.Name.Table.O == "" && c.Name.Name.L == f.AsName.L || placed && at.N == i+1) {
				return !q.quietValue(f.Expr)
			}
		}
		return !q.quietValue(e)
	})
}

// quietTexts are functions of texts that convert no text.
var quietTexts = strings.Fields("coalesce concat ifnull lcase length lower ltrim rtrim trim ucase upper")

// quietValue reports whether a value certainly has no warnings.
func (q quietly) quietValue(e ast.ExprNode) bool {
	switch e := unwrapped(e).(type) {
	case *ast.ColumnNameExpr, *ast.PositionExpr, *mysqlsyntax.Value:
		return true
	case *ast.BinaryOperationExpr:
		number := q.kind(e.L) == kindNumber && q.kind(e.R) == kindNumber
		return number && (e.Op == opcode.Plus || e.Op == opcode.Minus || e.Op == opcode.Mul)
	case *ast.FuncCallExpr:
		quiet := slices.Contains(quietTexts, e.FnName.L)
		return (quiet || slices.Contains(timed, e.FnName.L)) && !slices.ContainsFunc(e.Args, func(a ast.ExprNode) bool {
			return !q.quietValue(a) || !quiet && len(walk(a).columns) > 0 && q.kind(a) != kindTime
		})
	}
	return false
}

package mysql

import (
	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// HAVING hides groups, so a change of a row may leave the answer as it was:
//
//	SELECT room, COUNT(*) FROM booking WHERE day = 3 GROUP BY room HAVING COUNT(*) < 2
//
// A row more or less of a room that the answer shows changes the answer: the room has another count there, or is gone. A hidden column tells which rooms these are.
// Of other rooms it is not certain.

// groupsShown gives the column of a table by which a query with HAVING makes groups, and tells the groups of its answer in a hidden column; nil if the answer
// does not tell them, or has no aggregates of them.
func groupsShown(s *planner, n *ast.SelectStmt, list []source) *rewrite.Attribute {
	if n.Having == nil || n.GroupBy == nil || n.GroupBy.Rollup || len(n.GroupBy.Items) != 1 || len(list) != 1 || n.Limit != nil || n.Distinct || n.With != nil || n.LockInfo != nil || s.session.Cut ||
		s.r.flavor == TiDB || walk(n).queries > 1 || walk(n).window || s.plan.Lists > 0 || !s.aggregates(&ast.SelectStmt{Fields: n.Fields, SelectStmtOpts: n.SelectStmtOpts}) {
		return nil
	}
	c, ok := unwrapped(n.GroupBy.Items[0].Expr).(*ast.ColumnNameExpr)
	if !ok || !s.owns(c.Name, list, &list[0], 1) || renames(n, c.Name.Name.O) {
		return nil
	}
	column := list[0].column(c.Name.Name.O)
	if !integer(column) {
		return nil
	}
	before := s.plan.Keys
	if tellKeys(s, []string{"CONCAT(" + list[0].ref + "." + mysqlsyntax.Quote(column.Name) + ")"}); s.plan.Keys == before {
		return nil
	}
	return column
}

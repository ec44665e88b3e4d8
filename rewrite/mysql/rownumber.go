package mysql

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
)

// A warning of a value that is no time, or too large a decimal, names the number of the row ("at row 3"). Each subquery begins to count again, so one of ours would
// change the number (MariaDB 10.11.19).

// asks reports whether a subquery is put in.
func (e edit) asks() bool { return strings.Contains(e.add, "(SELECT ") }

// timed are the functions that take values for times (MariaDB manual, Date & Time Functions), and those that compare with what they give.
var timed = strings.Fields("adddate addtime convert_tz date date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear extract greatest hour last_day least microsecond minute month " +
	"monthname quarter second subdate subtime time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_days to_seconds unix_timestamp week weekday weekofyear year yearweek")

// warnsOfRow reports whether a warning of a statement may name a row by its number.
func (q quietly) warnsOfRow(n ast.Node) (warns bool) {
	visit(n, func(n ast.Node) {
		if t, ok := n.(*ast.TableSource); ok {
			if table, ok := t.Source.(*ast.TableName); ok {
				rel, _ := q.s.resolve(table.Schema.O, table.Name.O)
				q.list = append(q.list, source{rel: rel, alias: cmp.Or(t.AsName.O, table.Name.O)})
			}
		}
	})
	visit(n, func(n ast.Node) {
		var values []ast.ExprNode
		switch n := n.(type) {
		case *ast.FuncCastExpr:
			switch n.Tp.GetType() {
			case mysql.TypeDate, mysql.TypeDatetime, mysql.TypeTimestamp, mysql.TypeDuration, mysql.TypeYear:
				values = []ast.ExprNode{n.Expr}
			case mysql.TypeNewDecimal:
				warns = warns || len(walk(n).columns) > 0
			}
		case *ast.FuncCallExpr:
			if slices.Contains(timed, n.FnName.L) {
				values = n.Args
			}
		case *ast.BinaryOperationExpr:
			values = q.mixed(n.L, n.R)
		case *ast.BetweenExpr:
			values = q.mixed(n.Expr, n.Left, n.Right)
		case *ast.PatternInExpr:
			values = q.mixed(append([]ast.ExprNode{n.Expr}, n.List...)...)
		}
		for _, e := range values {
			warns = warns || len(walk(e).columns) > 0 && q.kind(e) != kindTime
		}
	})
	return warns
}

// mixed gives the values if one of them is a time.
func (q quietly) mixed(values ...ast.ExprNode) []ast.ExprNode {
	if slices.ContainsFunc(values, func(e ast.ExprNode) bool { return q.kind(e) == kindTime }) {
		return values
	}
	return nil
}

package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement/condition"
)

// Conditions that depend on more of a column than its type.

// null makes a condition of IS NULL, or of IS NOT NULL.
func (a *asker) null(n ast.ExprNode, isNot bool) condition.Condition {
	switch name, at := a.column(n); {
	case name != "" && at.Auto && isNot: // it has a value in each row: Django excludes the row without a key
		return condition.Always
	case name == "" || at.Auto:
		// IS NULL finds the row that was inserted last, where sql_auto_is_null is on (MySQL manual, 14.4.2).
		return condition.Unknown("IS NULL of something else than a column")
	default:
		return negated(isNot, condition.Condition{Op: "null", Column: name})
	}
}

// binary gives the pattern of LIKE BINARY pattern, which Django writes. What a Folded comparison is sure of holds for bytes of UTF-8, too.
func (a *asker) binary(column, pattern ast.ExprNode) ast.ExprNode {
	_, at := a.column(column)
	b, ok := unwrapped(pattern).(*ast.FuncCastExpr)
	if !ok || at == nil || b.FunctionType != ast.CastBinaryOperator || !strings.HasPrefix(at.Collation, "utf8") {
		return pattern
	}
	return b.Expr
}

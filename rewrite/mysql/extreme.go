package mysql

import (
	"fmt"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// extremeShown gives what the only cell of the answer shows of the greatest or least value of a column, if the query asks for no more: the next number of an invoice is
// made of it. It is nil if that is not certain. client is the whole query.
func extremeShown(s *planner, n, client *ast.SelectStmt, list []source) *rewrite.Extreme {
	if n != client || len(list) != 1 || !soleGroup(s, n) || len(n.Fields.Fields) != 1 || n.Having != nil {
		return nil
	}
	e, op := &rewrite.Extreme{}, opcode.Op(0)
	x := unwrapped(n.Fields.Fields[0].Expr)
	if sum, ok := x.(*ast.BinaryOperationExpr); ok {
		if op, e.Plus, x = sum.Op, wholeNumber(sum.R), unwrapped(sum.L); e.Plus == nil {
			return nil
		}
	}
	if f, ok := x.(*ast.FuncCallExpr); ok && (f.FnName.L == "coalesce" || f.FnName.L == "ifnull") && len(f.Args) == 2 {
		if e.Instead, x = wholeNumber(f.Args[1]), unwrapped(f.Args[0]); e.Instead == nil {
			return nil
		}
	}
	f, ok := x.(*ast.AggregateFuncExpr)
	if !ok || len(f.Args) != 1 {
		return nil
	}
	name := strings.ToLower(f.F)
	e.Least = name == "min"
	c, ok := unwrapped(f.Args[0]).(*ast.ColumnNameExpr)
	if !ok || name != "max" && name != "min" || op != 0 && op != map[bool]opcode.Op{false: opcode.Plus, true: opcode.Minus}[e.Least] || !s.owns(c.Name, list, &list[0], 1) {
		return nil
	}
	a := list[0].column(c.Name.Name.O)
	if a == nil || typeName(a.Type) == "decimal" || kindOf(a) != condition.Number {
		return nil
	}
	e.Column = a.Name
	s.copies = s.copies || e.Plus != nil || e.Instead != nil // with other literals it is another query
	return e
}

// wholeNumber is a literal; nil if it is something else.
func wholeNumber(n ast.ExprNode) condition.Value {
	if v, ok := unwrapped(n).(*mysqlsyntax.Value); ok {
		switch v := v.V.(type) {
		case int64, uint64:
			return text(fmt.Sprintf("=%v", v))
		}
	}
	return nil
}

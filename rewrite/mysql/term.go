package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/statement/condition"
)

// operand is what a condition compares with values: a column, or a term that is computed from columns. Without a kind it is neither.
type operand struct {
	kind  condition.Kind
	reads condition.Kind // of the values: the date of DATE(column)
	typ   string
	name  string
	term  *condition.Term
}

// operand reads one side of a comparison.
func (a *asker) operand(n ast.ExprNode) operand {
	if name, at := a.column(n); name != "" {
		kind := a.kindHere(at)
		return operand{kind: kind, reads: kind, typ: typeName(at.Type), name: name}
	}
	if day := dayOf(n); day != nil {
		of := operand{}
		if name, _ := a.column(day); name != "" {
			of = a.operand(day)
		}
		switch of.kind {
		case condition.Timestamp:
			of.reads = condition.Date
			return of
		case condition.Date: // the day of a day, as Laravel asks for it
			return of
		}
	}
	f, ok := unwrapped(n).(*ast.FuncCallExpr)
	if !ok || f.Schema.O != "" || len(f.Args) == 0 {
		return a.computed(n)
	}
	of := operand{}
	if name, _ := a.column(f.Args[0]); name != "" {
		of = a.operand(f.Args[0])
	}
	switch {
	case of.name == "":
	case (f.FnName.L == "coalesce" || f.FnName.L == "ifnull") && len(f.Args) == 2 && of.kind == condition.Number:
		if v := a.value(f.Args[1], of.kind); v != nil {
			of.term, of.name = &condition.Term{Fn: "coalesce", Args: []condition.Arg{{Column: of.name}, {Value: v}}}, ""
			return of
		}
	}
	return a.computed(n)
}

// dayOf gives the argument of DATE(), or of CAST(... AS DATE); nil if an expression is neither.
func dayOf(n ast.ExprNode) ast.ExprNode {
	switch f := unwrapped(n).(type) {
	case *ast.FuncCallExpr:
		if f.Schema.O == "" && f.FnName.L == "date" && len(f.Args) == 1 {
			return f.Args[0]
		}
	case *ast.FuncCastExpr:
		if f.FunctionType == ast.CastFunction && f.Tp.GetType() == mysql.TypeDate {
			return f.Expr
		}
	}
	return nil
}

// difference gives left - right, of two sums of columns that are numbers with a sign, and of constants: what is unsigned may not fall below zero (MySQL
// manual, 13.1.7). It is nil if there is no column, or only one that is compared with a value.
func (a *asker) difference(left, right ast.ExprNode) *condition.Term {
	computes := func(n ast.ExprNode) bool { _, ok := unwrapped(n).(*ast.BinaryOperationExpr); return ok }
	column := func(n ast.ExprNode) bool { name, _ := a.column(n); return name != "" }
	if !computes(left) && !computes(right) && !(column(left) && column(right)) {
		return nil
	}
	t, columns := &condition.Term{Fn: "sum"}, false
	var add func(n ast.ExprNode, minus bool) bool
	add = func(n ast.ExprNode, minus bool) bool {
		if b, ok := unwrapped(n).(*ast.BinaryOperationExpr); ok {
			return (b.Op == opcode.Plus || b.Op == opcode.Minus) && add(b.L, minus) && add(b.R, minus != (b.Op == opcode.Minus))
		}
		arg := condition.Arg{Minus: minus}
		if name, at := a.column(n); name != "" {
			if kindOf(at) != condition.Number || strings.Contains(strings.ToLower(at.Type), "unsigned") && (computes(left) || computes(right)) {
				return false
			}
			arg.Column, columns = name, true
		} else if arg.Value = a.value(n, condition.Number); arg.Value == nil {
			return false
		}
		return t.Add(arg)
	}
	if !add(left, false) || !add(right, true) || !columns {
		return nil
	}
	return t
}

// cased makes a condition of LOWER(column) = value, or UPPER, or LIKE, where the value may stand in the same function.
func (a *asker) cased(op string, left, right ast.ExprNode) (c condition.Condition, ok bool) {
	fn, arg := caseOf(left)
	if fn == "" || op != "=" && op != "<>" && op != "like" {
		return c, false
	}
	name, at := a.column(arg)
	if name == "" || kindOf(at) != condition.Folded || typeName(at.Type) == "enum" {
		return c, false
	}
	other, of := caseOf(right)
	if other == fn {
		right = of
	}
	v := a.value(right, condition.Folded)
	return negated(op == "<>", condition.Open(condition.Cased(fn, op == "like", other == fn), condition.Folded, name, v)), v != nil
}

// caseOf gives the argument of LOWER() or UPPER(), which no function of a user can replace (MySQL manual, 11.2.5).
func caseOf(n ast.ExprNode) (fn string, arg ast.ExprNode) {
	f, ok := unwrapped(n).(*ast.FuncCallExpr)
	if !ok || f.Schema.O != "" || len(f.Args) != 1 {
		return "", nil
	}
	fn = map[string]string{"lower": "lower", "lcase": "lower", "upper": "upper", "ucase": "upper"}[f.FnName.L]
	return fn, f.Args[0]
}

// remainder makes a condition of column % divisor = value.
func (a *asker) remainder(m *ast.BinaryOperationExpr, right ast.ExprNode) (c condition.Condition, ok bool) {
	name, at := a.column(m.L)
	d, v := a.value(m.R, condition.Number), a.value(right, condition.Number)
	if name == "" || !strings.HasSuffix(typeName(at.Type), "int") || d == nil || v == nil {
		return c, false
	}
	return condition.Open("modulo", condition.Number, name, d, v), true
}

// like makes a condition of LIKE. A pattern with the character of ESCAPE is not evaluated.
func (a *asker) like(e *ast.PatternLikeOrIlikeExpr) condition.Condition {
	c, ok := a.cased("like", e.Expr, e.Pattern)
	if !ok {
		if a.operand(e.Expr).kind == condition.Number {
			return condition.Unknown("LIKE of a number")
		}
		c = a.open("like", e.Expr, a.binary(e.Expr, e.Pattern))
	}
	if e.EscapeExplicit && e.Escape != 0 && len(c.Values) > 0 {
		c.Values = append(c.Values, text("="+string(rune(e.Escape))))
	}
	return c
}

func isZero(op, column string) condition.Condition {
	return condition.Open(op, condition.Number, column, text("=0"))
}

// ascii reports whether a text is the same in all character sets that clients may use.
func ascii(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e }) }

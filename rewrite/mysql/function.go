package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/statement/condition"
)

// computed reads an expression that is computed from columns, by functions or operators. Its kind is empty if it is none that a condition can compute.
func (a *asker) computed(n ast.ExprNode) operand {
	switch e := unwrapped(n).(type) {
	case *ast.FuncCallExpr:
		if e.Schema.O == "" && len(e.Args) > 0 {
			return a.call(e.FnName.L, e.Args)
		}
	case *ast.BinaryOperationExpr:
		return a.operator(e.Op, e.L, e.R)
	}
	return operand{}
}

// of is a function of arguments; the operand's kind is empty if it cannot be computed.
func of(fn string, kind condition.Kind, args ...*condition.Arg) operand {
	if t := condition.Function(fn, args...); t != nil {
		return operand{kind: kind, reads: kind, typ: string(kind), term: t}
	}
	return operand{}
}

// arg is the operand as an argument of a term; nil if it is of another kind.
func (o operand) arg(kind condition.Kind) *condition.Arg {
	switch {
	case o.kind != kind || o.reads != kind || o.typ == "enum":
		return nil
	case o.term != nil:
		return &condition.Arg{Term: o.term}
	}
	return &condition.Arg{Column: o.name}
}

// argument is an expression as an argument of a term: of columns, or a constant.
func (a *asker) argument(n ast.ExprNode, kind condition.Kind) *condition.Arg {
	if arg := a.operand(n).arg(kind); arg != nil {
		return arg
	}
	if v := a.value(n, kind); v != nil {
		return &condition.Arg{Value: v}
	}
	return nil
}

// moment is a date, or a date and time, as an argument.
func (a *asker) moment(n ast.ExprNode) *condition.Arg {
	o := a.operand(n)
	if arg := o.arg(condition.Timestamp); arg != nil {
		return arg
	}
	return o.arg(condition.Date)
}

// textFunctions are functions of texts by their names, with how many arguments that are integers follow the text (MySQL manual, 14.8).
var textFunctions = map[string]struct {
	fn          string
	least, most int
}{
	"trim": {"trim", 0, 0}, "ltrim": {"ltrim", 0, 0}, "rtrim": {"rtrim", 0, 0}, "lower": {"lower", 0, 0}, "lcase": {"lower", 0, 0}, "upper": {"upper", 0, 0}, "ucase": {"upper", 0, 0},
	"left": {"left", 1, 1}, "right": {"right", 1, 1}, "substring": {"substr", 1, 2}, "substr": {"substr", 1, 2}, "mid": {"substr", 2, 2},
}

// momentParts are functions of dates and times that give one of their fields (14.7).
var momentParts = map[string]string{"year": "year", "month": "month", "day": "day", "dayofmonth": "day", "hour": "hour", "minute": "minute"}

// call reads a call of a function, which no function of a user can replace (MySQL manual, 11.2.5).
func (a *asker) call(name string, args []ast.ExprNode) operand {
	first, last := args[0], args[len(args)-1]
	if t, known := textFunctions[name]; known && len(args) > t.least && len(args) <= t.most+1 {
		list := []*condition.Arg{a.operand(first).arg(condition.Folded)}
		for _, n := range args[1:] {
			list = append(list, a.argument(n, condition.Number))
		}
		return of(t.fn, condition.Folded, list...)
	}
	if field := momentParts[name]; field != "" && len(args) == 1 {
		text := "=" + field
		return of("extract", condition.Number, &condition.Arg{Value: &text}, a.moment(first))
	}
	switch {
	case slices.Contains([]string{"length", "char_length", "character_length"}, name) && len(args) == 1:
		return of("length", condition.Number, a.operand(first).arg(condition.Folded))
	case name == "abs" && len(args) == 1:
		return of("abs", condition.Number, a.operand(first).arg(condition.Number))
	case name == "mod" && len(args) == 2:
		return a.operator(opcode.Mod, first, last)
	case name == "concat" && len(args) > 1:
		var list []*condition.Arg
		columns := 0
		for _, n := range args {
			list = append(list, a.argument(n, condition.Folded))
			if a.operand(n).kind != "" {
				columns++
			}
		}
		if columns > 1 { // their collations may differ
			return operand{}
		}
		return of("concat", condition.Folded, list...)
	case name == "extract" && len(args) == 2:
		if unit, ok := first.(*ast.TimeUnitExpr); ok {
			text := "=" + unit.Unit.String()
			return of("extract", condition.Number, &condition.Arg{Value: &text}, a.moment(last))
		}
	case name == "date_format" && len(args) == 2:
		return of("date_format", condition.Folded, a.moment(first), a.argument(last, condition.Folded))
	case slices.Contains([]string{"date_add", "adddate", "date_sub", "subdate"}, name) && len(args) == 3:
		if unit, ok := last.(*ast.TimeUnitExpr); ok {
			text := "=" + unit.Unit.String()
			n := a.value(args[1], condition.Number)
			if n == nil || !a.behind(args[1]) {
				return operand{}
			}
			fn := map[bool]string{true: "minus", false: "plus"}[strings.Contains(name, "sub")]
			return of(fn, condition.Timestamp, a.operand(first).arg(condition.Timestamp), &condition.Arg{Value: n}, &condition.Arg{Value: &text})
		}
	}
	return operand{}
}

// behind reports whether an interval stands behind what it is added to. In front of it, MariaDB takes what follows to belong to the moment: INTERVAL 1 DAY + (l <= ...).
func (a *asker) behind(n ast.ExprNode) bool {
	n = unwrapped(n)
	u, negative := n.(*ast.UnaryOperationExpr)
	if negative {
		n = u.V
	}
	i, known := a.places[n]
	if negative {
		i--
	}
	return known && a.text.Is(i-1, "INTERVAL") && slices.ContainsFunc([]string{"+", "-", ","}, func(sign string) bool { return a.text.Is(i-2, sign) })
}

// integral are the functions that give integers.
var integral = []string{"length", "extract", "quotient", "remainder", "bitand"}

// operator reads what an operator computes (14.6.1, 14.12).
func (a *asker) operator(op opcode.Op, left, right ast.ExprNode) operand {
	fn := map[opcode.Op]string{opcode.Mul: "product", opcode.IntDiv: "quotient", opcode.Mod: "remainder", opcode.And: "bitand"}[op]
	whole := func(n ast.ExprNode) bool {
		o := a.operand(n)
		return o.kind == "" && a.constant(n) != nil || strings.HasSuffix(o.typ, "int") || o.term != nil && slices.Contains(integral, o.term.Fn)
	}
	if fn == "" || fn != "product" && (!whole(left) || !whole(right)) {
		return operand{}
	}
	return of(fn, condition.Number, a.argument(left, condition.Number), a.argument(right, condition.Number))
}

// rows makes a condition of (a, b) = (1, 2), or of IN with such rows.
func (a *asker) rows(left ast.ExprNode, list ...ast.ExprNode) (c condition.Condition, ok bool) {
	row, ok := unwrapped(left).(*ast.RowExpr)
	if !ok {
		return c, false
	}
	c.Op = "or"
	for _, n := range list {
		other, ok := unwrapped(n).(*ast.RowExpr)
		if !ok || len(other.Values) != len(row.Values) {
			return c, false
		}
		equal := condition.Condition{Op: "and"}
		for i := range row.Values {
			equal.Args = append(equal.Args, a.comparison("=", row.Values[i], other.Values[i]))
		}
		c.Args = append(c.Args, equal)
	}
	return c, true
}

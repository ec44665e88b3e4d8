package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// computed reads an expression that is computed from columns: a call of PostgreSQL's own functions, an operator, a cast. Its kind is empty if it is none that a
// condition can compute.
func (a *asker) computed(n *pg.Node) operand {
	if f := n.GetFuncCall(); f != nil {
		return a.call(f)
	}
	if c := n.GetTypeCast(); c != nil && kinds[castTo(c)] == condition.Number && len(c.TypeName.ArrayBounds) == 0 {
		if o := a.operand(c.Arg); o.term != nil && strings.HasPrefix(o.term.Fn, "->") { // the text of a document's number
			return a.of("number", condition.Number, castTo(c), o.arg(condition.Text))
		}
	}
	if c := n.GetTypeCast(); castTo(c) == "time" && len(c.TypeName.ArrayBounds) == 0 {
		return a.of("time", condition.Clock, "time", a.moment(c.Arg))
	}
	if e := n.GetAExpr(); e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && len(e.Name) == 1 && e.Lexpr != nil {
		return a.operator(pgsyntax.LastName(e.Name), e.Lexpr, e.Rexpr)
	}
	return operand{}
}

// of is a function of arguments; the operand's kind is empty if it cannot be computed.
func (a *asker) of(fn string, kind condition.Kind, typ string, args ...*condition.Arg) operand {
	if t := condition.Function(fn, args...); t != nil {
		return operand{kind: kind, typ: typ, term: t, utc: a.session.UTC}
	}
	return operand{}
}

// arg is the operand as an argument of a term; nil if it is of another kind.
func (o operand) arg(kind condition.Kind) *condition.Arg {
	switch {
	case o.kind != kind || o.day || o.typ == "enum":
		return nil
	case o.term != nil:
		return &condition.Arg{Term: o.term}
	}
	return &condition.Arg{Column: o.name}
}

// argument is an expression as an argument of a term: of columns, or a constant.
func (a *asker) argument(n *pg.Node, kind condition.Kind, typ string) *condition.Arg {
	if arg := a.operand(n).arg(kind); arg != nil {
		return arg
	}
	if v, ok := a.value(n, kind, typ); ok {
		return &condition.Arg{Value: v}
	}
	return nil
}

// moment is a date, or a date and time, as an argument: one with a time zone in UTC, if that is the session's.
func (a *asker) moment(n *pg.Node) *condition.Arg {
	o := a.operand(n)
	if arg := o.arg(condition.Instant); arg != nil && a.session.UTC {
		return &condition.Arg{Term: &condition.Term{Fn: "utc", Args: []condition.Arg{*arg}}}
	}
	for _, kind := range []condition.Kind{condition.Local, condition.Date} {
		if arg := o.arg(kind); arg != nil {
			return arg
		}
	}
	return nil
}

// textFunctions are functions of texts by PostgreSQL's names, with how many arguments that are integers follow the text.
var textFunctions = map[string]struct {
	fn          string
	least, most int
}{
	"btrim": {"trim", 0, 0}, "ltrim": {"ltrim", 0, 0}, "rtrim": {"rtrim", 0, 0}, "lower": {"lower", 0, 0}, "upper": {"upper", 0, 0},
	"left": {"left", 1, 1}, "right": {"right", 1, 1}, "substring": {"substr", 1, 2}, "substr": {"substr", 1, 2},
}

// call reads a call of a function (manual, 9.3, 9.4, 9.9).
func (a *asker) call(f *pg.FuncCall) operand {
	name := pgsyntax.LastName(f.Funcname)
	if len(f.Args) == 0 || !own(a.scene, f, name) {
		return operand{}
	}
	first, last := f.Args[0], f.Args[len(f.Args)-1]
	if t, known := textFunctions[name]; known && len(f.Args) > t.least && len(f.Args) <= t.most+1 {
		args := []*condition.Arg{a.operand(first).arg(condition.Text)}
		for _, n := range f.Args[1:] {
			args = append(args, a.argument(n, condition.Number, "int4"))
		}
		return a.of(t.fn, condition.Text, "text", args...)
	}
	switch {
	case slices.Contains([]string{"length", "char_length", "character_length"}, name) && len(f.Args) == 1:
		return a.of("length", condition.Number, "int4", a.operand(first).arg(condition.Text))
	case name == "abs" && len(f.Args) == 1:
		return a.of("abs", condition.Number, a.operand(first).typ, a.operand(first).arg(condition.Number))
	case name == "mod" && len(f.Args) == 2:
		return a.operator("%", first, last)
	case (name == "extract" || name == "date_part") && len(f.Args) == 2:
		field := &condition.Arg{}
		if field.Value, _ = a.value(first, condition.Text, "text"); field.Value == nil {
			return operand{}
		}
		if name == "extract" { // a word of the syntax, not a constant that may differ
			text := "=" + first.GetAConst().GetSval().GetSval()
			field.Value = &text
		}
		return a.of("extract", condition.Number, map[string]string{"extract": "numeric"}[name], field, a.moment(last))
	case name == "date_trunc" && len(f.Args) == 2:
		kind, typ := condition.Local, "timestamp"
		if a.operand(last).kind != condition.Local {
			kind, typ = condition.Instant, "timestamptz"
		}
		if o := a.operand(last); o.kind == condition.Date && !a.session.UTC { // of a date, it is in the session's time zone
			return operand{}
		}
		return a.of("date_trunc", kind, typ, a.argument(first, condition.Text, "text"), a.moment(last))
	case name == "to_char" && len(f.Args) == 2:
		return a.of("to_char", condition.Text, "text", a.moment(first), a.argument(last, condition.Text, "text"))
	}
	return operand{}
}

// operator reads what an operator computes (manual, 9.3, 9.4, 9.9).
func (a *asker) operator(op string, left, right *pg.Node) operand {
	x, y := a.operand(left), a.operand(right)
	whole := func(o operand, n *pg.Node) bool {
		return strings.HasPrefix(o.typ, "int") || o.kind == "" && (n.GetAConst().GetIval() != nil || n.GetParamRef() != nil) // which has the type of the other side
	}
	switch op {
	case "->", "->>", "#>>":
		kind, typ := condition.Text, "text"
		if op == "->" {
			kind, typ = condition.JSON, "jsonb"
		}
		if right.GetAConst().GetSval() == nil && right.GetParamRef() == nil {
			return operand{} // an index
		}
		return a.of(op, kind, typ, x.arg(condition.JSON), a.argument(right, condition.Text, map[bool]string{true: "text[]", false: "text"}[op == "#>>"]))
	case "||":
		if x.kind == condition.Text || y.kind == condition.Text {
			return a.of("concat", condition.Text, "text", a.argument(left, condition.Text, "text"), a.argument(right, condition.Text, "text"))
		}
	case "*", "/", "%", "&":
		typ := x.typ
		if typ != y.typ && y.kind != "" {
			if typ = ""; x.kind == "" {
				typ = y.typ
			}
		}
		if op != "*" && (!whole(x, left) || !whole(y, right)) || typ == "" && (right.GetParamRef() != nil || left.GetParamRef() != nil) {
			return operand{}
		}
		fn := map[string]string{"*": "product", "/": "quotient", "%": "remainder", "&": "bitand"}[op]
		o := a.of(fn, condition.Number, typ, a.argument(left, condition.Number, typ), a.argument(right, condition.Number, typ))
		if wider(left) || wider(right) {
			o.typ = ""
		}
		return o
	case "+", "-":
		cast := right.GetTypeCast()
		if castTo(cast) != "interval" || cast.Arg.GetAConst().GetSval() == nil || len(cast.TypeName.ArrayBounds) > 0 {
			return operand{}
		}
		interval, _ := a.value(cast.Arg, condition.Text, "text")
		kind, typ := x.kind, x.typ
		if kind == condition.Date {
			kind, typ = condition.Local, "timestamp"
		}
		return a.of(map[string]string{"+": "plus", "-": "minus"}[op], kind, typ, a.moment(left), &condition.Arg{Value: interval})
	}
	return operand{}
}

// containing makes a condition of an operator of documents or arrays (manual, 9.16, 9.19).
func (a *asker) containing(e *pg.A_Expr, op string, of operand, right *pg.Node) condition.Condition {
	unsure := condition.Unknown("a comparison of type %s", of.typ)
	if e.Kind != pg.A_Expr_Kind_AEXPR_OP || right != e.Rexpr {
		return unsure
	}
	typ := "jsonb"
	switch element := of.kind.Element(); {
	case op == "?":
		typ = "text"
	case element != "":
		typ = strings.TrimPrefix(of.typ, "_") + "[]"
		array := right
		if c := array.GetTypeCast(); c != nil && len(c.TypeName.ArrayBounds) == 1 && kinds[castTo(c)] == element {
			array = c.Arg
		}
		if list := array.GetAArrayExpr().GetElements(); len(list) > 0 {
			var values []condition.Value
			for _, n := range list {
				v, ok := a.value(n, element, strings.TrimPrefix(of.typ, "_"))
				if !ok {
					return unsure
				}
				values = append(values, v)
			}
			return of.open("elements "+op, values...)
		}
		if array.GetAConst() != nil {
			right = array
		}
	case castTo(right.GetTypeCast()) == "jsonb" && len(right.GetTypeCast().TypeName.ArrayBounds) == 0:
		right = right.GetTypeCast().Arg
	}
	v, ok := a.value(right, condition.Text, typ)
	if !ok || !slices.Contains([]string{"&&", "@>", "<@", "?"}, op) {
		return unsure
	}
	return of.open(op, v)
}

// member makes a condition of value = ANY (column).
func (a *asker) member(e *pg.A_Expr, op string) (c condition.Condition, ok bool) {
	if e.Kind != pg.A_Expr_Kind_AEXPR_OP_ANY || op != "=" {
		return c, false
	}
	of := a.operand(e.Rexpr)
	if of.kind.Element() == "" {
		return c, false
	}
	v, ok := a.value(e.Lexpr, of.kind.Element(), strings.TrimPrefix(of.typ, "_"))
	return of.open("member", v), ok
}

// rows makes a condition of (a, b) = (1, 2), or of IN with such rows (manual, 9.25.5).
func (a *asker) rows(e *pg.A_Expr, op string) (c condition.Condition, ok bool) {
	left, list := e.Lexpr.GetRowExpr(), []*pg.Node{e.Rexpr}
	if e.Kind == pg.A_Expr_Kind_AEXPR_IN {
		list = e.Rexpr.GetList().GetItems()
	} else if e.Kind != pg.A_Expr_Kind_AEXPR_OP {
		return c, false
	}
	if left == nil || op != "=" && op != "<>" {
		return c, false
	}
	c.Op = "or"
	for _, n := range list {
		right := n.GetRowExpr()
		if right == nil || len(right.Args) != len(left.Args) {
			return c, false
		}
		row := condition.Condition{Op: "and"}
		for i := range left.Args {
			equal := &pg.A_Expr{Kind: pg.A_Expr_Kind_AEXPR_OP, Name: []*pg.Node{pg.MakeStrNode("=")}, Lexpr: left.Args[i], Rexpr: right.Args[i]}
			row.Args = append(row.Args, a.comparison(equal))
		}
		c.Args = append(c.Args, row)
	}
	if op == "<>" {
		c = condition.Not(c)
	}
	return c, true
}

// caseOf gives the argument of PostgreSQL's own lower() or upper().
func caseOf(x *scene, n *pg.Node) (fn string, arg *pg.Node) {
	f := n.GetFuncCall()
	if fn = pgsyntax.LastName(f.GetFuncname()); fn != "lower" && fn != "upper" || len(f.Args) != 1 || !x.steady(f) {
		return "", nil
	}
	return fn, f.Args[0]
}

// patternOf is what stands behind LIKE: the pattern, and the character of ESCAPE if there is one.
func patternOf(n *pg.Node) []*pg.Node {
	if f := n.GetFuncCall(); f != nil && len(f.Funcname) == 2 && f.Funcname[0].GetString_().GetSval() == "pg_catalog" && pgsyntax.LastName(f.Funcname) == "like_escape" && len(f.Args) == 2 {
		return f.Args
	}
	return []*pg.Node{n}
}

// cased makes a condition of LOWER(column) = value, or UPPER, or LIKE, where the value may stand in the same function.
func (a *asker) cased(e *pg.A_Expr, left, right *pg.Node) (c condition.Condition, ok bool) {
	op := pgsyntax.LastName(e.Name)
	fn, arg := caseOf(a.scene, left)
	like := e.Kind == pg.A_Expr_Kind_AEXPR_LIKE && left == e.Lexpr
	if fn == "" || !like && (e.Kind != pg.A_Expr_Kind_AEXPR_OP || op != "=" && op != "<>") {
		return c, false
	}
	name, at := comparedColumn(arg, a.rel, a.ref)
	if name == "" || kindOf(at) != condition.Text || at.Type == "enum" {
		return c, false
	}
	other, of := caseOf(a.scene, right)
	if other == fn {
		right = of
	}
	v, ok := a.value(right, condition.Text, at.Type)
	c = condition.Open(condition.Cased(fn, like, other == fn), condition.Text, name, v)
	if op == "<>" || op == "!~~" {
		c = condition.Not(c)
	}
	return c, ok
}

package postgres

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// operand is what a condition compares with values: a column, or a term that is computed from columns. Without a kind it is neither.
type operand struct {
	kind condition.Kind
	typ  string
	name string
	term *condition.Term
	sort bool            // the order of texts may be certain
	day  bool            // the day of a date and time is compared
	utc  bool            // the session's time zone is UTC
	zone condition.Value // where the day is; nil if that is of no matter
}

// reads is the kind of the values that it is compared with.
func (o operand) reads() condition.Kind {
	if o.day {
		return condition.Date
	}
	return o.kind
}

func (o operand) open(op string, values ...condition.Value) condition.Condition {
	kind := o.kind
	if o.utc {
		switch kind {
		case condition.Instant:
			kind = condition.Universal
		case condition.InstantRange:
			kind = condition.UniversalRange
		}
	}
	switch {
	case o.kind == condition.Text && !o.sort && strings.ContainsAny(op, "<>") && op != "<>":
		of := condition.Condition{Column: o.name, Term: o.term}
		return condition.Unknown("the order of %s depends on its collation", of.Of())
	case o.day && op == "<>":
		return condition.Not(o.open("=", values...))
	case o.day:
		op = "day" + op
		if o.zone != nil {
			values = append(values, o.zone)
		}
	}
	if o.term != nil {
		return condition.OpenTerm(op, kind, o.term, values...)
	}
	return condition.Open(op, kind, o.name, values...)
}

// operand reads one side of a comparison.
func (a *asker) operand(n *pg.Node) operand {
	o := operand{utc: a.session.UTC}
	if name, at := comparedColumn(n, a.rel, a.ref); name != "" {
		o.kind, o.typ, o.name, o.sort = kindOf(at), at.Type, name, at.Sorts
		return o
	}
	if day := dayOf(a.scene, n); day != nil {
		in := a.operand(day)
		if in.name != "" && in.kind == condition.Date {
			return in // the day of a day, as Laravel asks for it
		}
		if f := day.GetFuncCall(); f != nil && own(a.scene, f, "timezone") && len(f.Args) == 2 && f.Args[0].GetAConst().GetSval() != nil { // AT TIME ZONE
			in = a.operand(f.Args[1])
			in.utc = true // or nothing is certain
			in.zone, _ = a.value(f.Args[0], condition.Text, "text")
		}
		if in.name == "" || (in.kind != condition.Local || in.zone != nil) && !(in.kind == condition.Instant && in.utc) {
			return operand{}
		}
		in.day, in.typ = true, "date"
		return in
	}
	if c := n.GetCoalesceExpr(); c != nil && len(c.Args) == 2 {
		in := a.operand(c.Args[0])
		if in.name == "" || in.kind == condition.Other || in.kind.Bounds() != "" || in.typ == "enum" {
			return operand{}
		}
		v, ok := a.value(c.Args[1], in.kind, in.typ)
		if !ok {
			return operand{}
		}
		if wider(c.Args[1]) && in.typ != "numeric" {
			in.typ = "" // what is compared with it may have the type of the constant
		}
		in.term, in.name = &condition.Term{Fn: "coalesce", Args: []condition.Arg{{Column: in.name}, {Value: v}}}, ""
		return in
	}
	if f := n.GetFuncCall(); f != nil {
		kind := kinds[pgsyntax.LastName(f.Funcname)]
		if args, ok := a.rangeOf(f, func(n *pg.Node) (condition.Arg, bool) {
			name, at := comparedColumn(n, a.rel, a.ref)
			return condition.Arg{Column: name}, name != "" && at.Type == boundTypes[pgsyntax.LastName(f.Funcname)]
		}); ok {
			o.kind, o.typ, o.term = kind, pgsyntax.LastName(f.Funcname), &condition.Term{Fn: "range", Args: args}
			return o
		}
	}
	return a.computed(n)
}

// between makes a condition of BETWEEN. The server makes two comparisons of it, whose operators it looks for one by one (transformAExprBetween in parse_expr.c).
func (a *asker) between(e *pg.A_Expr) (c condition.Condition, ok bool) {
	ends := e.Rexpr.GetList().GetItems()
	if e.Kind != pg.A_Expr_Kind_AEXPR_BETWEEN && e.Kind != pg.A_Expr_Kind_AEXPR_NOT_BETWEEN || len(ends) != 2 {
		return c, false
	}
	for i, op := range []string{">=", "<="} {
		c.Args = append(c.Args, a.comparison(&pg.A_Expr{Kind: pg.A_Expr_Kind_AEXPR_OP, Name: []*pg.Node{pg.MakeStrNode(op)}, Lexpr: e.Lexpr, Rexpr: ends[i]}))
	}
	if c.Op = "and"; e.Kind == pg.A_Expr_Kind_AEXPR_NOT_BETWEEN {
		c = condition.Not(c)
	}
	return c, true
}

// own reports whether a call is that of a function of PostgreSQL's own.
func own(x *scene, f *pg.FuncCall, name string) bool {
	if pgsyntax.LastName(f.Funcname) != name || len(f.Funcname) > 2 || len(f.Funcname) == 2 && f.Funcname[0].GetString_().GetSval() != "pg_catalog" {
		return false
	}
	return x.function(name)&rewrite.FunctionUser == 0 && f.Over == nil && f.AggFilter == nil && !f.AggDistinct && !f.AggStar && !f.FuncVariadic && len(f.AggOrder) == 0
}

// castTo is the type of PostgreSQL's own that a cast is to, arrays aside; empty if that is not certain, or lengths are given.
func castTo(c *pg.TypeCast) string {
	names := c.GetTypeName().GetNames()
	if len(names) > 2 || len(names) == 2 && names[0].GetString_().GetSval() != "pg_catalog" || len(c.GetTypeName().GetTypmods()) > 0 {
		return ""
	}
	return pgsyntax.LastName(names)
}

// dayOf gives what date(...) or a cast to date is of.
func dayOf(x *scene, n *pg.Node) *pg.Node {
	if c := n.GetTypeCast(); castTo(c) == "date" && len(c.TypeName.ArrayBounds) == 0 {
		return c.Arg
	}
	if f := n.GetFuncCall(); f != nil && own(x, f, "date") && len(f.Args) == 1 {
		return f.Args[0]
	}
	return nil
}

// boundTypes are the types of the bounds of ranges.
var boundTypes = map[string]string{"int4range": "int4", "int8range": "int8", "numrange": "numeric", "daterange": "date", "tsrange": "timestamp", "tstzrange": "timestamptz"}

// rangeOf gives the arguments of a call that makes a range: two bounds and the text that says which of them belong to it.
func (a *asker) rangeOf(f *pg.FuncCall, bound func(*pg.Node) (condition.Arg, bool)) (args []condition.Arg, ok bool) {
	if name := pgsyntax.LastName(f.Funcname); boundTypes[name] == "" || !own(a.scene, f, name) || len(f.Args) < 2 || len(f.Args) > 3 {
		return nil, false
	}
	half := "=[)"
	kinds := &half
	if len(f.Args) == 3 {
		if kinds, ok = a.value(f.Args[2], condition.Text, "text"); !ok {
			return nil, false
		}
	}
	for _, n := range f.Args[:2] {
		arg, ok := bound(n)
		if !ok {
			return nil, false
		}
		args = append(args, arg)
	}
	return append(args, condition.Arg{Value: kinds}), true
}

// ranges makes a condition of a comparison of ranges.
func (a *asker) ranges(op string, of operand, right *pg.Node) condition.Condition {
	unsure := condition.Unknown("a comparison of type %s with something else than values", of.typ)
	elem := boundTypes[of.typ]
	if f := right.GetFuncCall(); f != nil && pgsyntax.LastName(f.Funcname) == of.typ {
		args, ok := a.rangeOf(f, func(n *pg.Node) (condition.Arg, bool) {
			v, ok := a.value(n, of.kind.Bounds(), elem)
			return condition.Arg{Value: v}, ok
		})
		if !ok {
			return unsure
		}
		return of.open(op, args[0].Value, args[1].Value, args[2].Value)
	}
	cast := castTo(right.GetTypeCast())
	switch {
	case op == "@>" && (cast == elem || right.GetAConst().GetIval() != nil && elem == "int4"):
		if v, ok := a.value(right, of.kind.Bounds(), elem); ok {
			return of.open("has", v)
		}
	case op == "&&", op == "=", op == "<>", (op == "@>" || op == "<@") && cast == of.typ:
		if v, ok := a.value(right, of.kind, of.typ); ok {
			return of.open(op, v)
		}
	}
	return unsure
}

// overlapping makes a condition of (begin, end) OVERLAPS (begin, end), where one of the two has columns (manual, 9.9).
func (a *asker) overlapping(f *pg.FuncCall) condition.Condition {
	unsure := condition.Unknown("OVERLAPS of something else than columns with values")
	if !own(a.scene, f, "overlaps") || len(f.Args) != 4 {
		return unsure
	}
	columns, values := f.Args[:2], f.Args[2:]
	if a.operand(columns[0]).name == "" {
		columns, values = values, columns
	}
	from, to := a.operand(columns[0]), a.operand(columns[1])
	if from.name == "" || to.name == "" || from.typ != to.typ || from.day || to.day || !slices.Contains([]string{"date", "timestamp", "timestamptz"}, from.typ) {
		return unsure
	}
	v, ok := a.value(values[0], from.kind, from.typ)
	w, ok2 := a.value(values[1], from.kind, from.typ)
	if !ok || !ok2 {
		return unsure
	}
	from.term = &condition.Term{Fn: "period", Args: []condition.Arg{{Column: from.name}, {Column: to.name}}}
	return from.open("overlaps", v, w)
}

// value is that of the planner, and notes for which type the condition takes a parameter.
func (a *asker) value(n *pg.Node, kind condition.Kind, typ string) (condition.Value, bool) {
	v, ok := a.planner.value(n, kind, typ, &a.ask)
	if p := withoutCasts(n).GetParamRef(); p != nil && ok {
		a.typed[p.Location] = a.ask.Types[int(p.Number)]
	}
	return v, ok
}

// certain leaves out the parameters of a condition to which the server may have given another type: that of a place elsewhere in the statement. A cast gives its type,
// and the place of a new value of a column, or beside a column, that of the column.
func (a *asker) certain(c condition.Condition) condition.Condition {
	if len(a.ask.Types) == 0 {
		return c
	}
	beside := func(n *pg.Node, column string, computes bool) {
		at := a.rel.Attribute(column)
		if p := n.GetParamRef(); p != nil && at != nil && a.typed[p.Location] == "" && (!computes || kindOf(at) == condition.Number) {
			a.typed[p.Location] = at.Type
		}
	}
	var params []*pg.ParamRef
	pgsyntax.Walk(a.node, func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.ParamRef:
			params = append(params, n)
		case *pg.TypeCast:
			if p := n.Arg.GetParamRef(); p != nil && len(n.TypeName.ArrayBounds) == 0 && a.typed[p.Location] == "" {
				a.typed[p.Location] = castTo(n)
			}
		case *pg.UpdateStmt:
			if rel, _ := a.resolve(n.Relation); rel == a.rel {
				for _, t := range n.TargetList {
					beside(t.GetResTarget().GetVal(), t.GetResTarget().GetName(), false)
				}
			}
		case *pg.A_Expr:
			op := pgsyntax.LastName(n.Name)
			if computes := mirrored[op] == ""; n.Kind == pg.A_Expr_Kind_AEXPR_OP && (!computes || strings.Contains("+-*/", op)) {
				beside(n.Rexpr, pgsyntax.Column(n.Lexpr, a.ref), computes)
				beside(n.Lexpr, pgsyntax.Column(n.Rexpr, a.ref), computes)
			}
		}
		return true
	})
	other := func(p *pg.ParamRef) bool { return a.typed[p.Location] != a.ask.Types[int(p.Number)] }
	nobody := "$0" // of which nobody knows the value
	return c.Mapped(func(v condition.Value) condition.Value {
		if v != nil && slices.ContainsFunc(params, func(p *pg.ParamRef) bool { return *v == fmt.Sprint("$", p.Number) && other(p) }) {
			return &nobody
		}
		return v
	})
}

// wider reports whether an expression is a number that may be of another type than integer.
func wider(n *pg.Node) bool { return n.GetTypeCast() != nil || n.GetAConst().GetFval() != nil }

// difference gives left - right, of two sums of columns that are numbers, and of constants. ok is false if there is no column, or only one that is compared
// with a value.
func (a *asker) difference(left, right *pg.Node) (t *condition.Term, ok bool) {
	computes := func(n *pg.Node) bool { return n.GetAExpr() != nil }
	column := func(n *pg.Node) bool { return n.GetColumnRef() != nil }
	if !computes(left) && !computes(right) && !(column(left) && column(right)) {
		return nil, false
	}
	typ, mixed := "", false
	t = &condition.Term{Fn: "sum"}
	var nodes []*pg.Node // of the arguments
	var add func(n *pg.Node, minus bool) bool
	add = func(n *pg.Node, minus bool) bool {
		if e := n.GetAExpr(); e != nil {
			op := pgsyntax.LastName(e.Name)
			return e.Kind == pg.A_Expr_Kind_AEXPR_OP && len(e.Name) == 1 && (op == "+" || op == "-") && (e.Lexpr == nil || add(e.Lexpr, minus)) && add(e.Rexpr, minus != (op == "-"))
		}
		name, at := comparedColumn(n, a.rel, a.ref)
		switch {
		case name == "":
		case kindOf(at) != condition.Number:
			return false
		default:
			mixed = mixed || typ != "" && at.Type != typ
			typ = at.Type
		}
		mixed = mixed || wider(n)
		nodes = append(nodes, n)
		return t.Add(condition.Arg{Minus: minus, Column: name})
	}
	if !add(left, false) || !add(right, true) || typ == "" {
		return nil, false
	}
	for i := range t.Args {
		if arg := &t.Args[i]; arg.Column == "" { // by now the type of the columns is known
			if arg.Value, ok = a.value(nodes[i], condition.Number, typ); !ok || mixed && nodes[i].GetParamRef() != nil {
				return nil, false // a parameter has the type of what is beside it
			}
		}
	}
	return t, true
}

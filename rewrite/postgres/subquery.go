package postgres

import (
	"slices"

	"wirecheck/statement/pgsyntax"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// subqueries are those in the expressions of a query of which it is certain what a row of its answer tells.
type subqueries struct {
	outside []scan // evaluated once for the statement
	inside  []scan // evaluated for each row, in the query's own select list
	none    int    // tables of which no row was read, or there would be no answer
	silent  bool   // an answer without rows does not tell what they read
}

// subqueries looks at the subqueries of the select list and of the conditions that WHERE joins by AND. The server need
// not evaluate a subquery, nor to its end (manual, 4.2.14 and 9.23). Where there is a row in the answer, these were:
// the ones in the select list, as long as no expression around may pass them over; and of the conditions, which all were
// true, what no other row could have made true.
func (x *instrumentation) subqueries(s *pg.SelectStmt, grouped bool) (out subqueries) {
	before := x.whys
	defer func() { x.whys = before }() // what is not told is noted by the number of tables
	x.enterAll(s, func() {
		for _, t := range s.TargetList {
			x.certain(t.GetResTarget().GetVal(), func(l *pg.SubLink) {
				if l.SubLinkType == pg.SubLinkType_EXPR_SUBLINK || l.SubLinkType == pg.SubLinkType_ARRAY_SUBLINK {
					out.value(x, l.Subselect.GetSelectStmt(), !grouped)
				}
			})
		}
		if grouped && (len(s.GroupClause) == 0 || slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool { return n.GetGroupingSet() != nil })) {
			return // it has a row in its answer even if WHERE lets none pass
		}
		for _, n := range conjuncts(s.WhereClause) {
			told := len(out.outside) + len(out.inside) + out.none
			x.condition(&out, s, n, !grouped)
			out.silent = out.silent || told < len(out.outside)+len(out.inside)+out.none
		}
	})
	return out
}

func (x *scene) enterAll(s *pg.SelectStmt, f func()) {
	defer x.enter(s.WithClause)()
	f()
}

// certain calls f for the subqueries of an expression that are evaluated whenever it is.
func (x *judge) certain(n *pg.Node, f func(*pg.SubLink)) {
	switch e := n.GetNode().(type) {
	case *pg.Node_SubLink:
		f(e.SubLink)
	case *pg.Node_TypeCast:
		x.certain(e.TypeCast.Arg, f)
	case *pg.Node_CoalesceExpr:
		x.certain(e.CoalesceExpr.Args[0], f)
	case *pg.Node_AExpr:
		// The planner may find that an operator gives NULL for a constant or a parameter, and drop what is beside it.
		a := e.AExpr
		if a.Kind == pg.A_Expr_Kind_AEXPR_OP && solid(a.Lexpr) && solid(a.Rexpr) {
			x.certain(a.Lexpr, f)
			x.certain(a.Rexpr, f)
		}
	}
}

func solid(n *pg.Node) bool {
	switch e := n.GetNode().(type) {
	case *pg.Node_ColumnRef, *pg.Node_SubLink:
		return true
	case *pg.Node_AConst:
		return !e.AConst.Isnull
	case *pg.Node_TypeCast:
		return solid(e.TypeCast.Arg)
	case *pg.Node_CoalesceExpr:
		return true
	case *pg.Node_AExpr:
		return e.AExpr.Kind == pg.A_Expr_Kind_AEXPR_OP && solid(e.AExpr.Lexpr) && solid(e.AExpr.Rexpr)
	}
	return false
}

// value is a subquery whose value is taken: all of it was read.
func (o *subqueries) value(x *instrumentation, s *pg.SelectStmt, inside bool) {
	if x.closed(s) {
		if list, ok := x.entire(s); ok {
			o.outside = append(o.outside, list...)
		}
		return
	}
	if s == nil || !inside || s.Op != pg.SetOperation_SETOP_NONE || s.WithClause != nil || len(s.LockingClause) > 0 || x.limited(s) {
		return
	}
	if sc, ok := x.scanOf(s, true); ok {
		if x.few(s) {
			sc.limit = 1
		}
		o.inside = append(o.inside, sc)
	}
}

// limited reports whether a query may end before it has read everything.
func (x *judge) limited(s *pg.SelectStmt) bool {
	if s.LimitCount == nil && s.LimitOffset == nil {
		return false
	}
	one, _ := x.aggregates(s)
	return !one || len(s.GroupClause) > 0
}

// condition looks at one condition that was true for each row of the answer.
func (x *instrumentation) condition(o *subqueries, s *pg.SelectStmt, n *pg.Node, inside bool) {
	not := false
	if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_NOT_EXPR {
		not, n = true, b.Args[0]
	}
	l := n.GetSubLink()
	if l == nil {
		if !not {
			x.certain(n, func(l *pg.SubLink) {
				if l.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && x.closed(l.Subselect.GetSelectStmt()) {
					o.value(x, l.Subselect.GetSelectStmt(), false)
				}
			})
		}
		return
	}
	q := l.Subselect.GetSelectStmt()
	switch {
	case l.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK && not:
		if x.simple(unlimited(q)) {
			o.none += len(x.content(q).tables)
		}
	case l.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK:
		o.witness(x, s, q, inside)
	case l.SubLinkType == pg.SubLinkType_ALL_SUBLINK && !not, l.SubLinkType == pg.SubLinkType_ANY_SUBLINK && not:
		if x.closed(q) { // it was compared with every row
			o.value(x, q, false)
		}
	case l.SubLinkType == pg.SubLinkType_ANY_SUBLINK && !not:
		if one, _ := x.aggregates(q); one && len(q.GroupClause) == 0 && x.closed(q) {
			o.value(x, q, false)
		} else {
			o.witness(x, s, q, false)
		}
	}
}

// unlimited is a query within NOT EXISTS without its LIMIT: where that is true, no row was read, or the limit let none.
func unlimited(q *pg.SelectStmt) *pg.SelectStmt {
	if q == nil || q.LimitOffset != nil || q.LimitCount == nil {
		return q
	}
	// Only parts are looked at, so the copy may share them.
	return &pg.SelectStmt{
		DistinctClause: q.DistinctClause, TargetList: q.TargetList, FromClause: q.FromClause, WhereClause: q.WhereClause, GroupClause: q.GroupClause, HavingClause: q.HavingClause,
		WindowClause: q.WindowClause, ValuesLists: q.ValuesLists, SortClause: q.SortClause, LockingClause: q.LockingClause, WithClause: q.WithClause, Op: q.Op, Larg: q.Larg, Rarg: q.Rarg,
	}
}

// witness is a subquery of which some row made the condition true. If it has one row only, it was that one.
func (o *subqueries) witness(x *instrumentation, s, q *pg.SelectStmt, inside bool) {
	if !x.simple(q) {
		return
	}
	closed := x.closed(q)
	sc, ok := x.scanOf(q, !closed)
	sc.limit = 1
	inner := !slices.ContainsFunc(q.FromClause, func(n *pg.Node) bool { return n.GetJoinExpr() != nil })
	switch {
	case !ok || !inner:
	case closed:
		o.outside = append(o.outside, sc)
	case inside && !sc.params && x.safe(q, s):
		o.inside = append(o.inside, sc)
	}
}

// simple reports whether a query has a row for each one that its FROM and WHERE clauses give, at the most.
func (x *judge) simple(q *pg.SelectStmt) bool {
	if q == nil || q.Op != pg.SetOperation_SETOP_NONE || len(q.ValuesLists) > 0 || q.WithClause != nil || len(q.LockingClause) > 0 ||
		q.LimitCount != nil || q.LimitOffset != nil || len(q.GroupClause) > 0 || q.HavingClause != nil || !joined(q.FromClause) {
		return false
	}
	for _, n := range q.TargetList { // a function there may return no rows
		switch n.GetResTarget().GetVal().GetNode().(type) {
		case *pg.Node_ColumnRef, *pg.Node_AConst:
		default:
			return false
		}
	}
	return !refersSubquery(q)
}

// closed reports whether the FROM and WHERE clauses of a query certainly refer to its own tables only.
func (x *judge) closed(s *pg.SelectStmt) bool {
	switch {
	case s == nil:
		return false
	case s.Op != pg.SetOperation_SETOP_NONE:
		return s.WithClause == nil && x.closed(s.Larg) && x.closed(s.Rarg)
	case s.WithClause != nil || !joined(s.FromClause):
		return false
	}
	own := tables(s.FromClause)
	ok := true
	check := func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.SubLink:
			ok = false
		case *pg.ColumnRef:
			ok = ok && slices.ContainsFunc(own, func(rv *pg.RangeVar) bool { return x.columnOf(n, rv) })
		}
		return ok
	}
	pgsyntax.WalkAll(s.FromClause, check)
	pgsyntax.Walk(s.WhereClause, check)
	return ok
}

func tables(from []*pg.Node) (list []*pg.RangeVar) {
	pgsyntax.WalkAll(from, func(m proto.Message) bool {
		if rv, ok := m.(*pg.RangeVar); ok {
			list = append(list, rv)
		}
		_, sub := m.(*pg.SelectStmt)
		return !sub
	})
	return list
}

// safe reports whether the WHERE clause of a subquery of s is such that the server certainly finds no error in it. Its
// copy stands in front of WHERE, and so would the place of the error.
func (x *scene) safe(q, s *pg.SelectStmt) bool {
	if len(q.FromClause) != 1 || q.FromClause[0].GetRangeVar() == nil || !joined(s.FromClause) {
		return false
	}
	outer := tables(s.FromClause)
	typ := func(n *pg.Node) string {
		ref := n.GetColumnRef()
		if ref == nil {
			return ""
		}
		for i, rv := range append([]*pg.RangeVar{q.FromClause[0].GetRangeVar()}, outer...) {
			if i > 0 && len(ref.Fields) != 2 { // it could be ambiguous
				return ""
			}
			rel, _ := x.resolve(rv)
			if rel == nil || len(rv.GetAlias().GetColnames()) > 0 || !x.columnOf(ref, rv) {
				continue
			}
			for _, a := range rel.Columns {
				if a.Name == ref.Fields[len(ref.Fields)-1].GetString_().GetSval() {
					return a.Type
				}
			}
		}
		return ""
	}
	for _, n := range conjuncts(q.WhereClause) {
		e := n.GetAExpr()
		if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 {
			return false
		}
		switch pgsyntax.LastName(e.Name) {
		case "=", "<>", "<", ">", "<=", ">=":
		default:
			return false
		}
		l, r := typ(e.Lexpr), typ(e.Rexpr)
		if l == "" && r != "" {
			e, l, r = &pg.A_Expr{Rexpr: e.Lexpr}, r, ""
		}
		known := plainKeys[l] || sentKeys[l] != "" || textKeys[l] && l != "enum"
		switch c := e.Rexpr.GetAConst(); {
		case !known:
			return false
		case r != "":
			if l != r {
				return false
			}
		case c.GetIval() != nil && (l == "int4" || l == "int8" || l == "numeric"):
		case c.GetSval() != nil && (l == "text" || l == "varchar"):
		default:
			return false
		}
	}
	return true
}

package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// The server evaluates no more than it needs (manual, 4.2.14). Where what is added makes it evaluate a part of the client's text for rows for which it
// would not have, that part must be harmless: certain to find no error, whatever the rows are.

// harmlessFunctions are built-in functions that fail for no arguments.
var harmlessFunctions = map[string]bool{
	"lower": true, "upper": true, "length": true, "char_length": true, "now": true, "concat": true, "btrim": true, "ltrim": true, "rtrim": true,
	"strpos": true, "cardinality": true, "array_length": true, "floor": true, "ceil": true,
}

func (x *scene) harmlessAll(list []*pg.Node) bool {
	return !slices.ContainsFunc(list, func(n *pg.Node) bool { return !x.harmless(n) })
}

// harmless reports whether an expression, or an item of a FROM clause, certainly finds no error.
func (x *scene) harmless(n *pg.Node) bool {
	if text, _, literal := clock(x, n); text != "" {
		x.literal = x.literal || literal
		return true
	}
	switch e := n.GetNode().(type) {
	case nil, *pg.Node_ColumnRef, *pg.Node_AConst, *pg.Node_ParamRef:
		return true
	case *pg.Node_RangeVar:
		c := x.ctes[e.RangeVar.Relname]
		if c == nil || e.RangeVar.Schemaname != "" || c.asked { // within itself, its name means a table
			return true
		}
		c.asked = true
		defer func() { c.asked = false }()
		return x.harmlessQuery(c.query)
	case *pg.Node_RangeSubselect:
		return x.harmlessQuery(e.RangeSubselect.Subquery.GetSelectStmt())
	case *pg.Node_ResTarget:
		return x.harmless(e.ResTarget.Val)
	case *pg.Node_JoinExpr:
		return x.harmless(e.JoinExpr.Larg) && x.harmless(e.JoinExpr.Rarg) && x.harmless(e.JoinExpr.Quals)
	case *pg.Node_List:
		return x.harmlessAll(e.List.Items)
	case *pg.Node_AArrayExpr:
		return x.harmlessAll(e.AArrayExpr.Elements)
	case *pg.Node_BoolExpr:
		return x.harmlessAll(e.BoolExpr.Args)
	case *pg.Node_NullTest:
		return x.harmless(e.NullTest.Arg)
	case *pg.Node_BooleanTest:
		return x.harmless(e.BooleanTest.Arg)
	case *pg.Node_CoalesceExpr:
		return x.harmlessAll(e.CoalesceExpr.Args)
	case *pg.Node_TypeCast: // of a constant or parameter: it was evaluated before the first row
		switch e.TypeCast.Arg.GetNode().(type) {
		case *pg.Node_AConst, *pg.Node_ParamRef:
			return true
		}
		return pgsyntax.LastName(e.TypeCast.GetTypeName().GetNames()) == "text" && x.harmless(e.TypeCast.Arg)
	case *pg.Node_FuncCall:
		name := pgsyntax.LastName(e.FuncCall.Funcname)
		return harmlessFunctions[name] && x.function(name)&rewrite.FunctionUser == 0 && e.FuncCall.Over == nil && x.harmlessAll(e.FuncCall.Args)
	case *pg.Node_AExpr:
		return harmlessOperator(e.AExpr) && x.harmless(e.AExpr.Lexpr) && x.harmless(e.AExpr.Rexpr)
	case *pg.Node_SubLink:
		switch e.SubLink.SubLinkType {
		case pg.SubLinkType_EXISTS_SUBLINK, pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
			return x.harmless(e.SubLink.Testexpr) && len(e.SubLink.OperName) < 2 && x.harmlessQuery(e.SubLink.Subselect.GetSelectStmt())
		}
	}
	return false
}

// harmlessQuery reports whether a query has FROM and WHERE clauses and a select list only, and certainly finds no error.
func (x *scene) harmlessQuery(s *pg.SelectStmt) bool {
	return s != nil && s.WithClause == nil && s.LimitCount == nil && s.LimitOffset == nil && s.Op == pg.SetOperation_SETOP_NONE && len(s.GroupClause) == 0 && s.HavingClause == nil && x.harmlessAll(s.FromClause) && x.harmless(s.WhereClause) && x.harmlessAll(s.TargetList)
}

func harmlessOperator(e *pg.A_Expr) bool {
	name := pgsyntax.LastName(e.Name)
	if len(e.Name) != 1 {
		return false
	}
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		pattern := e.Rexpr.GetAConst().GetSval()
		return pattern != nil && !strings.Contains(pattern.Sval, `\`)
	case pg.A_Expr_Kind_AEXPR_SIMILAR:
		return false
	case pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN, pg.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return true
	}
	switch name {
	case "=", "<>", "<", ">", "<=", ">=", "||":
		return true
	case "&&", "@>", "<@": // of ranges; operators of extensions by these names may find errors
		return ofRange(e.Lexpr) || ofRange(e.Rexpr)
	}
	return false
}

// ofRange reports whether an expression is a cast to a type of ranges, or to one of their bounds.
func ofRange(n *pg.Node) bool {
	typ := n.GetTypeCast().GetTypeName()
	to := pgsyntax.LastName(typ.GetNames())
	if len(typ.GetArrayBounds()) > 0 {
		return false
	}
	for of, bound := range boundTypes {
		if to == of || to == bound {
			return true
		}
	}
	return false
}

// unread reports whether the server may answer a query without reading all that its FROM and WHERE clauses give, where collecting versions would make it
// do so. Without aggregates and groups, HAVING alone decides whether there is a row; min and max are the ends of an index.
func (x *judge) unread(s *pg.SelectStmt) bool {
	grouped := slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool {
		g := n.GetGroupingSet()
		return g == nil || len(g.Content) > 0
	})
	if grouped {
		return false
	}
	own := &pg.SelectStmt{TargetList: append(slices.Clip(s.TargetList), s.HavingClause), SortClause: s.SortClause}
	sure, _ := x.aggregates(own)
	if !sure {
		return s.HavingClause != nil || len(s.GroupClause) > 0
	}
	return x.few(own) && !(x.harmless(s.WhereClause) && x.harmlessAll(s.FromClause))
}

package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// extremeShown gives what the only cell of the answer shows of the greatest or least value of a column, if the query asks for no more: the next number of an invoice is
// made of it. It is nil if that is not certain.
func extremeShown(x *planner, s *pg.SelectStmt, rv *pg.RangeVar, ask *rewrite.Ask) *rewrite.Extreme {
	rel, _ := x.resolve(rv)
	if !ask.Single || ask.Joined || ask.Exists || ask.Around || len(s.TargetList) != 1 || s.HavingClause != nil || rel == nil || len(rv.GetAlias().GetColnames()) > 0 {
		return nil
	}
	e, op := &rewrite.Extreme{}, ""
	constant := func(n *pg.Node) condition.Value {
		if n.GetAConst() == nil {
			return nil
		}
		v, _ := x.value(n, condition.Number, "int8", ask)
		return v
	}
	n := s.TargetList[0].GetResTarget().GetVal()
	if sum := n.GetAExpr(); sum != nil && sum.Kind == pg.A_Expr_Kind_AEXPR_OP && len(sum.Name) == 1 {
		if op, e.Plus, n = pgsyntax.LastName(sum.Name), constant(sum.Rexpr), sum.Lexpr; e.Plus == nil {
			return nil
		}
	}
	if c := n.GetCoalesceExpr(); c != nil && len(c.Args) == 2 {
		if e.Instead, n = constant(c.Args[1]), c.Args[0]; e.Instead == nil {
			return nil
		}
	}
	f := n.GetFuncCall()
	if f == nil || len(f.Args) != 1 || f.AggFilter != nil || f.Over != nil || len(f.Funcname) > 1 && f.Funcname[0].GetString_().GetSval() != "pg_catalog" {
		return nil
	}
	name, ref := pgsyntax.LastName(f.Funcname), f.Args[0].GetColumnRef()
	e.Least = name == "min"
	if name != "max" && name != "min" || op != "" && op != map[bool]string{false: "+", true: "-"}[e.Least] || ref == nil || !x.columnOf(ref, rv) {
		return nil
	}
	a := rel.Attribute(pgsyntax.LastName(ref.Fields))
	if a == nil || !slices.Contains([]string{"int2", "int4", "int8"}, a.Type) {
		return nil
	}
	e.Column = a.Name
	return e
}

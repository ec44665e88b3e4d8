package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/pgsyntax"
)

// withoutLimit takes LIMIT away from the tree of a query for one group at most: WHERE fixes what it groups by, so LIMIT 1 hides nothing. ORMs send one wherever they are
// asked for one object. The text keeps it, and the tree gets it back.
func withoutLimit(x *planner, s *pg.SelectStmt) (restore func()) {
	count, skip, option := s.LimitCount, s.LimitOffset, s.LimitOption
	restore = func() { s.LimitCount, s.LimitOffset, s.LimitOption = count, skip, option }
	n := count.GetAConst().GetIval()
	if n == nil || n.Ival < 1 || skip != nil && (skip.GetAConst().GetIval() == nil || skip.GetAConst().GetIval().Ival != 0) || !oneGroup(x, s) {
		return restore
	}
	x.literal = true // with LIMIT 0 or OFFSET 1 it is another query
	s.LimitCount, s.LimitOffset, s.LimitOption = nil, nil, pg.LimitOption_LIMIT_OPTION_DEFAULT
	return restore
}

// oneGroup reports whether a query groups by columns of which WHERE leaves one value each: it equates them with a constant or a parameter, or it does so with a
// whole unique key of their table.
func oneGroup(x *planner, s *pg.SelectStmt) bool {
	var tables []*pg.RangeVar
	plain := len(s.GroupClause) > 0 && s.Op == pg.SetOperation_SETOP_NONE
	var visit func(n *pg.Node)
	visit = func(n *pg.Node) {
		switch j := n.GetJoinExpr(); {
		case j != nil:
			plain = plain && !j.IsNatural && len(j.UsingClause) == 0 && j.Alias == nil
			visit(j.Larg)
			visit(j.Rarg)
		case n.GetRangeVar() != nil:
			tables = append(tables, n.GetRangeVar())
		default:
			plain = false
		}
	}
	for _, n := range s.FromClause {
		visit(n)
	}
	if !plain {
		return false
	}
	one := func(rv *pg.RangeVar, ref *pg.ColumnRef) bool {
		rel, _ := x.resolve(rv)
		if rel == nil || rel.Kind != "table" || x.scope[rv.Relname] > 0 || len(rv.GetAlias().GetColnames()) > 0 || !x.columnOf(ref, rv) {
			return false
		}
		src := source{rel: rel, ref: refName(rv)}
		fixed := pgsyntax.Fixed(s.WhereClause, src.ref)
		for name := range fixed { // one without the table's name may be another table's
			if !x.hasColumn(rv, name) {
				delete(fixed, name)
			}
		}
		return fixed[ref.Fields[len(ref.Fields)-1].GetString_().GetSval()] || pinned(s.WhereClause, src)
	}
	return !slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool {
		ref := n.GetColumnRef()
		return ref == nil || !slices.ContainsFunc(tables, func(rv *pg.RangeVar) bool { return one(rv, ref) })
	})
}

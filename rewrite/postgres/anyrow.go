package postgres

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/history"
)

// anyRow reports whether a query shows nothing of its rows but how many there are, so that others would have done as well where LIMIT is reached
// (rewrite.Plan.Any): SELECT 1 AS a FROM t WHERE ... LIMIT 1, as exists() of Django and Rails asks.
func anyRow(s *pg.SelectStmt) bool {
	return s.LimitCount != nil && len(s.LockingClause) == 0 && s.WithClause == nil && s.Op == pg.SetOperation_SETOP_NONE && len(s.GroupClause) == 0 && s.HavingClause == nil &&
		!slices.ContainsFunc(s.TargetList, func(n *pg.Node) bool {
			v := withoutCasts(n.GetResTarget().GetVal())
			return v.GetAConst() == nil && v.GetParamRef() == nil
		})
}

// another gives the hidden column of such a query that tells whether there is a row beside those of the answer, so that LIMIT chose among them.
func another(x *planner, s *pg.SelectStmt) (column []string) {
	var o subqueries
	if anyRow(s) && s.LimitOffset == nil && s.LimitOption == pg.LimitOption_LIMIT_OPTION_COUNT && len(s.DistinctClause) == 0 {
		o.existence(&x.instrumentation, s, false)
	}
	if len(o.outside) == 0 {
		return nil
	}
	sc, limit := o.outside[0], x.tokens(int(placeOf(s.LimitCount)))[0]
	return []string{x.hidden(part{another: true}, fmt.Sprintf("CASE WHEN %s THEN (EXISTS (SELECT 1 %s OFFSET %s))::pg_catalog.text END", sc.guard, sc.text, copied(int(limit.Start), int(limit.End))))}
}

// placeOf gives the place of a constant or a parameter, or -1.
func placeOf(n *pg.Node) int32 {
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst:
		if v.AConst.GetIval() != nil {
			return v.AConst.Location
		}
	case *pg.Node_ParamRef:
		return v.ParamRef.Location
	}
	return -1
}

// doubt marks the rows of an answer in the place of which another one would have done.
func (p *part) doubt(list []history.Access, text []byte) {
	for i := range list {
		list[i].Approx = list[i].Approx || p.another && string(text) != "false"
	}
}

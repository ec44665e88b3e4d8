package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
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

package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/pgsyntax"
)

// askedBySet notes what the arms of a UNION ask, or a query alone. alike says that rows of the answer that look alike may stand twice.
func askedBySet(x *planner, s *pg.SelectStmt, tables int, alike bool) {
	switch arm := s.Op == pg.SetOperation_SETOP_NONE; {
	case arm && (alike || shows(x, s)):
		x.askedBySelect(s, tables)
	case arm || s.Op != pg.SetOperation_SETOP_UNION || s.LimitCount != nil || s.LimitOffset != nil || s.WithClause != nil:
		x.plan.Unread = "a set operation"
	default:
		for _, arm := range []*pg.SelectStmt{s.Larg, s.Rarg} {
			if tables := len(x.content(arm).tables); arm.LimitCount != nil || arm.LimitOffset != nil {
				x.plan.Unread = "LIMIT hides rows"
			} else if tables > 0 {
				askedBySet(x, arm, tables, alike && s.All)
			}
		}
	}
}

// shows reports whether the rows of a query of one table show its primary key, so that no two look alike.
func shows(x *planner, s *pg.SelectStmt) bool {
	if !oneTable(s.FromClause) || len(s.GroupClause) > 0 {
		return false
	}
	rv := s.FromClause[0].GetRangeVar()
	rel, _ := x.resolve(rv)
	return rel != nil && len(rel.Key) > 0 && !slices.ContainsFunc(rel.Key, func(key string) bool {
		return !slices.ContainsFunc(s.TargetList, func(n *pg.Node) bool {
			c := n.GetResTarget().GetVal().GetColumnRef()
			return c != nil && (pgsyntax.LastName(c.Fields) == key || pgsyntax.LastName(c.Fields) == "")
		})
	})
}

package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// HAVING hides groups, so a change of a row may leave the answer as it was:
//
//	SELECT room, count(*) FROM booking WHERE day = 3 GROUP BY room HAVING count(*) < 2
//
// A row more or less of a room that the answer shows changes the answer: the room has another count there, or is gone. The rows of the answer tell which rooms these are.
// Of other rooms it is not certain.

// shownGroups is the column by which such a query groups, and the column of the answer that shows it.
type shownGroups struct {
	column *rewrite.Attribute
	shown  string
}

// groupsShown gives the groups of a query with HAVING; nil if its answer does not tell them, or they have no aggregates in it.
func groupsShown(x *planner, s *pg.SelectStmt) *shownGroups {
	if s.HavingClause == nil || len(s.GroupClause) != 1 || len(s.FromClause) != 1 || s.LimitCount != nil || s.LimitOffset != nil || len(s.DistinctClause) > 0 || s.WithClause != nil || refersSubquery(s) || !x.native || x.plan.Cursor != nil {
		return nil
	}
	rv, ref := s.FromClause[0].GetRangeVar(), s.GroupClause[0].GetColumnRef()
	if rv == nil || ref == nil || !x.columnOf(ref, rv) {
		return nil
	}
	rel, _ := x.resolve(rv)
	if one, doubt := x.aggregates(s); rel == nil || !one || doubt != "" || len(rv.GetAlias().GetColnames()) > 0 {
		return nil
	}
	g := &shownGroups{column: rel.Attribute(pgsyntax.LastName(ref.Fields))}
	if g.column == nil || !listable(g.column) {
		return nil
	}
	names := map[string]int{}
	for _, t := range s.TargetList {
		val, name := t.GetResTarget().GetVal(), columnName(t)
		if f := val.GetFuncCall(); name == "" && f != nil {
			name = pgsyntax.LastName(f.Funcname)
		}
		if name == "" { // a star, or an expression that the server names
			return nil
		}
		if names[name]++; val.GetColumnRef() != nil && x.columnOf(val.GetColumnRef(), rv) && pgsyntax.LastName(val.GetColumnRef().Fields) == g.column.Name {
			g.shown = name
		}
	}
	if names[g.shown] != 1 {
		return nil
	}
	return g
}

// tell gives the hidden column that tells the group of a row of the answer, which is a subquery by that name. There is none where g is nil.
func (g *shownGroups) tell(x *planner, query string) []string {
	if g == nil {
		return nil
	}
	x.plan.Keys, x.plan.Lacking = 1, len(x.parts)+1
	return []string{x.hidden(part{apart: true}, query+"."+pgsyntax.Quote(g.shown)+"::pg_catalog.text")}
}

// certain is the condition that a row is one of a group that the answer shows; it is not certain of others.
func (g *shownGroups) certain() condition.Condition {
	return condition.OfGroups(kindOf(g.column), g.column.Name)
}

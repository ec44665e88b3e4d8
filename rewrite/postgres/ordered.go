package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A query for the first rows in an order, as for the last number, asks for fewer rows than its WHERE says:
//
//	SELECT n FROM invoice WHERE shop = 3 ORDER BY n DESC LIMIT 1
//
// LIMIT hides rows, but none whose n is greater than that of the last row of the answer. A hidden column tells that.

// ordering gives the hidden column with what orders a query of one table and has a LIMIT, and notes which rows LIMIT does not hide; empty if that is not certain.
// NULL tells nothing. A locking query is none: at READ COMMITTED it orders the rows before it waits for who changes them (manual, SELECT, "The Locking Clause").
func (x *planner) ordering(s *pg.SelectStmt, c content) string {
	if s.LimitCount == nil || s.LimitOption != pg.LimitOption_LIMIT_OPTION_COUNT || s.LimitOffset != nil || len(s.SortClause) == 0 || len(s.DistinctClause) > 0 || len(s.LockingClause) > 0 || c.sets ||
		len(c.tables) != 1 || len(s.FromClause) != 1 || s.WithClause != nil || s.Op != pg.SetOperation_SETOP_NONE || x.plan.Cursor != nil || !x.native || len(x.inside) > 0 {
		return ""
	}
	rv, by := s.FromClause[0].GetRangeVar(), s.SortClause[0].GetSortBy()
	op := map[pg.SortByDir]string{pg.SortByDir_SORTBY_DEFAULT: "<", pg.SortByDir_SORTBY_ASC: "<", pg.SortByDir_SORTBY_DESC: ">"}[by.GetSortbyDir()]
	f := by.GetNode().GetColumnRef().GetFields()
	if rv == nil || !x.watched(rv) || len(rv.GetAlias().GetColnames()) > 0 || op == "" || len(f) == 0 || len(f) > 2 || len(f) == 2 && f[0].GetString_().GetSval() != refName(rv) {
		return ""
	}
	rel, _ := x.resolve(rv)
	name := f[len(f)-1].GetString_().GetSval()
	if rel == nil || rel.Kind != "table" || unreadable(rel) != "" || len(f) == 1 && renames(s.TargetList, name) {
		return ""
	}
	a := rel.Attribute(name)
	if a == nil || !listable(a) && a.Type != "numeric" {
		return ""
	}
	x.top = condition.Beyond(op, kindOf(a), name)
	return pgsyntax.Quote(refName(rv)) + "." + pgsyntax.Quote(name) + "::pg_catalog.text"
}

// renames reports whether a column of the answer may have a name without being the table's column of that name: ORDER BY takes that first (manual, SELECT,
// "ORDER BY Clause").
func renames(list []*pg.Node, name string) bool {
	for _, n := range list {
		t := n.GetResTarget()
		f := t.GetVal().GetColumnRef().GetFields()
		switch {
		case t.GetName() != "" && t.GetName() != name, t.GetName() == "" && (f != nil || t.GetVal().GetAExpr() != nil), len(f) > 0 && f[len(f)-1].GetString_().GetSval() == name:
		default:
			return true
		}
	}
	return false
}

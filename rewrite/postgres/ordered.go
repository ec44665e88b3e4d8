package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// ordering gives the hidden columns with what orders a query that has a LIMIT, and notes which rows LIMIT does not hide; none if that is not certain. The query is one of one
// table, or of one at the left of left joins, or the order is that of a table of a join which is in each row of the answer, see rewrite.Beyond. A locking query is none: at READ COMMITTED it orders the rows before it waits for who changes
// them (manual, SELECT, "The Locking Clause").
func (x *planner) ordering(s *pg.SelectStmt, c content) (told []string) {
	if s.LimitCount == nil || s.LimitOption != pg.LimitOption_LIMIT_OPTION_COUNT || len(s.SortClause) == 0 || len(s.DistinctClause) > 0 || len(s.LockingClause) > 0 || c.sets ||
		s.WithClause != nil || s.Op != pg.SetOperation_SETOP_NONE || x.plan.Cursor != nil || !x.native || len(x.inside) > 0 {
		return nil
	}
	rv, others := x.leader(s)
	if rv == nil || x.join == nil && len(c.tables) != 1+others+scalars(x) || !x.watched(rv) || len(rv.GetAlias().GetColnames()) > 0 {
		return nil
	}
	rel, _ := x.resolve(rv)
	if rel == nil || rel.Kind != "table" || unreadable(rel) != "" {
		return nil
	}
	var columns []rewrite.Ordered
	for _, n := range s.SortClause {
		o, ok := orderedColumn(n.GetSortBy(), s.TargetList, rv, rel, others > 0)
		if !ok {
			break
		}
		columns = append(columns, o)
		told = append(told, source{ref: refName(rv)}.textOf(x.scene, o.Name))
	}
	columns, whole := rewrite.UpToKey(columns, keyColumns(rel))
	if len(columns) > 0 {
		x.leads = rv
		x.top, x.alike = rewrite.Beyond(columns, whole, len(columns) == len(s.SortClause))
	}
	return told[:len(columns)]
}

// leader gives the table whose columns may come first in the order of a query, and how many others it has; nil if that is not certain.
func (x *planner) leader(s *pg.SelectStmt) (rv *pg.RangeVar, others int) {
	switch {
	case x.join != nil:
		by := s.SortClause[0].GetSortBy().GetNode().GetColumnRef()
		if by == nil {
			return nil, 0
		}
		if i := x.join.tableOf(x, by); i >= 0 && x.join.Tables[i].Group == 0 && x.join.blank && !x.join.distinct {
			return x.join.tables[i].rv, len(x.join.tables) - 1
		}
		return nil, 0
	case len(s.FromClause) != 1:
		return nil, 0
	case s.FromClause[0].GetRangeVar() != nil:
		return s.FromClause[0].GetRangeVar(), 0
	}
	return x.leftOf(s)
}

// orderedColumn gives the column of a table by which rows are ordered; ok is false if that, or its order, is not certain. joined says that there are other tables.
func orderedColumn(by *pg.SortBy, list []*pg.Node, rv *pg.RangeVar, rel *rewrite.Relation, joined bool) (o rewrite.Ordered, ok bool) {
	o.Op = map[pg.SortByDir]string{pg.SortByDir_SORTBY_DEFAULT: "<", pg.SortByDir_SORTBY_ASC: "<", pg.SortByDir_SORTBY_DESC: ">"}[by.GetSortbyDir()]
	f := by.GetNode().GetColumnRef().GetFields()
	if o.Op == "" || len(f) == 0 || len(f) > 2 || len(f) == 1 && joined || len(f) == 2 && f[0].GetString_().GetSval() != refName(rv) {
		return o, false
	}
	o.Name = f[len(f)-1].GetString_().GetSval()
	a := rel.Attribute(o.Name)
	if a == nil || a.Type == "enum" || len(f) == 1 && renames(list, o.Name) {
		return o, false
	}
	o.Kind, o.First = kindOf(a), o.Op == ">"
	switch by.SortbyNulls {
	case pg.SortByNulls_SORTBY_NULLS_FIRST:
		o.First = true
	case pg.SortByNulls_SORTBY_NULLS_LAST:
		o.First = false
	}
	o.First = o.First && !a.Required
	return o, o.Kind.Orders() && (o.Kind != condition.Text || a.Sorts)
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

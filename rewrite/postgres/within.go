package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
)

// within notes what the subqueries of a statement ask, as far as they are certainly evaluated for each row that it writes or shows: those of the values that it
// assigns, inserts or shows, and of the conditions that WHERE joins by AND. It gives the number of tables that they name. beside says that it is a query.
func (x *planner) within(where *pg.Node, values []*pg.Node, beside bool) (tables int) {
	ask := func(q *pg.Node, ask rewrite.Ask) {
		s := q.GetSelectStmt()
		asked := len(x.plan.Asks)
		if !x.closed(s) || !alone(s) || ask.Exists && !rowwise(s.TargetList) {
			return
		}
		before := x.plan.Unread
		ask.Within, ask.Beside = !beside, beside
		x.asked(s.FromClause[0].GetRangeVar(), s.WhereClause, ask)
		if x.plan.Unread = before; len(x.plan.Asks) > asked {
			tables++
		}
	}
	value := func(l *pg.SubLink) {
		switch l.SubLinkType {
		case pg.SubLinkType_EXPR_SUBLINK, pg.SubLinkType_ARRAY_SUBLINK:
			ask(l.Subselect, rewrite.Ask{})
		}
	}
	for _, n := range values {
		x.certain(n.GetResTarget().GetVal(), value)
	}
	for _, n := range conjuncts(where) {
		switch l, not := maybeNot(n); {
		case l == nil && !not && !beside: // of a query, a comparison may be the same behind a change
			x.held(n, value)
		case l.GetSubLinkType() == pg.SubLinkType_EXISTS_SUBLINK && not:
			ask(l.Subselect, rewrite.Ask{Exists: true})
		case l.GetSubLinkType() == pg.SubLinkType_ANY_SUBLINK && not && !beside: // it was compared with every row
			ask(l.Subselect, rewrite.Ask{})
		}
	}
	return tables
}

// asksBeside notes what the subqueries of a query ask that stand beside its tables, and are certainly evaluated for each of its rows. It gives the number of the
// tables that they name: none where one is named twice, since then the answer does not tell which read a row is of.
func asksBeside(x *planner, s *pg.SelectStmt) (tables int) {
	if !refersSubquery(s) || x.groups(s) || s.Op != pg.SetOperation_SETOP_NONE || s.WithClause != nil || !namesOnce(x, s) {
		return 0
	}
	for _, a := range x.plan.Asks { // see lacking
		if a.Beside {
			tables++
		}
	}
	return tables + x.within(s.WhereClause, s.TargetList, true)
}

// namesOnce reports whether a query and its subqueries name each table once.
func namesOnce(x *planner, s *pg.SelectStmt) bool {
	var names []string
	for _, rv := range x.content(s).tables {
		rel, _ := x.resolve(rv)
		if rel == nil || slices.Contains(names, topName(rel)) {
			return false
		}
		names = append(names, topName(rel))
	}
	return true
}

// alone reports whether a query reads one table only, all rows for which its condition holds.
func alone(s *pg.SelectStmt) bool {
	return s != nil && s.Op == pg.SetOperation_SETOP_NONE && len(s.FromClause) == 1 && s.FromClause[0].GetRangeVar() != nil && s.WithClause == nil &&
		s.HavingClause == nil && s.LimitCount == nil && s.LimitOffset == nil && len(s.LockingClause) == 0 && !distinctOn(s.DistinctClause)
}

// distinctOn reports whether a DISTINCT clause has ON, which shows one row of each group only. DISTINCT alone is a list of one empty node.
func distinctOn(clause []*pg.Node) bool {
	return slices.ContainsFunc(clause, func(n *pg.Node) bool { return n.GetNode() != nil })
}

// askedByInsert notes what the query of an INSERT asks. tables is how many tables it names.
func (x *planner) askedByInsert(i *pg.InsertStmt, tables int) {
	x.plan.Predicate = true
	q := i.SelectStmt.GetSelectStmt()
	if q != nil && i.WithClause == nil && q.Op == pg.SetOperation_SETOP_NONE && q.WithClause == nil {
		values := slices.Clip(q.TargetList)
		for _, row := range q.ValuesLists {
			for _, v := range row.GetList().GetItems() {
				values = append(values, &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: v}}})
			}
		}
		tables -= x.within(q.WhereClause, values, false)
	}
	switch {
	case tables == 1 && q != nil && alone(q) && x.scope[q.FromClause[0].GetRangeVar().Relname] == 0 && !refersSubquery(q):
		x.asked(q.FromClause[0].GetRangeVar(), q.WhereClause, rewrite.Ask{})
	case tables > 0:
		x.plan.Unread = "the source of an INSERT"
	}
}

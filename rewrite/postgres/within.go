package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
)

// within notes what the subqueries of a write ask, as far as they are certainly evaluated for each row that it writes: those of the values that it
// assigns or inserts, and of the conditions that WHERE joins by AND. It gives the number of tables that they name.
func (x *planner) within(where *pg.Node, values []*pg.Node) (tables int) {
	ask := func(q *pg.Node, ask rewrite.Ask) {
		s := q.GetSelectStmt()
		asked := len(x.plan.Asks)
		if !x.closed(s) || !alone(s) || ask.Exists && !rowwise(s.TargetList) {
			return
		}
		before := x.plan.Unread
		ask.Within = true
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
		not := false
		if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_NOT_EXPR {
			not, n = true, b.Args[0]
		}
		switch l := n.GetSubLink(); {
		case l == nil && !not:
			x.held(n, value)
		case l.GetSubLinkType() == pg.SubLinkType_EXISTS_SUBLINK && not:
			ask(l.Subselect, rewrite.Ask{Exists: true})
		case l.GetSubLinkType() == pg.SubLinkType_ANY_SUBLINK && not: // it was compared with every row
			ask(l.Subselect, rewrite.Ask{})
		}
	}
	return tables
}

// alone reports whether a query reads one table only, all rows for which its condition holds.
func alone(s *pg.SelectStmt) bool {
	return s != nil && s.Op == pg.SetOperation_SETOP_NONE && len(s.FromClause) == 1 && s.FromClause[0].GetRangeVar() != nil && s.WithClause == nil &&
		s.HavingClause == nil && s.LimitCount == nil && s.LimitOffset == nil && len(s.LockingClause) == 0
}

// askedByInsert notes what the query of an INSERT asks. tables is how many tables it names.
func (x *planner) askedByInsert(i *pg.InsertStmt, tables int) {
	x.plan.Predicate = true
	q := i.SelectStmt.GetSelectStmt()
	if q != nil && i.WithClause == nil && q.Op == pg.SetOperation_SETOP_NONE && q.WithClause == nil && len(q.ValuesLists) == 0 {
		tables -= x.within(q.WhereClause, q.TargetList)
	}
	switch {
	case tables == 1 && q != nil && alone(q) && x.scope[q.FromClause[0].GetRangeVar().Relname] == 0 && !refersSubquery(q):
		x.asked(q.FromClause[0].GetRangeVar(), q.WhereClause, rewrite.Ask{})
	case tables > 0:
		x.plan.Unread = "the source of an INSERT"
	}
}

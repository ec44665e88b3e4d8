package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A query with SKIP LOCKED may leave out any row (manual, SELECT, "The Locking Clause": an inconsistent view, for tables that are queues). So nothing follows
// of the rows that it does not return, whatever its condition is: it asks for none.

// skipsLocked reports whether a query reads one table and passes over rows that are locked.
func skipsLocked(s *pg.SelectStmt) bool {
	return s != nil && s.Op == pg.SetOperation_SETOP_NONE && s.WithClause == nil && len(s.FromClause) == 1 && s.FromClause[0].GetRangeVar() != nil &&
		slices.ContainsFunc(s.LockingClause, func(n *pg.Node) bool { return n.GetLockingClause().GetWaitPolicy() == pg.LockWaitPolicy_LockWaitSkip })
}

// asksForNone notes a query with SKIP LOCKED.
func asksForNone(x *planner, s *pg.SelectStmt) {
	rel, why := x.resolve(s.FromClause[0].GetRangeVar())
	if rel == nil {
		x.plan.Unread = why
		return
	}
	x.plan.Asks = append(x.plan.Asks, rewrite.Ask{Table: topName(rel), Where: condition.Never, Current: true})
}

// queued gives the query with SKIP LOCKED by which a write finds its rows, if it does so by a unique key: key = (SELECT ...), key IN (SELECT ...),
// key = ANY (ARRAY (SELECT ...)), or key = q.column of a query in FROM, USING or WITH. The other conditions of WHERE are those of rows that it has chosen.
func queued(x *planner, m proto.Message, rv *pg.RangeVar, where *pg.Node, from []*pg.Node, with *pg.WithClause) *pg.SelectStmt {
	rel, _ := x.resolve(rv)
	if rel == nil || len(x.content(m).tables) != 2 || len(from) > 1 || len(with.GetCtes()) > len(from) {
		return nil
	}
	ref := refName(rv)
	fixed := pgsyntax.Fixed(where, ref)
	for _, n := range conjuncts(where) {
		key, other := equality(n, ref)
		q := queryOf(other, from, with)
		if !skipsLocked(q) || !x.closed(q) {
			continue
		}
		if statement.Whole(rel.Unique, func(c string) bool { return c == key || fixed[c] }) != nil {
			return q
		}
	}
	return nil
}

// equality gives the column of the table ref that a condition compares with something else, and that.
func equality(n *pg.Node, ref string) (column string, other *pg.Node) {
	if l := n.GetSubLink(); l.GetSubLinkType() == pg.SubLinkType_ANY_SUBLINK && (len(l.OperName) == 0 || pgsyntax.LastName(l.OperName) == "=") {
		return pgsyntax.Column(l.Testexpr, ref), n
	}
	e := n.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP && e.Kind != pg.A_Expr_Kind_AEXPR_OP_ANY || len(e.Name) != 1 || pgsyntax.LastName(e.Name) != "=" {
		return "", nil
	}
	if column = pgsyntax.Column(e.Lexpr, ref); column != "" && queryable(e.Rexpr) {
		return column, e.Rexpr
	}
	return pgsyntax.Column(e.Rexpr, ref), e.Lexpr
}

// queryable reports whether an expression may be a query's value: a subquery, or a column with the name of its table.
func queryable(n *pg.Node) bool {
	return n.GetSubLink() != nil || len(n.GetColumnRef().GetFields()) == 2
}

// queryOf gives the query of which an expression is the value.
func queryOf(n *pg.Node, from []*pg.Node, with *pg.WithClause) *pg.SelectStmt {
	if l := n.GetSubLink(); l != nil {
		return l.Subselect.GetSelectStmt()
	}
	f := n.GetColumnRef().GetFields()
	if len(f) != 2 || len(from) != 1 {
		return nil
	}
	name := f[0].GetString_().GetSval()
	if sub := from[0].GetRangeSubselect(); sub != nil {
		if sub.GetAlias().GetAliasname() != name {
			return nil
		}
		return sub.Subquery.GetSelectStmt()
	}
	rv := from[0].GetRangeVar()
	if rv == nil || rv.Schemaname != "" || name != refName(rv) {
		return nil
	}
	for _, c := range with.GetCtes() {
		if e := c.GetCommonTableExpr(); e.Ctename == rv.Relname {
			return e.Ctequery.GetSelectStmt()
		}
	}
	return nil
}

package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement/pgsyntax"
)

// flat gives a query with another one in its FROM or WITH clause as one query of the table, for what it asks:
//
//	SELECT * FROM (SELECT id, hour FROM booking WHERE room = 1) b WHERE b.hour = 9
//	WITH b AS (SELECT id, hour FROM booking WHERE room = 1) SELECT * FROM b WHERE hour = 9
//
// ask for the rows of booking where room = 1 and hour = 9. A query of another form stays as it is.
func (x *judge) flat(s *pg.SelectStmt) *pg.SelectStmt {
	if s = inlined(x.scene, s); s.WithClause != nil || s.Op != pg.SetOperation_SETOP_NONE || len(s.FromClause) != 1 {
		return s
	}
	sub := s.FromClause[0].GetRangeSubselect()
	q := sub.GetSubquery().GetSelectStmt()
	if q == nil || sub.Lateral || len(sub.GetAlias().GetColnames()) > 0 || refersSubquery(s) || len(s.LockingClause) > 0 {
		return s
	}
	q = x.flat(q)
	names, ok := x.through(q)
	if !ok {
		return s
	}
	out := proto.Clone(s).(*pg.SelectStmt)
	ref := sub.GetAlias().GetAliasname()
	inner := refName(q.FromClause[0].GetRangeVar())
	rename := func(m proto.Message) bool {
		c, is := m.(*pg.ColumnRef)
		if !is || !ok {
			return ok
		}
		name := pgsyntax.LastName(c.Fields) // "" of a star
		to := name
		if names != nil {
			to = names[name]
		}
		star := c.Fields[len(c.Fields)-1].GetAStar() != nil
		switch {
		case len(c.Fields) > 2 || len(c.Fields) == 2 && c.Fields[0].GetString_().GetSval() != ref, !star && (to == "" || name == ref):
			ok = false
		case !star:
			c.Fields = []*pg.Node{pg.MakeStrNode(inner), pg.MakeStrNode(to)}
		}
		return ok
	}
	pgsyntax.Walk(out.WhereClause, rename)
	pgsyntax.WalkAll(out.TargetList, rename)
	pgsyntax.WalkAll(out.GroupClause, rename)
	pgsyntax.Walk(out.HavingClause, rename)
	if !ok {
		return s
	}
	if names != nil { // a star shows the columns of the query in, which are not all of the table's
		for i := len(out.TargetList) - 1; i >= 0; i-- {
			if f := out.TargetList[i].GetResTarget().GetVal().GetColumnRef().GetFields(); len(f) > 0 && f[len(f)-1].GetAStar() != nil {
				out.TargetList = slices.Replace(out.TargetList, i, i+1, q.TargetList...)
			}
		}
	}
	out.FromClause = q.FromClause
	switch {
	case out.WhereClause == nil:
		out.WhereClause = q.WhereClause
	case q.WhereClause != nil:
		out.WhereClause = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, slices.Concat(conjuncts(q.WhereClause), conjuncts(out.WhereClause)), -1)
	}
	return out
}

// through gives the table's columns that a query of one table shows, by its own names of them; none if it shows them all by theirs. ok says that the query has
// a row for each one that its condition lets pass.
func (x *judge) through(q *pg.SelectStmt) (names map[string]string, ok bool) {
	if !alone(q) || len(q.GroupClause) > 0 || len(q.DistinctClause) > 0 || len(q.ValuesLists) > 0 || len(q.FromClause[0].GetRangeVar().GetAlias().GetColnames()) > 0 || refersSubquery(q) {
		return nil, false
	}
	if one, doubt := x.aggregates(q); one || doubt != "" || x.content(q).sets || windowed(q) {
		return nil, false
	}
	names = map[string]string{}
	for _, n := range q.TargetList {
		f := n.GetResTarget().GetVal().GetColumnRef().GetFields()
		switch {
		case len(f) == 0: // a condition on it is none on a column
		case f[len(f)-1].GetAStar() != nil:
			return nil, len(q.TargetList) == 1
		case names[columnName(n)] != "":
			return nil, false
		default:
			names[columnName(n)] = pgsyntax.LastName(f)
		}
	}
	return names, true
}

// windowed reports whether a query has window functions, whose results depend on other rows.
func windowed(q *pg.SelectStmt) bool {
	found := len(q.WindowClause) > 0
	pgsyntax.WalkAll(q.TargetList, func(m proto.Message) bool {
		f, ok := m.(*pg.FuncCall)
		found = found || ok && f.Over != nil
		return !found
	})
	return found
}

// inlined puts each query of a WITH clause into the FROM clause that names it, if that is the only place that does. What a query reads is the same in both.
func inlined(x *scene, s *pg.SelectStmt) *pg.SelectStmt {
	if s.WithClause == nil || s.WithClause.Recursive || s.Op != pg.SetOperation_SETOP_NONE {
		return s
	}
	out := proto.Clone(s).(*pg.SelectStmt)
	left := map[string]*pg.SelectStmt{}
	for _, n := range out.WithClause.Ctes {
		e := n.GetCommonTableExpr()
		c, q := x.ctes[e.Ctename], e.Ctequery.GetSelectStmt()
		if c == nil || c.query == nil || q == nil || c.uses != 1 || len(e.Aliascolnames) > 0 {
			return s
		}
		left[e.Ctename] = q
	}
	var visit func(n *pg.Node)
	visit = func(n *pg.Node) {
		switch f := n.Node.(type) {
		case *pg.Node_JoinExpr:
			visit(f.JoinExpr.Larg)
			visit(f.JoinExpr.Rarg)
		case *pg.Node_RangeVar:
			q := left[f.RangeVar.Relname]
			if q == nil || f.RangeVar.Schemaname != "" {
				return
			}
			delete(left, f.RangeVar.Relname)
			alias := f.RangeVar.Alias
			if alias == nil {
				alias = &pg.Alias{Aliasname: f.RangeVar.Relname}
			}
			sub := &pg.RangeSubselect{Alias: alias, Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: q}}}
			n.Node = &pg.Node_RangeSubselect{RangeSubselect: sub}
			visit(n)
		case *pg.Node_RangeSubselect:
			if q := f.RangeSubselect.Subquery.GetSelectStmt(); q != nil && q.WithClause == nil {
				for _, n := range q.FromClause {
					visit(n)
				}
			}
		}
	}
	for _, n := range out.FromClause {
		visit(n)
	}
	if len(left) > 0 {
		return s
	}
	out.WithClause = nil
	return out
}

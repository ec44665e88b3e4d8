package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// keyedQuery describes the tables of a query whose answer shows each row once, as package rewrite wants them (rewrite.Keyed).
type keyedQuery struct {
	x    *instrumentation
	q    *pg.SelectStmt
	list []*pg.RangeVar
	ok   bool // all names are certain
	is   rewrite.Keyed
}

// keyed reports whether each row of a SELECT DISTINCT with LIMIT comes from one row of each table that matters, and whether its order is certain.
// Those that do not matter are idle from then on.
func (x *instrumentation) keyed(s *pg.SelectStmt) bool {
	q := s
	if sub := onlySubquery(s); sub != nil {
		if q = sub; s.WhereClause != nil || s.LimitCount == nil || !x.ungrouped(q) || len(q.DistinctClause) > 0 || q.LimitCount != nil || q.LimitOffset != nil {
			return false
		}
	}
	if len(s.SortClause) == 0 || s.LimitCount == nil || !x.ungrouped(s) || !joined(q.FromClause) {
		return false
	}
	k := &keyedQuery{x: x, q: q, list: tables(q.FromClause), ok: true}
	all := make([]int, len(k.list))
	for i, rv := range k.list {
		all[i] = i
		rel, _ := x.resolve(rv)
		if rel == nil || rel.Kind != "table" || rel.Inherits || len(rv.GetAlias().GetColnames()) > 0 || rv.Schemaname == "" && x.scope[rv.Relname] > 0 {
			return false
		}
		k.is.Keys = append(k.is.Keys, rel.Key)
	}
	k.join(q.WhereClause, all, nil)
	for next, items := 0, q.FromClause; len(items) > 0; items = items[1:] {
		k.joins(items[0], &next)
	}
	var shown, order []rewrite.Column
	for _, t := range s.TargetList {
		shown = append(shown, k.resolve(s, t.GetResTarget().GetVal()))
	}
	for _, n := range s.SortClause {
		order = append(order, k.ordered(s, n.GetSortBy().GetNode()))
	}
	if !k.ok {
		return false
	}
	needed, ok := k.is.Certain(shown, order)
	if !ok {
		return false
	}
	x.distinct, x.unneeded = true, map[*pg.RangeVar]bool{}
	for i, rv := range k.list {
		x.unneeded[rv] = !needed[i]
	}
	return true
}

// onlySubquery is the subquery of which alone a FROM clause consists.
func onlySubquery(s *pg.SelectStmt) *pg.SelectStmt {
	if len(s.FromClause) != 1 {
		return nil
	}
	f := s.FromClause[0].GetRangeSubselect()
	if f == nil || f.Lateral || len(f.GetAlias().GetColnames()) > 0 {
		return nil
	}
	return f.Subquery.GetSelectStmt()
}

// ungrouped reports whether a query is FROM, WHERE and a select list, with DISTINCT, ORDER BY and LIMIT perhaps.
func (x *judge) ungrouped(s *pg.SelectStmt) bool {
	sure, doubt := x.aggregates(s)
	return !sure && doubt == "" && s.Op == pg.SetOperation_SETOP_NONE && s.WithClause == nil && s.IntoClause == nil && s.HavingClause == nil &&
		len(s.GroupClause)+len(s.WindowClause)+len(s.LockingClause)+len(s.ValuesLists) == 0
}

// resolve gives the column that an expression is, directly or by its name in a subquery.
func (k *keyedQuery) resolve(s *pg.SelectStmt, e *pg.Node) (found rewrite.Column) {
	f := e.GetColumnRef().GetFields()
	if len(f) == 0 {
		k.ok = false
		return found
	}
	if s == k.q {
		return k.own(e.GetColumnRef())
	}
	count := 0
	for _, t := range k.q.TargetList {
		if columnName(t) == "" || columnName(t) != f[len(f)-1].GetString_().GetSval() {
			continue
		}
		if count++; t.GetResTarget().GetVal().GetColumnRef() == nil {
			k.ok = false
			return found
		}
		found = k.own(t.GetResTarget().GetVal().GetColumnRef())
	}
	k.ok = k.ok && count == 1
	return found
}

// columnName is the name of an output column; empty if it is not that of an alias or a column.
func columnName(t *pg.Node) string {
	if name := t.GetResTarget().GetName(); name != "" {
		return name
	}
	f := t.GetResTarget().GetVal().GetColumnRef().GetFields()
	if len(f) == 0 {
		return ""
	}
	return f[len(f)-1].GetString_().GetSval()
}

// own gives the column of the query's own tables that a reference means.
func (k *keyedQuery) own(ref *pg.ColumnRef) rewrite.Column {
	name := ref.Fields[len(ref.Fields)-1].GetString_().GetSval()
	for i, rv := range k.list {
		if k.x.columnOf(ref, rv) && k.x.hasColumn(rv, name) {
			return rewrite.Column{Table: i, Name: name}
		}
	}
	k.ok = false
	return rewrite.Column{}
}

// ordered gives the column that an item of ORDER BY is: a bare name means an output column, if there is one (manual, SELECT).
func (k *keyedQuery) ordered(s *pg.SelectStmt, e *pg.Node) rewrite.Column {
	if c := e.GetAConst(); c != nil {
		if i := int(c.GetIval().GetIval()); i > 0 && i <= len(s.TargetList) {
			return k.resolve(s, s.TargetList[i-1].GetResTarget().GetVal())
		}
	}
	if f := e.GetColumnRef().GetFields(); len(f) == 1 {
		for _, t := range s.TargetList {
			if columnName(t) == f[0].GetString_().GetSval() {
				return k.resolve(s, t.GetResTarget().GetVal())
			}
		}
	}
	return k.resolve(s, e)
}

// joins describes the joins of an item of FROM and gives its tables, the next of which is the one with that number.
func (k *keyedQuery) joins(n *pg.Node, next *int) []int {
	j := n.GetJoinExpr()
	if j == nil {
		*next++
		return []int{*next - 1}
	}
	left := k.joins(j.Larg, next)
	right := k.joins(j.Rarg, next)
	both := slices.Concat(left, right)
	switch {
	case j.IsNatural || len(j.UsingClause) > 0 || j.Alias != nil:
		k.ok = false
	case j.Jointype == pg.JoinType_JOIN_LEFT:
		k.join(j.Quals, both, right)
	case j.Jointype == pg.JoinType_JOIN_INNER:
		k.join(j.Quals, both, nil)
	default:
		k.ok = false
	}
	return both
}

// join describes one condition.
func (k *keyedQuery) join(on *pg.Node, all, added []int) {
	j := rewrite.Join{Tables: all, Added: added}
	pgsyntax.Walk(on, func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.SubLink:
			k.ok = false
		case *pg.ColumnRef:
			j.Refs = append(j.Refs, k.own(n))
		}
		return true
	})
	for _, e := range conjuncts(on) {
		op := e.GetAExpr()
		if op.GetKind() != pg.A_Expr_Kind_AEXPR_OP || len(op.Name) != 1 || pgsyntax.LastName(op.Name) != "=" || op.Lexpr.GetColumnRef() == nil || op.Rexpr.GetColumnRef() == nil {
			continue
		}
		a, b := k.x.attribute(op.Lexpr, k.list), k.x.attribute(op.Rexpr, k.list)
		if a != nil && b != nil && sameEquality(a, b) {
			j.Equal = append(j.Equal, [2]rewrite.Column{k.own(op.Lexpr.GetColumnRef()), k.own(op.Rexpr.GetColumnRef())})
		}
	}
	k.is.Joins = append(k.is.Joins, j)
}

// folds reports whether rows of a table may look alike to SELECT DISTINCT: the answer does not show the primary key.
func folds(x *planner, s *pg.SelectStmt, rv *pg.RangeVar) bool {
	rel, _ := x.resolve(rv)
	if len(s.DistinctClause) == 0 || len(s.GroupClause) > 0 || rel == nil {
		return false
	}
	var shown []string
	for _, n := range s.TargetList {
		f := n.GetResTarget().GetVal().GetColumnRef().GetFields()
		if len(f) > 0 && f[len(f)-1].GetAStar() != nil && len(f) < 3 {
			shown = append(shown, rel.Key...)
		}
		shown = append(shown, pgsyntax.Column(n.GetResTarget().GetVal(), refName(rv)))
	}
	return distinctOn(s.DistinctClause) || statement.Whole([][]string{rel.Key}, func(c string) bool { return slices.Contains(shown, c) }) == nil
}

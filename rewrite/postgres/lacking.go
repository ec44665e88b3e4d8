package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A query for rows that lack rows of another table, as for the rooms that are free at 9, asks something of the other table, too:
//
//	SELECT * FROM room r WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE b.room = r.id AND b.hour = 9)
//	SELECT * FROM room WHERE id NOT IN (SELECT room FROM booking WHERE hour = 9)
//	SELECT r.* FROM room r LEFT JOIN booking b ON b.room = r.id AND b.hour = 9 WHERE b.id IS NULL
//
// For each row of the answer there was no row of booking with hour = 9 and that room. A hidden column tells which rooms these are. What the answer does
// not have, by LIMIT or otherwise, tells nothing. A query that counts, for each row, those of another table asks for the rows with these rooms:
//
//	SELECT r.*, (SELECT count(*) FROM booking b WHERE b.room = r.id) FROM room r

// lacking is such a query: the table whose rows are in the answer, and its primary key.
type lacking struct {
	source
	rv  *pg.RangeVar
	key *rewrite.Attribute
}

// toldBy gives the hidden columns with what each row of the answer tells of the conditions.
func toldBy(x *planner, s *pg.SelectStmt, c content) []string {
	if x.join != nil {
		return x.told
	}
	if told := askedByLacking(x, s); told != nil {
		return told
	}
	return x.ordering(s, c)
}

// askedByLacking notes what a query asks of tables of which the rows of its answer have none, and gives the hidden column that tells the key of a row;
// none if there are none.
func askedByLacking(x *planner, s *pg.SelectStmt) []string {
	one, doubt := x.aggregates(s)
	if s.LimitCount != nil && len(s.SortClause) == 0 { // it may give another row, which is as right
		return nil
	}
	if one || doubt != "" || len(s.FromClause) != 1 || len(s.DistinctClause) > 0 || len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.LockingClause) > 0 ||
		s.WithClause != nil || s.Op != pg.SetOperation_SETOP_NONE || x.plan.Cursor != nil || !x.native || len(x.inside) > 0 {
		return nil
	}
	j := s.FromClause[0].GetJoinExpr()
	l := lacking{rv: s.FromClause[0].GetRangeVar()}
	if j != nil {
		if j.Jointype != pg.JoinType_JOIN_LEFT || j.IsNatural || len(j.UsingClause) > 0 || j.Alias != nil {
			return nil
		}
		l.rv = j.Larg.GetRangeVar()
	}
	if l.rv == nil || !x.watched(l.rv) {
		return nil
	}
	l.rel, _ = x.resolve(l.rv)
	if l.ref = refName(l.rv); l.rel == nil || l.rel.Kind != "table" || unreadable(l.rel) != "" || len(l.rel.Key) != 1 || len(l.rv.GetAlias().GetColnames()) > 0 {
		return nil
	}
	if l.key = l.rel.Attribute(l.rel.Key[0]); l.key == nil || !listable(l.key) {
		return nil
	}
	asked := len(x.plan.Asks)
	for _, n := range conjuncts(s.WhereClause) {
		switch link, not := maybeNot(n); {
		case j != nil && n.GetNullTest().GetNulltesttype() == pg.NullTestType_IS_NULL:
			l.joined(x, j, n.GetNullTest().Arg)
		case not:
			l.within(x, link)
		}
	}
	for _, t := range s.TargetList {
		x.certain(t.GetResTarget().GetVal(), func(link *pg.SubLink) {
			if link.SubLinkType == pg.SubLinkType_EXPR_SUBLINK {
				l.beside(x, link.Subselect.GetSelectStmt())
			}
		})
	}
	if len(x.plan.Asks) == asked {
		return nil
	}
	return []string{l.textOf(x.scene, l.key.Name)}
}

// joined looks at the condition that a column of the table at the right of a left join is NULL.
func (l *lacking) joined(x *planner, j *pg.JoinExpr, null *pg.Node) {
	rv := j.Rarg.GetRangeVar()
	if rv == nil {
		return
	}
	if rel, _ := x.resolve(rv); rel != nil {
		name, _ := comparedColumn(null, rel, refName(rv))
		if tie, own := l.ties(rv, rel, conjuncts(j.Quals)); name != "" && (name == tie || slices.Contains(rel.Key, name)) {
			l.ask(x, rv, tie, own, rewrite.Ask{Lacked: true}, nil)
		}
	}
}

// beside looks at a subquery of the select list, which aggregates rows of another table.
func (l *lacking) beside(x *planner, q *pg.SelectStmt) {
	if !alone(q) || len(q.GroupClause) > 0 || x.content(q).sets {
		return
	}
	rv := q.FromClause[0].GetRangeVar()
	rel, _ := x.resolve(rv)
	if one, doubt := x.aggregates(q); rel == nil || !one || doubt != "" {
		return
	}
	if tie, own := l.ties(rv, rel, conjuncts(q.WhereClause)); tie != "" {
		l.ask(x, rv, tie, own, rewrite.Ask{Beside: true}, nil)
	}
}

// listable reports whether the values of a column can be those of a list, as they are.
func listable(a *rewrite.Attribute) bool {
	return kindOf(a) == condition.UUID || kindOf(a) == condition.Number && strings.HasPrefix(a.Type, "int")
}

// within looks at the subquery of NOT EXISTS or NOT IN.
func (l *lacking) within(x *planner, link *pg.SubLink) {
	q := link.GetSubselect().GetSelectStmt()
	if q == nil {
		return
	}
	exists := link.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK
	if !exists && (q.LimitCount != nil || distinctOn(q.DistinctClause)) || q.LimitOffset != nil || len(q.FromClause) != 1 ||
		q.FromClause[0].GetRangeVar() == nil || q.Op != pg.SetOperation_SETOP_NONE || q.WithClause != nil || q.HavingClause != nil || len(q.GroupClause) > 0 || len(q.LockingClause) > 0 || !rowwise(q.TargetList) {
		return
	}
	if one, doubt := x.aggregates(q); one || doubt != "" {
		return
	}
	rv, list := q.FromClause[0].GetRangeVar(), conjuncts(q.WhereClause)
	rel, _ := x.resolve(rv)
	switch {
	case rel == nil:
	case exists:
		tie, own := l.ties(rv, rel, list)
		l.ask(x, rv, tie, own, rewrite.Ask{Lacked: true}, q.LimitCount)
	case link.SubLinkType == pg.SubLinkType_ANY_SUBLINK && len(link.OperName) == 0 && len(q.TargetList) == 1:
		f := link.Testexpr.GetColumnRef()
		if name, _ := comparedColumn(q.TargetList[0].GetResTarget().GetVal(), rel, refName(rv)); f != nil && x.columnOf(f, l.rv) && f.Fields[len(f.Fields)-1].GetString_().GetSval() == l.key.Name {
			l.ask(x, rv, name, list, rewrite.Ask{Lacked: true, Where: condition.Barring(kindOf(l.key), name, 0)}, nil)
		}
	}
}

// ties finds among conditions the one that says that a column of the other table is the key, and gives this column and the other conditions.
func (l *lacking) ties(rv *pg.RangeVar, rel *rewrite.Relation, list []*pg.Node) (tie string, own []*pg.Node) {
	for _, n := range list {
		if name := l.tied(n, rel, refName(rv)); name != "" && tie == "" {
			tie = name
			continue
		}
		own = append(own, n)
	}
	return tie, own
}

// ask notes what is asked of the rows of a table whose column tie is one of the keys, and for which all of the conditions hold. limit is that of EXISTS: Django
// says LIMIT 1.
func (l *lacking) ask(x *planner, rv *pg.RangeVar, tie string, own []*pg.Node, ask rewrite.Ask, limit *pg.Node) {
	rel, _ := x.resolve(rv)
	column := rel.Attribute(tie)
	if column == nil || refName(rv) == l.ref || rel.RelationName == l.rel.RelationName || !x.watched(rv) || x.ctes[rv.Relname] != nil || !rv.Inh ||
		kindOf(column) != kindOf(l.key) || !listable(column) {
		return
	}
	if ask.Where.Op == "" {
		ask.Where = condition.Listed(kindOf(l.key), tie, 0)
	}
	if limit != nil {
		v, ok := x.value(limit, condition.Number, "int8", &ask)
		if !ok {
			return
		}
		ask.Limit = v
	}
	var where *pg.Node
	if len(own) > 0 {
		where = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, own, -1)
	}
	before := x.plan.Unread
	x.asked(rv, where, ask)
	x.plan.Unread = before
}

// tied gives the column of rel that a condition says to be equal to the key; empty if it does not.
func (l *lacking) tied(n *pg.Node, rel *rewrite.Relation, ref string) string {
	e := n.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || pgsyntax.LastName(e.Name) != "=" {
		return ""
	}
	for _, side := range [][2]*pg.Node{{e.Lexpr, e.Rexpr}, {e.Rexpr, e.Lexpr}} {
		f := side[1].GetColumnRef().GetFields()
		name, _ := comparedColumn(side[0], rel, ref)
		bare := len(f) == 1 && rel.Attribute(l.key.Name) == nil // else it is that table's
		if name != "" && (bare || len(f) == 2 && f[0].GetString_().GetSval() == l.ref) && f[len(f)-1].GetString_().GetSval() == l.key.Name {
			return name
		}
	}
	return ""
}

// rowsOf gives the query of EXISTS if it has a row for each that its conditions let pass.
func rowsOf(link *pg.SubLink) *pg.SelectStmt {
	if q := link.GetSubselect().GetSelectStmt(); rowwise(q.GetTargetList()) {
		return q
	}
	return nil
}

// rowwise reports whether a select list certainly makes one row of each: a function may return a set, which may be empty.
func rowwise(list []*pg.Node) bool {
	return !slices.ContainsFunc(list, func(n *pg.Node) bool {
		v := withoutCasts(n.GetResTarget().GetVal())
		return v.GetAConst() == nil && v.GetColumnRef() == nil && v.GetParamRef() == nil
	})
}

// withoutCasts is what stands within the casts of an expression.
func withoutCasts(n *pg.Node) *pg.Node {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	return n
}

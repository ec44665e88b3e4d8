package postgres

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A condition may compare with what a subquery counts for each row:
//
//	SELECT * FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id AND b.day = 3) < r.beds
//
// The bookings of a room are a group then, as those of GROUP BY with HAVING are (having.go): a booking more or less changes the answer if it takes its room over the border.
// A hidden column tells what the subquery aggregates for each room that meets the other conditions. No other room matters, and one without bookings does, too.

// counts is such a subquery.
type counts struct {
	hiddenGroups
	query *pg.SelectStmt // which asks for the rows that are counted, but for the tie with the row around
	own   []*pg.Node     // the other conditions on the row around
	once  joining        // how often each parameter stands in the statement
	outer source
	key   string // the column of the row around
}

// countsOf gives the subquery with which a condition that AND joins with others compares, if the answer can tell what it counts; nil if there is none, or another subquery.
func countsOf(x *planner, s *pg.SelectStmt) *counts {
	if !x.native || x.plan.Cursor != nil || x.inWith || len(x.inside) > 0 || !x.catalog.Usable() || s.Op != pg.SetOperation_SETOP_NONE || s.WithClause != nil || len(s.FromClause) != 1 || len(s.LockingClause) > 0 ||
		len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.DistinctClause) > 0 || s.LimitOffset != nil || len(x.content(s).tables) != 2 || !namesOnce(x, s) {
		return nil
	}
	rv := s.FromClause[0].GetRangeVar()
	outer, ok := countable(x, rv)
	if !ok {
		return nil
	}
	c := &counts{outer: outer, once: joining{params: map[int32]int{}}}
	pgsyntax.Walk(x.node, func(m proto.Message) bool {
		if p, ok := m.(*pg.ParamRef); ok {
			c.once.params[p.Number]++
		}
		return true
	})
	var link *pg.SubLink
	for _, n := range conjuncts(s.WhereClause) {
		e := n.GetAExpr()
		if found := comparedLink(e); found != nil && link == nil {
			link, c.having = found, n
		} else {
			c.own = append(c.own, n)
		}
	}
	if link == nil || slices.ContainsFunc(c.own, func(n *pg.Node) bool { return refersSubquery(n) || !x.harmless(n) }) || !c.within(x, link) {
		return nil
	}
	c.ref, c.groups.Fixed = outer.ref, true
	c.rel = &rewrite.Relation{RelationName: outer.rel.RelationName}
	in, ok := countable(x, c.table)
	having := proto.Clone(c.having).(*pg.Node)
	e, target := having.GetAExpr(), proto.Clone(c.query.TargetList[0].GetResTarget().GetVal()).(*pg.Node)
	beside := e.Rexpr
	if e.Lexpr.GetSubLink() != nil {
		e.Lexpr = target
	} else {
		beside, e.Rexpr = e.Lexpr, target
	}
	if c.having = having; !ok || in.ref == outer.ref || !c.collect(x, in.rel) || len(c.groups.Of) == 1 && c.rel.Columns == nil {
		return nil
	}
	if ref := beside.GetColumnRef(); ref != nil {
		column := outer.rel.Attribute(pgsyntax.LastName(ref.Fields))
		if column == nil || !x.columnOf(ref, rv) || kindOf(column) != condition.Number {
			return nil
		}
		c.groups.Of, c.rel.Columns = append(c.groups.Of, column.Name), append(c.rel.Columns, *column)
	}
	return c
}

// comparedLink gives the subquery with which a condition compares a value; nil if it is another condition.
func comparedLink(e *pg.A_Expr) *pg.SubLink {
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || mirrored[pgsyntax.LastName(e.Name)] == "" {
		return nil
	}
	link, beside := e.Rexpr.GetSubLink(), e.Lexpr
	if link == nil {
		link, beside = e.Lexpr.GetSubLink(), e.Rexpr
	}
	if link.GetSubLinkType() != pg.SubLinkType_EXPR_SUBLINK || refersSubquery(beside) {
		return nil
	}
	return link
}

// countable gives a table of which all rows can be told; ok is false if it is something else, or large.
func countable(x *planner, rv *pg.RangeVar) (src source, ok bool) {
	if rv == nil || rv.Schemaname == "" && (x.scope[rv.Relname] > 0 || x.ctes[rv.Relname] != nil) || len(rv.GetAlias().GetColnames()) > 0 || !x.watched(rv) {
		return src, false
	}
	rel, _ := x.resolve(rv)
	return source{rel: rel, ref: refName(rv)}, rel != nil && rel.Kind == "table" && unreadable(rel) == "" && !rel.RowSecurity && rel.Root == nil && rel.Rows <= maxGroupRows
}

// within looks at the subquery: one of its conditions ties a column of its table to one of the row around, and the others are about its own.
func (c *counts) within(x *planner, link *pg.SubLink) bool {
	q := link.Subselect.GetSelectStmt()
	if !alone(q) || len(q.GroupClause) > 0 || len(q.DistinctClause) > 0 || len(q.SortClause) > 0 || len(q.TargetList) != 1 || refersSubquery(q) {
		return false
	}
	c.table = q.FromClause[0].GetRangeVar()
	in, ok := countable(x, c.table)
	if !ok || !x.harmless(q.WhereClause) {
		return false
	}
	switch n := q.TargetList[0].GetResTarget().GetVal(); {
	case n.GetFuncCall() != nil:
	case n.GetCoalesceExpr() != nil && len(n.GetCoalesceExpr().Args) == 2 && n.GetCoalesceExpr().Args[0].GetFuncCall() != nil && n.GetCoalesceExpr().Args[1].GetAConst() != nil:
	default:
		return false
	}
	pure := true
	pgsyntax.Walk(q, func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg.FuncCall:
			pure = pure && (x.function(pgsyntax.LastName(m.Funcname))&rewrite.FunctionAggregate != 0 || x.steady(m))
		case *pg.ParamRef: // else its type may be that of another place
			pure = pure && c.once.params[m.Number] == 1
		}
		return pure
	})
	var rest []*pg.Node
	ties := 0
	for _, n := range conjuncts(q.WhereClause) {
		if of, by := c.tie(x, n, in); by != nil {
			ties++
			c.groups.By, c.key = []string{of.Name}, by.Name
		} else if rest = append(rest, n); !ofTable(x, n, c.table) {
			return false
		}
	}
	c.query = proto.Clone(q).(*pg.SelectStmt)
	c.query.WhereClause = nil
	if len(rest) > 0 {
		c.query.WhereClause = &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: &pg.BoolExpr{Boolop: pg.BoolExprType_AND_EXPR, Args: rest}}}
	}
	return pure && ties == 1
}

// ofTable reports whether all columns of a condition certainly are those of a table.
func ofTable(x *planner, n *pg.Node, rv *pg.RangeVar) bool {
	of := true
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if ref, ok := m.(*pg.ColumnRef); ok {
			of = of && x.columnOf(ref, rv)
		}
		return of
	})
	return of
}

// tie gives the columns that a condition says are equal, of the table of the subquery and of the row around; nil if it is another condition.
func (c *counts) tie(x *planner, n *pg.Node, in source) (of, by *rewrite.Attribute) {
	e := n.GetAExpr()
	if e.GetKind() != pg.A_Expr_Kind_AEXPR_OP || len(e.GetName()) != 1 || pgsyntax.LastName(e.Name) != "=" {
		return nil, nil
	}
	for _, p := range [2][2]*pg.Node{{e.Lexpr, e.Rexpr}, {e.Rexpr, e.Lexpr}} {
		l, r := p[0].GetColumnRef(), p[1].GetColumnRef()
		if l == nil || r == nil || !x.columnOf(l, c.table) || len(r.Fields) != 2 || r.Fields[0].GetString_().GetSval() != c.outer.ref || in.ref == c.outer.ref {
			continue
		}
		of, by = in.rel.Attribute(pgsyntax.LastName(l.Fields)), c.outer.rel.Attribute(pgsyntax.LastName(r.Fields))
		if of != nil && by != nil && comparable(of, by) && (listable(of) || kindOf(of) == condition.Text) {
			return of, by
		}
	}
	return nil, nil
}

// column gives the hidden column that tells what the subquery counts for each row around that meets the other conditions; none if x has no such subquery. first says that only
// the first row of the answer is to have it.
func (c *counts) column(x *planner, first bool) []string {
	if c == nil || x.lists > 0 || c.told {
		return nil
	}
	where := []string{pgsyntax.Quote(c.outer.ref) + "." + pgsyntax.Quote(c.key) + " IS NOT NULL"}
	for _, n := range c.own {
		text, ok := c.once.text(x, n)
		if !ok {
			return nil
		}
		where = append(where, text)
	}
	at := x.targetEnd(c.query)
	if at < 0 {
		return nil
	}
	toks := x.tokens(at)
	if len(toks) < 2 || toks[0].Token != pg.Token_FROM {
		return nil
	}
	from := copied(int(toks[0].Start), clauseEnd(toks, pg.Token_WHERE))
	values := []string{pgsyntax.Quote(c.outer.ref) + "." + pgsyntax.Quote(c.key) + "::pg_catalog.text"}
	for _, name := range c.groups.Of {
		fn, column := condition.Aggregate(name)
		switch column {
		case "":
			values = append(values, pgsyntax.Quote(c.outer.ref)+"."+pgsyntax.Quote(name)+"::pg_catalog.text")
		case "*":
			values = append(values, "pg_catalog.count(*)::pg_catalog.text")
		default:
			values = append(values, fmt.Sprintf("pg_catalog.%s(%s.%s)::pg_catalog.text", fn, pgsyntax.Quote(refName(c.table)), pgsyntax.Quote(column)))
		}
	}
	in, _ := countable(x, c.table)
	expr := fmt.Sprintf("CASE WHEN "+notSerializable+" AND %s THEN (SELECT CASE WHEN pg_catalog.count(*) <= %d AND coalesce(pg_catalog.sum(pg_catalog.octet_length(wirecheck.v)), 0) < %d THEN coalesce(pg_catalog.json_agg(wirecheck.v)::pg_catalog.text, '[]') END "+
		"FROM (SELECT (SELECT pg_catalog.json_build_array(%s)::pg_catalog.text %s) AS v FROM %s.%s AS %s WHERE (%s) LIMIT %d) wirecheck) END",
		small([]source{c.outer, in}, maxGroupBytes), maxListed, maxListBytes, strings.Join(values, ", "), from, pgsyntax.Quote(c.outer.rel.Schema), pgsyntax.Quote(c.outer.rel.Name), pgsyntax.Quote(c.outer.ref), strings.Join(where, ") AND ("), maxListed+1)
	if first {
		expr = "CASE WHEN pg_catalog.row_number() OVER () = 1 THEN " + expr + " END"
	}
	c.told, x.lists = true, 1
	return []string{expr + " AS " + pgsyntax.Quote(x.hiddenPrefix()+"list 0")}
}

// asksCounted notes what such a subquery asks, and gives the number of tables that it names; 0 if the answer does not tell what it counts.
func asksCounted(x *planner, s *pg.SelectStmt) (tables int) {
	c := x.counts
	if c == nil || !c.told {
		return 0
	}
	ask := rewrite.Ask{Single: soleGroup(x, s), Merged: true, Where: condition.NoGroups(condition.HiddenRows)}
	if s.LimitCount != nil {
		v, ok := x.value(s.LimitCount, condition.Number, "int8", &ask)
		if !ok || s.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
			return 0
		}
		ask.Limit = v
	}
	c.asks(x, &ask)
	asked, before := len(x.plan.Asks), x.plan.Unread
	x.asked(c.table, c.query.WhereClause, ask)
	x.plan.Unread = before
	return len(x.plan.Asks) - asked
}

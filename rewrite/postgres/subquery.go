package postgres

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/statement/pgsyntax"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
)

// subqueries are those in the expressions of a query of which it is certain what a row of its answer tells.
type subqueries struct {
	outside []scan // evaluated once for the statement
	inside  []scan // evaluated for each row, in the query's own select list
	none    int    // tables of which no row was read, or there would be no answer
	silent  bool   // an answer without rows does not tell what they read
}

// subqueries looks at the subqueries of the select list and of the conditions that WHERE joins by AND. The server need
// not evaluate a subquery, nor to its end (manual, 4.2.14 and 9.23). Where there is a row in the answer, these were:
// the ones in the select list, as long as no expression around may pass them over; and of the conditions, which all were
// true, what no other row could have made true. each says that columns can be added to its rows.
func (x *instrumentation) subqueries(s *pg.SelectStmt, grouped, each bool) (out subqueries) {
	before := x.whys
	defer func() { x.whys = before }() // what is not told is noted by the number of tables
	x.enterAll(s, func() {
		for _, t := range s.TargetList {
			x.certain(t.GetResTarget().GetVal(), func(l *pg.SubLink) {
				switch l.SubLinkType {
				case pg.SubLinkType_EXPR_SUBLINK, pg.SubLinkType_ARRAY_SUBLINK:
					out.value(x, l, each)
				case pg.SubLinkType_EXISTS_SUBLINK:
					out.existence(x, l.Subselect.GetSelectStmt(), each)
				}
			})
		}
		if grouped && (len(s.GroupClause) == 0 || slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool { return n.GetGroupingSet() != nil })) {
			return // it has a row in its answer even if WHERE lets none pass
		}
		for _, n := range conjuncts(s.WhereClause) {
			told := len(out.outside) + len(out.inside) + out.none
			found := x.condition(&out, s, n, each)
			out.silent = out.silent || !found && told < len(out.outside)+len(out.inside)+out.none
		}
	})
	return out
}

func (x *scene) enterAll(s *pg.SelectStmt, f func()) {
	defer x.enter(s.WithClause)()
	f()
}

// certain calls f for the subqueries of an expression that are evaluated whenever it is.
func (x *judge) certain(n *pg.Node, f func(*pg.SubLink)) {
	switch e := n.GetNode().(type) {
	case *pg.Node_SubLink:
		f(e.SubLink)
	case *pg.Node_TypeCast:
		x.certain(e.TypeCast.Arg, f)
	case *pg.Node_BoolExpr:
		if e.BoolExpr.Boolop == pg.BoolExprType_NOT_EXPR {
			x.certain(e.BoolExpr.Args[0], f)
		}
	case *pg.Node_CoalesceExpr:
		x.certain(e.CoalesceExpr.Args[0], f)
	case *pg.Node_AExpr:
		// The planner may find that an operator gives NULL for a constant or a parameter, and drop what is beside it.
		a := e.AExpr
		if a.Kind == pg.A_Expr_Kind_AEXPR_OP && solid(a.Lexpr) && solid(a.Rexpr) {
			x.certain(a.Lexpr, f)
			x.certain(a.Rexpr, f)
		}
	}
}

// held is certain for a condition that was true: neither side of a comparison was NULL.
func (x *judge) held(n *pg.Node, f func(*pg.SubLink)) {
	if a := n.GetAExpr(); a != nil && a.Kind == pg.A_Expr_Kind_AEXPR_OP && len(a.Name) == 1 && mirrored[pgsyntax.LastName(a.Name)] != "" {
		x.certain(a.Lexpr, f)
		x.certain(a.Rexpr, f)
		return
	}
	x.certain(n, f)
}

func solid(n *pg.Node) bool {
	switch e := n.GetNode().(type) {
	case *pg.Node_ColumnRef, *pg.Node_SubLink:
		return true
	case *pg.Node_AConst:
		return !e.AConst.Isnull
	case *pg.Node_TypeCast:
		return solid(e.TypeCast.Arg)
	case *pg.Node_CoalesceExpr:
		return true
	case *pg.Node_AExpr:
		return e.AExpr.Kind == pg.A_Expr_Kind_AEXPR_OP && solid(e.AExpr.Lexpr) && solid(e.AExpr.Rexpr)
	}
	return false
}

// value is a subquery whose value is taken: all of it was read, or its first rows.
func (o *subqueries) value(x *instrumentation, l *pg.SubLink, inside bool) {
	s := l.Subselect.GetSelectStmt()
	closed := x.closed(s)
	if top, ok := x.topOf(s, !closed, l.SubLinkType == pg.SubLinkType_EXPR_SUBLINK); ok && (closed || inside) {
		if closed {
			o.outside = append(o.outside, top)
		} else {
			o.inside = append(o.inside, top)
		}
		return
	}
	if closed {
		if list, ok := x.entire(s); ok {
			o.outside = append(o.outside, list...)
		}
		return
	}
	if s == nil || !inside || s.Op != pg.SetOperation_SETOP_NONE || s.WithClause != nil || len(s.LockingClause) > 0 || x.limited(s) {
		return
	}
	if sc, ok := x.scanOf(s, true); ok {
		if x.few(s) {
			sc.limit = 1
		}
		o.inside = append(o.inside, sc)
	}
}

// limited reports whether a query may end before it has read everything.
func (x *judge) limited(s *pg.SelectStmt) bool {
	if s.LimitCount == nil && s.LimitOffset == nil {
		return false
	}
	one, _ := x.aggregates(s)
	return !one || len(s.GroupClause) > 0
}

// condition looks at one condition that was true for each row of the answer. found says that a row which the subquery found made it true, as in a join:
// where there is no row in the answer, there is none of which the subquery could tell.
func (x *instrumentation) condition(o *subqueries, s *pg.SelectStmt, n *pg.Node, inside bool) (found bool) {
	l, not := maybeNot(n)
	if l == nil {
		if !not {
			x.held(n, func(l *pg.SubLink) {
				if l.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && x.closed(l.Subselect.GetSelectStmt()) {
					o.value(x, l, false)
				}
			})
		}
		return false
	}
	q := l.Subselect.GetSelectStmt()
	switch {
	case l.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK && not:
		if x.simple(unlimited(q)) {
			o.none += len(x.content(q).tables)
		}
	case l.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK:
		o.witness(x, s, q, inside, nil)
		return true
	case l.SubLinkType == pg.SubLinkType_ALL_SUBLINK && !not, l.SubLinkType == pg.SubLinkType_ANY_SUBLINK && not:
		if x.closed(q) { // it was compared with every row
			o.value(x, l, false)
		}
	case l.SubLinkType == pg.SubLinkType_ANY_SUBLINK && !not:
		if one, _ := x.aggregates(q); one && len(q.GroupClause) == 0 && x.closed(q) {
			o.value(x, l, false)
		} else {
			o.witness(x, s, q, inside, l.Testexpr)
			return true
		}
	}
	return false
}

// unlimited is a query within NOT EXISTS without its LIMIT: where that is true, no row was read, or the limit let none.
func unlimited(q *pg.SelectStmt) *pg.SelectStmt {
	if q == nil || q.LimitOffset != nil || q.LimitCount == nil {
		return q
	}
	// Only parts are looked at, so the copy may share them.
	return &pg.SelectStmt{
		DistinctClause: q.DistinctClause, TargetList: q.TargetList, FromClause: q.FromClause, WhereClause: q.WhereClause, GroupClause: q.GroupClause, HavingClause: q.HavingClause,
		WindowClause: q.WindowClause, ValuesLists: q.ValuesLists, SortClause: q.SortClause, LockingClause: q.LockingClause, WithClause: q.WithClause, Op: q.Op, Larg: q.Larg, Rarg: q.Rarg,
	}
}

// witness is a subquery of which some row made the condition true. If it has one row only, it was that one; of a few, it was one of them. test is what IN
// compares with it.
func (o *subqueries) witness(x *instrumentation, s, q *pg.SelectStmt, inside bool, test *pg.Node) {
	if test == nil && !x.simple(unlimited(q)) || test != nil && !x.simple(q) || leavesOut(x.scene, q) {
		return
	}
	closed := x.closed(q)
	inside = inside && x.once(q) && x.safe(q, s)
	var p *pair
	if test != nil && inside && closed {
		p = x.pair(test, q, s)
	}
	sc, ok := x.scanOf(q, !closed)
	if sc.pair, sc.sole = p, true; p == nil {
		sc.limit = maxSole
	}
	sc.second(q)
	switch {
	case !ok:
	case inside && (p != nil || !closed && test == nil):
		o.inside = append(o.inside, sc)
	case closed:
		o.outside = append(o.outside, sc)
	}
}

// existence is EXISTS in the select list: true if its subquery has a row. If it has one only, it was that one; of a few, it was one of them.
func (o *subqueries) existence(x *instrumentation, q *pg.SelectStmt, inside bool) {
	if !x.simple(unlimited(q)) || leavesOut(x.scene, q) {
		return
	}
	closed := x.closed(q)
	sc, ok := x.scanOf(q, !closed)
	if !ok || !closed && !inside {
		return
	}
	sc.limit, sc.sole = maxSole, true
	sc.second(q)
	if q.LimitCount != nil { // with LIMIT 0 it looks for none
		limit := limitText(x.scene, q.LimitCount)
		if limit == "" || q.LimitCount.GetParamRef() != nil { // a comparison would give the parameter another type
			return
		}
		sc.guard = strings.TrimPrefix(sc.guard+" AND "+limit+" >= 1", " AND ")
	}
	if closed {
		o.outside = append(o.outside, sc)
	} else {
		o.inside = append(o.inside, sc)
	}
}

// notSerializable is a condition for what reads rows that the client's statement does not read: SERIALIZABLE would lock them (PostgreSQL manual, 13.2.3).
const notSerializable = "pg_catalog.current_setting('transaction_isolation') <> 'serializable'"

// second says that a scan looks for a second row, where the server stops at the first one: there is none if a whole unique key is given.
func (sc *scan) second(q *pg.SelectStmt) {
	if !sc.unique(q) {
		sc.alone()
	}
}

// unique reports whether the scan of a query has one row at most.
func (sc *scan) unique(q *pg.SelectStmt) bool {
	return len(sc.list) == 1 && sc.tables == 1 && pinned(q.WhereClause, sc.list[0])
}

// alone keeps a scan from rows that the client's statement need not read where that would lock them.
func (sc *scan) alone() { sc.guard = strings.TrimSuffix(notSerializable+" AND "+sc.guard, " AND ") }

// leavesOut reports whether the server may leave a table of a query out: one that an outer join adds, as long as WHERE does not make an inner join of it.
func leavesOut(x *scene, q *pg.SelectStmt) bool { return outerJoins(q.FromClause) && !x.reduced(q) }

// outerJoins reports whether a FROM clause has joins other than inner ones.
func outerJoins(from []*pg.Node) bool {
	return slices.ContainsFunc(from, func(n *pg.Node) bool {
		j := n.GetJoinExpr()
		return j != nil && (j.Jointype != pg.JoinType_JOIN_INNER || outerJoins([]*pg.Node{j.Larg, j.Rarg}))
	})
}

// pair is what IN compares: a column of the query, and the one of the subquery that must be the same.
type pair struct{ outer, inner string }

// expr looks up the rows of the scan that IN may have found, lists of their versions, if they are few. The scan is that of the client's own subquery and is
// done once, so that it needs no other index than that, on which SERIALIZABLE would leave locks.
func (p *pair) expr(sc scan, versions, lists []string) string {
	rows := fmt.Sprintf("SELECT %s::pg_catalog.text AS k, %s, pg_catalog.row_number() OVER () AS n %s", p.inner, strings.Join(versions, ", "), sc.text)
	found := fmt.Sprintf("SELECT wirecheck.k, pg_catalog.count(*) AS c, pg_catalog.json_build_array(%s)::pg_catalog.text AS v FROM (%s) wirecheck WHERE wirecheck.n <= %d GROUP BY 1",
		strings.Join(lists, ", "), rows, sc.limit+1)
	all := fmt.Sprintf("SELECT CASE WHEN pg_catalog.sum(wirecheck.c) <= %d THEN pg_catalog.jsonb_object_agg(wirecheck.k, wirecheck.v) FILTER (WHERE wirecheck.k IS NOT NULL AND wirecheck.c <= %d) END FROM (%s) wirecheck",
		sc.limit, maxSole, found)
	expr := "((" + all + ") ->> " + p.outer + "::pg_catalog.text)"
	if sc.guard != "" {
		expr = "CASE WHEN " + sc.guard + " THEN " + expr + " END"
	}
	return expr
}

// pair gives the columns that an IN of s compares with the subquery q, if they are of one type that compares alike everywhere.
func (x *scene) pair(test *pg.Node, q, s *pg.SelectStmt) *pair {
	own, outer := tables(q.FromClause), tables(s.FromClause)
	for _, rv := range own {
		if slices.ContainsFunc(outer, func(o *pg.RangeVar) bool { return refName(o) == refName(rv) }) {
			return nil // it could not be named inside
		}
	}
	if len(q.TargetList) != 1 {
		return nil
	}
	left, ltype := x.columnAmong(test, outer)
	right, rtype := x.columnAmong(q.TargetList[0].GetResTarget().GetVal(), own)
	if left == "" || right == "" || ltype != rtype || !known(ltype) {
		return nil
	}
	return &pair{outer: left, inner: right}
}

// columnAmong gives the qualified name and the type of the column of one of the tables that an expression is; empty if that is not certain.
func (x *scene) columnAmong(n *pg.Node, list []*pg.RangeVar) (name, typ string) {
	ref := n.GetColumnRef()
	if ref == nil {
		return "", ""
	}
	for _, rv := range list {
		rel, _ := x.resolve(rv)
		if rel == nil || rv.Schemaname == "" && x.scope[rv.Relname] > 0 || len(rv.GetAlias().GetColnames()) > 0 {
			return "", ""
		}
		if !x.columnOf(ref, rv) {
			continue
		}
		for _, a := range rel.Columns {
			if a.Name == ref.Fields[len(ref.Fields)-1].GetString_().GetSval() {
				return pgsyntax.Quote(refName(rv)) + "." + pgsyntax.Quote(a.Name), a.Type
			}
		}
	}
	return "", ""
}

// once reports whether each parameter of a subquery's clauses stands nowhere else, so that a copy cannot give it another type.
func (x *scene) once(q *pg.SelectStmt) bool {
	count := map[int32]int{}
	note := func(m proto.Message) bool {
		if p, ok := m.(*pg.ParamRef); ok {
			count[p.Number]++
		}
		return true
	}
	pgsyntax.Walk(x.node, note)
	ok := true
	check := func(m proto.Message) bool {
		if p, is := m.(*pg.ParamRef); is {
			ok = ok && count[p.Number] == 1
		}
		return ok
	}
	pgsyntax.WalkAll(q.FromClause, check)
	pgsyntax.Walk(q.WhereClause, check)
	return ok
}

// simple reports whether a query has a row for each one that its FROM and WHERE clauses give, at the most.
func (x *judge) simple(q *pg.SelectStmt) bool {
	if q == nil || q.Op != pg.SetOperation_SETOP_NONE || len(q.ValuesLists) > 0 || q.WithClause != nil || len(q.LockingClause) > 0 ||
		q.LimitCount != nil || q.LimitOffset != nil || len(q.GroupClause) > 0 || q.HavingClause != nil || !joined(q.FromClause) {
		return false
	}
	for _, n := range q.TargetList { // a function there may return no rows
		switch n.GetResTarget().GetVal().GetNode().(type) {
		case *pg.Node_ColumnRef, *pg.Node_AConst:
		default:
			return false
		}
	}
	return !refersSubquery(q)
}

// closed reports whether the FROM and WHERE clauses of a query certainly refer to its own tables only.
func (x *judge) closed(s *pg.SelectStmt) bool {
	switch {
	case s == nil:
		return false
	case s.Op != pg.SetOperation_SETOP_NONE:
		return s.WithClause == nil && x.closed(s.Larg) && x.closed(s.Rarg)
	case s.WithClause != nil || !joined(s.FromClause):
		return false
	}
	own := tables(s.FromClause)
	ok := true
	check := func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.SubLink:
			ok = false
		case *pg.ColumnRef:
			ok = ok && slices.ContainsFunc(own, func(rv *pg.RangeVar) bool { return x.columnOf(n, rv) })
		}
		return ok
	}
	pgsyntax.WalkAll(s.FromClause, check)
	pgsyntax.Walk(s.WhereClause, check)
	return ok
}

func tables(from []*pg.Node) (list []*pg.RangeVar) {
	pgsyntax.WalkAll(from, func(m proto.Message) bool {
		if rv, ok := m.(*pg.RangeVar); ok {
			list = append(list, rv)
		}
		_, sub := m.(*pg.SelectStmt)
		return !sub
	})
	return list
}

// safe reports whether the conditions of a subquery of s are such that the server certainly finds no error in them. Their
// copy stands in front of WHERE, and so would the place of the error.
func (x *scene) safe(q, s *pg.SelectStmt) bool {
	if !joined(q.FromClause) || !joined(s.FromClause) {
		return false
	}
	own, outer := tables(q.FromClause), tables(s.FromClause)
	typ := func(n *pg.Node) string {
		if _, t := x.columnAmong(n, own); t != "" {
			return t
		}
		if len(n.GetColumnRef().GetFields()) != 2 { // it could be ambiguous
			return ""
		}
		_, t := x.columnAmong(n, outer)
		return t
	}
	ok := safeCondition(q.WhereClause, typ)
	pgsyntax.WalkAll(q.FromClause, func(m proto.Message) bool {
		if j, is := m.(*pg.JoinExpr); is {
			ok = ok && !j.IsNatural && len(j.UsingClause) == 0 && safeCondition(j.Quals, typ)
		}
		return ok
	})
	return ok
}

// safeCondition is safe for one condition. typ gives the type of an expression that is a column.
func safeCondition(n *pg.Node, typ func(*pg.Node) string) bool {
	switch e := n.GetNode().(type) {
	case nil:
		return true
	case *pg.Node_BoolExpr:
		return !slices.ContainsFunc(e.BoolExpr.Args, func(a *pg.Node) bool { return !safeCondition(a, typ) })
	case *pg.Node_NullTest:
		return !e.NullTest.Argisrow && typ(e.NullTest.Arg) != ""
	case *pg.Node_ColumnRef:
		return typ(n) == "bool"
	case *pg.Node_AConst:
		return e.AConst.GetBoolval() != nil
	case *pg.Node_AExpr:
		return safeComparison(e.AExpr, typ)
	}
	return false
}

func safeComparison(e *pg.A_Expr, typ func(*pg.Node) string) bool {
	if len(e.Name) != 1 {
		return false
	}
	l, right := typ(e.Lexpr), []*pg.Node{e.Rexpr}
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		if mirrored[pgsyntax.LastName(e.Name)] == "" {
			return false
		}
		if r := typ(e.Rexpr); l == "" && r != "" {
			l, right = r, []*pg.Node{e.Lexpr}
		}
	case pg.A_Expr_Kind_AEXPR_IN, pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		right = e.Rexpr.GetList().GetItems()
	default:
		return false
	}
	if !known(l) || len(right) == 0 {
		return false
	}
	for _, n := range right {
		c := n.GetAConst()
		switch r := typ(n); {
		case r != "":
			if l != r {
				return false
			}
		case n.GetParamRef() != nil:
		case (c.GetIval() != nil || c.GetFval() != nil) && (l == "int4" || l == "int8" || l == "numeric"):
		case c.GetSval() != nil && (l == "text" || l == "varchar"):
		default:
			return false
		}
	}
	return true
}

// known reports whether values of a type compare without an error.
func known(typ string) bool {
	return plainKeys[typ] || sentKeys[typ] != "" || textKeys[typ] && typ != "enum"
}

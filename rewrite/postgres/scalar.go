package postgres

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A condition that compares a column with a subquery of another table has a value that the answer alone can tell:
//
//	SELECT id, payload FROM message WHERE id > (SELECT coalesce(max(acked), 0) FROM offsets WHERE topic = 1)
//
// The subquery names no table around it, so the server computes it once for the statement. A hidden column computes it once more, in the same snapshot, behind those of
// the server's time (moment.go). What is asked of message is then a condition on one of its columns. What is asked of offsets is not certain: a change there may leave the
// comparison as it was.

// scalar is a subquery whose value the answer tells.
type scalar struct {
	at    int32 // its place in the text
	query *pg.SelectStmt
	typ   string // of the value: that of a column, or numeric for any other number
	expr  string
}

// findScalar notes the subquery with which a condition that AND joins with others compares a column, if the answer can tell its value. It takes one at most.
func findScalar(x *planner, where *pg.Node) {
	if !x.native || x.plan.Cursor != nil || x.inWith || len(x.inside) > 0 || !x.catalog.Usable() {
		return
	}
	for _, n := range conjuncts(where) {
		e := n.GetAExpr()
		if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || mirrored[pgsyntax.LastName(e.Name)] == "" {
			continue
		}
		link, beside := e.Rexpr.GetSubLink(), e.Lexpr
		if link == nil {
			link, beside = e.Lexpr.GetSubLink(), e.Rexpr
		}
		if beside.GetColumnRef() == nil || link.GetSubLinkType() != pg.SubLinkType_EXPR_SUBLINK {
			continue
		}
		if s := scalarOf(x, link); s != nil {
			x.scalar = s
			return
		}
	}
}

// scalarOf gives a subquery as one whose value can be told; nil if evaluating it once more might find an error, another value, or cost much.
func scalarOf(x *planner, link *pg.SubLink) *scalar {
	q := link.Subselect.GetSelectStmt()
	if !alone(q) || len(q.GroupClause) > 0 || len(q.TargetList) != 1 || !x.closed(q) || !x.once(q) || !x.harmless(q.WhereClause) {
		return nil
	}
	rv := q.FromClause[0].GetRangeVar()
	rel, _ := x.resolve(rv)
	if rel == nil || rel.Kind != "table" || unreadable(rel) != "" || rel.RowSecurity || rel.Root != nil || !x.watched(rv) || rv.Schemaname == "" && (x.scope[rv.Relname] > 0 || x.ctes[rv.Relname] != nil) || len(rv.GetAlias().GetColnames()) > 0 {
		return nil
	}
	pure := true
	pgsyntax.Walk(q.WhereClause, func(m proto.Message) bool {
		f, ok := m.(*pg.FuncCall)
		pure = pure && (!ok || x.steady(f))
		return pure
	})
	src := source{rel: rel, ref: refName(rv)}
	typ := scalarType(x, q, q.TargetList[0].GetResTarget().GetVal(), src)
	text := parenthesized(x.scene, link)
	if !pure || typ == "" || text == "" {
		return nil
	}
	guard := notSerializable // the server may not compute it, and would lock what it reads
	if !pinned(q.WhereClause, src) {
		if rel.Rows > maxGroupRows {
			return nil
		}
		guard += " AND " + small([]source{src}, maxGroupBytes)
	}
	return &scalar{at: link.Location, query: q, typ: typ, expr: fmt.Sprintf("CASE WHEN %s THEN pg_catalog.json_build_array(%s)::pg_catalog.text END", guard, text)}
}

// scalarType gives the type of the value of a query of one table that has one row at most; empty if that is not certain.
func scalarType(x *planner, q *pg.SelectStmt, n *pg.Node, src source) string {
	rv := q.FromClause[0].GetRangeVar()
	column := func(n *pg.Node) string {
		ref := n.GetColumnRef()
		if ref == nil || !x.columnOf(ref, rv) {
			return ""
		}
		at := src.rel.Attribute(pgsyntax.LastName(ref.Fields))
		if at == nil || at.Type == "enum" || kindOf(at) == condition.Other || kindOf(at).Bounds() != "" {
			return ""
		}
		return at.Type
	}
	number := func(typ string) string {
		if kinds[typ] != condition.Number {
			return ""
		}
		return "numeric"
	}
	switch e := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		if pinned(q.WhereClause, src) {
			return column(n)
		}
	case *pg.Node_CoalesceExpr:
		if c := e.CoalesceExpr.Args; len(c) == 2 && c[0].GetFuncCall() != nil && (c[1].GetAConst().GetIval() != nil || c[1].GetAConst().GetFval() != nil) {
			return number(scalarType(x, q, c[0], src))
		}
	case *pg.Node_FuncCall:
		f := e.FuncCall
		switch name := pgsyntax.LastName(f.Funcname); {
		case name == "count" && f.AggStar && len(f.Funcname) == 1 && f.Over == nil && f.AggFilter == nil && x.function(name)&rewrite.FunctionUser == 0:
			return "numeric"
		case len(f.Args) != 1 || !own(x.scene, f, name):
		case name == "max" || name == "min":
			return column(f.Args[0])
		case name == "count" && column(f.Args[0]) != "":
			return "numeric"
		case name == "sum" || name == "avg":
			return number(column(f.Args[0]))
		}
	}
	return ""
}

// parenthesized gives a copy of a subquery's text, with its parentheses; empty if it was not found. Reading it alone proves it.
func parenthesized(x *scene, link *pg.SubLink) string {
	toks := x.tokens(int(link.Location))
	depth := 0
	for _, t := range toks {
		switch t.Token {
		case pgsyntax.TokenOpen:
			depth++
		case pgsyntax.TokenClose:
			depth--
		}
		if depth > 0 {
			continue
		}
		from, to := int(toks[0].Start), int(t.End)
		tree, err := pgsyntax.Parse("SELECT " + x.sql[from:to])
		if err != nil || len(tree.Stmts) != 1 || len(tree.Stmts[0].Stmt.GetSelectStmt().GetTargetList()) != 1 {
			return ""
		}
		in := tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().GetVal().GetSubLink().GetSubselect()
		if in == nil || !pgsyntax.Same(in, link.Subselect) {
			return ""
		}
		return copied(from, to)
	}
	return ""
}

// scalars is how many subqueries tell their values, each of which names one table.
func scalars(x *planner) int {
	if x.scalar == nil {
		return 0
	}
	return 1
}

// asksScalar notes what such a subquery asks, and gives the number of tables that it names: none where the query names one twice, since then the answer does not tell which
// read a row is of.
func asksScalar(x *planner, s *pg.SelectStmt) (tables int) {
	if x.scalar == nil || !namesOnce(x, s) {
		return 0
	}
	asked, before := len(x.plan.Asks), x.plan.Unread
	q := x.scalar.query
	x.asked(q.FromClause[0].GetRangeVar(), q.WhereClause, rewrite.Ask{Where: condition.Unknown(rewrite.BehindComparison)})
	x.plan.Unread = before
	return len(x.plan.Asks) - asked
}

// scalared gives what a subquery is for a comparison with an operand; ok is false if the answer does not tell its value, or it compares in another way.
func (a *asker) scalared(n *pg.Node, of operand) (v condition.Value, ok bool) {
	s := a.scalar
	if link := n.GetSubLink(); s == nil || link == nil || link.Location != s.at || of.day {
		return nil, false
	}
	if kinds[s.typ] != of.kind || of.kind != condition.Number && of.typ != s.typ {
		return nil, false
	}
	return condition.Moment(3 * len(a.clocks)), true
}

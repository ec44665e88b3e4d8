package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
)

// A condition that compares a column with a subquery of another table has a value that the answer alone can tell:
//
//	SELECT id, payload FROM message WHERE id > (SELECT COALESCE(MAX(acked), 0) FROM offsets WHERE topic = 1)
//
// The subquery names no table around it, so the server computes it once for the statement. A hidden column computes it once more, in the same view of the database, in
// front of those of the server's time (moment.go). What is asked of message is then a condition on one of its columns. What is asked of offsets is not certain: a change
// there may leave the comparison as it was. An answer without rows tells nothing.

// scalar is a subquery whose value the answer tells.
type scalar struct {
	sub  *ast.SubqueryExpr
	list []source // its table
	is   valueType
	text string
}

// valueType says how a value compares: a text by its collation. Bytes and UUIDs have none, since JSON_ARRAY would give them another form.
type valueType struct {
	kind      condition.Kind
	collation string
}

func (s *scene) typeOf(a *rewrite.Attribute) valueType {
	if a == nil {
		return valueType{}
	}
	if t := (valueType{kind: s.kindHere(a)}); t.kind != condition.Other && t.kind != condition.Bytes && t.kind != condition.UUID && typeName(a.Type) != "enum" {
		if t.kind == condition.Folded {
			t.collation = a.Collation
		}
		return t
	}
	return valueType{}
}

// findScalar gives the subquery with which a condition that AND joins with others compares something, if the answer can tell its value; nil if there is none. It takes
// one at most.
func findScalar(s *planner, n *ast.SelectStmt) *scalar {
	if s.r.flavor == TiDB || s.session.Once || s.session.LockingReads || n.LockInfo != nil || n.With != nil || n.From == nil || listsPlace(s) < 0 {
		return nil
	}
	for _, e := range conjuncts(n.Where) {
		b, ok := e.(*ast.BinaryOperationExpr)
		if !ok || operators[b.Op] == "" {
			continue
		}
		for _, side := range []ast.ExprNode{b.L, b.R} {
			if sub, ok := unwrapped(side).(*ast.SubqueryExpr); ok && namesOnce(s.scene, n) {
				return scalarOf(s, n, sub)
			}
		}
	}
	return nil
}

// scalarOf gives a subquery as one whose value can be told; nil if evaluating it once more might warn or find another value.
func scalarOf(s *planner, n *ast.SelectStmt, sub *ast.SubqueryExpr) *scalar {
	q := selectIn(sub)
	r := &reader{s: s}
	if q == nil || q.Limit != nil || q.Distinct || q.Fields == nil || len(q.Fields.Fields) != 1 || !r.closed(q) {
		return nil
	}
	list, _, _ := r.clauses(q)
	if len(list) != 1 || list[0].rel.Kind != "table" {
		return nil
	}
	c := &scalar{sub: sub, list: list, is: scalarType(s, q, q.Fields.Fields[0].Expr, &list[0])}
	if c.text = parenthesized(s.scene, sub); c.is.kind == "" || c.text == "" || c.is.kind == condition.Folded && !s.session.UTF8 {
		return nil
	}
	told := c.text
	if c.is.kind == condition.Number { // AVG has more digits than it shows
		told = "CAST(" + told + " AS DECIMAL(65,30))"
	}
	if c.text = "JSON_ARRAY(" + told + ")"; n.GroupBy == nil && s.aggregates(n) && !s.session.Fresh { // the server may find no rows without a look at any, and take no view
		c.text = "IF(COUNT(*)>0," + c.text + ",NULL)"
	}
	return c
}

// scalarType gives the type of the value of a query of one table that has one row at most; none if that is not certain.
func scalarType(s *planner, q *ast.SelectStmt, e ast.ExprNode, src *source) (t valueType) {
	column := func(e ast.ExprNode) valueType {
		if c, ok := unwrapped(e).(*ast.ColumnNameExpr); ok {
			return s.typeOf(src.column(c.Name.Name.O))
		}
		return valueType{}
	}
	number := func(t valueType) valueType {
		if t.kind != condition.Number {
			return valueType{}
		}
		return t
	}
	switch e := unwrapped(e).(type) {
	case *ast.ColumnNameExpr:
		if s.point(q.Where, []source{*src}, src, src.rel.Unique) && !nullSafe(q.Where) {
			return column(e)
		}
	case *ast.FuncCallExpr:
		if (e.FnName.L == "coalesce" || e.FnName.L == "ifnull") && len(e.Args) == 2 && (quietly{s: s}).kind(e.Args[1]) == kindNumber {
			if f, ok := e.Args[0].(*ast.AggregateFuncExpr); ok {
				return number(scalarType(s, q, f, src))
			}
		}
	case *ast.AggregateFuncExpr:
		switch name := strings.ToLower(e.F); {
		case name == "count" && (len(e.Args) == 1 || !e.Distinct):
			return valueType{kind: condition.Number}
		case len(e.Args) != 1:
		case name == "max" || name == "min":
			return column(e.Args[0])
		case name == "sum" || name == "avg":
			return number(column(e.Args[0]))
		}
	}
	return valueType{}
}

// parenthesized gives the text of a subquery, with its parentheses; empty if it is not certain, or has parameters, which cannot stand twice in the text.
func parenthesized(s *scene, sub *ast.SubqueryExpr) string {
	t, first := s.text, s.selectOf(selectIn(sub))
	if first < 1 || !t.Is(first-1, "(") {
		return ""
	}
	end := t.Close(first - 1)
	if end < 0 || slices.ContainsFunc(t.Tokens[first:end], func(k statement.Token) bool { return k.Kind == statement.TokenParam }) {
		return ""
	}
	text := t.Between(first-1, end+1)
	again, err := s.r.parser.Parse("SELECT "+text, s.session.Mode)
	n, ok := again.(*ast.SelectStmt)
	if err != nil || !ok || len(n.Fields.Fields) != 1 {
		return ""
	}
	if in := unwrapped(n.Fields.Fields[0].Expr); restored(in) == "" || restored(in) != restored(sub) {
		return ""
	}
	return text
}

// asksScalar notes what such a subquery of a query asks. It gives the number of queries with tables that it is.
func asksScalar(s *planner, n *ast.SelectStmt) int {
	c := findScalar(s, n)
	if c == nil {
		return 0
	}
	q := selectIn(c.sub)
	a := &asker{planner: s, src: &c.list[0], places: s.places(q.Where, s.whereIn(q))}
	a.ask.Where = condition.Unknown(rewrite.BehindComparison)
	if q.Where != nil {
		a.ask.Where = condition.And(a.ask.Where, a.condition(q.Where))
	}
	if a.note(q.From.TableRefs, s.point(q.Where, c.list, a.src, a.src.rel.Unique) && !nullSafe(q.Where)) != "" {
		return 0
	}
	s.scalar = c
	return 1
}

// scalared gives what a subquery is for a comparison with an operand; nil if the answer does not tell its value, or it compares in another way.
func (a *asker) scalared(n ast.ExprNode, of operand) condition.Value {
	sub, ok := unwrapped(n).(*ast.SubqueryExpr)
	if !ok || a.scalar == nil || a.scalar.sub != sub || of.reads != of.kind || of.kind != a.scalar.is.kind {
		return nil
	}
	if of.kind == condition.Folded && (of.name == "" || a.typeOf(a.src.column(of.name)) != a.scalar.is) {
		return nil
	}
	return condition.Moment(0)
}

// namesOnce reports whether a query and its subqueries name each table once.
func namesOnce(s *scene, n ast.Node) bool {
	seen := map[*rewrite.Relation]bool{}
	for _, t := range walk(n).tables {
		rel, _ := s.resolve(t.Schema.O, t.Name.O)
		if rel == nil || seen[rel] {
			return false
		}
		seen[rel] = true
	}
	return true
}

// scalars are the texts of hidden columns that tell the values of subqueries, each one value.
func scalars(s *planner) []string {
	if s.scalar == nil {
		return nil
	}
	return []string{s.scalar.text}
}

package mysql

import (
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// inner looks at the subqueries of a write: what they ask is noted as far as it is certain that they were evaluated, where rows were written: those
// of the values that are assigned or inserted, and of the conditions that WHERE joins by AND.
type inner struct {
	s *planner
	// asked is how many queries with tables stand in those that ask what is noted. absent is how many of these read no row: NOT EXISTS that was true.
	asked, absent int
}

// within gives the subqueries of a write.
func within(s *planner, where ast.ExprNode, values ...ast.ExprNode) (in inner) {
	if in.s = s; s.r.flavor == TiDB {
		return in
	}
	for _, v := range values {
		in.value(v)
	}
	in.condition(where)
	return in
}

// withinInsert gives those of the query of an INSERT.
func withinInsert(s *planner, n *ast.InsertStmt) inner {
	q, ok := n.Select.(*ast.SelectStmt)
	if !ok || q.Kind != ast.SelectStmtKindSelect || q.With != nil || q.GroupBy != nil || q.Fields == nil {
		return inner{s: s}
	}
	var values []ast.ExprNode
	for _, f := range q.Fields.Fields {
		values = append(values, f.Expr)
	}
	in := within(s, q.Where, values...)
	if q.From != nil && q.Having == nil && q.Limit == nil && !s.aggregates(q) && walk(q).queries == 1 {
		in.ask(q, false)
	}
	return in
}

// value looks at an expression that was evaluated.
func (in *inner) value(e ast.ExprNode) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		in.value(e.Expr)
	case *ast.SubqueryExpr:
		in.ask(selectIn(e), false)
	case *ast.BinaryOperationExpr:
		if e.Op != opcode.Plus && e.Op != opcode.Minus {
			return
		}
		in.value(e.L)
		if v, ok := unwrapped(e.L).(*mysqlsyntax.Value); ok && v.V != nil { // beside NULL it need not be evaluated
			in.value(e.R)
		}
	}
}

// condition looks at a condition that was true.
func (in *inner) condition(e ast.ExprNode) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		in.condition(e.Expr)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd {
			in.condition(e.L)
			in.condition(e.R)
		} else if operators[e.Op] != "" { // neither side was NULL
			in.value(e.L)
			in.value(e.R)
		}
	case *ast.UnaryOperationExpr:
		if inside, ok := unwrapped(e.V).(*ast.ExistsSubqueryExpr); ok && (e.Op == opcode.Not || e.Op == opcode.Not2) && !inside.Not {
			in.none(inside)
		}
	case *ast.ExistsSubqueryExpr:
		if e.Not {
			in.none(e)
		}
	}
}

func (in *inner) none(e *ast.ExistsSubqueryExpr) {
	before := in.asked
	if in.ask(selectIn(e.Sel), true); in.asked > before {
		in.absent += in.asked - before
	}
}

// ask notes what a query of one table asks.
func (in *inner) ask(q *ast.SelectStmt, exists bool) {
	if q == nil {
		return
	}
	s, all := in.s, walk(q)
	// MariaDB has no other way to read the table that it updates than a query in a query.
	for derived := q; derived != nil; derived = counted(derived) {
		q = derived
	}
	if !plainQuery(q) || q.Having != nil || q.Limit != nil {
		return
	}
	list, ok := s.sources(q.From.TableRefs, nil)
	if !ok || len(list) != 1 || list[0].rel == nil || slices.ContainsFunc(walk(q).columns, func(c *ast.ColumnName) bool { return !s.owns(c, list, &list[0], 1) }) {
		return
	}
	if s.asked(q.From.TableRefs, &list[0], q.Where, nil, rewrite.Ask{Within: true, Exists: exists}, s.whereIn(q), nil) == "" {
		in.asked += all.sub
	}
}

// plainQuery reports whether a query reads tables, locks nothing, and has no query within it.
func plainQuery(q *ast.SelectStmt) bool {
	return q != nil && q.From != nil && q.Kind == ast.SelectStmtKindSelect && q.With == nil && q.LockInfo == nil && q.SelectIntoOpt == nil && walk(q).queries == 1
}

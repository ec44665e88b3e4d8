package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// lacking is a query for rows that lack rows of another table, as for the rooms that are free at 9. It asks something of the other table, too:
//
//	SELECT * FROM room r WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE b.room = r.id AND b.hour = 9)
//	SELECT * FROM room WHERE id NOT IN (SELECT room FROM booking WHERE hour = 9)
//	SELECT r.* FROM room r LEFT JOIN booking b ON b.room = r.id AND b.hour = 9 WHERE b.id IS NULL
//
// For each row of the answer there was no row of booking with hour = 9 and that room. A hidden column tells which rooms these are. What the answer does
// not have, by LIMIT or otherwise, tells nothing. A query that counts, for each row, those of another table asks for the rows with these rooms:
//
//	SELECT r.*, (SELECT count(*) FROM booking b WHERE b.room = r.id) FROM room r
type lacking struct {
	s    *planner
	list []source // the first one has the rows of the answer
	key  string   // its primary key
}

// askedByLacking notes what a query asks of tables of which the rows of its answer have none.
func askedByLacking(s *planner, n *ast.SelectStmt) {
	if n.Limit != nil && n.OrderBy == nil { // it may give another row, which is as right
		return
	}
	if n.Kind != ast.SelectStmtKindSelect || n.From == nil || n.Fields == nil || n.Distinct || n.GroupBy != nil || n.Having != nil || n.With != nil || n.LockInfo != nil || n.SelectIntoOpt != nil ||
		s.r.flavor == TiDB || s.session.Once || s.session.LockingReads || s.session.Cut || s.aggregates(n) {
		return
	}
	list, ok := s.sources(n.From.TableRefs, nil)
	join := n.From.TableRefs
	left := join.Right != nil
	if !ok || len(list) == 0 || list[0].rel == nil || left != (len(list) == 2) || left && (join.Tp != ast.LeftJoin || join.On == nil || join.NaturalJoin || len(join.Using) > 0) || partitions(join) {
		return
	}
	l := lacking{s: s, list: list}
	if a := &list[0]; a.why != "" || a.rel.Kind != "table" || len(a.rel.Key) != 1 || !integer(a.column(a.rel.Key[0])) || listsPlace(s) < 0 {
		return
	}
	l.key = list[0].rel.Key[0]
	asked := len(s.plan.Asks)
	for _, e := range conjuncts(n.Where) {
		not := false
		if u, ok := e.(*ast.UnaryOperationExpr); ok && (u.Op == opcode.Not || u.Op == opcode.Not2) {
			not, e = true, unwrapped(u.V)
		}
		switch e := e.(type) {
		case *ast.ExistsSubqueryExpr:
			if q := selectIn(e.Sel); q != nil && e.Not != not {
				l.within(q, nil)
			}
		case *ast.PatternInExpr:
			if q := selectIn(e.Sel); q != nil && e.Not != not {
				l.within(q, e.Expr)
			}
		case *ast.IsNullExpr:
			if left && e.Not == not {
				l.joined(n, e.Expr)
			}
		}
	}
	for _, f := range n.Fields.Fields {
		if q := selectIn(f.Expr); q != nil {
			l.beside(q)
		}
	}
	if len(s.plan.Asks) > asked && tellLists(s, []string{"CONCAT(" + mysqlsyntax.Quote(list[0].alias) + "." + mysqlsyntax.Quote(l.key) + ")"}) {
		s.plan.Lacking, s.plan.Keys = s.plan.Hidden, 1
	}
}

// joined looks at the condition that a column of the table at the right of a left join is NULL.
func (l *lacking) joined(n *ast.SelectStmt, null ast.ExprNode) {
	t := l.s.text
	c, ok := unwrapped(null).(*ast.ColumnNameExpr)
	from := l.s.selectOf(n)
	if !ok || from < 0 || !l.s.owns(c.Name, l.list, &l.list[1], 1) || l.list[1].rel == nil {
		return
	}
	tie, own := l.ties(&l.list[1], conjuncts(n.From.TableRefs.On.Expr))
	// A date that is NOT NULL counts as NULL if it is zero (MySQL manual, Comparison Functions and Operators, IS NULL).
	if a := l.list[1].column(c.Name.Name.O); a != nil && (a.Required && integer(a) || strings.EqualFold(a.Name, tie)) {
		l.ask(n.From.TableRefs, &l.list[1], tie, own, rewrite.Ask{Lacked: true, Searched: true}, l.s.places(n.From.TableRefs.On.Expr, t.Find(from+1, t.Tokens[from].Depth, "ON")))
	}
}

// within looks at the query of NOT EXISTS, or of NOT IN of an expression.
func (l *lacking) within(q *ast.SelectStmt, of ast.ExprNode) {
	if c := q.Limit; c != nil { // Django says EXISTS (... LIMIT 1)
		if n, ok := c.Count.(*mysqlsyntax.Value); !ok || of != nil || c.Offset != nil || n.GetString() == "0" {
			return
		}
	}
	if !plainQuery(q) || q.GroupBy != nil || q.Having != nil || l.s.aggregates(q) {
		return
	}
	list, ok := l.s.sources(q.From.TableRefs, nil)
	first := l.s.selectOf(q)
	if !ok || len(list) != 1 || list[0].rel == nil || first < 0 || strings.EqualFold(list[0].alias, l.list[0].alias) {
		return
	}
	first = l.s.text.Find(first+1, l.s.text.Tokens[first].Depth, "WHERE")
	b, all := &list[0], conjuncts(q.Where)
	if of == nil {
		tie, own := l.ties(b, all)
		l.ask(q.From.TableRefs, b, tie, own, rewrite.Ask{Lacked: true, Searched: true}, l.s.places(q.Where, first))
		return
	}
	outer, ok1 := unwrapped(of).(*ast.ColumnNameExpr)
	if len(q.Fields.Fields) != 1 || !ok1 || !strings.EqualFold(outer.Name.Name.O, l.key) || !l.s.owns(outer.Name, l.list, &l.list[0], 1) {
		return
	}
	if inner, ok := q.Fields.Fields[0].Expr.(*ast.ColumnNameExpr); ok && l.s.owns(inner.Name, list, b, 1) {
		l.ask(q.From.TableRefs, b, inner.Name.Name.O, all, rewrite.Ask{Lacked: true, Searched: true, Where: condition.Barring(condition.Number, inner.Name.Name.O, 0)}, l.s.places(q.Where, first))
	}
}

// beside looks at a subquery of the select list, which aggregates rows of another table.
func (l *lacking) beside(q *ast.SelectStmt) {
	if !plainQuery(q) || q.Fields == nil || q.GroupBy != nil || q.Having != nil || q.Limit != nil || !l.s.aggregates(q) {
		return
	}
	list, ok := l.s.sources(q.From.TableRefs, nil)
	if !ok || len(list) != 1 || list[0].rel == nil || strings.EqualFold(list[0].alias, l.list[0].alias) {
		return
	}
	if tie, own := l.ties(&list[0], conjuncts(q.Where)); tie != "" {
		l.ask(q.From.TableRefs, &list[0], tie, own, rewrite.Ask{Beside: true}, l.s.places(q.Where, l.s.whereIn(q)))
	}
}

// ties finds among conditions the one that says that a column of the other table is the key, and gives this column and the other conditions.
func (l *lacking) ties(b *source, all []ast.ExprNode) (tie string, own []ast.ExprNode) {
	both := []source{l.list[0], *b}
	for _, e := range all {
		name := ""
		if eq, ok := e.(*ast.BinaryOperationExpr); ok && eq.Op == opcode.EQ {
			for _, side := range [][2]ast.ExprNode{{eq.L, eq.R}, {eq.R, eq.L}} {
				x, ok1 := unwrapped(side[0]).(*ast.ColumnNameExpr)
				y, ok2 := unwrapped(side[1]).(*ast.ColumnNameExpr)
				if ok1 && ok2 && l.s.owns(x.Name, both, b, 1) && l.s.owns(y.Name, both, &l.list[0], 1) && strings.EqualFold(y.Name.Name.O, l.key) {
					name = x.Name.Name.O
				}
			}
		}
		if name != "" && tie == "" {
			tie = name
			continue
		}
		own = append(own, e)
	}
	return tie, own
}

// ask notes what is asked of the rows of a table whose column tie is one of the keys, and for which all of the conditions hold.
func (l *lacking) ask(from *ast.Join, b *source, tie string, own []ast.ExprNode, ask rewrite.Ask, places map[ast.Node]int) {
	column := b.column(tie)
	if !integer(column) || b.why != "" || b.rel == l.list[0].rel || b.rel.Kind != "table" || !b.watched() {
		return
	}
	a := &asker{planner: l.s, src: b, ask: ask, places: places}
	link := condition.Listed(condition.Number, column.Name, 0)
	if ask.Where.Op != "" { // of NOT IN
		link = ask.Where.Renamed(column.Name)
	}
	all := []condition.Condition{link}
	for _, e := range own {
		if slices.ContainsFunc(walk(e).columns, func(c *ast.ColumnName) bool { return !l.s.owns(c, []source{l.list[0], *b}, b, 1) }) {
			all = append(all, condition.Unknown("a condition on several tables"))
			continue
		}
		all = append(all, a.condition(e))
	}
	a.ask.Where = condition.And(all...)
	a.note(from, false)
}

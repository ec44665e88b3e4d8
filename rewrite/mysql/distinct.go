package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// keyed describes the tables of a query whose answer shows each row once, as package rewrite wants them (rewrite.Keyed).
type keyed struct {
	s    *planner
	q    *ast.SelectStmt
	list []source
	ok   bool // all names are certain
	is   rewrite.Keyed
}

// keyed reports whether each row of a SELECT DISTINCT comes from one row of each table that matters, and whether its order is certain. It notes
// in e which tables do not matter.
func (s *planner) keyed(n *ast.SelectStmt, list []source, e *exposure) bool {
	if s.r.flavor == TiDB || n.From == nil || n.OrderBy == nil || n.Having != nil || n.With != nil || len(list) == 1 && list[0].rel != nil && n.Limit == nil { // see logged
		return false
	}
	q := n
	if len(list) == 1 && list[0].query != nil {
		if q = list[0].query; n.Where != nil || q.From == nil || q.Limit != nil || q.Distinct || q.GroupBy != nil || q.Having != nil || s.aggregates(q) {
			return false
		}
		list, _ = s.sources(q.From.TableRefs, nil)
	}
	if slices.ContainsFunc(list, func(src source) bool { return src.rel == nil || src.why != "" }) {
		return false
	}
	k := &keyed{s: s, q: q, list: list, ok: true}
	all := make([]int, len(list))
	for i := range list {
		all[i] = i
		var key []string
		for _, c := range list[i].rel.Key {
			key = append(key, strings.ToLower(c))
		}
		k.is.Keys = append(k.is.Keys, key)
	}
	k.join(q.Where, all, nil)
	k.joins(q.From.TableRefs, new(int))
	var shown, order []rewrite.Column
	for _, f := range n.Fields.Fields {
		shown = append(shown, k.resolve(n, f.Expr))
	}
	for _, item := range n.OrderBy.Items {
		order = append(order, k.ordered(n, item.Expr))
	}
	if !k.ok {
		return false
	}
	needed, ok := k.is.Certain(shown, order)
	if !ok {
		return false
	}
	e.distinct, e.idle = q, map[string]bool{}
	for i := range list {
		e.idle[strings.ToLower(list[i].alias)] = !needed[i]
	}
	return true
}

// resolve gives the column that an expression is, directly or by its name in a derived table.
func (k *keyed) resolve(n *ast.SelectStmt, e ast.ExprNode) (found rewrite.Column) {
	c, ok := e.(*ast.ColumnNameExpr)
	if !ok {
		k.ok = false
		return found
	}
	if n == k.q {
		return k.own(c.Name)
	}
	count := 0
	for _, f := range k.q.Fields.Fields {
		inner, is := f.Expr.(*ast.ColumnNameExpr)
		name := f.AsName.L
		if name == "" && is {
			name = inner.Name.Name.L
		}
		if is && name == c.Name.Name.L {
			found = k.own(inner.Name)
			count++
		}
	}
	k.ok = k.ok && count == 1
	return found
}

// own gives the column of the query's own tables that a name means.
func (k *keyed) own(c *ast.ColumnName) rewrite.Column {
	for i := range k.list {
		if src := &k.list[i]; k.s.owns(c, k.list, src, 1) && src.column(c.Name.O) != nil {
			return rewrite.Column{Table: i, Name: c.Name.L}
		}
	}
	k.ok = false
	return rewrite.Column{}
}

// ordered gives the column that an item of ORDER BY is, perhaps by the name that the select list gives it.
func (k *keyed) ordered(n *ast.SelectStmt, e ast.ExprNode) rewrite.Column {
	if c, ok := e.(*ast.ColumnNameExpr); ok && c.Name.Table.O == "" {
		for _, f := range n.Fields.Fields {
			if f.AsName.L == c.Name.Name.L {
				return k.resolve(n, f.Expr)
			}
		}
	}
	return k.resolve(n, e)
}

// joins describes the joins of a FROM clause and gives its tables, the next of which is the one with that number.
func (k *keyed) joins(n ast.ResultSetNode, next *int) []int {
	switch n := n.(type) {
	case *ast.Join:
		left := k.joins(n.Left, next)
		if n.Right == nil {
			return left
		}
		right := k.joins(n.Right, next)
		both := slices.Concat(left, right)
		k.ok = k.ok && !n.NaturalJoin && len(n.Using) == 0 && n.Tp != ast.RightJoin
		var on ast.ExprNode
		if n.On != nil {
			on = n.On.Expr
		}
		if n.Tp == ast.LeftJoin {
			k.join(on, both, right)
		} else {
			k.join(on, both, nil)
		}
		return both
	case *ast.TableSource:
		if j, ok := n.Source.(*ast.Join); ok {
			return k.joins(j, next)
		}
	}
	*next++
	return []int{*next - 1}
}

// join describes one condition.
func (k *keyed) join(on ast.ExprNode, tables, added []int) {
	j := rewrite.Join{Tables: tables, Added: added}
	if on != nil {
		f := walk(on)
		k.ok = k.ok && f.queries == 0
		for _, c := range f.columns {
			j.Refs = append(j.Refs, k.own(c))
		}
		k.equate(&j, on)
	}
	k.is.Joins = append(k.is.Joins, j)
}

// equate notes the equalities that a condition joins by AND.
func (k *keyed) equate(j *rewrite.Join, e ast.ExprNode) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		k.equate(j, e.Expr)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd {
			k.equate(j, e.L)
			k.equate(j, e.R)
			return
		}
		l, ok1 := e.L.(*ast.ColumnNameExpr)
		r, ok2 := e.R.(*ast.ColumnNameExpr)
		if e.Op != opcode.EQ || !ok1 || !ok2 {
			return
		}
		a, b := k.own(l.Name), k.own(r.Name)
		if k.ok && sameValues(k.list[a.Table].column(a.Name), k.list[b.Table].column(b.Name)) {
			j.Equal = append(j.Equal, [2]rewrite.Column{a, b})
		}
	}
}

// sameValues reports whether = between two columns leaves one value for either if the other one is given.
func sameValues(a, b *rewrite.Attribute) bool {
	return exactNumber(a) && exactNumber(b) || typeName(a.Type) == "uuid" && typeName(b.Type) == "uuid"
}

// folds reports whether rows of a query's only table may look alike to SELECT DISTINCT: the answer does not show the primary key.
func folds(s *planner, n *ast.SelectStmt, list []source) bool {
	if !n.Distinct || n.GroupBy != nil || s.aggregates(n) {
		return false
	}
	src := &list[0]
	var shown []string
	for _, f := range n.Fields.Fields {
		if c, ok := f.Expr.(*ast.ColumnNameExpr); ok && s.owns(c.Name, list, src, 1) {
			shown = append(shown, c.Name.Name.O)
		} else if f.WildCard != nil && shows(f, src) {
			shown = append(shown, src.rel.Key...)
		}
	}
	return statement.Whole([][]string{src.rel.Key}, func(c string) bool { return mysqlsyntax.ContainsName(shown, c) }) == nil
}

package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/rewrite"
)

// SELECT DISTINCT shows one row for several. Where each of its rows comes from one row of a table only, because the primary key is
// among what it compares, or because a join finds that row by its key, the version of that row goes with it: it is the same wherever the rest is
// the same. Tables of outer joins on which nothing else depends change nothing in such an answer, so they have nothing to tell. ORMs make
// their pages so, by the key of the main table.

// column is a column of one of the sources of a query.
type column struct {
	src  int
	name string // in lower case
}

// keys finds out which rows are certain once some columns are.
type keys struct {
	s     *planner
	q     *ast.SelectStmt
	list  []source
	fixed map[column]bool
}

// keyed reports whether each row of a SELECT DISTINCT comes from one row of each table that matters, and whether its order is certain. It notes
// in e which tables do not matter.
func (s *planner) keyed(n *ast.SelectStmt, list []source, e *exposure) bool {
	if s.r.flavor == TiDB || n.From == nil || n.OrderBy == nil || n.Having != nil || n.With != nil {
		return false
	}
	q := n
	if len(list) == 1 && list[0].query != nil {
		if q = list[0].query; n.Where != nil || q.From == nil || q.Limit != nil || q.Distinct || q.GroupBy != nil || q.Having != nil || s.aggregates(q) {
			return false
		}
		list, _ = s.sources(q.From.TableRefs, nil)
	}
	if walk(q.Where).queries > 0 || slices.ContainsFunc(list, func(src source) bool { return src.rel == nil || src.why != "" }) {
		return false
	}
	k := &keys{s: s, q: q, list: list}
	outputs, ok := k.columns(n, n.Fields.Fields)
	if !ok || walk(n.Fields).queries > 0 {
		return false
	}
	var order []column
	for _, item := range n.OrderBy.Items {
		c, ok := k.ordered(n, item.Expr)
		if !ok {
			return false
		}
		order = append(order, c)
	}
	needed, ok := k.needed(append(slices.Clone(outputs), order...))
	if !ok {
		return false
	}
	k.settle(order) // the order is that of all rows
	if slices.ContainsFunc(outputs, func(c column) bool { return !k.fixed[c] }) {
		return false
	}
	k.settle(outputs)
	for i := range list {
		if needed[i] && !k.found(i) {
			return false
		}
	}
	e.distinct, e.idle = q, map[string]bool{}
	for i := range list {
		e.idle[strings.ToLower(list[i].alias)] = !needed[i]
	}
	return true
}

// resolve gives the column that an expression is, directly or by its name in a derived table.
func (k *keys) resolve(n *ast.SelectStmt, e ast.ExprNode) (column, bool) {
	c, ok := e.(*ast.ColumnNameExpr)
	if !ok {
		return column{}, false
	}
	if n == k.q {
		return k.own(c.Name)
	}
	var found column
	count := 0
	for _, f := range k.q.Fields.Fields {
		name := f.AsName.L
		inner, is := f.Expr.(*ast.ColumnNameExpr)
		if name == "" && is {
			name = inner.Name.Name.L
		}
		if f.WildCard == nil && name == c.Name.Name.L && is {
			found, ok = k.own(inner.Name)
			count++
		}
	}
	return found, ok && count == 1
}

// own gives the column of the query's own tables that a name means.
func (k *keys) own(c *ast.ColumnName) (column, bool) {
	for i := range k.list {
		if src := &k.list[i]; k.s.owns(c, k.list, src, 1) && src.column(c.Name.O) != nil {
			return column{i, c.Name.L}, true
		}
	}
	return column{}, false
}

// columns gives the columns that a select list consists of; ok is false if there is something else in it.
func (k *keys) columns(n *ast.SelectStmt, fields []*ast.SelectField) (out []column, ok bool) {
	for _, f := range fields {
		c, ok := k.resolve(n, f.Expr)
		if !ok {
			return nil, false
		}
		out = append(out, c)
	}
	return out, true
}

// ordered gives the column that an item of ORDER BY is, perhaps by the name that the select list gives it.
func (k *keys) ordered(n *ast.SelectStmt, e ast.ExprNode) (column, bool) {
	if c, ok := e.(*ast.ColumnNameExpr); ok && c.Name.Table.O == "" {
		for _, f := range n.Fields.Fields {
			if f.AsName.L == c.Name.Name.L {
				return k.resolve(n, f.Expr)
			}
		}
	}
	return k.resolve(n, e)
}

// needed says which tables the answer depends on: all but those that an outer join adds and to which nothing else refers. ok is false if a
// name is not certain.
func (k *keys) needed(shown []column) (needed []bool, ok bool) {
	needed, ok = make([]bool, len(k.list)), true
	refer := func(e ast.ExprNode) {
		if e == nil {
			return
		}
		f := walk(e)
		ok = ok && f.queries == 0
		for _, c := range f.columns {
			col, known := k.own(c)
			if ok = ok && known; known {
				needed[col.src] = true
			}
		}
	}
	for _, c := range shown {
		needed[c.src] = true
	}
	refer(k.q.Where)
	optional := map[int][]*ast.Join{} // the outer joins that may leave a table out
	k.joins(k.q.From.TableRefs, func(j *ast.Join, _, right []int) {
		ok = ok && !j.NaturalJoin && len(j.Using) == 0
		for _, i := range right {
			if j.Tp == ast.LeftJoin {
				optional[i] = append(optional[i], j)
			}
		}
		if j.Tp == ast.RightJoin {
			ok = false // ORMs write left joins
		}
	})
	for i := range k.list {
		needed[i] = needed[i] || len(optional[i]) == 0
	}
	for again := true; again && ok; {
		before := slices.Clone(needed)
		k.joins(k.q.From.TableRefs, func(j *ast.Join, _, right []int) {
			if j.On != nil && (j.Tp != ast.LeftJoin || slices.ContainsFunc(right, func(i int) bool { return needed[i] })) && k.matters(right, needed, j) {
				refer(j.On.Expr)
			}
		})
		again = !slices.Equal(before, needed)
	}
	return needed, ok
}

// matters reports whether the condition of a join does: one of the tables that it joins is needed.
func (k *keys) matters(right []int, needed []bool, j *ast.Join) bool {
	if slices.ContainsFunc(right, func(i int) bool { return needed[i] }) {
		return true
	}
	some := false
	k.joins(j, func(_ *ast.Join, left, right []int) {
		some = some || slices.ContainsFunc(append(left, right...), func(i int) bool { return needed[i] })
	})
	return some
}

// joins calls f for each join with the tables of its sides, as places in the list.
func (k *keys) joins(n ast.ResultSetNode, f func(j *ast.Join, left, right []int)) {
	next := 0
	var visit func(n ast.ResultSetNode) []int
	visit = func(n ast.ResultSetNode) []int {
		switch n := n.(type) {
		case *ast.Join:
			left := visit(n.Left)
			if n.Right == nil {
				return left
			}
			right := visit(n.Right)
			f(n, left, right)
			return slices.Concat(left, right)
		case *ast.TableSource:
			if j, ok := n.Source.(*ast.Join); ok {
				return visit(j)
			}
		}
		next++
		return []int{next - 1}
	}
	visit(n)
}

// found reports whether one row at the most of a table is possible.
func (k *keys) found(i int) bool {
	key := k.list[i].rel.Key
	return len(key) > 0 && !slices.ContainsFunc(key, func(c string) bool { return !k.fixed[column{i, strings.ToLower(c)}] })
}

// settle finds all columns that have one value once those of from have.
func (k *keys) settle(from []column) {
	k.fixed = map[column]bool{}
	for _, c := range from {
		k.fixed[c] = true
	}
	for again := true; again; {
		before := len(k.fixed)
		for i := range k.list {
			if k.found(i) {
				for _, c := range k.list[i].visible() {
					k.fixed[column{i, c}] = true
				}
			}
		}
		k.equate(k.q.Where, nil)
		k.joins(k.q.From.TableRefs, func(j *ast.Join, _, right []int) {
			if j.On != nil && j.Tp == ast.LeftJoin {
				if len(right) == 1 && k.decided(j.On.Expr, right[0]) {
					k.equate(j.On.Expr, right)
				}
			} else if j.On != nil && j.Tp == ast.CrossJoin {
				k.equate(j.On.Expr, nil)
			}
		})
		again = len(k.fixed) > before
	}
}

// decided reports whether all that a condition of a left join needs of other tables than the one that it adds is fixed.
func (k *keys) decided(on ast.ExprNode, added int) bool {
	return !slices.ContainsFunc(walk(on).columns, func(c *ast.ColumnName) bool {
		col, ok := k.own(c)
		return !ok || col.src != added && !k.fixed[col]
	})
}

// equate follows the equalities that a condition joins by AND. into are the tables whose columns they fix; nil: all.
func (k *keys) equate(e ast.ExprNode, into []int) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		k.equate(e.Expr, into)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd {
			k.equate(e.L, into)
			k.equate(e.R, into)
			return
		}
		l, ok1 := k.resolve(k.q, e.L)
		r, ok2 := k.resolve(k.q, e.R)
		if e.Op != opcode.EQ || !ok1 || !ok2 || !sameValues(k.list[l.src].column(l.name), k.list[r.src].column(r.name)) {
			return
		}
		for _, p := range [2][2]column{{l, r}, {r, l}} {
			if k.fixed[p[0]] && (into == nil || slices.Contains(into, p[1].src) && !slices.Contains(into, p[0].src)) {
				k.fixed[p[1]] = true
			}
		}
	}
}

// sameValues reports whether = between two columns leaves one value for either if the other one is given.
func sameValues(a, b *rewrite.Attribute) bool {
	return exactNumber(a) && exactNumber(b) || typeName(a.Type) == "uuid" && typeName(b.Type) == "uuid"
}

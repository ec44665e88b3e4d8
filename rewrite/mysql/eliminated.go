package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// MariaDB does not read the inner table of an outer join to which nothing else refers, if the join finds one row of it at most: by a unique key
// (knowledge base, "Table Elimination"; 10.11.19). A column of ours would make the server read it, and then compare, warn and lock where it does
// not otherwise. Such a table changes nothing in the answer, and has nothing to tell.

// outerJoin is an outer join whose inner side is one table, which has that number in the FROM clause.
type outerJoin struct {
	inner int
	on    ast.ExprNode
}

// eliminate marks the tables of a query that the server does not read.
func (s *scene) eliminate(n *ast.SelectStmt, list []source) {
	if s.r.flavor != MariaDB || n.From == nil || joinsByName(n.From.TableRefs) {
		return
	}
	joins, _ := outerJoins(n.From.TableRefs, 0)
	used := s.named(n)
	for again := true; again; {
		again = false
		for _, j := range joins {
			src := &list[j.inner]
			if src.eliminated || src.rel == nil || j.on == nil || !unique(j.on, src, list) || slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool { return f.WildCard != nil && shows(f, src) }) {
				continue
			}
			own := walk(j.on).columns
			rest := slices.DeleteFunc(slices.Clone(used), func(c *ast.ColumnName) bool { return slices.Contains(own, c) })
			if !slices.ContainsFunc(rest, src.mayOwn) {
				used, src.eliminated, again = rest, true, true
			}
		}
	}
}

// named gives the columns that a query names, but those that subqueries certainly find in their own tables.
func (s *scene) named(n ast.Node) (columns []*ast.ColumnName) {
	mysqlsyntax.Visit(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ColumnNameExpr:
			columns = append(columns, n.Name)
		case *ast.SubqueryExpr:
			q, ok := n.Query.(*ast.SelectStmt)
			if !ok || q.With != nil {
				break
			}
			list, _ := s.sources(refsOf(q), nil)
			columns = append(columns, slices.DeleteFunc(s.named(q), func(c *ast.ColumnName) bool {
				return slices.ContainsFunc(list, func(src source) bool { return src.rel != nil && src.mayOwn(c) })
			})...)
			return true
		}
		return false
	})
	return columns
}

// outerJoins lists those of a FROM clause whose first table has the number at. next is the number behind its last one.
func outerJoins(n ast.ResultSetNode, at int) (list []outerJoin, next int) {
	if t, ok := n.(*ast.TableSource); ok {
		if j, ok := t.Source.(*ast.Join); ok {
			return outerJoins(j, at)
		}
	}
	j, ok := n.(*ast.Join)
	if !ok {
		return nil, at + 1
	}
	list, mid := outerJoins(j.Left, at)
	if j.Right == nil {
		return list, mid
	}
	right, next := outerJoins(j.Right, mid)
	list = append(list, right...)
	switch {
	case j.On == nil:
	case j.Tp == ast.LeftJoin && next == mid+1:
		list = append(list, outerJoin{mid, j.On.Expr})
	case j.Tp == ast.RightJoin && mid == at+1:
		list = append(list, outerJoin{at, j.On.Expr})
	}
	return list, next
}

// mayOwn reports whether a name may mean a column of src.
func (src *source) mayOwn(c *ast.ColumnName) bool {
	if c.Table.O != "" {
		return strings.EqualFold(c.Table.O, src.alias)
	}
	return src.column(c.Name.O) != nil
}

// unique reports whether a condition finds at most one row of src, as the server sees it: it joins by AND what equates all columns of a unique
// key with values of other tables. What is compared as DOUBLE may equal several BIGINT or DECIMAL, but one INT only. Columns of one type compare as that type.
func unique(on ast.ExprNode, src *source, list []source) bool {
	if f := walk(on); f.queries > 0 || len(f.functions) > 0 || f.setVar {
		return false
	}
	var fixed []string
	equalities(on, func(op opcode.Op, l, r ast.ExprNode) {
		c, ok := l.(*ast.ColumnNameExpr)
		if !ok || op != opcode.EQ || !src.mayOwn(c.Name) || slices.ContainsFunc(walk(r).columns, src.mayOwn) {
			return
		}
		key, isKey := src.column(c.Name.Name.O), false
		if key == nil {
			return
		}
		if c, ok := unwrapped(r).(*ast.ColumnNameExpr); ok {
			for i := range list {
				if list[i].rel != nil && list[i].mayOwn(c.Name) {
					a := list[i].column(c.Name.Name.O)
					isKey = isKey || a != nil && typeName(a.Type) == typeName(key.Type) && a.Collation == key.Collation
				}
			}
		}
		switch typeName(key.Type) {
		case "tinyint", "smallint", "mediumint", "int", "integer":
			isKey = true
		case "char", "varchar":
			if v, ok := r.(*mysqlsyntax.Value); ok {
				_, isKey = v.V.(string)
			}
		}
		if isKey {
			fixed = append(fixed, key.Name)
		}
	})
	return statement.Whole(src.rel.Unique, func(c string) bool { return mysqlsyntax.ContainsName(fixed, c) }) != nil
}

// mixes reports whether a query joins tables by equating the first column of an index, a text, with a number or a time. Of a view
// it may be one. MariaDB may then
// look for each row whether the index serves, and says so in its status flags; with a wider table it decides otherwise (10.11.19).
func (s *planner) mixes(n *ast.SelectStmt, list []source) (found bool) {
	if len(list) < 2 {
		return false
	}
	q := quietly{s: s, list: list}
	indexedText := func(e ast.ExprNode) bool {
		c, ok := e.(*ast.ColumnNameExpr)
		return ok && slices.ContainsFunc(list, func(src source) bool {
			if src.rel == nil || !src.mayOwn(c.Name) || src.column(c.Name.Name.O) == nil || q.ofColumn(src.column(c.Name.Name.O)) != kindText {
				return false
			}
			return src.rel.Kind == "view" || slices.ContainsFunc(slices.Concat([][]string{src.rel.Key}, src.rel.Indexes), func(ix []string) bool {
				return len(ix) > 0 && strings.EqualFold(ix[0], c.Name.Name.O)
			})
		})
	}
	other := func(e ast.ExprNode) bool {
		_, ok := e.(*ast.ColumnNameExpr)
		return ok && (q.kind(e) == kindNumber || q.kind(e) == kindTime)
	}
	look := func(n ast.Node) {
		if e, ok := n.(*ast.BinaryOperationExpr); ok && e.Op == opcode.EQ {
			found = found || indexedText(e.L) && other(e.R) || indexedText(e.R) && other(e.L)
		}
	}
	visit(n.From, look)
	if n.Where != nil {
		visit(n.Where, look)
	}
	return found
}

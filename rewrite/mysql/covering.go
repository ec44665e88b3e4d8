package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// A query that an index answers alone must not ask for more columns of that table: the server would read the table in place of the
// index, so that the rows come in another order, the first rows are others, the status flags say that no index was used, and a locking
// read locks more (MariaDB 10.11.19, MySQL 9.7.4). But each index has the primary key. So what the hidden columns hold comes from a subquery
// that finds the row by its primary key: the plan of the query stays what it is, and a statement has one view of the database for all its
// plain reads (MySQL manual, 17.7.2.3; not at READ UNCOMMITTED).

// indexed looks whether an index may answer a query alone. If so, src is read by its key, or why says that it is not seen.
func (s *planner) indexed(n *ast.SelectStmt, all finding, list []source, src *source, locking bool) (why string) {
	switch {
	case src.rel == nil || src.why != "":
		return ""
	case locking && (s.covered(n, all, list, src) || s.keyCovered(n, all, list, src) && s.tellsKey(n, list, src)):
		return "a locking read that an index covers"
	case (n.GroupBy != nil || n.Distinct || all.distinct) && len(list) == 1 && all.plain == 0 && (s.keyCovered(n, all, list, src) || all.distinct && !quietly{s: s, list: list}.condition(n.Where)):
		return "groups of an index that may be read in part" // loose index scan: only MIN, MAX and DISTINCT, or none; to try it, conditions are evaluated, which may warn
	case locking || !s.covered(n, all, list, src) && !(s.keyCovered(n, all, list, src) && (s.r.flavor != MariaDB || s.keyMatters(n, all, list, src))):
		return ""
	case (n.GroupBy != nil || all.distinct) && len(list) == 1 && all.plain == 0:
		return "groups of an index that may be read in part"
	case s.r.flavor == TiDB || s.session.Once || len(src.rel.Key) == 0, s.r.flavor == MySQL && s.mayJoin(n): // there the status flag "no index used" of a semijoin would go
		if s.single(n, list, src) {
			return ""
		}
		return "rows of an index that covers the query"
	}
	src.byKey(s.r.flavor)
	return ""
}

// tellsKey reports whether the answer to a locking read of rows of the primary key tells that nothing else is read: MySQL's by a status flag, MariaDB's if a
// join looks for a part of the key.
func (s *judge) tellsKey(n *ast.SelectStmt, list []source, src *source) bool {
	if s.r.flavor == MySQL {
		return !s.ordersByKey(n, list, src)
	}
	return s.r.flavor == MariaDB && len(list) > 1 && len(src.rel.Key) > 1
}

// mayJoin reports whether MySQL may make joins of the subqueries of a query's expressions. It does not of those in the select list.
func (s *judge) mayJoin(n *ast.SelectStmt) bool {
	subqueries := func(n ast.Node) (count int) {
		visit(n, func(n ast.Node) {
			if _, ok := n.(*ast.SubqueryExpr); ok {
				count++
			}
		})
		return count
	}
	nested := subqueries(n)
	if n.With != nil {
		nested -= len(n.With.CTEs)
	}
	for _, f := range n.Fields.Fields {
		if f.Expr != nil {
			nested -= subqueries(f.Expr)
		}
	}
	return nested > 0
}

// byKey makes src a source whose hidden columns are found by the primary key.
func (src *source) byKey(flavor Flavor) {
	row := behind(flavor, src.alias, src.ref, src.rel, func(key string) string { return key })
	src.found = row.tell("CONCAT(" + row.state() + ")")
}

// rowBehind is the row of a table that another row shows, found by its primary key.
type rowBehind struct {
	source
	where string
}

// behind finds the row of rel behind one of ref, of which column gives the columns that show the primary key.
func behind(flavor Flavor, alias, ref string, rel *rewrite.Relation, column func(key string) string) rowBehind {
	row := rowBehind{source: source{rel: rel, alias: "wc_k"}}
	if strings.EqualFold(alias, row.alias) {
		row.alias = "wc_k0"
	}
	row.ref = mysqlsyntax.Quote(row.alias)
	row.key = rowKey(flavor, &row.source)
	where := make([]string, len(rel.Key))
	for i, key := range rel.Key {
		where[i] = row.ref + "." + mysqlsyntax.Quote(key) + "=" + ref + "." + mysqlsyntax.Quote(column(key))
	}
	row.where = strings.Join(where, " AND ")
	return row
}

// tell is a subquery that gives an expression of the row.
func (row *rowBehind) tell(expr string) string {
	return fmt.Sprintf("(SELECT %s FROM %s.%s %s WHERE %s)", expr, mysqlsyntax.Quote(row.rel.Schema), mysqlsyntax.Quote(row.rel.Name), row.ref, row.where)
}

// covered reports whether a secondary index may hold all columns of src that the query uses: then reading more of it
// would lock the clustered index records too, which the client's own statement leaves alone.
func (s *judge) covered(n *ast.SelectStmt, all finding, list []source, src *source) bool {
	return len(src.rel.Indexes) > 0 && !s.pointKey(n.Where, list, src) && s.holds(src, s.uses(n, all, list, src))
}

// uses gives the columns of src that the query uses. One that stands for a column of the answer, or may, is not among them.
func (s *judge) uses(n *ast.SelectStmt, all finding, list []source, src *source) (columns []string) {
	for _, f := range n.Fields.Fields { // some wildcard: of this table unless it is qualified by another one
		if f.WildCard != nil && (f.WildCard.Table.O == "" || strings.EqualFold(f.WildCard.Table.O, src.alias)) {
			return src.visible()
		}
	}
	own, shown := outside(n), named(n)
	for _, c := range all.columns {
		if slices.Contains(shown, c) {
			continue
		}
		sub := all.sub
		if slices.Contains(own, c) {
			sub = 1
		}
		if s.owns(c, list, src, sub) && !slices.Contains(columns, c.Name.L) {
			columns = append(columns, c.Name.L)
		}
	}
	return columns
}

// named gives the columns of ORDER BY, GROUP BY and HAVING that may be columns of the answer, by their names.
func named(n *ast.SelectStmt) (columns []*ast.ColumnName) {
	var list []*ast.ColumnName
	if n.OrderBy != nil {
		list = outside(n.OrderBy)
	}
	if n.GroupBy != nil {
		list = append(list, outside(n.GroupBy)...)
	}
	if n.Having != nil {
		list = append(list, outside(n.Having)...)
	}
	return slices.DeleteFunc(list, func(c *ast.ColumnName) bool { return c.Table.O != "" || !renames(n, c.Name.O) })
}

// keyCovered reports whether the primary key holds all columns of src that the query uses, and no condition bounds it:
// the server takes that for the scan of an index, and with more columns for one of the table. MySQL's status flags tell, and a
// join may come in another order.
func (s *judge) keyCovered(n *ast.SelectStmt, all finding, list []source, src *source) bool {
	return len(src.rel.Key) > 0 && (s.r.flavor == MariaDB && len(list) > 1 || !s.boundsKey(n.Where, list, src)) &&
		!slices.ContainsFunc(s.uses(n, all, list, src), func(c string) bool { return !mysqlsyntax.ContainsName(src.rel.Key, c) })
}

// ordersByKey reports whether the rows come in the order of the primary key, or in the reverse one.
func (s *judge) ordersByKey(n *ast.SelectStmt, list []source, src *source) bool {
	if n.OrderBy == nil || len(list) > 1 {
		return false
	}
	for i, item := range n.OrderBy.Items[:min(len(n.OrderBy.Items), len(src.rel.Key))] {
		c, ok := item.Expr.(*ast.ColumnNameExpr)
		if !ok || item.Desc != n.OrderBy.Items[0].Desc || !s.owns(c.Name, list, src, 1) || !strings.EqualFold(c.Name.Name.O, src.rel.Key[i]) {
			return false
		}
	}
	return true
}

// keyMatters reports whether MariaDB may execute a query of rows of the primary key otherwise than one of whole rows: a join may look for a part of the key, and
// the key gives an order to groups.
func (s *judge) keyMatters(n *ast.SelectStmt, all finding, list []source, src *source) bool {
	return len(list) > 1 && (n.OrderBy != nil || n.GroupBy != nil || n.Distinct || all.distinct || len(src.rel.Key) > 1)
}

// boundsKey reports whether the condition certainly compares the first column of the primary key with values.
func (s *judge) boundsKey(e ast.ExprNode, list []source, src *source) bool {
	first := func(e ast.ExprNode) bool {
		c, ok := e.(*ast.ColumnNameExpr)
		return ok && s.owns(c.Name, list, src, 1) && strings.EqualFold(c.Name.Name.O, src.rel.Key[0])
	}
	column := src.column(src.rel.Key[0])
	constant := func(e ast.ExprNode) bool {
		if exactNumber(column) {
			f := walk(e)
			return e != nil && len(f.columns) == 0 && f.queries == 0
		}
		literal, ok := e.(*mysqlsyntax.Value) // a number bounds no texts
		if ok && column != nil && !slices.Contains([]string{"enum", "set"}, typeName(column.Type)) {
			_, ok = literal.V.(string)
			return ok
		}
		return false
	}
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return s.boundsKey(e.Expr, list, src)
	case *ast.BetweenExpr:
		return !e.Not && first(e.Expr) && constant(e.Left) && constant(e.Right)
	case *ast.PatternInExpr:
		return !e.Not && e.Sel == nil && first(e.Expr) && !slices.ContainsFunc(e.List, func(v ast.ExprNode) bool { return !constant(v) })
	case *ast.BinaryOperationExpr:
		switch e.Op.String() {
		case "and":
			return s.boundsKey(e.L, list, src) || s.boundsKey(e.R, list, src)
		case "eq", "nulleq", "lt", "le", "gt", "ge":
			return first(e.L) && constant(e.R) || first(e.R) && constant(e.L)
		}
	}
	return false
}

// single reports whether at most one row of src is read. A unique key holds many NULLs.
func (s *planner) single(n *ast.SelectStmt, list []source, src *source) bool {
	return !strings.Contains(s.plan.Text, "<=>") && s.equates(n.Where, list, src, src.rel.Unique, s.equalsOne)
}

// holds reports whether one secondary index, with the primary key that each has, holds the columns.
func (s *judge) holds(src *source, used []string) bool {
	for _, ix := range src.rel.Indexes {
		if !slices.ContainsFunc(used, func(c string) bool {
			return !mysqlsyntax.ContainsName(ix, c) && !mysqlsyntax.ContainsName(src.rel.Key, c)
		}) {
			return true
		}
	}
	return false
}

// outside gives the columns that a query names outside of subqueries.
func outside(n ast.Node) (columns []*ast.ColumnName) {
	mysqlsyntax.Visit(n, func(n ast.Node) bool {
		if c, ok := n.(*ast.ColumnNameExpr); ok {
			columns = append(columns, c.Name)
		}
		_, nested := n.(*ast.SubqueryExpr)
		return nested
	})
	return columns
}

package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement/mysqlsyntax"
)

// top tells the one row of a subquery that has the first of a table's rows, by ORDER BY and LIMIT 1: the last order of a customer. If the order does
// not name a key, rows may be alike in it; then the row that is first by the key as well is told, and the one that is last: they differ if there was
// a choice.
func (r *reader) top(q *ast.SelectStmt) {
	v, ok := q.Limit.Count.(*mysqlsyntax.Value)
	if !ok || fmt.Sprint(v.V) != "1" || q.Limit.Offset != nil || q.OrderBy == nil || q.Distinct || q.GroupBy != nil || q.Having != nil || len(q.WindowSpecs) > 0 || len(q.Fields.Fields) != 1 {
		return
	}
	if _, ok := q.Fields.Fields[0].Expr.(*ast.ColumnNameExpr); !ok {
		return
	}
	list, text, ok := r.scan(q)
	if !ok || len(list) != 1 || len(list[0].rel.Key) == 0 {
		return
	}
	src := &list[0]
	var order, first, last, columns []string
	for _, item := range q.OrderBy.Items {
		c, ok := item.Expr.(*ast.ColumnNameExpr)
		if !ok || c.Name.Table.O == "" && q.Fields.Fields[0].AsName.O != "" || !r.s.owns(c.Name, list, src, 1) || src.column(c.Name.Name.O) == nil {
			return
		}
		name, direction := src.column(c.Name.Name.O).Name, ""
		if item.Desc {
			direction = " DESC"
		}
		columns, order = append(columns, name), append(order, src.ref+"."+mysqlsyntax.Quote(name)+direction)
	}
	for _, name := range src.rel.Key {
		if !mysqlsyntax.ContainsName(columns, name) {
			first, last = append(first, src.ref+"."+mysqlsyntax.Quote(name)), append(last, src.ref+"."+mysqlsyntax.Quote(name)+" DESC")
		}
	}
	r.spare(q, list, src)
	found := func(keys []string) string {
		return fmt.Sprintf("(SELECT %s %s ORDER BY %s LIMIT 1)", src.version(true), text, strings.Join(slices.Concat(order, keys), ","))
	}
	t := toldOf(src)
	t.limit, t.tied = 3, true
	add := "," + found(first)
	if len(first) > 0 {
		add = ",CONCAT(" + found(first) + ",';'," + found(last) + ")"
	}
	r.queries++
	r.lookups = append(r.lookups, lookup{add, t})
}

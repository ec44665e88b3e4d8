package mysql

import (
	"fmt"
	"slices"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement/mysqlsyntax"
)

// anyRow reports whether a query shows nothing of its rows but how many there are, so that others would have done as well where LIMIT is reached
// (rewrite.Plan.Any): SELECT 1 AS a FROM t WHERE ... LIMIT 1, as exists() of Django and Rails asks.
func anyRow(n *ast.SelectStmt) bool {
	return n.Limit != nil && n.LockInfo == nil && n.With == nil && n.GroupBy == nil && n.Having == nil && n.Fields != nil && !slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
		switch unwrapped(f.Expr).(type) {
		case *mysqlsyntax.Value, *mysqlsyntax.ParamMarker:
			return false
		}
		return true
	})
}

// another adds a column to such a query that tells whether there is a row beside those of the answer, so that LIMIT chose among them. None is needed
// where a whole unique key is given.
func (r *reader) another(n *ast.SelectStmt) {
	if !anyRow(n) || n.Limit.Offset != nil || n.OrderBy != nil || n.Distinct { // an order may make the server use an index, and it tells whether it used one
		return
	}
	count, ok := n.Limit.Count.(*mysqlsyntax.Value)
	list, text, can := r.clauses(n)
	if ok && can && (len(list) > 1 || r.s.predicate(n.Where, list)) {
		r.lookups = append(r.lookups, lookup{fmt.Sprintf(",(SELECT 1 %s LIMIT %v,1)", text, count.V), told{another: true}})
		r.s.sole = true
	}
}

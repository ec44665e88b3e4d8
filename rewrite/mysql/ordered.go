package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// ordering tells what orders a query that has a LIMIT in hidden columns, and gives the condition for the rows that LIMIT does not hide; without an operator if that is not
// certain. The columns are those of one table, which is in each row, see rewrite.Beyond. told are the texts of the hidden columns,
// in which columns are named as the map says; nil: by their own names.
func ordering(s *planner, n *ast.SelectStmt, list []source, table int, locks bool, as map[string]string) (beyond, alike condition.Condition, told []string) {
	if n.Limit == nil || n.OrderBy == nil || locks || n.Distinct || n.GroupBy != nil || n.Having != nil || n.With != nil || n.SelectIntoOpt != nil || n.Kind != ast.SelectStmtKindSelect ||
		s.r.flavor == TiDB || s.session.Once || s.session.Cut || s.plan.Lists > 0 || s.aggregates(n) || len(list) == 0 || list[table].rel == nil || list[table].rel.Kind != "table" || list[table].why != "" || listsPlace(s) < 0 {
		return beyond, alike, nil
	}
	src := &list[table]
	var columns []rewrite.Ordered
	for _, item := range n.OrderBy.Items {
		c, ok := unwrapped(item.Expr).(*ast.ColumnNameExpr)
		if !ok || c.Name.Schema.O != "" || !s.owns(c.Name, list, src, 1) || c.Name.Table.O == "" && renames(n, c.Name.Name.O) {
			break
		}
		a := src.column(c.Name.Name.O)
		if a == nil || typeName(a.Type) == "enum" || typeName(a.Type) == "uuid" || !s.kindHere(a).Orders() {
			break
		}
		o := rewrite.Ordered{Op: "<", Name: a.Name, Kind: kindOf(a), First: !item.Desc && !a.Required}
		if item.Desc {
			o.Op = ">"
		}
		columns = append(columns, o)
	}
	columns, whole := rewrite.UpToKey(columns, src.rel.Key)
	for _, o := range columns {
		ref := mysqlsyntax.Quote(src.alias) + "." + mysqlsyntax.Quote(o.Name)
		if as != nil {
			ref = as[o.Name]
		}
		switch o.Kind {
		case condition.Folded:
			told = append(told, "CAST(LEFT("+inUTF8(ref, src.column(o.Name))+","+leastLonger+") AS BINARY)")
		case condition.Bytes:
			told = append(told, "LEFT("+ref+","+leastLonger+")")
		default:
			told = append(told, "CONCAT("+ref+")")
		}
	}
	if len(told) == 0 {
		return beyond, alike, nil
	}
	beyond, alike = rewrite.Beyond(columns, whole, len(columns) == len(n.OrderBy.Items))
	return beyond, alike, told
}

// tellKeys puts columns into the statement with what each row of the answer tells (rewrite.Plan.Keys).
func tellKeys(s *planner, told []string) {
	if tellLists(s, told) {
		s.plan.Lacking, s.plan.Keys = s.plan.Hidden-len(told)+1, len(told)
	}
}

// leastLonger is the least length of texts that are longer than those of images (maxImage): no image is equal to what is cut there.
const leastLonger = "97"

// renames reports whether a column of the answer may have a name without being the table's column of that name: ORDER BY takes that first (MySQL manual, SELECT).
// A literal has its text for a name, and the plan is that of other literals, too.
func renames(n *ast.SelectStmt, name string) bool {
	return slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
		if v, ok := f.Expr.(*mysqlsyntax.Value); ok && f.AsName.O == "" {
			_, text := v.V.(string)
			return text || name[0] >= '0' && name[0] <= '9'
		}
		c, ok := f.Expr.(*ast.ColumnNameExpr)
		return strings.EqualFold(f.AsName.O, name) && !(ok && strings.EqualFold(c.Name.Name.O, name))
	})
}

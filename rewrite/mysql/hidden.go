package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// Where the log tells the rows of all groups (groups), it tells the values on which HAVING rests, too. So it is known of groups that HAVING hides which change would take
// them over the border, also where the answer has no row.

// hiddenGroups is what HAVING asks of the groups of one table.
type hiddenGroups struct {
	s       *planner
	list    []source // the table
	fields  []*ast.SelectField
	groups  condition.Groups
	columns []*rewrite.Attribute // that the log is to tell
}

// groupsHidden gives what HAVING asks of groups; nil if it is not of numbers that the log can tell.
func groupsHidden(s *planner, n *ast.SelectStmt, list []source) *hiddenGroups {
	if n.Having == nil || n.GroupBy == nil || n.GroupBy.Rollup || len(n.GroupBy.Items) > maxGroupedBy || len(list) != 1 || list[0].rel == nil || list[0].rel.Kind != "table" || n.Limit != nil || n.Distinct ||
		n.With != nil || n.LockInfo != nil || s.session.Cut || s.session.LockingReads || s.r.flavor == TiDB || walk(n).queries > 1 || walk(n).window {
		return nil
	}
	h := &hiddenGroups{s: s, list: list, fields: n.Fields.Fields, groups: condition.Groups{Of: []string{condition.CountAll}}}
	for _, item := range n.GroupBy.Items {
		c, ok := unwrapped(item.Expr).(*ast.ColumnNameExpr)
		if !ok || !s.owns(c.Name, list, &list[0], 1) || renames(n, c.Name.Name.O) {
			return nil
		}
		column := list[0].column(c.Name.Name.O)
		if !integer(column) {
			return nil
		}
		h.groups.By = append(h.groups.By, column.Name)
		h.want(column)
	}
	certain := true
	mysqlsyntax.Visit(n.Having.Expr, func(n ast.Node) bool {
		e, is := n.(ast.ExprNode)
		if f, ok := h.aggregate(e); is && ok {
			name, at := h.nameOf(f)
			if certain = certain && at != nil; certain {
				h.groups.Of = appendNames(h.groups, name)
			}
			return true
		}
		return false
	})
	if !certain {
		return nil
	}
	h.groups.Shows = s.aggregates(&ast.SelectStmt{Fields: n.Fields, SelectStmtOpts: n.SelectStmtOpts})
	return h
}

// hiddenImages lets the log tell the values of the rows on which HAVING rests, with entries of another kind.
func hiddenImages(s *planner, n *ast.SelectStmt, list, seen []source, kind string) (string, []string) {
	h := groupsHidden(s, n, list)
	if h == nil || kind != "r" || len(seen) != 1 || seen[0].rel != list[0].rel {
		return kind, nil
	}
	s.hides = h
	return "R", []string{h.image(&seen[0])}
}

// maxGroupedBy is how many columns make groups at most of which the log tells the values.
const maxGroupedBy = 4

func appendNames(g condition.Groups, name string) []string {
	if fn, column := condition.Aggregate(name); column != "*" {
		g.Want(fn, column)
	}
	return g.Of
}

func (h *hiddenGroups) want(a *rewrite.Attribute) {
	if !slices.Contains(h.columns, a) {
		h.columns = append(h.columns, a)
	}
}

// aggregate gives the call of an aggregate function that an expression of HAVING is, by its name in the select list, too.
func (h *hiddenGroups) aggregate(e ast.ExprNode) (f *ast.AggregateFuncExpr, ok bool) {
	c, named := e.(*ast.ColumnNameExpr)
	if named && c.Name.Table.O == "" && h.list[0].column(c.Name.Name.O) == nil {
		for _, field := range h.fields {
			if strings.EqualFold(field.AsName.O, c.Name.Name.O) {
				e = unwrapped(field.Expr)
			}
		}
	}
	f, ok = e.(*ast.AggregateFuncExpr)
	return f, ok
}

// nameOf gives the name of an aggregate (see condition.Groups), and what it is as a column; nil if it is of another form.
func (h *hiddenGroups) nameOf(f *ast.AggregateFuncExpr) (name string, at *rewrite.Attribute) {
	fn := strings.ToLower(f.F)
	if f.Distinct || len(f.Args) != 1 {
		return "", nil
	}
	if countsAll(f) {
		return condition.CountAll, &rewrite.Attribute{Name: condition.CountAll, Type: "bigint"}
	}
	c, ok := unwrapped(f.Args[0]).(*ast.ColumnNameExpr)
	if !ok || !h.s.owns(c.Name, h.list, &h.list[0], 1) {
		return "", nil
	}
	column := h.list[0].column(c.Name.Name.O)
	if column == nil || HiddenColumn(column.Name) || column.Generated || kindOf(column) != condition.Number && fn != "count" {
		return "", nil
	}
	h.want(column)
	name = fn + "(" + column.Name + ")"
	switch fn {
	case "count":
		return name, &rewrite.Attribute{Name: name, Type: "bigint"}
	case "sum":
		return name, &rewrite.Attribute{Name: name, Type: "decimal"}
	case "min", "max":
		return name, &rewrite.Attribute{Name: name, Type: column.Type}
	}
	return "", nil
}

// countsAll reports whether an aggregate is COUNT(*), or COUNT(1).
func countsAll(f *ast.AggregateFuncExpr) bool {
	if len(f.Args) != 1 || !strings.EqualFold(f.F, "count") {
		return false
	}
	v, ok := f.Args[0].(*mysqlsyntax.Value)
	return ok && v.V != nil
}

// column gives the column or the aggregate that an expression of HAVING is, as asker.column does.
func (h *hiddenGroups) column(e ast.ExprNode) (string, *rewrite.Attribute) {
	if f, ok := h.aggregate(unwrapped(e)); ok {
		return h.nameOf(f)
	}
	c, ok := unwrapped(e).(*ast.ColumnNameExpr)
	if !ok || !h.s.owns(c.Name, h.list, &h.list[0], 1) {
		return "", nil
	}
	a := h.list[0].column(c.Name.Name.O)
	if a == nil || !slices.Contains(h.groups.By, a.Name) {
		return "", nil
	}
	return a.Name, a
}

// image is SQL text for the values of a row on which HAVING rests, as image has them.
func (h *hiddenGroups) image(src *source) string {
	var list []string
	for _, a := range h.columns {
		list = append(list, "'"+escapeName(a.Name)+"=',"+stored(src, a))
	}
	return "CONCAT(" + strings.Join(list, ",',',") + ")"
}

// asksGroups notes in a predicate read which groups the answer shows, by the column that makes them, and what decides that.
func asksGroups(s *planner, n *ast.SelectStmt, shown *rewrite.Attribute, ask *rewrite.Ask) {
	h := s.hides
	ask.Having = n.Having != nil && shown == nil && h == nil
	switch {
	case shown != nil:
		ask.Where = condition.OfGroups(s.kindHere(shown), shown.Name)
	case h != nil:
		ask.Where = condition.NoGroups(condition.HiddenGroups)
	}
	if h == nil {
		return
	}
	first := -1
	for i := range s.text.Tokens {
		if s.text.Is(i, "HAVING") {
			first = i
		}
	}
	a := &asker{planner: s, src: &h.list[0], ask: *ask, places: s.places(n.Having.Expr, first), groups: h}
	groups := h.groups
	groups.Having = a.condition(n.Having.Expr)
	*ask = a.ask
	ask.Groups, ask.List = &groups, rewrite.ListOfLog
}

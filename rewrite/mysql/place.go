package mysql

import (
	"math"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement/mysqlsyntax"
)

// placesFit reports whether the places of columns in ORDER BY and GROUP BY are certainly those of the client's columns: one
// behind them would mean one of ours, where the server has an error for the client's own text.
func placesFit(n *ast.SelectStmt, list []source) bool {
	width := 0
	for _, f := range n.Fields.Fields {
		if f.WildCard == nil {
			width++
			continue
		}
		own := 0
		for i := range list {
			src, columns := &list[i], 1
			if f.WildCard.Table.O != "" && !strings.EqualFold(f.WildCard.Table.O, src.alias) {
				continue
			}
			if src.rel != nil {
				columns = len(src.visible())
			}
			if own += columns; joinsByName(n.From.TableRefs) {
				own = max(own-columns, columns)
			}
		}
		width += own
	}
	var items []*ast.ByItem
	if n.OrderBy != nil {
		items = n.OrderBy.Items
	}
	if n.GroupBy != nil {
		items = append(slices.Clone(items), n.GroupBy.Items...)
	}
	return !slices.ContainsFunc(items, func(item *ast.ByItem) bool { return place(item.Expr) > width })
}

// place is the place of a column that an item of ORDER BY or GROUP BY is, or 0. MariaDB also takes (2), +2 and a parameter for
// one; a parameter may be any.
func place(e ast.ExprNode) int {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return place(e.Expr)
	case *ast.UnaryOperationExpr:
		return place(e.V)
	case *mysqlsyntax.ParamMarker:
		return math.MaxInt
	case *ast.PositionExpr:
		if e.P != nil {
			return math.MaxInt
		}
		return e.N
	case *mysqlsyntax.Value:
		if v, ok := e.V.(int64); ok {
			return int(v)
		}
	}
	return 0
}

// placeOf notes the tokens of the numbers of the statement's only LIMIT: LIMIT count, LIMIT count OFFSET skip, or LIMIT skip, count.
func (a *asker) placeOf(limit *ast.Limit) {
	t := a.text
	for i := range t.Tokens {
		if t.Is(i, "LIMIT") {
			if a.places == nil {
				a.places = map[ast.Node]int{}
			}
			first, second := limit.Count, limit.Offset
			if i+2 < len(t.Tokens) && t.Is(i+2, ",") {
				first, second = second, first
			}
			if a.places[first] = i + 1; second != nil {
				a.places[second] = i + 3
			}
			return
		}
	}
}

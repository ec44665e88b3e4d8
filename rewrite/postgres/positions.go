package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// A number in ORDER BY, GROUP BY or DISTINCT ON means a column of the answer, and a list of names behind an alias counts
// the columns of a subquery. What is added behind the client's columns must not be among them.

// noColumn is why a query with such a number is opaque.
const noColumn = "a number means no column of its answer"

// numbers gives the constants that mean columns of a query's answer.
func numbers(s *pg.SelectStmt) (list []*pg.A_Const) {
	var visit func(n *pg.Node)
	visit = func(n *pg.Node) {
		if c := n.GetAConst(); c != nil {
			list = append(list, c)
		}
		for _, in := range n.GetGroupingSet().GetContent() {
			visit(in)
		}
	}
	for _, n := range s.SortClause {
		visit(n.GetSortBy().GetNode())
	}
	for _, n := range slices.Concat(s.GroupClause, s.DistinctClause) {
		visit(n)
	}
	return list
}

// numbered reports whether a statement has such constants: then its plan is not that of other numbers.
func numbered(m proto.Message) bool {
	found := false
	pgsyntax.Walk(m, func(m proto.Message) bool {
		if s, ok := m.(*pg.SelectStmt); ok {
			found = found || len(numbers(s)) > 0
		}
		return !found
	})
	return found
}

// beyond reports whether a number may mean a column behind the client's.
func (x *scene) beyond(s *pg.SelectStmt) bool {
	return slices.ContainsFunc(numbers(s), func(c *pg.A_Const) bool {
		return c.GetIval() == nil || int(c.GetIval().GetIval()) > x.width(s)
	})
}

// width is how many columns a query has at least.
func (x *scene) width(s *pg.SelectStmt) int {
	if s == nil {
		return 0
	}
	if s.Op != pg.SetOperation_SETOP_NONE {
		return x.width(s.Larg)
	}
	if len(s.ValuesLists) > 0 {
		return len(s.ValuesLists[0].GetList().GetItems())
	}
	n := 0
	for _, t := range s.TargetList {
		f := t.GetResTarget().GetVal().GetColumnRef().GetFields()
		switch {
		case len(f) == 0 || f[len(f)-1].GetAStar() == nil:
			n++
		case len(f) == 1:
			for _, item := range s.FromClause {
				n += x.itemWidth(item)
			}
		}
	}
	return n
}

// itemWidth is how many columns an item of a FROM clause has at least.
func (x *scene) itemWidth(n *pg.Node) int {
	switch f := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		if c := x.ctes[f.RangeVar.Relname]; f.RangeVar.Schemaname == "" && c != nil {
			return 0 // it may refer to itself
		}
		if rel, _ := x.resolve(f.RangeVar); rel != nil {
			return len(rel.Columns)
		}
	case *pg.Node_RangeTableSample:
		return x.itemWidth(f.RangeTableSample.Relation)
	case *pg.Node_RangeSubselect:
		return x.width(f.RangeSubselect.Subquery.GetSelectStmt())
	case *pg.Node_JoinExpr:
		l, r := x.itemWidth(f.JoinExpr.Larg), x.itemWidth(f.JoinExpr.Rarg)
		if f.JoinExpr.IsNatural || len(f.JoinExpr.UsingClause) > 0 {
			return max(l, r)
		}
		return l + r
	}
	return 0
}

// SameColumns reports whether tables of the same names have the same columns.
func SameColumns(before, after []rewrite.Use) bool {
	return !slices.ContainsFunc(before, func(u rewrite.Use) bool {
		i := slices.IndexFunc(after, func(v rewrite.Use) bool { return v.Name == u.Name })
		return i < 0 || !slices.EqualFunc(u.Known.Relations, after[i].Known.Relations, func(a, b *rewrite.Relation) bool {
			return a.OID == b.OID && slices.EqualFunc(a.Columns, b.Columns, func(a, b rewrite.Attribute) bool {
				return a.Name == b.Name && a.Type == b.Type && a.Type != "domain" && a.Type != "enum" && a.Type != "other"
			})
		})
	})
}

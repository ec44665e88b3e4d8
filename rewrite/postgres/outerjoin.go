package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// nullable is a table on the side of an outer join that may be missing.
type nullable struct {
	rv   *pg.RangeVar
	join *pg.JoinExpr // of which it is that side by itself; nil: a join is
	// refs are the other joins whose conditions name its columns. fuzzy says that others may: NATURAL, USING, a select list of which not all is
	// needed.
	refs  []*pg.JoinExpr
	fuzzy bool
}

// kept leaves out the tables of outer joins that the server need not read, since nothing refers to them and a unique
// index lets them add no rows: asking for their versions would make it read them. If that is certain, nothing depends on their
// rows, and they count as idle. shown says that the select list is the client's answer, so that all of it is needed.
//
// The server leaves out a table that is one side of a left join by itself, whose columns nothing above that join needs, and of which the join's
// own condition finds one row at most by a unique index; and then perhaps others, to which only that join's condition
// referred (join_is_removable and remove_useless_joins, src/backend/optimizer/plan/analyzejoins.c).
func (x *judge) kept(s *pg.SelectStmt, list []source, shown bool) []source {
	sides, joins := outerSides(s)
	if len(sides) == 0 {
		return list
	}
	if hasStar(s, shown) {
		return list
	}
	may, must := map[*pg.RangeVar]*nullable{}, map[*pg.RangeVar]*nullable{}
	for _, n := range sides {
		if x.neededAbove(s, n, shown) {
			continue
		}
		x.mentions(s, n, joins, shown)
		if n.join == nil || x.mayBeUnique(n) {
			may[n.rv] = n
		}
		if n.join != nil && !n.fuzzy && x.unique(n, s) {
			must[n.rv] = n
		}
	}
	settle(may)
	settle(must)
	return slices.DeleteFunc(list, func(src source) bool {
		for rv := range may {
			if src.up != "" || src.cols != nil || len(src.rel.Unique) == 0 || refName(rv) != src.ref {
				continue
			}
			if must[rv] != nil {
				x.idle++
			} else {
				x.missing("the server may leave %s out", src.rel.RelationName)
			}
			return true
		}
		return false
	})
}

// settle takes out the tables that another join needs, unless that join goes as well.
func settle(out map[*pg.RangeVar]*nullable) {
	for again := true; again; {
		again = false
		for rv, n := range out {
			if slices.ContainsFunc(n.refs, func(j *pg.JoinExpr) bool { return out[side(j)] == nil }) {
				delete(out, rv)
				again = true
			}
		}
	}
}

// side is the table that is the side of an outer join that may be missing; nil if it is an inner join or the side is a join.
func side(j *pg.JoinExpr) *pg.RangeVar {
	switch j.Jointype {
	case pg.JoinType_JOIN_LEFT:
		return j.Rarg.GetRangeVar()
	case pg.JoinType_JOIN_RIGHT:
		return j.Larg.GetRangeVar()
	}
	return nil
}

// outerSides finds the tables that may be missing, and all joins.
func outerSides(s *pg.SelectStmt) (sides []*nullable, joins []*pg.JoinExpr) {
	add := func(j *pg.JoinExpr, arg *pg.Node) {
		for _, rv := range tables([]*pg.Node{arg}) {
			i := slices.IndexFunc(sides, func(n *nullable) bool { return n.rv == rv })
			if i < 0 {
				i = len(sides)
				sides = append(sides, &nullable{rv: rv})
			}
			if side(j) == rv {
				sides[i].join = j
			}
		}
	}
	pgsyntax.WalkAll(s.FromClause, func(m proto.Message) bool {
		if j, ok := m.(*pg.JoinExpr); ok {
			joins = append(joins, j)
			switch j.Jointype {
			case pg.JoinType_JOIN_LEFT:
				add(j, j.Rarg)
			case pg.JoinType_JOIN_RIGHT:
				add(j, j.Larg)
			}
		}
		_, sub := m.(*pg.SelectStmt)
		return !sub
	})
	return sides, joins
}

// refName is the name by which a statement calls a table: its alias, if it has one.
func refName(rv *pg.RangeVar) string {
	if rv.Alias != nil {
		return rv.Alias.Aliasname
	}
	return rv.Relname
}

// above are the parts of a query that need what the joins give.
func above(s *pg.SelectStmt, shown bool) [][]*pg.Node {
	parts := [][]*pg.Node{{s.WhereClause}, s.GroupClause, {s.HavingClause}, s.SortClause, s.WindowClause, s.DistinctClause}
	if shown {
		parts = append(parts, s.TargetList)
	}
	return parts
}

// hasStar reports whether * stands there, which may need all tables.
func hasStar(s *pg.SelectStmt, shown bool) bool {
	star := false
	for _, part := range above(s, shown) {
		pgsyntax.WalkAll(part, func(m proto.Message) bool {
			r, ok := m.(*pg.ColumnRef)
			star = star || ok && len(r.Fields) == 1 && r.Fields[0].GetAStar() != nil
			return !star
		})
	}
	return star
}

// names reports whether an expression names a table or a column of it.
func (x *judge) names(part []*pg.Node, rv *pg.RangeVar) bool {
	found := false
	pgsyntax.WalkAll(part, func(m proto.Message) bool {
		r, ok := m.(*pg.ColumnRef)
		found = found || ok && (x.columnOf(r, rv) || r.Fields[0].GetString_().GetSval() == refName(rv))
		return !found
	})
	return found
}

// neededAbove reports whether something above the joins needs the table.
func (x *judge) neededAbove(s *pg.SelectStmt, n *nullable, shown bool) bool {
	return slices.ContainsFunc(above(s, shown), func(part []*pg.Node) bool { return x.names(part, n.rv) })
}

// mentions finds which other joins refer to a table.
func (x *judge) mentions(s *pg.SelectStmt, n *nullable, joins []*pg.JoinExpr, shown bool) {
	for _, j := range joins {
		n.fuzzy = n.fuzzy || j.IsNatural || len(j.UsingClause) > 0 || j.Alias != nil
		if j != n.join && x.names([]*pg.Node{j.Quals}, n.rv) {
			n.refs = append(n.refs, j)
		}
	}
	n.fuzzy = n.fuzzy || !shown && x.names(s.TargetList, n.rv)
	pgsyntax.WalkAll(s.FromClause, func(m proto.Message) bool { // LATERAL may refer to it
		switch m.(type) {
		case *pg.RangeSubselect, *pg.RangeFunction, *pg.RangeTableFunc, *pg.RangeTableSample:
			n.fuzzy = true
		}
		return !n.fuzzy
	})
}

// mayBeUnique reports whether the condition of a table's own join may find it by a unique index: names all columns of one.
func (x *judge) mayBeUnique(n *nullable) bool {
	rel, _ := x.resolve(n.rv)
	if rel == nil || n.fuzzy {
		return true
	}
	return statement.Whole(rel.Unique, func(c string) bool { return c == "" || x.mentioned(n, c) }) != nil
}

// mentioned reports whether the condition of a table's own join names a column of it.
func (x *judge) mentioned(n *nullable, column string) bool {
	found := false
	pgsyntax.Walk(n.join.Quals, func(m proto.Message) bool {
		r, ok := m.(*pg.ColumnRef)
		if ok && (x.columnOf(r, n.rv) || r.Fields[0].GetString_().GetSval() == refName(n.rv)) {
			last := r.Fields[len(r.Fields)-1].GetString_().GetSval()
			found = found || last == column || last == refName(n.rv)
		}
		return !found
	})
	return found
}

// unique reports whether the condition of a table's own join certainly equates all columns of a unique index with columns of other tables, by
// the index's own equality.
func (x *judge) unique(n *nullable, s *pg.SelectStmt) bool {
	rel, _ := x.resolve(n.rv)
	if rel == nil || rel.Kind != "table" || rel.Inherits {
		return false
	}
	var equated []string
	var look func(e *pg.Node)
	look = func(e *pg.Node) {
		if b := e.GetBoolExpr(); b.GetBoolop() == pg.BoolExprType_AND_EXPR {
			for _, a := range b.Args {
				look(a)
			}
		}
		op := e.GetAExpr()
		if op.GetKind() != pg.A_Expr_Kind_AEXPR_OP || len(op.Name) != 1 || op.Name[0].GetString_().GetSval() != "=" {
			return
		}
		for _, pair := range [2][2]*pg.Node{{op.Lexpr, op.Rexpr}, {op.Rexpr, op.Lexpr}} {
			own, other := x.attribute(pair[0], []*pg.RangeVar{n.rv}), x.attribute(pair[1], slices.DeleteFunc(tables(s.FromClause), func(rv *pg.RangeVar) bool { return rv == n.rv }))
			if own != nil && other != nil && sameEquality(own, other) {
				equated = append(equated, own.Name)
			}
		}
	}
	look(n.join.Quals)
	return statement.Whole(rel.Unique, func(c string) bool { return slices.Contains(equated, c) }) != nil
}

// attribute is the column that an expression is, of the one table of a list that has it.
func (x *judge) attribute(e *pg.Node, list []*pg.RangeVar) *rewrite.Attribute {
	r := e.GetColumnRef()
	if r == nil {
		return nil
	}
	var found *rewrite.Attribute
	for _, rv := range list {
		rel, _ := x.resolve(rv)
		if rel == nil || len(rv.GetAlias().GetColnames()) > 0 {
			return nil
		}
		if !x.columnOf(r, rv) {
			continue
		}
		a := rel.Attribute(r.Fields[len(r.Fields)-1].GetString_().GetSval())
		if a == nil || found != nil {
			return nil
		}
		found = a
	}
	return found
}

// sameEquality reports whether = between two columns is the equality of a unique index on either.
func sameEquality(a, b *rewrite.Attribute) bool {
	integer := func(t string) bool { return t == "int2" || t == "int4" || t == "int8" }
	return integer(a.Type) && integer(b.Type) || a.Type == b.Type && (a.Type == "uuid" || a.Type == "text" || a.Type == "varchar") && !a.Folds && !b.Folds
}

// reduced reports whether the server makes an inner join of each outer join of a query's FROM clause: WHERE, or the condition of an inner join around,
// is not true where the side that may be missing is (reduce_outer_joins, src/backend/optimizer/prep/prepjointree.c). Then it leaves no table out.
func (x *scene) reduced(s *pg.SelectStmt) bool {
	if !joined(s.FromClause) {
		return false
	}
	list := tables(s.FromClause)
	there := map[*pg.RangeVar]bool{}
	require := func(where *pg.Node) {
		for _, e := range conjuncts(where) {
			for _, rv := range list {
				there[rv] = there[rv] || x.strict(e, rv, list)
			}
		}
	}
	require(s.WhereClause)
	var visit func(n *pg.Node) bool
	visit = func(n *pg.Node) bool {
		j := n.GetJoinExpr()
		if j == nil {
			return true
		}
		if j.IsNatural || len(j.UsingClause) > 0 || j.Alias != nil {
			return false
		}
		missing := j.Rarg
		switch j.Jointype {
		case pg.JoinType_JOIN_INNER:
			missing = nil
		case pg.JoinType_JOIN_RIGHT:
			missing = j.Larg
		case pg.JoinType_JOIN_LEFT:
		default:
			return false
		}
		if missing != nil && !slices.ContainsFunc(tables([]*pg.Node{missing}), func(rv *pg.RangeVar) bool { return there[rv] }) {
			return false
		}
		require(j.Quals)
		return visit(j.Larg) && visit(j.Rarg)
	}
	return !slices.ContainsFunc(s.FromClause, func(n *pg.Node) bool { return !visit(n) })
}

// strict reports whether a condition is certainly not true where a table's columns are null: it compares one of them by an operator of its type.
func (x *scene) strict(e *pg.Node, rv *pg.RangeVar, list []*pg.RangeVar) bool {
	if t := e.GetNullTest(); t != nil {
		name, _ := x.columnAmong(t.Arg, list)
		return t.Nulltesttype == pg.NullTestType_IS_NOT_NULL && name != "" && x.columnOf(t.Arg.GetColumnRef(), rv)
	}
	a := e.GetAExpr()
	if a == nil || len(a.Name) != 1 || a.Kind == pg.A_Expr_Kind_AEXPR_OP && mirrored[pgsyntax.LastName(a.Name)] == "" || a.Kind == pg.A_Expr_Kind_AEXPR_IN && pgsyntax.LastName(a.Name) != "=" ||
		a.Kind != pg.A_Expr_Kind_AEXPR_OP && a.Kind != pg.A_Expr_Kind_AEXPR_IN {
		return false
	}
	one := func(n *pg.Node) bool { // a column of the table, or NULL does not follow
		_, typ := x.columnAmong(n, list)
		return typ != "" && known(typ) && x.columnOf(n.GetColumnRef(), rv)
	}
	other := func(n *pg.Node) bool {
		_, typ := x.columnAmong(n, list)
		return n.GetAConst() != nil || n.GetParamRef() != nil || n.GetList() != nil || typ != "" && known(typ)
	}
	return one(a.Lexpr) && other(a.Rexpr) || a.Kind == pg.A_Expr_Kind_AEXPR_OP && one(a.Rexpr) && other(a.Lexpr)
}

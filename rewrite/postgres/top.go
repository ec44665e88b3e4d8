package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// topOf gives the scan of a subquery that has only the first rows of a table's, by ORDER BY and LIMIT: the last order of a customer. sole says that it
// has one row at the most, or the server finds an error. The second evaluation finds the same rows where the order leaves no choice: it has a
// whole key, or WITH TIES shows that there are no ties. The latter reads a row more where an index gives the order, so it is for others.
func (x *instrumentation) topOf(s *pg.SelectStmt, each, sole bool) (sc scan, ok bool) {
	if s == nil || s.Op != pg.SetOperation_SETOP_NONE || s.WithClause != nil || len(s.LockingClause) > 0 || s.LimitOffset != nil || s.LimitCount.GetAConst().GetIval() == nil ||
		s.LimitOption != pg.LimitOption_LIMIT_OPTION_COUNT || len(s.FromClause) != 1 || s.FromClause[0].GetRangeVar() == nil ||
		len(s.DistinctClause) > 0 || len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.WindowClause) > 0 || refersSubquery(s.WhereClause) {
		return sc, false
	}
	for _, t := range s.TargetList { // a function there may return several rows, or none
		if t.GetResTarget().GetVal().GetColumnRef() == nil && t.GetResTarget().GetVal().GetAConst() == nil {
			return sc, false
		}
	}
	if sc, ok = x.scanOf(s, each); !ok || sc.tables != 1 {
		return sc, false
	}
	order, ok := x.orderedBy(s, sc.list[0])
	if !ok {
		return sc, false
	}
	certain := x.noTies(s, sc.list[0], order)
	if !certain && (!sole || len(order) == 0 || !x.atLeast(13) || x.sorted(sc.list[0].rel, s, order[0])) {
		return sc, false
	}
	toks := x.tokens(x.targetEnd(s))
	from, end := int(toks[0].Start), clauseEnd(toks, pg.Token_WHERE, pg.Token_ORDER)
	if certain {
		end = clauseEnd(toks, pg.Token_WHERE, pg.Token_ORDER, pg.Token_LIMIT, pg.Token_FETCH)
	}
	if slices.ContainsFunc(toks, func(t *pg.ScanToken) bool { return int(t.End) <= end && t.End-t.Start >= nameLen }) {
		return sc, false
	}
	sc.text, sc.top = copied(from, end), true
	if !certain {
		sc.text, sc.limit = sc.text+" FETCH FIRST 1 ROW WITH TIES", 1
	}
	return sc, true
}

// orderedBy gives the columns of the only table by which a query is ordered; ok is false if that is not certain.
func (x *scene) orderedBy(s *pg.SelectStmt, src source) (columns []string, ok bool) {
	for _, n := range s.SortClause {
		ref := n.GetSortBy().GetNode().GetColumnRef()
		if ref == nil || n.GetSortBy().SortbyDir == pg.SortByDir_SORTBY_USING || !x.columnOf(ref, s.FromClause[0].GetRangeVar()) || src.cols != nil {
			return nil, false
		}
		name := ref.Fields[len(ref.Fields)-1].GetString_().GetSval()
		if len(ref.Fields) == 1 && (name == "n" || name == "w0" || // columns of ours
			slices.ContainsFunc(s.TargetList, func(t *pg.Node) bool { return t.GetResTarget().GetName() == name })) {
			return nil, false
		}
		columns = append(columns, name)
	}
	return columns, true
}

// noTies reports whether no two rows that WHERE lets pass are alike in these columns.
func (x *judge) noTies(s *pg.SelectStmt, src source, order []string) bool {
	fixed := x.fixed(s, src, true)
	return statement.Whole([][]string{keyColumns(src.rel)}, func(c string) bool { return c != "" && (fixed[c] || slices.Contains(order, c)) }) != nil ||
		statement.Whole(src.rel.Unique, func(c string) bool { return c != "" && fixed[c] }) != nil
}

// fixed are the columns that a condition fixes by equality with constants or parameters, and if around also with columns of the query around it.
func (x *judge) fixed(s *pg.SelectStmt, src source, around bool) map[string]bool {
	fixed := pgsyntax.Fixed(s.WhereClause, src.ref)
	rv := s.FromClause[0].GetRangeVar()
	if !around {
		return fixed
	}
	for _, e := range conjuncts(s.WhereClause) {
		a := e.GetAExpr()
		if a == nil || a.Kind != pg.A_Expr_Kind_AEXPR_OP || pgsyntax.LastName(a.Name) != "=" {
			continue
		}
		for _, side := range [2][2]*pg.Node{{a.Lexpr, a.Rexpr}, {a.Rexpr, a.Lexpr}} {
			l, r := side[0].GetColumnRef(), side[1].GetColumnRef()
			if l != nil && r != nil && len(r.Fields) == 2 && x.columnOf(l, rv) && !x.columnOf(r, rv) {
				fixed[pgsyntax.Column(side[0], src.ref)] = true
			}
		}
	}
	return fixed
}

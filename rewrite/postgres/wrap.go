package postgres

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// wrap makes the client's statement a subquery, and adds columns for the scans.
func (x *planner) wrap(list []scan) bool {
	toks := x.tokens(x.from)
	if len(toks) == 0 {
		return false
	}
	name := pgsyntax.Quote(x.hiddenPrefix() + "q")
	add, from, behind := "SELECT "+name+".*", " FROM (", ") "+name
	s := x.node.GetSelectStmt()
	told := x.having.lists(list) && len(x.inside) == 0
	groups := told && !x.having.within
	blank := groups || x.besides(s)
	if blank {
		from, behind = " FROM (SELECT) "+pgsyntax.Quote(x.hiddenPrefix()+"l")+" LEFT JOIN (", behind+" ON true"
		if x.plan.Blank, x.bare = true, !groups && len(s.SortClause) == 0 && s.LimitCount == nil && s.LimitOffset == nil; x.bare { // else the server would plan it as a part of ours
			behind = " OFFSET 0" + behind
		}
	}
	for _, sc := range list {
		if groups {
			sc.row = name
		}
		add += ", " + x.askScan(sc, true)
		x.facts += sc.tables
	}
	columns := append(x.having.tell(x, name), x.askInside(true)...)
	if x.join != nil && (blank || !x.join.blank) {
		columns = append(columns, x.join.columns(x)...)
	}
	if x.join == nil && x.besides(s) {
		columns = append(columns, x.counts.column(x, true)...)
	}
	if told {
		columns = append(columns, x.having.list(x, list[0]))
	}
	for _, column := range append(columns, tellClocks(x)...) {
		add += ", " + column
	}
	x.wrapped = true
	x.edits = append(x.edits, rewrite.Edit{At: int(toks[0].Start), Add: add + from}, rewrite.Edit{At: int(toks[len(toks)-1].End), Add: behind})
	return true
}

// unwrap puts the client's statement in the place of the one that wrap made, and counts the columns that this one added. writes says that its WITH
// clause writes.
func (x *instrumentation) unwrap(n *pg.Node, ours func(*pg.Node) bool, writes bool) (columns int, ok bool) {
	s := n.GetSelectStmt()
	if s == nil || s.Op != pg.SetOperation_SETOP_NONE || len(s.FromClause) != 1 || len(s.TargetList) < 2 {
		return 0, false
	}
	q := s.FromClause[0].GetRangeSubselect()
	if j := s.FromClause[0].GetJoinExpr(); j.GetJointype() == pg.JoinType_JOIN_LEFT && j.GetQuals().GetAConst().GetBoolval().GetBoolval() {
		q = j.Rarg.GetRangeSubselect() // see besides
	}
	star := s.TargetList[0].GetResTarget().GetVal().GetColumnRef().GetFields()
	if q.GetAlias().GetAliasname() != x.hiddenPrefix()+"q" || len(star) != 2 || star[1].GetAStar() == nil {
		return 0, false
	}
	for _, t := range s.TargetList[1:] {
		if !ours(t) {
			return 0, false
		}
	}
	columns = len(s.TargetList) - 1
	if writes { // a WITH clause that writes stays at the top
		in := q.Subquery.GetSelectStmt()
		if in == nil || in.WithClause != nil {
			return 0, false
		}
		in.WithClause, s.WithClause = s.WithClause, nil
	}
	alone := &pg.SelectStmt{FromClause: s.FromClause, TargetList: s.TargetList, LimitOption: s.LimitOption, Op: s.Op}
	if !pgsyntax.Same(s, alone) { // a clause of the client's slipped out of the subquery
		return 0, false
	}
	if in := q.Subquery.GetSelectStmt(); x.bare {
		if zero := in.GetLimitOffset().GetAConst().GetIval(); zero == nil || zero.Ival != 0 {
			return 0, false
		}
		in.LimitOffset, in.LimitOption = nil, pg.LimitOption_LIMIT_OPTION_DEFAULT
	}
	n.Node = q.Subquery.Node
	return columns, true
}

package postgres

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/statement/pgsyntax"
)

// anyRow reports whether a query shows nothing of its rows but how many there are, so that others would have done as well where LIMIT is reached
// (rewrite.Plan.Any): SELECT 1 AS a FROM t WHERE ... LIMIT 1, as exists() of Django and Rails asks.
func anyRow(s *pg.SelectStmt) bool {
	return s.LimitCount != nil && len(s.LockingClause) == 0 && s.WithClause == nil && s.Op == pg.SetOperation_SETOP_NONE && len(s.GroupClause) == 0 && s.HavingClause == nil &&
		!slices.ContainsFunc(s.TargetList, func(n *pg.Node) bool {
			v := withoutCasts(n.GetResTarget().GetVal())
			return v.GetAConst() == nil && v.GetParamRef() == nil
		})
}

// another gives the hidden column of such a query that tells whether there is a row beside those of the answer, so that LIMIT chose among them. None is needed where a
// whole unique key is given.
func another(x *planner, s *pg.SelectStmt) (column []string) {
	var o subqueries
	if anyRow(s) && s.LimitOffset == nil && s.LimitOption == pg.LimitOption_LIMIT_OPTION_COUNT && len(s.DistinctClause) == 0 {
		o.existence(&x.instrumentation, unlimited(s), false) // where LIMIT is 0, there is no row in which the column is computed
	}
	if len(o.outside) == 0 {
		return nil
	}
	sc, limit := o.outside[0], limitText(x.scene, s.LimitCount)
	if x.settled = sc.unique(s); x.settled || limit == "" || s.LimitCount.GetParamRef() != nil && hasParameter(s.SortClause) {
		return nil
	}
	x.settled = true
	expr := fmt.Sprintf("(EXISTS (SELECT 1 %s OFFSET %s))::pg_catalog.text", sc.text, limit)
	if sc.guard != "" {
		expr = "CASE WHEN " + sc.guard + " THEN " + expr + " END"
	}
	return []string{x.hidden(part{another: true}, expr)}
}

// hasParameter reports whether one of the expressions has a parameter. The server gives a parameter the type that its first place asks for, so what is added
// may not bring its place in LIMIT in front of another one.
func hasParameter(list []*pg.Node) (has bool) {
	pgsyntax.WalkAll(list, func(m proto.Message) bool {
		_, is := m.(*pg.ParamRef)
		has = has || is
		return !has
	})
	return has
}

// limitText gives the text of LIMIT where it is a number or a parameter; else an empty one.
func limitText(x *scene, n *pg.Node) string {
	place := int32(-1)
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst:
		place = v.AConst.Location
	case *pg.Node_ParamRef:
		place = v.ParamRef.Location
	}
	if place < 0 { // FETCH FIRST ROW ONLY
		return ""
	}
	if toks := x.tokens(int(place)); len(toks) > 0 && (toks[0].Token == pg.Token_ICONST || toks[0].Token == pg.Token_PARAM) {
		return copied(int(toks[0].Start), int(toks[0].End))
	}
	return ""
}

// doubt marks the rows of an answer in the place of which another one would have done.
func (p *part) doubt(list []history.Access, text []byte) {
	for i := range list {
		list[i].Approx = list[i].Approx || p.another && string(text) != "false"
	}
}

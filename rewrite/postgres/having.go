package postgres

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// HAVING hides groups, so a change of a row may leave the answer as it was:
//
//	SELECT room, count(*) FROM booking WHERE day = 3 GROUP BY room HAVING count(*) < 2
//
// A row more or less of a room that the answer shows changes the answer: the room has another count there, or is gone. The rows of the answer tell which rooms these are.
// Of other rooms it is not certain, unless a second scan (see scan.go) tells the aggregates of all rooms on which HAVING rests: then it is known which change takes a room
// over the border. An answer without rows tells that, too: it gets a row which the client does not see.

// shownGroups are the groups of such a query.
type shownGroups struct {
	column *rewrite.Attribute // by which it groups, if the answer shows aggregates of the groups; nil: it does not show which groups these are
	shown  string             // the column of the answer that shows it
	hides  *hiddenGroups
	within bool // the query stands in FROM, and the answer has one row in any case: a count of groups
}

// hiddenGroups is what HAVING asks of groups.
type hiddenGroups struct {
	table  *pg.RangeVar
	ref    string            // by which HAVING may name columns of rel
	rel    *rewrite.Relation // with the columns that make the groups, and the aggregates
	having *pg.Node          // where columns of rel stand in the place of aggregates
	groups condition.Groups
	told   bool // a hidden column tells them
}

// groupsShown gives the groups of a query with HAVING, or of one that such a query counts; nil if its answer does not tell them.
func groupsShown(x *planner, s *pg.SelectStmt) *shownGroups {
	if in := counted(s); in != nil && soleGroup(x, s) && s.Op == pg.SetOperation_SETOP_NONE {
		if g := groupsShown(x, in); g != nil && g.hides != nil && !g.within {
			g.hides.groups.Shows = false // one row more of a group that it counts may change nothing
			return &shownGroups{hides: g.hides, within: true}
		}
		return nil
	}
	if s.HavingClause == nil || len(s.FromClause) != 1 || s.LimitCount != nil || s.LimitOffset != nil || len(s.DistinctClause) > 0 || s.WithClause != nil || refersSubquery(s) || !x.native || x.plan.Cursor != nil {
		return nil
	}
	rv := s.FromClause[0].GetRangeVar()
	if rv == nil {
		return nil
	}
	rel, _ := x.resolve(rv)
	one, doubt := x.aggregates(s)
	if rel == nil || doubt != "" || len(rv.GetAlias().GetColnames()) > 0 {
		return nil
	}
	g := &shownGroups{hides: groupsHidden(x, s, rv, rel)}
	if len(s.GroupClause) == 1 && one {
		g.column, g.shown = groupShown(x, s, rv, rel)
	}
	if g.hides != nil {
		g.hides.groups.Shows = one
	}
	if g.column == nil && g.hides == nil {
		return nil
	}
	return g
}

// groupShown gives the column that makes groups, and the column of the answer that shows it; nil if there is none.
func groupShown(x *planner, s *pg.SelectStmt, rv *pg.RangeVar, rel *rewrite.Relation) (column *rewrite.Attribute, shown string) {
	ref := s.GroupClause[0].GetColumnRef()
	if ref == nil || !x.columnOf(ref, rv) {
		return nil, ""
	}
	if column = rel.Attribute(pgsyntax.LastName(ref.Fields)); column == nil || !listable(column) {
		return nil, ""
	}
	names := map[string]int{}
	for _, t := range s.TargetList {
		val, name := t.GetResTarget().GetVal(), columnName(t)
		if f := val.GetFuncCall(); name == "" && f != nil {
			name = pgsyntax.LastName(f.Funcname)
		}
		if name == "" { // a star, or an expression that the server names
			return nil, ""
		}
		if names[name]++; val.GetColumnRef() != nil && x.columnOf(val.GetColumnRef(), rv) && pgsyntax.LastName(val.GetColumnRef().Fields) == column.Name {
			shown = name
		}
	}
	if names[shown] != 1 {
		return nil, ""
	}
	return column, shown
}

// groupsHidden gives what HAVING asks of groups; nil if it is not of numbers that can be told.
func groupsHidden(x *planner, s *pg.SelectStmt, rv *pg.RangeVar, rel *rewrite.Relation) *hiddenGroups {
	h := &hiddenGroups{table: rv, ref: refName(rv), rel: &rewrite.Relation{RelationName: rel.RelationName}, having: proto.Clone(s.HavingClause).(*pg.Node)}
	h.groups = condition.Groups{Of: []string{condition.CountAll}, Fixed: len(s.GroupClause) == 0}
	for _, n := range s.GroupClause {
		ref := n.GetColumnRef()
		if ref == nil || !x.columnOf(ref, rv) {
			return nil
		}
		column := rel.Attribute(pgsyntax.LastName(ref.Fields))
		if column == nil || !listable(column) && kindOf(column) != condition.Text {
			return nil
		}
		h.groups.By, h.rel.Columns = append(h.groups.By, column.Name), append(h.rel.Columns, *column)
	}
	if len(h.groups.By) > maxGroupedBy || !h.collect(x, rel) {
		return nil
	}
	return h
}

// maxGroupedBy is how many columns make groups at most of which aggregates are told.
const maxGroupedBy = 4

// collect puts columns in the place of the aggregates in HAVING. It reports false if one of them is of another form.
func (h *hiddenGroups) collect(x *planner, rel *rewrite.Relation) bool {
	ok := true
	pgsyntax.Walk(h.having, func(m proto.Message) bool {
		n, is := m.(*pg.Node)
		f := n.GetFuncCall()
		if !is || f == nil || x.function(pgsyntax.LastName(f.Funcname))&rewrite.FunctionAggregate == 0 {
			return ok
		}
		name, typ := aggregateOf(x, f, h.table, rel)
		if ok = ok && typ != ""; !ok {
			return false
		}
		if len(h.groups.Of) == 0 {
			h.groups.Of = []string{condition.CountAll}
		}
		if fn, column := condition.Aggregate(name); column != "*" {
			h.groups.Want(fn, column)
		}
		if h.rel.Attribute(name) == nil {
			h.rel.Columns = append(h.rel.Columns, rewrite.Attribute{Name: name, Type: typ})
		}
		n.Node = &pg.Node_ColumnRef{ColumnRef: &pg.ColumnRef{Fields: []*pg.Node{pg.MakeStrNode(name)}}}
		return false
	})
	return ok
}

// aggregateOf gives the name (see condition.Groups) and the type of a call of an aggregate function over a column of a table that is a number, or that it counts. The type
// is empty if it is something else.
func aggregateOf(x *planner, f *pg.FuncCall, rv *pg.RangeVar, rel *rewrite.Relation) (name, typ string) {
	fn := pgsyntax.LastName(f.Funcname)
	if f.AggStar {
		star := proto.Clone(f).(*pg.FuncCall)
		if star.AggStar = false; fn == "count" && own(x.scene, star, fn) {
			typ = "int8"
		}
		return condition.CountAll, typ
	}
	if !own(x.scene, f, fn) || len(f.Args) != 1 || f.AggWithinGroup {
		return "", ""
	}
	ref := f.Args[0].GetColumnRef()
	if ref == nil || !x.columnOf(ref, rv) {
		return "", ""
	}
	column := rel.Attribute(pgsyntax.LastName(ref.Fields))
	if column == nil {
		return "", ""
	}
	name = fn + "(" + column.Name + ")"
	if fn == "count" {
		return name, "int8"
	}
	if kindOf(column) != condition.Number {
		return "", ""
	}
	switch {
	case fn == "min" || fn == "max":
		return name, column.Type
	case fn == "sum" && (column.Type == "int2" || column.Type == "int4"):
		return name, "int8"
	case fn == "sum":
		return name, "numeric"
	}
	return "", ""
}

// tell gives the hidden column that tells the group of a row of the answer, which is a subquery by that name. There is none where g is nil.
func (g *shownGroups) tell(x *planner, query string) []string {
	if g == nil || g.column == nil {
		return nil
	}
	x.plan.Keys, x.plan.Lacking = 1, len(x.parts)+1
	return []string{x.hidden(part{apart: true}, query+"."+pgsyntax.Quote(g.shown)+"::pg_catalog.text")}
}

// lists reports whether what HAVING hides can be told by a second scan of the query, which has one table.
func (g *shownGroups) lists(list []scan) bool {
	return g != nil && g.hides != nil && len(list) == 1 && len(list[0].list) == 1 && list[0].list[0].rel.Kind == "table" && list[0].below == "" && !list[0].sole && list[0].pair == nil && list[0].limit > 1
}

// list gives the hidden column that tells the aggregates of all groups, by the clauses of a scan. xmin is among what it reads, so that it reads the table where the query
// does: an index alone would take other locks.
func (g *shownGroups) list(x *planner, sc scan) string {
	h := g.hides
	h.told, x.lists = true, 1
	ref := pgsyntax.Quote(sc.list[0].ref) + "."
	var inner, groups, keys, values []string
	for i, c := range h.groups.By {
		inner = append(inner, fmt.Sprintf("%s%s AS k%d", ref, pgsyntax.Quote(c), i))
		keys = append(keys, fmt.Sprintf("r.k%d", i))
		groups = append(groups, fmt.Sprintf("r.k%d AS k%d", i, i))
		values = append(values, fmt.Sprintf("wirecheck.k%d::pg_catalog.text", i))
	}
	inner = append(inner, ref+"xmin::pg_catalog.text AS x", "pg_catalog.row_number() OVER () AS n")
	var columns []string
	for i, name := range h.groups.Of {
		fn, column := condition.Aggregate(name)
		of := "r.x"
		if column != "*" {
			k := slices.Index(columns, column)
			if k < 0 {
				k, columns = len(columns), append(columns, column)
				inner = append(inner, fmt.Sprintf("%s%s AS v%d", ref, pgsyntax.Quote(column), k))
			}
			of = fmt.Sprintf("r.v%d", k)
		}
		groups = append(groups, fmt.Sprintf("pg_catalog.%s(%s) AS a%d", fn, of, i))
		values = append(values, fmt.Sprintf("wirecheck.a%d::pg_catalog.text", i))
	}
	by := ""
	if len(keys) > 0 {
		by = " GROUP BY " + strings.Join(keys, ", ")
	}
	one := "pg_catalog.json_build_array(" + strings.Join(values, ", ") + ")::pg_catalog.text"
	expr := fmt.Sprintf("(SELECT CASE WHEN coalesce(pg_catalog.sum(wirecheck.a0), 0) <= %d AND pg_catalog.count(*) <= %d AND coalesce(pg_catalog.sum(pg_catalog.octet_length(%s)), 0) < %d THEN coalesce(pg_catalog.json_agg(%s), '[]')::pg_catalog.text END "+
		"FROM (SELECT %s FROM (SELECT %s %s) r WHERE r.n <= %d%s) wirecheck)", sc.limit, maxListed, one, maxListBytes, one, strings.Join(groups, ", "), strings.Join(inner, ", "), sc.text, sc.limit+1, by)
	first := "pg_catalog.row_number() OVER () = 1"
	if sc.guard != "" {
		first += " AND " + sc.guard
	}
	return fmt.Sprintf("CASE WHEN %s THEN %s END AS %s", first, expr, pgsyntax.Quote(x.hiddenPrefix()+"list 0"))
}

// told reports whether the answer tells something of its groups.
func (g *shownGroups) told(x *planner) bool {
	return g != nil && (x.plan.Keys > 0 || g.hides != nil && g.hides.told)
}

// asks notes in a predicate read which groups the answer shows.
func (g *shownGroups) asks(x *planner, ask *rewrite.Ask) {
	switch {
	case x.plan.Keys > 0:
		ask.Where, ask.Having = condition.OfGroups(kindOf(g.column), g.column.Name), false
	case !ask.Single:
		ask.Where, ask.Having = condition.NoGroups(condition.HiddenGroups), false
	}
	if g.hides != nil && g.hides.told {
		g.hides.asks(x, ask)
	}
}

// asks notes in a predicate read what decides which groups the answer shows.
func (h *hiddenGroups) asks(x *planner, ask *rewrite.Ask) {
	a := &asker{planner: x, rel: h.rel, ref: h.ref, ask: *ask, typed: map[int32]string{}}
	having := a.condition(h.having)
	*ask = a.ask
	groups := h.groups
	groups.Having = a.certain(having)
	ask.Groups, ask.List = &groups, x.plan.Keys
}

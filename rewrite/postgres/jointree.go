package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// gather takes the tables and conditions of an item of a FROM clause; false if there is anything else in it.
func (j *joining) gather(x *planner, n *pg.Node, group int) bool {
	if e := n.GetJoinExpr(); e != nil {
		left, from := e.Jointype == pg.JoinType_JOIN_LEFT, len(j.tables)
		if !left && e.Jointype != pg.JoinType_JOIN_INNER || e.IsNatural || len(e.UsingClause) > 0 || e.Alias != nil || !j.gather(x, e.Larg, group) {
			return false
		}
		if left {
			group, from = j.Left(group), len(j.tables)
		}
		if !j.gather(x, e.Rarg, group) {
			return false
		}
		for _, c := range conjuncts(e.Quals) {
			j.Clauses = append(j.Clauses, rewrite.Clause[*pg.Node]{Node: c, Scope: group, From: from, To: len(j.tables)})
		}
		return true
	}
	rv := n.GetRangeVar()
	if rv == nil || !x.watched(rv) || x.ctes[rv.Relname] != nil || len(rv.GetAlias().GetColnames()) > 0 || !rv.Inh {
		return false
	}
	rel, _ := x.resolve(rv)
	if rel == nil || rel.Kind != "table" || unreadable(rel) != "" || rel.Root != nil || rel.RowSecurity || rel.HasRules || slices.ContainsFunc(j.tables, func(t joint) bool { return t.ref == refName(rv) }) {
		return false
	}
	j.tables = append(j.tables, joint{source: source{rel: rel, ref: refName(rv)}, rv: rv})
	j.Tables = append(j.Tables, rewrite.Joined{Relation: rel, Group: group})
	return true
}

// drop takes tables out on which the answer does not depend, or perhaps not: that the server need not read, and sides of left joins that change neither the
// number of rows nor their columns. shown says that the select list is the client's answer, grouped that it aggregates.
func (j *joining) drop(x *planner, s *pg.SelectStmt, shown, grouped bool) {
	var list []source
	for _, t := range j.tables {
		list = append(list, t.source)
	}
	apart := judge{scene: x.scene}
	list = apart.kept(s, list, shown)
	counts := false
	pgsyntax.WalkAll(s.TargetList, func(m proto.Message) bool {
		f, ok := m.(*pg.FuncCall)
		counts = counts || ok && f.AggStar
		return !counts
	})
	for i := range j.tables {
		t, group := &j.tables[i], &j.Tables[i].Group
		switch read := slices.ContainsFunc(list, func(src source) bool { return src.ref == t.ref }); {
		case *group == 0:
		case j.exists, j.distinct, read && grouped && !counts && !x.neededAbove(s, &nullable{rv: t.rv}, shown):
			*group = -*group
		case !read && len(apart.whys) > 0:
			x.plan.Unread = apart.whys[0]
			fallthrough
		case !read:
			*group = -*group
		}
	}
}

// moved puts a condition on the second column of a tie as one on the first column; if it can.
func (j *joining) moved(n *pg.Node, t rewrite.Tie) (*pg.Node, bool) {
	if n.GetSetToDefault() != nil || refersSubquery(n) {
		return nil, false
	}
	from, to := j.tables[t.Table[1]].rel.Attribute(t.Column[1]), &j.tables[t.Table[0]]
	at := to.rel.Attribute(t.Column[0])
	if !of(n, t.Column[1]) || from == nil || at == nil || from.Type != at.Type || !listable(at) {
		return nil, false
	}
	n = proto.Clone(n).(*pg.Node)
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if c, ok := m.(*pg.ColumnRef); ok {
			c.Fields = []*pg.Node{pg.MakeStrNode(to.ref), pg.MakeStrNode(at.Name)}
		}
		return true
	})
	return n, true
}

// of reports whether a condition names no column but the one of that name, of the one table that it is of.
func of(n *pg.Node, column string) bool {
	only := n.GetSetToDefault() == nil && !refersSubquery(n)
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if c, ok := m.(*pg.ColumnRef); ok {
			only = only && c.Fields[len(c.Fields)-1].GetString_().GetSval() == column
		}
		return only
	})
	return only
}

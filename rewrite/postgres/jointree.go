package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// Left joins, and what foreign keys say of joins.
//
// A row of a table at the side of a left join that may be missing is in the answer if it fulfils the conditions of that join, and if the rows with which they
// join it are there. The rows of other tables do not depend on it. The tables of such a side are a group; conditions of joins and of WHERE hold for the rows of
// a group (clause.scope). WHERE makes an inner join of a left one if it is not true where the side is missing.
//
// Where each row of item has a product, as a foreign key says, an inner join with product hides none: a new item is in the answer of
//
//	SELECT * FROM item JOIN product ON product.id = item.product WHERE item.cart = 3
//
// whenever cart is 3. That holds in every state of the database, so for each serial order. And no change of a product puts rows into this answer, or takes some
// from it: no item refers to a new product, and only to a product without items can anything happen but a change of other columns.

// clause is a condition of a join or of WHERE, of those that AND joins.
type clause struct {
	n        *pg.Node
	scope    int          // the group whose rows it chooses
	from, to int          // the tables between which it is the condition of an inner join
	tables   []int        // that it names
	tie      *rewrite.Tie // it says that columns of two tables are equal
}

// gather takes the tables and conditions of an item of a FROM clause; false if there is anything else in it.
func (j *joining) gather(x *planner, n *pg.Node, group int) bool {
	if e := n.GetJoinExpr(); e != nil {
		left, from := e.Jointype == pg.JoinType_JOIN_LEFT, len(j.tables)
		if !left && e.Jointype != pg.JoinType_JOIN_INNER || e.IsNatural || len(e.UsingClause) > 0 || e.Alias != nil || !j.gather(x, e.Larg, group) {
			return false
		}
		if left {
			j.around = append(j.around, group)
			group, from = len(j.around)-1, len(j.tables)
		}
		if !j.gather(x, e.Rarg, group) {
			return false
		}
		for _, c := range conjuncts(e.Quals) {
			j.clauses = append(j.clauses, clause{n: c, scope: group, from: from, to: len(j.tables)})
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
	j.tables = append(j.tables, joint{source: source{rel: rel, ref: refName(rv)}, rv: rv, group: group})
	return true
}

// reduce makes inner joins of the left joins whose other side a condition around needs, as the server does. It is false if a condition may hold where that
// side is missing.
func (j *joining) reduce(x *planner) bool {
	var all []*pg.RangeVar
	for _, t := range j.tables {
		all = append(all, t.rv)
	}
	for again := true; again; {
		again = false
		for i := range j.clauses {
			c := &j.clauses[i]
			for _, t := range c.tables {
				if t < c.from || t >= c.to || j.tables[t].group <= c.scope {
					continue
				}
				if !x.strict(c.n, j.tables[t].rv, all) {
					return false
				}
				for again = true; j.tables[t].group > c.scope; {
					j.merge(j.tables[t].group)
				}
			}
		}
	}
	return true
}

// merge puts a group into the one around it.
func (j *joining) merge(group int) {
	to := j.around[group]
	for i := range j.tables {
		if j.tables[i].group == group {
			j.tables[i].group = to
		}
	}
	for i := range j.clauses {
		if c := &j.clauses[i]; c.scope == group {
			c.scope, c.from, c.to = to, 0, len(j.tables)
		}
	}
	for g := range j.around {
		if j.around[g] == group {
			j.around[g] = to
		}
	}
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
		t := &j.tables[i]
		switch read := slices.ContainsFunc(list, func(src source) bool { return src.ref == t.ref }); {
		case t.group == 0:
		case j.exists, j.distinct, read && grouped && !counts && !x.neededAbove(s, &nullable{rv: t.rv}, shown):
			t.group = -t.group
		case !read && len(apart.whys) > 0:
			x.plan.Unread = apart.whys[0]
			fallthrough
		case !read:
			t.group = -t.group
		}
	}
}

// view is what decides whether a row of one table is in the answer.
type view struct {
	table int
	own   map[int][]*pg.Node // conditions on one table each
	ties  []rewrite.Tie
	parts []rewrite.Part // the other tables
	other bool           // there are other conditions on several tables
}

func abs(n int) int { return max(n, -n) }

// viewOf gives what decides of the rows of table i: the conditions of its group and of those that it needs.
func (j *joining) viewOf(i int) *view {
	v, needed := &view{table: i, own: map[int][]*pg.Node{}}, map[int]bool{0: true}
	need := func(g int) (more bool) {
		for ; !needed[g]; g = j.around[g] {
			needed[g], more = true, true
		}
		return more
	}
	for again := need(j.tables[i].group); again; {
		again = false
		for _, c := range j.clauses {
			for _, t := range c.tables {
				again = needed[c.scope] && need(abs(j.tables[t].group)) || again
			}
		}
	}
	for _, c := range j.clauses {
		switch {
		case !needed[c.scope]:
		case c.tie != nil:
			v.ties = append(v.ties, *c.tie)
		case len(c.tables) == 1:
			v.own[c.tables[0]] = append(v.own[c.tables[0]], c.n)
		case len(c.tables) == 0: // 1 = 1
			v.own[i] = append(v.own[i], c.n)
		default:
			v.other = true
		}
	}
	for _, p := range rewrite.Parts(len(j.tables), i, v.ties) {
		if needed[abs(j.tables[p.Members[0]].group)] {
			v.parts = append(v.parts, p)
		}
	}
	return v
}

// refers reports whether the first column of a tie has a foreign key to the second one.
func (j *joining) refers(t rewrite.Tie) bool {
	return !j.orphans && j.tables[t.Table[0]].rel.Refers(t.Column[0], j.tables[t.Table[1]].rel, t.Column[1])
}

func (j *joining) required(table int, column string) bool {
	a := j.tables[table].rel.Attribute(column)
	return a != nil && a.Required
}

// assured gives the condition on the columns of the table of v under which foreign keys assure that a part has a row for it. moved are conditions on the
// column to which its own one refers, put as conditions on that one.
func (j *joining) assured(v *view, p rewrite.Part) (moved []*pg.Node, c condition.Condition, ok bool) {
	if j.merges(v.table) || v.other || p.Tie == nil {
		return nil, c, false
	}
	seen, used := map[int]bool{v.table: true}, map[rewrite.Tie]bool{}
	for next := []rewrite.Tie{*p.Tie}; len(next) > 0; next = next[1:] {
		t := next[0]
		from, to := t.Table[0], t.Table[1]
		if seen[to] || !j.refers(t) || from != v.table && !j.required(from, t.Column[0]) {
			return nil, c, false
		}
		seen[to], used[t] = true, true
		for _, n := range v.own[to] {
			m := j.moved(n, t)
			if m == nil || from != v.table {
				return nil, c, false
			}
			moved = append(moved, m)
		}
		for _, o := range v.ties {
			if o.Table[1] == to {
				o = o.Mirrored()
			}
			if o.Table[0] == to && !used[o.Mirrored()] {
				next = append(next, o)
			}
		}
	}
	c = condition.Not(condition.Condition{Op: "null", Column: p.Tie.Column[0]})
	if j.required(v.table, p.Tie.Column[0]) {
		c = condition.Always
	}
	return moved, c, true
}

// moved puts a condition on the second column of a tie as one on the first column; nil if it cannot.
func (j *joining) moved(n *pg.Node, t rewrite.Tie) *pg.Node {
	from, to := j.tables[t.Table[1]].rel.Attribute(t.Column[1]), &j.tables[t.Table[0]]
	at := to.rel.Attribute(t.Column[0])
	if !of(n, t.Column[1]) || from == nil || at == nil || from.Type != at.Type || !listable(at) {
		return nil
	}
	n = proto.Clone(n).(*pg.Node)
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if c, ok := m.(*pg.ColumnRef); ok {
			c.Fields = []*pg.Node{pg.MakeStrNode(to.ref), pg.MakeStrNode(at.Name)}
		}
		return true
	})
	return n
}

// of reports whether a condition names no column but the one of that name, of the one table that it is of.
func of(n *pg.Node, column string) bool {
	only := true
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if c, ok := m.(*pg.ColumnRef); ok {
			only = only && c.Fields[len(c.Fields)-1].GetString_().GetSval() == column
		}
		return only
	})
	return only
}

// steady reports whether no change of a row of the table of v alone changes the answer otherwise than by the columns of a row that it has: others refer to it by
// a foreign key, and that column alone decides whether they find it.
func (j *joining) steady(v *view) bool {
	key := ""
	for _, p := range v.parts {
		switch {
		case p.Tie == nil || v.other:
			return false
		case j.refers(p.Tie.Mirrored()) && (key == "" || key == p.Tie.Column[0]):
			key = p.Tie.Column[0]
		default:
			if moved, _, ok := j.assured(v, p); !ok || len(moved) > 0 || !j.required(v.table, p.Tie.Column[0]) {
				return false
			}
		}
	}
	return key != "" && !slices.ContainsFunc(v.own[v.table], func(n *pg.Node) bool { return !of(n, key) })
}

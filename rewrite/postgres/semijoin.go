package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A query whose WHERE asks whether there is a row of another table is a join of which no row counts twice:
//
//	SELECT * FROM room WHERE id IN (SELECT room FROM booking WHERE hour = 9)
//	SELECT * FROM room r WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE b.room = r.id AND b.hour = 9)
//	SELECT r.* FROM room r LEFT JOIN booking b ON b.room = r.id AND b.hour = 9 WHERE b.id IS NULL
//
// Which rooms the bookings of hour 9 have is a list, as in a join, so the condition on room is one of its own columns. A new booking changes the answer if its
// hour is 9 and its room is one that has none so far, and fulfils all other conditions. These rooms are another list. Where the condition is NOT, they are those
// of the answer, and its rows tell them. Of several bookings of one room none changes the answer, and of a single one the statement tells the version.

// semijoin is a condition that AND joins with others, that there is a row of the query in, or none.
type semijoin struct {
	node   *pg.Node // the condition
	not    bool
	exists bool // it is EXISTS, which knows no NULL; else IN
	table  int  // whose column is compared,
	column string
	in     *joining // with one of a table of these
	key    int
	of     string
}

// stand is a condition that the lists tell, and its text, if that is not the client's.
type stand struct {
	cond condition.Condition
	text string
}

// semijoin makes one of a condition; nil if it is of another form.
func (j *joining) semijoin(x *planner, n *pg.Node) *semijoin {
	link, not := maybeNot(n)
	s := &semijoin{node: n, not: not}
	q := link.GetSubselect().GetSelectStmt()
	s.exists = link.GetSubLinkType() == pg.SubLinkType_EXISTS_SUBLINK
	if q == nil || q.Op != pg.SetOperation_SETOP_NONE || q.WithClause != nil || q.HavingClause != nil || len(q.GroupClause) > 0 || len(q.LockingClause) > 0 || q.LimitOffset != nil || !rowwise(q.TargetList) ||
		q.LimitCount != nil && (!s.exists || q.LimitCount.GetAConst().GetIval().GetIval() < 1) || distinctOn(q.DistinctClause) {
		return nil
	}
	x.literal = x.literal || q.LimitCount != nil
	if one, doubt := x.aggregates(q); one || doubt != "" {
		return nil
	}
	if s.in = j.below(x, q.FromClause, conjuncts(q.WhereClause)); s.in == nil {
		return nil
	}
	if !s.exists {
		outer, inner := link.Testexpr.GetColumnRef(), (*pg.ColumnRef)(nil)
		if len(q.TargetList) == 1 {
			inner = q.TargetList[0].GetResTarget().GetVal().GetColumnRef()
		}
		if link.SubLinkType != pg.SubLinkType_ANY_SUBLINK || len(link.OperName) > 0 || outer == nil || inner == nil || !s.joins(j.tableOf(x, outer), pgsyntax.LastName(outer.Fields), s.in.tableOf(x, inner), pgsyntax.LastName(inner.Fields)) {
			return nil
		}
	}
	if !s.in.sorted(x, j, s) || s.column == "" {
		return nil
	}
	return s
}

// joins notes the columns that are compared, of the query around and of the query in; false if that is not certain, or there are two already.
func (s *semijoin) joins(table int, column string, key int, of string) bool {
	if table < 0 || key < 0 || s.column != "" {
		return false
	}
	s.table, s.column, s.key, s.of = table, column, key, of
	return true
}

// below gives the join of a query within another one; nil if it is of another form.
func (j *joining) below(x *planner, from, where []*pg.Node) *joining {
	in := &joining{up: j, params: j.params, stands: map[*pg.Node]*stand{}, JoinTree: rewrite.JoinTree[*pg.Node]{Around: []int{0}, Only: of, Orphans: j.Orphans}}
	in.Moved = in.moved
	for _, n := range from {
		if !in.gather(x, n, 0) {
			return nil
		}
	}
	if len(in.tables) == 0 || len(in.tables) > maxInList || len(in.Around) > 1 {
		return nil
	}
	for _, n := range where {
		in.Clauses = append(in.Clauses, rewrite.Clause[*pg.Node]{Node: n, To: len(in.tables)})
	}
	return in
}

// sorted finds out of which tables the conditions of a query within another one are. The one that names a column of the query around joins the two.
func (j *joining) sorted(x *planner, around *joining, s *semijoin) bool {
	for i := 0; i < len(j.Clauses); i++ {
		c := &j.Clauses[i]
		if e := c.Node.GetAExpr(); s.exists && e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && len(e.Name) == 1 && pgsyntax.LastName(e.Name) == "=" && s.ties(x, j, around, e) {
			j.Clauses = slices.Delete(j.Clauses, i, i+1)
			i--
		} else if !j.sort(x, c) {
			return false
		}
	}
	return true
}

// ties takes a comparison for the one that joins a query with the one around it, if it is one.
func (s *semijoin) ties(x *planner, in, around *joining, e *pg.A_Expr) bool {
	for _, side := range [2][2]*pg.Node{{e.Lexpr, e.Rexpr}, {e.Rexpr, e.Lexpr}} {
		l, r := side[0].GetColumnRef(), side[1].GetColumnRef()
		if l != nil && r != nil && in.tableOf(x, l) >= 0 && in.tableOf(x, r) < 0 {
			return s.joins(around.tableOf(x, r), pgsyntax.LastName(r.Fields), in.tableOf(x, l), pgsyntax.LastName(l.Fields))
		}
	}
	return false
}

// antijoins makes such conditions of left joins to one table of which WHERE says that they find no row: a column that each row has is NULL. It gives the groups
// of these tables.
func (j *joining) antijoins(x *planner) (groups []int) {
	for i := range j.Clauses {
		null := j.Clauses[i].Node.GetNullTest()
		c := null.GetArg().GetColumnRef()
		if null.GetNulltesttype() != pg.NullTestType_IS_NULL || c == nil || j.Clauses[i].Scope != 0 || len(j.Clauses[i].Tables) != 1 {
			continue
		}
		t := j.Clauses[i].Tables[0]
		group := j.Tables[t].Group
		own := func(o rewrite.Joined) bool { return o.Group == group }
		others := func(o rewrite.Clause[*pg.Node]) bool {
			return o.Scope != group && o.Node != j.Clauses[i].Node && slices.Contains(o.Tables, t)
		}
		if group == 0 || j.Around[group] != 0 || slices.Contains(j.Around, group) || slices.ContainsFunc(j.Clauses, others) || slices.ContainsFunc(j.Tables[:t], own) || slices.ContainsFunc(j.Tables[t+1:], own) {
			continue
		}
		s := &semijoin{node: j.Clauses[i].Node, not: true, exists: true, in: j.below(x, []*pg.Node{pgsyntax.TableNode(j.tables[t].rv)}, nil)}
		if s.in == nil {
			continue
		}
		sure := true
		for _, o := range j.Clauses {
			switch {
			case o.Scope != group:
			case o.Tie != nil && o.Tie.Table[0] == t:
				sure = sure && s.joins(o.Tie.Table[1], o.Tie.Column[1], 0, o.Tie.Column[0])
			case o.Tie != nil:
				sure = sure && s.joins(o.Tie.Table[0], o.Tie.Column[0], 0, o.Tie.Column[1])
			default:
				sure = sure && !slices.ContainsFunc(o.Tables, func(k int) bool { return k != t })
				s.in.Clauses = append(s.in.Clauses, rewrite.Clause[*pg.Node]{Node: o.Node, To: 1, Tables: []int{0}})
			}
		}
		if at := j.tables[t].rel.Attribute(pgsyntax.LastName(c.Fields)); !sure || s.column == "" || j.Tables[s.table].Group != 0 || at == nil || at.Name != s.of && !at.Required {
			continue
		}
		j.Clauses = slices.DeleteFunc(slices.Clone(j.Clauses), func(o rewrite.Clause[*pg.Node]) bool { return o.Scope == group })
		at := slices.IndexFunc(j.Clauses, func(o rewrite.Clause[*pg.Node]) bool { return o.Node == s.node })
		j.Clauses[at].Tables = []int{s.table}
		j.semis, groups = append(j.semis, s), append(groups, group)
		return append(groups, j.antijoins(x)...)
	}
	return groups
}

// stand gives what the lists tell of a condition; nil if it is the client's own.
func (j *joining) stand(x *planner, n *pg.Node) *stand {
	i := slices.IndexFunc(j.semis, func(s *semijoin) bool { return s.node == n })
	if st := j.stands[n]; st != nil || i < 0 {
		return st
	}
	s, unsure := j.semis[i], condition.Unknown("a subquery whose rows are not listed")
	st := &stand{cond: unsure}
	j.stands[n] = st
	own, other := j.tables[s.table].rel.Attribute(s.column), s.in.tables[s.key].rel.Attribute(s.of)
	all := make([]int, len(s.in.tables))
	for k := range all {
		all[k] = k
	}
	v := s.in.View(s.key)
	rows, tables, ok := s.in.from(x, v, all)
	if !ok || v.Other || !comparable(own, other) {
		return st
	}
	value := s.in.column(s.key, s.of)
	if s.exists {
		rows = and(rows, value+" IS NOT NULL")
	}
	found := j.column(s.table, s.column) + " IN (SELECT " + value + rows + ")"
	switch {
	case !s.not:
		st.text = found
	case s.exists:
		st.text = "(" + found + ") IS NOT TRUE"
	default:
		st.text = "NOT " + found
	}
	c := condition.Listed(kindOf(own), s.column, j.list(x, value, rows, tables, false))
	switch {
	case s.not && s.exists:
		c = condition.Condition{Op: "or", Args: []condition.Condition{{Op: "null", Column: s.column}, condition.Not(c)}}
	case s.not:
		c = condition.Not(c)
	}
	st.cond = c
	return st
}

// asksBelow gives what the query asks of the tables of its subqueries.
func (j *joining) asksBelow(x *planner) {
	for _, s := range j.semis {
		in := s.in
		in.lacked, in.bars = s.not && j.tells(), s.not
		in.exists, in.byRow, in.absent, in.blank, in.grouped, in.limit, in.skip, in.any = j.exists, j.byRow, j.absent, j.blank, j.grouped, j.limit, j.skip, j.any
		key := &pg.Node{Node: &pg.Node_SetToDefault{SetToDefault: &pg.SetToDefault{}}}
		in.Clauses = append(in.Clauses, rewrite.Clause[*pg.Node]{Node: key, To: len(in.tables), Tables: []int{s.key}})
		in.stands[key] = j.without(x, s)
		in.asksOf(x)
		j.asksBoth(x, s)
	}
}

// asksBoth asks for rows that fulfil the conditions of the query and of its subquery, where both read one table and compare the same column of it. A new row of
// that kind finds itself, and is in neither list:
//
//	SELECT count(*) FROM booking WHERE id IN (SELECT id FROM booking WHERE room = 1)
func (j *joining) asksBoth(x *planner, s *semijoin) {
	if s.not || s.column != s.of || len(j.tables) != 1 || len(s.in.tables) != 1 || len(j.semis) != 1 || j.tables[0].rel != s.in.tables[0].rel {
		return
	}
	conjunction := func(j *joining, own *pg.Node) *pg.Node {
		list := []*pg.Node{{Node: &pg.Node_NullTest{NullTest: &pg.NullTest{Arg: pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(s.column)}, -1), Nulltesttype: pg.NullTestType_IS_NOT_NULL}}}}
		for _, c := range j.Clauses {
			if c.Node != own && c.Node.GetSetToDefault() == nil {
				list = append(list, c.Node)
			}
		}
		return pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, list, -1)
	}
	outer, inner := &j.tables[0], &s.in.tables[0]
	ask := j.question()
	if !j.cut(x, outer.rv, &ask) {
		return // which asksOf has said
	}
	a := &asker{planner: x, rel: inner.rel, ref: inner.ref, ask: ask, typed: map[int32]string{}}
	asked := a.condition(conjunction(s.in, nil))
	ask = a.ask
	ask.Where = a.certain(asked)
	x.asked(outer.rv, conjunction(j, s.node), ask)
}

// without gives the condition that the key of a subquery's rows is one of those of which there is no row, though all other conditions hold.
func (j *joining) without(x *planner, s *semijoin) *stand {
	st, own := &stand{cond: condition.Unknown("a subquery whose rows are not listed")}, j.tables[s.table].rel.Attribute(s.column)
	there := j.stand(x, s.node)
	v := j.View(s.table)
	if there.text == "" || v.Other || j.merges(s.table) {
		return st
	}
	members := []int{s.table}
	for _, p := range v.Parts {
		members = append(members, p.Members...)
	}
	others := slices.DeleteFunc(slices.Clone(v.Own[s.table]), func(n *pg.Node) bool { return n == s.node })
	if v.Own[s.table] = others; len(members) > maxInList {
		return st
	}
	rows, tables, ok := j.from(x, v, members)
	if !ok {
		return st
	}
	lacks := there.text
	if !s.not {
		lacks = "(" + lacks + ") IS NOT TRUE"
	}
	rows = and(rows, lacks)
	value := j.column(s.table, s.column)
	st.text = s.in.column(s.key, s.of) + " IN (SELECT " + value + rows + ")"
	if s.not && j.tells() {
		list := condition.Listed
		if !s.exists {
			list = condition.Barring
		}
		st.cond = list(kindOf(own), s.of, j.tell(x, value+"::pg_catalog.text"))
	} else {
		for _, t := range s.in.tables {
			tables = append(tables, t.source)
		}
		st.cond = condition.Listed(kindOf(own), s.of, j.list(x, value, rows, tables, false))
	}
	return st
}

// and adds a condition to FROM and WHERE clauses that from gave.
func and(rows, condition string) string {
	if strings.HasSuffix(rows, ")") {
		return rows + " AND " + condition
	}
	return rows + " WHERE " + condition
}

// tells reports whether each row of the answer is one of each table.
func (j *joining) tells() bool { return j.blank && !j.exists && !j.distinct }

// tell gives the number of the list of what an expression is in the rows of the answer.
func (j *joining) tell(x *planner, expr string) int {
	i := slices.Index(x.told, expr)
	if i < 0 {
		i, x.told = len(x.told), append(slices.Clip(x.told), expr)
	}
	return i
}

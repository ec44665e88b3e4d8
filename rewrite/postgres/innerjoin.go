package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// A query over an inner join asks something of each table: a row of booking counts if it fulfils the conditions on booking, and if a row of room with
// its number fulfils those on room. Which rooms do is a list that the same statement tells in a hidden column, so that they are the ones which it could
// see. The condition on booking then is one of its own columns alone:
//
//	SELECT count(*), (SELECT json_agg(v) FROM (SELECT DISTINCT r.id AS v FROM room r WHERE r.floor = 3) ...) FROM booking b JOIN room r ON r.id = b.room
//	WHERE r.floor = 3 AND b.hour = 9
//
// asks for the rows of booking where hour = 9 and room is in the list. The list comes with the first row of the answer: aggregates and EXISTS have one. For
// others a left join makes one where there is none, which the client does not see (rewrite.Plan.Blank):
//
//	SELECT q.*, CASE WHEN row_number() OVER () = 1 THEN <list> END FROM (SELECT) l LEFT JOIN (<client> OFFSET 0) q ON true
//
// A foreign key often says what a list would, see jointree.go.

// joint is one table of a join.
type joint struct {
	source
	rv *pg.RangeVar
}

// joining is a join whose tables can be asked for one by one.
type joining struct {
	rewrite.JoinTree[*pg.Node]
	tables []joint

	semis  []*semijoin // the conditions of WHERE that are subqueries
	stands map[*pg.Node]*stand
	up     *joining // the join around that of a subquery
	lacked bool     // see rewrite.Ask.Lacked,
	bars   bool     // and Bars

	exists  bool
	byRow   bool // see rewrite.Ask.ByRow,
	absent  bool // and Absent
	blank   bool // the lists are told if there is no row, too
	grouped bool // GROUP BY
	any     bool // without an order, any rows are a right answer
	// distinct says that rows which look alike are one. Then keyed are the tables of which the answer shows the primary keys, so that no new row looks like
	// another one.
	distinct bool
	keyed    map[int]bool
	limit    *pg.Node
	skip     *pg.Node
	lists    []list
	params   map[int32]int
}

// list is an expression of a hidden column. late says that it matters only where there is no row.
type list struct {
	expr string
	late bool
}

// A list has so many values at most, in so many bytes: a row of lists alone fits into a buffer.
const maxListed, maxListBytes = 200, 3000

// top is the join of the statement.
func (j *joining) top() *joining {
	for j.up != nil {
		j = j.up
	}
	return j
}

// joinOf gives the join of a query that aggregates, asks for existence, or looks for rows; nil if it is none, or not of such a form.
func joinOf(x *planner, s *pg.SelectStmt) *joining {
	j, tables := &joining{params: map[int32]int{}, stands: map[*pg.Node]*stand{}, JoinTree: rewrite.JoinTree[*pg.Node]{Around: []int{0}, Only: of, Orphans: x.session.Orphans}}, len(x.content(s).tables)
	j.Merges, j.Moved = j.merges, j.moved
	one, doubt := x.aggregates(s)
	plain := func(s *pg.SelectStmt) bool {
		return s.Op == pg.SetOperation_SETOP_NONE && s.WithClause == nil && len(s.LockingClause) == 0 && s.HavingClause == nil &&
			!slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool { return n.GetGroupingSet() != nil })
	}
	if !plain(s) || x.plan.Cursor != nil || doubt != "" {
		return nil
	}
	top := s
	in, absent := existence(s)
	switch row := rowIfExists(s); {
	case in != nil:
		j.exists, j.absent, s = true, absent, in
	case row != nil && row.LimitCount == nil && row.LimitOffset == nil:
		j.exists, j.byRow, j.blank, j.limit = true, true, true, s.LimitCount
		s = proto.Clone(row).(*pg.SelectStmt)
		s.LimitCount = j.limit // of at least 1, or there is never a row
	default:
		j.grouped = len(s.GroupClause) > 0
		j.blank, j.limit, j.skip = !one && !j.grouped, s.LimitCount, s.LimitOffset
		if j.skip != nil && one && !j.grouped || s.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
			return nil
		}
	}
	for in := counted(s); in != nil && !j.blank && !j.grouped; in = counted(s) {
		s = in
	}
	var page *pg.SelectStmt
	if in := pageOf(s); in != nil && s == top && !j.exists {
		if in.LimitCount != nil || in.LimitOffset != nil || len(in.GroupClause) > 0 {
			return nil
		}
		page, s, j.distinct = s, proto.Clone(in).(*pg.SelectStmt), true
		s.LimitCount, s.LimitOffset = j.limit, j.skip
	}
	j.distinct = j.distinct || len(s.DistinctClause) > 0
	if !plain(s) || s != top && len(s.GroupClause) > 0 || s.LimitCount != j.limit || s.LimitOffset != j.skip || !x.native {
		return nil
	}
	for _, n := range s.FromClause {
		if !j.gather(x, n, 0) {
			return nil
		}
	}
	if len(j.tables) > maxJoined {
		return nil
	}
	pgsyntax.Walk(x.node, func(m proto.Message) bool {
		if p, ok := m.(*pg.ParamRef); ok {
			j.params[p.Number]++
		}
		return true
	})
	for _, n := range conjuncts(s.WhereClause) {
		j.Clauses = append(j.Clauses, rewrite.Clause[*pg.Node]{Node: n, To: len(j.tables)})
	}
	for i := range j.Clauses {
		if !j.sort(x, &j.Clauses[i]) {
			return nil
		}
	}
	for _, in := range j.semis {
		tables -= len(in.in.tables)
	}
	if without := j.antijoins(x); len(j.tables) != tables || len(j.tables) < 2 && len(j.semis) == 0 {
		return nil
	} else if len(without) > 0 {
		defer func() {
			for i := range j.Tables {
				if g := &j.Tables[i].Group; slices.Contains(without, *g) {
					*g = -*g
				}
			}
		}()
	}
	var all []*pg.RangeVar
	for _, t := range j.tables {
		all = append(all, t.rv)
	}
	if !j.Reduce(func(n *pg.Node, i int) bool { return x.strict(n, j.tables[i].rv, all) }) {
		return nil
	}
	j.any = j.blank && !j.distinct && len(s.SortClause) == 0 && !x.content(s).sets
	j.drop(x, s, s == top, one || j.grouped)
	if j.distinct && !distinctOn(top.DistinctClause) && !distinctOn(s.DistinctClause) {
		j.keys(x, s, page)
	}
	return j
}

// pageOf is paged with an OFFSET.
func pageOf(s *pg.SelectStmt) *pg.SelectStmt {
	if s.LimitOffset != nil {
		s = proto.Clone(s).(*pg.SelectStmt)
		s.LimitOffset = nil
	}
	return paged(s)
}

// keys finds the tables of which an answer without rows that look alike shows the primary keys. page selects columns of what s selects; nil: all.
func (j *joining) keys(x *planner, s, page *pg.SelectStmt) {
	last := func(n *pg.Node) string { // "" of a star
		f := n.GetResTarget().GetVal().GetColumnRef().GetFields()
		return f[len(f)-1].GetString_().GetSval()
	}
	shown := make([][]string, len(j.tables))
	for _, n := range s.TargetList {
		ref := n.GetResTarget().GetVal().GetColumnRef()
		if ref == nil || page != nil && !slices.ContainsFunc(page.TargetList, func(o *pg.Node) bool { return last(o) == cmp.Or(n.GetResTarget().GetName(), last(n)) }) {
			continue
		}
		for i := range j.tables {
			if j.tableOf(x, ref) == i || len(ref.Fields) == 1 && last(n) == "" {
				shown[i] = append(shown[i], last(n))
			}
		}
	}
	j.keyed = map[int]bool{}
	for i, t := range j.tables {
		j.keyed[i] = statement.Whole([][]string{t.rel.Key}, func(c string) bool { return slices.Contains(shown[i], "") || slices.Contains(shown[i], c) }) != nil
	}
}

// merges reports whether a new row of table i may look like another one.
func (j *joining) merges(i int) bool { return j.distinct && !j.keyed[i] }

// maxJoined is how many tables such a join has at most, and maxInList how many are joined for a list.
const maxJoined, maxInList = 8, 3

// tableOf gives the number of the table that has a column; -1 if that is not certain.
func (j *joining) tableOf(x *planner, ref *pg.ColumnRef) int {
	found := -1
	for i, t := range j.tables {
		if x.columnOf(ref, t.rv) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// sort finds out of which tables a condition is; false if that is not certain.
func (j *joining) sort(x *planner, c *rewrite.Clause[*pg.Node]) bool {
	if j.up == nil && c.Scope == 0 && refersSubquery(c.Node) {
		s := j.semijoin(x, c.Node)
		if s != nil {
			c.Tables, j.semis = []int{s.table}, append(j.semis, s)
		}
		return s != nil
	}
	sure := true
	pgsyntax.Walk(c.Node, func(m proto.Message) bool {
		switch e := m.(type) {
		case *pg.ColumnRef:
			i := j.tableOf(x, e)
			if sure = sure && i >= 0; !slices.Contains(c.Tables, i) {
				c.Tables = append(c.Tables, i)
			}
		case *pg.SubLink, *pg.SelectStmt:
			sure = false
		}
		return sure
	})
	e := c.Node.GetAExpr()
	if sure && len(c.Tables) == 2 && e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && len(e.Name) == 1 && pgsyntax.LastName(e.Name) == "=" && e.Lexpr.GetColumnRef() != nil && e.Rexpr.GetColumnRef() != nil {
		c.Tie = &rewrite.Tie{}
		for k, side := range []*pg.Node{e.Lexpr, e.Rexpr} {
			f := side.GetColumnRef()
			c.Tie.Table[k], c.Tie.Column[k] = j.tableOf(x, f), f.Fields[len(f.Fields)-1].GetString_().GetSval()
		}
	}
	return sure
}

// question is what the query asks, without the table and the condition.
func (j *joining) question() rewrite.Ask {
	return rewrite.Ask{Exists: j.exists, ByRow: j.byRow, Absent: j.absent, Joined: j.blank || j.grouped, Merged: j.grouped, Single: !j.blank && !j.grouped}
}

// asks gives what the query asks of each table, and makes the lists that it needs. told are the hidden columns of its order.
func (j *joining) asks(x *planner, told []string) {
	x.told = told
	for _, s := range j.semis {
		if s.not && j.tells() {
			j.tell(x, j.column(s.table, s.column)+"::pg_catalog.text")
		}
	}
	if j.asksOf(x); x.plan.Unread == "" {
		j.asksBelow(x)
	}
	x.plan.Predicate = x.plan.Unread != "" || slices.ContainsFunc(x.plan.Asks, func(a rewrite.Ask) bool { return !a.Pinned })
}

// asksOf gives what is asked of each table of a join.
func (j *joining) asksOf(x *planner) {
	for i := range j.tables {
		t := &j.tables[i]
		if j.Tables[i].Group < 0 {
			continue
		}
		v := j.View(i)
		if j.Steady(v) {
			continue
		}
		ask := j.question()
		if j.lacked {
			ask = rewrite.Ask{Lacked: true, Joined: true}
		}
		// Without an order, LIMIT may give another row in the place of one that no longer lacks it, which is as right.
		if (!j.lacked || j.any) && !j.cut(x, t.rv, &ask) {
			x.plan.Unread = "LIMIT hides rows"
			return
		}
		if j.lacked {
			ask.Beyond = condition.Condition{}
		}
		ask.Bars = j.bars
		own, args := v.Own[i], []condition.Condition{}
		var unsure []rewrite.Part
		for _, p := range v.Parts {
			moved, c, ok := j.Assured(v, p)
			if !ok {
				unsure = append(unsure, p)
				continue
			}
			own, args = append(own, moved...), append(args, c)
		}
		own = slices.DeleteFunc(slices.Clone(own), func(n *pg.Node) bool {
			st := j.stand(x, n)
			if st != nil {
				args = append(args, st.cond)
			}
			return st != nil
		})
		var where *pg.Node
		if len(own) > 0 {
			where = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, own, -1)
		}
		late := j.merges(i) || pinned(where, t.source)
		for _, p := range unsure {
			c := condition.Unknown("tables that no single column joins")
			if p.Tie != nil && !v.Other && len(p.Members) <= maxInList {
				c = j.within(x, v, p, late)
			}
			args = append(args, c)
		}
		if v.Other {
			args = append(args, condition.Unknown("a condition on several tables"))
		}
		ask.Where = condition.And(args...)
		x.asked(t.rv, where, ask)
	}
}

// cut notes LIMIT and OFFSET, and of which rows of a table it is certain that they are not hidden; false if they are not certain.
func (j *joining) cut(x *planner, rv *pg.RangeVar, ask *rewrite.Ask) (ok bool) {
	ok = true
	if j.limit != nil {
		ask.Limit, ok = x.value(j.limit, condition.Number, "int8", ask)
	}
	switch {
	case j.any:
		ask.Beyond = condition.Never
	case x.leads == rv:
		ask.Beyond, ask.Alike = x.top, x.alike
	}
	if j.skip != nil && ok {
		ask.Skip, ok = x.value(j.skip, condition.Number, "int8", ask)
	}
	return ok
}

// within is the condition that a column has one of the values that a list of the hidden columns tells, of the tables that are members.
func (j *joining) within(x *planner, v *rewrite.JoinView[*pg.Node], p rewrite.Part, late bool) condition.Condition {
	t := p.Tie
	own := j.tables[t.Table[0]].rel.Attribute(t.Column[0])
	rows, all, ok := j.from(x, v, p.Members)
	if !ok || !comparable(own, j.tables[t.Table[1]].rel.Attribute(t.Column[1])) {
		return condition.Unknown("a join whose rows are not listed")
	}
	return condition.Listed(kindOf(own), t.Column[0], j.list(x, j.column(t.Table[1], t.Column[1]), rows, all, late))
}

// comparable reports whether the values of one column can be compared with a list of those of another one.
func comparable(own, other *rewrite.Attribute) bool {
	if own == nil || other == nil || kindOf(own) != kindOf(other) || own.Type == "enum" || other.Type == "enum" {
		return false
	}
	kind := kindOf(own)
	return kind == condition.Number && strings.HasPrefix(own.Type, "int") && strings.HasPrefix(other.Type, "int") || kind == condition.UUID || kind == condition.Text || kind == condition.Date
}

// from gives the FROM and WHERE clauses of some of the tables, with their own conditions and those that join them.
func (j *joining) from(x *planner, v *rewrite.JoinView[*pg.Node], members []int) (text string, all []source, ok bool) {
	var from, where []string
	for _, k := range members {
		m := &j.tables[k]
		if m.rel.Rows > maxGroupRows {
			return "", nil, false
		}
		all, from = append(all, m.source), append(from, pgsyntax.Quote(m.rel.Schema)+"."+pgsyntax.Quote(m.rel.Name)+" AS "+pgsyntax.Quote(m.ref))
		for _, n := range v.Own[k] {
			text, ok := j.text(x, n)
			if !ok {
				return "", nil, false
			}
			where = append(where, text)
		}
	}
	for _, o := range v.Ties {
		if a, b := o.Table[0], o.Table[1]; slices.Contains(members, a) && slices.Contains(members, b) {
			where = append(where, j.column(a, o.Column[0])+" = "+j.column(b, o.Column[1]))
		}
	}
	text = " FROM " + strings.Join(from, ", ")
	if len(where) > 0 {
		text += " WHERE (" + strings.Join(where, ") AND (") + ")"
	}
	return text, all, true
}

// list gives the number of a list of a value in rows that FROM and WHERE clauses give, which the hidden columns tell. late says that it matters only where the answer has
// no row.
func (j *joining) list(x *planner, value, rows string, all []source, late bool) int {
	bytes := maxGroupBytes
	if j.blank && !late {
		bytes = maxBesideBytes
	}
	j = j.top()
	// A list reads rows that the query itself may not read, which at SERIALIZABLE would lock them.
	j.lists = append(j.lists, list{late: late, expr: fmt.Sprintf("CASE WHEN "+notSerializable+" AND %s THEN (SELECT CASE WHEN pg_catalog.count(*) <= %d AND coalesce(pg_catalog.sum(pg_catalog.octet_length(wirecheck.v::pg_catalog.text)), 0) < %d THEN coalesce(pg_catalog.json_agg(wirecheck.v)::pg_catalog.text, '[]') "+
		"END FROM (SELECT DISTINCT %s AS v%s LIMIT %d) wirecheck) END", small(all, bytes), maxListed, maxListBytes, value, rows, maxListed+1)})
	return len(x.told) + len(j.lists) - 1
}

// maxBesideBytes is how large tables are at most of which a list is made beside the rows of an answer.
const maxBesideBytes = 1 << 20

func (j *joining) column(table int, name string) string {
	return pgsyntax.Quote(j.tables[table].ref) + "." + pgsyntax.Quote(name)
}

// text gives a copy of a condition, if it can be evaluated once more: it finds no error, and has no parameter whose type another place tells.
func (j *joining) text(x *planner, n *pg.Node) (string, bool) {
	if st := j.stand(x, n); st != nil {
		return st.text, st.text != ""
	}
	ok := x.harmless(n)
	pgsyntax.Walk(n, func(m proto.Message) bool {
		switch e := m.(type) {
		case *pg.ParamRef:
			ok = ok && j.params[e.Number] == 1
		case *pg.FuncCall:
			ok = ok && x.steady(e)
		}
		return ok
	})
	from, to := x.span(n)
	return copied(from, to), ok && to > 0
}

// span finds where the text of a condition begins and ends, which is proven by reading it alone; to is 0 if it was not found.
func (x *scene) span(n *pg.Node) (from, to int) {
	least := -1
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if l, ok := m.(interface{ GetLocation() int32 }); ok && l.GetLocation() >= 0 && (least < 0 || int(l.GetLocation()) < least) {
			least = int(l.GetLocation())
		}
		return true
	})
	toks := x.tokens(x.from)
	first := slices.IndexFunc(toks, func(t *pg.ScanToken) bool { return int(t.Start) == least })
	for open := 0; first-open >= 0 && open <= maxOpen && (open == 0 || toks[first-open].Token == pgsyntax.TokenOpen); open++ {
		from, to = int(toks[first-open].Start), conditionEnd(toks[first-open:])
		tree, err := pgsyntax.Parse("SELECT WHERE " + x.sql[from:to])
		if err == nil && len(tree.Stmts) == 1 && pgsyntax.Same(tree.Stmts[0].Stmt.GetSelectStmt().GetWhereClause(), n) {
			return from, to
		}
	}
	return 0, 0
}

// maxOpen is how many parentheses stand in front of a condition at most.
const maxOpen = 4

// conditionEnd is the place behind the condition that begins with the first token, which AND joins with others.
func conditionEnd(toks []*pg.ScanToken) int {
	depth, between := 0, 0
	for i, t := range toks {
		end := false
		switch t.Token {
		case pgsyntax.TokenOpen:
			depth++
		case pgsyntax.TokenClose:
			depth--
			end = depth < 0
		case pg.Token_BETWEEN:
			between++
		case pg.Token_AND:
			if end = depth == 0 && between == 0; !end {
				between = max(0, between-1)
			}
		case pgsyntax.TokenComma, pgsyntax.TokenEnd, pg.Token_JOIN, pg.Token_INNER_P, pg.Token_CROSS, pg.Token_ON:
			end = depth == 0
		default:
			end = depth == 0 && pgsyntax.AfterTargets[t.Token] && i > 0 && pgsyntax.BeginsClause(toks, i)
		}
		if end && i > 0 {
			return int(toks[i-1].End)
		}
	}
	return int(toks[len(toks)-1].End)
}

// besides reports whether the client's statement, which has the versions of its tables in its columns, is to be a side of a left join that has a row in any case.
func (x *planner) besides(s *pg.SelectStmt) bool {
	tells := x.join != nil && x.join.blank && len(x.join.lists) > 0 || (len(x.clocks)+scalars(x) > 0 || x.counts != nil && x.join == nil) && !locks(s) && !x.groups(s)
	return tells && len(x.inside) == 0 && len(x.parts) > 0
}

// columns gives the lists as hidden columns, which stand behind all others. There are none where j is nil.
func (j *joining) columns(x *planner) (columns []string) {
	if j == nil {
		return nil
	}
	for i, l := range j.lists {
		expr := l.expr
		switch {
		case l.late && j.blank:
			expr = fmt.Sprintf("CASE WHEN %s.%s IS NULL THEN %s END", pgsyntax.Quote(x.hiddenPrefix()+"q"), pgsyntax.Quote(x.hiddenName(1)), expr)
		case j.blank, j.grouped:
			expr = fmt.Sprintf("CASE WHEN pg_catalog.row_number() OVER () = 1 THEN %s END", expr)
		}
		columns = append(columns, fmt.Sprintf("%s AS %s", expr, pgsyntax.Quote(fmt.Sprintf("%slist %d", x.hiddenPrefix(), i))))
	}
	x.lists = len(columns)
	return columns
}

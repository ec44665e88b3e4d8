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

// A query over an inner join asks something of each table: a row of booking counts if it fulfils the conditions on booking, and if a row of room with
// its number fulfils those on room. Which rooms do is a list that the same statement tells in a hidden column, so that they are the ones which it could
// see. The condition on booking then is one of its own columns alone:
//
//	SELECT count(*), (SELECT json_agg(v) FROM (SELECT DISTINCT r.id AS v FROM room r WHERE r.floor = 3) ...) FROM booking b JOIN room r ON r.id = b.room
//	WHERE r.floor = 3 AND b.hour = 9
//
// asks for the rows of booking where hour = 9 and room is in the list. The list comes with a row of the answer: aggregates and EXISTS have one. For others
// the list matters where they have none. Then a left join makes one, which the client does not see (rewrite.Plan.Blank):
//
//	SELECT q.*, CASE WHEN q.<version> IS NULL THEN <list> END FROM (SELECT) l LEFT JOIN (<client>) q ON true

// joint is one table of an inner join.
type joint struct {
	source
	rv  *pg.RangeVar
	own []*pg.Node // the conditions that name its columns alone
}

// joining is an inner join whose tables can be asked for one by one.
type joining struct {
	tables []joint
	ties   []rewrite.Tie
	other  bool // there are other conditions on several tables
	exists bool
	blank  bool // the lists are told if there is no row
	limit  *pg.Node
	lists  []string // expressions of hidden columns
	params map[int32]int
}

// A list has so many values at most, in so many bytes: a row of lists alone fits into a buffer.
const maxListed, maxListBytes = 200, 3000

// joinOf gives the join of a query that aggregates, asks for existence, or looks for rows; nil if it is none, or not of such a form.
func joinOf(x *planner, s *pg.SelectStmt) *joining {
	j, tables := &joining{params: map[int32]int{}}, len(x.content(s).tables)
	one, doubt := x.aggregates(s)
	plain := func(s *pg.SelectStmt) bool {
		return s.Op == pg.SetOperation_SETOP_NONE && s.WithClause == nil && len(s.LockingClause) == 0 && len(s.GroupClause) == 0 && s.HavingClause == nil && s.LimitOffset == nil
	}
	if !plain(s) || x.plan.Cursor != nil || doubt != "" {
		return nil
	}
	switch in := existence(s); {
	case in != nil:
		j.exists, s = true, in
	default:
		j.blank, j.limit = !one, s.LimitCount
		if j.blank && j.limit == nil && len(s.SortClause) == 0 || s.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES { // without both, it is planned otherwise as a subquery
			return nil
		}
	}
	for in := counted(s); in != nil && !j.blank; in = counted(s) {
		s = in
	}
	var conditions []*pg.Node
	if !plain(s) || s.LimitCount != j.limit || !x.native || !j.gather(x, s.FromClause, &conditions) || len(j.tables) < 2 || len(j.tables) > maxJoined || len(j.tables) != tables {
		return nil
	}
	pgsyntax.Walk(x.node, func(m proto.Message) bool {
		if p, ok := m.(*pg.ParamRef); ok {
			j.params[p.Number]++
		}
		return true
	})
	for _, n := range append(conditions, conjuncts(s.WhereClause)...) {
		if !j.sort(x, n) {
			return nil
		}
	}
	return j
}

// maxJoined is how many tables such a join has at most.
const maxJoined = 4

// gather takes the tables and conditions of a FROM clause; false if there is anything else in it.
func (j *joining) gather(x *planner, from []*pg.Node, conditions *[]*pg.Node) bool {
	for _, n := range from {
		if e := n.GetJoinExpr(); e != nil {
			if e.Jointype != pg.JoinType_JOIN_INNER || e.IsNatural || len(e.UsingClause) > 0 || e.Alias != nil || !j.gather(x, []*pg.Node{e.Larg, e.Rarg}, conditions) {
				return false
			}
			*conditions = append(*conditions, conjuncts(e.Quals)...)
			continue
		}
		rv := n.GetRangeVar()
		if rv == nil || !x.watched(rv) || x.ctes[rv.Relname] != nil || len(rv.GetAlias().GetColnames()) > 0 || !rv.Inh {
			return false
		}
		rel, _ := x.resolve(rv)
		if rel == nil || rel.Kind != "table" || unreadable(rel) != "" || rel.Root != nil || rel.RowSecurity || rel.HasRules || rel.Rows > maxGroupRows ||
			slices.ContainsFunc(j.tables, func(t joint) bool { return t.rel == rel || t.ref == refName(rv) }) {
			return false
		}
		j.tables = append(j.tables, joint{source: source{rel: rel, ref: refName(rv)}, rv: rv})
	}
	return true
}

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
func (j *joining) sort(x *planner, n *pg.Node) bool {
	of, sure := map[int]bool{}, true
	pgsyntax.Walk(n, func(m proto.Message) bool {
		switch e := m.(type) {
		case *pg.ColumnRef:
			i := j.tableOf(x, e)
			of[i], sure = true, sure && i >= 0
		case *pg.SubLink, *pg.SelectStmt:
			sure = false
		}
		return sure
	})
	e := n.GetAExpr()
	switch {
	case !sure:
		return false
	case len(of) == 0: // 1 = 1
		for i := range j.tables {
			j.tables[i].own = append(j.tables[i].own, n)
		}
	case len(of) == 1:
		for i := range of {
			j.tables[i].own = append(j.tables[i].own, n)
		}
	case len(of) == 2 && e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && len(e.Name) == 1 && pgsyntax.LastName(e.Name) == "=" && e.Lexpr.GetColumnRef() != nil && e.Rexpr.GetColumnRef() != nil:
		var t rewrite.Tie
		for k, side := range []*pg.Node{e.Lexpr, e.Rexpr} {
			f := side.GetColumnRef()
			t.Table[k], t.Column[k] = j.tableOf(x, f), f.Fields[len(f.Fields)-1].GetString_().GetSval()
		}
		j.ties = append(j.ties, t)
	default:
		j.other = true
	}
	return true
}

// asks gives what the query asks of each table, and makes the lists that it needs.
func (j *joining) asks(x *planner) {
	for i := range j.tables {
		t := &j.tables[i]
		ask := rewrite.Ask{Exists: j.exists, Where: condition.Always, Joined: j.blank, Single: !j.blank}
		if j.limit != nil {
			v, ok := x.value(j.limit, condition.Number, "int8", &ask)
			if !ok {
				x.plan.Unread = "LIMIT hides rows"
				return
			}
			ask.Limit = v
		}
		if j.other {
			ask.Where = condition.Unknown("a condition on several tables")
		} else {
			ask.Where = condition.Condition{Op: "and", Args: j.tied(x, i)}
		}
		var where *pg.Node
		if len(t.own) > 0 {
			where = pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR, t.own, -1)
		}
		x.asked(t.rv, where, ask)
	}
}

// tied gives the conditions on the columns of table i that tie it to others: without it, the others fall into parts, and it has a tie to each.
func (j *joining) tied(x *planner, i int) (list []condition.Condition) {
	for _, p := range rewrite.Parts(len(j.tables), i, j.ties) {
		c := condition.Unknown("tables that no single column joins")
		if p.Tie != nil {
			c = j.in(x, p.Tie, p.Members)
		}
		list = append(list, c)
	}
	return list
}

// in is the condition that a column has one of the values that a list of the hidden columns tells, of the tables that are members.
func (j *joining) in(x *planner, t *rewrite.Tie, members []int) condition.Condition {
	unsure := condition.Unknown("a join whose rows are not listed")
	own, other := j.tables[t.Table[0]].rel.Attribute(t.Column[0]), j.tables[t.Table[1]].rel.Attribute(t.Column[1])
	if own == nil || other == nil || kindOf(own) != kindOf(other) || own.Type == "enum" || other.Type == "enum" {
		return unsure
	}
	switch kind := kindOf(own); {
	case kind == condition.Number && strings.HasPrefix(own.Type, "int") && strings.HasPrefix(other.Type, "int"), kind == condition.UUID, kind == condition.Text:
	default:
		return unsure
	}
	var from, where []string
	var all []source
	for _, k := range members {
		m := &j.tables[k]
		all, from = append(all, m.source), append(from, pgsyntax.Quote(m.rel.Schema)+"."+pgsyntax.Quote(m.rel.Name)+" AS "+pgsyntax.Quote(m.ref))
		for _, n := range m.own {
			text, ok := j.text(x, n)
			if !ok {
				return unsure
			}
			where = append(where, text)
		}
	}
	for _, o := range j.ties {
		if a, b := o.Table[0], o.Table[1]; slices.Contains(members, a) && slices.Contains(members, b) {
			where = append(where, j.column(a, o.Column[0])+" = "+j.column(b, o.Column[1]))
		}
	}
	text := ""
	if len(where) > 0 {
		text = " WHERE (" + strings.Join(where, ") AND (") + ")"
	}
	// A list reads rows that the query itself may not read, which at SERIALIZABLE would lock them.
	j.lists = append(j.lists, fmt.Sprintf("CASE WHEN pg_catalog.current_setting('transaction_isolation') <> 'serializable' AND %s THEN (SELECT CASE WHEN pg_catalog.count(*) <= %d AND coalesce(pg_catalog.sum(pg_catalog.octet_length(wirecheck.v::pg_catalog.text)), 0) < %d THEN coalesce(pg_catalog.json_agg(wirecheck.v) "+
		"FILTER (WHERE wirecheck.v IS NOT NULL)::pg_catalog.text, '[]') END FROM (SELECT DISTINCT %s AS v FROM %s%s LIMIT %d) wirecheck) END",
		small(all, maxGroupBytes), maxListed, maxListBytes, j.column(t.Table[1], t.Column[1]), strings.Join(from, ", "), text, maxListed+1))
	return condition.Listed(kindOf(own), t.Column[0], len(j.lists)-1)
}

func (j *joining) column(table int, name string) string {
	return pgsyntax.Quote(j.tables[table].ref) + "." + pgsyntax.Quote(name)
}

// text gives a copy of a condition, if it can be evaluated once more: it finds no error, and has no parameter whose type another place tells.
func (j *joining) text(x *planner, n *pg.Node) (string, bool) {
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

// columns gives the lists as hidden columns, which stand behind all others. There are none where j is nil.
func (j *joining) columns(x *planner) (columns []string) {
	if j == nil {
		return nil
	}
	for i, expr := range j.lists {
		if j.blank {
			expr = fmt.Sprintf("CASE WHEN %s.%s IS NULL THEN %s END", pgsyntax.Quote(x.hiddenPrefix()+"q"), pgsyntax.Quote(x.hiddenName(1)), expr)
		}
		columns = append(columns, fmt.Sprintf("%s AS %s", expr, pgsyntax.Quote(fmt.Sprintf("%slist %d", x.hiddenPrefix(), i))))
	}
	x.lists = len(columns)
	return columns
}

// wrap makes the client's statement, which has the versions of its tables in its columns, a side of a left join that has a row in any case.
func (j *joining) wrap(x *planner) {
	toks := x.tokens(x.from)
	if j == nil || !j.blank || len(j.lists) == 0 || x.wrapped || len(x.inside) > 0 || len(x.parts) == 0 || len(toks) == 0 {
		return
	}
	name := x.hiddenPrefix()
	add := "SELECT " + pgsyntax.Quote(name+"q") + ".*, " + strings.Join(j.columns(x), ", ") + " FROM (SELECT) " + pgsyntax.Quote(name+"l") + " LEFT JOIN ("
	x.wrapped, x.plan.Blank = true, true
	x.edits = append(x.edits, rewrite.Edit{At: int(toks[0].Start), Add: add}, rewrite.Edit{At: int(toks[len(toks)-1].End), Add: ") " + pgsyntax.Quote(name+"q") + " ON true"})
}

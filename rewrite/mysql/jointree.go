package mysql

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// What a join asks of its tables without a list: which of them matter, which rows are fixed by unique keys, and which the answer shows. See rewrite.JoinTree.

// gather takes the tables and conditions of an item of a FROM clause, in the order of the text; false if there is anything else in it.
func (j *joining) gather(n ast.ResultSetNode, group int) bool {
	switch n := n.(type) {
	case *ast.Join:
		from := len(j.Tables)
		if n.NaturalJoin || len(n.Using) > 0 || n.Right != nil && n.Tp != ast.CrossJoin && n.Tp != ast.LeftJoin || !j.gather(n.Left, group) {
			return false
		}
		if n.Right != nil && n.Tp == ast.LeftJoin {
			group, from = j.Left(group), len(j.Tables)
		}
		if n.Right != nil && !j.gather(n.Right, group) {
			return false
		}
		if n.On != nil {
			j.on = append(j.on, n.On.Expr)
			for _, e := range conjuncts(n.On.Expr) {
				j.Clauses = append(j.Clauses, rewrite.Clause[term]{Node: term{ExprNode: e}, Scope: group, From: from, To: len(j.Tables)})
			}
		}
		return true
	case *ast.TableSource:
		if in, ok := n.Source.(*ast.Join); ok {
			return j.gather(in, group)
		}
		if _, ok := n.Source.(*ast.TableName); !ok {
			return false
		}
		j.Tables = append(j.Tables, rewrite.Joined{Relation: j.list[len(j.Tables)].rel, Group: group})
		return true
	}
	return false
}

// drop takes tables out on which the answer does not depend, or perhaps not: that the server does not read, and sides of left joins of which the answer shows,
// or counts, nothing, and which find one row at most for each of the others.
func (j *joining) drop() {
	matters := map[int]bool{0: true}
	add := func(g int) (more bool) {
		for ; !matters[g]; g = j.Around[g] {
			matters[g], more = true, true
		}
		return more
	}
	again := !j.exists && !j.distinct
	for i := range j.list {
		if again && !j.list[i].eliminated && (j.rows && (j.s.showsOf(j.q, j.list, &j.list[i]) || j.multiplies(i)) || !j.rows && j.counts(i)) {
			add(j.Tables[i].Group)
		}
	}
	for again {
		again = false
		for _, c := range j.Clauses {
			for _, t := range c.Tables {
				again = matters[c.Scope] && add(j.Tables[t].Group) || again
			}
		}
	}
	for i := range j.Tables {
		if group := &j.Tables[i].Group; !matters[*group] || j.list[i].eliminated {
			*group = -*group
		}
	}
}

// multiplies reports whether a left join may find several rows of a table: no unique key of it is among the columns that the join names.
func (j *joining) multiplies(table int) bool {
	var named []string
	for _, c := range j.Clauses {
		for _, name := range walk(c.Node.ExprNode).columns {
			if c.Scope == j.Tables[table].Group && j.tableOf(name) == table {
				named = append(named, name.Name.O)
			}
		}
	}
	return !slices.ContainsFunc(j.list[table].rel.Unique, func(key []string) bool {
		return !slices.ContainsFunc(key, func(c string) bool { return !mysqlsyntax.ContainsName(named, c) })
	})
}

// counts reports whether an aggregate looks at a table.
func (j *joining) counts(table int) (found bool) {
	if j.q.Fields == nil {
		return false
	}
	visit(j.q.Fields, func(n ast.Node) {
		if f, ok := n.(*ast.AggregateFuncExpr); ok {
			found = found || slices.ContainsFunc(walk(f).columns, func(c *ast.ColumnName) bool { return j.tableOf(c) == table })
			found = found || len(f.Args) == 1 && len(walk(f).columns) == 0 // COUNT(*)
		}
	})
	return found
}

// keys finds the tables of which an answer without rows that look alike shows the primary keys. n selects columns of what the query selects, or is the query.
func (j *joining) keys(n *ast.SelectStmt) {
	shown, plain := make([][]string, len(j.list)), true
	for _, f := range j.q.Fields.Fields {
		c, _ := f.Expr.(*ast.ColumnNameExpr)
		used := j.q.Distinct || c != nil && slices.ContainsFunc(n.Fields.Fields, func(o *ast.SelectField) bool { return o.Expr.(*ast.ColumnNameExpr).Name.Name.L == nameIn(f) })
		plain = plain && (c != nil || !used)
		for i := range j.list {
			switch {
			case f.WildCard != nil && j.q.Distinct && shows(f, &j.list[i]):
				shown[i] = append(shown[i], j.list[i].rel.Key...)
			case c != nil && used && j.tableOf(c.Name) == i:
				shown[i] = append(shown[i], j.list[i].column(c.Name.Name.O).Name)
			}
		}
	}
	j.keyed = map[int]bool{}
	several := false
	for i := range j.list {
		key := j.list[i].rel.Key
		j.keyed[i] = statement.Whole([][]string{key}, func(c string) bool { return slices.Contains(shown[i], c) }) != nil
		if several = several || len(shown[i]) > 0 && j.sole >= 0; len(shown[i]) > 0 {
			j.sole = i
		}
	}
	if several || !plain || j.sole >= 0 && (!j.keyed[j.sole] || j.Tables[j.sole].Group != 0) || j.q.Distinct {
		j.sole = -1
	}
	if j.sole >= 0 && j.order != nil {
		j.order = j.inside(n)
	}
}

// nameIn is the name of a column of a derived table, in lower case.
func nameIn(f *ast.SelectField) string {
	if c, ok := f.Expr.(*ast.ColumnNameExpr); ok && f.AsName.O == "" {
		return c.Name.Name.L
	}
	return f.AsName.L
}

// inside gives the order of a query as one of the columns of its derived table, as far as it is certain.
func (j *joining) inside(n *ast.SelectStmt) *ast.OrderByClause {
	out := &ast.OrderByClause{}
	for _, item := range n.OrderBy.Items {
		c, ok := unwrapped(item.Expr).(*ast.ColumnNameExpr)
		if !ok || c.Name.Table.O == "" && renames(n, c.Name.Name.O) {
			break
		}
		at := slices.IndexFunc(j.q.Fields.Fields, func(f *ast.SelectField) bool { return nameIn(f) == c.Name.Name.L })
		if at < 0 {
			break
		}
		out.Items = append(out.Items, &ast.ByItem{Expr: j.q.Fields.Fields[at].Expr, Desc: item.Desc})
	}
	if len(out.Items) < len(n.OrderBy.Items) { // something else decides then
		out.Items = append(out.Items, &ast.ByItem{Expr: &ast.DefaultExpr{}})
	}
	return out
}

// merges reports whether a new row of table i may look like another one.
func (j *joining) merges(i int) bool { return j.distinct && !j.keyed[i] }

// strict reports whether a condition is certainly not true where a table's columns are NULL: it compares one of them by an operator that gives NULL then. A
// date that is NOT NULL counts as NULL if it is zero, so IS NOT NULL says nothing of dates.
func (j *joining) strict(e term, table int) bool {
	own := func(e ast.ExprNode) bool {
		c, ok := unwrapped(e).(*ast.ColumnNameExpr)
		return ok && j.tableOf(c.Name) == table
	}
	switch e := e.ExprNode.(type) {
	case *ast.BinaryOperationExpr:
		return operators[e.Op] != "" && (own(e.L) || own(e.R))
	case *ast.PatternInExpr:
		return own(e.Expr) && !e.Not && e.Sel == nil
	case *ast.BetweenExpr:
		return own(e.Expr) && !e.Not
	case *ast.PatternLikeOrIlikeExpr:
		return own(e.Expr)
	case *ast.IsNullExpr:
		if c, ok := unwrapped(e.Expr).(*ast.ColumnNameExpr); ok && own(e.Expr) && e.Not {
			return integer(j.list[table].column(c.Name.Name.O))
		}
	}
	return false
}

// moved puts a condition on the second column of a tie as one on the first column, if it can.
func (j *joining) moved(e term, t rewrite.Tie) (term, bool) {
	from, at := j.list[t.Table[1]].column(t.Column[1]), j.list[t.Table[0]].column(t.Column[0])
	e.of, e.as = t.Table[1], at.Name
	return e, only(e, t.Column[1]) && strings.EqualFold(from.Type, at.Type) && from.Collation == at.Collation && kindOf(at) != condition.Other
}

// only reports whether a condition names no column but the one of that name, of the one table that it is of.
func only(e ast.ExprNode, column string) bool {
	return !slices.ContainsFunc(walk(e).columns, func(c *ast.ColumnName) bool { return !strings.EqualFold(c.Name.O, column) })
}

// pinned says of which tables the conditions fix a whole unique key, also by the columns of others of which they do.
func (j *joining) pinned() []bool {
	pinned := make([]bool, len(j.list))
	for again := true; again; {
		again = false
		for i := range j.list {
			src := &j.list[i]
			fixed := func(column string) bool {
				return slices.ContainsFunc(j.Clauses, func(c rewrite.Clause[term]) bool {
					if c.Tie == nil || c.Scope != 0 {
						return false
					}
					t := *c.Tie
					if t.Table[1] == i {
						t = t.Mirrored()
					}
					return t.Table[0] == i && t.Column[0] == column && pinned[t.Table[1]]
				})
			}
			if !pinned[i] && !nullSafe(j.q.Where) && (j.s.point(j.q.Where, j.list, src, src.rel.Unique) || slices.ContainsFunc(src.rel.Unique, func(key []string) bool {
				return !slices.ContainsFunc(key, func(c string) bool { return !fixed(c) })
			})) {
				pinned[i], again = true, true
			}
		}
	}
	return pinned
}

// shown reports whether the answer shows all rows of the other tables with which one of a left join can be joined: it stands alone at the side that may be missing, and
// the join has no condition on the others but a tie.
func (j *joining) shown(v *rewrite.JoinView[term], p rewrite.Part) bool {
	group := j.Tables[v.Table].Group
	for i, t := range j.Tables {
		for g := abs(t.Group); i != v.Table && g != 0; g = j.Around[g] {
			if g == group {
				return false
			}
		}
	}
	scoped := func(c rewrite.Clause[term]) bool {
		return c.Scope == group && c.Tie == nil && (len(c.Tables) != 1 || c.Tables[0] != v.Table)
	}
	own, other := j.list[v.Table].column(p.Tie.Column[0]), j.list[p.Tie.Table[1]].column(p.Tie.Column[1])
	return j.rows && !j.distinct && group > 0 && len(v.Parts) == 1 && !slices.ContainsFunc(j.Clauses, scoped) && integer(own) && integer(other) && listsPlace(j.s) >= 0
}

// toldBy is the condition that a column has one of the values that the rows of the answer tell.
func (j *joining) toldBy(p rewrite.Part) condition.Condition {
	t := p.Tie
	text := "CONCAT(" + j.column(t.Table[1], t.Column[1]) + ")"
	i := slices.Index(j.told, text)
	if i < 0 {
		i, j.told = len(j.told), append(j.told, text)
	}
	return condition.Listed(condition.Number, t.Column[0], i)
}

// leader tells what orders the rows of an answer with a LIMIT, of a table that is in each of them, see ordering.
func (j *joining) leader() (table int, beyond, alike condition.Condition) {
	if j.order == nil {
		return -1, beyond, alike
	}
	c, ok := unwrapped(j.order.Items[0].Expr).(*ast.ColumnNameExpr)
	if !ok {
		return -1, beyond, alike
	}
	if table = j.tableOf(c.Name); table < 0 || j.Tables[table].Group != 0 || j.sole >= 0 && j.sole != table {
		return -1, beyond, alike
	}
	q, as := *j.q, map[string]string(nil)
	q.Limit, q.OrderBy = j.limit, j.order
	if j.sole >= 0 {
		as = map[string]string{}
		for _, f := range j.q.Fields.Fields {
			if c, ok := f.Expr.(*ast.ColumnNameExpr); ok && j.tableOf(c.Name) == table {
				as[j.list[table].column(c.Name.Name.O).Name] = mysqlsyntax.Quote(j.around) + "." + mysqlsyntax.Quote(cmp.Or(f.AsName.O, c.Name.Name.O))
			}
		}
	}
	beyond, alike, j.told = ordering(j.s, &q, j.list, table, j.s.session.LockingReads, as)
	return table, beyond, alike
}

// searched reports whether the server certainly looks for rows.
func (j *joining) searched(limits asker) bool {
	for _, c := range j.Clauses {
		if c.Scope == 0 && len(c.Tables) > 1 && c.Tie == nil {
			return false
		}
	}
	for i := range j.list {
		a := limits
		a.src, a.ask.Types = &j.list[i], nil
		var own []condition.Condition
		for _, c := range j.Clauses {
			if c.Scope == 0 && (len(c.Tables) == 0 || len(c.Tables) == 1 && c.Tables[0] == i) {
				own = append(own, a.condition(c.Node.ExprNode))
			}
		}
		alone := rewrite.Ask{Relation: a.src.rel, Limit: a.ask.Limit, Where: condition.And(own...)}
		if alone = alone.Bind(func(int) (condition.Value, bool) { return nil, false }); j.Tables[i].Group == 0 && !alone.Looks() {
			return false
		}
	}
	return j.apart()
}

func abs(n int) int { return max(n, -n) }

// apart reports whether the conditions of one table cannot make those of another one impossible: of the columns that join tables, which are all of one type, one
// at most has other conditions, and none if they are integers of several types, as no INT is 5000000000. Else the server might see that there is no row, and the transaction take no view of the database (rewrite.Ask.Looks), where a list
// would take one.
func (j *joining) apart() bool {
	type column struct {
		table int
		name  string
	}
	bound, tied, several := map[column]bool{}, map[column]bool{}, false
	for _, c := range j.Clauses {
		for _, name := range walk(c.Node.ExprNode).columns {
			if c.Scope == 0 && c.Tie == nil {
				bound[column{c.Tables[0], name.Name.L}] = true
			}
		}
	}
	for _, c := range j.Clauses {
		if c.Scope != 0 || c.Tie == nil {
			continue
		}
		t := c.Tie
		a, b := j.list[t.Table[0]].column(t.Column[0]), j.list[t.Table[1]].column(t.Column[1])
		if several = several || a.Type != b.Type; several && !(integer(a) && integer(b)) {
			return false
		}
		for k := range t.Table {
			if c := (column{t.Table[k], strings.ToLower(t.Column[k])}); bound[c] {
				tied[c] = true
			}
		}
	}
	return len(tied) == 0 || len(tied) == 1 && !several
}
